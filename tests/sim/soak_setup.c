/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Seed -> network, domains, queues, connections; and the end of them all.
 *
 * What is drawn here is what the run depends on most, so the ranges are chosen to hurt: timeouts of
 * a few round trips, PSNs that wrap after a few packets, receive queues of a few entries, and SRQs
 * that several TGT QPs and two protection domains meet at.
 */
#include "soak.h"

#include "wire/psn.h"

#include <stdlib.h>
#include <string.h>

static void *zalloc(size_t n)
{
	void *p = calloc(1, n);

	if (!p)
		abort();
	return p;
}

static void node_setup(struct soak *s, unsigned int i)
{
	struct soak_node *node = &s->nodes[i];

	node->world = &s->world->nodes[i];
	node->ncqs = rng_range(&s->rng, 1, SOAK_MAX_CQS);
	for (unsigned int k = 0; k < node->ncqs; k++)
		node->cqs[k] = world_cq(node->world, 4096, NULL);
	for (unsigned int k = 0; k < 2; k++) {
		node->pds[k] = world_pd(node->world);
		node->xrcds[k] = world_xrcd(node->world);
	}
}

static struct cq *any_cq(struct soak *s, struct soak_node *node)
{
	return node->cqs[rng_below(&s->rng, node->ncqs)];
}

static struct pd *any_pd(struct soak *s, struct soak_node *node)
{
	return node->pds[rng_below(&s->rng, 2)];
}

/* A receive queue without its SRQ or QP. */
static struct queue *queue_setup(struct soak *s, struct soak_node *node, struct pd *pd)
{
	struct queue *q = &s->queues[s->nqueues];

	*q = (struct queue){
		.index = s->nqueues++,
		.node = node,
		.pd = pd,
		.room = rng_range(&s->rng, 1, SOAK_RECVS),
		.next_post = s->world->now + rng_below(&s->rng, 300000),
		.delay = rng_percent(&s->rng, 50) ? 20000 : 1000000,
		.mem = malloc((size_t)SOAK_RECVS * SOAK_SLOT),
	};
	if (!q->mem)
		abort();
	for (unsigned int i = 0; i < SOAK_RECVS; i++)
		q->slots[i].dirty = SOAK_SLOT;
	q->mr = world_mr(pd, q->mem, (uint64_t)SOAK_RECVS * SOAK_SLOT, IBV_ACCESS_LOCAL_WRITE);
	return q;
}

static void region_setup(struct flow *f, unsigned int i, struct pd *pd)
{
	struct region *r = &f->regions[i];

	r->pd = pd;
	r->mem = zalloc(REGION_LEN);
	r->shadow = zalloc(REGION_LEN);
	pattern_fill(r->mem + REGION_READ, REGION_READ_LEN, rng_next(&f->rng));
	memcpy(r->shadow, r->mem, REGION_LEN);
	r->mr = world_mr(pd, r->mem, REGION_LEN, WORLD_ALL_ACCESS | IBV_ACCESS_MW_BIND);
}

static struct region *region_in(struct flow *f, struct pd *pd)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(f->regions); i++) {
		if (!f->regions[i].mem)
			region_setup(f, i, pd);
		if (f->regions[i].pd == pd)
			return &f->regions[i];
	}
	abort();
}

static void add_target(struct flow *f, struct queue *q, struct pd *pd)
{
	f->targets[f->ntargets++] = (struct target){
		.queue = q,
		.region = region_in(f, pd),
		.srqn = f->xrc ? q->srq->srqn : 0,
	};
}

/* XRC SRQs of a node: one to three for each domain, over both protection domains. */
static void xrc_queues_setup(struct soak *s, struct soak_node *node)
{
	for (unsigned int x = 0; x < 2; x++) {
		unsigned int n = rng_range(&s->rng, 1, 3);

		for (unsigned int i = 0; i < n; i++) {
			struct queue *q = queue_setup(s, node, any_pd(s, node));

			q->cq = any_cq(s, node);
			q->srq = world_xrc_srq(q->pd, node->xrcds[x], q->cq, q->room, SOAK_MAX_SGE);
		}
	}
}

static uint32_t draw_psn(struct soak *s)
{
	return rng_percent(&s->rng, 50) ? PSN_MASK - rng_below(&s->rng, 60)
					: rng_below(&s->rng, PSN_MASK);
}

static struct world_path draw_path(struct soak *s)
{
	bool hasty = rng_percent(&s->rng, 15);

	return (struct world_path){
		.mtu = rng_range(&s->rng, IBV_MTU_256, IBV_MTU_4096),
		.timeout = rng_range(&s->rng, 8, 12),
		.retry_cnt = hasty ? rng_below(&s->rng, 3) : 7,
		.rnr_retry = rng_percent(&s->rng, 95) ? 7 : rng_range(&s->rng, 0, 6),
		.min_rnr_timer = rng_range(&s->rng, 1, 14),
		.rd_atomic = rng_percent(&s->rng, 30) ? 1 : rng_range(&s->rng, 2, 16),
		.psn_a = draw_psn(s),
		.psn_b = draw_psn(s),
		.access = WORLD_ALL_ACCESS,
	};
}

static struct flow *flow_setup(struct soak *s, struct soak_node *src, struct soak_node *dst,
			       const struct world_path *path)
{
	struct flow *f = &s->flows[s->nflows];

	*f = (struct flow){
		.soak = s,
		.index = s->nflows++,
		.src = src,
		.dst = dst,
		.path = *path,
		.mtu = 128u << path->mtu,
		.window = rng_range(&s->rng, 1, SOAK_WINDOW),
		.total = rng_range(&s->rng, 8, 36),
		.rng = {rng_next(&s->rng)},
		.mem = malloc((size_t)SOAK_WINDOW * SOAK_SLOT),
	};
	if (!f->mem)
		abort();
	f->requests = zalloc(f->total * sizeof(*f->requests));
	return f;
}

/* The side of an RC connection that belongs to @f's requester. */
static void rc_side(struct soak *s, struct flow *f, struct queue **q)
{
	struct cq *recv_cq = any_cq(s, f->src);
	struct srq *srq = NULL;

	f->pd = any_pd(s, f->src);
	f->cq = any_cq(s, f->src);
	*q = queue_setup(s, f->src, rng_percent(&s->rng, 50) ? f->pd : any_pd(s, f->src));
	if (rng_percent(&s->rng, 30)) {
		(*q)->srq = srq = world_basic_srq((*q)->pd, (*q)->room, SOAK_MAX_SGE);
	} else if ((*q)->pd != f->pd) {
		must(mr_destroy((*q)->mr));
		(*q)->pd = f->pd;
		(*q)->mr = world_mr(f->pd, (*q)->mem, (uint64_t)SOAK_RECVS * SOAK_SLOT,
				    IBV_ACCESS_LOCAL_WRITE);
	}
	f->handle = world_rc(f->pd, f->cq, recv_cq, srq, f);
	f->qp = f->handle->qp;
	if (!srq) {
		(*q)->qp = f->qp;
		(*q)->cq = recv_cq;
	}
	f->mr = world_mr(f->pd, f->mem, (uint64_t)SOAK_WINDOW * SOAK_SLOT, IBV_ACCESS_LOCAL_WRITE);
	f->back->peer_cq = recv_cq;
}

static void rc_setup(struct soak *s, struct soak_node *src, struct soak_node *dst)
{
	struct world_path path = draw_path(s), mirror = path;
	struct flow *f = flow_setup(s, src, dst, &path);
	struct flow *b = flow_setup(s, dst, src, &mirror);
	struct queue *fq, *bq;

	b->path.psn_a = path.psn_b;
	b->path.psn_b = path.psn_a;
	f->back = b;
	b->back = f;
	rc_side(s, f, &fq);
	rc_side(s, b, &bq);
	f->peer = b->qp;
	b->peer = f->qp;
	add_target(f, bq, b->pd);
	add_target(b, fq, f->pd);
	must(mw_create(b->pd, IBV_MW_TYPE_2, &f->mw.mw));
	must(mw_create(f->pd, IBV_MW_TYPE_2, &b->mw.mw));
	world_connect(f->qp, b->qp, &f->path);
}

static void xrc_setup(struct soak *s, struct soak_node *src, struct soak_node *dst)
{
	struct world_path path = draw_path(s);
	struct flow *f = flow_setup(s, src, dst, &path);
	struct xrcd *xrcd = dst->xrcds[rng_below(&s->rng, 2)];

	f->xrc = true;
	f->pd = any_pd(s, src);
	f->cq = any_cq(s, src);
	f->mr = world_mr(f->pd, f->mem, (uint64_t)SOAK_WINDOW * SOAK_SLOT, IBV_ACCESS_LOCAL_WRITE);
	f->handle = world_ini(f->pd, f->cq, f);
	f->qp = f->handle->qp;
	f->peer_handle = world_tgt(dst->world, xrcd, f);
	f->peer = f->peer_handle->qp;
	for (unsigned int i = 0; i < s->nqueues; i++)
		if (s->queues[i].srq && s->queues[i].srq->xrcd == xrcd)
			add_target(f, &s->queues[i], s->queues[i].pd);
	world_connect(f->qp, f->peer, &f->path);
}

static struct sim_config draw_network(struct soak *s)
{
	struct sim_config net = {
		.drop = WORLD_PERCENT(s->faults),
		.dup = WORLD_PERCENT(s->faults),
		.reorder = WORLD_PERCENT(s->faults),
		.corrupt = WORLD_PERCENT(s->faults),
		.latency_ns = rng_range(&s->rng, 200, 50000),
		.jitter_ns = rng_range(&s->rng, 1000, 200000),
	};

	if (rng_percent(&s->rng, 20))
		net.queue = rng_range(&s->rng, 64, 256);
	if (rng_percent(&s->rng, 10))
		net.drop = net.dup = net.reorder = net.corrupt = 0;
	/* Behind all that is drawn: a seed makes the same traffic whatever the number of lanes. */
	if (s->lanes > 1)
		net.missteer = WORLD_PERCENT(s->faults);
	return net;
}

void soak_setup(struct soak *s, const char *pcap, bool trace)
{
	struct world_config config = {.seed = s->seed, .lanes = s->lanes};
	unsigned int rcs, xrcs, n;

	s->rng.state = s->seed ^ 0x736f616bull;
	config.nodes = n = rng_range(&s->rng, 2, 3);
	config.net = s->net = draw_network(s);
	s->world = world_create(&config);
	s->world->trace = trace;
	if (pcap)
		must(world_capture(s->world, pcap));
	for (unsigned int i = 0; i < n; i++)
		node_setup(s, i);
	for (unsigned int i = 0; i < n; i++)
		xrc_queues_setup(s, &s->nodes[i]);
	rcs = rng_range(&s->rng, 1, 3);
	xrcs = rng_range(&s->rng, 2, 6);
	/* Both ends in one engine now and then: source and destination may be equal. */
	for (unsigned int i = 0; i < rcs; i++) {
		unsigned int src = rng_below(&s->rng, n), hop = rng_below(&s->rng, n);

		rc_setup(s, &s->nodes[src], &s->nodes[(src + hop) % n]);
	}
	for (unsigned int i = 0; i < xrcs; i++) {
		unsigned int src = rng_below(&s->rng, n), hop = rng_range(&s->rng, 1, n - 1);

		if (rng_percent(&s->rng, 10))
			hop = 0;
		xrc_setup(s, &s->nodes[src], &s->nodes[(src + hop) % n]);
	}
	for (unsigned int i = 0; i < s->nflows; i++)
		oracle_init(&s->flows[i]);
	s->world->watch = oracle_watch;
	s->world->watch_arg = s;
	sim_observe(s->world->sim, oracle_observe, s);
}

/* Whatever is still in use says so. */
static void check_busy(struct soak *s)
{
	struct flow *f = &s->flows[s->nflows - 1];

	if (pd_destroy(f->pd) != -EBUSY)
		soak_fail(s, "a PD with a QP in it was destroyed");
	if (cq_destroy(f->cq) != -EBUSY)
		soak_fail(s, "a CQ with a QP on it was destroyed");
	if (xrcd_close(f->peer->xrcd) != -EBUSY)
		soak_fail(s, "an XRC domain with a TGT QP in it was closed");
	for (unsigned int i = 0; i < s->nqueues; i++)
		if (s->queues[i].srq && s->queues[i].srq->type == IBV_SRQT_BASIC &&
		    engine_srq_destroy(s->queues[i].srq) != -EBUSY)
			soak_fail(s, "an SRQ with a QP on it was destroyed");
}

static void flow_teardown(struct flow *f)
{
	uint64_t now = f->soak->world->now;

	if (f->mw.mw)
		mw_destroy(f->mw.mw);
	must(qp_close(f->handle, now));
	if (f->peer_handle)
		must(qp_close(f->peer_handle, now));
	oracle_fini(f);
	must(mr_destroy(f->mr));
	free(f->mem);
	for (unsigned int i = 0; i < f->total; i++)
		free(f->requests[i].expect);
	free(f->requests);
}

static void regions_teardown(struct flow *f)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(f->regions); i++) {
		if (!f->regions[i].mem)
			continue;
		must(mr_destroy(f->regions[i].mr));
		free(f->regions[i].mem);
		free(f->regions[i].shadow);
	}
}

void soak_teardown(struct soak *s)
{
	check_busy(s);
	for (unsigned int i = 0; i < s->nflows; i++)
		flow_teardown(&s->flows[i]);
	for (unsigned int i = 0; i < s->nflows; i++)
		regions_teardown(&s->flows[i]);
	for (unsigned int i = 0; i < s->nqueues; i++) {
		if (s->queues[i].srq)
			must(engine_srq_destroy(s->queues[i].srq));
		must(mr_destroy(s->queues[i].mr));
		free(s->queues[i].mem);
	}
	for (unsigned int i = 0; i < s->world->n; i++) {
		struct soak_node *node = &s->nodes[i];

		for (unsigned int k = 0; k < node->ncqs; k++)
			must(cq_destroy(node->cqs[k]));
		for (unsigned int k = 0; k < 2; k++) {
			must(xrcd_close(node->xrcds[k]));
			must(pd_destroy(node->pds[k]));
		}
	}
	world_destroy(s->world);
}
