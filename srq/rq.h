/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A bounded queue of receive work requests.
 *
 * Many threads may post, many may take: a QP's own receive queue has one taker (its lane), a shared
 * receive queue as many as there are lanes. Each WQE is copied once when posted and checked after the
 * copy, so a program that changes its list meanwhile can only spoil its own request, and once more when
 * taken, so a taker needs no lock while it works with it.
 */
#ifndef RXE_SRQ_RQ_H
#define RXE_SRQ_RQ_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define RQ_MAX_SGE 32

struct rqe {
	uint64_t wr_id;
	uint32_t length; /* sum of the SGEs' lengths, capped at UINT32_MAX */
	uint32_t num_sge;
	struct ibv_sge sge[RQ_MAX_SGE];
};

struct rq;

/**
 * rq_create() - room for at least @max_wr requests of up to @max_sge SGEs.
 * Return: 0, or -EINVAL (more than RQ_MAX_SGE), or -ENOMEM.
 */
int rq_create(uint32_t max_wr, uint32_t max_sge, struct rq **out);
void rq_destroy(struct rq *rq);

/**
 * rq_post() - appends one request (wr->next is not followed). Any thread.
 * Return: 0, -EINVAL (num_sge above max_sge or negative), -ENOMEM (full).
 */
int rq_post(struct rq *rq, const struct ibv_recv_wr *wr);

/**
 * rq_post_list() - appends a whole chain, in order.
 * @bad_wr: the first request that was not posted, when something is returned
 */
int rq_post_list(struct rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/** rq_take() - removes the oldest request into @out. Return: false when the queue is empty. Any thread. */
bool rq_take(struct rq *rq, struct rqe *out);

/** rq_count() - requests posted and not yet taken. */
uint32_t rq_count(const struct rq *rq);
uint32_t rq_max_wr(const struct rq *rq);
uint32_t rq_max_sge(const struct rq *rq);

#endif
