/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The requester: work requests become packets. Theory in req.c. */
#ifndef RXE_ENGINE_REQ_H
#define RXE_ENGINE_REQ_H

#include "engine/qp.h"

/* Bounds of the adaptive window, in packets, and where it starts. */
#define REQ_WINDOW_MIN	 8
#define REQ_WINDOW_START 32
#define REQ_WINDOW_MAX	 128
/* An acknowledge is asked for at least this often, in packets. */
#define REQ_ACK_EVERY 16

/** req_reset() - a fresh requester, first PSN @psn. */
void req_reset(struct qp *qp, uint32_t psn);

/**
 * req_run() - sends what may be sent, up to the lane's budget; in ERR flushes. Lane held.
 * Return: whether a packet was sent or a request executed.
 */
bool req_run(struct qp *qp);

/** req_arm() - starts the acknowledge timer, unless it runs or the QP has none. Lane held. */
void req_arm(struct qp *qp);

/** req_go_back() - continue at the oldest unacknowledged packet. Lane held. */
void req_go_back(struct qp *qp);

/** req_congested() - a CNP came: half the window. */
void req_congested(struct qp *qp);

/** req_window_ack(), req_window_loss() - the window's additive growth and multiplicative decrease. */
void req_window_ack(struct qp *qp, uint32_t psns);
void req_window_loss(struct qp *qp);

/** req_is_read() - does the request need response packets that carry data? */
static inline bool req_is_read(const struct swqe *wqe)
{
	return wqe->opcode == IBV_WR_RDMA_READ || swqe_is_atomic(wqe);
}

/** req_is_local() - executed here, without a packet. */
static inline bool req_is_local(const struct swqe *wqe)
{
	return wqe->opcode == IBV_WR_BIND_MW || wqe->opcode == IBV_WR_LOCAL_INV;
}

#endif
