/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A spin lock that gives way.
 *
 * Held for a few dozen instructions only, on paths that are rarely contended (a queue's producers, a
 * channel's events). A holder may be preempted all the same, so a waiter yields after a short spin:
 * without that it would burn whole scheduler ticks beside the holder on one core. And it sleeps for a moment
 * when yielding does not help, since the holder may be of a lower priority (lock.c).
 */
#ifndef RXE_BASE_LOCK_H
#define RXE_BASE_LOCK_H

#include "base/macros.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

struct lock {
	atomic_bool held;
};

/**
 * give_way() - lets others run: for a thread that waits in a loop for what another thread holds.
 * @tries: how often it has looked in vain, from 1
 *
 * A yield, each 64th time a pause of 20 us. No cancellation point; errno stays.
 */
void give_way(unsigned int tries);

/**
 * give_way_once() - the same for a thread that does not wait itself, but will soon be back if its program does.
 *
 * How often this thread came is all that is known, and not how often in a row: a thread that merely meets another
 * now and then is not to sleep. So only one of a real-time class pauses.
 */
void give_way_once(void);

static inline void lock_init(struct lock *l)
{
	atomic_init(&l->held, false);
}

static inline bool lock_try(struct lock *l)
{
	return !atomic_load_explicit(&l->held, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&l->held, true, memory_order_acquire);
}

/** lock_wait() - takes a lock that was held a moment ago: the rest of lock_take(). */
void lock_wait(struct lock *l);

static inline void lock_take(struct lock *l)
{
	if (unlikely(!lock_try(l)))
		lock_wait(l);
}

static inline void lock_give(struct lock *l)
{
	atomic_store_explicit(&l->held, false, memory_order_release);
}

#endif
