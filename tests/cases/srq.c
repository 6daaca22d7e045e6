/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Cases of group B: shared receive queues and RNR. */
#include "pair.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

/* A QP with an SRQ that goes to ERR raises LAST_WQE_REACHED, once. */
Test(B1, last_wqe_reached_once)
{
	struct pair *p = pair_srq(&world_path);

	must(pair_recv(p, 1, 64));
	must(world_to_state(p->qp_b, IBV_QPS_ERR));
	must(world_to_state(p->qp_b, IBV_QPS_ERR));
	world_run(p->w, 1000000);
	cr_assert_eq(world_events(p->b, IBV_EVENT_QP_LAST_WQE_REACHED, &p->tag_b), 1);
	cr_assert_eq(rq_count(p->srq->rq), 1, "the SRQ's receives are not the QP's to flush");
	pair_end(p);
}

Test(B2, srq_in_use_is_busy)
{
	struct pair *p = pair_srq(&world_path);

	cr_assert_eq(engine_srq_destroy(p->srq), -EBUSY);
	pair_end(p);
}

Test(B4, recv_caps_do_not_matter_with_an_srq)
{
	struct pair *p = pair_srq(&world_path);
	struct qp_init init = {
		.type = IBV_QPT_RC,
		.pd = p->pd_b,
		.send_cq = p->cq_b,
		.recv_cq = p->cq_b,
		.srq = p->srq,
		.cap = {1, 0xffffffff, 1, 0xffffffff, 0},
	};
	struct qp_handle *h;

	must(qp_create(p->b->engine, &init, &h));
	cr_assert_eq(init.cap.max_recv_wr, 0);
	must(qp_close(h, p->w->now));
	init.srq = NULL;
	init.cap.max_recv_wr = 0xffffffff;
	cr_assert_eq(qp_create(p->b->engine, &init, &h), -EINVAL);
	pair_end(p);
}

/* rnr_retry 7 waits for ever, 0 fails at the first RNR NAK. */
Test(B5, rnr_retry)
{
	struct world_path path = world_path;
	struct pair *p = pair_xrc(&path);

	must(pair_send(p, 1, 8));
	while (world_stat(p->a, STAT_rnr_naks_received) < 100)
		cr_assert(world_step(p->w, p->w->now + PAIR_WAIT));
	must(pair_recv(p, 2, 64));
	expect_wc(p, p->cq_a, 1, IBV_WC_SUCCESS);
	pair_end(p);

	path.rnr_retry = 0;
	p = pair_xrc(&path);
	must(pair_send(p, 1, 8));
	expect_wc(p, p->cq_a, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	cr_assert_eq(world_stat(p->a, STAT_rnr_naks_received), 1);
	pair_end(p);
}

/* Nothing is resent before the RNR timer, and the wait does not consume retry_cnt. */
Test(B7, rnr_wait_is_no_retry)
{
	struct world_path path = world_path;
	struct pair *p;

	path.timeout = 8; /* 1 ms */
	path.retry_cnt = 0;
	path.min_rnr_timer = 18; /* 5.12 ms */
	p = pair_xrc(&path);
	must(pair_send(p, 1, 8));
	for (unsigned int i = 1; i <= 3; i++) {
		world_run(p->w, 5120000);
		cr_assert_leq(world_stat(p->a, STAT_tx_packets), i + 1);
	}
	cr_assert_eq(world_stat(p->a, STAT_timeouts), 0);
	must(pair_recv(p, 2, 64));
	expect_wc(p, p->cq_a, 1, IBV_WC_SUCCESS);
	pair_end(p);
}

/* The RNR retry that a QP has is the one it was given: 0 is for programs that post before they connect. */
Test(B8, rnr_retry_zero_needs_posted_receives)
{
	struct world_path path = world_path;
	struct pair *p;

	path.rnr_retry = 0;
	p = pair_xrc(&path);
	must(pair_recv(p, 2, 64));
	must(pair_send(p, 1, 8));
	expect_wc(p, p->cq_a, 1, IBV_WC_SUCCESS);
	must(pair_send(p, 3, 8));
	expect_wc(p, p->cq_a, 3, IBV_WC_RNR_RETRY_EXC_ERR);
	pair_end(p);
}

/* min_rnr_timer is what the sender waits: 12 is 0.64 ms, and 0 is 655.36 ms, not none. */
Test(B9, min_rnr_timer)
{
	static const struct {
		uint8_t timer;
		uint64_t ns;
	} cases[] = {{12, 640000}, {0, 655360000}};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world_path path = world_path;
		struct pair *p;
		uint64_t start;

		path.min_rnr_timer = cases[i].timer;
		p = pair_xrc(&path);
		start = p->w->now;
		must(pair_send(p, 1, 8));
		world_run(p->w, 20000);
		must(pair_recv(p, 2, 64));
		expect_wc(p, p->cq_a, 1, IBV_WC_SUCCESS);
		cr_assert_geq(p->w->now - start, cases[i].ns);
		cr_assert_leq(p->w->now - start, cases[i].ns + 100000);
		pair_end(p);
	}
}

#define HAMMER_POSTS 2000

/* One thread changes the list that another posts: what is taken is always bounded by max_sge. */
struct hammer {
	struct srq *srq;
	struct ibv_recv_wr wr;
	struct ibv_sge sge[64];
	atomic_bool stop;
	atomic_uint finished;
};

static void *change(void *arg)
{
	struct hammer *h = arg;
	int n = 0;

	while (!atomic_load_explicit(&h->stop, memory_order_relaxed))
		__atomic_store_n(&h->wr.num_sge, n++ % 64, __ATOMIC_RELAXED);
	return NULL;
}

static void *post(void *arg)
{
	struct hammer *h = arg;

	for (unsigned int posted = 0; posted < HAMMER_POSTS;)
		if (rq_post(h->srq->rq, &h->wr))
			sched_yield();
		else
			posted++;
	atomic_fetch_add(&h->finished, 1);
	return NULL;
}

Test(B10, num_sge_changes_while_posting)
{
	struct pair *p = pair_srq(&world_path);
	struct hammer h = {.srq = p->srq, .wr = {.wr_id = 5, .num_sge = 1}};
	pthread_t changer, posters[2];
	unsigned int taken = 0;
	struct rqe rqe;

	h.wr.sg_list = h.sge;
	cr_assert(!pthread_create(&changer, NULL, change, &h));
	for (unsigned int i = 0; i < 2; i++)
		cr_assert(!pthread_create(&posters[i], NULL, post, &h));
	while (atomic_load(&h.finished) < 2 || rq_count(p->srq->rq)) {
		if (srq_take(p->srq, &rqe) == SRQ_EMPTY) {
			sched_yield();
			continue;
		}
		cr_assert_leq(rqe.num_sge, 4);
		cr_assert_eq(rqe.wr_id, 5);
		taken++;
	}
	for (unsigned int i = 0; i < 2; i++)
		pthread_join(posters[i], NULL);
	atomic_store(&h.stop, true);
	pthread_join(changer, NULL);
	cr_assert_eq(taken, 2 * HAMMER_POSTS);
	pair_end(p);
}

/* The armed limit is reported until it fires, which it does once. */
Test(B12, srq_limit)
{
	struct pair *p = pair_xrc(&world_path);
	struct ibv_srq_attr attr = {.srq_limit = 3};

	for (uint64_t i = 0; i < 4; i++)
		must(pair_recv(p, i, 64));
	must(engine_srq_modify(p->srq, &attr, IBV_SRQ_LIMIT));
	engine_srq_query(p->srq, &attr);
	cr_assert_eq(attr.srq_limit, 3);
	for (uint64_t i = 0; i < 3; i++) {
		must(pair_send(p, 10 + i, 8));
		expect_wc(p, p->cq_a, 10 + i, IBV_WC_SUCCESS);
		/* 3 left: not below the limit yet. */
		cr_assert_eq(world_events(p->b, IBV_EVENT_SRQ_LIMIT_REACHED, p->srq), i ? 1 : 0);
	}
	engine_srq_query(p->srq, &attr);
	cr_assert_eq(attr.srq_limit, 0);
	pair_end(p);
}

/* No receive in time is RNR (status 13), not an unanswered request (status 12). */
Test(B13, no_receive_is_rnr)
{
	struct world_path path = world_path;
	struct pair *p;

	path.rnr_retry = 3;
	p = pair_rc(&path);
	must(pair_send(p, 1, 8));
	expect_wc(p, p->cq_a, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	cr_assert_eq(world_stat(p->a, STAT_timeouts), 0);
	pair_end(p);
}
