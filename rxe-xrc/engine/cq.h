/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues.
 *
 * Lanes push, any thread of the program polls. Each lane has a ring of its own in each queue it pushes to
 * (cq_ring.h), so lanes do not meet, and nobody who pushes or polls waits for another that was stopped there. Only
 * a control call that takes a QP's completions away, or resizes the queue, keeps pollers from the rings it is at.
 * Completions of one lane, so those of one QP, come out in their order; between lanes there is none.
 *
 * A completion that finds the queue full is an overrun (IBTA 11.6.3.2): the queue is broken from then on,
 * IBV_EVENT_CQ_ERR is raised once, and whoever pushed takes its QP to the error state.
 */
#ifndef RXE_ENGINE_CQ_H
#define RXE_ENGINE_CQ_H

#include "engine/cq_ring.h"
#include "engine/engine.h"

/* Who pushes: a lane, by its index, or the thread that serves other processes (foreign.h). */
#define CQ_FOREIGN RXE_MAX_LANES
#define CQ_PUSHERS (RXE_MAX_LANES + 1)

enum cq_arm { CQ_IDLE, CQ_ARMED_SOLICITED, CQ_ARMED_ANY };

struct cq {
	struct engine *engine;
	void *user;				  /* the face's object */
	struct cq_ring *_Atomic ring[CQ_PUSHERS]; /* NULL: it never pushed */
	atomic_uint pushers;			  /* a bit for each that has a ring */
	atomic_uint refs;			  /* QPs and SRQs that use it */
	_Atomic uint32_t capacity; /* what ibv_create_cq() promised: entries that fit */
	_Atomic uint32_t quota; /* of capacity, that a pusher uses without looking at the others */
	_Atomic uint32_t tight; /* one exceeds it: all look */
	atomic_bool overrun;
	struct cq_ring *rings; /* all there ever were, under ctl */
	struct lock foreign;   /* CQ_FOREIGN pushes, or a control call keeps it away */
	/*
	 * The lanes that push to it: of its QPs, and for an XRC SRQ of the TGT QPs of its domain. Whoever
	 * polls it runs these.
	 */
	atomic_uint lanes;		    /* a bit each */
	uint32_t lane_users[RXE_MAX_LANES]; /* under ctl */
	_Atomic(enum cq_arm) armed CACHE_ALIGNED;
	atomic_uint turn; /* the pusher whose ring is looked at first */
};

/** cq_create() - at least @cqe entries. 0, -EINVAL (0 or above RXE_MAX_CQE), -ENOMEM. */
int cq_create(struct engine *e, uint32_t cqe, void *user, struct cq **out);
/** cq_destroy() - 0 or -EBUSY. */
int cq_destroy(struct cq *cq);
/**
 * cq_resize() - keeps what is in it. Control call: waits for the lanes that push to it, and keeps pollers waiting.
 * Return: 0; -EINVAL (as cq_create(), or more is in it than @cqe), -ENOMEM.
 */
int cq_resize(struct cq *cq, uint32_t cqe);

/** cq_reserve() - @pusher is going to push: makes its ring, if there is none. ctl held. 0 or -ENOMEM. */
int cq_reserve(struct cq *cq, unsigned int pusher);

/**
 * cq_count_lane() - @n more users (fewer, if negative) push to it from lane @lane, which is reserved; ctl held.
 */
void cq_count_lane(struct cq *cq, unsigned int lane, int n);

/** cq_lanes() - the lanes that push to it, a bit each. Any thread. */
static inline uint32_t cq_lanes(const struct cq *cq)
{
	return atomic_load_explicit(&cq->lanes, memory_order_relaxed);
}

/**
 * cq_push() - appends a completion. The caller is @pusher, holding that lane or being the serving thread.
 * @now: becomes the timestamp
 * @solicited: fires a queue that is armed for solicited completions (a receive with the solicited bit, or
 *             any completion with an error)
 *
 * Return: false when the queue is full or was: the caller's QP must go to the error state.
 */
bool cq_push(struct cq *cq, unsigned int pusher, const struct ibv_wc *wc, uint64_t now,
	     bool solicited);

/** cq_poll() - removes up to @n completions. Any thread. Return: how many. */
int cq_poll(struct cq *cq, int n, struct cqe *out);

/** cq_used() - completions in it; exact when nobody is at work. Any thread. */
uint64_t cq_used(struct cq *cq);

/** cq_arm() - one event for the next completion that is pushed; one that is already there does not fire. */
void cq_arm(struct cq *cq, bool solicited_only);

/** cq_clean() - removes completions of QP @qpn, when it is destroyed or reset. Its @lane is held. */
void cq_clean(struct cq *cq, unsigned int lane, uint32_t qpn);

#endif
