/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receives and their completions.
 *
 * A receive completion names the QP that it came through. That QP's flow knows which of its
 * requests take a receive and in which order, so the completion must be that of the next one: its
 * length, immediate data or invalidated key, and its bytes. Through an SRQ any receive may be taken
 * by any flow, but each once, and no receive may be overtaken by more than the messages that are
 * still arriving.
 */
#include "soak.h"

#include <string.h>

static uint8_t *slot_at(const struct queue *q, unsigned int i)
{
	return q->mem + (size_t)i * SOAK_SLOT;
}

static int post_one(struct queue *q, unsigned int i)
{
	struct recv_slot *slot = &q->slots[i];
	struct ibv_recv_wr wr, *bad = NULL;
	uint8_t *at = slot_at(q, i);

	memset(at, SOAK_POISON, slot->dirty);
	pieces_cut(&slot->pieces, &q->node->world->world->rng, at, SOAK_MAX_LEN, q->mr->key,
		   SOAK_MAX_SGE);
	wr = (struct ibv_recv_wr){
		.wr_id = wr_name(OWNER_QUEUE, q->index, i),
		.sg_list = slot->pieces.sge,
		.num_sge = slot->pieces.n,
	};
	slot->dirty = 0;
	slot->posted = true;
	slot->order = q->orders++;
	return q->srq ? rq_post_list(q->srq->rq, &wr, &bad)
		      : qp_post_recv(q->qp, &wr, &bad, q->node->world->world->now);
}

static unsigned int posted(const struct queue *q)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < SOAK_RECVS; i++)
		n += q->slots[i].posted;
	return n;
}

void queue_post(struct queue *q)
{
	struct world *w = q->node->world->world;
	unsigned int have = posted(q), n;

	if (w->now < q->next_post)
		return;
	q->next_post = w->now + 1 + rng_below(&w->rng, q->delay);
	if (have >= q->room)
		return;
	n = rng_range(&w->rng, 1, q->room - have);
	for (unsigned int i = 0; i < SOAK_RECVS && n; i++)
		if (!q->slots[i].posted) {
			must(post_one(q, i));
			n--;
		}
}

/* Which flow a receive completion belongs to. */
static struct flow *flow_to(struct soak *s, const struct queue *q, uint32_t qpn)
{
	for (unsigned int i = 0; i < s->nflows; i++)
		if (s->flows[i].dst == q->node && s->flows[i].peer->qpn == qpn)
			return &s->flows[i];
	return NULL;
}

/* RC receive queues complete in the order of posting; @i is what completed. */
static void check_order(struct soak *s, struct queue *q, unsigned int i)
{
	if (q->qp && q->slots[i].order != q->taken)
		soak_fail(s, "queue %u: receive %llu completed, expected %llu", q->index,
			  (unsigned long long)q->slots[i].order, (unsigned long long)q->taken);
	q->taken++;
}

/* What the completion must say of @r. */
static void check_fields(const struct flow *f, const struct request *r, const struct ibv_wc *wc)
{
	bool imm = r->opcode == IBV_WR_SEND_WITH_IMM || r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	bool inv = r->opcode == IBV_WR_SEND_WITH_INV;
	bool write = r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	unsigned int flags = wc->wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV);

	if (wc->opcode != (write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
		soak_fail(f->soak, "flow %u: receive completion has opcode %d", f->index,
			  wc->opcode);
	if (wc->byte_len != r->length)
		soak_fail(f->soak, "flow %u: byte_len %u, the message has %u", f->index,
			  wc->byte_len, r->length);
	if (flags != ((imm ? IBV_WC_WITH_IMM : 0u) | (inv ? IBV_WC_WITH_INV : 0u)))
		soak_fail(f->soak, "flow %u: wc_flags %#x", f->index, wc->wc_flags);
	if ((imm && wc->imm_data != r->imm_be) || (inv && wc->invalidated_rkey != r->imm_be))
		soak_fail(f->soak, "flow %u: immediate or key %#x, sent %#x", f->index,
			  wc->imm_data, r->imm_be);
}

static void check_data(const struct flow *f, const struct request *r, struct recv_slot *slot)
{
	static uint8_t got[SOAK_MAX_LEN], want[SOAK_MAX_LEN];
	uint32_t len = r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? 0 : r->length;

	pieces_load(&slot->pieces, got, len);
	pattern_fill(want, len, r->key);
	if (memcmp(got, want, len))
		soak_fail(f->soak, "flow %u: a message of %u bytes arrived changed", f->index, len);
	if (!pieces_clean(&slot->pieces, len))
		soak_fail(f->soak, "flow %u: bytes beside a receive of %u were written", f->index,
			  len);
	/* The pieces lie within the slot, each behind a gap. */
	slot->dirty = min_t(uint32_t, len + (SOAK_MAX_SGE + 1) * SOAK_GAP, SOAK_SLOT);
}

/* Where the completion of @r's receive goes. */
static const struct cq *recv_cq(const struct flow *f, const struct request *r)
{
	return f->xrc ? r->target->queue->cq : f->peer_cq;
}

/* Order holds on each completion queue; between two of them there is none. */
static struct request *next_received(struct flow *f, const struct cq *cq)
{
	for (unsigned int i = 0; i < f->posted; i++) {
		struct request *r = &f->requests[i];

		if (flow_consumes(r) && !r->received && recv_cq(f, r) == cq)
			return r;
	}
	return NULL;
}

static void received(struct flow *f, struct queue *q, const struct cq *cq, struct recv_slot *slot,
		     const struct ibv_wc *wc)
{
	struct request *r = next_received(f, cq);

	if (!r)
		soak_fail(f->soak, "flow %u: a receive completed that nothing was sent for",
			  f->index);
	if (r->target->queue != q)
		soak_fail(f->soak, "flow %u: request %u for queue %u came through queue %u",
			  f->index, (unsigned int)(r - f->requests), r->target->queue->index,
			  q->index);
	r->received = true;
	check_fields(f, r, wc);
	check_data(f, r, slot);
	if (r->opcode == IBV_WR_SEND_WITH_INV)
		f->mw.state = WINDOW_FREE;
}

void queue_completion(struct queue *q, const struct cq *cq, const struct ibv_wc *wc)
{
	struct soak *s = q->node->world->world->watch_arg;
	unsigned int i = wc->wr_id & 0xffff;
	struct flow *f = flow_to(s, q, wc->qp_num);
	struct recv_slot *slot = &q->slots[i];

	if (!f)
		soak_fail(s, "queue %u: a completion of QP %06x", q->index, wc->qp_num);
	if (cq != (f->xrc ? q->cq : f->peer_cq))
		soak_fail(s, "queue %u: a completion on the wrong CQ", q->index);
	if (!slot->posted)
		soak_fail(s, "queue %u: receive %u completed twice", q->index, i);
	check_order(s, q, i);
	slot->posted = false;
	slot->dirty = SOAK_SLOT;
	if (wc->status == IBV_WC_SUCCESS)
		received(f, q, cq, slot, wc);
	else if (wc->status == IBV_WC_WR_FLUSH_ERR)
		f->flushed = true;
	else
		soak_fail(s, "queue %u: a receive completed with status %d", q->index, wc->status);
}
