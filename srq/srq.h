/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The shared receive queue: a queue (rq.h) with a limit, and for XRC a number, a domain, and the protection
 * domain and completion queue that requests to it use.
 *
 * The objects it refers to are opaque here; the engine owns them.
 */
#ifndef RXE_SRQ_SRQ_H
#define RXE_SRQ_SRQ_H

#include "srq/rq.h"

#include <stdatomic.h>
#include <urcu/list.h>
#include <urcu/rculfhash.h>

struct pd;
struct cq;
struct xrcd;
struct engine;

struct srq {
	struct rq *rq;
	_Atomic uint64_t
		armed; /* the limit (low half; 0: not armed) and the number of its arming */
	uint32_t srqn; /* 24 bits; never equal to a QP number. 0 for a basic SRQ */
	enum ibv_srq_type type;
	struct engine *engine;
	struct pd *pd;
	struct cq *cq;		      /* XRC: where receive completions go */
	struct xrcd *xrcd;	      /* XRC: its domain */
	atomic_uint refs;	      /* QPs that use it; destroy is EBUSY while there are any */
	void *user;		      /* the face's object, for asynchronous events */
	struct cds_lfht_node node;    /* in the engine's table of SRQ numbers */
	struct cds_list_head in_xrcd; /* XRC: in its domain's list, under the engine's ctl */
};

enum srq_take { SRQ_EMPTY, SRQ_TAKEN, SRQ_TAKEN_LIMIT };

/** srq_init() - a queue of at least @max_wr x @max_sge, limit not armed. 0 or -errno as rq_create(). */
int srq_init(struct srq *srq, uint32_t max_wr, uint32_t max_sge);
void srq_fini(struct srq *srq);

/**
 * srq_take() - removes the oldest request.
 * Return: SRQ_TAKEN_LIMIT when this one brought the count below the armed limit: exactly one taker gets
 * that for one arming, and raises IBV_EVENT_SRQ_LIMIT_REACHED.
 */
enum srq_take srq_take(struct srq *srq, struct rqe *out);

/**
 * srq_arm() - sets the limit (ibv_modify_srq with IBV_SRQ_LIMIT); 0 disarms.
 * Return: 0, -EINVAL when above the queue's size, 1 when the count is below @limit already (fires at once).
 */
int srq_arm(struct srq *srq, uint32_t limit);

/** srq_limit() - the armed limit; 0 when there is none, or it has fired. */
uint32_t srq_limit(const struct srq *srq);

#endif
