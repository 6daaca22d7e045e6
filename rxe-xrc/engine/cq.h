/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues.
 *
 * Lanes push, any thread of the program polls. Both sides hold the queue's lock for one entry or one batch:
 * uncontended that is two uncontended atomic operations. An entry that finds the queue full is an overrun
 * (IBTA 11.6.3.2): the queue is broken from then on, IBV_EVENT_CQ_ERR is raised once, and whoever pushed
 * takes its QP to the error state.
 */
#ifndef RXE_ENGINE_CQ_H
#define RXE_ENGINE_CQ_H

#include "engine/engine.h"

struct cqe {
	struct ibv_wc wc;
	uint64_t timestamp; /* ns, as the lane's now */
};

enum cq_arm { CQ_IDLE, CQ_ARMED_SOLICITED, CQ_ARMED_ANY };

struct cq {
	struct engine *engine;
	void *user;	  /* the face's object */
	struct lock lock; /* all below */
	struct cqe *ring;
	uint32_t size;	   /* power of two, above the cqe that was asked for */
	uint32_t capacity; /* what ibv_create_cq() promised: entries that fit */
	/* Free running: push at tail, poll at head; read without the lock as a hint. */
	_Atomic uint32_t head, tail;
	enum cq_arm armed;
	bool overrun;
	atomic_uint refs; /* QPs and SRQs that use it */
	/*
	 * The lanes that push to it: of its QPs, and for an XRC SRQ of the TGT QPs of its domain. Whoever
	 * polls it runs these.
	 */
	atomic_uint lanes;		    /* a bit each */
	uint32_t lane_users[RXE_MAX_LANES]; /* under ctl */
};

/** cq_create() - at least @cqe entries. 0, -EINVAL (0 or above RXE_MAX_CQE), -ENOMEM. */
int cq_create(struct engine *e, uint32_t cqe, void *user, struct cq **out);
/** cq_destroy() - 0 or -EBUSY. */
int cq_destroy(struct cq *cq);
/** cq_resize() - keeps what is in it. -EINVAL when more is in it than @cqe. */
int cq_resize(struct cq *cq, uint32_t cqe);

/** cq_count_lane() - @n more users (fewer, if negative) push to it from lane @lane; ctl held. */
void cq_count_lane(struct cq *cq, unsigned int lane, int n);

/** cq_lanes() - the lanes that push to it, a bit each. Any thread. */
static inline uint32_t cq_lanes(const struct cq *cq)
{
	return atomic_load_explicit(&cq->lanes, memory_order_relaxed);
}

/**
 * cq_push() - appends a completion; lane held, or by the thread that serves other processes (foreign.h).
 * @solicited: fires a queue that is armed for solicited completions (a receive with the solicited bit, or
 *             any completion with an error)
 *
 * Return: false when the queue is full or was: the caller's QP must go to the error state.
 */
bool cq_push(struct cq *cq, const struct ibv_wc *wc, uint64_t now, bool solicited);

/** cq_poll() - removes up to @n completions. Any thread. Return: how many. */
int cq_poll(struct cq *cq, int n, struct cqe *out);

/** cq_is_empty() - a hint without the lock. */
bool cq_is_empty(const struct cq *cq);

/** cq_arm() - one event for the next completion that is pushed; one that is already there does not fire. */
void cq_arm(struct cq *cq, bool solicited_only);

/** cq_clean() - removes completions of QP @qpn, when it is destroyed or reset. */
void cq_clean(struct cq *cq, uint32_t qpn);

#endif
