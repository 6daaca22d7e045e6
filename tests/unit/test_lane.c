/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A lane that is held: who gets the processor meanwhile. What lanes do is tested in tests/sim. */
#include "engine/lane.h"

#include "realtime.h"

#include <errno.h>

static struct engine *e;

static void setup(void)
{
	static const struct engine_ops ops;
	struct engine_config config = {.ops = &ops, .nlanes = 1, .seed = 42};

	cr_assert_eq(engine_create(&config, &e), 0);
}

static void teardown(void)
{
	engine_destroy(e);
}

TestSuite(lane, .init = setup, .fini = teardown);

static void take(void *what)
{
	lane_lock(what, 1);
}

static void give(void *what)
{
	lane_unlock(what);
}

/* A program that polls until something has come polls until its helper thread has let go of the lane. */
Test(lane, lane_run__realtime_poller_beside_an_ordinary_holder)
{
	struct hold h = {.take = take, .give = give, .what = e->lanes[0]};
	long before;

	hold_begin(&h);
	before = sleeps();
	while (atomic_load(&e->lanes[0]->word) != LANE_FREE)
		lane_run(e->lanes[0], 2, LANE_POLL);
	before = sleeps() - before;
	hold_end(&h);
	cr_assert_gt(before, 0, "it only yielded");
}

Test(lane, lane_lock__realtime_waiter_beside_an_ordinary_holder)
{
	struct hold h = {.take = take, .give = give, .what = e->lanes[0]};
	long before;

	hold_begin(&h);
	before = sleeps();
	lane_lock(e->lanes[0], 2);
	before = sleeps() - before;
	lane_unlock(e->lanes[0]);
	hold_end(&h);
	cr_assert_gt(before, 0, "it only yielded");
}
