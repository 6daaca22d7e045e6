/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * QP states as a table, and the only code that assigns qp->state.
 *
 *            RESET --> INIT --> RTR --> RTS <--> SQD
 *              ^        (any but RESET)   |  ^
 *              |             |            v  |
 *              +--- any      +--> ERR    SQE-+   (UC and UD only)
 *
 * The masks are those of IBTA Vol 1 table 91 (11.2.5.3) as Linux enforces them (ib_modify_qp_is_ok()): a
 * transition lists what must be given and what may be given, for each type of QP. XRC splits RC's
 * attributes between its two halves: the INI QP has what concerns requesting, the TGT QP what concerns
 * responding. Linux strips the other half from what user space gives (uverbs_cmd.c, modify_qp_mask()), and
 * libfabric relies on it.
 *
 * In ERR every work request, queued or posted later, completes with IBV_WC_WR_FLUSH_ERR, each queue in its
 * order of posting.
 */
#include "engine/qp_state.h"

#include "base/log.h"
#include "engine/foreign_ask.h"
#include "engine/sge.h"

#include <errno.h>

#define NSTATES (IBV_QPS_ERR + 1)

enum qp_kind { KIND_RC, KIND_UC, KIND_UD, KIND_INI, KIND_TGT, KIND_COUNT };

struct transition {
	bool valid;
	int need[KIND_COUNT];
	int may[KIND_COUNT];
};

/* Groups of attributes, to keep the rows readable. */
#define A_PORT	(IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define A_PATH	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define A_RESP	(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define A_RETRY (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)
#define A_ALT	(IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)

/* What a running connected QP may change; MIN_RNR_TIMER for the halves that respond. */
#define A_RUNNING (IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | A_ALT)

static const struct transition transitions[NSTATES][NSTATES] = {
	[IBV_QPS_RESET] = {
		[IBV_QPS_RESET] = { .valid = true },
		[IBV_QPS_INIT] = {
			.valid = true,
			.need = {
				[KIND_RC] = A_PORT | IBV_QP_ACCESS_FLAGS,
				[KIND_UC] = A_PORT | IBV_QP_ACCESS_FLAGS,
				[KIND_UD] = A_PORT | IBV_QP_QKEY,
				[KIND_INI] = A_PORT | IBV_QP_ACCESS_FLAGS,
				[KIND_TGT] = A_PORT | IBV_QP_ACCESS_FLAGS,
			},
		},
	},
	[IBV_QPS_INIT] = {
		[IBV_QPS_RESET] = { .valid = true },
		[IBV_QPS_ERR] = { .valid = true },
		[IBV_QPS_INIT] = {
			.valid = true,
			.may = {
				[KIND_RC] = A_PORT | IBV_QP_ACCESS_FLAGS,
				[KIND_UC] = A_PORT | IBV_QP_ACCESS_FLAGS,
				[KIND_UD] = A_PORT | IBV_QP_QKEY,
				[KIND_INI] = A_PORT | IBV_QP_ACCESS_FLAGS,
				[KIND_TGT] = A_PORT | IBV_QP_ACCESS_FLAGS,
			},
		},
		[IBV_QPS_RTR] = {
			.valid = true,
			.need = {
				[KIND_RC] = A_PATH | A_RESP,
				[KIND_UC] = A_PATH,
				[KIND_INI] = A_PATH,
				[KIND_TGT] = A_PATH | A_RESP,
			},
			.may = {
				[KIND_RC] = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
				[KIND_UC] = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
				[KIND_UD] = IBV_QP_PKEY_INDEX | IBV_QP_QKEY,
				[KIND_INI] = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
				[KIND_TGT] = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
			},
		},
	},
	[IBV_QPS_RTR] = {
		[IBV_QPS_RESET] = { .valid = true },
		[IBV_QPS_ERR] = { .valid = true },
		[IBV_QPS_RTS] = {
			.valid = true,
			.need = {
				[KIND_RC] = A_RETRY | IBV_QP_SQ_PSN,
				[KIND_UC] = IBV_QP_SQ_PSN,
				[KIND_UD] = IBV_QP_SQ_PSN,
				[KIND_INI] = A_RETRY | IBV_QP_SQ_PSN,
				[KIND_TGT] = IBV_QP_TIMEOUT | IBV_QP_SQ_PSN,
			},
			.may = {
				[KIND_RC] = A_RUNNING | IBV_QP_MIN_RNR_TIMER,
				[KIND_UC] = A_RUNNING,
				[KIND_UD] = IBV_QP_CUR_STATE | IBV_QP_QKEY,
				[KIND_INI] = A_RUNNING,
				[KIND_TGT] = A_RUNNING | IBV_QP_MIN_RNR_TIMER,
			},
		},
	},
	[IBV_QPS_RTS] = {
		[IBV_QPS_RESET] = { .valid = true },
		[IBV_QPS_ERR] = { .valid = true },
		[IBV_QPS_RTS] = {
			.valid = true,
			.may = {
				[KIND_RC] = A_RUNNING | IBV_QP_MIN_RNR_TIMER,
				[KIND_UC] = A_RUNNING,
				[KIND_UD] = IBV_QP_CUR_STATE | IBV_QP_QKEY,
				[KIND_INI] = A_RUNNING,
				[KIND_TGT] = A_RUNNING | IBV_QP_MIN_RNR_TIMER,
			},
		},
		[IBV_QPS_SQD] = {
			.valid = true,
			.may = {
				[KIND_RC] = IBV_QP_EN_SQD_ASYNC_NOTIFY,
				[KIND_UC] = IBV_QP_EN_SQD_ASYNC_NOTIFY,
				[KIND_UD] = IBV_QP_EN_SQD_ASYNC_NOTIFY,
				[KIND_INI] = IBV_QP_EN_SQD_ASYNC_NOTIFY,
				[KIND_TGT] = IBV_QP_EN_SQD_ASYNC_NOTIFY,
			},
		},
	},
	[IBV_QPS_SQD] = {
		[IBV_QPS_RESET] = { .valid = true },
		[IBV_QPS_ERR] = { .valid = true },
		[IBV_QPS_RTS] = {
			.valid = true,
			.may = {
				[KIND_RC] = A_RUNNING | IBV_QP_MIN_RNR_TIMER,
				[KIND_UC] = A_RUNNING,
				[KIND_UD] = IBV_QP_CUR_STATE | IBV_QP_QKEY,
				[KIND_INI] = A_RUNNING,
				[KIND_TGT] = A_RUNNING | IBV_QP_MIN_RNR_TIMER,
			},
		},
		[IBV_QPS_SQD] = {
			.valid = true,
			.may = {
				[KIND_RC] = IBV_QP_PORT | IBV_QP_AV | A_RETRY | A_RESP | A_ALT |
					    IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
				[KIND_UC] = IBV_QP_AV | A_ALT | IBV_QP_ACCESS_FLAGS |
					    IBV_QP_PKEY_INDEX,
				[KIND_UD] = IBV_QP_PKEY_INDEX | IBV_QP_QKEY,
				[KIND_INI] = IBV_QP_PORT | IBV_QP_AV | A_RETRY | A_ALT |
					     IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
				[KIND_TGT] = IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | A_RESP |
					     A_ALT | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
			},
		},
	},
	[IBV_QPS_SQE] = {
		[IBV_QPS_RESET] = { .valid = true },
		[IBV_QPS_ERR] = { .valid = true },
		[IBV_QPS_RTS] = {
			.valid = true,
			.may = {
				[KIND_UC] = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS,
				[KIND_UD] = IBV_QP_CUR_STATE | IBV_QP_QKEY,
			},
		},
	},
	[IBV_QPS_ERR] = {
		[IBV_QPS_RESET] = { .valid = true },
		[IBV_QPS_ERR] = { .valid = true },
	},
};

static enum qp_kind kind_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_UC:
		return KIND_UC;
	case IBV_QPT_UD:
		return KIND_UD;
	case IBV_QPT_XRC_SEND:
		return KIND_INI;
	case IBV_QPT_XRC_RECV:
		return KIND_TGT;
	default:
		return KIND_RC;
	}
}

int qp_state_strip(enum ibv_qp_type type, int mask)
{
	if (type == IBV_QPT_XRC_SEND)
		return mask & ~A_RESP;
	if (type == IBV_QPT_XRC_RECV)
		return mask & ~(A_RETRY & ~IBV_QP_TIMEOUT);
	return mask;
}

int qp_state_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	enum qp_kind kind = kind_of(type);
	const struct transition *t;

	if ((unsigned int)from >= NSTATES || (unsigned int)to >= NSTATES)
		return -EINVAL;
	t = &transitions[from][to];
	if (!t->valid)
		return -EINVAL;
	mask &= ~IBV_QP_STATE;
	/* The current state may always be named; the caller compares it. */
	mask &= ~IBV_QP_CUR_STATE;
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return mask ? -EINVAL : 0;
	if ((mask & t->need[kind]) != t->need[kind])
		return -EINVAL;
	if (mask & ~(t->need[kind] | t->may[kind]))
		return -EINVAL;
	return 0;
}

void qp_state_set(struct qp *qp, enum ibv_qp_state state)
{
	atomic_store_explicit(&qp->state, state, memory_order_release);
}

void qp_complete(struct qp *qp, struct cq *cq, const struct ibv_wc *wc, bool solicited)
{
	if (!cq_push(cq, qp->lane->index, wc, qp->lane->now, solicited))
		qp->broken = true;
}

void qp_check_broken(struct qp *qp)
{
	if (likely(!qp->broken) || qp->state == IBV_QPS_ERR)
		return;
	log_warn("QP 0x%06x: completion queue overrun", qp->qpn);
	qp_state_error(qp);
	qp_event(qp, IBV_EVENT_QP_FATAL);
}

static const uint8_t wc_opcode_of[] = {
	[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
	[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
	[IBV_WR_SEND] = IBV_WC_SEND,
	[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
	[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
	[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
	[IBV_WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
	[IBV_WR_BIND_MW] = IBV_WC_BIND_MW,
	[IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
};

void qp_retire(struct qp *qp, enum ibv_wc_status status)
{
	uint32_t head = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
	const struct swqe *wqe = wq_slot(&qp->sq, head);
	bool report =
		status != IBV_WC_SUCCESS || qp->sq_sig_all || (wqe->flags & IBV_SEND_SIGNALED);
	struct ibv_wc wc = {
		.wr_id = wqe->wr_id,
		.status = status,
		.opcode = wc_opcode_of[wqe->opcode],
		.byte_len = wqe->length,
		.qp_num = qp->qpn,
	};

	if (qp->req.wqe == head)
		qp->req.wqe = head + 1;
	/* First the slot, then the completion: another thread may poll it and post at once. */
	atomic_store_explicit(&qp->sq.head, head + 1, memory_order_release);
	if (report)
		qp_complete(qp, qp->send_cq, &wc, status != IBV_WC_SUCCESS);
}

static void flush_sq(struct qp *qp)
{
	if (!qp->sq.slots)
		return;
	while (atomic_load_explicit(&qp->sq.head, memory_order_relaxed) !=
	       atomic_load_explicit(&qp->sq.tail, memory_order_acquire))
		qp_retire(qp, IBV_WC_WR_FLUSH_ERR);
	qp->req.wqe = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
}

/* Where the receive of the message in progress completes. An XRC SRQ may be gone by now. */
static struct cq *recv_cq_of(struct qp *qp)
{
	struct srq *srq;

	if (qp->type != IBV_QPT_XRC_RECV)
		return qp->recv_cq;
	srq = engine_srq_find(qp->engine, qp->resp.srqn);
	return srq ? srq->cq : NULL;
}

void qp_fail_receive(struct qp *qp, enum ibv_wc_status status)
{
	struct cq *cq = recv_cq_of(qp);
	struct ibv_wc wc = {
		.wr_id = qp->resp.rqe.wr_id,
		.status = status,
		.opcode = IBV_WC_RECV,
		.qp_num = qp->qpn,
	};

	qp->resp.have_rqe = false;
	if (cq)
		qp_complete(qp, cq, &wc, true);
}

static void flush_rq(struct qp *qp)
{
	/* A receive that was taken for a message in progress is older than all that are queued. */
	if (qp->resp.have_rqe)
		qp_fail_receive(qp, IBV_WC_WR_FLUSH_ERR);
	while (qp->rq && rq_take(qp->rq, &qp->resp.rqe))
		qp_fail_receive(qp, IBV_WC_WR_FLUSH_ERR);
}

void qp_state_flush(struct qp *qp)
{
	flush_sq(qp);
	if (qp->state == IBV_QPS_ERR)
		flush_rq(qp);
}

void qp_state_error(struct qp *qp)
{
	if (qp->state == IBV_QPS_ERR)
		return;
	qp_state_set(qp, IBV_QPS_ERR);
	foreign_abandon(qp, IBV_WC_WR_FLUSH_ERR);
	qp->req.deadline = TIMER_NEVER;
	qp->req.rnr_wait = false;
	qp->resp.in_msg = false;
	qp->resp.failing = 0;
	qp->resp.job_head = qp->resp.job_tail;
	timer_set(&qp->lane->timers, &qp->timer, TIMER_NEVER);
	qp_state_flush(qp);
	if (qp->srq && !qp->last_wqe) {
		qp->last_wqe = true;
		qp_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
	}
}

void qp_state_sq_error(struct qp *qp)
{
	if (qp->type != IBV_QPT_UC && qp->type != IBV_QPT_UD) {
		qp_state_error(qp);
		return;
	}
	if (qp->state == IBV_QPS_ERR)
		return;
	qp_state_set(qp, IBV_QPS_SQE);
	flush_sq(qp);
}
