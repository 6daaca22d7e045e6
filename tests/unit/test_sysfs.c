/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The private tree: what it holds, that it is shared, that it mends, that builders do not race. */
#include "verbs/sysfs.h"

#include "base/macros.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/test-sysfs-XXXXXX";
static char root[PATH_MAX];
static struct netdev dev;

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static void setup(void)
{
	cr_assert(mkdtemp(dir));
	dev = (struct netdev){
		.ifname = "lo",
		.ibname = "xrc_lo",
		.ifindex = 1,
		.uverbs = 7,
		.guid = htobe64(0x0200112233445566),
		.active_mtu = IBV_MTU_4096,
		.up = true,
		.ngids = 2,
		.gids = {{.ip = {[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}}, {.ip = {[15] = 1}}},
	};
}

static void teardown(void)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

TestSuite(sysfs, .init = setup, .fini = teardown);

static const char *content(const char *path)
{
	static char text[256];
	char full[2 * PATH_MAX];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	f = fopen(full, "r");
	if (!f)
		return NULL;
	if (!fgets(text, sizeof(text), f))
		text[0] = 0;
	fclose(f);
	return text;
}

static int count_entries(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

#define IB "/sys/class/infiniband/xrc_lo/"

Test(sysfs, sysfs_build__what_programs_read)
{
	static const struct {
		const char *path, *text;
	} files[] = {
		{IB "node_type", "1: CA\n"},
		{IB "node_guid", "0200:1122:3344:5566\n"},
		{IB "sys_image_guid", "0200:1122:3344:5566\n"},
		{IB "ports/1/state", "4: ACTIVE\n"},
		{IB "ports/1/phys_state", "5: LinkUp\n"},
		{IB "ports/1/link_layer", "Ethernet\n"},
		{IB "ports/1/gids/0", "0000:0000:0000:0000:0000:ffff:7f00:0001\n"},
		{IB "ports/1/gids/1", "0000:0000:0000:0000:0000:0000:0000:0001\n"},
		{IB "ports/1/gid_attrs/types/1", "RoCE v2\n"},
		{IB "ports/1/gid_attrs/ndevs/0", "lo\n"},
		{IB "ports/1/pkeys/0", "0xffff\n"},
		{IB "ports/1/counters/port_xmit_data", "0\n"},
		{IB "device/numa_node", "-1\n"},
		{IB "device/net/lo/ifindex", "1\n"},
		{IB "device/infiniband_verbs/uverbs7/ibdev", "xrc_lo\n"},
		{"/sys/class/infiniband_verbs/abi_version", "6\n"},
		{"/sys/class/infiniband_verbs/uverbs7/ibdev", "xrc_lo\n"},
		{"/sys/class/infiniband_verbs/uverbs7/dev", "231:199\n"},
		{"/sys/class/infiniband_verbs/uverbs7/device/numa_node", "-1\n"},
	};

	cr_assert(!sysfs_build(dir, &dev, 1, root, sizeof(root)));
	for (unsigned int i = 0; i < ARRAY_SIZE(files); i++) {
		const char *text = content(files[i].path);

		cr_expect(text && !strcmp(text, files[i].text), "%s: %s", files[i].path, text);
	}
	cr_expect_null(content(IB "ports/1/gids/2"));
	cr_expect_null(content("/dev/infiniband/rdma_cm"));
}

Test(sysfs, sysfs_build__port_down)
{
	dev.up = false;
	cr_assert(!sysfs_build(dir, &dev, 1, root, sizeof(root)));
	cr_expect_str_eq(content(IB "ports/1/state"), "1: DOWN\n");
}

Test(sysfs, sysfs_build__uverbs_is_a_character_device_anyhow)
{
	char path[2 * PATH_MAX];
	struct stat st;

	cr_assert(!sysfs_build(dir, &dev, 1, root, sizeof(root)));
	snprintf(path, sizeof(path), "%s/dev/infiniband/uverbs7", root);
	cr_assert(!stat(path, &st));
	cr_expect(S_ISCHR(st.st_mode));
	cr_expect_eq(sysfs_uverbs_rdev(7), makedev(231, 199));
}

/* An interface that /sys does not know, as after unshare(CLONE_NEWNET). */
Test(sysfs, sysfs_build__interface_of_another_namespace)
{
	dev.ifindex = 12345;
	cr_assert(!sysfs_build(dir, &dev, 1, root, sizeof(root)));
	cr_expect_str_eq(content(IB "device/net/lo/ifindex"), "12345\n");
}

Test(sysfs, sysfs_build__no_device_no_entry)
{
	char path[2 * PATH_MAX];

	cr_assert(!sysfs_build(dir, NULL, 0, root, sizeof(root)));
	snprintf(path, sizeof(path), "%s/sys/class/infiniband", root);
	cr_expect(!access(path, F_OK));
	cr_expect_null(content(IB "node_guid"));
}

Test(sysfs, sysfs_build__equal_devices_share_a_tree)
{
	char first[PATH_MAX], other[PATH_MAX];

	cr_assert(!sysfs_build(dir, &dev, 1, first, sizeof(first)));
	cr_assert(!sysfs_build(dir, &dev, 1, root, sizeof(root)));
	cr_expect_str_eq(first, root);
	cr_expect_eq(count_entries(dir), 1);
	dev.gids[0].ip[15] = 2;
	cr_assert(!sysfs_build(dir, &dev, 1, other, sizeof(other)));
	cr_expect_str_neq(other, root);
	cr_expect_eq(count_entries(dir), 2);
	cr_expect_str_eq(content(IB "ports/1/gids/0"), "0000:0000:0000:0000:0000:ffff:7f00:0001\n");
}

Test(sysfs, sysfs_build__mends_what_was_cleaned_away)
{
	char path[2 * PATH_MAX];

	cr_assert(!sysfs_build(dir, &dev, 1, root, sizeof(root)));
	snprintf(path, sizeof(path), "%s" IB "ports/1/state", root);
	cr_assert(!unlink(path));
	cr_assert(!sysfs_build(dir, &dev, 1, root, sizeof(root)));
	cr_expect_str_eq(content(IB "ports/1/state"), "4: ACTIVE\n");
	cr_expect_eq(count_entries(dir), 1);
}

Test(sysfs, sysfs_build__old_trees_go)
{
	struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

	cr_assert(!sysfs_build(dir, &dev, 1, root, sizeof(root)));
	cr_assert(!utimensat(AT_FDCWD, root, old, 0));
	dev.up = false;
	cr_assert(!sysfs_build(dir, &dev, 1, root, sizeof(root)));
	cr_expect_eq(count_entries(dir), 1);
	/* One that is in use is as good as new. */
	cr_assert(!utimensat(AT_FDCWD, root, old, 0));
	cr_assert(!sysfs_build(dir, &dev, 1, root, sizeof(root)));
	dev.up = true;
	cr_assert(!sysfs_build(dir, &dev, 1, root, sizeof(root)));
	cr_expect_eq(count_entries(dir), 2);
}

/* Eight processes at once: each finds a whole tree, and one is left. */
Test(sysfs, sysfs_build__builders_at_once)
{
	enum { N = 8 };
	pid_t pids[N];

	for (int i = 0; i < N; i++) {
		pids[i] = fork();
		cr_assert_geq(pids[i], 0);
		if (!pids[i]) {
			const char *text;
			int rc = sysfs_build(dir, &dev, 1, root, sizeof(root));

			text = content("/sys/class/infiniband_verbs/uverbs7/dev");
			_exit(rc || !text || strcmp(text, "231:199\n"));
		}
	}
	for (int i = 0; i < N; i++) {
		int status;

		cr_assert_eq(waitpid(pids[i], &status, 0), pids[i]);
		cr_expect_eq(status, 0);
	}
	cr_expect_eq(count_entries(dir), 1);
}

Test(sysfs, sysfs_root__private_directory_is_private)
{
	char path[PATH_MAX];
	struct stat st;
	const char *now;

	setenv("XDG_RUNTIME_DIR", dir, 1);
	setenv("RXE_NETDEV", "lo", 1);
	now = sysfs_root();
	cr_assert_not_null(now);
	snprintf(path, sizeof(path), "%s/rxe-xrc/", dir);
	cr_expect(!strncmp(now, path, strlen(path)), "%s", now);
	path[strlen(path) - 1] = 0;
	cr_assert(!lstat(path, &st));
	cr_expect_eq(st.st_mode & 07777, 0700);
	cr_expect_eq(sysfs_root(), now, "asked again, the same string");
	sysfs_invalidate();
	cr_expect_str_eq(sysfs_root(), now);
}

/* A link in the place of the directory is not followed; there is another place to go. */
Test(sysfs, sysfs_root__does_not_follow_a_link)
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *now;

	setenv("XDG_RUNTIME_DIR", dir, 1);
	snprintf(target, sizeof(target), "%s/elsewhere", dir);
	snprintf(path, sizeof(path), "%s/rxe-xrc", dir);
	cr_assert(!mkdir(target, 0700));
	cr_assert(!symlink(target, path));
	now = sysfs_root();
	cr_expect(!now || strncmp(now, dir, strlen(dir)), "%s", now);
	cr_expect_eq(count_entries(target), 0);
}
