/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The requester and completer, packet by packet: a test answers, late, wrongly, twice or not at
 * all.
 */
#include "script.h"

#include <string.h>

/* A request of 8 bytes that the peer has got. */
static void post(struct script *s, uint64_t wr_id, enum ibv_wr_opcode opcode, uint32_t length)
{
	must(world_rdma(s->qp, wr_id, opcode, s->mr, s->mem, length, 0x1000, 0x77, 0x800001));
	run(s, 0);
}

static void answer(struct script *s, uint32_t psn, uint8_t syndrome)
{
	struct wire_pkt p = response(s, code_of(s, WIRE_RC_ACK), psn, syndrome, 0);

	inject(s, &p);
}

static void answer_read(struct script *s, uint8_t rc_code, uint32_t psn, uint32_t length)
{
	struct wire_pkt p = response(s, code_of(s, rc_code), psn, WIRE_ACK_NO_CREDITS, 1);
	static uint8_t data[4096];

	memset(data, psn & 0xff, length);
	p.payload = data;
	p.payload_len = length;
	inject(s, &p);
}

/* Every NAK: what the program is told (IBTA table 45; 0x62 also for an unknown SRQ, as others send
 * it). */
Test(nak, status)
{
	static const struct {
		uint8_t syndrome;
		enum ibv_wc_status status;
	} cases[] = {
		{WIRE_NAK_INVALID_REQUEST, IBV_WC_REM_INV_REQ_ERR},
		{WIRE_NAK_REMOTE_ACCESS, IBV_WC_REM_ACCESS_ERR},
		{WIRE_NAK_REMOTE_OPERATIONAL, IBV_WC_REM_OP_ERR},
		{WIRE_NAK_INVALID_RD_REQUEST, IBV_WC_REM_INV_RD_REQ_ERR},
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct script *s = script_ini();

		for (unsigned int k = 0; k < 3; k++)
			post(s, k, IBV_WR_SEND, 8);
		forget(s);
		/* The second is refused: the first is done, the third flushed. */
		answer(s, s->sq_psn + 1, cases[i].syndrome);
		expect_wc(s->scq, 0, IBV_WC_SUCCESS);
		expect_wc(s->scq, 1, cases[i].status);
		expect_wc(s->scq, 2, IBV_WC_WR_FLUSH_ERR);
		cr_assert_eq(s->qp->state, IBV_QPS_ERR);
		script_end(s);
	}
}

Test(nak, sequence_goes_back_at_once)
{
	struct script *s = script_rc();
	uint64_t before;

	for (unsigned int k = 0; k < 4; k++)
		post(s, k, IBV_WR_SEND, 8);
	forget(s);
	before = s->w->now;
	answer(s, s->sq_psn + 2, WIRE_NAK_SEQUENCE);
	expect_wc(s->scq, 0, IBV_WC_SUCCESS);
	expect_wc(s->scq, 1, IBV_WC_SUCCESS);
	expect_no_wc(s->scq);
	cr_assert_leq(expect_at(s, WIRE_RC_SEND_ONLY, s->sq_psn + 2)->at, before + 1000);
	expect(s, WIRE_RC_SEND_ONLY, s->sq_psn + 3);
	expect_nothing(s);
	answer(s, s->sq_psn + 3, WIRE_ACK_NO_CREDITS);
	expect_wc(s->scq, 2, IBV_WC_SUCCESS);
	expect_wc(s->scq, 3, IBV_WC_SUCCESS);
	script_end(s);
}

Test(ack, covers_all_before_it)
{
	struct script *s = script_ini();

	for (unsigned int k = 0; k < 3; k++)
		post(s, k, IBV_WR_SEND, 300); /* two packets each */
	forget(s);
	answer(s, s->sq_psn + 4, WIRE_ACK_NO_CREDITS);
	expect_wc(s->scq, 0, IBV_WC_SUCCESS);
	expect_wc(s->scq, 1, IBV_WC_SUCCESS);
	expect_no_wc(s->scq);
	answer(s, s->sq_psn + 5, WIRE_ACK_NO_CREDITS);
	expect_wc(s->scq, 2, IBV_WC_SUCCESS);
	script_end(s);
}

/* A ghost acknowledges what was never sent, or what has been acknowledged long ago. */
Test(ack, ghost)
{
	struct script *s = script_rc();

	post(s, 1, IBV_WR_SEND, 8);
	forget(s);
	answer(s, s->sq_psn + 1, WIRE_ACK_NO_CREDITS);
	answer(s, s->sq_psn + 5000, WIRE_NAK_INVALID_REQUEST);
	answer(s, s->sq_psn - 1, WIRE_ACK_NO_CREDITS);
	answer(s, s->sq_psn - 1, WIRE_NAK_REMOTE_ACCESS);
	cr_assert_eq(drops(s, DROP_ghost_ack), 4);
	expect_no_wc(s->scq);
	cr_assert_eq(s->qp->state, IBV_QPS_RTS);
	answer(s, s->sq_psn, WIRE_ACK_NO_CREDITS);
	expect_wc(s->scq, 1, IBV_WC_SUCCESS);
	answer(s, s->sq_psn, WIRE_ACK_NO_CREDITS);
	cr_assert_eq(drops(s, DROP_ghost_ack), 5);
	script_end(s);
}

Test(ack, ghost_when_idle)
{
	struct script *s = script_ini();

	answer(s, s->sq_psn, WIRE_ACK_NO_CREDITS);
	answer(s, s->sq_psn, WIRE_NAK_SEQUENCE);
	answer(s, s->sq_psn, WIRE_RNR(1));
	answer_read(s, WIRE_RC_READ_RESP_ONLY, s->sq_psn, 0);
	cr_assert_eq(drops(s, DROP_ghost_ack), 4);
	expect_nothing(s);
	script_end(s);
}

/* Responses of another kind than the request. */
Test(response, bad_opcode)
{
	struct script *s = script_ini();
	struct wire_pkt p;

	post(s, 1, IBV_WR_SEND, 8);
	post(s, 2, IBV_WR_RDMA_READ, 8);
	post(s, 3, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	forget(s);
	answer_read(s, WIRE_RC_READ_RESP_ONLY, s->sq_psn, 8);
	p = response(s, WIRE_XRC_ATOMIC_ACK, s->sq_psn, WIRE_ACK_NO_CREDITS, 1);
	inject(s, &p);
	expect_no_wc(s->scq);
	/* The READ's PSN: first the SEND is done by it, then the answer does not fit. */
	p = response(s, WIRE_XRC_ATOMIC_ACK, s->sq_psn + 1, WIRE_ACK_NO_CREDITS, 1);
	inject(s, &p);
	expect_wc(s->scq, 1, IBV_WC_SUCCESS);
	expect_no_wc(s->scq);
	cr_assert_eq(drops(s, DROP_bad_response), 3);
	cr_assert_eq(s->qp->state, IBV_QPS_RTS);
	script_end(s);
}

Test(response, reserved_syndrome)
{
	struct script *s = script_ini();

	post(s, 1, IBV_WR_SEND, 8);
	forget(s);
	answer(s, s->sq_psn, 0x40);
	answer(s, s->sq_psn, 0x7f);
	cr_assert_eq(drops(s, DROP_bad_response), 2);
	expect_no_wc(s->scq);
	script_end(s);
}

/* The response to a later request says that an earlier READ's was lost (IBTA 9.7.5.2.7). */
Test(implied_nak, by_a_later_read_and_by_an_ack)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct script *s = script_ini();
		uint64_t before;

		post(s, 1, IBV_WR_RDMA_READ, 8);
		post(s, 2, i ? IBV_WR_SEND : IBV_WR_RDMA_READ, 8);
		forget(s);
		before = s->w->now;
		if (i)
			answer(s, s->sq_psn + 1, WIRE_ACK_NO_CREDITS);
		else
			answer_read(s, WIRE_RC_READ_RESP_ONLY, s->sq_psn + 1, 8);
		expect_no_wc(s->scq);
		cr_assert_leq(expect_at(s, WIRE_XRC_READ_REQUEST, s->sq_psn)->at, before + 1000);
		expect(s, i ? WIRE_XRC_SEND_ONLY : WIRE_XRC_READ_REQUEST, s->sq_psn + 1);
		answer_read(s, WIRE_RC_READ_RESP_ONLY, s->sq_psn, 8);
		expect_wc(s->scq, 1, IBV_WC_SUCCESS);
		if (i)
			answer(s, s->sq_psn + 1, WIRE_ACK_NO_CREDITS);
		else
			answer_read(s, WIRE_RC_READ_RESP_ONLY, s->sq_psn + 1, 8);
		expect_wc(s->scq, 2, IBV_WC_SUCCESS);
		script_end(s);
	}
}

/* A READ response is lost in the middle: the request is repeated from there. */
Test(read, is_asked_for_again_from_the_middle)
{
	struct script *s = script_ini();
	const struct wire_pkt *p;

	post(s, 1, IBV_WR_RDMA_READ, 5 * SCRIPT_MTU + 3);
	p = expect(s, WIRE_XRC_READ_REQUEST, s->sq_psn);
	cr_assert_eq(p->dma_len, 5 * SCRIPT_MTU + 3);
	cr_assert_eq(p->srqn, 0x800001);
	answer_read(s, WIRE_RC_READ_RESP_FIRST, s->sq_psn, SCRIPT_MTU);
	answer_read(s, WIRE_RC_READ_RESP_MIDDLE, s->sq_psn + 1, SCRIPT_MTU);
	expect_nothing(s);
	answer_read(s, WIRE_RC_READ_RESP_MIDDLE, s->sq_psn + 3, SCRIPT_MTU);
	p = expect(s, WIRE_XRC_READ_REQUEST, s->sq_psn + 2);
	cr_assert_eq(p->va, 0x1000 + 2 * SCRIPT_MTU);
	cr_assert_eq(p->dma_len, 3 * SCRIPT_MTU + 3);
	/* rdma_rxe starts such an answer with MIDDLE, others with FIRST. */
	answer_read(s, WIRE_RC_READ_RESP_MIDDLE, s->sq_psn + 2, SCRIPT_MTU);
	answer_read(s, WIRE_RC_READ_RESP_FIRST, s->sq_psn + 3, SCRIPT_MTU);
	answer_read(s, WIRE_RC_READ_RESP_MIDDLE, s->sq_psn + 4, SCRIPT_MTU);
	expect_no_wc(s->scq);
	answer_read(s, WIRE_RC_READ_RESP_LAST, s->sq_psn + 5, 3);
	expect_wc(s->scq, 1, IBV_WC_SUCCESS);
	for (uint32_t i = 0; i < 5 * SCRIPT_MTU + 3; i++)
		cr_assert_eq(s->mem[i], (uint8_t)(s->sq_psn + i / SCRIPT_MTU));
	script_end(s);
}

/*
 * What is asked for again ends where it ended before, although the window has changed: a request that is half
 * duplicate and half new is one that responders drop.
 */
Test(read, repetition_ends_where_it_did)
{
	struct script *s = script_ini();
	const struct wire_pkt *p;
	uint32_t end;

	post(s, 1, IBV_WR_RDMA_READ, SCRIPT_MEM);
	p = expect(s, WIRE_XRC_READ_REQUEST, s->sq_psn);
	end = p->dma_len / SCRIPT_MTU;
	cr_assert_gt(end, 12);
	for (uint32_t k = 0; k < 10; k++)
		answer_read(s, WIRE_RC_READ_RESP_MIDDLE, s->sq_psn + k, SCRIPT_MTU);
	forget(s);
	answer_read(s, WIRE_RC_READ_RESP_MIDDLE, s->sq_psn + 11, SCRIPT_MTU);
	p = expect(s, WIRE_XRC_READ_REQUEST, s->sq_psn + 10);
	cr_assert_eq(p->dma_len, (end - 10) * SCRIPT_MTU);
	forget(s);
	script_end(s);
}

/* Responses count in the window too, so a long READ is asked for in parts. */
Test(read, longer_than_the_window)
{
	struct script *s = script_ini();
	uint32_t psn = s->sq_psn, end = psn + SCRIPT_MEM / SCRIPT_MTU, asked = psn;

	post(s, 1, IBV_WR_RDMA_READ, SCRIPT_MEM);
	for (; psn != end; psn++) {
		while (s->next != s->nsent) {
			const struct wire_pkt *p = expect(s, WIRE_XRC_READ_REQUEST, asked);

			cr_assert_eq(p->va, 0x1000 + (uint64_t)(asked - s->sq_psn) * SCRIPT_MTU);
			asked += (p->dma_len + SCRIPT_MTU - 1) / SCRIPT_MTU;
			cr_assert_leq(asked, end);
		}
		cr_assert_lt(psn, asked, "nothing was asked for");
		answer_read(s, WIRE_RC_READ_RESP_MIDDLE, psn, SCRIPT_MTU);
	}
	cr_assert_eq(asked, end);
	expect_wc(s->scq, 1, IBV_WC_SUCCESS);
	for (uint32_t i = 0; i < SCRIPT_MEM; i += SCRIPT_MTU / 2)
		cr_assert_eq(s->mem[i], (uint8_t)(s->sq_psn + i / SCRIPT_MTU));
	script_end(s);
}

/* A response of a length that cannot be: the peer is broken. */
Test(read, response_of_wrong_length)
{
	struct script *s = script_ini();

	post(s, 1, IBV_WR_RDMA_READ, 2 * SCRIPT_MTU);
	forget(s);
	answer_read(s, WIRE_RC_READ_RESP_FIRST, s->sq_psn, SCRIPT_MTU - 4);
	expect_wc(s->scq, 1, IBV_WC_BAD_RESP_ERR);
	cr_assert_eq(s->qp->state, IBV_QPS_ERR);
	script_end(s);
}

Test(atomic, result_is_in_host_order)
{
	struct script *s = script_ini();
	struct wire_pkt p;
	uint64_t word;

	post(s, 1, IBV_WR_ATOMIC_CMP_AND_SWP, 8);
	expect(s, WIRE_XRC_CMP_SWAP, s->sq_psn);
	p = response(s, WIRE_XRC_ATOMIC_ACK, s->sq_psn, WIRE_ACK_NO_CREDITS, 1);
	p.orig = 0x1122334455667788;
	inject(s, &p);
	expect_wc(s->scq, 1, IBV_WC_SUCCESS);
	memcpy(&word, s->mem, 8);
	cr_assert_eq(word, 0x1122334455667788);
	script_end(s);
}

/* RNR: every timer value is waited for to the nanosecond, and nothing is sent meanwhile. */
Test(rnr, timer_is_honoured_to_the_ns)
{
	for (uint8_t timer = 0; timer < 32; timer++) {
		struct world_path path = script_path;
		struct script *s;
		uint64_t naked;

		path.timeout = 8; /* 1 ms: would fire during most of the waits */
		s = script_of(IBV_QPT_XRC_SEND, &path);
		post(s, 1, IBV_WR_SEND, 8);
		post(s, 2, IBV_WR_SEND, 8);
		forget(s);
		naked = s->w->now;
		answer(s, s->sq_psn, WIRE_RNR(timer));
		if (wire_rnr_ns(timer) > SCRIPT_SETTLE) {
			expect_nothing(s);
			run(s, wire_rnr_ns(timer) - SCRIPT_SETTLE - 1);
			expect_nothing(s);
			cr_assert_eq(s->w->now, naked + wire_rnr_ns(timer) - 1);
			run(s, 1);
		}
		cr_assert_eq(expect_at(s, WIRE_XRC_SEND_ONLY, s->sq_psn)->at,
			     naked + wire_rnr_ns(timer));
		expect(s, WIRE_XRC_SEND_ONLY, s->sq_psn + 1);
		answer(s, s->sq_psn + 1, WIRE_ACK_NO_CREDITS);
		forget(s);
		expect_wc(s->scq, 1, IBV_WC_SUCCESS);
		expect_wc(s->scq, 2, IBV_WC_SUCCESS);
		cr_assert_eq(world_stat(s->node, STAT_timeouts), 0);
		script_end(s);
	}
}

/* rnr_retry RNR NAKs are forgiven, the next is not; 7 forgives all. */
Test(rnr, retry_count)
{
	for (uint8_t retry = 0; retry < 8; retry++) {
		struct world_path path = script_path;
		unsigned int naks = retry == 7 ? 50 : retry;
		struct script *s;

		path.rnr_retry = retry;
		s = script_of(IBV_QPT_XRC_SEND, &path);
		post(s, 1, IBV_WR_SEND, 8);
		for (unsigned int i = 0; i < naks; i++) {
			expect(s, WIRE_XRC_SEND_ONLY, s->sq_psn);
			answer(s, s->sq_psn, WIRE_RNR(1));
		}
		expect(s, WIRE_XRC_SEND_ONLY, s->sq_psn);
		expect_no_wc(s->scq);
		if (retry == 7) {
			answer(s, s->sq_psn, WIRE_ACK_NO_CREDITS);
			expect_wc(s->scq, 1, IBV_WC_SUCCESS);
		} else {
			answer(s, s->sq_psn, WIRE_RNR(1));
			expect_wc(s->scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
		}
		script_end(s);
	}
}

/* An RNR NAK that also acknowledges is about a request that has all its RNR retries, and is waited for. */
Test(rnr, nak_that_acknowledges)
{
	struct world_path path = script_path;
	struct script *s;
	uint64_t naked;

	path.rnr_retry = 1;
	path.timeout = 8;
	path.retry_cnt = 1;
	s = script_of(IBV_QPT_XRC_SEND, &path);
	post(s, 1, IBV_WR_SEND, 8);
	post(s, 2, IBV_WR_SEND, 8);
	answer(s, s->sq_psn, WIRE_RNR(1));
	forget(s);
	naked = s->w->now;
	answer(s, s->sq_psn + 1, WIRE_RNR(0)); /* 655 ms, 625 timeouts */
	expect_wc(s->scq, 1, IBV_WC_SUCCESS);
	run(s, wire_rnr_ns(0));
	expect_no_wc(s->scq);
	cr_assert_eq(expect_at(s, WIRE_XRC_SEND_ONLY, s->sq_psn + 1)->at, naked + wire_rnr_ns(0));
	cr_assert_eq(world_stat(s->node, STAT_timeouts), 0);
	answer(s, s->sq_psn + 1, WIRE_ACK_NO_CREDITS);
	expect_wc(s->scq, 2, IBV_WC_SUCCESS);
	forget(s);
	script_end(s);
}

/* What was refused has been taken after all, in a second copy: there is nothing left to wait for. */
Test(rnr, wait_ends_with_progress)
{
	struct world_path path = script_path;
	struct script *s;

	path.timeout = 8;
	s = script_of(IBV_QPT_XRC_SEND, &path);
	post(s, 1, IBV_WR_SEND, 8);
	answer(s, s->sq_psn, WIRE_RNR(0));
	answer(s, s->sq_psn, WIRE_ACK_NO_CREDITS);
	expect_wc(s->scq, 1, IBV_WC_SUCCESS);
	forget(s);
	post(s, 2, IBV_WR_SEND, 8);
	expect(s, WIRE_XRC_SEND_ONLY, s->sq_psn + 1);
	answer(s, s->sq_psn + 1, WIRE_ACK_NO_CREDITS);
	expect_wc(s->scq, 2, IBV_WC_SUCCESS);
	script_end(s);
}

/* retry_cnt: that many repetitions, each between one and four timeouts after the last
 * (IBTA 9.7.6.1.3). */
Test(retry, timing_and_count)
{
	for (uint8_t retry = 0; retry < 8; retry++) {
		struct world_path path = script_path;
		uint64_t timeout = 4096ull << 9, last, at;
		struct script *s;

		path.retry_cnt = retry;
		path.timeout = 9;
		s = script_of(IBV_QPT_XRC_SEND, &path);
		post(s, 1, IBV_WR_SEND, 8);
		run(s, timeout * 4 * (retry + 2));
		last = expect_at(s, WIRE_XRC_SEND_ONLY, s->sq_psn)->at;
		for (unsigned int i = 0; i < retry; i++) {
			at = expect_at(s, WIRE_XRC_SEND_ONLY, s->sq_psn)->at;
			cr_assert_geq(at - last, timeout);
			cr_assert_leq(at - last, 4 * timeout);
			last = at;
		}
		expect_nothing(s);
		expect_wc(s->scq, 1, IBV_WC_RETRY_EXC_ERR);
		cr_assert_eq(s->qp->state, IBV_QPS_ERR);
		script_end(s);
	}
}

/* Progress gives all retries back. */
Test(retry, count_is_reset_by_progress)
{
	struct world_path path = script_path;
	uint64_t timeout = 4096ull << 9;
	struct script *s;

	path.retry_cnt = 1;
	path.timeout = 9;
	s = script_of(IBV_QPT_XRC_SEND, &path);
	for (unsigned int k = 0; k < 4; k++)
		post(s, k, IBV_WR_SEND, 8);
	forget(s);
	for (unsigned int k = 0; k < 4; k++) {
		for (unsigned int i = 0; i < 8 && s->next == s->nsent; i++)
			run(s, timeout);
		forget(s);
		answer(s, s->sq_psn + k, WIRE_ACK_NO_CREDITS);
		expect_wc(s->scq, k, IBV_WC_SUCCESS);
		forget(s);
	}
	script_end(s);
}

/* Timeout 0 waits for ever. */
Test(retry, timeout_zero_is_none)
{
	struct world_path path = script_path;
	struct script *s;

	path.timeout = 0;
	s = script_of(IBV_QPT_XRC_SEND, &path);
	post(s, 1, IBV_WR_SEND, 8);
	forget(s);
	run(s, 3600ull * 1000000000);
	expect_nothing(s);
	answer(s, s->sq_psn, WIRE_ACK_NO_CREDITS);
	expect_wc(s->scq, 1, IBV_WC_SUCCESS);
	script_end(s);
}

/* Over the wrap of the PSN. */
Test(psn, wraps)
{
	struct world_path path = script_path;
	struct script *s;

	path.psn_a = 0xfffffe;
	s = script_of(IBV_QPT_XRC_SEND, &path);
	for (unsigned int k = 0; k < 4; k++) {
		post(s, k, IBV_WR_SEND, 8);
		expect(s, WIRE_XRC_SEND_ONLY, 0xfffffe + k);
	}
	answer(s, 1, WIRE_ACK_NO_CREDITS);
	for (unsigned int k = 0; k < 4; k++)
		expect_wc(s->scq, k, IBV_WC_SUCCESS);
	script_end(s);
}

/* At most max_rd_atomic READs and atomics are outstanding. */
Test(rd_atomic, limit)
{
	struct script *s = script_ini();

	for (unsigned int k = 0; k < 6; k++)
		post(s, k, IBV_WR_RDMA_READ, 8);
	for (unsigned int k = 0; k < 4; k++)
		expect(s, WIRE_XRC_READ_REQUEST, s->sq_psn + k);
	expect_nothing(s);
	answer_read(s, WIRE_RC_READ_RESP_ONLY, s->sq_psn, 8);
	expect(s, WIRE_XRC_READ_REQUEST, s->sq_psn + 4);
	expect_nothing(s);
	expect_wc(s->scq, 0, IBV_WC_SUCCESS);
	script_end(s);
}

/* A fenced request waits for the READs before it. */
Test(fence, waits_for_reads)
{
	struct script *s = script_ini();
	struct ibv_send_wr wr = {.wr_id = 3,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_FENCE | IBV_SEND_SIGNALED};

	post(s, 1, IBV_WR_RDMA_READ, 8);
	post(s, 2, IBV_WR_SEND, 8);
	wr.qp_type.xrc.remote_srqn = 0x800001;
	must(world_post(s->qp, &wr));
	run(s, SCRIPT_SETTLE);
	expect(s, WIRE_XRC_READ_REQUEST, s->sq_psn);
	expect(s, WIRE_XRC_SEND_ONLY, s->sq_psn + 1);
	expect_nothing(s);
	answer_read(s, WIRE_RC_READ_RESP_ONLY, s->sq_psn, 8);
	expect(s, WIRE_XRC_SEND_ONLY, s->sq_psn + 2);
	script_end(s);
}

/* AckReq on the last packet of a message, so that each is answered; the solicited bit there too. */
Test(packet, flags)
{
	struct script *s = script_ini();
	struct ibv_sge sge = {(uintptr_t)s->mem, 2 * SCRIPT_MTU + 1, s->mr->key};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND_WITH_IMM,
				 .imm_data = 0xcafe,
				 .send_flags = IBV_SEND_SOLICITED | IBV_SEND_SIGNALED};
	const struct wire_pkt *p;

	wr.qp_type.xrc.remote_srqn = 0xffabcdef; /* 24 bits of it */
	must(world_post(s->qp, &wr));
	run(s, SCRIPT_SETTLE);
	p = expect(s, WIRE_XRC_SEND_FIRST, s->sq_psn);
	cr_assert(!p->se && p->srqn == 0xabcdef && p->payload_len == SCRIPT_MTU);
	p = expect(s, WIRE_XRC_SEND_MIDDLE, s->sq_psn + 1);
	cr_assert(!p->se && p->srqn == 0xabcdef && p->payload_len == SCRIPT_MTU);
	p = expect(s, WIRE_XRC_SEND_LAST_IMM, s->sq_psn + 2);
	cr_assert(p->se && p->ackreq && p->srqn == 0xabcdef && p->payload_len == 1 && p->pad == 3);
	cr_assert_eq(p->imm_be, 0xcafe);
	script_end(s);
}
