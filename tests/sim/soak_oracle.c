/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Was RETRY_EXC deserved?
 *
 * The oracle stands on the requester's wire. It sees each request packet that leaves, and each
 * response that arrives undamaged, and keeps by its own reading of the PSNs what is the oldest
 * packet that no response covers (una):
 *
 *   ACK, psn p                  everything up to p, but no READ or atomic that has not been
 * answered NAK or RNR NAK, psn p       everything before p, likewise READ response, atomic ACK   p
 * itself when it is una; the requests before its own request
 *
 * IBTA 9.7.5.1.1 and 9.9.2.4.2. When a requester gives up with RETRY_EXC, una must have been sent
 * retry_cnt times since una last moved, and once before or more. With RNR_RETRY_EXC, rnr_retry + 1
 * RNR NAKs for una must have come.
 */
#include "soak.h"

#include "wire/psn.h"

#include <stdlib.h>
#include <string.h>

void oracle_init(struct flow *f)
{
	f->oracle = (struct oracle){.una = f->path.psn_a, .next = f->path.psn_a};
}

void oracle_fini(struct flow *f)
{
	free(f->oracle.sent);
	free(f->oracle.reads);
}

static void append(struct attempt **v, size_t *n, size_t *room, struct attempt a)
{
	if (*n == *room) {
		*room = *room ? *room * 2 : 64;
		*v = realloc(*v, *room * sizeof(**v));
		if (!*v)
			abort();
	}
	(*v)[(*n)++] = a;
}

static bool covers(const struct attempt *a, uint32_t psn)
{
	return psn_sub(psn, a->psn) >= 0 && psn_sub(psn, a->psn) < (int32_t)a->n;
}

static void request_sent(struct flow *f, const struct wire_pkt *p)
{
	struct oracle *o = &f->oracle;
	struct attempt a = {p->psn, 1};
	uint32_t end;
	bool answered = p->op->kind == WIRE_KIND_READ || p->op->kind == WIRE_KIND_CMP_SWAP ||
			p->op->kind == WIRE_KIND_FETCH_ADD;

	if (p->op->kind == WIRE_KIND_READ && p->dma_len)
		a.n = (p->dma_len + f->mtu - 1) / f->mtu;
	append(&o->sent, &o->nsent, &o->room, a);
	if (covers(&a, o->una) && ++o->since > f->path.retry_cnt + 1u + o->rnr)
		soak_fail(f->soak,
			  "flow %u: psn %06x sent %u times after %u RNR NAKs, retry_cnt is %u",
			  f->index, o->una, o->since, o->rnr, f->path.retry_cnt);
	if (psn_before(o->next, p->psn))
		soak_fail(f->soak, "flow %u: sent psn %06x, %06x was due", f->index, p->psn,
			  o->next);
	end = psn_add(p->psn, a.n);
	if (!psn_before(o->next, end))
		return;
	/* A READ that is asked for again may be cut otherwise than before. */
	a = (struct attempt){o->next, psn_sub(end, o->next)};
	if (answered)
		append(&o->reads, &o->nreads, &o->reads_room, a);
	o->next = end;
}

static void advance(struct oracle *o, uint32_t una)
{
	if (!psn_before(o->una, una))
		return;
	o->una = una;
	o->progress = o->nsent;
	o->rnr = o->since = o->lost = 0;
	while (o->nreads && psn_sub(una, psn_add(o->reads[0].psn, o->reads[0].n)) >= 0) {
		o->nreads--;
		for (size_t i = 0; i < o->nreads; i++)
			o->reads[i] = o->reads[i + 1];
	}
}

/* Everything before @psn, as far as no READ or atomic stands in between. */
static void advance_to(struct oracle *o, uint32_t psn)
{
	if (o->nreads && psn_before(o->reads[0].psn, psn))
		psn = o->reads[0].psn;
	advance(o, psn);
}

static void response_received(struct flow *f, const struct wire_pkt *p)
{
	struct oracle *o = &f->oracle;

	if (psn_before(p->psn, o->una) || !psn_before(p->psn, o->next))
		return;
	if (p->op->kind != WIRE_KIND_ACK) {
		advance_to(o, p->psn);
		if (p->psn == o->una)
			advance(o, psn_add(p->psn, 1));
		return;
	}
	if (WIRE_SYN_KIND(p->syndrome) == WIRE_SYN_ACK) {
		advance_to(o, psn_add(p->psn, 1));
		return;
	}
	advance_to(o, p->psn);
	if (WIRE_SYN_KIND(p->syndrome) == WIRE_SYN_RNR && p->psn == o->una)
		o->rnr++;
}

void oracle_watch(void *arg, struct world_node *node, enum link_dir dir, const uint8_t *b,
		  size_t len)
{
	struct soak *s = arg;
	struct wire_pkt p;

	if (wire_decode(&p, b, len) != WIRE_OK) {
		if (dir == LINK_SENT)
			soak_fail(s, "node %u sent a packet that does not decode", node->index);
		return;
	}
	for (unsigned int i = 0; i < s->nflows; i++) {
		struct flow *f = &s->flows[i];

		if (f->src->world != node)
			continue;
		if (dir == LINK_SENT && wire_is_request(p.op) && p.dest_qpn == f->peer->qpn)
			request_sent(f, &p);
		else if (dir == LINK_RECEIVED && !wire_is_request(p.op) && p.dest_qpn == f->qp->qpn)
			response_received(f, &p);
	}
}

void oracle_observe(void *arg, uint64_t now, const struct wire_ip *ip, const uint8_t *b, size_t len,
		    enum sim_fate fate)
{
	struct soak *s = arg;
	struct wire_pkt p;

	if ((fate != SIM_DROPPED && fate != SIM_CORRUPTED) || wire_decode(&p, b, len) != WIRE_OK)
		return;
	for (unsigned int i = 0; i < s->nflows; i++) {
		struct flow *f = &s->flows[i];
		bool request = wire_is_request(p.op);

		if (p.dest_qpn == (request ? f->peer : f->qp)->qpn &&
		    !memcmp(ip->src, (request ? f->src : f->dst)->world->ip, sizeof(ip->src)))
			f->oracle.lost++;
	}
}

/*
 * Is the network to blame? Each attempt that came to nothing lost its request or its answer, but for one that
 * was made too early, while the one before was still under way. A peer in ERR answers nothing, and a full
 * receiver loses without a record. An RNR NAK is an answer.
 */
static bool network_is_to_blame(const struct flow *f)
{
	return f->soak->net.queue || (f->back && f->back->failed) ||
	       2 * f->oracle.lost + f->oracle.rnr + 2 >= f->oracle.since;
}

void oracle_judge(const struct flow *f)
{
	const struct oracle *o = &f->oracle;
	unsigned int before = 0;

	for (size_t i = 0; i < o->progress; i++)
		before |= covers(&o->sent[i], o->una);

	if (f->failed == IBV_WC_RETRY_EXC_ERR && before + o->since < f->path.retry_cnt + 1u)
		soak_fail(f->soak,
			  "flow %u: RETRY_EXC after %u attempts of psn %06x, retry_cnt is %u",
			  f->index, before + o->since, o->una, f->path.retry_cnt);
	if (f->failed == IBV_WC_RETRY_EXC_ERR && !network_is_to_blame(f))
		soak_fail(f->soak,
			  "flow %u: RETRY_EXC at psn %06x: %u attempts, but only %u losses",
			  f->index, o->una, o->since, o->lost);
	if (f->failed == IBV_WC_RNR_RETRY_EXC_ERR &&
	    (f->path.rnr_retry == 7 || o->rnr < f->path.rnr_retry + 1u))
		soak_fail(f->soak, "flow %u: RNR_RETRY_EXC after %u RNR NAKs, rnr_retry is %u",
			  f->index, o->rnr, f->path.rnr_retry);
}
