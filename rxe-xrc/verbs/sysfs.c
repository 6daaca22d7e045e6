/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files that programs read about RDMA devices, as a tree of our own.
 *
 *   <root>/sys/class/infiniband/xrc_lo/{node_guid,ports/1/...,device/...}
 *   <root>/sys/class/infiniband_verbs/{abi_version,uverbs0/...}
 *   <root>/sys/class/infiniband_mad/abi_version
 *   <root>/dev/infiniband/uverbs0
 *
 * What the tree shall hold is first listed in memory: one record for each directory, file and link.
 * The list's hash names the directory, below $XDG_RUNTIME_DIR/rxe-xrc or /tmp/rxe-xrc-<uid>. So
 * processes that see the same devices share one tree; one whose settings differ gets its own. A
 * tree is built under a temporary name and renamed when complete: a directory with the right name
 * is a finished tree, whoever wrote it, and two processes that build at once do not disturb each
 * other. Something that cleans /tmp may have taken files out of it: it is checked against the list
 * before use, and swapped for a whole one.
 *
 * Entries of the host's real devices stay visible as links to the real ones; fs.c sends paths below
 * them to the real place without a detour. Links inside the tree are relative, so that reading them
 * shows no private path. device/net/<if> leads to the real /sys/class/net/<if> and is live; all
 * else is as it was when the tree was built. Counters read 0: the device's own counters are what
 * --stats prints.
 *
 * /dev/infiniband/uverbsN is a link to /dev/null: a character device even for a program that looks
 * at it by a way that fs.c does not know.
 *
 * Everything goes to the kernel without our own interposers (rawfs.h): those call in here.
 */
#include "verbs/sysfs.h"

#include "base/bytes.h"
#include "base/log.h"
#include "verbs/pathmap.h"
#include "verbs/rawfs.h"

#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#ifndef RXE_VERSION
#define RXE_VERSION "0"
#endif

/* Numbers of uverbs character devices, as Linux has them reserved. */
#define UVERBS_MAJOR 231
#define UVERBS_MINOR 192

/* Interfaces between user space and kernel, as Linux reports them. */
#define ABI_VERBS	  "6"
#define ABI_UVERBS_DRIVER "1"
#define ABI_UMAD	  "5"

/* Trees that nobody looked at for this long are removed when another is built. */
#define TREE_MAX_AGE (7 * 24 * 3600)

/*
 * The list: records "<kind><path>\0<text>\0". Kind 'f' is a file with text and a newline, 'l' a
 * link to text, 'd' a directory. Parents need no record.
 */
struct tree {
	char *b;
	size_t len, room;
	int rc; /* first error */
};

PRINTF_LIKE(4, 5)
static void tree_add(struct tree *t, char kind, const char *path, const char *fmt, ...)
{
	size_t plen = strlen(path) + 1;
	char text[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n < 0 || n >= (int)sizeof(text))
		t->rc = -ENAMETOOLONG;
	if (!t->rc && t->room - t->len < plen + n + 2) {
		size_t room = t->room * 2 + 8192;
		char *b = realloc(t->b, room);

		if (b) {
			t->b = b;
			t->room = room;
		} else {
			t->rc = -ENOMEM;
		}
	}
	if (t->rc)
		return;
	t->b[t->len++] = kind;
	memcpy(t->b + t->len, path, plen);
	t->len += plen;
	memcpy(t->b + t->len, text, n + 1);
	t->len += n + 1;
}

struct record {
	char kind;
	const char *path, *text;
};

static bool tree_next(const struct tree *t, size_t *at, struct record *r)
{
	if (*at >= t->len)
		return false;
	r->kind = t->b[*at];
	r->path = t->b + *at + 1;
	r->text = r->path + strlen(r->path) + 1;
	*at = r->text + strlen(r->text) + 1 - t->b;
	return true;
}

/* One device's or port's directory, to add files to. */
struct dir {
	struct tree *t;
	char path[160];
};

PRINTF_LIKE(3, 4) static void put(const struct dir *d, const char *name, const char *fmt, ...)
{
	char path[256], text[256];
	va_list ap;

	snprintf(path, sizeof(path), "%s/%s", d->path, name);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	tree_add(d->t, 'f', path, "%s", text);
}

static void put_link(const struct dir *d, const char *name, const char *target)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", d->path, name);
	tree_add(d->t, 'l', path, "%s", target);
}

struct text_file {
	const char *name, *text;
};

static const struct text_file device_files[] = {
	{"node_type", "1: CA"},	 {"fw_ver", RXE_VERSION}, {"hw_rev", "0"},
	{"hca_type", "rxe-xrc"}, {"board_id", "rxe-xrc"}, {"device/numa_node", "-1"},
};

static const struct text_file port_files[] = {
	{"rate", "2.5 Gb/sec (1X SDR)"}, {"link_layer", "Ethernet"}, {"lid", "0x0"},
	{"lid_mask_count", "0"},	 {"sm_lid", "0x0"},	     {"sm_sl", "0"},
	{"cap_mask", "0x00010000"}, /* a communication manager answers here */
	{"pkeys/0", "0xffff"},
};

static const char *const counters[] = {
	"counters/VL15_dropped",
	"counters/excessive_buffer_overrun_errors",
	"counters/link_downed",
	"counters/link_error_recovery",
	"counters/local_link_integrity_errors",
	"counters/multicast_rcv_packets",
	"counters/multicast_xmit_packets",
	"counters/port_rcv_constraint_errors",
	"counters/port_rcv_data",
	"counters/port_rcv_errors",
	"counters/port_rcv_packets",
	"counters/port_rcv_remote_physical_errors",
	"counters/port_rcv_switch_relay_errors",
	"counters/port_xmit_constraint_errors",
	"counters/port_xmit_data",
	"counters/port_xmit_discards",
	"counters/port_xmit_packets",
	"counters/port_xmit_wait",
	"counters/symbol_error",
	"counters/unicast_rcv_packets",
	"counters/unicast_xmit_packets",
	"hw_counters/ack_deferred",
	"hw_counters/completer_retry_err",
	"hw_counters/duplicate_request",
	"hw_counters/link_downed",
	"hw_counters/out_of_seq_request",
	"hw_counters/rcvd_pkts",
	"hw_counters/rcvd_rnr_err",
	"hw_counters/rcvd_seq_err",
	"hw_counters/rdma_recvs",
	"hw_counters/rdma_sends",
	"hw_counters/retry_exceeded_err",
	"hw_counters/retry_rnr_exceeded_err",
	"hw_counters/send_err",
	"hw_counters/send_rnr_err",
	"hw_counters/sent_pkts",
};

static void list_gids(const struct dir *port, const struct netdev *v)
{
	for (unsigned int i = 0; i < v->ngids; i++) {
		const uint8_t *ip = v->gids[i].ip;
		char name[40], text[48];

		for (int k = 0; k < 8; k++)
			sprintf(text + 5 * k, "%04x:", get_be16(ip + 2 * k));
		text[39] = 0;
		snprintf(name, sizeof(name), "gids/%u", i);
		put(port, name, "%s", text);
		snprintf(name, sizeof(name), "gid_attrs/types/%u", i);
		put(port, name, "RoCE v2");
		snprintf(name, sizeof(name), "gid_attrs/ndevs/%u", i);
		put(port, name, "%s", v->ifname);
	}
}

static void list_port(const struct dir *dev, const struct netdev *v)
{
	struct dir port = {.t = dev->t};

	snprintf(port.path, sizeof(port.path), "%s/ports/1", dev->path);
	put(&port, "state", "%s", v->up ? "4: ACTIVE" : "1: DOWN");
	put(&port, "phys_state", "%s", v->up ? "5: LinkUp" : "3: Disabled");
	for (unsigned int i = 0; i < ARRAY_SIZE(port_files); i++)
		put(&port, port_files[i].name, "%s", port_files[i].text);
	list_gids(&port, v);
	for (unsigned int i = 0; i < ARRAY_SIZE(counters); i++)
		put(&port, counters[i], "0");
	put(&port, "hw_counters/lifespan", "10");
}

/*
 * The interface below: a link to the real directory. After unshare(CLONE_NEWNET) /sys may still
 * show another namespace's interfaces; then the few files that are asked for are written here.
 */
static void list_interface(const struct dir *dev, const struct netdev *v)
{
	char name[64], real[64], path[96], text[16];

	snprintf(name, sizeof(name), "device/net/%s", v->ifname);
	snprintf(real, sizeof(real), "/sys/class/net/%s", v->ifname);
	snprintf(path, sizeof(path), "%s/ifindex", real);
	if (raw_read_line(path, text, sizeof(text)) > 0 && strtoul(text, NULL, 10) == v->ifindex) {
		put_link(dev, name, real);
		return;
	}
	snprintf(name, sizeof(name), "device/net/%s/ifindex", v->ifname);
	put(dev, name, "%u", v->ifindex);
	snprintf(name, sizeof(name), "device/net/%s/operstate", v->ifname);
	put(dev, name, "%s", v->up ? "up" : "down");
}

static void list_device(struct tree *t, const struct netdev *v)
{
	struct dir dev = {.t = t}, uverbs = {.t = t};
	uint64_t guid = be64toh(v->guid);
	char name[64], target[128], text[32];

	snprintf(dev.path, sizeof(dev.path), "%s/%s", path_tops[PATH_IB], v->ibname);
	snprintf(text, sizeof(text), "%04x:%04x:%04x:%04x", (unsigned int)(guid >> 48),
		 (unsigned int)(guid >> 32 & 0xffff), (unsigned int)(guid >> 16 & 0xffff),
		 (unsigned int)(guid & 0xffff));
	put(&dev, "node_guid", "%s", text);
	put(&dev, "sys_image_guid", "%s", text);
	put(&dev, "node_desc", "%s", v->ibname);
	for (unsigned int i = 0; i < ARRAY_SIZE(device_files); i++)
		put(&dev, device_files[i].name, "%s", device_files[i].text);
	list_port(&dev, v);
	list_interface(&dev, v);
	snprintf(name, sizeof(name), "device/infiniband/%.32s", v->ibname);
	snprintf(target, sizeof(target), "../../../%s", v->ibname);
	put_link(&dev, name, target);
	snprintf(name, sizeof(name), "device/infiniband_verbs/uverbs%u", v->uverbs);
	snprintf(target, sizeof(target), "../../../../infiniband_verbs/uverbs%u", v->uverbs);
	put_link(&dev, name, target);

	snprintf(uverbs.path, sizeof(uverbs.path), "%s/uverbs%u", path_tops[PATH_IB_VERBS],
		 v->uverbs);
	put(&uverbs, "ibdev", "%s", v->ibname);
	put(&uverbs, "abi_version", ABI_UVERBS_DRIVER);
	put(&uverbs, "dev", "%d:%u", UVERBS_MAJOR, UVERBS_MINOR + v->uverbs);
	snprintf(target, sizeof(target), "../../infiniband/%s/device", v->ibname);
	put_link(&uverbs, "device", target);
	snprintf(name, sizeof(name), "%s/uverbs%u", path_tops[PATH_DEV], v->uverbs);
	tree_add(t, 'l', name, "/dev/null");
}

static bool is_ours(const struct netdev *v, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(v[i].ibname, name))
			return true;
	return false;
}

/* What the host really has in one of the directories, but for what has a name of ours. */
static void list_real(struct tree *t, enum path_top top, const struct netdev *v, int n)
{
	DIR *dir = raw_opendir(path_tops[top]);
	struct dirent *e;

	tree_add(t, 'd', path_tops[top], "%s", "");
	while (dir && (e = readdir(dir))) {
		char path[320];

		if (e->d_name[0] == '.' || is_ours(v, n, e->d_name))
			continue;
		snprintf(path, sizeof(path), "%s/%s", path_tops[top], e->d_name);
		tree_add(t, 'l', path, "%s", path);
	}
	if (dir)
		closedir(dir);
}

static void list_abi(struct tree *t, enum path_top top, const char *version)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/abi_version", path_tops[top]);
	if (!raw_exists(path))
		tree_add(t, 'f', path, "%s", version);
}

static void list_all(struct tree *t, const struct netdev *v, int n)
{
	for (int i = 0; i < PATH_TOPS; i++)
		list_real(t, i, v, n);
	list_abi(t, PATH_IB_VERBS, ABI_VERBS);
	list_abi(t, PATH_IB_MAD, ABI_UMAD);
	for (int i = 0; i < n; i++)
		list_device(t, &v[i]);
}

/* mkdir -p of all but the last component of @path, relative to @dirfd. */
static int make_parents(int dirfd, const char *path)
{
	char part[PATH_MAX];

	for (const char *p = path; (p = strchr(p, '/')); p++) {
		memcpy(part, path, p - path);
		part[p - path] = 0;
		if (*part && mkdirat(dirfd, part, 0755) && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int write_file(int dirfd, const char *path, const char *text)
{
	int fd = raw_openat(dirfd, path, O_WRONLY | O_CREAT | O_EXCL, 0444);
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (dprintf(fd, "%s\n", text) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

static int write_record(int dirfd, const struct record *r)
{
	/* Paths in the list are absolute; here they are below the tree. */
	const char *path = r->path + 1;
	int rc = make_parents(dirfd, path);

	if (rc)
		return rc;
	switch (r->kind) {
	case 'd':
		return mkdirat(dirfd, path, 0755) && errno != EEXIST ? -errno : 0;
	case 'l':
		return symlinkat(r->text, dirfd, path) ? -errno : 0;
	default:
		return write_file(dirfd, path, r->text);
	}
}

static int write_tree(int dirfd, const struct tree *t)
{
	struct record r;
	size_t at = 0;
	int rc = 0;

	while (!rc && tree_next(t, &at, &r))
		rc = write_record(dirfd, &r);
	return rc;
}

static bool tree_is_whole(int dirfd, const struct tree *t)
{
	struct record r;
	struct statx st;
	size_t at = 0;

	while (tree_next(t, &at, &r))
		if (raw_lstat(dirfd, r.path + 1, &st))
			return false;
	return true;
}

/* rm -r. Errors are of no interest: what cannot be removed stays. */
static void remove_tree(int dirfd, const char *name)
{
	int fd = raw_openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (e = readdir(dir))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (unlinkat(fd, e->d_name, 0))
			remove_tree(fd, e->d_name);
	}
	if (dir)
		closedir(dir);
	unlinkat(dirfd, name, AT_REMOVEDIR);
}

static void remove_old_trees(int dirfd)
{
	int fd = raw_openat(dirfd, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	time_t now = time(NULL);
	struct dirent *e;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (e = readdir(dir))) {
		struct statx st;

		if (!strncmp(e->d_name, "sys-", 4) && !raw_lstat(dirfd, e->d_name, &st) &&
		    st.stx_mtime.tv_sec + TREE_MAX_AGE < now)
			remove_tree(dirfd, e->d_name);
	}
	if (dir)
		closedir(dir);
}

/*
 * Puts a whole tree in the place of @name, which may exist (another process was faster, or it lost
 * files).
 */
static int build_new(int dirfd, const char *name, const struct tree *t)
{
	char temp[64];
	int fd, rc;

	snprintf(temp, sizeof(temp), "%.40s.%d.%lx", name, (int)getpid(),
		 (unsigned long)&temp >> 4);
	remove_tree(dirfd, temp);
	if (mkdirat(dirfd, temp, 0755))
		return -errno;
	fd = raw_openat(dirfd, temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	rc = fd < 0 ? -errno : write_tree(fd, t);
	if (!rc && renameat(dirfd, temp, dirfd, name)) {
		if (errno != EEXIST && errno != ENOTEMPTY)
			rc = -errno;
		else if (renameat2(dirfd, temp, dirfd, name, RENAME_EXCHANGE))
			rc = -errno;
	}
	if (fd >= 0)
		close(fd);
	remove_tree(dirfd, temp);
	return rc;
}

static uint64_t tree_hash(const struct tree *t)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < t->len; i++)
		h = (h ^ (uint8_t)t->b[i]) * 0x100000001b3ull;
	return h;
}

/* Makes sure that the tree of @t is in @dirfd. */
static int tree_place(int dirfd, const char *name, const struct tree *t)
{
	int fd = raw_openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	bool whole = fd >= 0 && tree_is_whole(fd, t);

	if (whole)
		futimens(fd, NULL);
	if (fd >= 0)
		close(fd);
	if (whole)
		return 0;
	remove_old_trees(dirfd);
	return build_new(dirfd, name, t);
}

int sysfs_build(const char *dir, const struct netdev *v, int n, char *root, size_t size)
{
	struct tree t = {0};
	char name[40];
	int dirfd, rc;

	list_all(&t, v, n);
	if (t.rc) {
		rc = t.rc;
		goto out_free;
	}
	snprintf(name, sizeof(name), "sys-%016llx", (unsigned long long)tree_hash(&t));
	if (snprintf(root, size, "%s/%s", dir, name) >= (int)size) {
		rc = -ENAMETOOLONG;
		goto out_free;
	}
	dirfd = raw_openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, 0);
	if (dirfd < 0) {
		rc = -errno;
		goto out_free;
	}
	rc = tree_place(dirfd, name, &t);
	close(dirfd);
out_free:
	free(t.b);
	return rc;
}

unsigned long sysfs_uverbs_rdev(unsigned int n)
{
	return makedev(UVERBS_MAJOR, UVERBS_MINOR + n);
}

static bool owned_directory(const char *path)
{
	struct statx st;

	return !raw_lstat(AT_FDCWD, path, &st) && S_ISDIR(st.stx_mode) && st.stx_uid == geteuid();
}

/* Makes @path ours alone; a link, or what belongs to somebody else, is refused. */
static int make_private(const char *path)
{
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	if (!owned_directory(path))
		return -EPERM;
	return chmod(path, 0700) ? -errno : 0;
}

static int find_private_dir(char *dir, size_t size)
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	int rc;

	if (run && *run == '/' && owned_directory(run) &&
	    snprintf(dir, size, "%s/rxe-xrc", run) < (int)size && !make_private(dir))
		return 0;
	snprintf(dir, size, "/tmp/rxe-xrc-%u", (unsigned int)geteuid());
	rc = make_private(dir);
	if (rc)
		log_error("cannot use %s: %s; programs that look at /sys/class/infiniband find no "
			  "device",
			  dir, rc == -EPERM ? "it belongs to somebody else" : strerror(-rc));
	return rc;
}

/* Under root_lock; root_now may be read without. */
static pthread_mutex_t root_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(const char *) root_now;
static atomic_bool root_valid; /* root_now is the answer, also when that is NULL */

static void lock_root(void)
{
	pthread_mutex_lock(&root_lock);
}

static void unlock_root(void)
{
	pthread_mutex_unlock(&root_lock);
}

/* Old strings are never freed: threads may be using them, and there are as many as there were
 * changes. */
static void rebuild_root(void)
{
	static bool forks_handled;
	const char *old = atomic_load(&root_now);
	struct netdev *v;
	char dir[PATH_MAX - 64], root[PATH_MAX];
	int n, rc;

	if (!forks_handled)
		forks_handled = !pthread_atfork(lock_root, unlock_root, unlock_root);
	if (find_private_dir(dir, sizeof(dir))) {
		atomic_store(&root_now, NULL);
		return;
	}
	v = calloc(NETDEV_MAX, sizeof(*v));
	if (!v)
		return;
	n = netdev_list(v, NETDEV_MAX);
	rc = sysfs_build(dir, v, n, root, sizeof(root));
	free(v);
	if (rc) {
		log_error("cannot write below %s: %s", dir, strerror(-rc));
		atomic_store(&root_now, NULL);
		return;
	}
	if (!old || strcmp(old, root))
		atomic_store(&root_now, strdup(root));
}

const char *sysfs_root(void)
{
	if (unlikely(!atomic_load_explicit(&root_valid, memory_order_acquire))) {
		lock_root();
		if (!atomic_load(&root_valid)) {
			rebuild_root();
			atomic_store_explicit(&root_valid, true, memory_order_release);
		}
		unlock_root();
	}
	return atomic_load(&root_now);
}

void sysfs_invalidate(void)
{
	atomic_store(&root_valid, false);
}
