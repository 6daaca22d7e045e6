/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Cases of group A: XRC. The reports behind the ids are listed in README. */
#include "pair.h"

#include <fcntl.h>
#include <string.h>

/* A SEND to an empty SRQ is refused with RNR and waits; it neither hangs nor fails. */
Test(A2, srq_empty_rnr)
{
	struct pair *p = pair_xrc(&world_path);

	must(pair_send(p, 1, 8));
	world_run(p->w, 1000000);
	expect_no_wc(p, p->cq_a);
	cr_assert_geq(world_stat(p->a, STAT_rnr_naks_received), 1);
	must(pair_recv(p, 2, 64));
	expect_wc(p, p->cq_a, 1, IBV_WC_SUCCESS);
	expect_wc(p, p->cq_b, 2, IBV_WC_SUCCESS);
	pair_end(p);
}

/*
 * RC's attribute masks on XRC QPs: what the kernel strips for user programs is accepted, anything else too
 * many or too few is EINVAL and changes nothing.
 */
Test(A5, attributes_of_rc_are_stripped)
{
	static const int ini_rtr =
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	static const int tgt_rts = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN;
	struct pair *p = pair_open(IBV_QPT_XRC_SEND, 2, NULL);
	struct ibv_qp_attr attr = {
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = p->qp_b->qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
		.ah_attr = {.is_global = 1, .port_num = 1},
	};
	uint64_t now = p->w->now;

	must(world_to_init(p->qp_a, &world_path));
	must(world_to_init(p->qp_b, &world_path));
	attr.qp_state = IBV_QPS_RTR;
	memcpy(attr.ah_attr.grh.dgid.raw, p->b->ip, 16);
	cr_assert_eq(qp_modify(p->qp_a, &attr, ini_rtr & ~IBV_QP_RQ_PSN, now), -EINVAL);
	cr_assert_eq(qp_modify(p->qp_a, &attr, ini_rtr | IBV_QP_SQ_PSN, now), -EINVAL);
	cr_assert_eq(qp_modify(p->qp_a, &attr, ini_rtr | IBV_QP_QKEY, now), -EINVAL);
	cr_assert_eq(p->qp_a->state, IBV_QPS_INIT);
	must(qp_modify(p->qp_a, &attr, ini_rtr | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		       now));
	attr.dest_qp_num = p->qp_a->qpn;
	memcpy(attr.ah_attr.grh.dgid.raw, p->a->ip, 16);
	/* The TGT needs them. */
	cr_assert_eq(qp_modify(p->qp_b, &attr, ini_rtr, now), -EINVAL);
	cr_assert_eq(p->qp_b->state, IBV_QPS_INIT);
	must(qp_modify(p->qp_b, &attr, ini_rtr | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		       now));
	attr.qp_state = IBV_QPS_RTS;
	cr_assert_eq(qp_modify(p->qp_a, &attr, tgt_rts, now), -EINVAL);
	cr_assert_eq(qp_modify(p->qp_b, &attr, tgt_rts | IBV_QP_PATH_MTU, now), -EINVAL);
	must(qp_modify(p->qp_a, &attr,
		       tgt_rts | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
		       now));
	must(qp_modify(p->qp_b, &attr,
		       tgt_rts | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
		       now));
	cr_assert_eq(p->qp_a->state, IBV_QPS_RTS);
	cr_assert_eq(p->qp_b->state, IBV_QPS_RTS);
	pair_end(p);
}

/* The TGT may stay in RTR, where it receives and answers, or go on to RTS. */
Test(A6, tgt_in_rtr_receives)
{
	struct pair *p = pair_open(IBV_QPT_XRC_SEND, 2, NULL);

	must(world_to_init(p->qp_a, &world_path));
	must(world_to_init(p->qp_b, &world_path));
	must(world_to_rtr(p->qp_a, p->b->ip, p->qp_b->qpn, &world_path, world_path.psn_b));
	must(world_to_rtr(p->qp_b, p->a->ip, p->qp_a->qpn, &world_path, world_path.psn_a));
	must(world_to_rts(p->qp_a, &world_path, world_path.psn_a));
	for (uint64_t i = 0; i < 2; i++) {
		must(pair_recv(p, 10 + i, 64));
		must(pair_send(p, i, 8));
		expect_wc(p, p->cq_a, i, IBV_WC_SUCCESS);
		expect_wc(p, p->cq_b, 10 + i, IBV_WC_SUCCESS);
		if (!i)
			must(world_to_rts(p->qp_b, &world_path, world_path.psn_b));
	}
	pair_end(p);
}

/* INI and TGT in one process, over one device. */
Test(A7, self_loopback)
{
	struct pair *p = pair_open(IBV_QPT_XRC_SEND, 1, NULL);

	world_connect(p->qp_a, p->qp_b, &world_path);
	pair_fill(p->mem_a, 5000, 7);
	must(pair_recv(p, 2, 5000));
	must(pair_send(p, 1, 5000));
	expect_wc(p, p->cq_a, 1, IBV_WC_SUCCESS);
	expect_wc(p, p->cq_b, 2, IBV_WC_SUCCESS);
	cr_assert_arr_eq(p->mem_a, p->mem_b, 5000);
	pair_end(p);
}

/* The first message of a fresh pair completes, and so does a ping-pong of two pairs. */
Test(A10, first_message_of_a_fresh_pair)
{
	for (uint32_t length = 0; length <= 4096; length += 1024) {
		struct pair *p = pair_xrc(&world_path);

		must(pair_recv(p, 2, 4096));
		must(pair_send(p, 1, length));
		expect_wc(p, p->cq_a, 1, IBV_WC_SUCCESS);
		cr_assert_eq(expect_wc(p, p->cq_b, 2, IBV_WC_SUCCESS).byte_len, length);
		pair_end(p);
	}
}

/* 96 INI QPs of two processes into 4 SRQs of a third, all at once. */
Test(A11, many_senders_into_few_srqs)
{
	enum { QPS = 96, SRQS = 4, EACH = 3 };
	struct pair *p = pair_open(IBV_QPT_XRC_SEND, 3, NULL);
	struct world_node *c = &p->w->nodes[1];
	struct pd *pd_c = world_pd(c);
	struct cq *cq_a = world_cq(p->a, 1024, NULL), *cq_c = world_cq(c, 1024, NULL);
	struct cq *cq_b = world_cq(p->b, 1024, NULL);
	struct mr *mr_c = world_mr(pd_c, p->mem_a, PAIR_MEM, IBV_ACCESS_LOCAL_WRITE);
	struct qp_handle *ini[QPS], *tgt[QPS];
	struct srq *srq[SRQS];
	unsigned int got = 0, done = 0, of_qp[QPS] = {0};
	struct ibv_wc wc;

	for (unsigned int i = 0; i < SRQS; i++) {
		srq[i] = world_xrc_srq(p->pd_b, p->xrcd, cq_b, QPS * EACH, 1);
		for (unsigned int k = 0; k < QPS * EACH / SRQS; k++)
			must(world_srq_recv(srq[i], k, p->mr_b, p->mem_b + k * 64, 64));
	}
	for (unsigned int i = 0; i < QPS; i++) {
		ini[i] = i % 2 ? world_ini(pd_c, cq_c, NULL) : world_ini(p->pd_a, cq_a, NULL);
		tgt[i] = world_tgt(p->b, p->xrcd, NULL);
		world_connect(ini[i]->qp, tgt[i]->qp, &world_path);
	}
	for (unsigned int k = 0; k < EACH; k++)
		for (unsigned int i = 0; i < QPS; i++)
			must(world_send(ini[i]->qp, i, i % 2 ? mr_c : p->mr_a, p->mem_a, 64,
					srq[i % SRQS]->srqn));
	world_run(p->w, PAIR_WAIT);
	while (world_poll(cq_b, &wc)) {
		cr_assert_eq(wc.status, IBV_WC_SUCCESS);
		got++;
		for (unsigned int i = 0; i < QPS; i++)
			of_qp[i] += tgt[i]->qp->qpn == wc.qp_num;
	}
	while (world_poll(cq_a, &wc) || world_poll(cq_c, &wc)) {
		cr_assert_eq(wc.status, IBV_WC_SUCCESS);
		done++;
	}
	cr_assert_eq(got, QPS * EACH);
	cr_assert_eq(done, QPS * EACH);
	for (unsigned int i = 0; i < QPS; i++) {
		cr_assert_eq(of_qp[i], EACH);
		must(qp_close(ini[i], p->w->now));
		must(qp_close(tgt[i], p->w->now));
	}
	for (unsigned int i = 0; i < SRQS; i++)
		must(engine_srq_destroy(srq[i]));
	must(mr_destroy(mr_c));
	must(cq_destroy(cq_a));
	must(cq_destroy(cq_b));
	must(cq_destroy(cq_c));
	must(pd_destroy(pd_c));
	pair_end(p);
}

/* A second handle to the TGT QP; it lives until the last one is closed. */
Test(A14, open_qp_shares_the_tgt)
{
	struct pair *p = pair_xrc(&world_path);
	struct qp_handle *second;
	int tag;

	must(qp_open(p->xrcd, p->qp_b->qpn, &tag, &second));
	cr_assert_eq(second->qp, p->qp_b);
	must(qp_close(p->handle_b, p->w->now));
	p->handle_b = second;
	must(pair_recv(p, 2, 64));
	must(pair_send(p, 1, 8));
	expect_wc(p, p->cq_a, 1, IBV_WC_SUCCESS);
	expect_wc(p, p->cq_b, 2, IBV_WC_SUCCESS);
	pair_end(p);
}

/* Life of domain and TGT: busy while something is in it; a dead TGT cannot be opened. */
Test(A15, domain_and_tgt_lifetime)
{
	struct pair *p = pair_xrc(&world_path);
	struct xrcd *other = world_xrcd(p->b), *first, *again;
	uint32_t qpn = p->qp_b->qpn;
	struct qp_handle *h;

	cr_assert_eq(xrcd_close(p->xrcd), -EBUSY);
	cr_assert_eq(qp_open(other, qpn, NULL, &h), -EINVAL, "of another domain");
	cr_assert_eq(qp_open(p->xrcd, p->srq->srqn, NULL, &h), -EINVAL);
	must(qp_close(p->handle_b, p->w->now));
	p->handle_b = NULL;
	cr_assert_eq(qp_open(p->xrcd, qpn, NULL, &h), -EINVAL, "dead");
	cr_assert_eq(xrcd_close(p->xrcd), -EBUSY, "the SRQ is left");
	must(xrcd_close(other));
	/* Domains of a file. */
	cr_assert_eq(xrcd_open(p->b->engine, true, 1, 99, 0, &first), -EAGAIN);
	must(xrcd_open(p->b->engine, true, 1, 99, O_CREAT, &first));
	must(xrcd_open(p->b->engine, true, 1, 99, 0, &again));
	cr_assert_eq(first, again);
	cr_assert_eq(xrcd_open(p->b->engine, true, 1, 99, O_CREAT | O_EXCL, &again), -EINVAL);
	must(xrcd_close(first));
	must(xrcd_close(first));
	cr_assert_eq(xrcd_open(p->b->engine, true, 1, 99, 0, &first), -EAGAIN);
	pair_end(p);
}

/* INI and TGT have no receive queue, TGT no send queue. */
Test(A17, no_receive_queue)
{
	struct pair *p = pair_xrc(&world_path);
	struct ibv_qp_attr attr;
	struct qp_init init;

	cr_assert_eq(world_recv(p->qp_a, 1, p->mr_a, p->mem_a, 8), -EINVAL);
	cr_assert_eq(world_recv(p->qp_b, 1, p->mr_b, p->mem_b, 8), -EINVAL);
	cr_assert_eq(world_send(p->qp_b, 1, p->mr_b, p->mem_b, 8, 0), -EINVAL);
	must(qp_query(p->qp_a, &attr, &init));
	cr_assert_eq(attr.cap.max_recv_wr, 0);
	cr_assert_eq(attr.cap.max_recv_sge, 0);
	cr_assert_geq(attr.cap.max_send_wr, 64);
	must(qp_query(p->qp_b, &attr, &init));
	cr_assert_eq(attr.cap.max_recv_wr + attr.cap.max_recv_sge + attr.cap.max_send_wr +
			     attr.cap.max_send_sge + attr.cap.max_inline_data,
		     0);
	cr_assert_eq(init.type, IBV_QPT_XRC_RECV);
	pair_end(p);
}

/* Unknown SRQN, or one of another domain: the program of each side is told. */
Test(A18, srqn_violation)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct pair *p = pair_xrc(&world_path);
		struct xrcd *other = world_xrcd(p->b);
		struct srq *srq = world_xrc_srq(p->pd_b, other, p->cq_b, 4, 1);
		uint32_t srqn = i ? srq->srqn : srq->srqn ^ 0x100;

		must(world_send(p->qp_a, 1, p->mr_a, p->mem_a, 8, srqn));
		must(pair_send(p, 2, 8));
		expect_wc(p, p->cq_a, 1, IBV_WC_REM_INV_RD_REQ_ERR);
		expect_wc(p, p->cq_a, 2, IBV_WC_WR_FLUSH_ERR);
		cr_assert_eq(p->qp_b->state, IBV_QPS_ERR);
		cr_assert_eq(world_events(p->b, IBV_EVENT_QP_ACCESS_ERR, &p->tag_b), 1);
		must(engine_srq_destroy(srq));
		must(xrcd_close(other));
		pair_end(p);
	}
}

/* ... at once: not by running out of retries. */
Test(A19, srqn_violation_is_naked)
{
	struct pair *p = pair_xrc(&world_path);
	uint64_t start = p->w->now;

	must(world_send(p->qp_a, 1, p->mr_a, p->mem_a, 8, 0x800123));
	expect_wc(p, p->cq_a, 1, IBV_WC_REM_INV_RD_REQ_ERR);
	cr_assert_lt(p->w->now - start, 1000000);
	cr_assert_eq(world_stat(p->a, STAT_timeouts), 0);
	cr_assert_eq(world_stat(p->b, STAT_naks_sent), 1);
	pair_end(p);
}

/* A responder that answers 0x62 is understood as well; see also nak::status of tests/sim. */
Test(A20, remote_access_nak_is_understood)
{
	struct pair *p = pair_xrc(&world_path);

	must(world_rdma(p->qp_a, 1, IBV_WR_RDMA_WRITE, p->mr_a, p->mem_a, 8, (uintptr_t)p->mem_b,
			p->mr_b->key ^ 0x5500, p->srq->srqn));
	expect_wc(p, p->cq_a, 1, IBV_WC_REM_ACCESS_ERR);
	pair_end(p);
}
