/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The heap of deadlines: v[0] is the earliest, and v[i] is not later than v[2i + 1] and v[2i + 2].
 *
 * Each timer knows its index, so that moving and cancelling need no search.
 */
#include "engine/timer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

void timer_heap_init(struct timer_heap *h)
{
	*h = (struct timer_heap){0};
}

void timer_heap_fini(struct timer_heap *h)
{
	free(h->v);
	timer_heap_init(h);
}

int timer_heap_reserve(struct timer_heap *h, uint32_t n)
{
	uint32_t room = h->room ? h->room : 16;
	struct timer **v;

	if (n <= h->room)
		return 0;
	while (room < n)
		room = room > UINT32_MAX / 2 ? UINT32_MAX : 2 * room;
	v = reallocarray(h->v, room, sizeof(struct timer *));
	if (!v)
		return -ENOMEM;
	h->v = v;
	h->room = room;
	return 0;
}

static void put_at(struct timer_heap *h, uint32_t i, struct timer *t)
{
	h->v[i] = t;
	t->index = i;
}

/* Moves @t from the hole at @i towards the root as far as it belongs. */
static void sift_up(struct timer_heap *h, uint32_t i, struct timer *t)
{
	while (i) {
		uint32_t parent = (i - 1) / 2;

		if (h->v[parent]->when <= t->when)
			break;
		put_at(h, i, h->v[parent]);
		i = parent;
	}
	put_at(h, i, t);
}

/* Moves @t from the hole at @i towards the leaves as far as it belongs. */
static void sift_down(struct timer_heap *h, uint32_t i, struct timer *t)
{
	for (;;) {
		uint64_t child = 2 * (uint64_t)i + 1;

		if (child >= h->n)
			break;
		if (child + 1 < h->n && h->v[child + 1]->when < h->v[child]->when)
			child++;
		if (t->when <= h->v[child]->when)
			break;
		put_at(h, i, h->v[child]);
		i = child;
	}
	put_at(h, i, t);
}

static void sift(struct timer_heap *h, uint32_t i, struct timer *t)
{
	if (i && t->when < h->v[(i - 1) / 2]->when)
		sift_up(h, i, t);
	else
		sift_down(h, i, t);
}

static void cancel(struct timer_heap *h, struct timer *t)
{
	struct timer *last = h->v[--h->n];

	t->when = TIMER_NEVER;
	if (last != t)
		sift(h, t->index, last);
}

void timer_set(struct timer_heap *h, struct timer *t, uint64_t when)
{
	bool queued = t->when != TIMER_NEVER;

	if (when == t->when)
		return;
	if (when == TIMER_NEVER) {
		cancel(h, t);
		return;
	}
	t->when = when;
	if (queued) {
		sift(h, t->index, t);
		return;
	}
	assert(h->n < h->room);
	sift_up(h, h->n++, t);
}

struct timer *timer_expire(struct timer_heap *h, uint64_t now)
{
	struct timer *t;

	if (timer_next(h) > now || !h->n)
		return NULL;
	t = h->v[0];
	cancel(h, t);
	return t;
}
