/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The send queue: a ring of work requests of one size, with room for the SGEs or for inline data.
 *
 *        head             sent                tail
 *         |                |                   |
 *    -----+----------------+-------------------+-----
 *         |  unacknowledged|  not sent yet     |
 *         comp.c           req.c               the program
 *
 * The program's threads fill slots under the producers' lock and publish the tail; the lane publishes the
 * head when a request has been completed.
 */
#ifndef RXE_ENGINE_WQ_H
#define RXE_ENGINE_WQ_H

#include "base/lock.h"
#include "base/macros.h"
#include "net/link.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>

enum swqe_state {
	SWQE_POSTED, /* no packet has been sent */
	SWQE_SENT,   /* has PSNs; some or all packets have been sent */
	SWQE_DONE,   /* local operation executed, or the READ or atomic response is complete */
};

struct swqe {
	uint64_t wr_id;
	uint64_t remote_addr;
	uint32_t length;    /* bytes of the message */
	uint32_t rkey;	    /* peer's key */
	uint32_t first_psn; /* valid from SWQE_SENT on */
	uint32_t npsn;	    /* PSNs it takes: packets of the message, or READ responses */
	uint32_t srqn;	    /* XRC */
	uint32_t
		imm_be; /* immediate data in network order, or the key to invalidate in host order */
	uint16_t flags; /* IBV_SEND_* */
	uint8_t opcode; /* enum ibv_wr_opcode */
	uint8_t state;	/* enum swqe_state */
	uint8_t num_sge;
	uint8_t status; /* enum ibv_wc_status of a local operation */
	union {
		struct {
			uint64_t compare_add, swap;
		} atomic;
		struct {
			struct link_dest to;
			uint32_t qpn, qkey;
		} ud;
		struct {
			uint64_t addr, length;
			uint32_t mw_key; /* the window's key when posted: its index counts */
			uint32_t lkey;	 /* the region */
			int access;
		} bind; /* rkey: the window's new key */
	};
	struct ibv_sge sge[]; /* or, with IBV_SEND_INLINE, the data */
};

static inline bool swqe_is_atomic(const struct swqe *wqe)
{
	return wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

struct wq {
	uint8_t *slots;
	uint32_t stride;   /* bytes of a slot */
	uint32_t mask;	   /* slots - 1 */
	uint32_t capacity; /* requests that fit: what the program was promised */
	uint32_t max_sge, max_inline;
	struct lock lock; /* producers */
	uint32_t pending; /* under lock: tail of requests built and not yet published */

	_Atomic uint32_t tail CACHE_ALIGNED;
	_Atomic uint32_t head CACHE_ALIGNED;
};

/** wq_init() - 0 or -ENOMEM. */
int wq_init(struct wq *wq, uint32_t max_wr, uint32_t max_sge, uint32_t max_inline);
void wq_fini(struct wq *wq);

static inline struct swqe *wq_slot(const struct wq *wq, uint32_t index)
{
	return (struct swqe *)(wq->slots + (size_t)(index & wq->mask) * wq->stride);
}

/** wq_alloc() - the next free slot, lock held; NULL when the queue is full. Not visible until wq_publish(). */
static inline struct swqe *wq_alloc(struct wq *wq)
{
	if (wq->pending - atomic_load_explicit(&wq->head, memory_order_acquire) >= wq->capacity)
		return NULL;
	return wq_slot(wq, wq->pending++);
}

static inline void wq_publish(struct wq *wq)
{
	atomic_store_explicit(&wq->tail, wq->pending, memory_order_release);
}

static inline void wq_rollback(struct wq *wq)
{
	wq->pending = atomic_load_explicit(&wq->tail, memory_order_relaxed);
}

#endif
