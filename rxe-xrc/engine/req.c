/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The requester: cuts work requests into packets (IBTA Vol 1 9.7.3, 9.7.7; Annex A14).
 *
 * A packet is a function of its request and of its number in it: k = psn - first_psn. Nothing else is
 * remembered of a packet, so going back after a loss is one assignment: psn = una, and the same packets
 * come out again.
 *
 *     SEND, WRITE   packet k carries bytes [k * mtu, (k + 1) * mtu) of the message
 *     READ          takes one PSN for each response; a request at k asks for the bytes from k * mtu on
 *     atomics       one PSN
 *
 * What holds the requester up, in the order of the checks: an RNR wait; a fence; the SQD state; the window
 * of unacknowledged PSNs; max_rd_atomic; room in the link.
 *
 * The window counts READ responses too, since they will arrive in this side's receive buffer: a READ longer
 * than the window goes out as several READ requests, each for a part. On the wire they look like
 * several READs.
 *
 * AckReq is set on the last packet of a message, on every 16th packet, and where the window ends, so a
 * window is never full of packets that nobody will acknowledge.
 */
#include "engine/req.h"

#include "engine/comp.h"
#include "engine/mr.h"
#include "engine/qp_state.h"
#include "engine/sge.h"
#include "wire/psn.h"

enum step { STEP_SENT, STEP_LOCAL, STEP_IDLE, STEP_FULL };

/* The low five bits of the opcode, by what a request is and where a packet of it stands (enum wire_pos). */
static const struct {
	uint8_t code[4]; /* MIDDLE, FIRST, LAST, ONLY */
} req_ops[] = {
	[IBV_WR_RDMA_WRITE] = {{0x07, 0x06, 0x08, 0x0a}},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {{0x07, 0x06, 0x09, 0x0b}},
	[IBV_WR_SEND] = {{0x01, 0x00, 0x02, 0x04}},
	[IBV_WR_SEND_WITH_IMM] = {{0x01, 0x00, 0x03, 0x05}},
	[IBV_WR_RDMA_READ] = {{0x0c, 0x0c, 0x0c, 0x0c}},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {{0x13, 0x13, 0x13, 0x13}},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {{0x14, 0x14, 0x14, 0x14}},
	[IBV_WR_SEND_WITH_INV] = {{0x01, 0x00, 0x16, 0x17}},
};

void req_reset(struct qp *qp, uint32_t psn)
{
	struct qp_req *r = &qp->req;
	struct link *link = qp->lane->link;
	uint32_t wqe = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
	uint32_t room = REQ_WINDOW_MAX;

	memset(r, 0, sizeof(*r));
	r->una = r->psn = r->next = psn & PSN_MASK;
	r->wqe = wqe;
	if (link)
		room = link->ops->rx_capacity(link, qp->mtu + WIRE_MAX_HDR_LEN);
	r->window_max = max_t(uint32_t, REQ_WINDOW_MIN, min_t(uint32_t, room, REQ_WINDOW_MAX));
	r->window = min_t(uint32_t, REQ_WINDOW_START, r->window_max);
	r->retries = qp->attr.retry_cnt;
	r->rnr_retries = qp->attr.rnr_retry;
	r->deadline = TIMER_NEVER;
}

void req_window_ack(struct qp *qp, uint32_t psns)
{
	struct qp_req *r = &qp->req;

	r->credit += psns;
	if (!r->lossy) {
		/* As many again for each window that came through: doubles until the first loss. */
		r->window = min_t(uint32_t, r->window + psns, r->window_max);
	} else if (r->credit >= r->window) {
		r->credit -= r->window;
		r->window = min_t(uint32_t, r->window + 1, r->window_max);
	}
}

void req_window_loss(struct qp *qp)
{
	struct qp_req *r = &qp->req;

	r->lossy = true;
	r->credit = 0;
	r->window = max_t(uint32_t, r->window / 2, min_t(uint32_t, REQ_WINDOW_MIN, r->window_max));
}

void req_congested(struct qp *qp)
{
	if (qp->type != IBV_QPT_UD && qp->type != IBV_QPT_XRC_RECV)
		req_window_loss(qp);
}

void req_go_back(struct qp *qp)
{
	struct qp_req *r = &qp->req;
	uint32_t tail = atomic_load_explicit(&qp->sq.tail, memory_order_acquire);

	/* A request that failed here half-way is tried again: its first packets may have been lost. */
	if (r->wqe != tail && wq_slot(&qp->sq, r->wqe)->state == SWQE_SENT)
		wq_slot(&qp->sq, r->wqe)->status = IBV_WC_SUCCESS;
	r->psn = r->una;
	r->wqe = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
	r->rd_tail = r->rd_head;
	r->since_ack = 0;
	r->deadline = TIMER_NEVER; /* until the packet has been sent again */
	lane_ready(qp);
}

/* Builds one packet in the link and commits it. STEP_FULL: no room; STEP_IDLE: the gather failed. */
static enum step emit(struct qp *qp, const struct link_dest *to, struct wire_pkt *pkt,
		      struct swqe *wqe, uint32_t offset, uint32_t n)
{
	struct link *link = qp->lane->link;
	uint32_t hdr = pkt->op->hdr_len, pad = wire_pad(n);
	uint8_t *b = link->ops->tx_reserve(link, to, hdr + n + pad);

	if (!b)
		return STEP_FULL;
	pkt->pkey = WIRE_PKEY_DEFAULT;
	pkt->mig = true;
	pkt->fecn = pkt->becn = false;
	pkt->payload_len = n;
	wire_encode_hdr(b, pkt);
	if (n && (wqe->flags & IBV_SEND_INLINE)) {
		memcpy(b + hdr, (uint8_t *)wqe->sge + offset, n);
	} else if (n) {
		wqe->status =
			sge_gather(qp->engine, qp->pd, wqe->sge, wqe->num_sge, offset, b + hdr, n);
		if (wqe->status != IBV_WC_SUCCESS)
			return STEP_IDLE;
	}
	memset(b + hdr + n, 0, pad);
	link->ops->tx_commit(link, 0);
	return STEP_SENT;
}

static const struct wire_opcode *op_of(const struct qp *qp, const struct swqe *wqe,
				       enum wire_pos pos)
{
	return wire_opcode(qp->transport << 5 | req_ops[wqe->opcode].code[pos]);
}

/* What the headers of every request share; the rest is its opcode's. */
static void fill(const struct qp *qp, const struct swqe *wqe, enum wire_pos pos, uint32_t psn,
		 struct wire_pkt *pkt)
{
	pkt->op = op_of(qp, wqe, pos);
	pkt->psn = psn;
	pkt->dest_qpn = qp->attr.dest_qp_num;
	pkt->srqn = wqe->srqn;
	pkt->imm_be = wqe->imm_be;
	pkt->inv_rkey = wqe->imm_be;
	pkt->va = wqe->remote_addr;
	pkt->rkey = wqe->rkey;
	pkt->dma_len = wqe->length;
	pkt->se = (pos & WIRE_POS_LAST) && (wqe->flags & IBV_SEND_SOLICITED) && !req_is_read(wqe) &&
		  wqe->opcode != IBV_WR_RDMA_WRITE;
	pkt->ackreq = false;
}

static enum wire_pos pos_of(uint32_t k, uint32_t npsn)
{
	return (k == 0 ? WIRE_POS_FIRST : 0) | (k + 1 == npsn ? WIRE_POS_LAST : 0);
}

/* The acknowledge timeout, IBTA 9.7.6.1.3: 4.096 us * 2^timeout; 0 is none. */
void req_arm(struct qp *qp)
{
	struct qp_req *r = &qp->req;

	if (r->deadline != TIMER_NEVER || !qp->attr.timeout)
		return;
	r->deadline = qp->lane->now + (4096ull << qp->attr.timeout);
	lane_deadline(qp, r->deadline);
}

/* A READ request for @n responses from packet @k on, or an atomic. */
static enum step send_read(struct qp *qp, struct swqe *wqe, uint32_t k, uint32_t n)
{
	struct qp_req *r = &qp->req;
	struct wire_pkt pkt;
	enum step step;

	fill(qp, wqe, WIRE_POS_ONLY, r->psn, &pkt);
	pkt.ackreq = true;
	if (wqe->opcode == IBV_WR_RDMA_READ) {
		pkt.va += (uint64_t)k * qp->mtu;
		pkt.dma_len =
			min_t(uint64_t, wqe->length - (uint64_t)k * qp->mtu, (uint64_t)n * qp->mtu);
	} else {
		pkt.swap_add = wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? wqe->atomic.compare_add
									  : wqe->atomic.swap;
		pkt.compare =
			wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 0 : wqe->atomic.compare_add;
	}
	step = emit(qp, &qp->dest, &pkt, wqe, 0, 0);
	if (step != STEP_SENT)
		return step;
	r->psn = psn_add(r->psn, n);
	if (r->rd_tail == r->rd_sent)
		r->rd_end[r->rd_sent++ % RXE_MAX_RD_ATOMIC] = r->psn;
	r->rd_tail++;
	r->since_ack = 0;
	return STEP_SENT;
}

/*
 * How many responses of the READ's remaining @left to ask for now; 0: none yet. What is repeated ends where
 * it ended the first time, whatever the window is now: if it went further, it would be half a duplicate
 * and half new, and no responder answers that.
 */
static uint32_t read_share(const struct qp *qp, uint32_t left, uint32_t in_flight)
{
	const struct qp_req *r = &qp->req;
	uint32_t n;

	if (r->rd_tail != r->rd_sent)
		return psn_sub(r->rd_end[r->rd_tail % RXE_MAX_RD_ATOMIC], r->psn);
	n = min_t(uint32_t, left, r->window - in_flight);
	/* Not in crumbs: wait until half of the window is free for a long READ. */
	return n < left && n < (r->window + 1) / 2 ? 0 : n;
}

static enum step send_data(struct qp *qp, struct swqe *wqe, uint32_t k, bool window_ends)
{
	struct qp_req *r = &qp->req;
	uint32_t offset = k * qp->mtu;
	enum wire_pos pos = pos_of(k, wqe->npsn);
	struct wire_pkt pkt;
	enum step step;

	fill(qp, wqe, pos, r->psn, &pkt);
	pkt.ackreq = (pos & WIRE_POS_LAST) || r->since_ack + 1 >= REQ_ACK_EVERY || window_ends;
	step = emit(qp, &qp->dest, &pkt, wqe, offset,
		    min_t(uint32_t, qp->mtu, wqe->length - offset));
	if (step != STEP_SENT)
		return step;
	r->since_ack = pkt.ackreq ? 0 : r->since_ack + 1;
	r->psn = psn_add(r->psn, 1);
	return STEP_SENT;
}

/* One packet of a reliable request. */
static enum step send_reliable(struct qp *qp, struct swqe *wqe)
{
	struct qp_req *r = &qp->req;
	uint32_t k = psn_sub(r->psn, wqe->first_psn);
	uint32_t in_flight = psn_sub(r->psn, r->una);
	uint32_t left = wqe->npsn - k, n;
	enum step step;

	if (in_flight >= r->window)
		return STEP_IDLE;
	if (req_is_read(wqe)) {
		if (r->rd_tail - r->rd_head >= qp->attr.max_rd_atomic)
			return STEP_IDLE;
		n = read_share(qp, left, in_flight);
		if (!n)
			return STEP_IDLE;
		step = send_read(qp, wqe, k, n);
	} else {
		n = 1;
		step = send_data(qp, wqe, k, in_flight + 1 >= r->window);
	}
	if (step != STEP_SENT)
		return step;
	if (psn_before(r->next, r->psn))
		r->next = r->psn;
	if (n == left)
		r->wqe++;
	req_arm(qp);
	return STEP_SENT;
}

/* One packet of an unreliable request, which is complete when its last packet has been sent. */
static enum step send_unreliable(struct qp *qp, struct swqe *wqe)
{
	struct qp_req *r = &qp->req;
	uint32_t k = psn_sub(r->psn, wqe->first_psn), offset = k * qp->mtu;
	const struct link_dest *to = &qp->dest;
	enum wire_pos pos = pos_of(k, wqe->npsn);
	struct wire_pkt pkt;
	enum step step;

	fill(qp, wqe, pos, r->psn, &pkt);
	if (qp->type == IBV_QPT_UD) {
		wqe->ud.to.flow = link_flow(wqe->ud.qpn);
		to = &wqe->ud.to;
		pkt.dest_qpn = wqe->ud.qpn;
		/* A Q_Key with the top bit set stands for the QP's own (IBTA 10.2.5). */
		pkt.qkey = wqe->ud.qkey & 0x80000000 ? qp->attr.qkey : wqe->ud.qkey;
		pkt.src_qpn = qp->qpn;
	}
	step = emit(qp, to, &pkt, wqe, offset, min_t(uint32_t, qp->mtu, wqe->length - offset));
	if (step != STEP_SENT)
		return step;
	r->psn = r->next = r->una = psn_add(r->psn, 1);
	if (pos & WIRE_POS_LAST)
		qp_retire(qp, IBV_WC_SUCCESS);
	return STEP_SENT;
}

static enum ibv_wc_status execute_bind(struct qp *qp, const struct swqe *wqe)
{
	struct mr *mw = mr_find_index(qp->engine, wqe->bind.mw_key);
	struct mr *parent = wqe->bind.length ? mr_find(qp->engine, wqe->bind.lkey) : NULL;

	if (!mw)
		return IBV_WC_MW_BIND_ERR;
	return mw_bind(qp, mw, parent, wqe->rkey, wqe->bind.addr, wqe->bind.length,
		       wqe->bind.access);
}

static void execute_local(struct qp *qp, struct swqe *wqe)
{
	if (wqe->opcode == IBV_WR_BIND_MW)
		wqe->status = execute_bind(qp, wqe);
	else if (mr_invalidate(qp->engine, qp->pd, qp, wqe->imm_be, true))
		wqe->status = IBV_WC_LOC_QP_OP_ERR;
	wqe->state = SWQE_DONE;
	if (wqe->status == IBV_WC_SUCCESS)
		qp->req.wqe++;
	comp_local(qp);
}

/* A request's turn has come for the first time. Return: whether it may start. */
static bool start(struct qp *qp, struct swqe *wqe)
{
	struct qp_req *r = &qp->req;

	if (qp->state == IBV_QPS_SQD)
		return false;
	if ((wqe->flags & IBV_SEND_FENCE) && r->rd_head != r->rd_tail)
		return false;
	if (req_is_local(wqe))
		return true;
	wqe->first_psn = r->next;
	wqe->npsn = 1;
	if (wqe->length > qp->mtu && !swqe_is_atomic(wqe))
		wqe->npsn = (wqe->length + qp->mtu - 1) / qp->mtu;
	wqe->state = SWQE_SENT;
	return true;
}

static enum step step(struct qp *qp)
{
	struct qp_req *r = &qp->req;
	struct swqe *wqe;

	if (r->rnr_wait || r->wqe == atomic_load_explicit(&qp->sq.tail, memory_order_acquire))
		return STEP_IDLE;
	wqe = wq_slot(&qp->sq, r->wqe);
	if (wqe->status != IBV_WC_SUCCESS)
		return STEP_IDLE; /* failed here; completes when those before it have */
	if (wqe->state == SWQE_POSTED && !start(qp, wqe))
		return STEP_IDLE;
	if (req_is_local(wqe)) {
		if (wqe->state == SWQE_POSTED)
			execute_local(qp, wqe);
		else
			r->wqe++; /* executed already, before going back */
		return STEP_LOCAL;
	}
	if (qp->type == IBV_QPT_UD || qp->type == IBV_QPT_UC)
		return send_unreliable(qp, wqe);
	return send_reliable(qp, wqe);
}

/* In SQD: has all that was started been acknowledged? */
static void check_drained(struct qp *qp)
{
	struct qp_req *r = &qp->req;

	if (qp->state != IBV_QPS_SQD || !qp->sqd_notify || r->una != r->next)
		return;
	qp->sqd_notify = false;
	qp_event(qp, IBV_EVENT_SQ_DRAINED);
}

bool req_run(struct qp *qp)
{
	bool did = false;

	for (unsigned int budget = LANE_TX_BUDGET; budget; budget--) {
		enum step s;

		if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE)
			qp_state_flush(qp);
		if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
			return did;
		s = step(qp);
		if (s == STEP_IDLE || s == STEP_FULL) {
			if (s == STEP_FULL)
				lane_ready(qp);
			else
				comp_local(qp); /* a request may have failed just now */
			check_drained(qp);
			return did;
		}
		did = true;
	}
	lane_ready(qp);
	return did;
}
