/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An engine without a data path, for tests of its objects: lanes that do nothing, and a face that
 * counts events. Included by one C file of a test program.
 */
#ifndef TESTS_UNIT_ENGINE_STUB_H
#define TESTS_UNIT_ENGINE_STUB_H

#include "engine/lane.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

static unsigned int stub_lanes;		  /* alive */
static unsigned int stub_fail_lane = -1u; /* its lane_create() fails */
static atomic_uint stub_cq_events;
static atomic_uint stub_async_events;
static enum ibv_event_type stub_last_async;
static void *stub_last_user;

int lane_create(struct engine *e, unsigned int index, struct lane **out)
{
	struct lane *lane;

	if (index == stub_fail_lane)
		return -ENOMEM;
	lane = aligned_alloc(CACHE_LINE, sizeof(*lane));
	cr_assert_not_null(lane);
	*lane = (struct lane){.engine = e, .index = index};
	stub_lanes++;
	*out = lane;
	return 0;
}

void lane_destroy(struct lane *lane)
{
	stub_lanes--;
	free(lane);
}

void lane_lock(struct lane *lane, uint64_t now)
{
	while (!lane_word_acquire(&lane->word, false))
		sched_yield();
}

void lane_unlock(struct lane *lane)
{
	cr_assert(lane_word_release(&lane->word));
}

static inline void stub_cq_event(struct cq *cq)
{
	atomic_fetch_add(&stub_cq_events, 1);
}

static inline void stub_async_event(struct engine *e, enum ibv_event_type type, void *user)
{
	stub_last_async = type;
	stub_last_user = user;
	atomic_fetch_add(&stub_async_events, 1);
}

static inline struct engine *stub_engine_lanes(unsigned int nlanes)
{
	static const struct engine_ops ops = {.cq_event = stub_cq_event,
					      .async_event = stub_async_event};
	struct engine_config config = {.ops = &ops, .nlanes = nlanes, .seed = 42};
	struct engine *e;

	cr_assert_eq(engine_create(&config, &e), 0);
	return e;
}

static inline struct engine *stub_engine(void)
{
	return stub_engine_lanes(1);
}

#endif
