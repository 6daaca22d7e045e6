/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets -> conversations: finds the half of a packet, its place among the half's requests, and for an
 * answer the request. What --flows, --follow and --check have in common.
 *
 * Nothing is judged here. A packet with a wrong ICRC, or one that the decoder could not read to its end,
 * is not followed at all: its fields may be anything.
 *
 * When another connection has begun on the same QP number (dis_conn.h has the rule), the log starts anew.
 */
#include "pcap-dissect/dis_conn.h"

#include "base/bytes.h"
#include "base/macros.h"
#include "pcap-dissect/dis_log.h"
#include "wire/psn.h"

#include <errno.h>
#include <stdlib.h>

#define FAR	    65536 /* PSNs: what lies farther away is no resend */
#define NEAR	    4096  /* PSNs: an answer of this connection */
#define TRIES_DENSE 64	  /* answers without a pair that are all tried; then each 64th */
#define UNREADABLE                                                                                 \
	(DIS_NOTE(TRUNCATED) | DIS_NOTE(FRAGMENT) | DIS_NOTE(UDP_LENGTH) | DIS_NOTE(SHORT) |       \
	 DIS_NOTE(UNALIGNED) | DIS_NOTE(OPCODE) | DIS_NOTE(TVER) | DIS_NOTE(PAD) |                 \
	 DIS_NOTE(EXCESS))

static uint32_t mix(uint32_t h, const uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i += 4) {
		h = (h ^ get_be32(b + i)) * 0x9e3779b1;
		h ^= h >> 15;
	}
	return h;
}

static uint32_t pair_bucket(const uint8_t src[16], const uint8_t dst[16])
{
	return mix(mix(1, src, 16), dst, 16) % DIS_CONN_BUCKETS;
}

static uint32_t key_bucket(const uint8_t src[16], const uint8_t dst[16], uint32_t qpn)
{
	uint8_t b[4];

	put_be32(b, qpn);
	return mix(mix(mix(1, src, 16), dst, 16), b, 4) % DIS_CONN_BUCKETS;
}

struct dis_half *dis_conns_find(struct dis_conns *c, const uint8_t src[16], const uint8_t dst[16],
				uint32_t qpn)
{
	struct dis_half *h = c->by_key[key_bucket(src, dst, qpn)];

	while (h && (h->qpn != qpn || memcmp(h->src, src, 16) || memcmp(h->dst, dst, 16)))
		h = h->next_hash;
	return h;
}

static void lru_unlink(struct dis_conns *c, struct dis_half *h)
{
	*(h->older ? &h->older->newer : &c->oldest) = h->newer;
	*(h->newer ? &h->newer->older : &c->newest) = h->older;
}

static void lru_push(struct dis_conns *c, struct dis_half *h)
{
	h->older = c->newest;
	h->newer = NULL;
	*(c->newest ? &c->newest->newer : &c->oldest) = h;
	c->newest = h;
}

static void unpair(struct dis_half *h)
{
	struct dis_half *ends[] = {h, h->peer};

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		if (!ends[i])
			continue;
		ends[i]->peer = NULL;
		ends[i]->pairing = DIS_UNPAIRED;
		ends[i]->fitted = 0;
		ends[i]->unfitted = 0;
		/* That of the other end. */
		if (!ends[i]->log || !ends[i]->log->n)
			ends[i]->pmtu = 0;
	}
}

static void destroy(struct dis_conns *c, struct dis_half *h)
{
	struct dis_half **at;

	unpair(h);
	at = &c->by_key[key_bucket(h->src, h->dst, h->qpn)];
	while (*at != h)
		at = &(*at)->next_hash;
	*at = h->next_hash;
	at = &c->by_pair[pair_bucket(h->src, h->dst)];
	while (*at != h)
		at = &(*at)->next_pair;
	*at = h->next_pair;
	lru_unlink(c, h);
	free(h->log);
	free(h);
	c->n--;
}

int dis_conns_init(struct dis_conns *c)
{
	memset(c, 0, sizeof(*c));
	c->cells = calloc(DIS_CELLS, sizeof(*c->cells));
	return c->cells ? 0 : -ENOMEM;
}

void dis_conns_exit(struct dis_conns *c)
{
	while (c->oldest)
		destroy(c, c->oldest);
	free(c->cells);
	c->cells = NULL;
}

static struct dis_half *get(struct dis_conns *c, const uint8_t src[16], const uint8_t dst[16],
			    uint32_t qpn)
{
	struct dis_half *h = dis_conns_find(c, src, dst, qpn);
	uint32_t key = key_bucket(src, dst, qpn), pair = pair_bucket(src, dst);

	if (h) {
		if (h != c->newest) {
			lru_unlink(c, h);
			lru_push(c, h);
		}
		return h;
	}
	if (c->n == DIS_CONN_HALVES) {
		if (c->evict)
			c->evict(c, c->oldest);
		destroy(c, c->oldest);
		c->evicted++;
	}
	h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	memcpy(h->src, src, 16);
	memcpy(h->dst, dst, 16);
	h->qpn = qpn;
	h->order = c->made++;
	h->transport = UINT8_MAX;
	h->next_hash = c->by_key[key];
	c->by_key[key] = h;
	h->next_pair = c->by_pair[pair];
	c->by_pair[pair] = h;
	lru_push(c, h);
	c->n++;
	return h;
}

static void set_pair(struct dis_half *a, struct dis_half *b, enum dis_pairing how)
{
	a->peer = b;
	b->peer = a;
	a->pairing = b->pairing = how;
	a->fitted = b->fitted = 0;
	if (!a->pmtu)
		a->pmtu = b->pmtu;
	if (!b->pmtu)
		b->pmtu = a->pmtu;
}

/* What was known of a half's requests is of another connection. */
static void forget(struct dis_half *h)
{
	struct dis_checks old = h->checks;

	if (h->log)
		h->log->n = 0;
	h->pmtu = 0;
	h->ended = h->acked_ok = false;
	h->far = 0;
	h->checks = (struct dis_checks){
		.pkey_told = old.pkey_told,
		.role_told = old.role_told,
		.mix_told = old.mix_told,
	};
}

/* Another connection begins on @h's QP: neither direction of the old one is known any more. */
static void renew(struct dis_conns *c, struct dis_half *h)
{
	struct dis_half *peer = h->peer;

	if (c->renew)
		c->renew(c, h);
	unpair(h);
	forget(h);
	if (peer && peer != h)
		forget(peer);
}

void dis_conns_pair(struct dis_conns *c, const uint8_t a[16], uint32_t qa, const uint8_t b[16],
		    uint32_t qb, uint32_t mtu)
{
	struct dis_half *to_b = get(c, a, b, qb);
	struct dis_half *to_a = get(c, b, a, qa);

	if (!to_a || !to_b)
		return;
	renew(c, to_a);
	renew(c, to_b);
	to_a->pmtu = to_b->pmtu = mtu;
	set_pair(to_a, to_b, DIS_PAIRED_CM);
}

void dis_conns_end(struct dis_conns *c, const uint8_t a[16], uint32_t qa, const uint8_t b[16],
		   uint32_t qb)
{
	struct dis_half *halves[] = {dis_conns_find(c, a, b, qb), dis_conns_find(c, b, a, qa)};

	for (size_t i = 0; i < ARRAY_SIZE(halves); i++) {
		if (!halves[i])
			continue;
		halves[i]->ended = true;
		halves[i]->checks.start_ok = false;
	}
}

static bool valid_mtu(uint32_t n)
{
	return n >= 256 && n <= 4096 && !(n & (n - 1));
}

static uint32_t span_of(const struct dis_half *h, const struct wire_pkt *pkt)
{
	if (pkt->op->kind != WIRE_KIND_READ)
		return 1;
	if (pkt->dma_len <= 256)
		return 1;
	if (!h->pmtu || pkt->dma_len > 1u << 31)
		return 0;
	return (pkt->dma_len + h->pmtu - 1) / h->pmtu;
}

/* FIRST and MIDDLE packets fill the path MTU. */
static void learn_mtu(struct dis_half *h, const struct wire_pkt *pkt)
{
	struct dis_req *last;

	if (!h || h->pmtu || pkt->op->pos & WIRE_POS_LAST || !valid_mtu(pkt->payload_len))
		return;
	h->pmtu = pkt->payload_len;
	if (!h->log || !h->log->n)
		return;
	for (last = h->log->e; last < h->log->e + h->log->n; last++)
		if (last->flags & DIS_REQ_GUESSED &&
		    last->span == (last->dma_len + h->pmtu - 1) / h->pmtu)
			last->flags &= ~DIS_REQ_GUESSED;
	last = &h->log->e[h->log->n - 1];
	if (!last->span)
		last->span = max_t(uint32_t, (last->dma_len + h->pmtu - 1) / h->pmtu, 1);
}

static uint16_t ip_id(const struct dis_packet *p)
{
	return p->ip_version == 4 ? get_be16(p->ip + 4) : 0;
}

static void set_req(struct dis_req *r, const struct dis_packet *p)
{
	const struct wire_pkt *pkt = &p->pkt;

	r->ts = p->ts;
	r->number = p->number;
	r->payload = pkt->payload_len;
	r->dma_len = pkt->op->headers & WIRE_H_RETH ? pkt->dma_len : 0;
	r->srqn = pkt->op->headers & WIRE_H_XRCETH ? pkt->srqn : 0;
	r->opcode = pkt->op->code;
	r->ip_id = ip_id(p);
	r->copies = 1;
}

static bool seen_near(const struct dis_half *h, int64_t ts)
{
	return h && (h->requests || h->answers) && !dis_conns_apart(ts, h->seen_ts);
}

/* Nothing came in either direction for so long that the number may be another QP's. */
static bool silent(const struct dis_half *h, int64_t ts)
{
	return (h->requests || h->answers) && !seen_near(h, ts) && !seen_near(h->peer, ts);
}

static bool same_request(const struct dis_req *r, const struct wire_pkt *pkt)
{
	const struct wire_opcode *op = pkt->op;

	return r->opcode == op->code && r->payload == pkt->payload_len &&
	       r->dma_len == (op->headers & WIRE_H_RETH ? pkt->dma_len : 0) &&
	       r->srqn == (op->headers & WIRE_H_XRCETH ? pkt->srqn : 0);
}

/* Also by an answer to a later one. */
static bool is_answered(const struct dis_half *h, const struct dis_req *r)
{
	return r->flags & DIS_REQ_ANSWERED || (h->acked_ok && psn_sub(h->acked, r->psn) >= 0);
}

static bool in_last_message(const struct dis_log *l, const struct dis_req *r)
{
	for (; r < l->e + l->n - 1; r++)
		if (r->flags & DIS_REQ_HOLE || dis_req_ends(r))
			return false;
	return true;
}

/* After a silence: does the request go on where the connection was? */
static bool goes_on(const struct dis_half *h, const struct wire_pkt *pkt)
{
	const struct dis_req *r;
	uint32_t next;

	if (dis_log_next(h->log, &next) && pkt->psn == next)
		return true;
	r = dis_log_find(h->log, pkt->psn);
	if (!r || r->flags & DIS_REQ_HOLE)
		return false;
	/* The rest of a READ, from the first response that is missing. */
	if (r->psn != pkt->psn)
		return pkt->op->kind == WIRE_KIND_READ &&
		       (uint32_t)psn_sub(pkt->psn, r->psn) == r->answered;
	return same_request(r, pkt) && (!is_answered(h, r) || in_last_message(h->log, r));
}

/* By what came before and by its PSN, is the request of another connection? */
static bool is_another(const struct dis_half *h, const struct dis_packet *p)
{
	bool quiet = silent(h, p->ts);

	if (!quiet && !h->ended)
		return false;
	return (quiet && h->ended) || !goes_on(h, &p->pkt);
}

/* Another request than before under the same PSN: is it the mistake of one connection, or another one? */
static bool replaces(const struct dis_half *h, const struct dis_req *r, const struct dis_packet *p)
{
	const struct wire_pkt *pkt = &p->pkt;

	if (r->psn != pkt->psn)
		return pkt->op->kind != WIRE_KIND_READ && dis_conns_apart(p->ts, r->ts);
	return !same_request(r, pkt) && (is_answered(h, r) || h->transport == WIRE_TRANSPORT_UC ||
					 dis_conns_apart(p->ts, r->ts));
}

static void start(struct dis_event *ev)
{
	struct dis_half *h = ev->half;

	if (h->log->n)
		renew(ev->conns, h);
	/* That of the pair was seen the other way, perhaps with another QP. */
	if (h->pairing != DIS_PAIRED_CM)
		h->pmtu = 0;
	learn_mtu(h, &ev->p->pkt);
	ev->kind = DIS_EV_START;
	ev->req = dis_log_append(h->log, ev->p->pkt.psn, span_of(h, &ev->p->pkt));
	set_req(ev->req, ev->p);
}

/* Its PSN is in the log. */
static void known_request(struct dis_event *ev, struct dis_req *r)
{
	const struct dis_packet *p = ev->p;
	bool read = p->pkt.op->kind == WIRE_KIND_READ;

	if (r->flags & DIS_REQ_HOLE) {
		ev->kind = DIS_EV_LATE;
		ev->req = dis_log_fill(ev->half->log, p->pkt.psn, span_of(ev->half, &p->pkt));
		if (ev->req)
			set_req(ev->req, p);
		else
			ev->kind = DIS_EV_OLD;
		return;
	}
	if ((r->psn != p->pkt.psn && r->flags & DIS_REQ_GUESSED) || replaces(ev->half, r, p)) {
		start(ev);
		return;
	}
	ev->req = r;
	ev->before = *r;
	if (r->psn != p->pkt.psn && !read) {
		ev->kind = DIS_EV_CLASH;
		return;
	}
	ev->kind = DIS_EV_AGAIN;
	ev->same_ip = p->ip_version == 4 && ip_id(p) == r->ip_id;
	r->ts = p->ts;
	r->ip_id = ip_id(p);
	if (r->copies < UINT8_MAX)
		r->copies++;
}

static void append(struct dis_event *ev, uint32_t next)
{
	struct dis_half *h = ev->half;
	uint32_t psn = ev->p->pkt.psn;

	ev->kind = DIS_EV_NEW;
	ev->gap = psn_sub(psn, next);
	if (ev->gap)
		dis_log_append(h->log, next, ev->gap)->flags = DIS_REQ_HOLE;
	ev->req = dis_log_append(h->log, psn, span_of(h, &ev->p->pkt));
	set_req(ev->req, ev->p);
}

static void request(struct dis_event *ev)
{
	struct dis_half *h = ev->half;
	uint32_t psn = ev->p->pkt.psn, next;
	struct dis_req *last;
	int32_t d;

	if (h->log && h->log->n && is_another(h, ev->p))
		renew(ev->conns, h);
	h->requests = true;
	h->requests_ts = h->seen_ts = ev->p->ts;
	if (!h->log)
		h->log = calloc(1, sizeof(*h->log));
	if (!h->log)
		return;
	if (!h->log->n) {
		start(ev);
		return;
	}
	learn_mtu(h, &ev->p->pkt);
	last = dis_log_find(h->log, psn);
	if (last) {
		known_request(ev, last);
		return;
	}
	last = &h->log->e[h->log->n - 1];
	d = psn_sub(psn, last->psn);
	if (!dis_log_next(h->log, &next) && d > 0 && d <= FAR) {
		/* Where a READ without a known path MTU ended. */
		last->span = d;
		last->flags |= DIS_REQ_GUESSED;
		next = psn;
	}
	if (psn_sub(psn, next) >= 0 && psn_sub(psn, next) <= DIS_GAP_MAX)
		append(ev, next);
	else if (d < 0 && d > -FAR)
		ev->kind = DIS_EV_OLD;
	else
		start(ev);
}

static bool answers_kind(const struct wire_opcode *answer, const struct dis_req *r)
{
	uint8_t kind = wire_opcode_table[r->opcode].kind;

	if (r->flags & DIS_REQ_HOLE)
		return false;
	if (answer->kind == WIRE_KIND_READ_RESP)
		return kind == WIRE_KIND_READ;
	if (answer->kind == WIRE_KIND_ATOMIC_ACK)
		return kind == WIRE_KIND_CMP_SWAP || kind == WIRE_KIND_FETCH_ADD;
	return true;
}

/* Whether @r sends requests the other way than @h, so that answers to them may come to @h's QP. */
static bool requests_to(const struct dis_half *r, const struct dis_half *h)
{
	return r->log && r->transport == h->transport && !memcmp(r->src, h->dst, 16) &&
	       !memcmp(r->dst, h->src, 16);
}

/* Whether a half that sends requests may have asked for this answer and has none yet. */
static bool asked(const struct dis_half *r, const struct dis_event *ev)
{
	const struct dis_req *req;

	if (!requests_to(r, ev->half))
		return false;
	req = dis_log_find(r->log, ev->p->pkt.psn);
	return req && !(req->flags & DIS_REQ_ANSWERED) && answers_kind(ev->p->pkt.op, req);
}

/*
 * Pairs an answer's half if exactly one half of the other direction has asked. A request may be missing in
 * the capture, and another half have one with this PSN by chance, so where there are others it must be so
 * for two PSNs.
 */
static void find_peer(struct dis_conns *c, struct dis_event *ev)
{
	struct dis_half *h = ev->half, *only = NULL;
	const struct wire_pkt *pkt = &ev->p->pkt;
	struct dis_half *r = c->by_pair[pair_bucket(h->dst, h->src)];
	uint32_t all = 0, others = 0, fit = 0;

	if (h->unfitted++ >= TRIES_DENSE && h->unfitted % TRIES_DENSE)
		return;
	for (; r; r = r->next_pair) {
		if (!requests_to(r, h))
			continue;
		all++;
		if (r->peer)
			continue;
		others++;
		if (!asked(r, ev))
			continue;
		fit++;
		only = r;
	}
	if (fit != 1) {
		h->candidate = 0;
		return;
	}
	if (others > 1 && (h->candidate != only->order + 1 || h->candidate_psn == pkt->psn)) {
		h->candidate = only->order + 1;
		h->candidate_psn = pkt->psn;
		return;
	}
	unpair(h);
	set_pair(h, only, DIS_PAIRED_FOUND);
	h->alone = only->alone = all == 1;
}

static bool other_asked(const struct dis_event *ev)
{
	const struct dis_half *h = ev->half;

	for (const struct dis_half *r = ev->conns->by_pair[pair_bucket(h->dst, h->src)]; r;
	     r = r->next_pair)
		if (r != h->peer && !(r->peer && dis_conns_sure(r)) && asked(r, ev))
			return true;
	return false;
}

bool dis_conns_other(const struct dis_event *ev)
{
	return ev->half->pairing != DIS_PAIRED_CM && other_asked(ev);
}

/* After a silence: does the answer go on where the connection was? */
static bool is_awaited(const struct dis_event *ev)
{
	const struct dis_half *r = ev->half->peer;

	return asked(r, ev) && !(r->acked_ok && psn_sub(r->acked, ev->p->pkt.psn) >= 0);
}

/* Is this answer none that the pair can have? Of a sure one, two in a row must say so. */
static bool is_far(struct dis_half *h, uint32_t psn)
{
	uint32_t next = 0;

	dis_log_next(h->peer->log, &next);
	if (abs(psn_sub(psn, next)) <= NEAR)
		return false;
	return !dis_conns_sure(h) || ++h->far > 1;
}

static void note_answered(struct dis_half *requester, const struct wire_pkt *pkt)
{
	uint8_t kind = WIRE_SYN_KIND(pkt->syndrome);

	if (pkt->op->headers & WIRE_H_AETH && kind != WIRE_SYN_ACK) {
		requester->ended |= kind == WIRE_SYN_NAK && pkt->syndrome != WIRE_NAK_SEQUENCE;
		return;
	}
	if (!requester->acked_ok || psn_before(requester->acked, pkt->psn))
		requester->acked = pkt->psn;
	requester->acked_ok = true;
}

static void answer(struct dis_conns *c, struct dis_event *ev)
{
	struct dis_half *h = ev->half;
	const struct wire_pkt *pkt = &ev->p->pkt;
	struct dis_req *r;

	ev->kind = DIS_EV_ANSWER;
	if (h->peer && silent(h, ev->p->ts) && (!is_awaited(ev) || other_asked(ev)))
		renew(c, h);
	h->answers = true;
	h->answers_ts = h->seen_ts = ev->p->ts;
	/* The CM may have named a QP that nobody ever sent to: an SRQN in the place of the QPN. */
	if (!h->peer || !h->peer->requests)
		find_peer(c, ev);
	if (!h->peer || !h->peer->log || !h->peer->log->n) {
		ev->peer = h->peer;
		return;
	}
	r = dis_log_find(h->peer->log, pkt->psn);
	if (!r && is_far(h, pkt->psn)) {
		unpair(h);
		return;
	}
	ev->peer = h->peer;
	if (pkt->op->kind == WIRE_KIND_READ_RESP)
		learn_mtu(h->peer, pkt);
	if (!r)
		return;
	h->far = 0;
	note_answered(h->peer, pkt);
	if (r->flags & DIS_REQ_HOLE)
		return;
	ev->req = r;
	ev->before = *r;
	if (!answers_kind(pkt->op, r)) {
		if (!dis_conns_sure(h) || dis_conns_other(ev)) {
			unpair(h);
			ev->peer = NULL;
			ev->req = NULL;
		}
		return;
	}
	r->flags |= DIS_REQ_ANSWERED;
	if (pkt->op->kind == WIRE_KIND_READ_RESP)
		r->answered = max_t(uint32_t, r->answered, psn_sub(pkt->psn, r->psn) + 1);
	h->fitted++;
	if (h->peer != h)
		h->peer->fitted = h->fitted;
}

static bool readable(const struct dis_packet *p)
{
	uint32_t headers;

	if (p->layer != DIS_LAYER_ROCE || p->notes & UNREADABLE || p->icrc == DIS_ICRC_BAD ||
	    !p->pkt.op || p->have < WIRE_BTH_LEN)
		return false;
	headers = p->pkt.op->hdr_len;
	return p->have >= headers;
}

/* A QP has one transport; after a silence its number may be another QP's. */
static void take_transport(struct dis_conns *c, struct dis_half *h, const struct wire_opcode *op,
			   int64_t ts)
{
	if (h->transport == UINT8_MAX) {
		h->transport = op->transport;
	} else if (h->transport != op->transport && (h->ended || silent(h, ts))) {
		renew(c, h);
		h->requests = h->answers = false;
		h->transport = op->transport;
	}
}

void dis_conns_packet(struct dis_conns *c, const struct dis_packet *p, struct dis_event *ev)
{
	const struct wire_opcode *op = p->pkt.op;

	ev->kind = DIS_EV_NONE;
	ev->conns = c;
	ev->p = p;
	ev->half = ev->peer = NULL;
	ev->req = NULL;
	ev->gap = 0;
	ev->same_ip = false;
	if (!c->packets++)
		c->first = p->ts;
	c->backwards |= p->ts < c->last;
	c->last = max_t(int64_t, c->last, p->ts);
	ev->backwards = c->backwards;
	if (!readable(p))
		return;
	ev->half = get(c, p->src, p->dst, p->pkt.dest_qpn);
	if (!ev->half)
		return;
	if (op->kind == WIRE_KIND_CNP || op->transport == WIRE_TRANSPORT_UD) {
		ev->kind = DIS_EV_DATAGRAM;
		if (op->transport == WIRE_TRANSPORT_UD) {
			ev->half->transport = op->transport;
			ev->half->src_qpn = p->pkt.src_qpn;
		}
		return;
	}
	take_transport(c, ev->half, op, p->ts);
	if (ev->half->transport != op->transport)
		return;
	if (wire_is_request(op)) {
		request(ev);
		ev->peer = ev->half->peer;
	} else {
		answer(c, ev);
	}
}
