/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Paths: which are the tree's, in all their spellings, and the way back. */
#include "verbs/pathmap.h"

#include "base/macros.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>

static const struct {
	const char *path;
	enum path_top top;
	const char *out;
} paths[] = {
	{"/sys/class/infiniband", PATH_IB, "/sys/class/infiniband"},
	{"/sys/class/infiniband/", PATH_IB, "/sys/class/infiniband/"},
	{"/sys/class/infiniband/xrc_lo/fw_ver", PATH_IB, "/sys/class/infiniband/xrc_lo/fw_ver"},
	{"//sys///class/./infiniband//xrc_lo/.", PATH_IB, "/sys/class/infiniband/xrc_lo"},
	{"sys/class/infiniband", PATH_IB, "/sys/class/infiniband"},
	{"/sys/class/net/../infiniband/x", PATH_IB, "/sys/class/infiniband/x"},
	{"/sys/class/infiniband_verbs/uverbs0", PATH_IB_VERBS,
	 "/sys/class/infiniband_verbs/uverbs0"},
	{"/sys/class/infiniband_mad/abi_version", PATH_IB_MAD,
	 "/sys/class/infiniband_mad/abi_version"},
	{"/dev/infiniband/uverbs0", PATH_DEV, "/dev/infiniband/uverbs0"},
	/* ".." inside is the kernel's to follow; what leads out is resolved by its text. */
	{"/sys/class/infiniband/xrc_lo/device/../ports", PATH_IB,
	 "/sys/class/infiniband/xrc_lo/device/../ports"},
	{"/sys/class/infiniband/xrc_lo/..", PATH_IB, "/sys/class/infiniband/xrc_lo/.."},
	{"/sys/class/infiniband/../infiniband_verbs/uverbs1", PATH_IB_VERBS,
	 "/sys/class/infiniband_verbs/uverbs1"},
	{"/sys/class/infiniband/x/../../infiniband/y", PATH_IB, "/sys/class/infiniband/y"},
	{"/sys/class/infiniband/..", PATH_LEFT, "/sys/class"},
	{"/dev/infiniband/../null", PATH_LEFT, "/dev/null"},
	{"/sys/class/infiniband/../../../../../etc", PATH_LEFT, "/etc"},
	{"/sys/class/infiniband_srp/x", PATH_OTHER, NULL},
	{"/sys/class/infinibandx", PATH_OTHER, NULL},
	{"/sys/class/net/infiniband", PATH_OTHER, NULL},
	{"/home/sys/class/infiniband", PATH_OTHER, NULL},
	{"/sys/class", PATH_OTHER, NULL},
	{"/", PATH_OTHER, NULL},
	{"", PATH_OTHER, NULL},
};

Test(pathmap, path_candidate__lets_all_of_ours_through)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(paths); i++)
		if (paths[i].top != PATH_OTHER)
			cr_expect(path_candidate(paths[i].path), "%s", paths[i].path);
	cr_assert(!path_candidate(NULL));
	cr_assert(!path_candidate(""));
	cr_assert(!path_candidate("/etc/infiniband"));
	cr_assert(!path_candidate("/sys/class/net"));
}

Test(pathmap, path_classify__every_spelling)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(paths); i++) {
		char out[PATH_MAX];
		enum path_top top = path_classify(paths[i].path, out, sizeof(out));

		cr_expect_eq(top, paths[i].top, "%s: %d", paths[i].path, top);
		if (top != PATH_OTHER && top == paths[i].top)
			cr_expect_str_eq(out, paths[i].out, "%s: %s", paths[i].path, out);
	}
}

/* Too long for the buffer is not ours, whatever the size. */
Test(pathmap, path_classify__never_overruns)
{
	static const char path[] = "/sys/class/infiniband/xrc_lo/ports/1/state";

	for (size_t size = 1; size <= sizeof(path); size++) {
		char out[64];

		memset(out, '#', sizeof(out));
		cr_expect_eq(path_classify(path, out, size),
			     size == sizeof(path) ? PATH_IB : PATH_OTHER, "size %zu", size);
		cr_expect_eq(out[size], '#', "size %zu", size);
	}
}

Test(pathmap, path_entry__is_the_first_below_the_top)
{
	char out[PATH_MAX];

	cr_assert(path_entry(PATH_IB, "/sys/class/infiniband/xrc_lo/ports/1", out, sizeof(out)));
	cr_assert_str_eq(out, "/sys/class/infiniband/xrc_lo");
	cr_assert(path_entry(PATH_DEV, "/dev/infiniband/uverbs0", out, sizeof(out)));
	cr_assert_str_eq(out, "/dev/infiniband/uverbs0");
	cr_assert(!path_entry(PATH_IB, "/sys/class/infiniband", out, sizeof(out)));
	cr_assert(!path_entry(PATH_IB, "/sys/class/infiniband/", out, sizeof(out)));
	cr_assert(!path_entry(PATH_IB, "/sys/class/infiniband/xrc_lo", out, 28));
	cr_assert(path_entry(PATH_IB, "/sys/class/infiniband/xrc_lo", out, 29));
}

Test(pathmap, path_uverbs__number_or_none)
{
	cr_assert_eq(path_uverbs(PATH_DEV, "/dev/infiniband/uverbs0"), 0);
	cr_assert_eq(path_uverbs(PATH_DEV, "/dev/infiniband/uverbs17"), 17);
	cr_assert_eq(path_uverbs(PATH_DEV, "/dev/infiniband/uverbs"), -1);
	cr_assert_eq(path_uverbs(PATH_DEV, "/dev/infiniband/uverbs1x"), -1);
	cr_assert_eq(path_uverbs(PATH_DEV, "/dev/infiniband/uverbs99999999999"), -1);
	cr_assert_eq(path_uverbs(PATH_DEV, "/dev/infiniband/rdma_cm"), -1);
	cr_assert_eq(path_uverbs(PATH_DEV, "/dev/infiniband"), -1);
	cr_assert_eq(path_uverbs(PATH_IB_VERBS, "/sys/class/infiniband_verbs/uverbs0"), -1);
}

static const struct {
	const char *path, *known;
} trees[] = {
	{"/run/user/1000/rxe-xrc/sys-0123456789abcdef/sys/class/infiniband/xrc_lo",
	 "/sys/class/infiniband/xrc_lo"},
	{"/tmp/rxe-xrc-0/sys-0123456789abcdef/dev/infiniband", "/dev/infiniband"},
	/* folders of the name above it */
	{"/src/rxe-xrc/build/rxe-xrc/sys-0123456789abcdef/dev/infiniband", "/dev/infiniband"},
	{"/rxe-xrc/rxe-xrc-1/a/rxe-xrc/sys-0123456789abcdef/dev/infiniband", "/dev/infiniband"},
	{"/src/rxe-xrc/sys-0123456789abcde/rxe-xrc", NULL},
	/* none of these is a tree */
	{"/tmp/rxe-xrc-0/sys-0123456789abcdef", NULL},
	{"/tmp/rxe-xrc-0/sys-0123456789abcdef/etc", NULL},
	{"/tmp/rxe-xrc-0/sys-0123456789abcde/dev/infiniband", NULL},
	{"/tmp/rxe-xrc-0/sys-0123456789abcdeg/dev/infiniband", NULL},
	{"/tmp/rxe-xrc-0", NULL},
	{"/tmp/sys-0123456789abcdef/dev/infiniband", NULL},
	{"/sys/class/net/lo", NULL},
};

Test(pathmap, path_unmap__only_trees)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(trees); i++) {
		char path[PATH_MAX];
		const char *expect = trees[i].known ? trees[i].known : trees[i].path;

		snprintf(path, sizeof(path), "%s", trees[i].path);
		path[path_unmap(path, strlen(path))] = 0;
		cr_expect_str_eq(path, expect);
	}
}

/* readlink() gives no terminator: nothing behind the length may be looked at. */
Test(pathmap, path_unmap__stops_at_the_length)
{
	char path[] = "/tmp/rxe-xrc-0/sys-0123456789abcdef/dev/infiniband";

	for (size_t len = 0; len + 1 < sizeof(path); len++)
		cr_expect_eq(path_unmap(path, len), len, "%zu", len);
	cr_expect_eq(path_unmap(path, sizeof(path) - 1), strlen("/dev/infiniband"));
}
