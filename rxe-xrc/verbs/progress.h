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

struct progress {
	struct engine *engine;
	struct link *link;
	unsigned int ifindex;
	/* What the port watcher saw of ifindex. Called by the helper thread. */
	void (*port_changed)(struct progress *p, enum portmon_what what);

	atomic_bool attached;
	_Atomic(enum progress_mode) mode;
	/*
	 * Written by every thread of the program that polls, without read-modify-write: a lost update
	 * only delays a change of the mode.
	 */
	_Atomic uint64_t polls;	   /* empty polls */
	_Atomic uint64_t last;	   /* end of the latest one */
	_Atomic uint64_t stretch;  /* begin of the stretch that it belongs to */
	_Atomic uint64_t required; /* length of a stretch that makes the mode APP, ns */

	/* The helper's, under its lock */
	struct cds_list_head node;
	uint64_t seen;	   /* polls at the last look */
	uint64_t look_at;  /* when the next look is due */
	uint64_t app_from; /* since when the mode is APP; 0: not yet noticed */
	bool watched;	   /* link->fd is in the epoll set */
	bool fired;	   /* link->fd was readable */
	unsigned int fruitless;
};

/**
 * progress_attach() - the helper serves @p's engine from now on; starts the thread with the first one.
 * @p: engine, link, ifindex and port_changed are set
 *
 * Control call, one at a time. Return: 0 or -errno.
 */
int progress_attach(struct progress *p);

/** progress_detach() - the reverse; afterwards the helper never touches @p. Joins it with the last one. */
void progress_detach(struct progress *p);

/** progress_wake() - the helper looks at once. Any thread, lane held or not. */
void progress_wake(void);

/** progress_blocking() - the program is about to wait for an event: the helper takes over now. */
void progress_blocking(struct progress *p);

void progress_take_over(struct progress *p);

/** progress_run() - the program polled and found nothing: a pass over the lanes. The hot path. */
static inline void progress_run(struct progress *p)
{
	struct engine *e = p->engine;
	uint64_t now, last;
	bool busy = false;

	if (!atomic_load_explicit(&p->attached, memory_order_acquire))
		return;
	now = now_ns();
	last = atomic_load_explicit(&p->last, memory_order_relaxed);
	if ((int64_t)(now - last) > PROGRESS_GAP)
		atomic_store_explicit(&p->stretch, now, memory_order_relaxed);
	else if (unlikely(atomic_load_explicit(&p->mode, memory_order_relaxed) == PROGRESS_SLEEP) &&
		 now - atomic_load_explicit(&p->stretch, memory_order_relaxed) >=
			 atomic_load_explicit(&p->required, memory_order_relaxed))
		progress_take_over(p);
	atomic_store_explicit(&p->polls, atomic_load_explicit(&p->polls, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	for (unsigned int i = 0; i < e->nlanes; i++)
		busy |= lane_run(e->lanes[i], now, LANE_POLL);
	/* Work is no gap: a burst may take longer than PROGRESS_GAP. */
	atomic_store_explicit(&p->last, busy ? now_ns() : now, memory_order_relaxed);
}

/* Around a fork: the helper is at rest while its lock is held; the child has none. */
void progress_fork_prepare(void);
void progress_fork_parent(void);
void progress_fork_child(void);

#endif
