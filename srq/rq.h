/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A bounded queue of receive work requests.
 *
 * Many threads may post, many may take: a QP's own receive queue has one taker (its lane), a shared
 * receive queue as many as there are lanes. A thread or process that is stopped inside any of these
 * functions never keeps the others from theirs; it costs them the room of one request at most. Each
 * WQE is copied once when posted and checked after the copy, so a program that changes its list
 * meanwhile can only spoil its own request, and once more when taken.
 *
 * Requests of one poster come out in their order. Nothing is allocated after creation, and the
 * queue holds no pointer, so processes may map it at different addresses. They then post with
 * rq_post_as() and take with rq_hold(), which leave the process' mark on what it has in its hands,
 * and rq_recover() gets that back after its death.
 *
 * All functions may run in any thread at any time, but for creation and destruction.
 */
#ifndef RXE_SRQ_RQ_H
#define RXE_SRQ_RQ_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RQ_MAX_SGE   32
#define RQ_MAX_EPOCH 0xffff /* epochs of processes are 1 to this; 0 is whoever created the queue */
#define RQ_ALIGN     128    /* of the memory given to rq_init_at(), bytes */

struct rqe {
	uint64_t wr_id;
	uint32_t length; /* sum of the SGEs' lengths, capped at UINT32_MAX */
	uint32_t num_sge;
	struct ibv_sge sge[RQ_MAX_SGE];
};

struct rq;

/**
 * rq_create() - room for exactly @max_wr requests of up to @max_sge SGEs; many takers.
 * Return: 0, or -EINVAL (more than RQ_MAX_SGE), or -ENOMEM.
 */
int rq_create(uint32_t max_wr, uint32_t max_sge, struct rq **out);

/**
 * rq_create_private() - as rq_create(), for takers that never run at the same time, which is cheaper.
 * When a thread is stopped while it posts and others go on, room for one request may be missing for
 * a while.
 */
int rq_create_private(uint32_t max_wr, uint32_t max_sge, struct rq **out);

/** rq_destroy() - frees what rq_create() or rq_create_private() made; NULL is allowed. */
void rq_destroy(struct rq *rq);

/** rq_size() - bytes of memory for such a queue; 0: more than there can be. */
size_t rq_size(uint32_t max_wr, uint32_t max_sge);

/**
 * rq_init_at() - a queue in @mem, rq_size() bytes aligned to RQ_ALIGN, which stays the caller's.
 */
struct rq *rq_init_at(void *mem, uint32_t max_wr, uint32_t max_sge);

/**
 * rq_attach() - the queue that another process made in @mem; NULL when there is none or it exceeds
 * @size.
 */
struct rq *rq_attach(void *mem, size_t size);

/**
 * rq_post() - appends one request (wr->next is not followed).
 * Return: 0, -EINVAL (num_sge above max_sge or negative), -ENOMEM (full).
 */
int rq_post(struct rq *rq, const struct ibv_recv_wr *wr);

/** rq_post_as() - the same by a process with an @epoch. */
int rq_post_as(struct rq *rq, uint32_t epoch, const struct ibv_recv_wr *wr);

/**
 * rq_post_list() - appends a whole chain, in order. Others' requests may come to lie between.
 * @bad_wr: the first request that was not posted, when something is returned
 */
int rq_post_list(struct rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/** rq_take() - removes the oldest request into @out. Return: false when the queue is empty. */
bool rq_take(struct rq *rq, struct rqe *out);

/**
 * rq_hold() - takes the oldest request, but keeps its slot until rq_release().
 * @epoch: of the process that has it then
 * @ticket: for rq_release()
 * A request that is held is not posted any more: it does not count for max_wr, but while the
 * posters come round to its slot the queue is one slot smaller.
 */
bool rq_hold(struct rq *rq, uint32_t epoch, struct rqe *out, uint64_t *ticket);

/**
 * rq_release() - the held request has completed. Return: false: it was recovered, and completes
 * elsewhere.
 */
bool rq_release(struct rq *rq, uint32_t epoch, uint64_t ticket);

/**
 * rq_recover() - gets back what the process with epoch @dead had in its hands: what it held is
 * posted again, at the end of the queue; what it was just posting is not posted. The process must
 * not run any more.
 * @me: epoch of the caller, the queue's owner. Should it die here, a request may be lost.
 * Return: requests posted again; -EAGAIN: the ring had no free slot for some, call again when
 * others have taken or released.
 */
int rq_recover(struct rq *rq, uint32_t dead, uint32_t me);

/**
 * rq_count() - requests posted, or being posted, and not yet taken. Exact when nobody is at work. Else
 * no less than there were at some moment of the call, and perhaps more, by what came and went
 * between its looks at the queue's two ends; never more than there are slots.
 */
uint32_t rq_count(const struct rq *rq);
uint32_t rq_max_wr(const struct rq *rq);
uint32_t rq_max_sge(const struct rq *rq);

#endif
