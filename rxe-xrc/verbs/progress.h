/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who runs a device's lanes: the program that polls, or the helper thread. Theory in progress.c, and of the lanes
 * that a polling thread looks after beside its own in look_after.c.
 */
#ifndef RXE_VERBS_PROGRESS_H
#define RXE_VERBS_PROGRESS_H

#include "engine/lane.h"
#include "verbs/clock.h"
#include "verbs/portmon.h"

#include <pthread.h>

/* Empty polls that follow each other within this are one stretch of polling, ns. */
#define PROGRESS_GAP 10000
/* The same for looks by who polls another lane, which are rarer (look_after.c). */
#define PROGRESS_GAP_LOOK 30000
/* A stretch this long hands the socket to the program, ns; doubles when that proved wrong. */
#define PROGRESS_REQUIRED_MIN 200000
#define PROGRESS_REQUIRED_MAX 100000000
/* How often the helper looks whether the program still polls, ns. */
#define PROGRESS_LOOK 2000000
/* A thread that is busy with its own lanes looks after others when it is late with that by so much, ns. */
#define PROGRESS_LATE 20000

/* progress_lane.polled: somebody waits for an event of the lane, and has not polled since. */
#define PROGRESS_WAITED 1u

enum progress_mode {
	PROGRESS_SLEEP, /* the helper waits for packets and deadlines */
	PROGRESS_APP,	/* the program does, by polling */
};

/* One lane: threads that poll queues of different lanes share no line of the cache. */
struct progress_lane {
	struct lane *lane;
	_Atomic(enum progress_mode) mode CACHE_ALIGNED;
	_Atomic uint32_t required; /* length of a stretch that makes the mode APP, ns */
	/*
	 * Written by every thread of the program that polls, without read-modify-write: a lost update
	 * only delays a change of the mode, or a look.
	 */
	_Atomic uint64_t polls;	   /* empty polls, and looks by who polls another lane */
	_Atomic uint64_t last;	   /* end of the latest one */
	_Atomic uint64_t stretch;  /* begin of the stretch that it belongs to */
	_Atomic uintptr_t last_by; /* the thread that did it: this_thread() */
	/* End of the latest poll of a queue that this lane pushes to; 0: none; PROGRESS_WAITED */
	_Atomic uint64_t polled;
	_Atomic uintptr_t polled_by;
	_Atomic uint64_t fruit; /* when one of them received or sent something last */

	/* Of who polls this lane: the others (look_after.c) */
	_Atomic uint64_t others_at CACHE_ALIGNED; /* when they are due */
	_Atomic uint32_t foreign;		  /* which of them other threads poll, a bit each */
	_Atomic uintptr_t foreign_to;		  /* as this thread sees it */
	_Atomic uint64_t foreign_until;		  /* and until then */

	/* The helper's, under its lock */
	uint64_t seen CACHE_ALIGNED; /* polls at the last look */
	uint64_t look_at;	     /* when the next look is due */
	uint64_t app_from;	     /* since when the mode is APP; 0: not yet noticed */
	bool watched;		     /* the link's descriptor is in the epoll set */
	bool fired;		     /* it was readable */
	unsigned int fruitless;
};

struct progress {
	struct engine *engine;
	unsigned int ifindex;
	/* What the port watcher saw of ifindex. Called by the helper thread. */
	void (*port_changed)(struct progress *p, enum portmon_what what);

	atomic_bool attached;
	uint32_t all;		   /* a bit for each lane */
	struct cds_list_head node; /* in the helper's list, under its lock */
	struct progress_lane lanes[RXE_MAX_LANES];
};

/**
 * progress_attach() - the helper serves @p's engine from now on; starts the thread with the first one.
 * @p: engine, ifindex and port_changed are set; the engine's lanes have their links
 *
 * Control call, one at a time. Return: 0 or -errno.
 */
int progress_attach(struct progress *p);

/** progress_detach() - the reverse; afterwards the helper never touches @p. Joins it with the last one. */
void progress_detach(struct progress *p);

/** progress_wake() - the helper looks at once. Any thread, lane held or not. */
void progress_wake(void);

/**
 * progress_blocking() - the program is about to wait for an event: the helper takes over now, and what this thread
 * looked after, too.
 * @lanes: those that push to the queue that it waits for (cq_lanes())
 */
void progress_blocking(struct progress *p, uint32_t lanes);

void progress_take_over(struct progress_lane *pl);

/**
 * progress_unattended() - which of @others no other thread polls.
 * @own: the lane that remembers the answer for a millisecond, so that others' lines of the cache are left alone
 */
uint32_t progress_unattended(struct progress *p, struct progress_lane *own, uint32_t others,
			     uint64_t now);

/** progress_look_after() - see progress_others(). */
int progress_look_after(struct progress *p, struct progress_lane *own, uint32_t others,
			uint64_t before, uint64_t now);

static inline uintptr_t this_thread(void)
{
	return (uintptr_t)pthread_self();
}

/*
 * What the mode is decided by: a poll or a look begins. Who looks may stop at any time, and then whoever waits for an
 * event would wait for the helper's next look, too: that lane remains the helper's.
 */
static inline void progress_count(struct progress_lane *pl, uint64_t now, enum lane_why why)
{
	uint64_t last = atomic_load_explicit(&pl->last, memory_order_relaxed);

	if ((int64_t)(now - last) > (why == LANE_POLL ? PROGRESS_GAP : PROGRESS_GAP_LOOK))
		atomic_store_explicit(&pl->stretch, now, memory_order_relaxed);
	else if (unlikely(atomic_load_explicit(&pl->mode, memory_order_relaxed) ==
			  PROGRESS_SLEEP) &&
		 now - atomic_load_explicit(&pl->stretch, memory_order_relaxed) >=
			 atomic_load_explicit(&pl->required, memory_order_relaxed) &&
		 (why == LANE_POLL ||
		  atomic_load_explicit(&pl->polled, memory_order_relaxed) != PROGRESS_WAITED))
		progress_take_over(pl);
	atomic_store_explicit(&pl->polls,
			      atomic_load_explicit(&pl->polls, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

/* It has ended. */
static inline void progress_counted(struct progress_lane *pl, uint64_t now)
{
	atomic_store_explicit(&pl->last, now, memory_order_relaxed);
	atomic_store_explicit(&pl->last_by, this_thread(), memory_order_relaxed);
}

/* One lane of progress_run() or of a look. Return: what lane_try() says; then *@now has moved on. */
static inline int progress_try(struct progress_lane *pl, uint64_t *now, enum lane_why why)
{
	int ret;

	progress_count(pl, *now, why);
	ret = lane_try(pl->lane, *now, why);
	/* Work is no gap: a burst may take longer than PROGRESS_GAP. */
	if (ret > 0) {
		*now = now_ns();
		atomic_store_explicit(&pl->fruit, *now, memory_order_relaxed);
	}
	progress_counted(pl, *now);
	return ret;
}

/**
 * progress_others() - a look after the lanes that nobody else polls, if it is due.
 * @own: a lane of the poll
 * @others: lanes that have QPs, but for those of the poll
 * @before: when @own was polled or looked at before this poll
 * @did: the poll's own lanes had something to do: then a look may be late
 *
 * Return: 1 when something was received or sent, -EBUSY when a lane was held by another, else 0.
 */
static inline int progress_others(struct progress *p, struct progress_lane *own, uint32_t others,
				  uint64_t before, uint64_t now, bool did)
{
	uint64_t due = atomic_load_explicit(&own->others_at, memory_order_relaxed);

	if ((int64_t)(now - due) < (did ? PROGRESS_LATE : 0))
		return 0;
	return progress_look_after(p, own, others, before, now);
}

/**
 * progress_run() - the program polled a queue and found nothing: a pass over the lanes that matter. The hot path.
 * @lanes: those that push to the queue (cq_lanes()); none: all
 *
 * The other lanes are the business of whoever polls their queues. Those whose queues nobody polls are looked after
 * by whoever polls anything, and by the helper.
 */
static inline void progress_run(struct progress *p, uint32_t lanes)
{
	bool held = false, did = false;
	struct progress_lane *own;
	uint64_t now, before;
	uint32_t others;
	int ret;

	if (!atomic_load_explicit(&p->attached, memory_order_acquire))
		return;
	if (unlikely(!lanes))
		lanes = p->all;
	others = atomic_load_explicit(&p->engine->lanes_used, memory_order_relaxed) & ~lanes;
	own = &p->lanes[__builtin_ctz(lanes)];
	before = atomic_load_explicit(&own->last, memory_order_relaxed);
	now = now_ns();
	for (; lanes; lanes &= lanes - 1) {
		struct progress_lane *pl = &p->lanes[__builtin_ctz(lanes)];

		ret = progress_try(pl, &now, LANE_POLL);
		atomic_store_explicit(&pl->polled, now, memory_order_relaxed);
		atomic_store_explicit(&pl->polled_by, this_thread(), memory_order_relaxed);
		held |= ret < 0;
		did |= ret > 0;
	}
	if (others) {
		ret = progress_others(p, own, others, before, now, did);
		held |= ret < 0;
		did |= ret > 0;
	}
	if (unlikely(held) && !did)
		lane_give_way();
}

/* Around a fork: the helper is at rest while its lock is held; the child has none. */
void progress_fork_prepare(void);
void progress_fork_parent(void);
void progress_fork_child(void);

#endif
