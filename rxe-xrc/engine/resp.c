/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The responder: requests are checked, executed and answered (IBTA Vol 1 9.7.4 to 9.7.8, 9.8; Annex A14).
 *
 * A reliable request that has the expected PSN runs through the checks of reliable_checks[], in this order; the
 * first that fails decides the answer:
 *
 *     sequence    its place in a message fits what came before
 *     target      XRC: the SRQ exists in the QP's domain
 *     rights      the QP allows the operation at all
 *     length      FIRST and MIDDLE are exactly one MTU, LAST has something, the sum is what was announced
 *     capacity    there is room to remember a READ or atomic
 *     key         the rkey covers the range, in the protection domain of the target
 *     receive     a receive is posted where one is needed, and it is long enough
 *
 * For an XRC packet protection domain, completion queue and receives are those of the SRQ that this very packet
 * names. Everything that can fail is checked before anything is changed, but for the program's own buffers
 * failing under the copy.
 *
 * Answers leave in the order of the requests. READs and atomics wait as jobs in a ring, and one acknowledge
 * (or NAK) stands for all that came after the last job: an acknowledge covers everything before it, and so
 * does a READ response.
 *
 *     jobs:  [READ psn 7..9] [atomic psn 12]      acknowledge: psn 15
 *
 * A duplicate is answered again, not executed again: SEND and WRITE by the newest acknowledge, an atomic from
 * the ring of results, a READ by reading the range once more (IBTA 9.7.5.1.3 allows that).
 *
 * The SRQ may be another process's, when a file names the domain (foreign.h). Then key and receive are
 * checked, and the request is executed, over there; what the owner says is the verdict. A READ's data is
 * fetched for one response at a time, and a READ whose owner falls silent is forgotten: it will be repeated.
 *
 * Unreliable packets have no answers: a message with a gap is dropped, and the receive that was taken for it
 * waits for the next.
 */
#include "engine/resp.h"

#include "base/bytes.h"
#include "engine/foreign_ask.h"
#include "engine/mr.h"
#include "engine/qp_state.h"
#include "engine/sge.h"
#include "engine/usercopy.h"
#include "wire/psn.h"

#include <errno.h>
#include <stdlib.h>

#define GRH_LEN 40

/* The consequences. The last column completes a receive that was taken for the message. */
static const struct {
	uint8_t syndrome;
	uint8_t event; /* enum ibv_event_type; IBV_EVENT_CQ_ERR (0) stands for none */
	uint8_t recv_status;
} consequences[] = {
	[RESP_BAD_SEQUENCE] = {WIRE_NAK_INVALID_REQUEST, IBV_EVENT_QP_REQ_ERR,
			       IBV_WC_REM_INV_REQ_ERR},
	[RESP_BAD_TARGET] = {WIRE_NAK_INVALID_RD_REQUEST, IBV_EVENT_QP_ACCESS_ERR,
			     IBV_WC_WR_FLUSH_ERR},
	[RESP_NO_RIGHT] = {WIRE_NAK_INVALID_REQUEST, IBV_EVENT_QP_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR},
	[RESP_BAD_LENGTH] = {WIRE_NAK_INVALID_REQUEST, IBV_EVENT_QP_REQ_ERR,
			     IBV_WC_REM_INV_REQ_ERR},
	[RESP_MISALIGNED] = {WIRE_NAK_INVALID_REQUEST, IBV_EVENT_QP_REQ_ERR, IBV_WC_WR_FLUSH_ERR},
	[RESP_BAD_KEY] = {WIRE_NAK_REMOTE_ACCESS, IBV_EVENT_QP_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR},
	[RESP_TOO_LONG] = {WIRE_NAK_INVALID_REQUEST, 0, IBV_WC_LOC_LEN_ERR},
	[RESP_BAD_INVALIDATE] = {WIRE_NAK_REMOTE_ACCESS, IBV_EVENT_QP_ACCESS_ERR,
				 IBV_WC_LOC_ACCESS_ERR},
	[RESP_LOCAL_FAULT] = {WIRE_NAK_REMOTE_OPERATIONAL, 0, IBV_WC_LOC_PROT_ERR},
};

int resp_create(struct qp *qp, unsigned int rd_atomic)
{
	struct qp_resp *r = &qp->resp;
	uint32_t size = 1;

	/* One more than promised, so that the ring of results still holds the oldest that may be asked for. */
	while (size < rd_atomic + 1)
		size *= 2;
	resp_destroy(qp);
	r->jobs = calloc(size, sizeof(*r->jobs));
	r->atomics = calloc(size, sizeof(*r->atomics));
	if (!r->jobs || !r->atomics) {
		resp_destroy(qp);
		return -ENOMEM;
	}
	r->ring_mask = size - 1;
	r->job_head = r->job_tail = r->atomic_next = 0;
	return 0;
}

void resp_destroy(struct qp *qp)
{
	free(qp->resp.jobs);
	free(qp->resp.atomics);
	qp->resp.jobs = NULL;
	qp->resp.atomics = NULL;
}

void resp_reset(struct qp *qp, uint32_t psn)
{
	struct qp_resp *r = &qp->resp;

	r->psn = psn & PSN_MASK;
	r->msn = 0;
	r->nak_sent = r->in_msg = r->have_rqe = false;
	r->ack_owed = r->ack_urgent = false;
	r->failing = RESP_OK;
	r->ack_count = 0;
	r->offset = 0;
	r->job_head = r->job_tail = r->atomic_next = 0;
}

/* --- what is owed --- */

static void owe_ack(struct qp *qp, uint32_t psn, uint8_t syndrome, bool urgent)
{
	struct qp_resp *r = &qp->resp;

	if (!r->ack_owed) {
		r->ack_since = qp->lane->now;
		r->ack_urgent = false;
	}
	r->ack_owed = true;
	r->ack_urgent |= urgent;
	r->ack_syndrome = syndrome;
	r->ack_psn = psn;
	r->ack_count++;
	lane_owe(qp);
}

static struct qp_resp_job *job_alloc(struct qp *qp, uint32_t psn, enum wire_kind kind)
{
	struct qp_resp *r = &qp->resp;
	struct qp_resp_job *job = &r->jobs[r->job_tail++ & r->ring_mask];

	memset(job, 0, sizeof(*job));
	job->psn = psn;
	job->npsn = 1;
	job->msn = r->msn;
	job->kind = kind;
	lane_owe(qp);
	return job;
}

/*
 * A new response acknowledges what came before it, that of a duplicate does not. A NAK that is owed still
 * goes out, behind it.
 */
static void response_acks(struct qp_resp *r)
{
	if (WIRE_SYN_KIND(r->ack_syndrome) == WIRE_SYN_ACK) {
		r->ack_owed = false;
		r->ack_count = 0;
	}
}

static bool jobs_full(const struct qp *qp)
{
	const struct qp_resp *r = &qp->resp;

	return !r->jobs || r->job_tail - r->job_head > r->ring_mask;
}

static struct wire_pkt response_header(const struct qp *qp, uint8_t code, uint32_t psn)
{
	return (struct wire_pkt){
		.op = wire_opcode(qp->transport << 5 | code),
		.mig = true,
		.pkey = WIRE_PKEY_DEFAULT,
		.dest_qpn = qp->attr.dest_qp_num,
		.psn = psn,
		.syndrome = WIRE_ACK_NO_CREDITS,
		.msn = qp->resp.msn,
	};
}

/* Room for a response, header built; the payload goes behind it. NULL: the link is full. */
static uint8_t *response_begin(struct qp *qp, const struct link_dest *to, struct wire_pkt *pkt,
			       uint32_t n)
{
	struct link *link = qp->lane->link;
	uint8_t *b;

	b = link->ops->tx_reserve(link, to, pkt->op->hdr_len + n + wire_pad(n));
	if (!b)
		return NULL;
	pkt->payload_len = n;
	return b + wire_encode_hdr(b, pkt);
}

static void response_end(struct qp *qp, uint8_t *payload, uint32_t n)
{
	struct link *link = qp->lane->link;

	memset(payload + n, 0, wire_pad(n));
	link->ops->tx_commit(link, 0);
}

enum output {
	OUT_SENT,
	OUT_FULL,
	OUT_FAILED,
	OUT_SILENT, /* the data's owner does not answer */
};

/* One response's data to @b. */
static enum output read_data(struct qp *qp, const struct qp_resp_job *job, uint32_t offset,
			     uint8_t *b, uint32_t n)
{
	const uint8_t *src;
	enum verdict v;

	if (!n)
		return OUT_SENT;
	if (unlikely(job->foreign)) {
		v = foreign_fetch(qp, job, offset, b, n);
		return v == RESP_OK ? OUT_SENT : v == RESP_SILENT ? OUT_SILENT : OUT_FAILED;
	}
	src = mr_remote(qp->engine, job->pd, qp, job->rkey, job->va + offset, n,
			IBV_ACCESS_REMOTE_READ);
	return src && !usercopy(b, src, n) ? OUT_SENT : OUT_FAILED;
}

/* The next response of a READ. The key is checked anew for each: the region may go at any time. */
static enum output output_read(struct qp *qp, struct qp_resp_job *job)
{
	static const uint8_t code[4] = {0x0e, 0x0d, 0x0f, 0x10}; /* MIDDLE, FIRST, LAST, ONLY */
	uint32_t offset = job->done * qp->mtu, psn = psn_add(job->psn, job->done);
	uint32_t n = min_t(uint32_t, qp->mtu, job->length - offset);
	unsigned int pos = (job->done == 0 ? WIRE_POS_FIRST : 0) |
			   (job->done + 1 == job->npsn ? WIRE_POS_LAST : 0);
	struct wire_pkt pkt = response_header(qp, code[pos], psn);
	enum output out;
	uint8_t *b;

	pkt.msn = job->msn;
	b = response_begin(qp, &qp->dest, &pkt, n);
	if (!b)
		return OUT_FULL;
	out = read_data(qp, job, offset, b, n);
	if (out != OUT_SENT)
		return out;
	response_end(qp, b, n);
	job->done++;
	return OUT_SENT;
}

static enum output output_atomic(struct qp *qp, struct qp_resp_job *job)
{
	struct wire_pkt pkt = response_header(qp, 0x12, job->psn);
	uint8_t *b;

	pkt.msn = job->msn;
	pkt.orig = job->orig;
	b = response_begin(qp, &qp->dest, &pkt, 0);
	if (!b)
		return OUT_FULL;
	response_end(qp, b, 0);
	job->done++;
	return OUT_SENT;
}

static enum output output_ack(struct qp *qp)
{
	struct qp_resp *r = &qp->resp;
	struct stats *stats = &qp->lane->stats;
	struct wire_pkt pkt = response_header(qp, 0x11, r->ack_psn);
	struct link_dest to = qp->dest;
	uint8_t *b;

	pkt.syndrome = r->ack_syndrome;
	to.flow = LINK_FLOW_ANY;
	b = response_begin(qp, &to, &pkt, 0);
	if (!b)
		return OUT_FULL;
	response_end(qp, b, 0);
	if (WIRE_SYN_KIND(r->ack_syndrome) == WIRE_SYN_ACK) {
		stats_inc(stats, STAT_acks_sent);
	} else {
		stats_inc(stats, STAT_naks_sent);
		if (WIRE_SYN_KIND(r->ack_syndrome) == WIRE_SYN_RNR)
			stats_inc(stats, STAT_rnr_naks_sent);
	}
	r->ack_owed = r->ack_urgent = false;
	r->ack_count = 0;
	return OUT_SENT;
}

/*
 * Refuses the request at @psn, and whatever comes behind it. The QP goes to ERR when that has been said, and
 * it is said when all that was owed before has gone out: a peer's many READs have their turns like others'.
 */
static void refuse(struct qp *qp, enum verdict v, uint32_t psn)
{
	qp->resp.failing = v;
	owe_ack(qp, psn, consequences[v].syndrome, true);
}

static void die(struct qp *qp)
{
	struct qp_resp *r = &qp->resp;
	enum verdict v = r->failing;

	r->failing = RESP_OK;
	if (r->have_rqe)
		qp_fail_receive(qp, consequences[v].recv_status);
	foreign_abandon(qp, consequences[v].recv_status);
	qp_state_error(qp);
	if (consequences[v].event)
		qp_event(qp, consequences[v].event);
}

bool resp_output(struct qp *qp, unsigned int budget)
{
	struct qp_resp *r = &qp->resp;

	while (r->job_head != r->job_tail) {
		struct qp_resp_job *job = &r->jobs[r->job_head & r->ring_mask];
		enum output out;

		if (!budget--)
			return false;
		out = job->kind == WIRE_KIND_READ ? output_read(qp, job) : output_atomic(qp, job);
		if (out == OUT_FULL)
			return false;
		if (out == OUT_FAILED) {
			refuse(qp, RESP_BAD_KEY, psn_add(job->psn, job->done));
			r->job_head = r->job_tail;
			break;
		}
		if (out == OUT_SILENT)
			stats_drop(&qp->lane->stats, DROP_owner_silent);
		if (out == OUT_SILENT || job->done == job->npsn)
			r->job_head++;
	}
	if (r->ack_owed && output_ack(qp) != OUT_SENT)
		return false;
	if (unlikely(r->failing))
		die(qp);
	return true;
}

/* --- receives --- */

/* Takes a receive for the message, unless one is waiting that a dropped message left. */
static bool take_receive(struct qp *qp)
{
	struct qp_resp *r = &qp->resp;
	enum srq_take taken;

	if (r->have_rqe)
		return true;
	if (!r->pkt_srq) {
		r->have_rqe = qp->rq && rq_take(qp->rq, &r->rqe);
		return r->have_rqe;
	}
	taken = srq_take(r->pkt_srq, &r->rqe);
	r->have_rqe = taken != SRQ_EMPTY;
	if (taken == SRQ_TAKEN_LIMIT)
		qp->engine->ops->async_event(qp->engine, IBV_EVENT_SRQ_LIMIT_REACHED,
					     r->pkt_srq->user);
	return r->have_rqe;
}

static void complete_receive(struct qp *qp, const struct wire_pkt *pkt, struct ibv_wc *wc)
{
	struct qp_resp *r = &qp->resp;

	wc->wr_id = r->rqe.wr_id;
	wc->status = IBV_WC_SUCCESS;
	wc->qp_num = qp->qpn;
	if (pkt->op->headers & WIRE_H_IMMDT) {
		wc->wc_flags |= IBV_WC_WITH_IMM;
		wc->imm_data = pkt->imm_be;
	} else if (pkt->op->headers & WIRE_H_IETH) {
		wc->wc_flags |= IBV_WC_WITH_INV;
		wc->invalidated_rkey = pkt->inv_rkey;
	}
	r->have_rqe = false;
	qp_complete(qp, r->cq, wc, pkt->se);
}

/* A shared receive's buffers are checked in the SRQ's protection domain, which need not be the QP's. */
static struct pd *recv_pd(const struct qp *qp)
{
	return qp->resp.pkt_srq ? qp->resp.pkt_srq->pd : qp->resp.pd;
}

/* Where receives, keys and completions of this packet come from, when it is not XRC. */
static void own_target(struct qp *qp)
{
	qp->resp.pd = qp->pd;
	qp->resp.cq = qp->recv_cq;
	qp->resp.pkt_srq = qp->srq;
}

/* --- checks of a reliable request, in order --- */

static bool begins(const struct wire_pkt *pkt)
{
	return pkt->op->pos & WIRE_POS_FIRST;
}

static bool ends(const struct wire_pkt *pkt)
{
	return pkt->op->pos & WIRE_POS_LAST;
}

static enum verdict check_sequence(struct qp *qp, const struct wire_pkt *pkt)
{
	struct qp_resp *r = &qp->resp;

	if (r->in_msg == begins(pkt))
		return RESP_BAD_SEQUENCE;
	if (r->in_msg && r->kind != pkt->op->kind)
		return RESP_BAD_SEQUENCE;
	if (r->in_msg && qp->type == IBV_QPT_XRC_RECV && r->srqn != pkt->srqn)
		return RESP_BAD_SEQUENCE;
	return RESP_OK;
}

/* The SRQ that an XRC packet names, if it is one of the QP's domain. */
static struct srq *find_target(struct qp *qp, const struct wire_pkt *pkt)
{
	struct srq *srq = engine_srq_find(qp->engine, pkt->srqn);

	return srq && srq->xrcd == qp->xrcd ? srq : NULL;
}

static enum verdict check_target(struct qp *qp, const struct wire_pkt *pkt)
{
	struct qp_resp *r = &qp->resp;
	struct srq *srq;

	if (qp->type != IBV_QPT_XRC_RECV) {
		own_target(qp);
		return RESP_OK;
	}
	srq = find_target(qp, pkt);
	r->foreign = !srq && foreign_possible(qp);
	if (!srq && !r->foreign)
		return RESP_BAD_TARGET;
	r->srqn = pkt->srqn;
	r->pkt_srq = srq;
	r->pd = srq ? srq->pd : NULL;
	r->cq = srq ? srq->cq : NULL;
	return RESP_OK;
}

static int right_for(const struct wire_pkt *pkt)
{
	switch (pkt->op->kind) {
	case WIRE_KIND_WRITE:
		return IBV_ACCESS_REMOTE_WRITE;
	case WIRE_KIND_READ:
		return IBV_ACCESS_REMOTE_READ;
	case WIRE_KIND_CMP_SWAP:
	case WIRE_KIND_FETCH_ADD:
		return IBV_ACCESS_REMOTE_ATOMIC;
	default:
		return 0;
	}
}

static bool is_atomic(const struct wire_pkt *pkt)
{
	return pkt->op->kind == WIRE_KIND_CMP_SWAP || pkt->op->kind == WIRE_KIND_FETCH_ADD;
}

static enum verdict check_rights(struct qp *qp, const struct wire_pkt *pkt)
{
	int right = right_for(pkt);

	if ((qp->attr.qp_access_flags & right) != (unsigned int)right)
		return RESP_NO_RIGHT;
	/* A QP with no resources for READs and atomics does not do them. */
	if ((is_atomic(pkt) || pkt->op->kind == WIRE_KIND_READ) && qp->type != IBV_QPT_UC &&
	    !qp->attr.max_dest_rd_atomic)
		return RESP_NO_RIGHT;
	return RESP_OK;
}

static enum verdict check_length(struct qp *qp, const struct wire_pkt *pkt)
{
	struct qp_resp *r = &qp->resp;
	uint32_t n = pkt->payload_len, before = begins(pkt) ? 0 : r->offset;

	if (is_atomic(pkt))
		return pkt->va & 7 ? RESP_MISALIGNED : RESP_OK;
	if (pkt->op->kind == WIRE_KIND_READ)
		return pkt->dma_len > RXE_MAX_MSG ? RESP_BAD_LENGTH : RESP_OK;
	if (!ends(pkt) ? n != qp->mtu : n > qp->mtu || (!begins(pkt) && !n))
		return RESP_BAD_LENGTH;
	if (before + n > RXE_MAX_MSG)
		return RESP_BAD_LENGTH;
	if (pkt->op->kind == WIRE_KIND_WRITE) {
		uint32_t total = begins(pkt) ? pkt->dma_len : r->length;

		if (ends(pkt) ? before + n != total : before + n >= total)
			return RESP_BAD_LENGTH;
	}
	return RESP_OK;
}

static enum verdict check_capacity(struct qp *qp, const struct wire_pkt *pkt)
{
	if (!is_atomic(pkt) && pkt->op->kind != WIRE_KIND_READ)
		return RESP_OK;
	if (jobs_full(qp))
		resp_output(qp, LANE_TX_BUDGET);
	return jobs_full(qp) ? RESP_FULL : RESP_OK;
}

static enum verdict check_key(struct qp *qp, const struct wire_pkt *pkt)
{
	uint64_t length = is_atomic(pkt) ? 8 : pkt->dma_len;

	/* A zero-length operation names no memory (IBTA 9.7.4.1.2); a WRITE's later packets are checked as they are stored. */
	if (!right_for(pkt) || !length || !begins(pkt))
		return RESP_OK;
	if (qp->resp.foreign)
		return RESP_OK; /* the owner's to say */
	return mr_remote(qp->engine, qp->resp.pd, qp, pkt->rkey, pkt->va, length, right_for(pkt))
		       ? RESP_OK
		       : RESP_BAD_KEY;
}

static enum verdict check_receive(struct qp *qp, const struct wire_pkt *pkt)
{
	struct qp_resp *r = &qp->resp;
	bool needs = pkt->op->kind == WIRE_KIND_SEND ||
		     (pkt->op->kind == WIRE_KIND_WRITE && (pkt->op->headers & WIRE_H_IMMDT));

	if (!needs || r->foreign)
		return RESP_OK;
	if (!take_receive(qp))
		return RESP_RNR;
	if (pkt->op->kind == WIRE_KIND_SEND &&
	    (begins(pkt) ? 0 : r->offset) + pkt->payload_len > r->rqe.length)
		return RESP_TOO_LONG;
	return RESP_OK;
}

static enum verdict (*const reliable_checks[])(struct qp *, const struct wire_pkt *) = {
	check_sequence, check_target, check_rights,  check_length,
	check_capacity, check_key,    check_receive,
};

/* --- execution --- */

static enum verdict store_send(struct qp *qp, const struct wire_pkt *pkt, uint32_t skip)
{
	struct qp_resp *r = &qp->resp;
	enum ibv_wc_status status;

	if (!pkt->payload_len)
		return RESP_OK;
	status = sge_scatter(qp->engine, recv_pd(qp), r->rqe.sge, r->rqe.num_sge, skip + r->offset,
			     pkt->payload, pkt->payload_len);
	return status == IBV_WC_SUCCESS ? RESP_OK : RESP_LOCAL_FAULT;
}

static enum verdict store_write(struct qp *qp, const struct wire_pkt *pkt)
{
	struct qp_resp *r = &qp->resp;
	uint8_t *dst;

	if (!pkt->payload_len)
		return RESP_OK;
	dst = mr_remote(qp->engine, r->pd, qp, r->rkey, r->va + r->offset, pkt->payload_len,
			IBV_ACCESS_REMOTE_WRITE);
	if (!dst || usercopy(dst, pkt->payload, pkt->payload_len))
		return RESP_BAD_KEY;
	return RESP_OK;
}

static void begin_message(struct qp_resp *r, const struct wire_pkt *pkt)
{
	r->kind = pkt->op->kind;
	r->offset = 0;
	r->va = pkt->va;
	r->rkey = pkt->rkey;
	r->length = pkt->dma_len;
}

static void advance_message(struct qp_resp *r, const struct wire_pkt *pkt)
{
	r->offset += pkt->payload_len;
	r->in_msg = !ends(pkt);
	if (ends(pkt))
		r->msn = psn_add(r->msn, 1);
}

/* One packet of a SEND or WRITE, reliable or not. */
static enum verdict execute_data(struct qp *qp, const struct wire_pkt *pkt)
{
	struct qp_resp *r = &qp->resp;
	bool send = pkt->op->kind == WIRE_KIND_SEND;
	enum verdict v;

	if (begins(pkt))
		begin_message(r, pkt);
	v = send ? store_send(qp, pkt, 0) : store_write(qp, pkt);
	if (v != RESP_OK)
		return v;
	if (ends(pkt) && (pkt->op->headers & WIRE_H_IETH) &&
	    mr_invalidate(qp->engine, r->pd, qp, pkt->inv_rkey, false))
		return RESP_BAD_INVALIDATE;
	advance_message(r, pkt);
	if (ends(pkt) && (send || (pkt->op->headers & WIRE_H_IMMDT))) {
		struct ibv_wc wc = {
			.opcode = send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
			.byte_len = r->offset,
		};

		complete_receive(qp, pkt, &wc);
	}
	return RESP_OK;
}

static void fill_read_job(struct qp_resp_job *job, const struct qp *qp, struct pd *pd,
			  const struct wire_pkt *pkt)
{
	job->npsn = pkt->dma_len ? (pkt->dma_len + qp->mtu - 1) / qp->mtu : 1;
	job->va = pkt->va;
	job->rkey = pkt->rkey;
	job->length = pkt->dma_len;
	job->pd = pd;
	job->foreign = !pd;
	job->srqn = pkt->srqn;
}

static enum verdict execute_read(struct qp *qp, const struct wire_pkt *pkt, uint32_t *npsn)
{
	struct qp_resp *r = &qp->resp;
	struct qp_resp_job *job;

	r->msn = psn_add(r->msn, 1);
	response_acks(r);
	job = job_alloc(qp, pkt->psn, WIRE_KIND_READ);
	fill_read_job(job, qp, r->pd, pkt);
	*npsn = job->npsn;
	return RESP_OK;
}

static enum verdict change_word(struct qp *qp, const struct wire_pkt *pkt, uint64_t *orig)
{
	uint64_t *word;
	int ret;

	word = (uint64_t *)mr_remote(qp->engine, qp->resp.pd, qp, pkt->rkey, pkt->va, 8,
				     IBV_ACCESS_REMOTE_ATOMIC);
	/* The peer's address was a multiple of 8; where it lies here need not be, for an odd iova. */
	if (!word || (uintptr_t)word & 7)
		return RESP_BAD_KEY;
	if (pkt->op->kind == WIRE_KIND_CMP_SWAP)
		ret = usercopy_cas64(word, pkt->compare, pkt->swap_add, orig);
	else
		ret = usercopy_fadd64(word, pkt->swap_add, orig);
	return ret ? RESP_BAD_KEY : RESP_OK;
}

/* The answer to an atomic that has been executed, and its place in the ring of results. */
static void answer_atomic(struct qp *qp, const struct wire_pkt *pkt, uint64_t orig)
{
	struct qp_resp *r = &qp->resp;

	r->atomics[r->atomic_next++ & r->ring_mask] = (struct qp_resp_atomic){pkt->psn, orig};
	r->msn = psn_add(r->msn, 1);
	response_acks(r);
	job_alloc(qp, pkt->psn, pkt->op->kind)->orig = orig;
}

static enum verdict execute_atomic(struct qp *qp, const struct wire_pkt *pkt)
{
	uint64_t orig;
	enum verdict v = change_word(qp, pkt, &orig);

	if (v == RESP_OK)
		answer_atomic(qp, pkt, orig);
	return v;
}

/* --- SRQs of other processes --- */

/* The runner's part: whatever the owner did for the packet, the connection moves on. */
static enum verdict execute_foreign(struct qp *qp, const struct wire_pkt *pkt, uint32_t *npsn)
{
	struct qp_resp *r = &qp->resp;
	uint64_t orig = 0;
	enum verdict v;

	if (pkt->op->kind == WIRE_KIND_READ) {
		v = foreign_check(qp, pkt);
		return v == RESP_OK ? execute_read(qp, pkt, npsn) : v;
	}
	v = foreign_execute(qp, pkt, &orig);
	if (v != RESP_OK)
		return v;
	if (is_atomic(pkt)) {
		answer_atomic(qp, pkt, orig);
		return RESP_OK;
	}
	if (begins(pkt))
		begin_message(r, pkt);
	advance_message(r, pkt);
	return RESP_OK;
}

/* What the runner has not checked, and what must hold whoever asks. */
static enum verdict (*const owner_checks[])(struct qp *, const struct wire_pkt *) = {
	check_sequence, check_target, check_length, check_key, check_receive,
};

enum verdict resp_serve(struct qp *qp, const struct wire_pkt *pkt, uint64_t *orig)
{
	struct qp_resp *r = &qp->resp;
	enum verdict v = RESP_OK;

	for (unsigned int i = 0; i < ARRAY_SIZE(owner_checks) && v == RESP_OK; i++)
		v = owner_checks[i](qp, pkt);
	if (v == RESP_OK)
		v = is_atomic(pkt) ? change_word(qp, pkt, orig) : execute_data(qp, pkt);
	if (v <= RESP_SILENT)
		return v;
	if (r->have_rqe)
		qp_fail_receive(qp, consequences[v].recv_status);
	r->in_msg = false;
	return v;
}

/* --- reliable requests --- */

static void replay_atomic(struct qp *qp, const struct wire_pkt *pkt)
{
	struct qp_resp *r = &qp->resp;
	uint32_t kept = min_t(uint32_t, r->atomic_next, r->ring_mask + 1);

	for (uint32_t i = 1; i <= kept; i++) {
		const struct qp_resp_atomic *a = &r->atomics[(r->atomic_next - i) & r->ring_mask];

		if (a->psn == pkt->psn) {
			stats_inc(&qp->lane->stats, STAT_duplicates);
			job_alloc(qp, pkt->psn, pkt->op->kind)->orig = a->orig;
			return;
		}
	}
	stats_drop(&qp->lane->stats, DROP_dup_invalid);
}

/*
 * Only what has been answered once is read again: the whole range must lie before the expected PSN. A
 * duplicate may come in the middle of a message, whose target it must leave alone.
 */
static void replay_read(struct qp *qp, const struct wire_pkt *pkt)
{
	uint32_t npsn = pkt->dma_len ? (pkt->dma_len - 1) / qp->mtu + 1 : 1;
	struct pd *pd = qp->pd;
	enum verdict v = RESP_OK;

	if (qp->type == IBV_QPT_XRC_RECV) {
		struct srq *srq = find_target(qp, pkt);

		pd = srq ? srq->pd : NULL;
	}
	if (pkt->dma_len > RXE_MAX_MSG || psn_before(qp->resp.psn, psn_add(pkt->psn, npsn)))
		v = RESP_BAD_LENGTH;
	else if (!pd)
		v = foreign_possible(qp) ? foreign_check(qp, pkt) : RESP_BAD_TARGET;
	else if (pkt->dma_len && !mr_remote(qp->engine, pd, qp, pkt->rkey, pkt->va, pkt->dma_len,
					    IBV_ACCESS_REMOTE_READ))
		v = RESP_BAD_KEY;
	if (v != RESP_OK) {
		stats_drop(&qp->lane->stats,
			   v == RESP_SILENT ? DROP_owner_silent : DROP_dup_invalid);
		return;
	}
	stats_inc(&qp->lane->stats, STAT_duplicates);
	fill_read_job(job_alloc(qp, pkt->psn, WIRE_KIND_READ), qp, pd, pkt);
}

static void duplicate(struct qp *qp, const struct wire_pkt *pkt)
{
	struct qp_resp *r = &qp->resp;
	bool data = pkt->op->kind == WIRE_KIND_SEND || pkt->op->kind == WIRE_KIND_WRITE;

	if (data) {
		stats_inc(&qp->lane->stats, STAT_duplicates);
		/* A NAK that is still owed says more than a repeated acknowledge. */
		if (!r->ack_owed || WIRE_SYN_KIND(r->ack_syndrome) == WIRE_SYN_ACK)
			owe_ack(qp, psn_add(r->psn, -1), WIRE_ACK_NO_CREDITS, true);
		return;
	}
	if (check_rights(qp, pkt) != RESP_OK) {
		stats_drop(&qp->lane->stats, DROP_dup_invalid);
		return;
	}
	if (check_capacity(qp, pkt) != RESP_OK || r->failing || qp->state == IBV_QPS_ERR)
		stats_drop(&qp->lane->stats, DROP_rd_atomic);
	else if (pkt->op->kind == WIRE_KIND_READ)
		replay_read(qp, pkt);
	else
		replay_atomic(qp, pkt);
}

static void gap(struct qp *qp)
{
	struct qp_resp *r = &qp->resp;

	stats_drop(&qp->lane->stats, DROP_gap);
	if (r->nak_sent)
		return;
	r->nak_sent = true;
	owe_ack(qp, r->psn, WIRE_NAK_SEQUENCE, true);
}

static enum verdict check(struct qp *qp, const struct wire_pkt *pkt)
{
	enum verdict v = RESP_OK;

	for (unsigned int i = 0; i < ARRAY_SIZE(reliable_checks) && v == RESP_OK; i++)
		v = reliable_checks[i](qp, pkt);
	return v;
}

static void reliable(struct qp *qp, const struct wire_pkt *pkt)
{
	struct qp_resp *r = &qp->resp;
	int32_t ahead = psn_sub(pkt->psn, r->psn);
	uint32_t npsn = 1;
	enum verdict v;

	if (unlikely(r->failing)) {
		stats_drop(&qp->lane->stats, DROP_qp_state);
		return;
	}
	if (unlikely(ahead > 0)) {
		gap(qp);
		return;
	}
	if (unlikely(ahead < 0)) {
		duplicate(qp, pkt);
		return;
	}
	v = check(qp, pkt);
	if (unlikely(r->failing || qp->state == IBV_QPS_ERR))
		return; /* a response that was owed before could not be given */
	if (v == RESP_OK) {
		if (unlikely(r->foreign))
			v = execute_foreign(qp, pkt, &npsn);
		else if (pkt->op->kind == WIRE_KIND_READ)
			v = execute_read(qp, pkt, &npsn);
		else if (is_atomic(pkt))
			v = execute_atomic(qp, pkt);
		else
			v = execute_data(qp, pkt);
	}
	switch (v) {
	case RESP_OK:
		r->psn = psn_add(r->psn, npsn);
		r->nak_sent = false;
		/* A NAK for what has just come, if it is still here: PSN and MSN would contradict each other. */
		if (r->ack_owed && WIRE_SYN_KIND(r->ack_syndrome) != WIRE_SYN_ACK)
			r->ack_owed = r->ack_urgent = false;
		if (pkt->ackreq && !is_atomic(pkt) && pkt->op->kind != WIRE_KIND_READ)
			owe_ack(qp, pkt->psn, WIRE_ACK_NO_CREDITS, false);
		break;
	case RESP_RNR:
		/* What follows the refused packet is a gap that needs no NAK of its own. */
		r->nak_sent = true;
		owe_ack(qp, pkt->psn, WIRE_RNR(qp->attr.min_rnr_timer), true);
		break;
	case RESP_FULL:
		stats_drop(&qp->lane->stats, DROP_rd_atomic);
		break;
	case RESP_SILENT:
		/*
		 * Not a sequence NAK for what follows: the requester's timer is the time that the owner gets. But
		 * what the message has got so far is acknowledged, asked or not: that gives all tries back.
		 */
		if (r->in_msg && !r->nak_sent)
			owe_ack(qp, psn_add(r->psn, -1), WIRE_ACK_NO_CREDITS, true);
		r->nak_sent = true;
		stats_drop(&qp->lane->stats, DROP_owner_silent);
		break;
	default:
		refuse(qp, v, pkt->psn);
		resp_output(qp, LANE_TX_BUDGET);
	}
}

/* --- unreliable requests --- */

static void drop_message(struct qp *qp, enum stat_id reason)
{
	qp->resp.in_msg = false;
	stats_drop(&qp->lane->stats, reason);
}

/* UC, IBTA 9.8.2: whatever is wrong with a message, it is dropped, and the next FIRST or ONLY starts afresh. */
static void unreliable(struct qp *qp, const struct wire_pkt *pkt)
{
	struct qp_resp *r = &qp->resp;
	bool in_order = pkt->psn == r->psn;
	enum verdict v;

	r->psn = psn_add(pkt->psn, 1);
	if (begins(pkt)) {
		r->in_msg = false; /* the message in progress lost its end */
	} else if (!r->in_msg || !in_order) {
		drop_message(qp, DROP_uc_sequence);
		return;
	}
	v = check(qp, pkt);
	if (v == RESP_OK)
		v = execute_data(qp, pkt);
	if (v == RESP_OK)
		return;
	if (v == RESP_LOCAL_FAULT || v == RESP_TOO_LONG) {
		/* The receive's own fault takes the QP down (IBTA 9.9.3). */
		qp_fail_receive(qp, consequences[v].recv_status);
		qp_state_error(qp);
		return;
	}
	drop_message(qp, v == RESP_RNR ? DROP_no_recv : DROP_uc_invalid);
}

/* The 40 bytes before a datagram: an IPv6 header, or 20 unused bytes and an IPv4 header (Annex A17). */
static void build_grh(uint8_t grh[GRH_LEN], const struct wire_ip *ip, uint32_t transport_len)
{
	uint8_t headers[WIRE_IP_UDP_MAX];
	size_t n = wire_ip_udp(headers, ip, transport_len + WIRE_ICRC_LEN) - 8;

	memset(grh, 0, GRH_LEN);
	memcpy(grh + GRH_LEN - n, headers, n);
}

static void datagram(struct qp *qp, const struct wire_pkt *pkt, const struct link_rx *rx)
{
	struct qp_resp *r = &qp->resp;
	uint8_t grh[GRH_LEN];
	struct ibv_wc wc = {
		.opcode = IBV_WC_RECV,
		.byte_len = GRH_LEN + pkt->payload_len,
		.src_qp = pkt->src_qpn,
		.wc_flags = IBV_WC_GRH,
	};
	enum ibv_wc_status status;

	own_target(qp);
	if (pkt->qkey != qp->attr.qkey) {
		stats_drop(&qp->lane->stats, DROP_qkey);
		return;
	}
	if (pkt->payload_len > qp->mtu) {
		stats_drop(&qp->lane->stats, DROP_ud_length);
		return;
	}
	if (!take_receive(qp)) {
		stats_drop(&qp->lane->stats, DROP_no_recv);
		return;
	}
	if (GRH_LEN + pkt->payload_len > r->rqe.length) {
		stats_drop(&qp->lane->stats, DROP_ud_length);
		return;
	}
	build_grh(grh, &rx->ip, rx->len);
	r->offset = 0;
	status = sge_scatter(qp->engine, recv_pd(qp), r->rqe.sge, r->rqe.num_sge, 0, grh, GRH_LEN);
	if (status == IBV_WC_SUCCESS && store_send(qp, pkt, GRH_LEN) == RESP_OK) {
		complete_receive(qp, pkt, &wc);
		return;
	}
	qp_fail_receive(qp, IBV_WC_LOC_PROT_ERR);
	qp_state_error(qp);
}

void resp_packet(struct qp *qp, const struct wire_pkt *pkt, const struct link_rx *rx)
{
	if (qp->type == IBV_QPT_UD)
		datagram(qp, pkt, rx);
	else if (qp->type == IBV_QPT_UC)
		unreliable(qp, pkt);
	else
		reliable(qp, pkt);
}
