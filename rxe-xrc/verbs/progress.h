/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who runs a device's lanes: the program that polls, or the helper thread. Theory in progress.c.
 */
#ifndef RXE_VERBS_PROGRESS_H
#define RXE_VERBS_PROGRESS_H

#include "engine/lane.h"
#include "verbs/clock.h"
#include "verbs/portmon.h"

/* Empty polls that follow each other within this are one stretch of polling, ns. */
#define PROGRESS_GAP 10000
/* A stretch this long hands the socket to the program, ns; doubles when that proved wrong. */
#define PROGRESS_REQUIRED_MIN 200000
#define PROGRESS_REQUIRED_MAX 100000000
/* How often the helper looks whether the program still polls, ns. */
#define PROGRESS_LOOK 2000000

enum progress_mode {
	PROGRESS_SLEEP, /* the helper waits for packets and deadlines */
	PROGRESS_APP,	/* the program does, by polling */
};

/* One lane: threads that poll queues of different lanes share no line of the cache. */
struct progress_lane {
	struct lane *lane;
	_Atomic(enum progress_mode) mode CACHE_ALIGNED;
	/*
	 * Written by every thread of the program that polls, without read-modify-write: a lost update
	 * only delays a change of the mode.
	 */
	_Atomic uint64_t polls;	   /* empty polls */
	_Atomic uint64_t last;	   /* end of the latest one */
	_Atomic uint64_t stretch;  /* begin of the stretch that it belongs to */
	_Atomic uint64_t required; /* length of a stretch that makes the mode APP, ns */

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
 * progress_blocking() - the program is about to wait for an event: the helper takes over now.
 * @lanes: those that push to the queue that it waits for (cq_lanes())
 */
void progress_blocking(struct progress *p, uint32_t lanes);

void progress_take_over(struct progress_lane *pl);

/* One lane of progress_run(). Return: what lane_try() says; then *@now has moved on. */
static inline int progress_try(struct progress_lane *pl, uint64_t *now)
{
	uint64_t last = atomic_load_explicit(&pl->last, memory_order_relaxed);
	int ret;

	if ((int64_t)(*now - last) > PROGRESS_GAP)
		atomic_store_explicit(&pl->stretch, *now, memory_order_relaxed);
	else if (unlikely(atomic_load_explicit(&pl->mode, memory_order_relaxed) ==
			  PROGRESS_SLEEP) &&
		 *now - atomic_load_explicit(&pl->stretch, memory_order_relaxed) >=
			 atomic_load_explicit(&pl->required, memory_order_relaxed))
		progress_take_over(pl);
	atomic_store_explicit(&pl->polls,
			      atomic_load_explicit(&pl->polls, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	ret = lane_try(pl->lane, *now, LANE_POLL);
	/* Work is no gap: a burst may take longer than PROGRESS_GAP. */
	if (ret > 0)
		*now = now_ns();
	atomic_store_explicit(&pl->last, *now, memory_order_relaxed);
	return ret;
}

/**
 * progress_run() - the program polled a queue and found nothing: a pass over the lanes that matter. The hot path.
 * @lanes: those that push to the queue (cq_lanes()); none: all
 *
 * The other lanes are the business of whoever polls their queues, or else the helper's.
 */
static inline void progress_run(struct progress *p, uint32_t lanes)
{
	bool held = false, did = false;
	uint64_t now;

	if (!atomic_load_explicit(&p->attached, memory_order_acquire))
		return;
	now = now_ns();
	for (lanes = likely(lanes) ? lanes : p->all; lanes; lanes &= lanes - 1) {
		int ret = progress_try(&p->lanes[__builtin_ctz(lanes)], &now);

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
