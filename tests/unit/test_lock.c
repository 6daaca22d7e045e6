/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Waiting for a lock: who gets the processor meanwhile. */
#include "base/lock.h"

#include "realtime.h"

#include <errno.h>

static struct lock lock;

static void take(void *what)
{
	lock_take(what);
}

static void give(void *what)
{
	lock_give(what);
}

Test(lock, give_way__sleeps_now_and_then_and_leaves_errno)
{
	long before = sleeps();

	errno = 7;
	for (unsigned int i = 1; i <= 640; i++)
		give_way(i);
	cr_assert_eq(errno, 7);
	cr_assert_geq(sleeps() - before, 10);
}

static void *sleep_cancelled(void *arg)
{
	pthread_cancel(pthread_self());
	for (unsigned int i = 1; i <= 64; i++)
		give_way(i);
	atomic_store((atomic_bool *)arg, true);
	pthread_testcancel();
	return NULL;
}

/* Whoever waits may hold something else. */
Test(lock, give_way__is_no_cancellation_point)
{
	atomic_bool came_back = false;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, sleep_cancelled, &came_back), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert(atomic_load(&came_back));
}

Test(lock, give_way_once__sleeps_in_a_realtime_class_only)
{
	long before = sleeps();

	for (unsigned int i = 0; i < 640; i++)
		give_way_once();
	/* A page may be read from the disk. */
	cr_assert_lt(sleeps() - before, 5);
	if (!set_policy(SCHED_RR))
		cr_skip_test("no right to real-time scheduling");
	before = sleeps();
	for (unsigned int i = 0; i < 640; i++)
		give_way_once();
	set_policy(SCHED_OTHER);
	cr_assert_geq(sleeps() - before, 10);
}

Test(lock, lock_take__realtime_waiter_beside_an_ordinary_holder)
{
	struct hold h = {.take = take, .give = give, .what = &lock};
	long before;

	lock_init(&lock);
	hold_begin(&h);
	before = sleeps();
	lock_take(&lock);
	before = sleeps() - before;
	lock_give(&lock);
	hold_end(&h);
	cr_assert_gt(before, 0, "it only spun");
}
