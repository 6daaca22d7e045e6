/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An SRQ that belongs to another process, packet by packet: what a peer gets, what the owner sees.
 *
 * The owner is a second engine, and the carrier a function call, with two switches: it may be silent before it has
 * delivered the question, or after.
 */
#include "script.h"

#include "engine/foreign_ask.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define DEV   7
#define INO   1234
#define BLOCK 0xabc000u
#define MEM   65536u

enum silence { SPEAKS, DEAF, DUMB };

/* One for each test: Criterion runs every test in a process of its own. */
static struct {
	struct engine *engine;
	struct foreign_peer *peer;
	struct pd *pd;
	struct cq *cq;
	struct xrcd *xrcd;
	struct srq *srq;
	struct mr *mr;
	uint8_t mem[MEM];
	enum silence silence;
	bool gone;
	unsigned int deaf_at;	     /* not to this question, counted from 1 */
	struct foreign_request last; /* question */
	unsigned int asked, told, limits, cq_errs;
	uint32_t told_srqn; /* the last */
} owner;

static void count_event(struct engine *e, enum ibv_event_type type, void *user)
{
	owner.limits += type == IBV_EVENT_SRQ_LIMIT_REACHED;
	owner.cq_errs += type == IBV_EVENT_CQ_ERR;
}

static void ignore_cq(struct cq *cq)
{
}

static uint32_t claim(struct engine *e)
{
	return BLOCK;
}

static int ask(struct engine *e, struct foreign_request *req, const void *payload,
	       struct foreign_reply *reply, void *data)
{
	uint8_t room[FOREIGN_MAX_DATA];
	static uint64_t id;

	owner.asked++;
	owner.last = *req;
	if (owner.gone || (req->srqn & ~(FOREIGN_BLOCK - 1)) != BLOCK)
		return -ENOENT;
	if (owner.silence == DEAF || owner.asked == owner.deaf_at)
		return -ETIMEDOUT;
	req->id = ++id;
	cr_assert(foreign_serve(owner.peer, req, payload, reply, room, 1));
	cr_assert_eq(reply->id, id);
	if (owner.silence == DUMB)
		return -ETIMEDOUT;
	if (data)
		memcpy(data, room, reply->data_len);
	return 0;
}

static void tell(struct engine *e, struct foreign_request *req)
{
	struct foreign_reply reply;

	owner.told++;
	owner.told_srqn = req->srqn;
	if (!owner.gone && owner.peer)
		cr_assert(!foreign_serve(owner.peer, req, NULL, &reply, NULL, 1));
}

static const struct foreign_ops foreign = {.claim = claim, .ask = ask, .tell = tell};

/* A TGT QP whose domain is that of the owner's file. */
static struct script *begin_with(int owner_cqe)
{
	static const struct engine_ops owner_ops = {
		.cq_event = ignore_cq, .async_event = count_event, .foreign = &foreign};
	static struct engine_ops runner_ops;
	struct engine_config config = {.ops = &owner_ops, .nlanes = 1, .seed = 3};
	struct ibv_srq_attr attr = {.max_wr = 16, .max_sge = 4};
	struct script *s = script_tgt();

	must(engine_create(&config, &owner.engine));
	owner.peer = foreign_peer_create(owner.engine);
	must(pd_create(owner.engine, &owner.pd));
	must(cq_create(owner.engine, owner_cqe, NULL, &owner.cq));
	must(xrcd_open(owner.engine, true, DEV, INO, O_CREAT, &owner.xrcd));
	must(engine_srq_create(owner.pd, IBV_SRQT_XRC, owner.xrcd, owner.cq, &attr, NULL,
			       &owner.srq));
	must(mr_create(owner.pd, owner.mem, MEM, (uintptr_t)owner.mem, WORLD_ALL_ACCESS,
		       &owner.mr));
	runner_ops = *s->node->engine->ops;
	runner_ops.foreign = &foreign;
	s->node->engine->ops = &runner_ops;
	s->xrcd->shared = true;
	s->xrcd->dev = DEV;
	s->xrcd->ino = INO;
	return s;
}

static struct script *begin(void)
{
	return begin_with(32);
}

static void end(struct script *s)
{
	script_end(s);
	if (owner.peer)
		foreign_peer_destroy(owner.peer, 1);
	must(mr_destroy(owner.mr));
	must(engine_srq_destroy(owner.srq));
	must(xrcd_close(owner.xrcd));
	must(cq_destroy(owner.cq));
	must(pd_destroy(owner.pd));
	engine_destroy(owner.engine);
}

/* A request to the owner's SRQ and memory, with @n bytes of payload that say where they are. */
static struct wire_pkt to_owner(struct script *s, uint8_t code, uint32_t psn, uint32_t n)
{
	struct wire_pkt p = request(s, code, psn);

	for (uint32_t i = 0; i < n; i++)
		s->mem[i] = (uint8_t)(psn * 31 + i);
	p.srqn = owner.srq->srqn;
	p.va = (uintptr_t)owner.mem + 4096;
	p.rkey = owner.mr->key;
	p.payload_len = n;
	return p;
}

static void post(uint64_t wr_id, uint32_t length)
{
	must(world_srq_recv(owner.srq, wr_id, owner.mr, owner.mem, length));
}

static bool holds(const uint8_t *at, uint32_t psn, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (at[i] != (uint8_t)(psn * 31 + i))
			return false;
	return true;
}

/* Numbers */

Test(number, comes_from_the_claimed_block)
{
	struct script *s = begin();

	cr_assert_eq(owner.srq->srqn & ~(FOREIGN_BLOCK - 1), BLOCK);
	end(s);
}

/* Requests that are executed */

Test(execute, send_only)
{
	struct script *s = begin();
	struct wire_pkt p = to_owner(s, WIRE_XRC_SEND_ONLY_IMM, s->psn, 100);
	struct ibv_wc wc;

	p.imm_be = 0x11223344;
	post(5, 200);
	inject(s, &p);
	expect_ack(s, s->psn, 1);
	wc = expect_wc(owner.cq, 5, IBV_WC_SUCCESS);
	cr_assert_eq(wc.qp_num, s->qp->qpn);
	cr_assert_eq(wc.byte_len, 100);
	cr_assert_eq(wc.opcode, IBV_WC_RECV);
	cr_assert_eq(wc.wc_flags, IBV_WC_WITH_IMM);
	cr_assert_eq(wc.imm_data, 0x11223344);
	cr_assert(holds(owner.mem, s->psn, 100));
	expect_no_wc(s->rcq);
	end(s);
}

Test(execute, send_of_three_packets_and_a_limit_event)
{
	static const uint8_t codes[] = {WIRE_XRC_SEND_FIRST, WIRE_XRC_SEND_MIDDLE,
					WIRE_XRC_SEND_LAST};
	static const uint32_t lengths[] = {SCRIPT_MTU, SCRIPT_MTU, 10};
	struct ibv_srq_attr attr = {.srq_limit = 1};
	struct script *s = begin();

	post(5, 2000);
	must(engine_srq_modify(owner.srq, &attr, IBV_SRQ_LIMIT));
	for (uint32_t i = 0; i < 3; i++) {
		struct wire_pkt p = to_owner(s, codes[i], s->psn + i, lengths[i]);

		inject(s, &p);
		if (i < 2)
			expect_no_wc(owner.cq);
	}
	expect_ack(s, s->psn + 2, 1);
	cr_assert_eq(expect_wc(owner.cq, 5, IBV_WC_SUCCESS).byte_len, 2 * SCRIPT_MTU + 10);
	for (uint32_t i = 0; i < 3; i++)
		cr_assert(holds(owner.mem + i * SCRIPT_MTU, s->psn + i, lengths[i]));
	cr_assert_eq(owner.limits, 1);
	end(s);
}

/* One QP: an SRQ here, one there, and here again. */
Test(execute, messages_to_both_sides_in_turn)
{
	struct script *s = begin();

	for (uint32_t i = 0; i < 6; i++) {
		struct wire_pkt p = to_owner(s, WIRE_XRC_SEND_ONLY, s->psn + i, 20);

		post(i, 20);
		must(world_srq_recv(s->srq, i, s->mr, s->mem + 8192, 20));
		if (i & 1)
			p.srqn = s->srq->srqn;
		inject(s, &p);
		expect_ack(s, s->psn + i, i + 1);
		expect_wc(i & 1 ? s->rcq : owner.cq, i / 2, IBV_WC_SUCCESS);
		expect_no_wc(i & 1 ? owner.cq : s->rcq);
	}
	end(s);
}

/* What a packet lacks is 0, and not what the one before it had: the question leaves the process. */
Test(execute, nothing_that_the_packet_lacks)
{
	struct script *s = begin();
	struct wire_pkt p = to_owner(s, WIRE_XRC_CMP_SWAP, s->psn, 0);

	p.compare = 3;
	p.swap_add = 4;
	inject(s, &p);
	expect(s, WIRE_XRC_ATOMIC_ACK, s->psn);
	cr_assert_eq(owner.last.va, p.va);
	cr_assert_eq(owner.last.rkey, p.rkey);
	cr_assert_eq(owner.last.compare, 3u);
	cr_assert_eq(owner.last.swap_add, 4u);
	p = to_owner(s, WIRE_XRC_SEND_ONLY_IMM, s->psn + 1, 8);
	p.imm_be = 5;
	post(1, 8);
	inject(s, &p);
	expect_ack(s, s->psn + 1, 2);
	cr_assert_eq(owner.last.imm_be, 5u);
	p = to_owner(s, WIRE_XRC_SEND_ONLY, s->psn + 2, 8);
	post(2, 8);
	inject(s, &p);
	expect_ack(s, s->psn + 2, 3);
	cr_assert_eq(owner.asked, 3u);
	cr_assert_eq(owner.last.va | owner.last.compare | owner.last.swap_add, 0u);
	cr_assert_eq(owner.last.rkey | owner.last.length, 0u);
	cr_assert_eq(owner.last.imm_be | owner.last.inv_rkey, 0u);
	end(s);
}

Test(execute, write_and_write_with_immediate)
{
	struct script *s = begin();
	struct wire_pkt p = to_owner(s, WIRE_XRC_WRITE_FIRST, s->psn, SCRIPT_MTU);
	struct ibv_wc wc;

	p.dma_len = SCRIPT_MTU + 8;
	inject(s, &p);
	p = to_owner(s, WIRE_XRC_WRITE_LAST, s->psn + 1, 8);
	inject(s, &p);
	expect_ack(s, s->psn + 1, 1);
	expect_no_wc(owner.cq);
	cr_assert(holds(owner.mem + 4096, s->psn, SCRIPT_MTU));
	cr_assert(holds(owner.mem + 4096 + SCRIPT_MTU, s->psn + 1, 8));

	post(9, 0);
	p = to_owner(s, WIRE_XRC_WRITE_ONLY_IMM, s->psn + 2, 16);
	p.dma_len = 16;
	inject(s, &p);
	expect_ack(s, s->psn + 2, 2);
	wc = expect_wc(owner.cq, 9, IBV_WC_SUCCESS);
	cr_assert_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	cr_assert_eq(wc.byte_len, 16);
	end(s);
}

Test(execute, read_and_its_duplicate)
{
	struct script *s = begin();

	for (uint32_t i = 0; i < MEM; i++)
		owner.mem[i] = (uint8_t)(i * 7);
	for (int round = 0; round < 2; round++) {
		struct wire_pkt p = to_owner(s, WIRE_XRC_READ_REQUEST, s->psn, 0);
		const struct wire_pkt *r;

		p.dma_len = 2 * SCRIPT_MTU + 1;
		inject(s, &p);
		r = expect(s, WIRE_XRC_READ_RESP_FIRST, s->psn);
		cr_assert_arr_eq(r->payload, owner.mem + 4096, SCRIPT_MTU);
		r = expect(s, WIRE_XRC_READ_RESP_MIDDLE, s->psn + 1);
		cr_assert_arr_eq(r->payload, owner.mem + 4096 + SCRIPT_MTU, SCRIPT_MTU);
		r = expect(s, WIRE_XRC_READ_RESP_LAST, s->psn + 2);
		cr_assert_eq(r->payload_len, 1);
		cr_assert_eq(r->payload[0], owner.mem[4096 + 2 * SCRIPT_MTU]);
	}
	end(s);
}

Test(execute, atomics)
{
	struct script *s = begin();
	uint64_t *word = (uint64_t *)(owner.mem + 4096);
	struct wire_pkt p = to_owner(s, WIRE_XRC_FETCH_ADD, s->psn, 0);

	*word = 40;
	p.swap_add = 2;
	inject(s, &p);
	cr_assert_eq(expect(s, WIRE_XRC_ATOMIC_ACK, s->psn)->orig, 40);
	/* A duplicate is answered by the runner. */
	inject(s, &p);
	cr_assert_eq(expect(s, WIRE_XRC_ATOMIC_ACK, s->psn)->orig, 40);
	cr_assert_eq(*word, 42);
	p = to_owner(s, WIRE_XRC_CMP_SWAP, s->psn + 1, 0);
	p.compare = 42;
	p.swap_add = 77;
	inject(s, &p);
	cr_assert_eq(expect(s, WIRE_XRC_ATOMIC_ACK, s->psn + 1)->orig, 42);
	cr_assert_eq(*word, 77);
	cr_assert_eq(owner.asked, 2);
	end(s);
}

/* Requests that are refused */

Test(refuse, no_receive_is_rnr_until_there_is_one)
{
	struct script *s = begin();
	struct wire_pkt p = to_owner(s, WIRE_XRC_SEND_ONLY, s->psn, 10);

	for (int i = 0; i < 2; i++) {
		inject(s, &p);
		expect_nak(s, s->psn, WIRE_RNR(script_path.min_rnr_timer));
	}
	post(1, 10);
	inject(s, &p);
	expect_ack(s, s->psn, 1);
	expect_wc(owner.cq, 1, IBV_WC_SUCCESS);
	end(s);
}

Test(refuse, as_a_local_srq_would)
{
	static const struct {
		const char *what;
		uint8_t code;
		uint32_t length, dma_len;
		uint8_t syndrome;
		uint8_t status; /* of the posted receive; 0: it stays posted */
	} cases[] = {
		{"too long", WIRE_XRC_SEND_ONLY, 101, 0, WIRE_NAK_INVALID_REQUEST,
		 IBV_WC_LOC_LEN_ERR},
		{"wrong rkey", WIRE_XRC_WRITE_ONLY, 8, 8, WIRE_NAK_REMOTE_ACCESS, 0},
		{"wrong rkey", WIRE_XRC_READ_REQUEST, 0, 8, WIRE_NAK_REMOTE_ACCESS, 0},
		{"wrong rkey", WIRE_XRC_FETCH_ADD, 0, 0, WIRE_NAK_REMOTE_ACCESS, 0},
		{"no window", WIRE_XRC_SEND_ONLY_INV, 8, 0, WIRE_NAK_REMOTE_ACCESS,
		 IBV_WC_LOC_ACCESS_ERR},
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct script *s = begin();
		struct wire_pkt p = to_owner(s, cases[i].code, s->psn, cases[i].length);

		post(3, 100);
		p.rkey ^= 0x100;
		p.dma_len = cases[i].dma_len;
		inject(s, &p);
		expect_nak(s, s->psn, cases[i].syndrome);
		cr_assert_eq(s->qp->state, IBV_QPS_ERR, "case %u: %s", i, cases[i].what);
		if (cases[i].status)
			expect_wc(owner.cq, 3, cases[i].status);
		expect_no_wc(owner.cq);
		end(s);
	}
}

/* Of another domain, of no owner, and when the owner is gone. */
Test(refuse, unknown_targets)
{
	for (int i = 0; i < 4; i++) {
		struct script *s = begin();
		struct wire_pkt p = to_owner(s, WIRE_XRC_SEND_ONLY, s->psn, 10);

		post(3, 100);
		if (i == 0)
			s->xrcd->ino++;
		if (i == 1)
			p.srqn ^= 1;
		if (i == 2)
			p.srqn ^= FOREIGN_BLOCK;
		owner.gone = i == 3;
		inject(s, &p);
		expect_nak(s, s->psn, WIRE_NAK_INVALID_RD_REQUEST);
		expect_no_wc(owner.cq);
		end(s);
		owner.gone = false;
	}
}

Test(refuse, a_private_domain_asks_nobody)
{
	struct script *s = begin();
	struct wire_pkt p = to_owner(s, WIRE_XRC_SEND_ONLY, s->psn, 10);

	s->xrcd->shared = false;
	inject(s, &p);
	expect_nak(s, s->psn, WIRE_NAK_INVALID_RD_REQUEST);
	cr_assert_eq(owner.asked, 0);
	end(s);
}

Test(refuse, an_overrun_cq_breaks_the_qp)
{
	struct script *s = begin_with(1);
	uint32_t n = 0;

	for (; n < 16 && s->qp->state != IBV_QPS_ERR; n++) {
		struct wire_pkt p = to_owner(s, WIRE_XRC_SEND_ONLY, s->psn + n, 10);

		post(n, 10);
		inject(s, &p);
	}
	cr_assert_eq(s->qp->state, IBV_QPS_ERR);
	cr_assert_eq(owner.cq_errs, 1);
	cr_assert_eq(world_events(s->node, IBV_EVENT_QP_FATAL, &s->tag), 1);
	forget(s);
	end(s);
}

/* Silence */

Test(silence, executed_once_whether_or_not_the_question_arrived)
{
	static const enum silence kinds[] = {DEAF, DUMB};

	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct script *s = begin();
		uint64_t *word = (uint64_t *)(owner.mem + 4096);
		struct wire_pkt p = to_owner(s, WIRE_XRC_SEND_ONLY, s->psn, 10);

		post(1, 10);
		post(2, 10);
		owner.silence = kinds[i];
		inject(s, &p);
		inject(s, &p);
		/* What is behind it is a gap without a NAK. */
		p = to_owner(s, WIRE_XRC_SEND_ONLY, s->psn + 1, 10);
		inject(s, &p);
		expect_nothing(s);
		cr_assert_eq(drops(s, DROP_owner_silent), 2);
		owner.silence = SPEAKS;
		p = to_owner(s, WIRE_XRC_SEND_ONLY, s->psn, 10);
		inject(s, &p);
		expect_ack(s, s->psn, 1);
		expect_wc(owner.cq, 1, IBV_WC_SUCCESS);
		expect_no_wc(owner.cq);

		p = to_owner(s, WIRE_XRC_FETCH_ADD, s->psn + 1, 0);
		p.swap_add = 5;
		*word = 10;
		owner.silence = kinds[i];
		inject(s, &p);
		owner.silence = SPEAKS;
		inject(s, &p);
		cr_assert_eq(expect(s, WIRE_XRC_ATOMIC_ACK, s->psn + 1)->orig, 10);
		cr_assert_eq(*word, 15);
		end(s);
	}
}

/*
 * A message that is longer than the time between two numbers: each packet has its own. And each is
 * acknowledged, once, as soon as the next has to wait.
 */
Test(silence, in_the_middle_of_a_message)
{
	struct script *s = begin();

	post(1, 2000);
	for (uint32_t i = 0; i < 4; i++) {
		uint8_t code = i == 0	? WIRE_XRC_SEND_FIRST
			       : i == 3 ? WIRE_XRC_SEND_LAST
					: WIRE_XRC_SEND_MIDDLE;
		struct wire_pkt p = to_owner(s, code, s->psn + i, SCRIPT_MTU);

		owner.silence = DUMB;
		inject(s, &p);
		if (i)
			expect_ack(s, s->psn + i - 1, 0);
		inject(s, &p);
		expect_nothing(s);
		owner.silence = SPEAKS;
		inject(s, &p);
	}
	expect_ack(s, s->psn + 3, 1);
	cr_assert_eq(expect_wc(owner.cq, 1, IBV_WC_SUCCESS).byte_len, 4 * SCRIPT_MTU);
	for (uint32_t i = 0; i < 4; i++)
		cr_assert(holds(owner.mem + i * SCRIPT_MTU, s->psn + i, SCRIPT_MTU));
	end(s);
}

Test(silence, read_is_forgotten_and_repeated)
{
	struct script *s = begin();
	struct wire_pkt p = to_owner(s, WIRE_XRC_READ_REQUEST, s->psn, 0);

	p.dma_len = 8;
	owner.silence = DEAF;
	inject(s, &p);
	expect_nothing(s);
	owner.silence = SPEAKS;
	inject(s, &p);
	expect(s, WIRE_XRC_READ_RESP_ONLY, s->psn);
	/* The same for a duplicate. */
	owner.silence = DEAF;
	inject(s, &p);
	expect_nothing(s);
	owner.silence = SPEAKS;
	inject(s, &p);
	expect(s, WIRE_XRC_READ_RESP_ONLY, s->psn);
	cr_assert_eq(drops(s, DROP_owner_silent), 2);
	end(s);
}

/* The check was answered, and the data of the second response is not. */
Test(silence, read_stops_at_a_response)
{
	struct script *s = begin();
	struct wire_pkt p = to_owner(s, WIRE_XRC_READ_REQUEST, s->psn, 0);

	p.dma_len = 3 * SCRIPT_MTU;
	owner.deaf_at = 3;
	inject(s, &p);
	expect(s, WIRE_XRC_READ_RESP_FIRST, s->psn);
	expect_nothing(s);
	cr_assert_eq(owner.asked, 3);
	cr_assert_eq(drops(s, DROP_owner_silent), 1);
	p.psn = (s->psn + 1) & PSN_MASK;
	p.va += SCRIPT_MTU;
	p.dma_len -= SCRIPT_MTU;
	inject(s, &p);
	expect(s, WIRE_XRC_READ_RESP_FIRST, s->psn + 1);
	expect(s, WIRE_XRC_READ_RESP_LAST, s->psn + 2);
	end(s);
}

/* "No receive" executed nothing, so the packet is tried anew, whether the runner heard it or not. */
Test(silence, unheard_rnr_is_no_verdict)
{
	struct script *s = begin();
	struct wire_pkt p = to_owner(s, WIRE_XRC_SEND_ONLY, s->psn, 10);

	owner.silence = DUMB;
	inject(s, &p);
	expect_nothing(s);
	owner.silence = SPEAKS;
	post(1, 10);
	inject(s, &p);
	expect_ack(s, s->psn, 1);
	expect_wc(owner.cq, 1, IBV_WC_SUCCESS);
	end(s);
}

/* Messages that end in the middle */

static struct script *half_a_message(void)
{
	struct script *s = begin();
	struct wire_pkt p = to_owner(s, WIRE_XRC_SEND_FIRST, s->psn, SCRIPT_MTU);

	post(1, 2000);
	inject(s, &p);
	expect_no_wc(owner.cq);
	return s;
}

Test(abandon, qp_to_reset_error_and_gone)
{
	static const int ways[] = {IBV_QPS_RESET, IBV_QPS_ERR, -1};

	for (unsigned int i = 0; i < ARRAY_SIZE(ways); i++) {
		struct script *s = half_a_message();
		uint32_t qpn = s->qp->qpn;

		if (ways[i] >= 0) {
			must(world_to_state(s->qp, (enum ibv_qp_state)ways[i]));
		} else {
			must(qp_close(s->handle, s->w->now));
			s->handle = NULL;
		}
		cr_assert_eq(expect_wc(owner.cq, 1, IBV_WC_WR_FLUSH_ERR).qp_num, qpn);
		cr_assert_eq(owner.told_srqn, owner.srq->srqn);
		foreign_peer_destroy(owner.peer, 1);
		owner.peer = NULL;
		expect_no_wc(owner.cq);
		end(s);
	}
}

/* The runner refuses the rest of a message: the receive fails as a local one. */
Test(abandon, a_wrong_sequence)
{
	struct script *s = half_a_message();
	struct wire_pkt p = to_owner(s, WIRE_XRC_SEND_ONLY, s->psn + 1, 10);

	inject(s, &p);
	expect_nak(s, s->psn + 1, WIRE_NAK_INVALID_REQUEST);
	expect_wc(owner.cq, 1, IBV_WC_REM_INV_REQ_ERR);
	expect_no_wc(owner.cq);
	end(s);
}

Test(abandon, the_runner_dies)
{
	struct script *s = half_a_message();

	foreign_peer_destroy(owner.peer, 1);
	owner.peer = NULL;
	expect_wc(owner.cq, 1, IBV_WC_WR_FLUSH_ERR);
	expect_no_wc(owner.cq);
	owner.gone = true;
	end(s);
}

/* The word of it was lost, and the number is used again: the next message ends the old one. */
Test(abandon, the_next_message_says_it_too)
{
	struct script *s = half_a_message();
	struct wire_pkt p;

	owner.gone = true;
	must(world_to_state(s->qp, IBV_QPS_RESET));
	expect_no_wc(owner.cq);
	owner.gone = false;
	script_connect(s, &script_path);
	post(2, 2000);
	p = to_owner(s, WIRE_XRC_SEND_ONLY, s->psn, 10);
	inject(s, &p);
	expect_ack(s, s->psn, 1);
	expect_wc(owner.cq, 1, IBV_WC_WR_FLUSH_ERR);
	expect_wc(owner.cq, 2, IBV_WC_SUCCESS);
	end(s);
}

/* Between messages nobody has a receive of the QP; a packet without a verdict may have begun one. */
Test(abandon, names_the_message_in_progress)
{
	static const enum silence kinds[] = {SPEAKS, DEAF, DUMB};

	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct script *s = begin();
		struct wire_pkt p = to_owner(s, WIRE_XRC_SEND_ONLY, s->psn, 10);

		post(1, 2000);
		post(2, 2000);
		owner.silence = kinds[i];
		inject(s, &p);
		if (kinds[i] == SPEAKS)
			expect_ack(s, s->psn, 1);
		must(world_to_state(s->qp, IBV_QPS_ERR));
		cr_assert_eq(owner.told, i + 1);
		cr_assert_eq(owner.told_srqn, kinds[i] == SPEAKS ? 0 : owner.srq->srqn);
		end(s);
	}
}

/* A QP that never had to ask tells nobody anything. */
Test(abandon, only_who_asked_tells)
{
	struct script *s = begin();

	must(world_to_state(s->qp, IBV_QPS_ERR));
	cr_assert_eq(owner.told, 0);
	end(s);
}

/* What no runner of ours sends */

Test(serve, nonsense)
{
	static const struct foreign_request cases[] = {
		{.what = FOREIGN_EXECUTE, .opcode = WIRE_RC_SEND_ONLY},
		{.what = FOREIGN_EXECUTE, .opcode = WIRE_XRC_READ_REQUEST},
		{.what = FOREIGN_EXECUTE, .opcode = WIRE_XRC_ACK},
		{.what = FOREIGN_EXECUTE, .opcode = 0xff},
		{.what = FOREIGN_EXECUTE, .opcode = WIRE_XRC_SEND_MIDDLE, .payload_len = 256},
		{.what = FOREIGN_EXECUTE, .opcode = WIRE_XRC_SEND_ONLY, .payload_len = 300},
		{.what = FOREIGN_FETCH, .length = FOREIGN_MAX_DATA + 1},
		{.what = FOREIGN_CHECK, .length = UINT32_MAX},
	};
	struct script *s = begin();
	uint8_t payload[512] = {}, data[FOREIGN_MAX_DATA];

	post(1, 2000);
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct foreign_request req = cases[i];
		struct foreign_reply reply;

		req.seq = 100 + i;
		req.dev = DEV;
		req.ino = INO;
		req.srqn = owner.srq->srqn;
		req.rkey = owner.mr->key;
		req.va = (uintptr_t)owner.mem;
		req.mtu = 256;
		cr_assert(foreign_serve(owner.peer, &req, payload, &reply, data, 1));
		cr_assert_gt(reply.verdict, RESP_SILENT, "case %u", i);
		cr_assert_eq(reply.data_len, 0);
	}
	expect_no_wc(owner.cq);
	end(s);
}
