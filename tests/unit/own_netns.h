/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A network namespace for one test, so that it can make interfaces as it needs them. */
#ifndef RXE_TESTS_OWN_NETNS_H
#define RXE_TESTS_OWN_NETNS_H

#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Commands for sh; must succeed. Criterion runs each test in a process of its own: nothing to undo.
 */
static inline void own_netns(const char *commands)
{
	if (unshare(CLONE_NEWNET)) {
		uid_t uid = getuid();
		FILE *map;

		if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
			cr_skip("no right to make a network namespace");
		map = fopen("/proc/self/uid_map", "w");
		if (!map || fprintf(map, "0 %u 1\n", uid) < 0 || fclose(map))
			cr_skip("no right to make a user namespace");
	}
	cr_assert_eq(system(commands), 0, "%s", commands);
}

#endif
