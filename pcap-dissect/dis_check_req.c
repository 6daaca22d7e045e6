/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules for requests: what may follow what, how long, and when a requester may send again.
 *
 * Requests are compared with their neighbours by PSN, so that the order in which they came does not
 * matter, and a hole between them ends all comparing.
 *
 * Sending again is harder, for a network may double, delay and lose. What proves something is where
 * resending begins, the head: it is the oldest request that the requester takes as unacknowledged, and so
 * the heads of a requester never go back. Where packets are missing, doubled or reordered, what looks like a
 * head may be none, and this is not asked.
 */
#include "pcap-dissect/dis_check.h"

#include "wire/psn.h"

#define NAK_IGNORED_PACKETS 256	       /* new packets behind a NAK ... */
#define NAK_IGNORED_NS	    1000000000 /* ... and later than any packet in flight */
#define NO_ACKREQ_MAX	    512
#define EARLY_MAX	    2 /* one may be a retransmission that crossed the RNR NAK */
#define BACK_MAX	    8 /* of at most twice as many heads; some may be packets that were delayed */
#define RETRIES_MAX	    8 /* seven retries, and one that a lost NAK's may hide */
#define GAP_FOLLOWERS	    4
#define GAP_MISSED	    4

static bool is_multi(const struct dis_req *r)
{
	uint8_t kind = wire_opcode_table[r->opcode].kind;

	return kind == WIRE_KIND_SEND || kind == WIRE_KIND_WRITE;
}

/* @b has the PSN behind @a. */
static void check_neighbours(const struct dis_half *h, const struct dis_req *a,
			     const struct dis_req *b, uint64_t number)
{
	const struct wire_opcode *oa = &wire_opcode_table[a->opcode];
	const struct wire_opcode *ob = &wire_opcode_table[b->opcode];

	if (a->flags & (DIS_REQ_HOLE | DIS_REQ_GUESSED) || b->flags & DIS_REQ_HOLE)
		return;
	if (dis_req_ends(a) != dis_req_begins(b) || (!dis_req_ends(a) && oa->kind != ob->kind)) {
		dis_report(DIS_RULE_OPCODE_SEQUENCE, number, "%s behind %s",
			   dis_opcode_words(b->opcode), dis_opcode_words(a->opcode));
		return;
	}
	if (!dis_req_ends(a) && h->transport == WIRE_TRANSPORT_XRC && a->srqn != b->srqn)
		dis_report(DIS_RULE_SRQN_CHANGED, number, "0x%06x behind 0x%06x", b->srqn, a->srqn);
}

/* The message of entry @at, when all of it is there: do the lengths add up? */
static void check_message(const struct dis_log *l, const struct dis_req *at, uint64_t number)
{
	const struct dis_req *first = at, *last = at;
	uint64_t sum = 0;

	while (!dis_req_ends(last)) {
		if (++last == l->e + l->n || last->flags & DIS_REQ_HOLE || dis_req_begins(last))
			return;
	}
	while (!dis_req_begins(first)) {
		if (first-- == l->e || first->flags & DIS_REQ_HOLE || dis_req_ends(first))
			return;
	}
	if (wire_opcode_table[first->opcode].kind != WIRE_KIND_WRITE || first == last)
		return;
	for (const struct dis_req *r = first; r <= last; r++)
		sum += r->payload;
	if (sum != first->dma_len)
		dis_report(DIS_RULE_WRITE_LENGTH, number, "%llu bytes, RETH %u",
			   (unsigned long long)sum, first->dma_len);
}

static void check_length(const struct dis_half *h, const struct dis_req *r, uint64_t number)
{
	bool last = dis_req_ends(r);

	if (!is_multi(r))
		return;
	if (!last && (h->pmtu ? r->payload != h->pmtu : true)) {
		dis_report(DIS_RULE_MTU_PAYLOAD, number, "%u bytes, the path MTU is %u", r->payload,
			   h->pmtu);
		return;
	}
	if (last && ((!r->payload && !dis_req_begins(r)) || (h->pmtu && r->payload > h->pmtu)))
		dis_report(DIS_RULE_LAST_LENGTH, number, "%u bytes in %s, the path MTU is %u",
			   r->payload, dis_opcode_words(r->opcode), h->pmtu);
}

/* An entry that was not in the log before. */
static void check_new(const struct dis_event *ev)
{
	struct dis_log *l = ev->half->log;
	const struct dis_req *r = ev->req;
	uint64_t number = ev->p->number;

	check_length(ev->half, r, number);
	if (r > l->e)
		check_neighbours(ev->half, r - 1, r, number);
	if (r + 1 < l->e + l->n)
		check_neighbours(ev->half, r, r + 1, number);
	if (is_multi(r))
		check_message(l, r, number);
}

/* Gaps: they open with NEW, are filled by LATE, and are passed over by an answer. */
static void note_gap(const struct dis_event *ev)
{
	struct dis_checks *c = &ev->half->checks;

	if (ev->kind == DIS_EV_LATE || ev->kind == DIS_EV_OLD || ev->gap)
		c->reordered = true;
	if (ev->kind == DIS_EV_NEW && ev->gap && !c->gap_ok) {
		c->gap_ok = true;
		c->gap_psn = psn_add(ev->req->psn, -(int32_t)ev->gap);
		c->gap_new = 0;
		c->gap_filled = false;
	}
	if (!c->gap_ok)
		return;
	if (ev->kind == DIS_EV_LATE && ev->p->pkt.psn == c->gap_psn) {
		/* Sent again, or only out of order? What comes next tells. */
		c->gap_filled = c->gap_new >= GAP_FOLLOWERS && !c->nak_ok;
		c->gap_ok = c->gap_filled;
		return;
	}
	if (!c->gap_filled) {
		c->gap_new++;
		return;
	}
	c->gap_ok = c->gap_filled = false;
	if (ev->kind != DIS_EV_AGAIN || ev->same_ip || !dis_conns_sure(ev->half))
		return;
	c->gap_missed++;
	if (c->gap_missed == GAP_MISSED && !c->seq_naks)
		dis_report(DIS_RULE_GAP_NOT_NAKED, ev->p->number,
			   "PSN %u was sent again %u packets later, the fourth time", c->gap_psn,
			   c->gap_new);
}

static void check_nak(const struct dis_event *ev)
{
	struct dis_checks *c = &ev->half->checks;
	uint32_t psn = ev->p->pkt.psn;

	if (!c->nak_ok)
		return;
	if (psn_sub(psn, c->nak_psn) <= 0) {
		c->nak_ok = false;
		return;
	}
	if (ev->kind != DIS_EV_NEW)
		return;
	if (++c->nak_new >= NAK_IGNORED_PACKETS && ev->p->ts - c->nak_ts >= NAK_IGNORED_NS) {
		dis_report(DIS_RULE_NAK_IGNORED, ev->p->number,
			   "PSN %u, NAK of packet %llu for PSN %u, %u new packets since", psn,
			   (unsigned long long)c->nak_number, c->nak_psn, c->nak_new);
		c->nak_ok = false;
	}
}

static void check_rnr(const struct dis_event *ev)
{
	struct dis_checks *c = &ev->half->checks;
	int64_t waited = ev->p->ts - c->rnr_ts;

	if (!c->rnr_ok || psn_sub(ev->p->pkt.psn, c->rnr_psn) > 0 || ev->same_ip)
		return;
	c->rnr_ok = false;
	/* An older request comes again, for a reason of its own: a READ response was lost. */
	if (ev->p->pkt.psn != c->rnr_psn)
		return;
	/* A percent for the clocks of two hosts. */
	if (waited >= (int64_t)(c->rnr_ns - c->rnr_ns / 100)) {
		c->rnr_kept++;
		return;
	}
	/* Who waits at other times does so; an early one was on its way when the RNR NAK came. */
	if (++c->rnr_early == EARLY_MAX && !c->rnr_kept && !c->seq_naks && !c->reordered)
		dis_report(DIS_RULE_RNR_EARLY, ev->p->number,
			   "PSN %u after %lld.%03lld ms of %llu.%03llu ms", c->rnr_psn,
			   (long long)(waited / 1000000), (long long)(waited / 1000 % 1000),
			   (unsigned long long)(c->rnr_ns / 1000000),
			   (unsigned long long)(c->rnr_ns / 1000 % 1000));
}

static void check_head(const struct dis_event *ev)
{
	struct dis_checks *c = &ev->half->checks;
	uint32_t psn = ev->p->pkt.psn;
	uint32_t next = psn_add(ev->req->psn, ev->req->span ? ev->req->span : 1);

	/* Where resending went on is no head. */
	if (c->head_ok && psn == c->head_next) {
		c->head_next = next;
		return;
	}
	/* Inside of what is being sent again, and not in order. */
	if (c->head_ok && psn_sub(psn, c->head) > 0 && psn_before(psn, c->head_next))
		c->reordered = true;
	c->heads_all++;
	if (c->head_ok && psn == c->head) {
		if (++c->heads == RETRIES_MAX && !c->reordered && dis_conns_sure(ev->half))
			dis_report(DIS_RULE_RETRY_LIMIT, ev->p->number, "PSN %u", psn);
	} else {
		c->heads = 0;
	}
	if (c->head_ok && psn_before(psn, c->head)) {
		if (c->acked_ok && psn_sub(psn, c->acked) <= 0 &&
		    ev->before.flags & DIS_REQ_ANSWERED && !c->reordered && ++c->back == BACK_MAX &&
		    c->heads_all <= 2 * BACK_MAX)
			dis_report(DIS_RULE_RESEND_ACKED, ev->p->number,
				   "PSN %u, had gone back to PSN %u, for the eighth time", psn,
				   c->head);
		return;
	}
	c->head_ok = true;
	c->head = psn;
	c->head_next = next;
}

static void check_again(const struct dis_event *ev)
{
	const struct dis_req *old = &ev->before;
	const struct wire_pkt *pkt = &ev->p->pkt;
	struct dis_checks *c = &ev->half->checks;
	bool part = pkt->psn != old->psn; /* of a READ: the rest is asked for */

	if (ev->same_ip) {
		c->reordered = true;
		return;
	}
	/* Nothing is sent again after a NAK that ends the connection: the NAK was lost, or this is a new one. */
	if (c->fatal_ok && psn_sub(pkt->psn, c->fatal_psn) <= 0)
		c->fatal_ok = false;
	if (!part && !(old->flags & DIS_REQ_ANSWERED) &&
	    (old->opcode != pkt->op->code || old->payload != pkt->payload_len ||
	     (ev->half->transport == WIRE_TRANSPORT_XRC && old->srqn != pkt->srqn)))
		dis_report(DIS_RULE_RESEND_DIFFERS, ev->p->number,
			   "PSN %u: %s of %u bytes, packet %llu was %s of %u", pkt->psn,
			   dis_opcode_words(pkt->op->code), pkt->payload_len,
			   (unsigned long long)old->number, dis_opcode_words(old->opcode),
			   old->payload);
	check_head(ev);
}

static void check_ackreq(const struct dis_event *ev)
{
	struct dis_checks *c = &ev->half->checks;

	if (ev->half->transport == WIRE_TRANSPORT_UC)
		return;
	if (ev->p->pkt.ackreq || ev->gap || ev->kind != DIS_EV_NEW || !is_multi(ev->req))
		c->no_ackreq = 0;
	else if (++c->no_ackreq == NO_ACKREQ_MAX)
		dis_report(DIS_RULE_ACKREQ_NEVER, ev->p->number, "PSN %u", ev->p->pkt.psn);
}

static void check_start(const struct dis_event *ev)
{
	struct dis_checks *c = &ev->half->checks;
	int32_t d = psn_sub(ev->p->pkt.psn, c->start_psn);

	if (!c->start_ok)
		return;
	c->start_ok = false;
	if (d < 0)
		dis_report(DIS_RULE_PSN_START, ev->p->number, "PSN %u, agreed on %u",
			   ev->p->pkt.psn, c->start_psn);
}

void dis_check_req(const struct dis_event *ev)
{
	struct dis_half *h = ev->half;

	if (h->transport == WIRE_TRANSPORT_XRC && h->answers && !h->checks.role_told &&
	    !dis_conns_apart(ev->p->ts, h->answers_ts)) {
		h->checks.role_told = true;
		dis_report(DIS_RULE_XRC_ROLE, ev->p->number, "a request to QP 0x%06x, an INI",
			   h->qpn);
	}
	if (ev->kind == DIS_EV_CLASH && h->pmtu && dis_conns_sure(h) &&
	    !(ev->req->flags & DIS_REQ_CLASHED)) {
		ev->req->flags |= DIS_REQ_CLASHED;
		dis_report(DIS_RULE_READ_SPAN, ev->p->number,
			   "PSN %u, the READ of packet %llu has %u to %u", ev->p->pkt.psn,
			   (unsigned long long)ev->before.number, ev->before.psn,
			   psn_add(ev->before.psn, ev->before.span - 1));
		return;
	}
	if (!ev->req || ev->kind == DIS_EV_CLASH)
		return;
	h->checks.reordered |= ev->backwards;
	check_start(ev);
	if (ev->kind == DIS_EV_AGAIN)
		check_again(ev);
	else
		check_new(ev);
	if (h->transport == WIRE_TRANSPORT_UC)
		return;
	check_rnr(ev);
	check_nak(ev);
	note_gap(ev);
	check_ackreq(ev);
}
