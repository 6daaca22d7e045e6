/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decoding: an ICRC as the wire layer computes it, and what is right of a packet that is cut.
 *
 * How each sort of packet is shown is in tests/golden; here is what a table of outputs cannot say.
 */
#include "pcap-dissect/dis.h"

#include "base/bytes.h"
#include "wire/icrc.h"

#include <criterion/criterion.h>
#include <pcap/pcap.h>

static const uint8_t v4_a[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
static const uint8_t v4_b[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};
static const uint8_t v6_a[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};
static const uint8_t v6_b[16] = {0xfe, 0x80, [15] = 2};

TestSuite(dis_decode, .init = dis_init);

/* A whole packet from the wire layer's parts, its ICRC right; its length. */
static size_t build(uint8_t *b, bool v6, const struct wire_pkt *pkt)
{
	struct wire_ip ip = {
		.id = 0x1234, .sport = 50000, .tos = 0x68, .ttl = 3, .flow_label = 0x54321};
	size_t n, len;

	memcpy(ip.src, v6 ? v6_a : v4_a, 16);
	memcpy(ip.dst, v6 ? v6_b : v4_b, 16);
	len = pkt->op->hdr_len + pkt->payload_len + wire_pad(pkt->payload_len);
	n = wire_ip_udp(b, &ip, len + WIRE_ICRC_LEN);
	wire_encode_hdr(b + n, pkt);
	memset(b + n + pkt->op->hdr_len, 0x5a, len - pkt->op->hdr_len);
	put_be32(b + n + len, __builtin_bswap32(wire_icrc(&ip, b + n, len)));
	return n + len + WIRE_ICRC_LEN;
}

static const struct wire_pkt *sample(uint8_t code, uint32_t payload_len)
{
	static struct wire_pkt pkt;

	pkt = (struct wire_pkt){.op = wire_opcode(code),
				.pkey = 0xffff,
				.dest_qpn = 0x123456,
				.psn = 0xabcdef,
				.srqn = 0x020304,
				.va = 0x1122334455667788,
				.rkey = 0x99aabbcc,
				.dma_len = 77,
				.swap_add = 5,
				.compare = 6,
				.syndrome = 0x1f,
				.msn = 9,
				.orig = 8,
				.imm_be = htobe32(7),
				.inv_rkey = 3,
				.qkey = 2,
				.src_qpn = 1,
				.payload_len = payload_len};
	return &pkt;
}

static void decode(struct dis_packet *p, const uint8_t *b, uint32_t caplen, uint32_t len)
{
	*p = (struct dis_packet){.frame = b, .caplen = caplen, .len = len, .link = DLT_RAW};
	dis_decode(p);
}

Test(dis_decode, decode__icrc_of_both_versions)
{
	static const uint32_t lengths[] = {0, 1, 3, 4, 64, 1024, 4096};
	uint8_t b[5000];
	struct dis_packet p;

	for (unsigned int v6 = 0; v6 < 2; v6++) {
		for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
			size_t n = build(b, v6, sample(WIRE_XRC_WRITE_ONLY_IMM, lengths[i]));

			decode(&p, b, n, n);
			cr_assert_eq(p.icrc, DIS_ICRC_GOOD);
			cr_assert_eq(p.notes, 0);
			cr_assert_eq(p.pkt.payload_len, lengths[i]);
			cr_assert_eq(p.ip_version, v6 ? 6 : 4);
		}
	}
}

/* Every bit is covered but those that a router may change. */
Test(dis_decode, decode__icrc_sees_every_bit)
{
	uint8_t b[256];
	struct dis_packet p;
	size_t n = build(b, false, sample(WIRE_XRC_SEND_ONLY, 8));

	for (size_t bit = 28 * 8; bit < n * 8; bit++) {
		if (bit / 8 == 28 + 4)
			continue;
		b[bit / 8] ^= 0x80 >> bit % 8;
		decode(&p, b, n, n);
		cr_assert_eq(p.icrc, DIS_ICRC_BAD, "bit %zu", bit);
		b[bit / 8] ^= 0x80 >> bit % 8;
	}
	b[28 + 4] = 0xff;
	b[1] = 0xff;
	decode(&p, b, n, n);
	cr_assert_eq(p.icrc, DIS_ICRC_GOOD);
}

Test(dis_decode, decode__a_cut_packet_has_what_it_has)
{
	uint8_t b[512];
	struct dis_packet whole, p;
	size_t n = build(b, false, sample(WIRE_XRC_CMP_SWAP, 0));

	decode(&whole, b, n, n);
	for (size_t cut = 0; cut < n; cut++) {
		decode(&p, b, cut, n);
		cr_assert(p.notes & DIS_NOTE(SNAPPED), "%zu", cut);
		cr_assert_not(p.notes & DIS_NOTE(TRUNCATED), "%zu", cut);
		cr_assert_eq(p.icrc, DIS_ICRC_UNVERIFIED);
		cr_assert_eq(p.layer == DIS_LAYER_ROCE, cut >= 28);
		if (p.layer < DIS_LAYER_ROCE)
			continue;
		cr_assert_eq(p.have, cut - 28 < whole.bth_len ? cut - 28 : whole.bth_len);
		cr_assert_eq(dis_has_hdr(&p, WIRE_H_XRCETH), cut >= 28 + 16);
		cr_assert_eq(dis_has_hdr(&p, WIRE_H_ATOMICETH), cut >= 28 + 44);
		cr_assert_not(dis_has_hdr(&p, WIRE_H_RETH));
		if (dis_has_hdr(&p, WIRE_H_XRCETH))
			cr_assert_eq(p.pkt.srqn, whole.pkt.srqn);
		if (dis_has_hdr(&p, WIRE_H_ATOMICETH))
			cr_assert_eq(p.pkt.compare, whole.pkt.compare);
	}
}

Test(dis_decode, decode__a_frame_that_ends_early_is_truncated)
{
	uint8_t b[256];
	struct dis_packet p;
	size_t n = build(b, true, sample(WIRE_XRC_SEND_ONLY, 16));

	for (size_t cut = 40; cut < n; cut++) {
		decode(&p, b, cut, cut);
		cr_assert(p.notes & DIS_NOTE(TRUNCATED), "%zu", cut);
		cr_assert_not(p.notes & DIS_NOTE(SNAPPED), "%zu", cut);
	}
}

Test(dis_decode, decode__strict_and_lenient_agree)
{
	uint8_t b[512];
	struct dis_packet strict, lenient;

	for (unsigned int code = 0; code < 256; code++) {
		const struct wire_opcode *op = wire_opcode(code);
		size_t n;

		if (!op)
			continue;
		n = build(b, false, sample(code, op->payload ? 6 : 0));
		decode(&strict, b, n, n);
		cr_assert_eq(strict.notes, 0, "%s", op->name);
		/* A version that the strict decoder refuses. */
		b[29] |= 1;
		decode(&lenient, b, n, n);
		cr_assert_eq(lenient.notes, DIS_NOTE(TVER), "%s", op->name);
		cr_assert_eq(lenient.pkt.payload_len, strict.pkt.payload_len, "%s", op->name);
		cr_assert_eq(lenient.pkt.payload, strict.pkt.payload, "%s", op->name);
		cr_assert_eq(lenient.pkt.pad, strict.pkt.pad, "%s", op->name);
		cr_assert_eq(lenient.pkt.psn, strict.pkt.psn);
		cr_assert_eq(lenient.pkt.dest_qpn, strict.pkt.dest_qpn);
		if (op->headers & WIRE_H_RETH)
			cr_assert_eq(lenient.pkt.va, strict.pkt.va);
		if (op->headers & WIRE_H_IETH)
			cr_assert_eq(lenient.pkt.inv_rkey, strict.pkt.inv_rkey);
	}
}

Test(dis_decode, decode__nothing_is_left_from_the_packet_before)
{
	uint8_t b[512];
	struct dis_packet p;
	size_t n = build(b, true, sample(WIRE_XRC_SEND_ONLY, 16));

	decode(&p, b, n, n);
	p.caplen = p.len = 0;
	dis_decode(&p);
	cr_assert_eq(p.layer, DIS_LAYER_LINK);
	cr_assert_null(p.pkt.op);
	cr_assert_null(p.ip);
	cr_assert_null(p.bth);
	cr_assert_eq(p.have, 0);
	cr_assert_eq(p.icrc, DIS_ICRC_UNVERIFIED);
}
