/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Posting: work requests of the program become entries of the send and receive queues.
 *
 * Here a request is checked as far as the man pages promise an error from the post itself: state, opcode,
 * SGE count, lengths. Keys and bounds are checked when the data is touched, and fail as completions.
 */
#include "engine/ah.h"
#include "engine/mr.h"
#include "engine/qp.h"
#include "engine/req.h"
#include "engine/usercopy.h"

#include <errno.h>

#define BIT(op) (1u << (op))
#define SENDS	(BIT(IBV_WR_SEND) | BIT(IBV_WR_SEND_WITH_IMM))
#define WRITES	(BIT(IBV_WR_RDMA_WRITE) | BIT(IBV_WR_RDMA_WRITE_WITH_IMM))
#define READS                                                                                      \
	(BIT(IBV_WR_RDMA_READ) | BIT(IBV_WR_ATOMIC_CMP_AND_SWP) | BIT(IBV_WR_ATOMIC_FETCH_AND_ADD))
#define LOCALS (BIT(IBV_WR_BIND_MW) | BIT(IBV_WR_LOCAL_INV))

/* Opcodes by type of QP (IBTA table 92); none for XRC_RECV. */
static uint32_t allowed(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_XRC_SEND:
		return SENDS | WRITES | READS | LOCALS | BIT(IBV_WR_SEND_WITH_INV);
	case IBV_QPT_UC:
		return SENDS | WRITES | LOCALS;
	case IBV_QPT_UD:
		return SENDS;
	default:
		return 0;
	}
}

static bool can_post_send(const struct qp *qp)
{
	enum ibv_qp_state state = qp->state;

	switch (state) {
	case IBV_QPS_RTS:
	case IBV_QPS_SQD:
	case IBV_QPS_SQE:
	case IBV_QPS_ERR:
		return qp->type != IBV_QPT_XRC_RECV;
	default:
		return false;
	}
}

int qp_sq_check(const struct qp *qp, const struct swqe *wqe)
{
	if (unlikely(!can_post_send(qp)))
		return -EINVAL;
	if (unlikely(wqe->opcode > IBV_WR_SEND_WITH_INV || !(allowed(qp->type) & BIT(wqe->opcode))))
		return -EINVAL;
	if (unlikely(wqe->length > RXE_MAX_MSG))
		return -EINVAL;
	if (qp->type == IBV_QPT_UD && unlikely(wqe->length > qp->mtu && qp->mtu))
		return -EINVAL;
	if (BIT(wqe->opcode) & READS) {
		/* It could never be sent. */
		if (unlikely(!qp->attr.max_rd_atomic && qp->state == IBV_QPS_RTS))
			return -EINVAL;
		if (unlikely(wqe->flags & IBV_SEND_INLINE))
			return -EINVAL;
		if (wqe->opcode != IBV_WR_RDMA_READ &&
		    unlikely(wqe->length < 8 || (wqe->remote_addr & 7)))
			return -EINVAL;
	}
	return 0;
}

void qp_sq_begin(struct qp *qp)
{
	lock_take(&qp->sq.lock);
}

struct swqe *qp_sq_alloc(struct qp *qp)
{
	struct swqe *wqe = qp->sq.slots ? wq_alloc(&qp->sq) : NULL;

	if (wqe) {
		wqe->state = SWQE_POSTED;
		wqe->status = IBV_WC_SUCCESS;
		wqe->length = 0;
		wqe->num_sge = 0;
		wqe->srqn = 0;
	}
	return wqe;
}

static void run(struct qp *qp, uint64_t now)
{
	lane_kick(qp);
	lane_run(qp->lane, now, LANE_POST);
}

void qp_sq_commit(struct qp *qp, uint64_t now)
{
	wq_publish(&qp->sq);
	lock_give(&qp->sq.lock);
	run(qp, now);
}

void qp_sq_abort(struct qp *qp)
{
	wq_rollback(&qp->sq);
	lock_give(&qp->sq.lock);
}

int qp_sq_add_inline(const struct qp *qp, struct swqe *wqe, const void *p, size_t n)
{
	uint32_t length = wqe->length;

	if (unlikely(n > qp->sq.max_inline - length))
		return -EINVAL;
	wqe->length = length + (uint32_t)n;
	return usercopy((uint8_t *)wqe->sge + length, p, n);
}

/* @num_sge has been checked. */
static inline int set_sges(struct swqe *wqe, const struct ibv_sge *sge, uint32_t num_sge)
{
	uint64_t length = 0;

	for (uint32_t i = 0; i < num_sge; i++) {
		wqe->sge[i] = sge[i];
		length += sge[i].length;
	}
	if (unlikely(length > RXE_MAX_MSG))
		return -EINVAL;
	wqe->num_sge = num_sge;
	wqe->length = length;
	/* An atomic moves 8 bytes, however long the list is. */
	if (swqe_is_atomic(wqe))
		wqe->length = min_t(uint64_t, length, 8);
	return 0;
}

int qp_sq_set_sges(const struct qp *qp, struct swqe *wqe, const struct ibv_sge *sge, size_t num_sge)
{
	if (unlikely(num_sge > qp->sq.max_sge))
		return -EINVAL;
	return set_sges(wqe, sge, (uint32_t)num_sge);
}

static int copy_inline(const struct qp *qp, struct swqe *wqe, const struct ibv_sge *sge,
		       uint32_t num_sge)
{
	int ret = 0;

	for (uint32_t i = 0; i < num_sge && !ret; i++)
		ret = qp_sq_add_inline(qp, wqe, (const void *)(uintptr_t)sge[i].addr,
				       sge[i].length);
	return ret;
}

static void copy_bind(struct swqe *wqe, const struct ibv_send_wr *wr)
{
	wqe->bind.addr = wr->bind_mw.bind_info.addr;
	wqe->bind.length = wr->bind_mw.bind_info.length;
	wqe->bind.access = wr->bind_mw.bind_info.mw_access_flags;
	wqe->bind.lkey = wr->bind_mw.bind_info.mr ? wr->bind_mw.bind_info.mr->lkey : 0;
	wqe->bind.mw_key = wr->bind_mw.mw->rkey;
	wqe->rkey = wr->bind_mw.rkey;
}

static int fill_wqe(struct qp *qp, struct swqe *wqe, const struct ibv_send_wr *wr)
{
	int num_sge = wr->num_sge;

	wqe->wr_id = wr->wr_id;
	wqe->flags = wr->send_flags;
	wqe->opcode = min_t(unsigned int, wr->opcode, UINT8_MAX);
	wqe->imm_be = wr->imm_data;
	if (wr->opcode == IBV_WR_BIND_MW) {
		copy_bind(wqe, wr);
		return 0;
	}
	if (num_sge < 0 || (uint32_t)num_sge > qp->sq.max_sge)
		return -EINVAL;
	if (wr->opcode == IBV_WR_LOCAL_INV)
		return 0;
	if (qp->type == IBV_QPT_UD) {
		if (!wr->wr.ud.ah)
			return -EINVAL;
		wqe->ud.to = container_of(wr->wr.ud.ah, struct ah, ibv)->dest;
		wqe->ud.qpn = wr->wr.ud.remote_qpn;
		wqe->ud.qkey = wr->wr.ud.remote_qkey;
	} else if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		   wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wqe->remote_addr = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->atomic.compare_add = wr->wr.atomic.compare_add;
		wqe->atomic.swap = wr->wr.atomic.swap;
	} else {
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
	}
	wqe->srqn = qp->type == IBV_QPT_XRC_SEND ? wr->qp_type.xrc.remote_srqn & 0xffffff : 0;
	if ((wr->send_flags & IBV_SEND_INLINE) && !(BIT(wqe->opcode) & READS))
		return copy_inline(qp, wqe, wr->sg_list, num_sge);
	return set_sges(wqe, wr->sg_list, num_sge);
}

static int post_one(struct qp *qp, const struct ibv_send_wr *wr)
{
	uint32_t before = qp->sq.pending;
	struct swqe *wqe;
	int ret;

	if (unlikely(!can_post_send(qp)))
		return -EINVAL;
	wqe = qp_sq_alloc(qp);
	if (unlikely(!wqe))
		return -ENOMEM;
	ret = fill_wqe(qp, wqe, wr);
	if (!ret)
		ret = qp_sq_check(qp, wqe);
	if (ret)
		qp->sq.pending = before;
	return ret;
}

int qp_post_send(struct qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad, uint64_t now)
{
	int ret = 0;

	lock_take(&qp->sq.lock);
	for (; wr; wr = wr->next) {
		ret = post_one(qp, wr);
		if (unlikely(ret)) {
			*bad = wr;
			break;
		}
	}
	/* Those before the bad one are posted. */
	wq_publish(&qp->sq);
	lock_give(&qp->sq.lock);
	if (likely(can_post_send(qp)))
		run(qp, now);
	return ret;
}

int qp_post_recv(struct qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad, uint64_t now)
{
	int ret;

	if (unlikely(!qp->rq || qp->state == IBV_QPS_RESET)) {
		*bad = wr;
		return -EINVAL;
	}
	ret = rq_post_list(qp->rq, wr, bad);
	if (unlikely(qp->state == IBV_QPS_ERR))
		run(qp, now); /* flushes it */
	return ret;
}
