/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Engines with several lanes on the simulated network: who is where, what is handed over, and XRC traffic in which
 * TGT QPs of different lanes consume the same SRQs.
 *
 *     node 0                               node 1
 *     INI 0 (lane 0) ------- TGT 0 (lane 0) --+--> SRQ 0
 *     INI 1 (lane 1) ------- TGT 1 (lane 1) --+
 *     INI 2 (lane 0) ------- TGT 2 (lane 0) --+--> SRQ 1
 *     INI 3 (lane 1) ------- TGT 3 (lane 1) --+      each sends to both
 */
#include "world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FLOWS	 4
#define SRQS	 2
#define MESSAGES 60 /* of each flow */
#define RECVS	 16 /* posted to each SRQ */
#define MAX_LEN	 6000
#define DEPTH	 8 /* requests that a flow has outstanding */

/* --- objects --- */

static struct world *world_of(uint64_t seed, unsigned int lanes, uint32_t missteer)
{
	struct world_config config = {
		.seed = seed, .nodes = 2, .lanes = lanes, .net = {.missteer = missteer}};

	config.net.latency_ns = 5000;
	return world_create(&config);
}

Test(lanes, qp_create__fills_the_lanes_evenly_and_pairs_together)
{
	struct world *w = world_of(1, 4, 0);
	struct world_node *node = &w->nodes[0];
	struct pd *pd = world_pd(node);
	struct cq *cq = world_cq(node, 16, NULL);
	struct xrcd *x = world_xrcd(node);
	struct qp_handle *ini[8], *tgt[8];

	for (unsigned int i = 0; i < 8; i++) {
		ini[i] = world_ini(pd, cq, NULL);
		tgt[i] = world_tgt(node, x, NULL);
		cr_assert_eq(ini[i]->qp->lane->index, i % 4);
		cr_assert_eq(tgt[i]->qp->lane->index, i % 4);
		cr_assert_eq(lane_of(node->engine, ini[i]->qp->qpn), ini[i]->qp->lane);
		cr_assert_eq(lane_of(node->engine, tgt[i]->qp->qpn), tgt[i]->qp->lane);
	}
	/* The place of one that goes is taken first. */
	must(qp_close(ini[2], w->now));
	ini[2] = world_ini(pd, cq, NULL);
	cr_assert_eq(ini[2]->qp->lane->index, 2);
	for (unsigned int i = 0; i < 8; i++) {
		must(qp_close(ini[i], w->now));
		must(qp_close(tgt[i], w->now));
	}
	must(xrcd_close(x));
	must(cq_destroy(cq));
	must(pd_destroy(pd));
	world_destroy(w);
}

Test(lanes, cq_lanes__are_those_that_push_to_it)
{
	struct world *w = world_of(2, 4, 0);
	struct world_node *node = &w->nodes[0];
	struct pd *pd = world_pd(node);
	struct cq *send = world_cq(node, 16, NULL), *recv = world_cq(node, 16, NULL),
		  *shared = world_cq(node, 16, NULL);
	struct xrcd *x = world_xrcd(node), *other = world_xrcd(node);
	struct qp_handle *rc[2], *tgt[3];
	struct srq *srq[2];

	cr_assert_eq(cq_lanes(send), 0);
	rc[0] = world_rc(pd, send, recv, NULL, NULL);
	rc[1] = world_rc(pd, send, send, NULL, NULL);
	cr_assert_eq(cq_lanes(send), 3);
	cr_assert_eq(cq_lanes(recv), 1);
	must(qp_close(rc[1], w->now));
	cr_assert_eq(cq_lanes(send), 1);

	/* An XRC SRQ's queue is pushed to by every TGT QP of the domain, whichever came first. */
	tgt[0] = world_tgt(node, x, NULL);
	srq[0] = world_xrc_srq(pd, x, shared, 4, 1);
	cr_assert_eq(cq_lanes(shared), 1);
	tgt[1] = world_tgt(node, x, NULL);
	tgt[2] = world_tgt(node, other, NULL);
	cr_assert_eq(cq_lanes(shared), 3);
	srq[1] = world_xrc_srq(pd, other, shared, 4, 1);
	cr_assert_eq(cq_lanes(shared), 7);
	must(qp_close(tgt[1], w->now));
	cr_assert_eq(cq_lanes(shared), 5);
	must(engine_srq_destroy(srq[1]));
	cr_assert_eq(cq_lanes(shared), 1);
	must(qp_close(tgt[0], w->now));
	cr_assert_eq(cq_lanes(shared), 0);

	must(qp_close(tgt[2], w->now));
	must(qp_close(rc[0], w->now));
	must(engine_srq_destroy(srq[0]));
	must(xrcd_close(x));
	must(xrcd_close(other));
	must(cq_destroy(send));
	must(cq_destroy(recv));
	must(cq_destroy(shared));
	must(pd_destroy(pd));
	world_destroy(w);
}

/* --- handing over --- */

/* An RC connection whose ends are in lane 1 of either node. */
struct pair {
	struct world *w;
	struct pd *pd[2];
	struct cq *cq[2];
	struct mr *mr[2];
	struct qp_handle *filler[2], *qp[2];
	uint8_t mem[2][4096];
};

static void pair_create(struct pair *p, uint64_t seed, uint32_t missteer)
{
	p->w = world_of(seed, 2, missteer);
	for (unsigned int i = 0; i < 2; i++) {
		struct world_node *node = &p->w->nodes[i];

		p->pd[i] = world_pd(node);
		p->cq[i] = world_cq(node, 4096, NULL);
		p->mr[i] = world_mr(p->pd[i], p->mem[i], sizeof(p->mem[i]), WORLD_ALL_ACCESS);
		p->filler[i] = world_rc(p->pd[i], p->cq[i], p->cq[i], NULL, NULL);
		p->qp[i] = world_rc(p->pd[i], p->cq[i], p->cq[i], NULL, NULL);
		cr_assert_eq(p->qp[i]->qp->lane->index, 1);
	}
	world_connect(p->qp[0]->qp, p->qp[1]->qp, &world_path);
}

static void pair_destroy(struct pair *p)
{
	for (unsigned int i = 0; i < 2; i++) {
		must(qp_close(p->qp[i], p->w->now));
		must(qp_close(p->filler[i], p->w->now));
		must(mr_destroy(p->mr[i]));
		must(cq_destroy(p->cq[i]));
		must(pd_destroy(p->pd[i]));
	}
	world_destroy(p->w);
}

static unsigned int completions(struct cq *cq)
{
	struct ibv_wc wc;
	unsigned int n = 0;

	while (world_poll(cq, &wc)) {
		cr_assert_eq(wc.status, IBV_WC_SUCCESS, "status %d", wc.status);
		n++;
	}
	return n;
}

/* WRITEs of one packet each. */
static void post_writes(struct pair *p, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		must(world_rdma(p->qp[0]->qp, i, IBV_WR_RDMA_WRITE, p->mr[0], p->mem[0], 256,
				(uintptr_t)p->mem[1], p->mr[1]->key, 0));
}

/* Every packet goes to lane 0, which the first one, of no QP there, was steered to. */
Test(lanes, lane_hand_over__brings_a_packet_to_its_qp)
{
	static struct pair p;

	pair_create(&p, 3, UINT32_MAX);
	memset(p.mem[0], 0x5a, 256);
	post_writes(&p, 20);
	world_run(p.w, 1000000000);
	cr_assert_eq(completions(p.cq[0]), 20);
	cr_assert_arr_eq(p.mem[1], p.mem[0], 256);
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(world_stat(&p.w->nodes[i], STAT_handed_over),
			     world_stat(&p.w->nodes[i], STAT_rx_packets));
	cr_assert_eq(world_stat(&p.w->nodes[0], STAT_retransmits), 0);
	pair_destroy(&p);
}

Test(lanes, rx_packet__of_no_qp_is_not_handed_over)
{
	static struct pair p;
	struct world_path path = world_path;

	pair_create(&p, 4, UINT32_MAX);
	path.retry_cnt = 0;
	/* To a number that nobody has. */
	must(world_to_state(p.qp[0]->qp, IBV_QPS_RESET));
	must(world_to_init(p.qp[0]->qp, &path));
	must(world_to_rtr(p.qp[0]->qp, p.w->nodes[1].ip, p.qp[1]->qp->qpn ^ 0x10000, &path, 0));
	must(world_to_rts(p.qp[0]->qp, &path, 0));
	post_writes(&p, 1);
	world_run(p.w, 1000000000);
	cr_assert_eq(world_stat(&p.w->nodes[1], STAT_handed_over), 0);
	cr_assert_gt(world_stat(&p.w->nodes[1], DROP_no_qp), 0);
	pair_destroy(&p);
}

/* Packets by hand, to the lane that is not their QP's, while that one is held. */
Test(lanes, lane_hand_over__drops_what_does_not_fit_and_counts_it)
{
	static struct pair p;
	struct world_node *to;
	struct lane *held;
	uint8_t ip[16] = {[10] = 0xff, 0xff, 10, 44, 0, 99};
	struct link_dest dest = {.ttl = 64};
	struct link *raw;

	pair_create(&p, 5, UINT32_MAX);
	to = &p.w->nodes[1];
	held = p.qp[1]->qp->lane;
	raw = world_raw_link(p.w, ip);
	memcpy(dest.dgid, to->ip, 16);
	lane_lock(held, p.w->now);
	for (unsigned int i = 0; i < HANDOVER_PACKETS + 10; i++) {
		uint8_t *b = raw->ops->tx_reserve(raw, &dest, WIRE_BTH_LEN + 4);
		struct wire_pkt pkt = {.op = wire_opcode(0x11),
				       .pkey = WIRE_PKEY_DEFAULT,
				       .dest_qpn = p.qp[1]->qp->qpn};

		wire_encode_hdr(b, &pkt);
		raw->ops->tx_commit(raw, 0);
	}
	raw->ops->tx_flush(raw, p.w->now);
	/* Bursts of a pass are bounded. */
	for (unsigned int i = 0; i < 10; i++)
		lane_run(to->engine->lanes[0], p.w->now + 10000, LANE_POLL);
	cr_assert_eq(world_stat(to, STAT_handed_over), HANDOVER_PACKETS);
	cr_assert_eq(world_stat(to, DROP_lane_full), 10);
	/* The address is not the peer's, so its lane drops them; and there is room again. */
	lane_unlock(held);
	cr_assert_eq(world_stat(to, DROP_source), HANDOVER_PACKETS);
	post_writes(&p, 3);
	world_run(p.w, 1000000000);
	cr_assert_eq(completions(p.cq[0]), 3);
	cr_assert_eq(world_stat(to, DROP_lane_full), 10);
	pair_destroy(&p);
}

/* What is left of many packets wakes nobody by itself: the link may have read it already. */
Test(lanes, lane_run__publishes_that_packets_are_left)
{
	struct world *w = world_of(6, 1, 0);
	struct lane *lane = w->nodes[0].engine->lanes[0];
	uint8_t ip[16] = {[10] = 0xff, 0xff, 10, 44, 0, 99};
	struct link_dest dest = {.ttl = 64};
	struct link *raw = world_raw_link(w, ip);
	uint64_t then = w->now + 10000, passes = 0, came = 0;

	memcpy(dest.dgid, w->nodes[0].ip, 16);
	for (unsigned int i = 0; i < 10 * LINK_RX_BURST; i++) {
		uint8_t *b = raw->ops->tx_reserve(raw, &dest, WIRE_BTH_LEN + 4);
		struct wire_pkt pkt = {.op = wire_opcode(0x11),
				       .pkey = WIRE_PKEY_DEFAULT,
				       .dest_qpn = RXE_QPN_FIRST};

		wire_encode_hdr(b, &pkt);
		raw->ops->tx_commit(raw, 0);
	}
	raw->ops->tx_flush(raw, w->now);
	do {
		lane_run(lane, then, LANE_POLL);
		passes++;
		cr_assert_gt(world_stat(&w->nodes[0], DROP_no_qp), came);
		came = world_stat(&w->nodes[0], DROP_no_qp);
	} while (atomic_load(&lane->deadline) <= then);
	cr_assert_gt(passes, 1);
	cr_assert_eq(came, 10 * LINK_RX_BURST);
	world_destroy(w);
}

/* --- XRC traffic --- */

struct flow {
	struct qp_handle *ini, *tgt;
	unsigned int posted, done;
	unsigned int received[SRQS]; /* messages that came, by SRQ */
	unsigned int next;	     /* number of the message that comes next, with one CQ */
	uint8_t *mem;
	struct mr *mr;
};

struct traffic {
	struct world *w;
	struct rng rng;
	struct pd *pd[2];
	struct cq *send_cq, *recv_cq[SRQS];
	bool one_cq; /* for both SRQs: then the order of all messages of a QP shows */
	struct xrcd *xrcd;
	struct srq *srq[SRQS];
	uint8_t *mem; /* of the receives */
	struct mr *mr;
	struct flow flows[FLOWS];
};

static uint32_t length_of(unsigned int flow, unsigned int n)
{
	return 8 + (flow * 2654435761u + n * 40503u) % (MAX_LEN - 8);
}

static unsigned int srq_of(unsigned int flow, unsigned int n)
{
	return (flow * 7 + n * n) % SRQS;
}

static void fill(uint8_t *b, unsigned int flow, unsigned int n)
{
	for (uint32_t i = 0; i < length_of(flow, n); i++)
		b[i] = (uint8_t)(flow * 31 + n * 17 + i * 7 + (i >> 8));
	b[0] = (uint8_t)flow;
	b[1] = (uint8_t)n;
}

static void post_recv(struct traffic *t, unsigned int srq, unsigned int slot)
{
	uint8_t *b = t->mem + ((size_t)srq * RECVS + slot) * MAX_LEN;

	memset(b, 0xee, MAX_LEN);
	must(world_srq_recv(t->srq[srq], (uint64_t)srq * RECVS + slot, t->mr, b, MAX_LEN));
}

static void traffic_create(struct traffic *t, uint64_t seed, unsigned int lanes)
{
	struct world_config config = {
		.seed = seed,
		.nodes = 2,
		.lanes = lanes,
		.net = {.latency_ns = 3000,
			.jitter_ns = 30000,
			.drop = WORLD_PERCENT(2),
			.dup = WORLD_PERCENT(2),
			.reorder = WORLD_PERCENT(2),
			.missteer = WORLD_PERCENT(20)},
	};

	memset(t, 0, sizeof(*t));
	t->rng.state = seed;
	t->w = world_create(&config);
	for (unsigned int i = 0; i < 2; i++)
		t->pd[i] = world_pd(&t->w->nodes[i]);
	t->one_cq = seed % 2;
	t->send_cq = world_cq(&t->w->nodes[0], 1024, NULL);
	t->recv_cq[0] = world_cq(&t->w->nodes[1], 1024, NULL);
	t->recv_cq[1] = t->one_cq ? t->recv_cq[0] : world_cq(&t->w->nodes[1], 1024, NULL);
	t->xrcd = world_xrcd(&t->w->nodes[1]);
	t->mem = malloc((size_t)SRQS * RECVS * MAX_LEN);
	t->mr = world_mr(t->pd[1], t->mem, (uint64_t)SRQS * RECVS * MAX_LEN,
			 IBV_ACCESS_LOCAL_WRITE);
	for (unsigned int i = 0; i < SRQS; i++) {
		t->srq[i] = world_xrc_srq(t->pd[1], t->xrcd, t->recv_cq[i], RECVS, 1);
		for (unsigned int k = 0; k < RECVS; k++)
			post_recv(t, i, k);
	}
	for (unsigned int i = 0; i < FLOWS; i++) {
		struct flow *f = &t->flows[i];

		f->ini = world_ini(t->pd[0], t->send_cq, NULL);
		f->tgt = world_tgt(&t->w->nodes[1], t->xrcd, NULL);
		cr_assert_eq(f->tgt->qp->lane->index, i % lanes);
		f->mem = malloc((size_t)DEPTH * MAX_LEN);
		f->mr = world_mr(t->pd[0], f->mem, (uint64_t)DEPTH * MAX_LEN, 0);
		world_connect(f->ini->qp, f->tgt->qp, &world_path);
	}
}

static void traffic_destroy(struct traffic *t)
{
	for (unsigned int i = 0; i < FLOWS; i++) {
		struct flow *f = &t->flows[i];

		must(qp_close(f->ini, t->w->now));
		must(qp_close(f->tgt, t->w->now));
		must(mr_destroy(f->mr));
		free(f->mem);
	}
	for (unsigned int i = 0; i < SRQS; i++)
		must(engine_srq_destroy(t->srq[i]));
	must(mr_destroy(t->mr));
	must(xrcd_close(t->xrcd));
	must(cq_destroy(t->send_cq));
	must(cq_destroy(t->recv_cq[0]));
	if (!t->one_cq)
		must(cq_destroy(t->recv_cq[1]));
	must(pd_destroy(t->pd[0]));
	must(pd_destroy(t->pd[1]));
	world_destroy(t->w);
	free(t->mem);
}

static void post_sends(struct traffic *t)
{
	for (unsigned int i = 0; i < FLOWS; i++) {
		struct flow *f = &t->flows[i];

		while (f->posted < MESSAGES && f->posted - f->done < DEPTH &&
		       rng_percent(&t->rng, 70)) {
			unsigned int n = f->posted++;
			uint8_t *b = f->mem + (size_t)(n % DEPTH) * MAX_LEN;

			fill(b, i, n);
			must(world_send(f->ini->qp, (uint64_t)i << 32 | n, f->mr, b,
					length_of(i, n), t->srq[srq_of(i, n)]->srqn));
		}
	}
}

static void take_send(struct traffic *t, const struct ibv_wc *wc)
{
	struct flow *f = &t->flows[wc->wr_id >> 32];

	cr_assert_eq(wc->status, IBV_WC_SUCCESS, "status %d", wc->status);
	cr_assert_eq((uint32_t)wc->wr_id, f->done);
	f->done++;
}

/* The next message of the flow to this SRQ. */
static unsigned int expected(const struct traffic *t, unsigned int flow, unsigned int srq)
{
	const struct flow *f = &t->flows[flow];
	unsigned int skip = f->received[srq], n;

	if (t->one_cq)
		return f->next;
	for (n = 0; srq_of(flow, n) != srq || skip--; n++)
		;
	return n;
}

static void take_recv(struct traffic *t, const struct ibv_wc *wc)
{
	static uint8_t want[MAX_LEN];
	unsigned int srq = wc->wr_id / RECVS, slot = wc->wr_id % RECVS, n;
	const uint8_t *b = t->mem + wc->wr_id * MAX_LEN;
	unsigned int flow = b[0];

	cr_assert_eq(wc->status, IBV_WC_SUCCESS, "status %d", wc->status);
	cr_assert_lt(flow, FLOWS);
	cr_assert_eq(wc->qp_num, t->flows[flow].tgt->qp->qpn);
	n = expected(t, flow, srq);
	cr_assert_eq(srq_of(flow, n), srq);
	cr_assert_eq(wc->byte_len, length_of(flow, n), "flow %u, message %u", flow, n);
	fill(want, flow, n);
	cr_assert_arr_eq(b, want, wc->byte_len, "flow %u, message %u", flow, n);
	t->flows[flow].received[srq]++;
	t->flows[flow].next++;
	post_recv(t, srq, slot);
}

static bool finished(const struct traffic *t)
{
	unsigned int done = 0, received = 0;

	for (unsigned int i = 0; i < FLOWS; i++) {
		done += t->flows[i].done;
		received += t->flows[i].next;
	}
	return done == FLOWS * MESSAGES && received == FLOWS * MESSAGES;
}

static void run_traffic(uint64_t seed, unsigned int lanes)
{
	static struct traffic t;
	struct ibv_wc wc;
	uint64_t end;

	traffic_create(&t, seed, lanes);
	end = t.w->now + 60000000000ull;
	while (!finished(&t)) {
		post_sends(&t);
		world_step(t.w, t.w->now + 100000);
		while (world_poll(t.send_cq, &wc))
			take_send(&t, &wc);
		for (unsigned int i = 0; i < (t.one_cq ? 1 : SRQS); i++)
			while (world_poll(t.recv_cq[i], &wc))
				take_recv(&t, &wc);
		cr_assert_lt(t.w->now, end, "seed %u: stuck", (unsigned int)seed);
	}
	cr_assert_gt(world_stat(&t.w->nodes[1], STAT_handed_over), 0);
	cr_assert_eq(world_stat(&t.w->nodes[1], DROP_lane_full), 0);
	world_run(t.w, 1000000000);
	traffic_destroy(&t);
}

Test(lanes, xrc__four_flows_into_two_srqs_in_two_lanes, .timeout = 60)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
		run_traffic(seed, 2);
}

Test(lanes, xrc__four_flows_into_two_srqs_in_four_lanes, .timeout = 60)
{
	for (uint64_t seed = 1; seed <= 10; seed++)
		run_traffic(seed, 4);
}
