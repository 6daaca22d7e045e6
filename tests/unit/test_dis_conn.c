/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Conversations: who belongs to whom, where a request stands, and that memory is bounded. */
#include "pcap-dissect/dis_conn.h"

#include <criterion/criterion.h>

static struct dis_conns c;
static struct dis_event ev;
static uint64_t number;
static int64_t now; /* grows by 1 us with each packet */

static void setup(void)
{
	cr_assert_eq(dis_conns_init(&c), 0);
	number = 0;
	now = 1000 * DIS_SAME_QP_NS;
}

static void teardown(void)
{
	dis_conns_exit(&c);
}

TestSuite(dis_conn, .init = setup, .fini = teardown);

/* A packet from host @from to QP @qpn of host @to. */
static const struct dis_event *see(uint8_t code, uint8_t from, uint8_t to, uint32_t qpn,
				   uint32_t psn, uint32_t len)
{
	static struct dis_packet p;

	p = (struct dis_packet){
		.number = ++number,
		.ts = now += 1000,
		.layer = DIS_LAYER_ROCE,
		.ip_version = 6,
		.src = {[15] = from},
		.dst = {[15] = to},
		.icrc = DIS_ICRC_GOOD,
		.have = WIRE_MAX_HDR_LEN,
		.pkt = {.op = wire_opcode(code),
			.dest_qpn = qpn,
			.psn = psn,
			.dma_len = len,
			.payload_len = wire_opcode(code)->payload ? len : 0,
			.syndrome = WIRE_ACK_NO_CREDITS},
	};
	dis_conns_packet(&c, &p, &ev);
	return &ev;
}

static struct dis_half *half(uint8_t from, uint8_t to, uint32_t qpn)
{
	return dis_conns_find(&c, (uint8_t[16]){[15] = from}, (uint8_t[16]){[15] = to}, qpn);
}

Test(dis_conn, request__kinds)
{
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 100, 4)->kind, DIS_EV_START);
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 101, 4)->kind, DIS_EV_NEW);
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 101, 4)->kind, DIS_EV_AGAIN);
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 104, 4)->kind, DIS_EV_NEW);
	cr_assert_eq(ev.gap, 2);
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 103, 4)->kind, DIS_EV_LATE);
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 99, 4)->kind, DIS_EV_OLD);
	/* Another connection. */
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 0x800000, 4)->kind, DIS_EV_START);
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 0x800001, 4)->kind, DIS_EV_NEW);
}

Test(dis_conn, request__read_spans_its_responses)
{
	see(WIRE_RC_SEND_FIRST, 1, 2, 22, 100, 1024);
	see(WIRE_RC_SEND_LAST, 1, 2, 22, 101, 4);
	see(WIRE_RC_READ_REQUEST, 1, 2, 22, 102, 5000);
	cr_assert_eq(ev.req->span, 5);
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 104, 4)->kind, DIS_EV_CLASH);
	/* Its rest is asked for once more. */
	cr_assert_eq(see(WIRE_RC_READ_REQUEST, 1, 2, 22, 105, 1928)->kind, DIS_EV_AGAIN);
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 107, 4)->kind, DIS_EV_NEW);
	cr_assert_eq(ev.gap, 0);
}

Test(dis_conn, request__read_without_a_known_mtu)
{
	see(WIRE_RC_READ_REQUEST, 1, 2, 22, 102, 5000);
	cr_assert_eq(ev.req->span, 0);
	cr_assert_eq(see(WIRE_RC_READ_REQUEST, 1, 2, 22, 107, 5000)->kind, DIS_EV_NEW);
	cr_assert_eq(ev.gap, 0);
	cr_assert(half(1, 2, 22)->log->e[0].flags & DIS_REQ_GUESSED);
	/* The response tells the MTU, and that it was right. */
	see(WIRE_RC_READ_RESP_FIRST, 2, 1, 11, 102, 1024);
	cr_assert_eq(half(1, 2, 22)->pmtu, 1024);
	cr_assert_eq(half(1, 2, 22)->log->e[0].flags & DIS_REQ_GUESSED, 0);
	cr_assert_eq(half(1, 2, 22)->log->e[1].span, 5);
}

Test(dis_conn, pair__one_candidate)
{
	see(WIRE_XRC_SEND_ONLY, 1, 2, 22, 100, 4);
	see(WIRE_XRC_ACK, 2, 1, 11, 100, 0);
	cr_assert_eq(half(2, 1, 11)->peer, half(1, 2, 22));
	cr_assert_eq(half(1, 2, 22)->pairing, DIS_PAIRED_FOUND);
	cr_assert_not(dis_conns_sure(half(1, 2, 22)));
	for (uint32_t i = 1; i < DIS_CONN_SURE; i++) {
		see(WIRE_XRC_SEND_ONLY, 1, 2, 22, 100 + i, 4);
		see(WIRE_XRC_ACK, 2, 1, 11, 100 + i, 0);
	}
	cr_assert(dis_conns_sure(half(1, 2, 22)));
}

/* Two with the same PSNs, in step: nobody can tell, and nobody does. */
Test(dis_conn, pair__nothing_is_guessed)
{
	for (uint32_t i = 0; i < 50; i++) {
		see(WIRE_RC_SEND_ONLY, 1, 2, 22, 100 + i, 4);
		see(WIRE_RC_SEND_ONLY, 1, 2, 23, 100 + i, 4);
		see(WIRE_RC_ACK, 2, 1, 11, 100 + i, 0);
		see(WIRE_RC_ACK, 2, 1, 12, 100 + i, 0);
	}
	cr_assert_null(half(2, 1, 11)->peer);
	cr_assert_null(half(2, 1, 12)->peer);
}

Test(dis_conn, pair__among_several_needs_two)
{
	see(WIRE_RC_SEND_ONLY, 1, 2, 22, 100, 4);
	see(WIRE_RC_SEND_ONLY, 1, 2, 22, 101, 4);
	see(WIRE_RC_SEND_ONLY, 1, 2, 23, 500, 4);
	see(WIRE_RC_ACK, 2, 1, 11, 100, 0);
	cr_assert_null(half(2, 1, 11)->peer);
	see(WIRE_RC_ACK, 2, 1, 11, 101, 0);
	cr_assert_eq(half(2, 1, 11)->peer, half(1, 2, 22));
}

Test(dis_conn, pair__kind_must_fit)
{
	see(WIRE_RC_SEND_ONLY, 1, 2, 22, 100, 4);
	see(WIRE_RC_ATOMIC_ACK, 2, 1, 11, 100, 0);
	cr_assert_null(half(2, 1, 11)->peer);
}

Test(dis_conn, pair__given_up_when_an_answer_is_far_off)
{
	see(WIRE_RC_SEND_ONLY, 1, 2, 22, 100, 4);
	see(WIRE_RC_ACK, 2, 1, 11, 100, 0);
	cr_assert_not_null(half(2, 1, 11)->peer);
	see(WIRE_RC_ACK, 2, 1, 11, 0x100000, 0);
	cr_assert_null(half(2, 1, 11)->peer);
	cr_assert_null(half(1, 2, 22)->peer);
}

Test(dis_conn, pair__cm)
{
	dis_conns_pair(&c, (uint8_t[16]){[15] = 1}, 11, (uint8_t[16]){[15] = 2}, 22, 1024);
	cr_assert_eq(half(1, 2, 22)->peer, half(2, 1, 11));
	cr_assert(dis_conns_sure(half(1, 2, 22)));
	see(WIRE_RC_READ_REQUEST, 1, 2, 22, 102, 5000);
	cr_assert_eq(ev.req->span, 5);
}

Test(dis_conn, pair__loopback_of_one_qp)
{
	see(WIRE_RC_SEND_ONLY, 1, 1, 11, 100, 4);
	see(WIRE_RC_ACK, 1, 1, 11, 100, 0);
	cr_assert_eq(half(1, 1, 11)->peer, half(1, 1, 11));
}

static uint32_t gone;

static void count_evicted(struct dis_conns *conns, struct dis_half *h)
{
	gone++;
}

/* A connection: ten SENDs of 4 bytes, PSN 100 to 109, all answered but the last @open. */
static void ten(uint32_t open)
{
	for (uint32_t i = 0; i < 10; i++) {
		see(WIRE_RC_SEND_ONLY, 1, 2, 22, 100 + i, 4);
		if (i < 10 - open)
			see(WIRE_RC_ACK, 2, 1, 11, 100 + i, 0);
	}
	cr_assert(dis_conns_sure(half(1, 2, 22)));
}

/* After a silence a connection goes on by its next PSN, or by what was not answered. */
Test(dis_conn, renew__goes_on_after_silence)
{
	ten(2);
	now += 5 * DIS_SAME_QP_NS;
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 108, 4)->kind, DIS_EV_AGAIN);
	now += 5 * DIS_SAME_QP_NS;
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 110, 4)->kind, DIS_EV_NEW);
	now += 5 * DIS_SAME_QP_NS;
	cr_assert_not_null(see(WIRE_RC_ACK, 2, 1, 11, 110, 0)->req);
	now += 5 * DIS_SAME_QP_NS;
	/* The ACK was lost behind the capture. */
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 110, 4)->kind, DIS_EV_AGAIN);
	cr_assert(dis_conns_sure(half(1, 2, 22)));
}

Test(dis_conn, renew__after_silence)
{
	static const struct {
		uint32_t psn, len;
	} begins[] = {
		{100, 4}, /* answered long ago */
		{50, 4},  /* from before the log */
		{113, 4}, /* behind a gap */
		{109, 8}, /* not what was there */
	};

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		ten(0);
		now += i & 1 ? 5 * DIS_SAME_QP_NS : -5 * DIS_SAME_QP_NS;
		cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, begins[i].psn, begins[i].len)->kind,
			     DIS_EV_START, "%u", begins[i].psn);
		cr_assert_null(half(2, 1, 11)->peer);
		cr_assert_eq(half(1, 2, 22)->log->n, 1);
		now += 5 * DIS_SAME_QP_NS;
	}
}

/* Without a silence a resend is a resend, and a gap a gap. */
Test(dis_conn, renew__not_without_silence)
{
	ten(0);
	now += DIS_SAME_QP_NS / 2;
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 100, 4)->kind, DIS_EV_AGAIN);
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 113, 4)->kind, DIS_EV_NEW);
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 50, 4)->kind, DIS_EV_OLD);
	cr_assert_not_null(half(2, 1, 11)->peer);
}

/* The answers of others do not break a silence, those of the connection do. */
Test(dis_conn, renew__silence_is_of_both_directions)
{
	ten(0);
	for (uint32_t i = 0; i < 4; i++) {
		now += DIS_SAME_QP_NS / 2;
		see(WIRE_RC_ACK, 2, 1, 11, 109, 0);
	}
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 113, 4)->kind, DIS_EV_NEW);
	for (uint32_t i = 0; i < 4; i++) {
		now += DIS_SAME_QP_NS / 2;
		see(WIRE_RC_ACK, 2, 1, 12, 109, 0);
	}
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 117, 4)->kind, DIS_EV_START);
}

Test(dis_conn, renew__another_request_was_answered)
{
	ten(0);
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 104, 8)->kind, DIS_EV_START);
	cr_assert_null(half(2, 1, 11)->peer);
	/* What was not answered may be the mistake of this one. */
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 104, 12)->kind, DIS_EV_AGAIN);
	/* UC sends nothing again. */
	cr_assert_eq(see(WIRE_UC_SEND_ONLY, 1, 2, 23, 104, 8)->kind, DIS_EV_START);
	cr_assert_eq(see(WIRE_UC_SEND_ONLY, 1, 2, 23, 105, 8)->kind, DIS_EV_NEW);
	cr_assert_eq(see(WIRE_UC_SEND_ONLY, 1, 2, 23, 104, 12)->kind, DIS_EV_START);
}

Test(dis_conn, renew__answer_after_silence)
{
	ten(2);
	now += 5 * DIS_SAME_QP_NS;
	cr_assert_null(see(WIRE_RC_ACK, 2, 1, 11, 104, 0)->peer);
	cr_assert_null(half(1, 2, 22)->peer);
	cr_assert_eq(half(1, 2, 22)->log->n, 0);
}

Test(dis_conn, renew__path_mtu)
{
	see(WIRE_RC_SEND_FIRST, 1, 2, 22, 100, 1024);
	cr_assert_eq(half(1, 2, 22)->pmtu, 1024);
	see(WIRE_RC_SEND_FIRST, 1, 2, 22, 0x800000, 256);
	cr_assert_eq(half(1, 2, 22)->pmtu, 256);
}

/* Both by its PSN and by time, the CM's pair is no longer that pair. */
Test(dis_conn, renew__cm)
{
	const uint8_t a[16] = {[15] = 1}, b[16] = {[15] = 2};

	dis_conns_pair(&c, a, 11, b, 22, 1024);
	ten(0);
	/* Connected once more: what comes under the same PSNs is new. */
	dis_conns_pair(&c, a, 11, b, 22, 1024);
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 109, 4)->kind, DIS_EV_START);
	dis_conns_pair(&c, a, 11, b, 22, 1024);
	ten(0);
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 104, 4)->kind, DIS_EV_AGAIN);
	dis_conns_end(&c, a, 11, b, 22);
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 110, 4)->kind, DIS_EV_NEW);
	cr_assert_eq(see(WIRE_RC_SEND_ONLY, 1, 2, 22, 104, 4)->kind, DIS_EV_START);
	cr_assert_null(half(2, 1, 11)->peer);
}

static struct dis_half *renewed;

static void note_renewed(struct dis_conns *conns, struct dis_half *h)
{
	renewed = h->peer;
}

/* Who listens is told while both directions are still known. */
Test(dis_conn, renew__is_told)
{
	c.renew = note_renewed;
	ten(0);
	see(WIRE_RC_SEND_ONLY, 1, 2, 22, 0x800000, 4);
	cr_assert_eq(renewed, half(2, 1, 11));
}

/* One far answer may be a mistake; two are another connection's. */
Test(dis_conn, answer__far_from_a_sure_pair)
{
	ten(0);
	see(WIRE_RC_ACK, 2, 1, 11, 0x400000, 0);
	cr_assert_not_null(half(2, 1, 11)->peer);
	see(WIRE_RC_ACK, 2, 1, 11, 109, 0);
	see(WIRE_RC_ACK, 2, 1, 11, 0x400000, 0);
	cr_assert_not_null(half(2, 1, 11)->peer);
	see(WIRE_RC_ACK, 2, 1, 11, 0x400001, 0);
	cr_assert_null(half(2, 1, 11)->peer);
}

Test(dis_conn, other__another_half_has_asked)
{
	ten(0);
	see(WIRE_RC_ACK, 2, 1, 11, 109, 0);
	cr_assert_not(dis_conns_other(&ev));
	see(WIRE_RC_READ_REQUEST, 1, 2, 23, 108, 4);
	see(WIRE_RC_ACK, 2, 1, 11, 108, 0);
	cr_assert(dis_conns_other(&ev));
	/* A response to a READ is none to a SEND: the other one has it. */
	see(WIRE_RC_READ_RESP_ONLY, 2, 1, 11, 108, 4);
	cr_assert_null(ev.req);
	cr_assert_null(half(2, 1, 11)->peer);
}

Test(dis_conn, packet__bounded)
{
	gone = 0;
	c.evict = count_evicted;
	for (uint32_t i = 0; i < 3 * DIS_CONN_HALVES; i++) {
		see(WIRE_RC_SEND_ONLY, 1, 2, 100 + i, i, 4);
		/* This one is used all the time, and stays. */
		see(WIRE_RC_SEND_ONLY, 1, 2, 22, i, 4);
	}
	cr_assert_eq(c.n, DIS_CONN_HALVES);
	cr_assert_eq(gone, 2 * DIS_CONN_HALVES + 1);
	cr_assert_eq(c.evicted, gone);
	cr_assert_eq(half(1, 2, 22)->order, 1);
	cr_assert_null(half(1, 2, 100));
}

Test(dis_conn, packet__damaged_is_not_followed)
{
	struct dis_packet p = {.layer = DIS_LAYER_ROCE,
			       .have = WIRE_MAX_HDR_LEN,
			       .pkt = {.op = wire_opcode(WIRE_RC_SEND_ONLY)}};

	p.icrc = DIS_ICRC_BAD;
	dis_conns_packet(&c, &p, &ev);
	cr_assert_null(ev.half);
	p.icrc = DIS_ICRC_UNVERIFIED;
	p.have = 4;
	dis_conns_packet(&c, &p, &ev);
	cr_assert_null(ev.half);
	p.have = WIRE_MAX_HDR_LEN;
	dis_conns_packet(&c, &p, &ev);
	cr_assert_eq(ev.kind, DIS_EV_START);
}
