/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Headers to values and back, for every opcode and every field.
 *
 * Packets that are decoded lie in heap blocks of exactly their length, so that a sanitizer sees a
 * read beyond the end.
 */
#include "wire/hdr.h"
#include "base/bytes.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/* The bytes of an XRC RDMA WRITE Only with Immediate, written down from the specification's
 * figures. */
static const uint8_t xrc_write_imm[] = {
	0xab, 0xd0, 0x80, 0x01,				/* opcode; SE, Mig, pad 1; P_Key */
	0x80, 0x12, 0x34, 0x56,				/* FECN; DestQP */
	0x80, 0xfe, 0xdc, 0xba,				/* AckReq; PSN */
	0x00, 0x0a, 0xbc, 0xde,				/* XRCETH */
	0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, /* RETH: VA */
	0x11, 0x22, 0x33, 0x44, 0x00, 0x00, 0x00, 0x03, /* R_Key, length */
	0xca, 0xfe, 0xba, 0xbe,				/* ImmDt */
	'a',  'b',  'c',  0,				/* payload, pad */
};

static uint64_t rng;

static uint64_t rnd(void)
{
	/* splitmix64 */
	uint64_t z = rng += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static struct wire_pkt random_pkt(const struct wire_opcode *op, uint32_t payload_len)
{
	struct wire_pkt pkt = {
		.op = op,
		.se = rnd() & 1,
		.mig = rnd() & 1,
		.fecn = rnd() & 1,
		.becn = rnd() & 1,
		.ackreq = rnd() & 1,
		.pkey = rnd(),
		.dest_qpn = rnd() & 0xffffff,
		.psn = rnd() & 0xffffff,
		.qkey = rnd(),
		.src_qpn = rnd() & 0xffffff,
		.srqn = rnd() & 0xffffff,
		.va = rnd(),
		.rkey = rnd(),
		.dma_len = rnd(),
		.swap_add = rnd(),
		.compare = rnd(),
		.syndrome = rnd(),
		.msn = rnd() & 0xffffff,
		.orig = rnd(),
		.imm_be = rnd(),
		.inv_rkey = rnd(),
		.payload_len = payload_len,
	};

	return pkt;
}

#define SAME(field) cr_assert_eq(a->field, b->field, "%s: " #field, a->op->name)

static void assert_same(const struct wire_pkt *a, const struct wire_pkt *b)
{
	unsigned int h = a->op->headers;

	SAME(op);
	SAME(se);
	SAME(mig);
	SAME(fecn);
	SAME(becn);
	SAME(ackreq);
	SAME(pkey);
	SAME(dest_qpn);
	SAME(psn);
	SAME(payload_len);
	if (h & WIRE_H_DETH) {
		SAME(qkey);
		SAME(src_qpn);
	}
	if (h & WIRE_H_XRCETH)
		SAME(srqn);
	if (h & (WIRE_H_RETH | WIRE_H_ATOMICETH)) {
		SAME(va);
		SAME(rkey);
	}
	if (h & WIRE_H_RETH)
		SAME(dma_len);
	if (h & WIRE_H_ATOMICETH) {
		SAME(swap_add);
		SAME(compare);
	}
	if (h & WIRE_H_AETH) {
		SAME(syndrome);
		SAME(msn);
	}
	if (h & WIRE_H_ATOMICACKETH)
		SAME(orig);
	if (h & WIRE_H_IMMDT)
		SAME(imm_be);
	if (h & WIRE_H_IETH)
		SAME(inv_rkey);
}

/* A heap block with a packet in it; the pad is filled with what nobody may look at. */
static uint8_t *build(const struct wire_pkt *pkt, size_t *len)
{
	size_t body = pkt->payload_len + wire_pad(pkt->payload_len);
	uint8_t *b = malloc(pkt->op->hdr_len + body);

	*len = wire_encode_hdr(b, pkt);
	cr_assert_eq(*len, pkt->op->hdr_len);
	memset(b + *len, 0xee, body);
	*len += body;
	return b;
}

/* The verdict on the first @len bytes of @b, which are copied to a block of that length. */
static enum wire_verdict verdict(const uint8_t *b, size_t len, struct wire_pkt *pkt)
{
	uint8_t *copy = malloc(len ? len : 1);
	enum wire_verdict v;

	memcpy(copy, b, len);
	v = wire_decode(pkt, copy, len);
	free(copy);
	return v;
}

Test(hdr, wire_decode__bytes)
{
	struct wire_pkt pkt;

	cr_assert_eq(wire_decode(&pkt, xrc_write_imm, sizeof(xrc_write_imm)), WIRE_OK);
	cr_assert_eq(pkt.op, wire_opcode(WIRE_XRC_WRITE_ONLY_IMM));
	cr_assert(pkt.se && pkt.mig && pkt.fecn && !pkt.becn && pkt.ackreq);
	cr_assert_eq(pkt.pad, 1);
	cr_assert_eq(pkt.pkey, 0x8001);
	cr_assert_eq(pkt.dest_qpn, 0x123456);
	cr_assert_eq(pkt.psn, 0xfedcba);
	cr_assert_eq(pkt.srqn, 0x0abcde);
	cr_assert_eq(pkt.va, 0x0102030405060708);
	cr_assert_eq(pkt.rkey, 0x11223344);
	cr_assert_eq(pkt.dma_len, 3);
	cr_assert_eq(pkt.imm_be, htobe32(0xcafebabe));
	cr_assert_eq(pkt.payload, xrc_write_imm + 36);
	cr_assert_eq(pkt.payload_len, 3);
}

/* Every opcode, payloads round the pad: what was encoded comes back, and the payload where it lies.
 */
Test(hdr, wire_decode__every_opcode)
{
	rng = 1;
	for (unsigned int code = 0; code < 256; code++) {
		const struct wire_opcode *op = wire_opcode(code);

		for (uint32_t n = 0; op && n <= (op->payload ? 9 : 0); n++) {
			struct wire_pkt in = random_pkt(op, n), out;
			size_t len;
			uint8_t *b = build(&in, &len);

			cr_assert_eq(wire_decode(&out, b, len), WIRE_OK, "%s", op->name);
			assert_same(&in, &out);
			cr_assert_eq(out.pad, wire_pad(n));
			cr_assert_eq(out.payload, b + op->hdr_len);
			free(b);
		}
	}
}

/* Every byte too few is SHORT, for every opcode; op is known as soon as there is a BTH. */
Test(hdr, wire_decode__truncated)
{
	rng = 2;
	for (unsigned int code = 0; code < 256; code++) {
		const struct wire_opcode *op = wire_opcode(code);
		struct wire_pkt in, out;
		size_t len;
		uint8_t *b;

		if (!op)
			continue;
		in = random_pkt(op, op->payload ? 1 : 0);
		b = build(&in, &len);
		for (size_t cut = 0; cut < len; cut++) {
			cr_assert_eq(verdict(b, cut, &out), WIRE_SHORT, "%s, %zu", op->name, cut);
			cr_assert(!out.op || out.op == op);
		}
		free(b);
	}
}

Test(hdr, wire_decode__not_a_multiple_of_4)
{
	struct wire_pkt in = random_pkt(wire_opcode(WIRE_RC_SEND_ONLY), 64), out;
	size_t len;
	uint8_t *b = build(&in, &len);

	for (size_t cut = len - 63; cut < len; cut++)
		cr_assert_eq(verdict(b, cut, &out), cut & 3 ? WIRE_SHORT : WIRE_OK);
	free(b);
}

/* A pad without the bytes for it; with payload bytes behind it any pad is right. */
Test(hdr, wire_decode__pad)
{
	uint8_t b[16] = {WIRE_UC_SEND_ONLY};
	struct wire_pkt pkt;

	for (unsigned int pad = 0; pad <= 3; pad++) {
		b[1] = pad << 4;
		cr_assert_eq(verdict(b, 12, &pkt), pad ? WIRE_SHORT : WIRE_OK);
		cr_assert_eq(verdict(b, 16, &pkt), WIRE_OK);
		cr_assert_eq(pkt.payload_len, 4 - pad);
	}
}

Test(hdr, wire_decode__payload_where_none_may_be)
{
	uint8_t b[WIRE_MAX_HDR_LEN + 4] = {0};
	struct wire_pkt pkt;

	for (unsigned int code = 0; code < 256; code++) {
		const struct wire_opcode *op = wire_opcode(code);

		if (!op || op->payload)
			continue;
		b[0] = code;
		b[1] = 0;
		cr_assert_eq(verdict(b, op->hdr_len, &pkt), WIRE_OK);
		cr_assert_eq(verdict(b, op->hdr_len + 4, &pkt), WIRE_SHORT);
		b[1] = 0x30;
		cr_assert_eq(verdict(b, op->hdr_len, &pkt), WIRE_SHORT);
	}
}

Test(hdr, wire_decode__unknown_opcode)
{
	uint8_t b[64] = {0};
	struct wire_pkt pkt;

	for (unsigned int code = 0; code < 256; code++) {
		if (wire_opcode(code))
			continue;
		b[0] = code;
		cr_assert_eq(verdict(b, sizeof(b), &pkt), WIRE_OPCODE);
		cr_assert_null(pkt.op);
	}
}

Test(hdr, wire_decode__version)
{
	uint8_t b[12] = {WIRE_RC_SEND_ONLY};
	struct wire_pkt pkt;

	for (unsigned int tver = 1; tver < 16; tver++) {
		b[1] = tver;
		cr_assert_eq(verdict(b, sizeof(b), &pkt), WIRE_VERSION);
		cr_assert_eq(pkt.op, wire_opcode(WIRE_RC_SEND_ONLY));
	}
}

/* Reserved bits of BTH, XRCETH and DETH may be set by others and change no value. */
Test(hdr, wire_decode__reserved_bits)
{
	struct wire_pkt in, out;
	uint8_t *b;
	size_t len;

	rng = 3;
	in = random_pkt(wire_opcode(WIRE_XRC_SEND_ONLY), 8);
	b = build(&in, &len);
	b[4] |= 0x3f;
	b[8] |= 0x7f;
	b[12] = 0xff;
	cr_assert_eq(wire_decode(&out, b, len), WIRE_OK);
	assert_same(&in, &out);
	free(b);

	in = random_pkt(wire_opcode(WIRE_UD_SEND_ONLY), 8);
	b = build(&in, &len);
	b[16] = 0xff;
	cr_assert_eq(wire_decode(&out, b, len), WIRE_OK);
	assert_same(&in, &out);
	free(b);
}

Test(hdr, wire_encode_hdr__bytes)
{
	uint8_t b[sizeof(xrc_write_imm)];
	struct wire_pkt pkt;

	wire_decode(&pkt, xrc_write_imm, sizeof(xrc_write_imm));
	memset(b, 0xff, sizeof(b));
	cr_assert_eq(wire_encode_hdr(b, &pkt), 36);
	cr_assert_arr_eq(b, xrc_write_imm, 36);
	cr_assert_eq(b[36], 0xff, "wrote behind the headers");
}

/* All values at their largest, too large even for 24 bits: reserved bits and TVer stay 0. */
Test(hdr, wire_encode_hdr__reserved_bits)
{
	for (unsigned int code = 0; code < 256; code++) {
		const struct wire_opcode *op = wire_opcode(code);
		uint8_t b[WIRE_MAX_HDR_LEN + 1];
		struct wire_pkt pkt;

		if (!op)
			continue;
		memset(&pkt, 0xff, sizeof(pkt));
		pkt.op = op;
		pkt.se = pkt.mig = pkt.fecn = pkt.becn = pkt.ackreq = true;
		pkt.payload_len = 0;
		memset(b, 0xff, sizeof(b));
		cr_assert_eq(wire_encode_hdr(b, &pkt), op->hdr_len);
		cr_assert_eq(b[op->hdr_len], 0xff, "%s wrote behind its headers", op->name);
		cr_assert_eq(b[1], 0xc0);
		cr_assert_eq(b[4], 0xc0);
		cr_assert_eq(b[8], 0x80);
		if (op->headers & WIRE_H_XRCETH)
			cr_assert_eq(b[12], 0);
		if (op->headers & WIRE_H_DETH)
			cr_assert_eq(b[16], 0);
		for (unsigned int i = 12; op->headers & WIRE_H_CNPRESV && i < op->hdr_len; i++)
			cr_assert_eq(b[i], 0);
	}
}

Test(hdr, wire_encode_hdr__every_bth_bit)
{
	static const struct {
		struct wire_pkt pkt;
		unsigned int at;
		uint8_t bit;
	} rows[] = {
		{{.se = true}, 1, 0x80},       {{.mig = true}, 1, 0x40},
		{{.fecn = true}, 4, 0x80},     {{.becn = true}, 4, 0x40},
		{{.ackreq = true}, 8, 0x80},   {{.payload_len = 1}, 1, 0x30},
		{{.payload_len = 2}, 1, 0x20}, {{.payload_len = 3}, 1, 0x10},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t b[12], expected[12] = {WIRE_RC_SEND_ONLY};
		struct wire_pkt pkt = rows[i].pkt;

		pkt.op = wire_opcode(WIRE_RC_SEND_ONLY);
		expected[rows[i].at] = rows[i].bit;
		wire_encode_hdr(b, &pkt);
		cr_assert_arr_eq(b, expected, sizeof(b), "row %u", i);
	}
}

Test(hdr, wire_pad__to_4)
{
	cr_assert_eq(wire_pad(0), 0);
	cr_assert_eq(wire_pad(1), 3);
	cr_assert_eq(wire_pad(2), 2);
	cr_assert_eq(wire_pad(3), 1);
	cr_assert_eq(wire_pad(4), 0);
	cr_assert_eq(wire_pad(UINT32_MAX), 1);
}

Test(hdr, wire_rnr_ns__table_47)
{
	static const double ms[32] = {
		655.36, 0.01,  0.02,  0.03,  0.04,  0.06,   0.08,   0.12,   0.16,   0.24,   0.32,
		0.48,	0.64,  0.96,  1.28,  1.92,  2.56,   3.84,   5.12,   7.68,   10.24,  15.36,
		20.48,	30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
	};

	for (unsigned int i = 0; i < 32; i++) {
		cr_assert_eq(wire_rnr_ns(i), (uint64_t)(ms[i] * 1e6 + 0.5), "timer %u", i);
		/* The bits above the field say that the AETH is an RNR NAK. */
		cr_assert_eq(wire_rnr_ns(WIRE_RNR(i)), wire_rnr_ns(i));
	}
}
