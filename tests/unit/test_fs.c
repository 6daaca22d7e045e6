/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What only the library itself can do with paths; the ways of the C library are walked by
 * fs_walk.c. */
#include "verbs/fs.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define GUID "/sys/class/infiniband/xrc_lo/node_guid"

static void *look(void *arg)
{
	return access(GUID, F_OK) ? NULL : arg;
}

Test(fs, fs_bypass__shows_the_host_to_this_thread_only)
{
	pthread_t t;
	void *seen;

	setenv("RXE_NETDEV", "lo", 1);
	cr_expect(!access(GUID, F_OK));
	fs_bypass(true);
	fs_bypass(true);
	cr_expect(access(GUID, F_OK));
	fs_bypass(false);
	cr_expect(access(GUID, F_OK), "calls nest");
	cr_assert(!pthread_create(&t, NULL, look, "seen"));
	pthread_join(t, &seen);
	cr_expect_not_null(seen);
	fs_bypass(false);
	cr_expect(!access(GUID, F_OK));
}
