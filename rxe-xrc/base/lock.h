/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A spin lock that gives way.
 *
 * Held for a few dozen instructions only, on paths that are rarely contended (a queue's producers, a
 * completion queue). A holder may be preempted all the same, so a waiter yields after a short spin:
 * without that it would burn whole scheduler ticks beside the holder on one core.
 */
#ifndef RXE_BASE_LOCK_H
#define RXE_BASE_LOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

struct lock {
	atomic_bool held;
};

static inline void lock_init(struct lock *l)
{
	atomic_init(&l->held, false);
}

static inline bool lock_try(struct lock *l)
{
	return !atomic_load_explicit(&l->held, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&l->held, true, memory_order_acquire);
}

static inline void lock_take(struct lock *l)
{
	for (unsigned int spins = 0; !lock_try(l); spins++)
		if (spins >= 64)
			sched_yield();
}

static inline void lock_give(struct lock *l)
{
	atomic_store_explicit(&l->held, false, memory_order_release);
}

#endif
