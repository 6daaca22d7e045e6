/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The states of a QP: which transitions there are, which attributes each needs and allows, and what a
 * transition to the error states does.
 */
#ifndef RXE_ENGINE_QP_STATE_H
#define RXE_ENGINE_QP_STATE_H

#include "engine/qp.h"

/** qp_state_strip() - @mask without the attributes that user space may give for an XRC QP in vain. */
int qp_state_strip(enum ibv_qp_type type, int mask);

/**
 * qp_state_check() - is the transition legal with these attributes?
 * @mask: after qp_state_strip(); IBV_QP_STATE and IBV_QP_CUR_STATE may be in it
 *
 * Return: 0 or -EINVAL.
 */
int qp_state_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask);

/** qp_state_set() - assigns the state; nothing else does. Lane held. */
void qp_state_set(struct qp *qp, enum ibv_qp_state state);

/**
 * qp_state_error() - to ERR: flushes the send queue and the receive queue, in the order of posting, and raises
 * IBV_EVENT_QP_LAST_WQE_REACHED for a QP with an SRQ. Lane held; harmless when the QP is in ERR already.
 */
void qp_state_error(struct qp *qp);

/** qp_state_sq_error() - a send queue error: SQE for UC and UD, ERR for the others. */
void qp_state_sq_error(struct qp *qp);

/** qp_state_flush() - completes what was posted to a QP in ERR (or the send queue in SQE). Lane held. */
void qp_state_flush(struct qp *qp);

/**
 * qp_retire() - completes the oldest request of the send queue: a completion when it is signalled or failed,
 * and its slot is free again. Lane held.
 */
void qp_retire(struct qp *qp, enum ibv_wc_status status);

/** qp_fail_receive() - completes the receive of the message in progress with an error. Lane held. */
void qp_fail_receive(struct qp *qp, enum ibv_wc_status status);

/** qp_complete() - pushes a completion; an overrun CQ breaks the QP. Lane held. */
void qp_complete(struct qp *qp, struct cq *cq, const struct ibv_wc *wc, bool solicited);

/** qp_check_broken() - takes a QP whose CQ has overrun to ERR with IBV_EVENT_QP_FATAL. Lane held. */
void qp_check_broken(struct qp *qp);

#endif
