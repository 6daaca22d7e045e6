/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A network namespace for one test, so that it can make interfaces as it needs them. */
#ifndef RXE_TESTS_OWN_NETNS_H
#define RXE_TESTS_OWN_NETNS_H

#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>

/* Commands for sh; must succeed. Criterion runs each test in a process of its own: nothing to undo.
 */
static inline void own_netns(const char *commands)
{
	/* A user namespace is no way out: the kernel wants a process without threads for that. */
	if (unshare(CLONE_NEWNET))
		cr_skip("a network namespace needs root");
	cr_assert_eq(system(commands), 0, "%s", commands);
}

#endif
