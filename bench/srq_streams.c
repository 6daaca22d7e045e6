/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Streams into one XRC SRQ, each sent and received by a thread of its own: what lanes are for.
 *
 *     rxe-run --lanes 2 -- srq_streams [THREADS [BYTES [MESSAGES [SRQS [CQS]]]]]
 *
 * Thread i posts to INI QP i, which is connected to TGT QP i of the same device, and polls its own send queue and
 * the queue of its SRQ; it posts every receive again that it gets. All threads share one SRQ and its completion
 * queue, unless there are to be several: thread i uses SRQ i mod SRQS, and that completes to queue i mod CQS. So
 * "1 1", "2 1" and "2 2" behind two threads tell what sharing each of the two costs. With one lane the threads take
 * turns. The time goes from the first post to the last receive of all.
 *
 * Prints "MIB_PER_SECOND".
 */
#include "bench.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define MAX_THREADS 16
#define DEPTH	    16 /* sends that a thread has outstanding */
#define RECVS	    256

static struct {
	unsigned int threads, bytes, messages; /* messages of each thread */
	unsigned int srqs, cqs;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq[MAX_THREADS];
	struct ibv_cq *recv_cq[MAX_THREADS];
	uint32_t srqn[MAX_THREADS];
	union ibv_gid gid;
	char *recv_mem;
	struct ibv_mr *recv_mr;
	atomic_uint received;
	pthread_barrier_t start;
	uint64_t began[MAX_THREADS];
} b;

struct stream {
	unsigned int index;
	struct ibv_cq *cq, *recv_cq;
	uint32_t srqn;
	struct ibv_qp *ini, *tgt;
	char *mem;
	struct ibv_mr *mr;
};

static struct stream streams[MAX_THREADS];

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

/* Slots are those of the first SRQ, then those of the next. */
static void post_recv(uint64_t slot)
{
	struct ibv_sge sge = {(uintptr_t)(b.recv_mem + slot * b.bytes), b.bytes, b.recv_mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

	must(!ibv_post_srq_recv(b.srq[slot / RECVS], &wr, &bad), "ibv_post_srq_recv");
}

static void post_send(struct stream *s)
{
	struct ibv_sge sge = {(uintptr_t)s->mem, b.bytes, s->mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.qp_type.xrc.remote_srqn = s->srqn,
	};
	struct ibv_send_wr *bad;

	must(!ibv_post_send(s->ini, &wr, &bad), "ibv_post_send");
}

/* Return: completions that were taken. */
static unsigned int poll(struct ibv_cq *cq, struct ibv_wc *wc, unsigned int n)
{
	int got = ibv_poll_cq(cq, (int)n, wc);

	must(got >= 0, "ibv_poll_cq");
	for (int i = 0; i < got; i++) {
		if (wc[i].status == IBV_WC_SUCCESS)
			continue;
		fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc[i].status));
		exit(1);
	}
	return (unsigned int)got;
}

static void *run(void *arg)
{
	struct stream *s = arg;
	unsigned int posted = 0, done = 0, all = b.threads * b.messages;
	struct ibv_wc wc[16];

	pthread_barrier_wait(&b.start);
	b.began[s->index] = now_ns();
	while (done < b.messages || atomic_load(&b.received) < all) {
		unsigned int got;

		while (posted < b.messages && posted - done < DEPTH) {
			post_send(s);
			posted++;
		}
		done += poll(s->cq, wc, 16);
		got = poll(s->recv_cq, wc, 16);
		for (unsigned int i = 0; i < got; i++)
			post_recv(wc[i].wr_id);
		if (got)
			atomic_fetch_add(&b.received, got);
	}
	return NULL;
}

/* --- set-up --- */

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	must(list && list[0], "ibv_get_device_list");
	b.ctx = ibv_open_device(list[0]);
	must(b.ctx != NULL, "ibv_open_device");
	must(!ibv_query_gid(b.ctx, 1, 0, &b.gid), "ibv_query_gid");
	ibv_free_device_list(list);
	b.pd = ibv_alloc_pd(b.ctx);
	must(b.pd != NULL, "ibv_alloc_pd");
}

static void make_srqs(void)
{
	struct ibv_xrcd_init_attr xa = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1};
	struct ibv_srq_init_attr_ex sa = {
		.attr = {.max_wr = RECVS, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = b.pd,
	};
	size_t slots = (size_t)b.srqs * RECVS;

	b.xrcd = sa.xrcd = ibv_open_xrcd(b.ctx, &xa);
	must(b.xrcd != NULL, "ibv_open_xrcd");
	for (unsigned int i = 0; i < b.cqs; i++) {
		b.recv_cq[i] = ibv_create_cq(b.ctx, 4096, NULL, NULL, 0);
		must(b.recv_cq[i] != NULL, "ibv_create_cq");
	}
	for (unsigned int i = 0; i < b.srqs; i++) {
		sa.cq = b.recv_cq[i % b.cqs];
		b.srq[i] = ibv_create_srq_ex(b.ctx, &sa);
		must(b.srq[i] && !ibv_get_srq_num(b.srq[i], &b.srqn[i]), "ibv_create_srq_ex");
	}
	b.recv_mem = calloc(slots, b.bytes);
	b.recv_mr = ibv_reg_mr(b.pd, b.recv_mem, slots * b.bytes, IBV_ACCESS_LOCAL_WRITE);
	must(b.recv_mr != NULL, "ibv_reg_mr");
	for (uint64_t i = 0; i < slots; i++)
		post_recv(i);
}

static void connect_qp(struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	must(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "INIT");
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = b.gid, .hop_limit = 64}},
	};
	must(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .max_rd_atomic = 1};
	must(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
}

static void make_stream(struct stream *s, unsigned int index)
{
	struct ibv_qp_init_attr_ex ia = {
		.qp_type = IBV_QPT_XRC_SEND,
		.cap = {.max_send_wr = DEPTH, .max_send_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = b.pd,
	};
	struct ibv_qp_init_attr_ex ta = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = b.xrcd,
	};

	s->index = index;
	s->srqn = b.srqn[index % b.srqs];
	s->recv_cq = b.recv_cq[index % b.srqs % b.cqs];
	s->cq = ia.send_cq = ibv_create_cq(b.ctx, 2 * DEPTH, NULL, NULL, 0);
	must(s->cq != NULL, "ibv_create_cq");
	s->mem = calloc(1, b.bytes);
	s->mr = ibv_reg_mr(b.pd, s->mem, b.bytes, 0);
	must(s->mr != NULL, "ibv_reg_mr");
	s->ini = ibv_create_qp_ex(b.ctx, &ia);
	s->tgt = ibv_create_qp_ex(b.ctx, &ta);
	must(s->ini && s->tgt, "ibv_create_qp_ex");
	connect_qp(s->tgt, s->ini->qp_num);
	connect_qp(s->ini, s->tgt->qp_num);
}

static unsigned int argument(int argc, char **argv, int i, unsigned int otherwise)
{
	return argc > i ? (unsigned int)atoi(argv[i]) : otherwise;
}

int main(int argc, char **argv)
{
	pthread_t threads[MAX_THREADS];
	uint64_t first = UINT64_MAX, ns;

	b.threads = argument(argc, argv, 1, 2);
	b.bytes = argument(argc, argv, 2, 4096);
	b.messages = argument(argc, argv, 3, 50000);
	b.srqs = argument(argc, argv, 4, 1);
	b.cqs = argument(argc, argv, 5, 1);
	if (!b.threads || b.threads > MAX_THREADS || !b.bytes || !b.messages || !b.srqs ||
	    b.srqs > b.threads || !b.cqs || b.cqs > b.srqs) {
		fprintf(stderr, "usage: srq_streams [THREADS [BYTES [MESSAGES [SRQS [CQS]]]]], "
				"with THREADS >= SRQS >= CQS\n");
		return 2;
	}
	open_device();
	make_srqs();
	for (unsigned int i = 0; i < b.threads; i++)
		make_stream(&streams[i], i);
	pthread_barrier_init(&b.start, NULL, b.threads);
	for (unsigned int i = 0; i < b.threads; i++)
		must(!pthread_create(&threads[i], NULL, run, &streams[i]), "pthread_create");
	for (unsigned int i = 0; i < b.threads; i++)
		pthread_join(threads[i], NULL);
	ns = now_ns();
	for (unsigned int i = 0; i < b.threads; i++)
		first = b.began[i] < first ? b.began[i] : first;
	printf("%.1f\n",
	       (double)b.threads * b.messages * b.bytes / 1048576 * 1e9 / (double)(ns - first));
	/* What is left the device takes away with the context. */
	ibv_close_device(b.ctx);
	return 0;
}
