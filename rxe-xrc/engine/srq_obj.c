/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared receive queues as objects of the engine: numbers, domains, references. What they do is in
 * srq/.
 *
 * An XRC SRQ is found by the number that each XRC packet carries, so it has one, unique in the
 * engine and from a range that no QP number comes from. A basic SRQ is only known to its QPs:
 * number 0, in no table.
 *
 * In a domain that a file names, the number must be unique among the processes that open the file, and
 * lead to this one. So it comes from a block that the engine has claimed (foreign.h). A block is
 * never more than three quarters full, then the next is claimed: a few random draws find a free number.
 */
#include "engine/qp.h"

#include <errno.h>
#include <stdlib.h>

static int match_srqn(struct cds_lfht_node *node, const void *key)
{
	return caa_container_of(node, struct srq, node)->srqn == *(const uint32_t *)key;
}

struct srq *engine_srq_find(struct engine *e, uint32_t srqn)
{
	struct cds_lfht_node *node = engine_table_find(e->srqs, match_srqn, srqn);

	return node ? caa_container_of(node, struct srq, node) : NULL;
}

static bool needs_block(const struct srq *srq)
{
	return srq->xrcd->shared && srq->engine->ops->foreign;
}

/* Another block, when those that there are fill up. Without one, numbers are as for a private domain. */
static void claim_block(struct engine *e)
{
	uint32_t first;

	if (e->nshared_srqs < e->nblocks * (FOREIGN_BLOCK / 4 * 3) ||
	    e->nblocks == FOREIGN_MAX_BLOCKS)
		return;
	first = e->ops->foreign->claim(e);
	if (first)
		e->srqn_blocks[e->nblocks++] = first;
}

/* A number to try; ctl held. */
static uint32_t draw_srqn(struct engine *e, bool from_block)
{
	uint64_t random = engine_random(e);

	if (from_block && e->nblocks)
		return e->srqn_blocks[(random >> 32) % e->nblocks] + random % FOREIGN_BLOCK;
	return RXE_SRQN_FIRST + random % (RXE_SRQN_LAST - RXE_SRQN_FIRST + 1);
}

/* Gives @srq a free number and files it; ctl held. */
static void add_to_table(struct engine *e, struct srq *srq)
{
	bool shared = needs_block(srq);
	uint32_t srqn;

	if (shared) {
		claim_block(e);
		/* Blocks all taken and this many SRQs: the rest are for this process alone. */
		shared = e->nshared_srqs < e->nblocks * (FOREIGN_BLOCK / 4 * 3);
	}
	rcu_read_lock();
	/* Ends: RXE_MAX_SRQ is a small part of the range, and blocks are not full. */
	do
		srqn = draw_srqn(e, shared);
	while (engine_srq_find(e, srqn));
	srq->srqn = srqn;
	cds_lfht_node_init(&srq->node);
	cds_lfht_add(e->srqs, engine_hash(srqn), &srq->node);
	rcu_read_unlock();
	e->nshared_srqs += needs_block(srq);
}

static int check_init(enum ibv_srq_type type, const struct xrcd *xrcd, const struct cq *cq,
		      const struct ibv_srq_attr *attr)
{
	if (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC)
		return -EOPNOTSUPP;
	if (type == IBV_SRQT_XRC && (!xrcd || !cq))
		return -EINVAL;
	if (!attr->max_wr || attr->max_wr > RXE_MAX_SRQ_WR || attr->max_sge > RXE_MAX_SGE)
		return -EINVAL;
	return 0;
}

/* The references that an SRQ holds; ctl held. */
static void hold(struct srq *srq)
{
	atomic_fetch_add(&srq->pd->refs, 1);
	if (srq->type == IBV_SRQT_XRC) {
		atomic_fetch_add(&srq->cq->refs, 1);
		atomic_fetch_add(&srq->xrcd->refs, 1);
		xrcd_add_srq(srq->xrcd, srq);
	}
}

static void release(struct srq *srq)
{
	atomic_fetch_sub(&srq->pd->refs, 1);
	if (srq->type == IBV_SRQT_XRC) {
		xrcd_del_srq(srq->xrcd, srq);
		atomic_fetch_sub(&srq->cq->refs, 1);
		atomic_fetch_sub(&srq->xrcd->refs, 1);
	}
}

int engine_srq_create(struct pd *pd, enum ibv_srq_type type, struct xrcd *xrcd, struct cq *cq,
		      struct ibv_srq_attr *attr, void *user, struct srq **out)
{
	struct engine *e = pd->engine;
	struct srq *srq;
	int ret;

	ret = check_init(type, xrcd, cq, attr);
	if (ret)
		return ret;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	ret = srq_init(srq, attr->max_wr, attr->max_sge);
	if (ret)
		goto err_free;
	srq->type = type;
	srq->engine = e;
	srq->pd = pd;
	srq->user = user;
	if (type == IBV_SRQT_XRC) {
		srq->cq = cq;
		srq->xrcd = xrcd;
	}

	ret = -ENOMEM;
	engine_lock(e);
	if (atomic_load(&e->nsrqs) >= RXE_MAX_SRQ)
		goto err_unlock;
	if (type == IBV_SRQT_XRC && xrcd_reserve_srq(xrcd, srq))
		goto err_unlock;
	hold(srq);
	if (type == IBV_SRQT_XRC)
		add_to_table(e, srq);
	/* Counts basic ones too, which only makes the table a little larger. */
	engine_table_grow(e->srqs, atomic_fetch_add(&e->nsrqs, 1) + 1);
	engine_unlock(e);

	attr->max_wr = rq_max_wr(srq->rq);
	attr->max_sge = rq_max_sge(srq->rq);
	*out = srq;
	return 0;

err_unlock:
	engine_unlock(e);
	srq_fini(srq);
err_free:
	free(srq);
	return ret;
}

int engine_srq_destroy(struct srq *srq)
{
	struct engine *e = srq->engine;

	engine_lock(e);
	if (atomic_load(&srq->refs)) {
		engine_unlock(e);
		return -EBUSY;
	}
	if (srq->type == IBV_SRQT_XRC) {
		rcu_read_lock();
		cds_lfht_del(e->srqs, &srq->node);
		rcu_read_unlock();
		e->nshared_srqs -= needs_block(srq);
	}
	atomic_fetch_sub(&e->nsrqs, 1);
	engine_unlock(e);

	/* A lane may still be at work with it, and with the PD and the queue behind it. */
	engine_wait_readers();
	engine_lock(e);
	release(srq);
	engine_unlock(e);
	srq_fini(srq);
	free(srq);
	return 0;
}

int engine_srq_modify(struct srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	int ret;

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return -EINVAL;
	if (mask & IBV_SRQ_MAX_WR)
		return -EOPNOTSUPP;
	if (!(mask & IBV_SRQ_LIMIT))
		return 0;
	ret = srq_arm(srq, attr->srq_limit);
	if (ret <= 0)
		return ret;
	srq->engine->ops->async_event(srq->engine, IBV_EVENT_SRQ_LIMIT_REACHED, srq->user);
	return 0;
}

void engine_srq_query(const struct srq *srq, struct ibv_srq_attr *attr)
{
	attr->max_wr = rq_max_wr(srq->rq);
	attr->max_sge = rq_max_sge(srq->rq);
	attr->srq_limit = srq_limit(srq);
}
