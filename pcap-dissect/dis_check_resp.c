/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules for answers: which request, how long, and whether PSN and MSN go together.
 *
 * The MSN is the witness for what the responder has received. It counts messages, a READ when its first
 * response goes, so between two answers it must grow by the messages that end between their PSNs:
 *
 *	answer PSN 10, MSN 4                       (base)
 *	requests 11 ONLY, 12 FIRST, 13 LAST, 14 hole, 15 ONLY
 *	answer PSN 13: MSN 6.  PSN 15: MSN 8, since what is missing ended a message; 7 is impossible
 *
 * An ACK is made with the MSN of that moment. A READ or atomic response may be a repetition, made with a
 * later one: of these only an MSN that is too low says something, and they set the base only when they fit;
 * the first of them is no base before a second one fits to it.
 */
#include "pcap-dissect/dis_check.h"

#include "base/macros.h"
#include "wire/psn.h"

#define NO_WINDOW 1024 /* PSNs ahead: no requester that goes on from here had sent that */
#define SAME_QP	  4096 /* PSNs behind a NAK that are still of that connection */

/* Messages that end in (@from, @to]; a READ ends with its first PSN. */
struct span {
	uint32_t least; /* certain */
	bool whole;	/* no hole: it is exactly this number */
};

/* A hole in which nothing ends is possible, unless a message begins behind it. */
static bool hole_ends_one(const struct dis_log *l, const struct dis_req *hole)
{
	return hole > l->e && hole + 1 < l->e + l->n && dis_req_begins(hole + 1) &&
	       !dis_req_part(l, hole + 1);
}

/* Returns false when the log does not have that. */
static bool count_messages(struct dis_log *l, uint32_t from, uint32_t to, struct span *s)
{
	const struct dis_req *r = dis_log_find(l, from);

	s->least = 0;
	s->whole = true;
	if (!r || !dis_log_find(l, to))
		return false;
	for (; r < l->e + l->n && psn_sub(r->psn, to) <= 0; r++) {
		if (r->flags & DIS_REQ_HOLE) {
			s->whole = false;
			s->least += hole_ends_one(l, r) &&
				    psn_sub(psn_add(r->psn, r->span - 1), to) <= 0 &&
				    psn_sub(r->psn, from) > 0;
		} else if (dis_req_part(l, r)) {
			/* Its message may have begun in the hole, which is not counted twice. */
			s->whole = false;
			s->least += r > l->e && psn_sub(r[-1].psn, from) > 0;
		} else if (psn_sub(r->psn, from) > 0 && dis_req_ends(r)) {
			s->least++;
		}
		s->whole &= !(r->flags & DIS_REQ_GUESSED);
	}
	return true;
}

static int32_t msn_sub(uint32_t a, uint32_t b)
{
	return psn_sub(a, b);
}

/* What the answer acknowledges: up to and with this PSN. */
static uint32_t acked_psn(const struct wire_pkt *pkt)
{
	return WIRE_SYN_KIND(pkt->syndrome) == WIRE_SYN_ACK ? pkt->psn : psn_add(pkt->psn, -1);
}

static void set_base(struct dis_checks *c, uint32_t psn, uint32_t msn, bool sure)
{
	c->base_ok = true;
	c->base_sure = sure;
	c->base_psn = psn;
	c->base_msn = msn;
}

static void report_msn(const struct dis_event *ev, const struct dis_checks *c, const struct span *s,
		       int32_t got)
{
	uint32_t msn = ev->p->pkt.msn;
	uint32_t psn = acked_psn(&ev->p->pkt);

	dis_report(s->whole ? DIS_RULE_MSN : DIS_RULE_GAP_ACKED, ev->p->number,
		   "MSN %u after %u, and %s%u messages end in PSNs %u to %u", msn, c->base_msn,
		   s->whole ? "" : "at least ", s->least, psn_add(c->base_psn, 1), psn);
}

static void check_msn(const struct dis_event *ev, struct dis_checks *c)
{
	const struct wire_pkt *pkt = &ev->p->pkt;
	bool exact = pkt->op->kind == WIRE_KIND_ACK;
	uint32_t psn = acked_psn(pkt), next;
	int32_t got = msn_sub(pkt->msn, c->base_msn);
	struct span s;
	bool fits;

	if (!dis_log_next(ev->peer->log, &next) || psn_sub(psn, next) >= 0)
		return;
	if (!c->base_ok || psn_sub(psn, c->base_psn) > DIS_GAP_MAX ||
	    !dis_log_find(ev->peer->log, c->base_psn)) {
		if (exact || (ev->req && ev->before.copies == 1 && !c->reordered))
			set_base(c, psn, pkt->msn, exact);
		c->base_exact = exact;
		return;
	}
	if (psn_before(psn, c->base_psn)) {
		if (exact && WIRE_SYN_KIND(pkt->syndrome) == WIRE_SYN_ACK && got > 0 &&
		    dis_conns_sure(ev->peer) && dis_log_find(ev->peer->log, psn) &&
		    !dis_conns_other(ev))
			dis_report(DIS_RULE_ACK_BACKWARDS, ev->p->number,
				   "PSN %u, MSN %u after PSN %u, MSN %u", psn, pkt->msn,
				   c->base_psn, c->base_msn);
		return;
	}
	if (!count_messages(ev->peer->log, c->base_psn, psn, &s))
		return;
	fits = s.whole && got == (int32_t)s.least;
	if (c->base_sure && dis_conns_sure(ev->peer) &&
	    (s.whole || (exact && c->base_exact && !ev->backwards)) &&
	    (got < (int32_t)s.least || (exact && s.whole && !fits)) && !dis_conns_other(ev)) {
		report_msn(ev, c, &s, got);
		/* Later answers count on from a wrong ACK, but not from a NAK. */
		if (WIRE_SYN_KIND(pkt->syndrome) != WIRE_SYN_ACK)
			return;
	} else if (!exact && c->base_sure && (!fits || c->reordered)) {
		return;
	}
	c->base_exact = exact;
	set_base(c, psn, pkt->msn, exact || (fits && s.least) || c->base_sure);
}

static void check_place(const struct dis_event *ev)
{
	const struct wire_pkt *pkt = &ev->p->pkt;
	const struct dis_req *r = ev->req;
	uint32_t mtu = ev->peer->pmtu, count, k, want;
	bool last;

	if (!mtu && r->dma_len > 256)
		return;
	count = mtu ? max_t(uint32_t, (r->dma_len + mtu - 1) / mtu, 1) : 1;
	k = psn_sub(pkt->psn, r->psn);
	if (count != max_t(uint32_t, r->span, 1) || k >= count)
		return;
	last = k == count - 1;
	if (last != !!(pkt->op->pos & WIRE_POS_LAST) ||
	    (!k && !(pkt->op->pos & WIRE_POS_FIRST) && !dis_req_part(ev->peer->log, r))) {
		if (!dis_conns_other(ev))
			dis_report(DIS_RULE_READ_OPCODE, ev->p->number, "%s for number %u of %u",
				   dis_opcode_words(pkt->op->code), k + 1, count);
		return;
	}
	want = last ? r->dma_len - k * mtu : mtu;
	if (pkt->payload_len != want && !dis_conns_other(ev))
		dis_report(DIS_RULE_READ_LENGTH, ev->p->number, "%u bytes, not %u, number %u of %u",
			   pkt->payload_len, want, k + 1, count);
}

static void check_kind(const struct dis_event *ev)
{
	const struct wire_pkt *pkt = &ev->p->pkt;
	uint8_t asked = wire_opcode_table[ev->req->opcode].kind;
	bool read = pkt->op->kind == WIRE_KIND_READ_RESP;
	bool atomic = pkt->op->kind == WIRE_KIND_ATOMIC_ACK;

	if ((read && asked != WIRE_KIND_READ) ||
	    (atomic && asked != WIRE_KIND_CMP_SWAP && asked != WIRE_KIND_FETCH_ADD)) {
		dis_report(DIS_RULE_RESPONSE_KIND, ev->p->number, "%s to %s of packet %llu",
			   dis_opcode_words(pkt->op->code), dis_opcode_words(ev->req->opcode),
			   (unsigned long long)ev->req->number);
		return;
	}
	if (read)
		check_place(ev);
	if (!atomic)
		return;
	if (ev->req->flags & DIS_REQ_VALUE && ev->req->value != pkt->orig && !dis_conns_other(ev))
		dis_report(DIS_RULE_ATOMIC_REPLAY, ev->p->number, "0x%016llx, was 0x%016llx",
			   (unsigned long long)pkt->orig, (unsigned long long)ev->req->value);
	ev->req->flags |= DIS_REQ_VALUE;
	ev->req->value = pkt->orig;
}

static void note_nak(const struct dis_event *ev, struct dis_checks *c)
{
	const struct wire_pkt *pkt = &ev->p->pkt;
	bool rnr = WIRE_SYN_KIND(pkt->syndrome) == WIRE_SYN_RNR;

	c->heads = 0;
	/* A sequence NAK asks to send at once. */
	if (rnr && !(c->rnr_ok && c->rnr_psn == pkt->psn)) {
		/* Later ones are answers to copies; the requester waits since the first. */
		c->rnr_psn = pkt->psn;
		c->rnr_ts = ev->p->ts;
		c->rnr_ns = wire_rnr_ns(WIRE_SYN_DETAIL(pkt->syndrome));
	}
	c->rnr_ok = rnr;
	if (rnr || pkt->syndrome == WIRE_NAK_SEQUENCE) {
		c->seq_naks += !rnr;
		if (c->nak_ok && c->nak_psn == pkt->psn)
			return;
		c->nak_ok = true;
		c->nak_psn = pkt->psn;
		c->nak_new = 0;
		c->nak_ts = ev->p->ts;
		c->nak_number = ev->p->number;
		return;
	}
	c->fatal_ok = true;
	c->fatal_psn = pkt->psn;
	c->fatal_msn = pkt->msn;
	c->fatal_number = ev->p->number;
}

static void note_ack(const struct dis_event *ev, struct dis_checks *c)
{
	const struct wire_pkt *pkt = &ev->p->pkt;
	int32_t behind = psn_sub(pkt->psn, c->fatal_psn);

	if (c->fatal_ok && dis_conns_sure(ev->peer) && behind >= 0 && behind < SAME_QP &&
	    pkt->op->headers & WIRE_H_AETH && msn_sub(pkt->msn, c->fatal_msn) > 0 &&
	    !dis_conns_other(ev)) {
		c->fatal_ok = false;
		dis_report(DIS_RULE_ACK_AFTER_NAK, ev->p->number, "PSN %u, NAK of packet %llu",
			   pkt->psn, (unsigned long long)c->fatal_number);
	}
	if (c->gap_ok && psn_sub(pkt->psn, c->gap_psn) >= 0)
		c->gap_ok = false;
	if (c->nak_ok && psn_sub(pkt->psn, c->nak_psn) >= 0)
		c->nak_ok = false;
	if (c->head_ok && psn_sub(pkt->psn, c->head) >= 0)
		c->heads = 0;
	if (!c->acked_ok || psn_before(c->acked, pkt->psn)) {
		c->acked_ok = true;
		c->acked = pkt->psn;
	}
}

/* An answer to what is not in the capture, yet. */
static void note_susp(const struct dis_event *ev, struct dis_checks *c)
{
	uint32_t next;

	if (c->susp_ok || !dis_conns_sure(ev->peer) || !c->base_ok || !c->base_sure ||
	    !dis_log_next(ev->peer->log, &next) || psn_sub(ev->p->pkt.psn, next) < 0)
		return;
	c->susp_ok = true;
	c->susp_exact = ev->p->pkt.op->kind == WIRE_KIND_ACK;
	c->susp_psn = ev->p->pkt.psn;
	c->susp_msn = ev->p->pkt.msn;
	c->susp_number = ev->p->number;
	c->susp_base_psn = c->base_psn;
	c->susp_base_msn = c->base_msn;
}

/*
 * The requester goes on where the capture ended, so it had sent nothing more; or, when it was lost and
 * this is a resend, the MSN of the answer had counted it.
 */
void dis_check_susp(const struct dis_event *ev)
{
	struct dis_checks *c = &ev->half->checks;
	int32_t ahead = psn_sub(c->susp_psn, ev->p->pkt.psn);
	struct span s;

	if (!c->susp_ok || (ev->kind != DIS_EV_NEW && ev->kind != DIS_EV_START))
		return;
	if (ev->kind == DIS_EV_START || ev->gap) {
		c->susp_ok = false;
		return;
	}
	if (ahead >= (int32_t)ev->req->span && ahead <= NO_WINDOW)
		return;
	c->susp_ok = false;
	if (ahead <= NO_WINDOW &&
	    (!c->susp_exact || !count_messages(ev->half->log, c->susp_base_psn, c->susp_psn, &s) ||
	     !s.whole || msn_sub(c->susp_msn, c->susp_base_msn) >= (int32_t)s.least))
		return;
	dis_report(DIS_RULE_NEVER_SENT, c->susp_number, "PSN %u, packet %llu sends PSN %u",
		   c->susp_psn, (unsigned long long)ev->p->number, ev->p->pkt.psn);
}

void dis_check_resp(const struct dis_event *ev)
{
	const struct wire_pkt *pkt = &ev->p->pkt;
	struct dis_half *h = ev->half;
	struct dis_checks *c;

	if (h->transport == WIRE_TRANSPORT_XRC && h->requests && !h->checks.role_told &&
	    !dis_conns_apart(ev->p->ts, h->requests_ts)) {
		h->checks.role_told = true;
		dis_report(DIS_RULE_XRC_ROLE, ev->p->number, "a response to QP 0x%06x, a TGT",
			   h->qpn);
	}
	if (!ev->peer || !ev->peer->log || !ev->peer->log->n)
		return;
	c = &ev->peer->checks;
	if (ev->req && dis_conns_sure(h))
		check_kind(ev);
	/* What a reserved syndrome means nobody knows. */
	if (!(pkt->op->headers & WIRE_H_AETH) || pkt->syndrome & 0x80 ||
	    WIRE_SYN_KIND(pkt->syndrome) == WIRE_SYN_RSVD)
		return;
	if (WIRE_SYN_KIND(pkt->syndrome) == WIRE_SYN_ACK) {
		note_susp(ev, c);
		check_msn(ev, c);
		note_ack(ev, c);
	} else {
		check_msn(ev, c);
		note_nak(ev, c);
	}
}
