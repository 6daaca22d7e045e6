/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CM messages -> pairs of QPs, and the order of the messages.
 *
 *	A (active)  REQ id_a, QPN a  ------>
 *	            <------  REP id_b for id_a, QPN b (XRC: the TGT QPN as local EECN)
 *	            RTU id_a for id_b ----->                        B (passive)
 *	            DREQ, DREP: either way, with both ids
 *
 * A message that answers one which the capture does not have proves nothing by itself: the capture may have
 * begun later, or lost it. But a GSI numbers its datagrams. When the PSNs from the side that should have
 * sent it follow each other from before the time in question to behind it, it did not send one.
 *
 * IBTA Vol 1, chapter 12; Annex A14.
 */
#include "pcap-dissect/dis_cm.h"

#include "base/bytes.h"
#include "wire/psn.h"

#define REQ_PATIENCE_NS	 INT64_C(30000000000) /* a REP comes this long after its REQ at most */
#define CM_TRANSPORT_RC	 0
#define CM_TRANSPORT_UC	 1
#define CM_TRANSPORT_RD	 2
#define CM_TRANSPORT_EXT 3
#define CM_EXT_XRC	 1

static uint64_t field(const struct dis_packet *p, enum dis_field f)
{
	uint64_t v;

	return dis_cm_get(p, f, &v) ? v : 0;
}

#define REPORT(cm, rule, ...)                                                                      \
	do {                                                                                       \
		if ((cm)->report)                                                                  \
			(cm)->report(rule, __VA_ARGS__);                                           \
	} while (0)

static bool same(const uint8_t a[16], const uint8_t b[16])
{
	return !memcmp(a, b, 16);
}

static struct dis_cm_source *source_of(struct dis_cm *cm, const uint8_t addr[16])
{
	for (uint32_t i = 0; i < DIS_CM_SOURCES; i++)
		if (cm->source[i].used && same(cm->source[i].addr, addr))
			return &cm->source[i];
	return NULL;
}

/* Every datagram of a GSI: does it follow the one before? */
static void note_source(struct dis_cm *cm, const struct dis_packet *p)
{
	struct dis_cm_source *s = source_of(cm, p->src);
	bool follows;

	if (!s) {
		for (s = cm->source; s->used; s++)
			if (s == &cm->source[DIS_CM_SOURCES - 1])
				return;
		s->used = true;
		memcpy(s->addr, p->src, 16);
		s->psn = psn_add(p->pkt.psn, -2);
	}
	follows = p->pkt.psn == psn_add(s->psn, 1);
	s->psn = p->pkt.psn;
	if (!follows) {
		s->since = p->number;
		s->since_ts = p->ts;
	}
	for (uint32_t i = 0; i < DIS_CM_DOUBTS; i++) {
		struct dis_cm_doubt *d = &cm->doubt[i];

		if (!d->open || d->number == p->number || !same(d->addr, p->src))
			continue;
		d->open = false;
		if (follows)
			REPORT(cm, d->rule, d->number, "id 0x%08x", d->id);
	}
}

/* @from should have sent something after packet @after, or at any time when that is 0. */
static void doubt(struct dis_cm *cm, const struct dis_packet *p, const uint8_t from[16],
		  uint64_t after, enum dis_rule rule, uint32_t id)
{
	const struct dis_cm_source *s = source_of(cm, from);
	struct dis_cm_doubt *d = &cm->doubt[cm->n_doubts % DIS_CM_DOUBTS];

	if (!s || (after ? s->since >= after : p->ts - s->since_ts < REQ_PATIENCE_NS))
		return;
	cm->n_doubts++;
	*d = (struct dis_cm_doubt){.number = p->number, .rule = rule, .id = id, .open = true};
	memcpy(d->addr, from, 16);
}

/* It comes, after what should have followed it: a capture may change the order. */
static void no_doubt(struct dis_cm *cm, const struct dis_packet *p, enum dis_rule rule)
{
	for (uint32_t i = 0; i < DIS_CM_DOUBTS; i++)
		if (cm->doubt[i].rule == rule && same(cm->doubt[i].addr, p->src))
			cm->doubt[i].open = false;
}

/* The newest connection on which @p, from an active or a passive side, may be. */
static struct dis_cm_conn *find(struct dis_cm *cm, const uint8_t a[16], const uint8_t b[16],
				uint32_t id_a)
{
	uint32_t n = min_t(uint32_t, cm->n_conns, DIS_CM_CONNS);

	for (uint32_t i = 1; i <= n; i++) {
		struct dis_cm_conn *c = &cm->conn[(cm->n_conns - i) % DIS_CM_CONNS];

		if (c->id_a == id_a && same(c->a, a) && same(c->b, b))
			return c;
	}
	return NULL;
}

static void take_req(struct dis_cm *cm, const struct dis_packet *p)
{
	uint32_t id = field(p, DIS_F_CM_REQ_LOCAL_COMM_ID);
	uint32_t type = field(p, DIS_F_CM_REQ_TRANSPORT);
	uint32_t ext = field(p, DIS_F_CM_REQ_EXT_TRANSPORT);
	uint32_t mtu = field(p, DIS_F_CM_REQ_PATH_MTU);
	uint32_t qpn = field(p, DIS_F_CM_REQ_LOCAL_QPN);
	uint32_t psn = field(p, DIS_F_CM_REQ_STARTING_PSN);
	struct dis_cm_conn *c = find(cm, p->src, p->dst, id);

	if (type == CM_TRANSPORT_EXT && ext != CM_EXT_XRC)
		REPORT(cm, DIS_RULE_CM_XRC_REQ, p->number, "transport type 3, extended type %u",
		       ext);
	if (type != CM_TRANSPORT_RD && qpn < 2)
		REPORT(cm, DIS_RULE_CM_QPN, p->number, "REQ with local QPN %u", qpn);
	if (!mtu || mtu > 5)
		REPORT(cm, DIS_RULE_CM_MTU, p->number, "code %u", mtu);
	/* Sent again, unless the id is used anew. */
	if (c && !c->dreq && c->qpn_a == qpn && c->psn_a == psn)
		return;
	c = &cm->conn[cm->n_conns++ % DIS_CM_CONNS];
	*c = (struct dis_cm_conn){
		.id_a = id,
		.qpn_a = qpn,
		.psn_a = psn,
		.req = p->number,
		.mtu = mtu && mtu <= 5 ? 128u << mtu : 0,
		.xrc = type == CM_TRANSPORT_EXT,
	};
	memcpy(c->a, p->src, 16);
	memcpy(c->b, p->dst, 16);
}

/* Starting PSNs: each side names where it expects to receive. */
static void agree_psn(struct dis_conns *conns, const uint8_t from[16], const uint8_t to[16],
		      uint32_t qpn, uint32_t psn)
{
	struct dis_half *h = dis_conns_find(conns, from, to, qpn);

	if (!h || (h->log && h->log->n))
		return;
	h->checks.start_ok = true;
	h->checks.start_psn = psn;
}

static void take_rep(struct dis_cm *cm, struct dis_conns *conns, const struct dis_packet *p)
{
	uint32_t id = field(p, DIS_F_CM_REP_LOCAL_COMM_ID);
	uint32_t remote = field(p, DIS_F_CM_REP_REMOTE_COMM_ID);
	struct dis_cm_conn *c = find(cm, p->dst, p->src, remote);

	if (!c) {
		doubt(cm, p, p->dst, 0, DIS_RULE_CM_NO_REQ, remote);
		cm->orphan[cm->n_orphans++ % DIS_CM_DOUBTS] = remote;
		return;
	}
	c->qpn_b = field(p, c->xrc ? DIS_F_CM_REP_LOCAL_EECN : DIS_F_CM_REP_LOCAL_QPN);
	if (c->xrc && c->qpn_b < 2)
		REPORT(cm, DIS_RULE_CM_XRC_REP, p->number, "EECN %u", c->qpn_b);
	else if (c->qpn_b < 2)
		REPORT(cm, DIS_RULE_CM_QPN, p->number, "REP with local QPN %u", c->qpn_b);
	if (c->rep && c->id_b != id)
		REPORT(cm, DIS_RULE_CM_REMOTE_ID, p->number, "REP with local id 0x%08x, was 0x%08x",
		       id, c->id_b);
	if (c->rep || c->qpn_b < 2 || c->qpn_a < 2)
		return;
	c->rep = p->number;
	c->id_b = id;
	dis_conns_pair(conns, c->a, c->qpn_a, c->b, c->qpn_b, c->mtu);
	agree_psn(conns, c->a, c->b, c->qpn_b, field(p, DIS_F_CM_REP_STARTING_PSN));
	agree_psn(conns, c->b, c->a, c->qpn_a, c->psn_a);
}

/* The REP was there, but before the REQ. */
static bool is_orphan(const struct dis_cm *cm, uint32_t id)
{
	for (uint32_t i = 0; i < min_t(uint32_t, cm->n_orphans, DIS_CM_DOUBTS); i++)
		if (cm->orphan[i] == id)
			return true;
	return false;
}

static void take_rtu(struct dis_cm *cm, const struct dis_packet *p)
{
	uint32_t id = field(p, DIS_F_CM_RTU_LOCAL_COMM_ID);
	uint32_t remote = field(p, DIS_F_CM_RTU_REMOTE_COMM_ID);
	struct dis_cm_conn *c = find(cm, p->src, p->dst, id);

	if (!c)
		return;
	if (!c->rep && !is_orphan(cm, id))
		doubt(cm, p, p->dst, c->req, DIS_RULE_CM_NO_REP, id);
	else if (!c->rep)
		return;
	else if (remote != c->id_b)
		REPORT(cm, DIS_RULE_CM_REMOTE_ID, p->number,
		       "RTU with remote id 0x%08x, the REP had 0x%08x", remote, c->id_b);
}

/* A connection by a message from either side, whose own id is @id. */
static struct dis_cm_conn *find_either(struct dis_cm *cm, const struct dis_packet *p, uint32_t id,
				       bool *from_a)
{
	uint32_t n = min_t(uint32_t, cm->n_conns, DIS_CM_CONNS);

	for (uint32_t i = 1; i <= n; i++) {
		struct dis_cm_conn *c = &cm->conn[(cm->n_conns - i) % DIS_CM_CONNS];

		*from_a = c->id_a == id && same(c->a, p->src) && same(c->b, p->dst);
		if (*from_a ||
		    (c->rep && c->id_b == id && same(c->b, p->src) && same(c->a, p->dst)))
			return c;
	}
	return NULL;
}

static void take_dreq(struct dis_cm *cm, struct dis_conns *conns, const struct dis_packet *p)
{
	uint32_t id = field(p, DIS_F_CM_DREQ_LOCAL_COMM_ID);
	uint32_t remote = field(p, DIS_F_CM_DREQ_REMOTE_COMM_ID);
	uint32_t qpn = field(p, DIS_F_CM_DREQ_REMOTE_QPN);
	bool from_a;
	struct dis_cm_conn *c = find_either(cm, p, id, &from_a);
	uint32_t want;

	if (!c || !c->rep)
		return;
	c->dreq = p->number;
	want = from_a ? c->id_b : c->id_a;
	if (remote != want)
		REPORT(cm, DIS_RULE_CM_REMOTE_ID, p->number,
		       "DREQ with remote id 0x%08x, the peer has 0x%08x", remote, want);
	want = from_a ? c->qpn_b : c->qpn_a;
	if (qpn != want)
		REPORT(cm, DIS_RULE_CM_DREQ_QPN, p->number, "0x%06x, the receiver has 0x%06x", qpn,
		       want);
	else if (remote == (from_a ? c->id_b : c->id_a))
		dis_conns_end(conns, c->a, c->qpn_a, c->b, c->qpn_b);
}

static void take_drep(struct dis_cm *cm, const struct dis_packet *p)
{
	uint32_t id = field(p, DIS_F_CM_DREP_LOCAL_COMM_ID);
	uint32_t remote = field(p, DIS_F_CM_DREP_REMOTE_COMM_ID);
	bool from_a;
	struct dis_cm_conn *c = find_either(cm, p, id, &from_a);
	uint32_t want;

	if (!c || !c->rep)
		return;
	want = from_a ? c->id_b : c->id_a;
	if (remote != want)
		REPORT(cm, DIS_RULE_CM_REMOTE_ID, p->number,
		       "DREP with remote id 0x%08x, the peer has 0x%08x", remote, want);
	else if (!c->dreq)
		doubt(cm, p, p->dst, c->rep, DIS_RULE_CM_NO_DREQ, id);
}

static void check_header(struct dis_cm *cm, const struct dis_packet *p)
{
	if (p->mad[0] != 1 || p->mad[2] != 2 || p->mad[3] != 3 || get_be16(p->mad + 4))
		REPORT(cm, DIS_RULE_CM_HEADER, p->number,
		       "base version %u, class version %u, method %u, status %u", p->mad[0],
		       p->mad[2], p->mad[3], get_be16(p->mad + 4));
}

static void take(struct dis_cm *cm, struct dis_conns *conns, const struct dis_packet *p)
{
	switch (p->cm_hdr) {
	case DIS_H_CM_REQ:
		no_doubt(cm, p, DIS_RULE_CM_NO_REQ);
		take_req(cm, p);
		break;
	case DIS_H_CM_REP:
		no_doubt(cm, p, DIS_RULE_CM_NO_REP);
		take_rep(cm, conns, p);
		break;
	case DIS_H_CM_RTU:
		take_rtu(cm, p);
		break;
	case DIS_H_CM_DREQ:
		no_doubt(cm, p, DIS_RULE_CM_NO_DREQ);
		take_dreq(cm, conns, p);
		break;
	case DIS_H_CM_DREP:
		take_drep(cm, p);
		break;
	case DIS_H_CM_SIDR_REP:
		if (!field(p, DIS_F_CM_SIDR_REP_STATUS) && !field(p, DIS_F_CM_SIDR_REP_QPN))
			REPORT(cm, DIS_RULE_CM_SIDR_QPN, p->number, "request id 0x%08x",
			       (uint32_t)field(p, DIS_F_CM_SIDR_REP_REQUEST_ID));
		break;
	default:
		break;
	}
}

void dis_cm_packet(struct dis_cm *cm, struct dis_conns *conns, const struct dis_packet *p)
{
	if (!p->mad || p->icrc == DIS_ICRC_BAD || p->mad_have < 256 || p->notes & DIS_NOTE(MAD))
		return;
	if (p->cm_hdr) {
		check_header(cm, p);
		take(cm, conns, p);
	}
	note_source(cm, p);
}
