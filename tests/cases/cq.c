/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Cases of group C: completion queues and their events. */
#include "pair.h"

#include <string.h>

/* On an error opcode and qp_num are filled in as well, whatever the request was. */
Test(C2, flushed_completions_have_an_opcode)
{
	static const struct {
		enum ibv_wr_opcode wr;
		enum ibv_wc_opcode wc;
	} cases[] = {
		{IBV_WR_SEND, IBV_WC_SEND},
		{IBV_WR_SEND_WITH_IMM, IBV_WC_SEND},
		{IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE},
		{IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE},
		{IBV_WR_RDMA_READ, IBV_WC_RDMA_READ},
		{IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD},
	};
	struct pair *p = pair_rc(&world_path);
	struct ibv_wc wc;

	must(world_recv(p->qp_a, 99, p->mr_a, p->mem_a, 8));
	must(world_to_state(p->qp_a, IBV_QPS_ERR));
	wc = expect_wc(p, p->cq_a, 99, IBV_WC_WR_FLUSH_ERR);
	cr_assert(wc.opcode & IBV_WC_RECV);
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		must(world_rdma(p->qp_a, i, cases[i].wr, p->mr_a, p->mem_a, 8, 0, 0, 0));
		wc = expect_wc(p, p->cq_a, i, IBV_WC_WR_FLUSH_ERR);
		cr_assert_eq(wc.opcode, cases[i].wc);
		cr_assert_eq(wc.qp_num, p->qp_a->qpn);
	}
	pair_end(p);
}

/* Flushed in the order of posting when the QP goes to ERR; what was there before stays until destroy. */
Test(C3, flush_order_and_cleaning)
{
	struct pair *p = pair_rc(&world_path);
	struct ibv_wc wc;

	must(pair_recv(p, 50, 64));
	must(pair_send(p, 1, 8));
	world_run(p->w, 1000000);
	for (uint64_t i = 2; i < 6; i++)
		must(pair_send(p, i, 8)); /* no receive: they wait */
	for (uint64_t i = 0; i < 4; i++)
		must(world_recv(p->qp_a, 100 + i, p->mr_a, p->mem_a, 8));
	must(world_to_state(p->qp_a, IBV_QPS_ERR));
	expect_wc(p, p->cq_a, 1, IBV_WC_SUCCESS);
	for (unsigned int sends = 2, recvs = 100; sends < 6 || recvs < 104;) {
		cr_assert(world_poll(p->cq_a, &wc));
		cr_assert_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
		cr_assert_eq(wc.wr_id, wc.wr_id >= 100 ? recvs++ : sends++);
	}
	/* The next ones are left in the queue when the QP is destroyed. */
	must(pair_send(p, 7, 8));
	must(qp_close(p->handle_a, p->w->now));
	p->handle_a = NULL;
	cr_assert(!world_poll(p->cq_a, &wc), "a completion of a destroyed QP");
	pair_end(p);
}

/* A request posted in ERR completes with a flush, behind all earlier ones. */
Test(C4, post_in_error_state_is_flushed_last)
{
	struct pair *p = pair_xrc(&world_path);

	for (uint64_t i = 0; i < 3; i++)
		must(pair_send(p, i, 8));
	must(world_to_state(p->qp_a, IBV_QPS_ERR));
	must(pair_send(p, 3, 8));
	for (uint64_t i = 0; i < 4; i++)
		expect_wc(p, p->cq_a, i, IBV_WC_WR_FLUSH_ERR);
	pair_end(p);
}

/* Arming is for what comes after it, once. */
Test(C5, arming_is_one_shot)
{
	struct pair *p = pair_xrc(&world_path);

	for (uint64_t i = 0; i < 5; i++)
		must(pair_recv(p, 100 + i, 64));
	must(pair_send(p, 0, 8));
	world_run(p->w, 1000000);
	cq_arm(p->cq_a, false);
	world_run(p->w, 1000000);
	cr_assert_eq(p->events_a, 0, "what is there already does not fire");
	must(pair_send(p, 1, 8));
	must(pair_send(p, 2, 8));
	world_run(p->w, 1000000);
	cr_assert_eq(p->events_a, 1);
	cq_arm(p->cq_a, false);
	must(pair_send(p, 3, 8));
	world_run(p->w, 1000000);
	cr_assert_eq(p->events_a, 2);
	cr_assert_eq(p->events_b, 0, "never armed");
	pair_end(p);
}

/* Armed for solicited completions: those, and errors, but not the others. */
Test(C5, arming_for_solicited)
{
	struct pair *p = pair_xrc(&world_path);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};

	wr.qp_type.xrc.remote_srqn = p->srq->srqn;
	for (uint64_t i = 0; i < 3; i++)
		must(pair_recv(p, 100 + i, 64));
	cq_arm(p->cq_b, true);
	must(world_post(p->qp_a, &wr));
	world_run(p->w, 1000000);
	cr_assert_eq(p->events_b, 0);
	wr.send_flags |= IBV_SEND_SOLICITED;
	must(world_post(p->qp_a, &wr));
	world_run(p->w, 1000000);
	cr_assert_eq(p->events_b, 1);
	cq_arm(p->cq_a, true);
	must(world_to_state(p->qp_a, IBV_QPS_ERR));
	must(pair_send(p, 9, 8));
	world_run(p->w, 1000000);
	cr_assert_eq(p->events_a, 1);
	pair_end(p);
}

/* Many QPs on one queue with events: none is lost (the program itself runs in tests/stock). */
Test(C7, many_qps_on_one_queue_with_events)
{
	enum { QPS = 16, EACH = 50 };
	struct pair *p = pair_open(IBV_QPT_XRC_SEND, 2, NULL);
	struct qp_handle *ini[QPS], *tgt[QPS];
	unsigned int got = 0, seen = 0, posted[QPS] = {0};
	struct ibv_wc wc;

	for (unsigned int i = 0; i < QPS; i++) {
		ini[i] = world_ini(p->pd_a, p->cq_a, NULL);
		tgt[i] = world_tgt(p->b, p->xrcd, NULL);
		world_connect(ini[i]->qp, tgt[i]->qp, &world_path);
	}
	for (unsigned int i = 0; i < 64; i++)
		must(pair_recv(p, 0, 64));
	cq_arm(p->cq_b, false);
	while (got < QPS * EACH) {
		for (unsigned int i = 0; i < QPS; i++)
			if (posted[i] < EACH &&
			    !world_send(ini[i]->qp, i, p->mr_a, p->mem_a, 64, p->srq->srqn))
				posted[i]++;
		/* As a program: sleep until the event, arm, then poll until empty. */
		while (p->events_b == seen)
			cr_assert(world_step(p->w, p->w->now + PAIR_WAIT), "stuck after %u", got);
		seen = p->events_b;
		cq_arm(p->cq_b, false);
		while (world_poll(p->cq_b, &wc)) {
			cr_assert_eq(wc.status, IBV_WC_SUCCESS);
			must(pair_recv(p, 0, 64));
			got++;
		}
		while (world_poll(p->cq_a, &wc))
			cr_assert_eq(wc.status, IBV_WC_SUCCESS);
	}
	for (unsigned int i = 0; i < QPS; i++) {
		must(qp_close(ini[i], p->w->now));
		must(qp_close(tgt[i], p->w->now));
	}
	pair_end(p);
}

/* A receive cannot be posted in RESET; the request that was refused is named. */
Test(C9, post_recv_in_reset)
{
	struct pair *p = pair_open(IBV_QPT_RC, 2, NULL);
	struct ibv_recv_wr wr[2] = {{.wr_id = 1, .next = &wr[1]}, {.wr_id = 2}}, *bad = NULL;

	cr_assert_eq(qp_post_recv(p->qp_b, wr, &bad, p->w->now), -EINVAL);
	cr_assert_eq(bad, &wr[0]);
	must(world_to_init(p->qp_b, &world_path));
	must(qp_post_recv(p->qp_b, wr, &bad, p->w->now));
	wr[1].num_sge = 5; /* above max_recv_sge */
	cr_assert_eq(qp_post_recv(p->qp_b, wr, &bad, p->w->now), -EINVAL);
	cr_assert_eq(bad, &wr[1]);
	pair_end(p);
}

/* A wrong lkey is a completion with LOC_PROT_ERR, and the QP is in ERR. */
Test(C10, bad_lkey)
{
	for (unsigned int i = 0; i < 3; i++) {
		struct pair *p = pair_xrc(&world_path);
		struct mr other = {.key = p->mr_a->key ^ 0x300};

		must(pair_recv(p, 9, 64));
		must(pair_send(p, 1, 8));
		if (i == 0) /* wrong key */
			must(world_send(p->qp_a, 2, &other, p->mem_a, 8, p->srq->srqn));
		else if (i == 1) /* beyond the region */
			must(world_send(p->qp_a, 2, p->mr_a, p->mem_a + PAIR_MEM - 4, 8,
					p->srq->srqn));
		else /* a key of the peer's domain */
			must(world_send(p->qp_a, 2, p->mr_b, p->mem_b, 8, p->srq->srqn));
		must(pair_send(p, 3, 8));
		expect_wc(p, p->cq_a, 1, IBV_WC_SUCCESS);
		expect_wc(p, p->cq_a, 2, IBV_WC_LOC_PROT_ERR);
		expect_wc(p, p->cq_a, 3, IBV_WC_WR_FLUSH_ERR);
		cr_assert_eq(p->qp_a->state, IBV_QPS_ERR);
		pair_end(p);
	}
}

/* Nothing at all is a legal message, with an SGE of length 0 and without any, on every type of QP. */
Test(C11, zero_length)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_XRC_SEND};
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						     IBV_WR_RDMA_READ};

	for (unsigned int i = 0; i < ARRAY_SIZE(types); i++) {
		struct world_path path = world_path;
		struct pair *p = pair_open(types[i], 2, NULL);

		if (types[i] == IBV_QPT_UC)
			path.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
		world_connect(p->qp_a, p->qp_b, &path);
		for (unsigned int k = 0; k < 2 * ARRAY_SIZE(opcodes); k++) {
			struct ibv_sge sge = {0, 0, 0xbad};
			struct ibv_send_wr wr = {
				.wr_id = k,
				.opcode = opcodes[k / 2],
				.sg_list = &sge,
				.num_sge = k % 2,
				.send_flags = IBV_SEND_SIGNALED,
			};

			if (types[i] == IBV_QPT_UC && wr.opcode == IBV_WR_RDMA_READ)
				continue;
			wr.wr.rdma.rkey = 0xbad;
			wr.qp_type.xrc.remote_srqn = pair_srqn(p);
			if (wr.opcode == IBV_WR_SEND)
				must(pair_recv(p, 50 + k, 0));
			must(world_post(p->qp_a, &wr));
			expect_wc(p, p->cq_a, k, IBV_WC_SUCCESS);
			if (wr.opcode == IBV_WR_SEND)
				cr_assert_eq(expect_wc(p, p->cq_b, 50 + k, IBV_WC_SUCCESS).byte_len,
					     0);
		}
		pair_end(p);
	}
}
