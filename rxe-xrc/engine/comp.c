/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The completer: what responses do to the send queue (IBTA Vol 1 9.7.5, 9.7.6, 9.7.7).
 *
 * Everything is one number, una. A response for PSN p acknowledges all before p, as far as they need no data
 * of their own:
 *
 *     ACK p                  una = p + 1
 *     READ response p        una = p, store the data, una = p + 1
 *     atomic acknowledge p   una = p, store the original value, una = p + 1
 *     NAK or RNR NAK p       una = p, and the request there is tried again or fails
 *
 * A request is retired, in the order of posting, when una has passed its last PSN. If una meets a READ or
 * an atomic on its way whose response has not come, that response was lost: an implied NAK.
 *
 * Losses are noticed by a sequence NAK, by an implied NAK, or by the timer. Each going back costs one of
 * retry_cnt, which progress restores; until una moves, further signs of the same loss are ignored and only
 * the timer counts. RNR waits have a count of their own and do not touch retry_cnt.
 */
#include "engine/comp.h"

#include "base/log.h"
#include "engine/qp_state.h"
#include "engine/req.h"
#include "engine/sge.h"
#include "wire/psn.h"

static struct swqe *head_of(struct qp *qp)
{
	return wq_slot(&qp->sq, atomic_load_explicit(&qp->sq.head, memory_order_relaxed));
}

static bool is_empty(struct qp *qp)
{
	return atomic_load_explicit(&qp->sq.head, memory_order_relaxed) ==
	       atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
}

/* The oldest request fails with @status, and the queue with it. */
static void fail_head(struct qp *qp, enum ibv_wc_status status)
{
	qp_retire(qp, status);
	qp_state_sq_error(qp);
}

void comp_local(struct qp *qp)
{
	while (!is_empty(qp)) {
		struct swqe *wqe = head_of(qp);

		if (wqe->status != IBV_WC_SUCCESS) {
			/* Those before it are complete; its own first packets must be, too. */
			if (qp->req.una == qp->req.psn)
				fail_head(qp, wqe->status);
			return;
		}
		if (wqe->state != SWQE_DONE)
			return;
		qp_retire(qp, IBV_WC_SUCCESS);
	}
}

/* Moves una up to @upto. Return: false when a response that carries data is missing on the way. */
static bool advance(struct qp *qp, uint32_t upto)
{
	struct qp_req *r = &qp->req;

	/* The queue runs empty under way when a request that failed here takes the QP to ERR. */
	while (psn_before(r->una, upto) && !is_empty(qp)) {
		struct swqe *wqe = head_of(qp);
		uint32_t end = psn_add(wqe->first_psn, wqe->npsn);

		if (req_is_read(wqe))
			return false;
		r->una = psn_before(upto, end) ? upto : end;
		if (r->una == end) {
			qp_retire(qp, IBV_WC_SUCCESS);
			comp_local(qp);
		}
	}
	return true;
}

/* una has moved from @before: everything that depends on it. */
static void progress(struct qp *qp, uint32_t before)
{
	struct qp_req *r = &qp->req;

	if (r->una == before || qp->state == IBV_QPS_ERR)
		return;
	r->retries = qp->attr.retry_cnt;
	r->rnr_retries = qp->attr.rnr_retry;
	r->recovering = false;
	r->rnr_wait = false; /* what the receiver was not ready for has been taken after all */
	req_window_ack(qp, psn_sub(r->una, before));
	/* After going back, an acknowledge of the first try may overtake the second. */
	if (psn_before(r->psn, r->una))
		r->psn = r->una;
	while (r->rd_head != r->rd_sent &&
	       psn_sub(r->una, r->rd_end[r->rd_head % RXE_MAX_RD_ATOMIC]) >= 0) {
		r->rd_tail += r->rd_tail == r->rd_head;
		r->rd_head++;
	}
	r->deadline = TIMER_NEVER;
	if (r->una != r->next)
		req_arm(qp);
	lane_ready(qp);
}

/*
 * advance(), and what follows from it: before anything else that the packet says, since its NAK is about a
 * packet that has all its retries.
 */
static bool advance_to(struct qp *qp, uint32_t upto)
{
	uint32_t before = qp->req.una;
	bool complete = advance(qp, upto);

	progress(qp, before);
	return complete;
}

/* Once more from una, or give up. */
static void retry(struct qp *qp)
{
	struct qp_req *r = &qp->req;

	if (!r->retries) {
		log_info("QP 0x%06x: PSN 0x%06x is not acknowledged, and no try is left", qp->qpn,
			 r->una);
		fail_head(qp, IBV_WC_RETRY_EXC_ERR);
		return;
	}
	r->retries--;
	r->recovering = true;
	stats_inc(&qp->lane->stats, STAT_retransmits);
	req_window_loss(qp);
	req_go_back(qp);
}

/* A response says that something was lost. */
static void lost(struct qp *qp)
{
	if (!qp->req.recovering && !qp->req.rnr_wait)
		retry(qp);
}

/* The receiver has nothing posted: wait for as long as it says, then once more (IBTA 9.7.5.2.8). */
static void not_ready(struct qp *qp, uint8_t timer)
{
	struct qp_req *r = &qp->req;

	stats_inc(&qp->lane->stats, STAT_rnr_naks_received);
	if (r->rnr_wait)
		return;
	if (qp->attr.rnr_retry != 7) { /* 7: without end */
		if (!r->rnr_retries) {
			fail_head(qp, IBV_WC_RNR_RETRY_EXC_ERR);
			return;
		}
		r->rnr_retries--;
	}
	req_go_back(qp);
	r->rnr_wait = true;
	r->rnr_until = qp->lane->now + wire_rnr_ns(timer);
	lane_deadline(qp, r->rnr_until);
}

static const uint8_t nak_status[32] = {
	[WIRE_SYN_DETAIL(WIRE_NAK_INVALID_REQUEST)] = IBV_WC_REM_INV_REQ_ERR,
	[WIRE_SYN_DETAIL(WIRE_NAK_REMOTE_ACCESS)] = IBV_WC_REM_ACCESS_ERR,
	[WIRE_SYN_DETAIL(WIRE_NAK_REMOTE_OPERATIONAL)] = IBV_WC_REM_OP_ERR,
	[WIRE_SYN_DETAIL(WIRE_NAK_INVALID_RD_REQUEST)] = IBV_WC_REM_INV_RD_REQ_ERR,
};

/* una is the NAK's PSN: the request at the head is what it is about. */
static void nak(struct qp *qp, uint8_t syndrome)
{
	uint8_t status = nak_status[WIRE_SYN_DETAIL(syndrome)];

	if (syndrome == WIRE_NAK_SEQUENCE)
		lost(qp);
	else if (status)
		fail_head(qp, status);
	else
		stats_drop(&qp->lane->stats, DROP_bad_response);
}

static void acknowledge(struct qp *qp, const struct wire_pkt *pkt)
{
	bool is_ack = WIRE_SYN_KIND(pkt->syndrome) == WIRE_SYN_ACK;

	if (WIRE_SYN_KIND(pkt->syndrome) == WIRE_SYN_RSVD) {
		stats_drop(&qp->lane->stats, DROP_bad_response);
		return;
	}
	if (!is_ack)
		stats_inc(&qp->lane->stats, STAT_naks_received);
	if (!advance_to(qp, psn_add(pkt->psn, is_ack ? 1 : 0)))
		lost(qp);
	else if (WIRE_SYN_KIND(pkt->syndrome) == WIRE_SYN_RNR)
		not_ready(qp, WIRE_SYN_DETAIL(pkt->syndrome));
	else if (!is_ack)
		nak(qp, pkt->syndrome);
}

/* Data of the READ or atomic at the head, whose next response this is. */
static void store(struct qp *qp, struct swqe *wqe, const uint8_t *data, uint32_t offset, uint32_t n)
{
	struct qp_req *r = &qp->req;
	uint32_t before = r->una;
	enum ibv_wc_status status;

	status = sge_scatter(qp->engine, qp->pd, wqe->sge, wqe->num_sge, offset, data, n);
	if (status != IBV_WC_SUCCESS) {
		fail_head(qp, status);
		return;
	}
	r->una = psn_add(r->una, 1);
	if (r->una == psn_add(wqe->first_psn, wqe->npsn)) {
		qp_retire(qp, IBV_WC_SUCCESS);
		comp_local(qp);
	}
	progress(qp, before);
}

/* A response with data is an acknowledge (IBTA 9.7.5.1.5): a NAK in its AETH makes no sense. */
static bool says_nak(const struct wire_pkt *pkt)
{
	return (pkt->op->headers & WIRE_H_AETH) && WIRE_SYN_KIND(pkt->syndrome) != WIRE_SYN_ACK;
}

/* Is there a request at the head that has been sent and waits for this kind of response? */
static bool expected(struct qp *qp, const struct swqe *wqe, const struct wire_pkt *pkt)
{
	if (is_empty(qp) || wqe->state != SWQE_SENT)
		return false;
	if (pkt->op->kind == WIRE_KIND_ATOMIC_ACK)
		return swqe_is_atomic(wqe);
	return wqe->opcode == IBV_WR_RDMA_READ;
}

static void response(struct qp *qp, const struct wire_pkt *pkt)
{
	struct swqe *wqe;
	uint32_t offset;

	if (says_nak(pkt)) {
		stats_drop(&qp->lane->stats, DROP_bad_response);
		return;
	}
	if (!advance_to(qp, pkt->psn)) {
		lost(qp);
		return;
	}
	wqe = head_of(qp);
	if (!expected(qp, wqe, pkt)) {
		stats_drop(&qp->lane->stats, DROP_bad_response);
		return;
	}
	if (pkt->op->kind == WIRE_KIND_ATOMIC_ACK) {
		uint64_t orig = pkt->orig;

		store(qp, wqe, (const uint8_t *)&orig, 0, sizeof(orig));
		return;
	}
	/* A replay may begin with MIDDLE (rdma_rxe does), so only the length is checked. */
	offset = psn_sub(pkt->psn, wqe->first_psn) * qp->mtu;
	if (pkt->payload_len != min_t(uint32_t, qp->mtu, wqe->length - offset)) {
		fail_head(qp, IBV_WC_BAD_RESP_ERR);
		return;
	}
	store(qp, wqe, pkt->payload, offset, pkt->payload_len);
}

void comp_packet(struct qp *qp, const struct wire_pkt *pkt)
{
	struct qp_req *r = &qp->req;

	if (psn_before(pkt->psn, r->una) || !psn_before(pkt->psn, r->next)) {
		stats_drop(&qp->lane->stats, DROP_ghost_ack);
		return;
	}
	if (pkt->op->kind == WIRE_KIND_ACK)
		acknowledge(qp, pkt);
	else
		response(qp, pkt);
}

void comp_timer(struct qp *qp)
{
	struct qp_req *r = &qp->req;
	uint64_t now = qp->lane->now;

	if (r->rnr_wait && r->rnr_until <= now) {
		r->rnr_wait = false;
		lane_ready(qp);
	}
	if (r->deadline <= now) {
		r->deadline = TIMER_NEVER;
		if (r->una != r->next) {
			stats_inc(&qp->lane->stats, STAT_timeouts);
			retry(qp);
		}
	}
	/* The heap's entry was the earliest that was asked for; the QP's deadlines may be later. */
	lane_deadline(qp, r->deadline);
	if (r->rnr_wait)
		lane_deadline(qp, r->rnr_until);
}
