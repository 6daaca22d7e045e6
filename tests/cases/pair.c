/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two engines and a connection. */
#include "pair.h"

#include <stdlib.h>
#include <string.h>

struct pair *pair_open(enum ibv_qp_type type, unsigned int nodes, const struct sim_config *net)
{
	struct world_config config = {.seed = 11, .nodes = nodes, .net = {.latency_ns = 1000}};
	struct pair *p = calloc(1, sizeof(*p));

	cr_assert(p != NULL);
	if (net)
		config.net = *net;
	p->w = world_create(&config);
	p->w->trace = getenv("SCRIPT_TRACE") != NULL;
	p->a = &p->w->nodes[0];
	p->b = &p->w->nodes[nodes - 1];
	p->pd_a = world_pd(p->a);
	p->pd_b = world_pd(p->b);
	p->cq_a = world_cq(p->a, 256, &p->events_a);
	p->cq_b = world_cq(p->b, 256, &p->events_b);
	p->mem_a = calloc(1, PAIR_MEM);
	p->mem_b = calloc(1, PAIR_MEM);
	cr_assert(p->mem_a && p->mem_b);
	p->mr_a = world_mr(p->pd_a, p->mem_a, PAIR_MEM, WORLD_ALL_ACCESS | IBV_ACCESS_MW_BIND);
	p->mr_b = world_mr(p->pd_b, p->mem_b, PAIR_MEM, WORLD_ALL_ACCESS | IBV_ACCESS_MW_BIND);
	p->xrcd = world_xrcd(p->b);
	if (type == IBV_QPT_XRC_SEND) {
		p->srq = world_xrc_srq(p->pd_b, p->xrcd, p->cq_b, 64, 4);
		p->handle_a = world_ini(p->pd_a, p->cq_a, &p->tag_a);
		p->handle_b = world_tgt(p->b, p->xrcd, &p->tag_b);
	} else if (type == IBV_QPT_UD) {
		p->handle_a = world_ud(p->pd_a, p->cq_a, p->cq_a, &p->tag_a);
		p->handle_b = world_ud(p->pd_b, p->cq_b, p->cq_b, &p->tag_b);
	} else {
		struct qp_init a = {.type = type,
				    .pd = p->pd_a,
				    .send_cq = p->cq_a,
				    .recv_cq = p->cq_a,
				    .cap = {64, 64, 4, 4, 256},
				    .user = &p->tag_a};
		struct qp_init b = a;

		b.pd = p->pd_b;
		b.send_cq = b.recv_cq = p->cq_b;
		b.user = &p->tag_b;
		must(qp_create(p->a->engine, &a, &p->handle_a));
		must(qp_create(p->b->engine, &b, &p->handle_b));
	}
	p->qp_a = p->handle_a->qp;
	p->qp_b = p->handle_b->qp;
	return p;
}

struct pair *pair_rc(const struct world_path *path)
{
	struct pair *p = pair_open(IBV_QPT_RC, 2, NULL);

	world_connect(p->qp_a, p->qp_b, path);
	return p;
}

struct pair *pair_xrc(const struct world_path *path)
{
	struct pair *p = pair_open(IBV_QPT_XRC_SEND, 2, NULL);

	world_connect(p->qp_a, p->qp_b, path);
	return p;
}

struct pair *pair_srq(const struct world_path *path)
{
	struct pair *p = pair_open(IBV_QPT_RC, 2, NULL);

	must(qp_close(p->handle_b, p->w->now));
	p->srq = world_basic_srq(p->pd_b, 64, 4);
	p->handle_b = world_rc(p->pd_b, p->cq_b, p->cq_b, p->srq, &p->tag_b);
	p->qp_b = p->handle_b->qp;
	world_connect(p->qp_a, p->qp_b, path);
	return p;
}

void pair_end(struct pair *p)
{
	if (p->handle_a)
		must(qp_close(p->handle_a, p->w->now));
	if (p->handle_b)
		must(qp_close(p->handle_b, p->w->now));
	if (p->srq)
		must(engine_srq_destroy(p->srq));
	must(xrcd_close(p->xrcd));
	must(mr_destroy(p->mr_a));
	must(mr_destroy(p->mr_b));
	must(cq_destroy(p->cq_a));
	must(cq_destroy(p->cq_b));
	must(pd_destroy(p->pd_a));
	must(pd_destroy(p->pd_b));
	world_destroy(p->w);
	free(p->mem_a);
	free(p->mem_b);
	free(p);
}

uint32_t pair_srqn(const struct pair *p)
{
	return p->qp_a->type == IBV_QPT_XRC_SEND ? p->srq->srqn : 0;
}

int pair_recv(struct pair *p, uint64_t wr_id, uint32_t length)
{
	if (p->srq)
		return world_srq_recv(p->srq, wr_id, p->mr_b, p->mem_b, length);
	return world_recv(p->qp_b, wr_id, p->mr_b, p->mem_b, length);
}

int pair_send(struct pair *p, uint64_t wr_id, uint32_t length)
{
	return world_send(p->qp_a, wr_id, p->mr_a, p->mem_a, length, pair_srqn(p));
}

struct ibv_wc expect_wc(struct pair *p, struct cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	cr_assert(world_wait(p->w, cq, PAIR_WAIT, &wc), "no completion, expected wr_id %llu",
		  (unsigned long long)wr_id);
	cr_assert_eq(wc.wr_id, wr_id, "wr_id %llu, expected %llu (status %d)",
		     (unsigned long long)wc.wr_id, (unsigned long long)wr_id, wc.status);
	cr_assert_eq(wc.status, status, "wr_id %llu: status %d, expected %d",
		     (unsigned long long)wr_id, wc.status, status);
	return wc;
}

void expect_no_wc(struct pair *p, struct cq *cq)
{
	struct ibv_wc wc;

	world_run(p->w, 10000000);
	cr_assert(!world_poll(cq, &wc), "a completion: wr_id %llu status %d",
		  (unsigned long long)wc.wr_id, wc.status);
}

void pair_fill(uint8_t *b, size_t n, uint32_t seed)
{
	struct rng rng = {seed};

	for (size_t i = 0; i < n; i++)
		b[i] = rng_next(&rng);
}
