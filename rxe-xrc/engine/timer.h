/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Deadlines: a binary heap of intrusive timers, one heap for each lane.
 *
 * Time is nanoseconds on the caller's monotonic clock. Setting, moving and cancelling cost O(log n)
 * without allocation on the data path: the heap's array grows when a QP is created (timer_heap_reserve).
 */
#ifndef RXE_ENGINE_TIMER_H
#define RXE_ENGINE_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#define TIMER_NEVER UINT64_MAX

struct timer {
	uint64_t when;	/* TIMER_NEVER: not in the heap */
	uint32_t index; /* in the heap */
};

struct timer_heap {
	struct timer **v;
	uint32_t n, room;
};

static inline void timer_init(struct timer *t)
{
	t->when = TIMER_NEVER;
	t->index = 0;
}

void timer_heap_init(struct timer_heap *h);
void timer_heap_fini(struct timer_heap *h);
/** timer_heap_reserve() - room for @n timers at once. 0 or -ENOMEM. */
int timer_heap_reserve(struct timer_heap *h, uint32_t n);

/** timer_set() - sets or moves; TIMER_NEVER cancels. */
void timer_set(struct timer_heap *h, struct timer *t, uint64_t when);

/** timer_next() - the earliest deadline, TIMER_NEVER when there is none. */
static inline uint64_t timer_next(const struct timer_heap *h)
{
	return h->n ? h->v[0]->when : TIMER_NEVER;
}

/** timer_expire() - takes out one timer that is due at @now, or NULL. */
struct timer *timer_expire(struct timer_heap *h, uint64_t now);

#endif
