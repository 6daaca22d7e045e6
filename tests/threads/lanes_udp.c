/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lanes that really run in parallel: XRC traffic over UDP sockets of lo between two engines of one process.
 *
 *     sender 0: INI 0, INI 1 --.                     .--> SRQ 0: receiver 0
 *     sender 1: INI 2, INI 3 --+-- 127.0.46.x:4791 --+--> SRQ 1: receiver 1
 *
 * Each sender polls a queue of its own and each receiver that of its SRQ, by which they run the lanes that
 * matter to them. Every message goes to either SRQ, is checked byte by byte, and must come in the order in which
 * its QP sent it. Beside them a thread creates and destroys QPs and memory regions, and one runs all lanes now and
 * then. Who polls does it as a program's thread does (verbs/progress.h), with the real helper in the background.
 *
 * A plain program, since it is for the thread sanitizer, under which Criterion does not start. Prints TAP.
 */
#include "engine/mr.h"
#include "engine/qp.h"
#include "net/udp.h"
#include "verbs/progress.h"

#include "wire/hdr.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FLOWS	 4
#define SRQS	 2
#define SENDERS	 2
#define MESSAGES 400 /* of each flow */
#define RECVS	 64
#define DEPTH	 8
#define MAX_LEN	 9000
/* No case takes longer, even under the sanitizer on a busy machine. */
#define MAX_SECONDS 100

struct node {
	struct engine *engine;
	struct progress progress;
	uint8_t ip[16];
	struct pd *pd;
};

struct flow {
	unsigned int index;
	struct qp_handle *ini, *tgt;
	unsigned int posted, done; /* the sender's */
	atomic_uint received[SRQS];
	uint8_t *mem;
	struct mr *mr;
};

static struct test {
	unsigned int lanes;
	bool one_cq; /* for both SRQs, polled by both receivers */
	bool astray; /* all packets come to one lane */
	struct node from, to;
	struct cq *send_cq[SENDERS], *recv_cq[SRQS];
	struct xrcd *xrcd;
	struct srq *srq[SRQS];
	uint8_t *mem;
	struct mr *mr;
	struct flow flows[FLOWS];
	atomic_uint total; /* messages received */
	atomic_bool stop;
	atomic_uint made; /* QPs that came and went meanwhile */
} t;

static atomic_uint async_events;

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *fmt, ...)
{
	va_list ap;

	flockfile(stdout);
	printf("# %u lanes: ", t.lanes);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\nBail out!\n");
	fflush(stdout);
	_exit(1);
}

static void must(int ret, const char *what)
{
	if (ret)
		fail("%s: %s", what, strerror(-ret));
}

/* --- engines --- */

static void on_cq_event(struct cq *cq)
{
}

static void on_async_event(struct engine *e, enum ibv_event_type type, void *user)
{
	/* The first packet of each connection raises IBV_EVENT_COMM_EST. */
	if (type != IBV_EVENT_COMM_EST)
		atomic_fetch_add(&async_events, 1);
}

static void on_wake(struct engine *e, struct lane *lane)
{
	progress_wake();
}

static void on_port(struct progress *p, enum portmon_what what)
{
}

static const struct engine_ops ops = {
	.cq_event = on_cq_event, .async_event = on_async_event, .wake = on_wake};

static void node_create(struct node *n, unsigned int last)
{
	struct engine_config c = {
		.ops = &ops,
		.ngids = 1,
		.active_mtu = IBV_MTU_4096,
		.seed = last,
		.nlanes = t.lanes,
	};
	struct udp_addr addr = {.scope_id = 0};

	*n = (struct node){.ip = {[10] = 0xff, 0xff, 127, 0, 46, (uint8_t)last}};
	memcpy(c.gids[0].ip, n->ip, 16);
	memcpy(addr.ip, n->ip, 16);
	must(engine_create(&c, &n->engine), "engine_create");
	for (unsigned int i = 0; i < t.lanes; i++) {
		struct udp_config uc = {
			.addrs = &addr, .naddrs = 1, .gso = true, .lane = i, .nlanes = t.lanes};
		struct lane *lane = n->engine->lanes[i];
		struct link *link;

		must(udp_create(&uc, &lane->stats, &link), "udp_create");
		lane_set_link(lane, link);
	}
	must(lanes_open_gid(n->engine, 0, now_ns()), "lanes_open_gid");
	n->progress.engine = n->engine;
	n->progress.port_changed = on_port;
	must(progress_attach(&n->progress), "progress_attach");
	must(pd_create(n->engine, &n->pd), "pd_create");
}

/*
 * Takes the steering program away from every socket on the port: without it the kernel chooses by address and
 * port, which are the same for all packets between two nodes.
 */
static void lead_astray(void)
{
	unsigned int found = 0;

	for (int fd = 3; fd < 200; fd++) {
		struct sockaddr_in sa = {0};
		socklen_t len = sizeof(sa);
		int zero = 0;

		if (!getsockname(fd, (struct sockaddr *)&sa, &len) && sa.sin_family == AF_INET &&
		    ntohs(sa.sin_port) == WIRE_UDP_PORT)
			found += !setsockopt(fd, SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, &zero,
					     sizeof(zero));
	}
	/* A socket's program is its group's: one success for each node. */
	if (found < 2)
		fail("the steering of %u groups could be taken away", found);
}

static uint64_t count(const struct node *n, enum stat_id which)
{
	struct stats sum = {0};

	engine_stats(n->engine, &sum);
	return stats_get(&sum, which);
}

/* --- connections --- */

static void modify(struct qp *qp, struct ibv_qp_attr attr, int mask)
{
	must(qp_modify(qp, &attr, mask, now_ns()), "qp_modify");
}

static void to_rts(struct qp *qp, const struct node *peer, uint32_t dest_qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest_qpn,
		.rq_psn = 100,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1, .port_num = 1},
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	modify(qp,
	       (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE},
	       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	memcpy(attr.ah_attr.grh.dgid.raw, peer->ip, 16);
	if (qp->type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	modify(qp, attr, mask);
	if (qp->type == IBV_QPT_XRC_RECV)
		return;
	modify(qp,
	       (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .sq_psn = 100,
				    .timeout = 14,
				    .retry_cnt = 7,
				    .rnr_retry = 7,
				    .max_rd_atomic = 4},
	       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC);
}

static struct qp_handle *make_qp(struct node *n, enum ibv_qp_type type, struct cq *cq,
				 struct xrcd *xrcd)
{
	struct qp_init init = {
		.type = type,
		.cap = {.max_send_wr = DEPTH, .max_send_sge = 1},
	};
	struct qp_handle *h;

	if (type == IBV_QPT_XRC_RECV)
		init.xrcd = xrcd;
	else
		init.pd = n->pd, init.send_cq = cq;
	must(qp_create(n->engine, &init, &h), "qp_create");
	return h;
}

/* --- messages --- */

static uint32_t length_of(unsigned int flow, unsigned int n)
{
	return 8 + (flow * 2654435761u + n * 40503u) % (MAX_LEN - 8);
}

static unsigned int srq_of(unsigned int flow, unsigned int n)
{
	return (flow + n) % SRQS;
}

/* Byte @i of message @n of @flow; the first four say which it is. */
static uint8_t byte_of(unsigned int flow, unsigned int n, uint32_t i)
{
	switch (i) {
	case 0:
		return (uint8_t)flow;
	case 1:
		return (uint8_t)n;
	case 2:
		return (uint8_t)(n >> 8);
	default:
		return (uint8_t)(flow * 31 + n * 17 + i * 7 + (i >> 8));
	}
}

static void post_recv(unsigned int srq, unsigned int slot)
{
	uint64_t id = (uint64_t)srq * RECVS + slot;
	struct ibv_sge sge = {(uintptr_t)(t.mem + id * MAX_LEN), MAX_LEN, t.mr->key};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	must(rq_post_list(t.srq[srq]->rq, &wr, &bad), "rq_post_list");
}

static void post_send(struct flow *f)
{
	unsigned int n = f->posted++;
	uint8_t *b = f->mem + (size_t)(n % DEPTH) * MAX_LEN;
	struct ibv_sge sge = {(uintptr_t)b, length_of(f->index, n), f->mr->key};
	struct ibv_send_wr wr = {
		.wr_id = (uint64_t)f->index << 32 | n,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.qp_type.xrc.remote_srqn = t.srq[srq_of(f->index, n)]->srqn,
	};
	struct ibv_send_wr *bad;

	for (uint32_t i = 0; i < sge.length; i++)
		b[i] = byte_of(f->index, n, i);
	must(qp_post_send(f->ini->qp, &wr, &bad, now_ns()), "qp_post_send");
}

/* --- threads --- */

/* As ibv_poll_cq() does. */
static int poll_cq(struct node *node, struct cq *cq, struct cqe *v, int n)
{
	int got = cq_poll(cq, n, v);

	if (got)
		return got;
	progress_run(&node->progress, cq_lanes(cq));
	got = cq_poll(cq, n, v);
	if (!got)
		sched_yield();
	return got;
}

static void sent(const struct ibv_wc *wc)
{
	struct flow *f = &t.flows[wc->wr_id >> 32];

	if (wc->status != IBV_WC_SUCCESS)
		fail("flow %u: status %d", f->index, wc->status);
	if ((uint32_t)wc->wr_id != f->done++)
		fail("flow %u: sends complete out of order", f->index);
}

static void *sender(void *arg)
{
	unsigned int me = (unsigned int)(uintptr_t)arg, per = FLOWS / SENDERS;
	struct flow *mine = &t.flows[me * per];
	unsigned int left = per * MESSAGES;
	struct cqe v[8];

	while (left) {
		int got;

		for (unsigned int i = 0; i < per; i++)
			while (mine[i].posted < MESSAGES && mine[i].posted - mine[i].done < DEPTH)
				post_send(&mine[i]);
		got = poll_cq(&t.from, t.send_cq[me], v, 8);
		for (int i = 0; i < got; i++, left--)
			sent(&v[i].wc);
	}
	/* The receivers need this side's lanes for nothing any more: all is acknowledged. */
	return NULL;
}

static void received(const struct ibv_wc *wc)
{
	unsigned int srq = (unsigned int)(wc->wr_id / RECVS), slot = wc->wr_id % RECVS;
	const uint8_t *b = t.mem + wc->wr_id * MAX_LEN;
	unsigned int flow = b[0], n = b[1] | b[2] << 8, before;

	if (wc->status != IBV_WC_SUCCESS)
		fail("SRQ %u: status %d", srq, wc->status);
	if (flow >= FLOWS || wc->qp_num != t.flows[flow].tgt->qp->qpn)
		fail("SRQ %u: a message of no flow", srq);
	if (srq_of(flow, n) != srq || wc->byte_len != length_of(flow, n))
		fail("flow %u: message %u of %u bytes in SRQ %u", flow, n, wc->byte_len, srq);
	for (uint32_t i = 0; i < wc->byte_len; i++)
		if (b[i] != byte_of(flow, n, i))
			fail("flow %u: message %u differs at byte %u", flow, n, i);
	/* With one queue two receivers may each have one of a flow in hand. */
	before = atomic_fetch_add(&t.flows[flow].received[srq], 1);
	if (!t.one_cq && n / SRQS != before)
		fail("flow %u: message %u is number %u of SRQ %u", flow, n, before, srq);
	post_recv(srq, slot);
	atomic_fetch_add(&t.total, 1);
}

static void *receiver(void *arg)
{
	struct cq *cq = t.recv_cq[(uintptr_t)arg];
	struct cqe v[8];

	while (!atomic_load(&t.stop)) {
		int got = poll_cq(&t.to, cq, v, 8);

		for (int i = 0; i < got; i++)
			received(&v[i].wc);
	}
	return NULL;
}

/* One WRITE from the second half of @mem to the first, by an XRC connection of the receiving node with itself. */
static void write_to_self(struct cq *cq, struct qp_handle *ini, const struct mr *mr, uint8_t *mem)
{
	struct ibv_sge sge = {(uintptr_t)(mem + 64), 64, mr->key};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = (uintptr_t)mem, .rkey = mr->key},
		.qp_type.xrc.remote_srqn = t.srq[0]->srqn,
	};
	struct ibv_send_wr *bad;
	struct cqe cqe;

	must(qp_post_send(ini->qp, &wr, &bad, now_ns()), "qp_post_send");
	while (!poll_cq(&t.to, cq, &cqe, 1))
		;
	if (cqe.wc.status != IBV_WC_SUCCESS || memcmp(mem, mem + 64, 64))
		fail("a WRITE to the node itself: status %d", cqe.wc.status);
}

/* QPs, a queue and regions come and go in the lanes that are at work. */
static void *churn(void *arg)
{
	static uint8_t mem[128];

	while (!atomic_load(&t.stop)) {
		struct qp_handle *tgt = make_qp(&t.to, IBV_QPT_XRC_RECV, NULL, t.xrcd), *ini;
		struct cq *cq;
		struct mr *mr;

		must(cq_create(t.to.engine, 4, NULL, &cq), "cq_create");
		ini = make_qp(&t.to, IBV_QPT_XRC_SEND, cq, NULL);
		must(mr_create(t.to.pd, mem, sizeof(mem), (uintptr_t)mem,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &mr),
		     "mr_create");
		to_rts(tgt->qp, &t.to, ini->qp->qpn);
		to_rts(ini->qp, &t.to, tgt->qp->qpn);
		memset(mem + 64, (int)atomic_load(&t.made), 64);
		write_to_self(cq, ini, mr, mem);
		must(qp_close(tgt, now_ns()), "qp_close");
		must(qp_close(ini, now_ns()), "qp_close");
		must(mr_destroy(mr), "mr_destroy");
		must(cq_destroy(cq), "cq_destroy");
		atomic_fetch_add(&t.made, 1);
	}
	return NULL;
}

static void *runner(void *arg)
{
	const struct timespec pause = {.tv_nsec = 500000};

	while (!atomic_load(&t.stop)) {
		for (unsigned int i = 0; i < t.lanes; i++) {
			lane_run(t.from.engine->lanes[i], now_ns(), LANE_HELPER);
			lane_run(t.to.engine->lanes[i], now_ns(), LANE_HELPER);
		}
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* --- a case --- */

static void set_up(unsigned int lanes, bool one_cq, bool astray)
{
	memset(&t, 0, sizeof(t));
	t.lanes = lanes;
	t.one_cq = one_cq;
	t.astray = astray;
	node_create(&t.from, 1);
	node_create(&t.to, 2);
	if (astray)
		lead_astray();
	for (unsigned int i = 0; i < SENDERS; i++)
		must(cq_create(t.from.engine, 256, NULL, &t.send_cq[i]), "cq_create");
	must(cq_create(t.to.engine, 1024, NULL, &t.recv_cq[0]), "cq_create");
	t.recv_cq[1] = t.recv_cq[0];
	if (!one_cq)
		must(cq_create(t.to.engine, 1024, NULL, &t.recv_cq[1]), "cq_create");
	must(xrcd_open(t.to.engine, false, 0, 0, 0, &t.xrcd), "xrcd_open");
	t.mem = calloc(SRQS * RECVS, MAX_LEN);
	must(mr_create(t.to.pd, t.mem, (uint64_t)SRQS * RECVS * MAX_LEN, (uintptr_t)t.mem,
		       IBV_ACCESS_LOCAL_WRITE, &t.mr),
	     "mr_create");
	for (unsigned int i = 0; i < SRQS; i++) {
		struct ibv_srq_attr attr = {.max_wr = RECVS, .max_sge = 1};

		must(engine_srq_create(t.to.pd, IBV_SRQT_XRC, t.xrcd, t.recv_cq[i], &attr, NULL,
				       &t.srq[i]),
		     "engine_srq_create");
		for (unsigned int k = 0; k < RECVS; k++)
			post_recv(i, k);
	}
	for (unsigned int i = 0; i < FLOWS; i++) {
		struct flow *f = &t.flows[i];

		f->index = i;
		f->mem = calloc(DEPTH, MAX_LEN);
		must(mr_create(t.from.pd, f->mem, (uint64_t)DEPTH * MAX_LEN, (uintptr_t)f->mem, 0,
			       &f->mr),
		     "mr_create");
		f->ini = make_qp(&t.from, IBV_QPT_XRC_SEND, t.send_cq[i / (FLOWS / SENDERS)], NULL);
		f->tgt = make_qp(&t.to, IBV_QPT_XRC_RECV, NULL, t.xrcd);
		to_rts(f->tgt->qp, &t.from, f->ini->qp->qpn);
		to_rts(f->ini->qp, &t.to, f->tgt->qp->qpn);
	}
}

static void tear_down(void)
{
	for (unsigned int i = 0; i < FLOWS; i++) {
		struct flow *f = &t.flows[i];

		must(qp_close(f->ini, now_ns()), "qp_close");
		must(qp_close(f->tgt, now_ns()), "qp_close");
		must(mr_destroy(f->mr), "mr_destroy");
		free(f->mem);
	}
	for (unsigned int i = 0; i < SRQS; i++)
		must(engine_srq_destroy(t.srq[i]), "engine_srq_destroy");
	must(mr_destroy(t.mr), "mr_destroy");
	must(xrcd_close(t.xrcd), "xrcd_close");
	must(cq_destroy(t.recv_cq[0]), "cq_destroy");
	if (!t.one_cq)
		must(cq_destroy(t.recv_cq[1]), "cq_destroy");
	for (unsigned int i = 0; i < SENDERS; i++)
		must(cq_destroy(t.send_cq[i]), "cq_destroy");
	must(pd_destroy(t.from.pd), "pd_destroy");
	must(pd_destroy(t.to.pd), "pd_destroy");
	progress_detach(&t.from.progress);
	progress_detach(&t.to.progress);
	engine_destroy(t.from.engine);
	engine_destroy(t.to.engine);
	free(t.mem);
}

static void check_counters(void)
{
	unsigned int busy = 0;

	if (atomic_load(&t.total) != FLOWS * MESSAGES)
		fail("%u messages came", atomic_load(&t.total));
	if (atomic_load(&async_events))
		fail("%u asynchronous events", atomic_load(&async_events));
	for (unsigned int i = 0; i < t.lanes; i++)
		busy += stats_get(&t.to.engine->lanes[i]->stats, STAT_rx_packets) > 0;
	/* Astray: one for the packets of the other node, and one for those of its own. */
	if (t.astray ? busy > 2 : busy != t.lanes)
		fail("packets came to %u lanes", busy);
	if (t.astray && !count(&t.to, STAT_handed_over))
		fail("nothing was handed over");
	if (count(&t.from, DROP_no_qp))
		fail("packets were dropped: no such QP");
	printf("# %u lanes: %llu packets, %llu handed over, %llu retransmits, %u QPs came and "
	       "went\n",
	       t.lanes, (unsigned long long)count(&t.to, STAT_rx_packets),
	       (unsigned long long)(count(&t.to, STAT_handed_over) +
				    count(&t.from, STAT_handed_over)),
	       (unsigned long long)count(&t.from, STAT_retransmits), atomic_load(&t.made));
}

static void run_case(unsigned int lanes, bool one_cq, bool astray)
{
	void *(*const life[])(void *) = {sender, sender, receiver, receiver, churn, runner};
	pthread_t threads[ARRAY_SIZE(life)];

	set_up(lanes, one_cq, astray);
	for (unsigned int i = 0; i < ARRAY_SIZE(life); i++)
		must(-pthread_create(&threads[i], NULL, life[i], (void *)(uintptr_t)(i % 2)),
		     "pthread_create");
	for (unsigned int i = 0; i < SENDERS; i++)
		pthread_join(threads[i], NULL);
	/* What is acknowledged has been pushed; receivers may have it still in hand. */
	while (atomic_load(&t.total) != FLOWS * MESSAGES)
		sched_yield();
	atomic_store(&t.stop, true);
	for (unsigned int i = SENDERS; i < ARRAY_SIZE(life); i++)
		pthread_join(threads[i], NULL);
	check_counters();
	tear_down();
}

int main(void)
{
	static const struct {
		unsigned int lanes;
		bool one_cq, astray;
		const char *name;
	} cases[] = {
		{1, false, false, "one lane"},
		{2, false, false, "two lanes, a completion queue each"},
		{2, true, false, "two lanes, one completion queue"},
		{2, false, true, "two lanes, all packets to one of them"},
		{4, false, false, "four lanes, two completion queues"},
		{4, true, false, "four lanes, one completion queue"},
		{4, true, true, "four lanes, all packets to one of them"},
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..%zu\n", ARRAY_SIZE(cases));
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		alarm(MAX_SECONDS);
		run_case(cases[i].lanes, cases[i].one_cq, cases[i].astray);
		printf("ok %u - %s\n", i + 1, cases[i].name);
	}
	return 0;
}
