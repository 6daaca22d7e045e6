/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Engines, a simulated network and a clock that moves when everybody is quiet.
 *
 * A step gives each lane one pass in a random order, as POLL or as HELPER, and repeats that while a
 * lane says that it did something. Only then does the clock move, to the earliest of the lanes'
 * deadlines and the network's next arrival. A deadline that is due although its lane did nothing is
 * a stall; a few are natural (a timer that only moved), WORLD_MAX_STALLS of them without the clock
 * moving are a livelock.
 */
#include "world.h"

#include "wire/icrc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORLD_START	 1000000000ull
#define WORLD_MAX_STALLS 1000
#define WORLD_MAX_BUSY	 100000

void world_must(int ret, const char *what, const char *file, int line)
{
	if (!ret)
		return;
	fprintf(stderr, "# %s:%d: %s: %s\n", file, line, what, strerror(-ret));
	abort();
}

uint64_t rng_next(struct rng *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

uint32_t rng_below(struct rng *r, uint32_t n)
{
	return (uint32_t)((rng_next(r) >> 32) * n >> 32);
}

uint32_t rng_range(struct rng *r, uint32_t lo, uint32_t hi)
{
	return lo + rng_below(r, hi - lo + 1);
}

bool rng_percent(struct rng *r, uint32_t percent)
{
	return rng_below(r, 100) < percent;
}

/* What the engines report */

static void on_cq_event(struct cq *cq)
{
	unsigned int *count = cq->user;

	if (count)
		++*count;
}

static void on_async_event(struct engine *e, enum ibv_event_type type, void *user)
{
	struct world_node *node = e->user;

	if (node->nevents < WORLD_MAX_EVENTS)
		node->events[node->nevents++] = (struct world_event){type, user};
}

static const struct engine_ops ops = {
	.cq_event = on_cq_event,
	.async_event = on_async_event,
};

/* Packets */

static void trace_packet(const struct world_node *node, enum link_dir dir, const uint8_t *b,
			 size_t len, bool damaged)
{
	struct wire_pkt p;
	enum wire_verdict v = wire_decode(&p, b, len);
	const struct wire_opcode *op = v == WIRE_OK ? p.op : NULL;

	fprintf(stderr, "# %12llu %u %s %-20s", (unsigned long long)node->world->now, node->index,
		dir == LINK_SENT ? ">" : " <", op ? op->name : "?");
	if (op) {
		fprintf(stderr, " qp %06x psn %06x len %u%s", p.dest_qpn, p.psn, p.payload_len,
			p.ackreq ? " ackreq" : "");
		if (op->headers & WIRE_H_XRCETH)
			fprintf(stderr, " srqn %06x", p.srqn);
		if (op->headers & WIRE_H_RETH)
			fprintf(stderr, " dma %u", p.dma_len);
		if (op->headers & WIRE_H_AETH)
			fprintf(stderr, " syn %02x msn %u", p.syndrome, p.msn);
	}
	fprintf(stderr, "%s\n", damaged ? " (damaged)" : "");
}

static void on_packet(struct link_tap *tap, enum link_dir dir, const struct wire_ip *ip,
		      const uint8_t *b, size_t len)
{
	struct world_node *node = container_of(tap, struct world_node, tap);
	struct world *w = node->world;
	uint32_t icrc = wire_icrc(ip, b, len - WIRE_ICRC_LEN), got;
	bool damaged;

	memcpy(&got, b + len - WIRE_ICRC_LEN, sizeof(got));
	damaged = le32toh(got) != icrc;
	if (w->trace)
		trace_packet(node, dir, b, len - WIRE_ICRC_LEN, damaged);
	/* Once each: what is sent, whatever becomes of it. */
	if (w->pcap && dir == LINK_SENT)
		w->pcap->packet(w->pcap, dir, ip, b, len);
	/* Faults are made on the way; a sender's packet counts as sent in any case. */
	if (w->watch && (dir == LINK_SENT || !damaged))
		w->watch(w->watch_arg, node, dir, b, len - WIRE_ICRC_LEN);
}

int world_capture(struct world *w, const char *path)
{
	return pcap_tap_create_clocked(path, &w->now, &w->pcap);
}

/* Life */

static struct link *lane_link(struct world_node *node, struct lane *lane)
{
	struct link *link = sim_link_lane(node->world->sim, node->ip, lane->index,
					  node->engine->nlanes, &lane->stats);

	link->tap = &node->tap;
	must(link->ops->open_gid(link, 0));
	lane_set_link(lane, link);
	return link;
}

static void node_create(struct world *w, unsigned int index, enum ibv_mtu active_mtu,
			unsigned int lanes)
{
	struct world_node *node = &w->nodes[index];
	struct engine_config config = {
		.ops = &ops,
		.user = node,
		.ngids = 1,
		.active_mtu = active_mtu,
		.seed = rng_next(&w->rng),
		.nlanes = lanes,
	};

	*node = (struct world_node){
		.world = w,
		.index = index,
		.ip = {[10] = 0xff, 0xff, 10, 44, 0, index + 1},
		.tap.packet = on_packet,
	};
	memcpy(config.gids[0].ip, node->ip, sizeof(node->ip));
	must(engine_create(&config, &node->engine));
	node->lane = node->engine->lanes[0];
	for (unsigned int i = 0; i < lanes; i++)
		lane_link(node, node->engine->lanes[i]);
	node->link = node->lane->link;
}

struct world *world_create(const struct world_config *config)
{
	struct world *w = calloc(1, sizeof(*w));
	struct sim_config net = config->net;

	if (!w)
		abort();
	w->now = WORLD_START;
	w->rng.state = config->seed;
	net.seed = rng_next(&w->rng);
	w->sim = sim_create(&net);
	w->n = config->nodes;
	for (unsigned int i = 0; i < w->n; i++)
		node_create(w, i, config->active_mtu ? config->active_mtu : IBV_MTU_4096,
			    config->lanes ? config->lanes : 1);
	return w;
}

struct link *world_raw_link(struct world *w, const uint8_t ip[16])
{
	struct link *link = sim_link(w->sim, ip, &w->raw_stats);

	must(link->ops->open_gid(link, 0));
	w->raw[w->nraw++] = link;
	return link;
}

void world_destroy(struct world *w)
{
	for (unsigned int i = 0; i < w->nraw; i++)
		w->raw[i]->ops->destroy(w->raw[i]);
	for (unsigned int i = 0; i < w->n; i++)
		engine_destroy(w->nodes[i].engine);
	sim_destroy(w->sim);
	if (w->pcap) {
		pcap_tap_flush(w->pcap);
		pcap_tap_destroy(w->pcap);
	}
	free(w);
}

/* Time */

/* One pass of each lane. Return: whether one of them did something. */
static bool run_lanes(struct world *w)
{
	unsigned int lanes = w->nodes[0].engine->nlanes, n = w->n * lanes;
	unsigned int first = rng_below(&w->rng, n);
	bool busy = false;

	for (unsigned int i = 0; i < n; i++) {
		unsigned int k = (first + i) % n;
		struct lane *lane = w->nodes[k / lanes].engine->lanes[k % lanes];

		busy |= lane_run(lane, w->now, rng_percent(&w->rng, 75) ? LANE_POLL : LANE_HELPER);
		w->passes++;
	}
	return busy;
}

/* The simulator waits for somebody to take what has arrived. */
static void drain_raw(struct world *w)
{
	struct link_rx rx[LINK_RX_BURST];

	for (unsigned int i = 0; i < w->nraw; i++)
		while (w->raw[i]->ops->rx_burst(w->raw[i], rx, LINK_RX_BURST, w->now))
			;
}

/* The earliest deadline of the node's lanes. */
static uint64_t node_deadline(const struct world_node *node)
{
	uint64_t next = UINT64_MAX;

	for (unsigned int i = 0; i < node->engine->nlanes; i++)
		next = min_t(uint64_t, next, atomic_load(&node->engine->lanes[i]->deadline));
	return next;
}

uint64_t world_next(const struct world *w)
{
	uint64_t next = sim_next(w->sim);

	for (unsigned int i = 0; i < w->n; i++)
		next = min_t(uint64_t, next, node_deadline(&w->nodes[i]));
	return next;
}

static void livelock(const struct world *w)
{
	fprintf(stderr, "# livelock at %llu ns after %llu passes\n", (unsigned long long)w->now,
		(unsigned long long)w->passes);
	for (unsigned int i = 0; i < w->n; i++)
		fprintf(stderr, "# node %u: deadline %llu\n", i,
			(unsigned long long)node_deadline(&w->nodes[i]));
	abort();
}

static void run_until_quiet(struct world *w)
{
	for (unsigned int busy = 0; run_lanes(w); busy++) {
		w->stalls = 0;
		if (busy > WORLD_MAX_BUSY)
			livelock(w);
	}
	drain_raw(w);
}

bool world_step(struct world *w, uint64_t limit)
{
	uint64_t next;

	run_until_quiet(w);
	next = world_next(w);
	if (next >= limit && (limit == UINT64_MAX || limit <= w->now))
		return false;
	if (next > w->now) {
		w->now = min_t(uint64_t, next, limit);
		w->stalls = 0;
	} else if (++w->stalls > WORLD_MAX_STALLS) {
		livelock(w);
	}
	/* Whoever called sees what the new time brought before it goes on. */
	run_until_quiet(w);
	return next < limit;
}

void world_run(struct world *w, uint64_t ns)
{
	uint64_t limit = ns == UINT64_MAX ? ns : w->now + ns;

	while (world_step(w, limit))
		;
}

unsigned int world_events(const struct world_node *node, enum ibv_event_type type, const void *user)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < node->nevents; i++)
		n += node->events[i].type == type && (!user || node->events[i].user == user);
	return n;
}

uint64_t world_stat(const struct world_node *node, enum stat_id which)
{
	struct stats sum;

	memset(&sum, 0, sizeof(sum));
	engine_stats(node->engine, &sum);
	return stats_get(&sum, which);
}

/* Objects */

struct pd *world_pd(struct world_node *node)
{
	struct pd *pd;

	must(pd_create(node->engine, &pd));
	return pd;
}

struct cq *world_cq(struct world_node *node, uint32_t cqe, unsigned int *events)
{
	struct cq *cq;

	must(cq_create(node->engine, cqe, events, &cq));
	return cq;
}

struct mr *world_mr(struct pd *pd, void *addr, uint64_t length, int access)
{
	struct mr *mr;

	must(mr_create(pd, addr, length, (uintptr_t)addr, access, &mr));
	return mr;
}

struct xrcd *world_xrcd(struct world_node *node)
{
	struct xrcd *x;

	must(xrcd_open(node->engine, false, 0, 0, 0, &x));
	return x;
}

static struct srq *srq_of(struct pd *pd, enum ibv_srq_type type, struct xrcd *xrcd, struct cq *cq,
			  uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_attr attr = {.max_wr = max_wr, .max_sge = max_sge};
	struct srq *srq;

	must(engine_srq_create(pd, type, xrcd, cq, &attr, NULL, &srq));
	srq->user = srq;
	return srq;
}

struct srq *world_xrc_srq(struct pd *pd, struct xrcd *xrcd, struct cq *cq, uint32_t max_wr,
			  uint32_t max_sge)
{
	return srq_of(pd, IBV_SRQT_XRC, xrcd, cq, max_wr, max_sge);
}

struct srq *world_basic_srq(struct pd *pd, uint32_t max_wr, uint32_t max_sge)
{
	return srq_of(pd, IBV_SRQT_BASIC, NULL, NULL, max_wr, max_sge);
}

static struct qp_handle *qp_of(struct engine *e, struct qp_init *init)
{
	struct qp_handle *h;

	must(qp_create(e, init, &h));
	return h;
}

static const struct ibv_qp_cap caps = {
	.max_send_wr = 64,
	.max_recv_wr = 64,
	.max_send_sge = 4,
	.max_recv_sge = 4,
	.max_inline_data = 256,
};

/* With two completion queues. */
static struct qp_handle *qp_of_two(enum ibv_qp_type type, struct pd *pd, struct cq *send_cq,
				   struct cq *recv_cq, struct srq *srq, void *user)
{
	struct qp_init init = {.type = type,
			       .pd = pd,
			       .send_cq = send_cq,
			       .recv_cq = recv_cq,
			       .srq = srq,
			       .cap = caps,
			       .user = user};

	return qp_of(pd->engine, &init);
}

struct qp_handle *world_rc(struct pd *pd, struct cq *send_cq, struct cq *recv_cq, struct srq *srq,
			   void *user)
{
	return qp_of_two(IBV_QPT_RC, pd, send_cq, recv_cq, srq, user);
}

struct qp_handle *world_ini(struct pd *pd, struct cq *send_cq, void *user)
{
	struct qp_init init = {
		.type = IBV_QPT_XRC_SEND, .pd = pd, .send_cq = send_cq, .cap = caps, .user = user};

	init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
	return qp_of(pd->engine, &init);
}

struct qp_handle *world_tgt(struct world_node *node, struct xrcd *xrcd, void *user)
{
	struct qp_init init = {.type = IBV_QPT_XRC_RECV, .xrcd = xrcd, .user = user};

	return qp_of(node->engine, &init);
}

struct qp_handle *world_ud(struct pd *pd, struct cq *send_cq, struct cq *recv_cq, void *user)
{
	return qp_of_two(IBV_QPT_UD, pd, send_cq, recv_cq, NULL, user);
}

/* Connections */

const struct world_path world_path = {
	.mtu = IBV_MTU_1024,
	.timeout = 10,
	.retry_cnt = 7,
	.rnr_retry = 7,
	.min_rnr_timer = 1,
	.rd_atomic = 16,
	.psn_a = 0x000100,
	.psn_b = 0x200000,
	.access = WORLD_ALL_ACCESS,
};

static uint64_t now_of(const struct qp *qp)
{
	return world_node_of(qp->engine)->world->now;
}

int world_to_init(struct qp *qp, const struct world_path *p)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = p->access,
	};

	return qp_modify(qp, &attr,
			 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
			 now_of(qp));
}

int world_to_rtr(struct qp *qp, const uint8_t dgid[16], uint32_t dest_qpn,
		 const struct world_path *p, uint32_t rq_psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = p->mtu,
		.dest_qp_num = dest_qpn,
		.rq_psn = rq_psn,
		.max_dest_rd_atomic = p->rd_atomic,
		.min_rnr_timer = p->min_rnr_timer,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh.hop_limit = 64},
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	memcpy(attr.ah_attr.grh.dgid.raw, dgid, 16);
	if (qp->type == IBV_QPT_RC || qp->type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return qp_modify(qp, &attr, mask, now_of(qp));
}

int world_to_rts(struct qp *qp, const struct world_path *p, uint32_t sq_psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = sq_psn,
		.timeout = p->timeout,
		.retry_cnt = p->retry_cnt,
		.rnr_retry = p->rnr_retry,
		.max_rd_atomic = p->rd_atomic,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (qp->type != IBV_QPT_UC)
		mask |= IBV_QP_TIMEOUT;
	if (qp->type == IBV_QPT_RC || qp->type == IBV_QPT_XRC_SEND)
		mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	return qp_modify(qp, &attr, mask, now_of(qp));
}

int world_to_state(struct qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	return qp_modify(qp, &attr, IBV_QP_STATE, now_of(qp));
}

void world_start_ud(struct qp *qp, uint32_t qkey)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey};

	must(qp_modify(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
		       now_of(qp)));
	attr.qp_state = IBV_QPS_RTR;
	must(qp_modify(qp, &attr, IBV_QP_STATE, now_of(qp)));
	attr.qp_state = IBV_QPS_RTS;
	must(qp_modify(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, now_of(qp)));
}

void world_connect(struct qp *a, struct qp *b, const struct world_path *p)
{
	must(world_to_init(a, p));
	must(world_to_init(b, p));
	must(world_to_rtr(a, world_node_of(b->engine)->ip, b->qpn, p, p->psn_b));
	must(world_to_rtr(b, world_node_of(a->engine)->ip, a->qpn, p, p->psn_a));
	must(world_to_rts(a, p, p->psn_a));
	must(world_to_rts(b, p, p->psn_b));
}

/* Work */

int world_post(struct qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return qp_post_send(qp, wr, &bad, now_of(qp));
}

int world_rdma(struct qp *qp, uint64_t wr_id, enum ibv_wr_opcode opcode, const struct mr *mr,
	       void *addr, uint32_t length, uint64_t remote_addr, uint32_t rkey, uint32_t srqn)
{
	struct ibv_sge sge = {(uintptr_t)addr, length, mr ? mr->key : 0};
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = !!length,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = remote_addr;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = remote_addr;
		wr.wr.rdma.rkey = rkey;
	}
	wr.qp_type.xrc.remote_srqn = srqn;
	return world_post(qp, &wr);
}

int world_send(struct qp *qp, uint64_t wr_id, const struct mr *mr, void *addr, uint32_t length,
	       uint32_t srqn)
{
	return world_rdma(qp, wr_id, IBV_WR_SEND, mr, addr, length, 0, 0, srqn);
}

int world_recv(struct qp *qp, uint64_t wr_id, const struct mr *mr, void *addr, uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)addr, length, mr ? mr->key : 0};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = !!length}, *bad;

	return qp_post_recv(qp, &wr, &bad, now_of(qp));
}

int world_srq_recv(struct srq *srq, uint64_t wr_id, const struct mr *mr, void *addr,
		   uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)addr, length, mr ? mr->key : 0};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = !!length};

	return rq_post(srq->rq, &wr);
}

bool world_poll(struct cq *cq, struct ibv_wc *wc)
{
	struct cqe cqe;

	if (cq_poll(cq, 1, &cqe) != 1)
		return false;
	*wc = cqe.wc;
	return true;
}

bool world_wait(struct world *w, struct cq *cq, uint64_t ns, struct ibv_wc *wc)
{
	uint64_t limit = w->now + ns;

	while (!world_poll(cq, wc))
		if (!world_step(w, limit))
			return world_poll(cq, wc);
	return true;
}
