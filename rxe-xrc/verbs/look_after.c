/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lanes whose queues nobody polls just now, and a thread that polls another queue.
 *
 * A program with one thread and several lanes polls one queue at a time. What it waits for may depend on a
 * lane that this queue does not belong to: it owns both ends of a connection, or an acknowledge is owed to a client
 * there. The helper would see to it, as soon as it gets a processor: beside busy programs an exchange of 8 us
 * took 1 to 3 ms (2026-11-30). So who polls and finds nothing also looks at the lanes that are left alone.
 *
 *	poll of a queue of lane 0, nothing there
 *	   lane 0   run, always
 *	   lane 1   another thread polls its queues           left alone; asked again in a millisecond
 *	   lane 2   this thread has polled it since its       left alone: it will do so again
 *	            last poll of lane 0
 *	   lane 3   else: when its deadline has come, or it   run, if its socket has something
 *	            has not been looked at for 1/8 of the
 *	            time that it has been quiet, 64 us at most
 *	   lane 4   has no QPs                                left alone
 *
 * Quiet is a lane since it last received or sent something, or since the thread began to poll. So one that is in
 * use is looked at with almost every poll, and one that is not costs a system call in 64 us. With several to look
 * at it is one poll() for all. Acknowledges go out at once, as when the helper runs a lane: nobody is about to post
 * in it.
 *
 * For the modes (progress.c) a look is an empty poll: a lane that is looked at all the time is left to the program, and
 * one that is looked at now and then remains the helper's as well, as does one for whose events somebody waits.
 * Whoever comes first runs it. A thread that arms a queue gives back what it looked after; one that just stops
 * polling is found out by the helper, as always.
 *
 * Threads that poll lanes of their own share nothing here: lane 1's line is read once in a millisecond, and the bits
 * in engine->lanes_used change with the first and the last QP of a lane.
 */
#include "verbs/progress.h"

#include <errno.h>
#include <poll.h>

/* A lane that has been quiet for a time is looked at again after 1 / 2^3 of it. */
#define QUIET_SHIFT 3
/* But after so much at the latest, ns. */
#define LOOK_MAX 64000
/* And while it is in use, and PROGRESS_LATE behind it, so that its looks are one stretch. */
#define LOOK_MAX_IN_USE (PROGRESS_GAP / 2)
/* It is in use until so long after it received or sent something, ns. */
#define IN_USE PROGRESS_LOOK
/* How long it is believed that another thread polls a lane, ns. */
#define FOREIGN_TIME (PROGRESS_LOOK / 2)

static uint64_t get(const _Atomic uint64_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

static void put(_Atomic uint64_t *v, uint64_t value)
{
	atomic_store_explicit(v, value, memory_order_relaxed);
}

/* As long as the helper would take it for polled. */
static bool polled_by_other(const struct progress_lane *pl, uint64_t now)
{
	return (int64_t)(now - get(&pl->polled)) < PROGRESS_LOOK &&
	       atomic_load_explicit(&pl->polled_by, memory_order_relaxed) != this_thread();
}

uint32_t progress_unattended(struct progress *p, struct progress_lane *own, uint32_t others,
			     uint64_t now)
{
	uint32_t foreign = 0;

	/* Threads that poll the same lane see different things, and each forgets what the other saw. */
	if (atomic_load_explicit(&own->foreign_to, memory_order_relaxed) == this_thread() &&
	    (int64_t)(now - get(&own->foreign_until)) < 0) {
		foreign = atomic_load_explicit(&own->foreign, memory_order_relaxed);
	} else {
		atomic_store_explicit(&own->foreign_to, this_thread(), memory_order_relaxed);
		put(&own->foreign_until, now + FOREIGN_TIME);
	}
	others &= ~foreign;
	for (uint32_t left = others; left; left &= left - 1)
		if (polled_by_other(&p->lanes[__builtin_ctz(left)], now))
			foreign |= left & -left;
	atomic_store_explicit(&own->foreign, foreign, memory_order_relaxed);
	return others & ~foreign;
}

/* How long after a look at @pl the next one is due. @began: when the thread began to poll */
static uint64_t patience(const struct progress_lane *pl, uint64_t began, uint64_t now)
{
	uint64_t fruit = get(&pl->fruit), quiet_from = max_t(uint64_t, began, fruit);

	if (now <= quiet_from)
		return 0;
	return min_t(uint64_t, (now - quiet_from) >> QUIET_SHIFT,
		     now - fruit < IN_USE ? LOOK_MAX_IN_USE : LOOK_MAX);
}

/*
 * Which of @lanes are to be looked at now.
 * @urgent: those of them that have something to do, whatever their sockets say
 * @next: becomes the time of the next look, if it is earlier
 */
static uint32_t choose(struct progress *p, const struct progress_lane *own, uint32_t lanes,
		       uint64_t before, uint64_t now, uint32_t *urgent, uint64_t *next)
{
	uint64_t began = get(&own->stretch), wait, deadline;
	uint32_t due = 0;

	*urgent = 0;
	for (; lanes; lanes &= lanes - 1) {
		const struct progress_lane *pl = &p->lanes[__builtin_ctz(lanes)];
		uint32_t bit = lanes & -lanes;

		if (get(&pl->polled) > before) {
			*next = now;
			continue;
		}
		wait = patience(pl, began, now);
		deadline = get(&pl->lane->deadline);
		if (deadline <= now || pl->lane->link->fd < 0)
			*urgent |= bit;
		if (deadline <= now || (int64_t)(now - get(&pl->last)) >= (int64_t)wait)
			due |= bit;
		else
			wait = get(&pl->last) + wait - now;
		*next = min_t(uint64_t, *next, now + wait);
		*next = min_t(uint64_t, *next, deadline);
	}
	*urgent &= due;
	return due;
}

/* Which of @lanes have packets waiting. */
static uint32_t readable(struct progress *p, uint32_t lanes)
{
	unsigned int index[RXE_MAX_LANES], n = 0;
	struct pollfd fds[RXE_MAX_LANES];
	uint32_t ready = 0;
	int cancel, ret;

	for (; lanes; lanes &= lanes - 1) {
		index[n] = __builtin_ctz(lanes);
		fds[n] = (struct pollfd){p->lanes[index[n]].lane->link->fd, POLLIN, 0};
		n++;
	}
	if (!n)
		return 0;
	/* Hardware's poll is no cancellation point. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	ret = poll(fds, n, 0);
	pthread_setcancelstate(cancel, NULL);
	for (unsigned int i = 0; ret > 0 && i < n; i++)
		if (fds[i].revents)
			ready |= 1u << index[i];
	return ready;
}

int progress_look_after(struct progress *p, struct progress_lane *own, uint32_t others,
			uint64_t before, uint64_t now)
{
	uint32_t lanes = progress_unattended(p, own, others, now), due, ready;
	uint64_t next = lanes ? now + LOOK_MAX : get(&own->foreign_until);
	bool held = false, did = false;

	due = choose(p, own, lanes, before, now, &ready, &next);
	/* To read one socket costs no more than to ask about it. */
	if (due & (due - 1))
		ready |= readable(p, due & ~ready);
	else
		ready = due;
	for (; due; due &= due - 1) {
		struct progress_lane *pl = &p->lanes[__builtin_ctz(due)];
		int ret;

		if (!(ready & due & -due)) {
			progress_count(pl, now, LANE_HELPER);
			progress_counted(pl, now);
			continue;
		}
		ret = progress_try(pl, &now, LANE_HELPER);
		held |= ret < 0;
		did |= ret > 0;
	}
	put(&own->others_at, did ? now : next);
	return did ? 1 : held ? -EBUSY : 0;
}
