/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The whole opcode table against what the specification says in other words: the codes that exist,
 * the bytes of headers behind each, and the relations between the transports.
 */
#include "wire/opcode.h"

#include <criterion/criterion.h>
#include <string.h>

#define FIRST_RESPONSE 0x0d /* READ response First ... */
#define LAST_RESPONSE  0x12 /* ... to atomic acknowledge */

/* Bytes from the BTH to the payload by the low five bits of an RC opcode; 0: no such opcode. */
static const uint8_t rc_len[32] = {
	12, 12, 12, 16, 12, 16, /* SEND */
	28, 12, 12, 16, 28, 32, /* RDMA WRITE */
	28, 16, 12, 16, 16,	/* READ request and responses */
	16, 24, 40, 40,		/* acknowledges and atomics */
	0,  16, 16,		/* SEND with Invalidate */
};

static const char *const transports[8] = {"RC", "UC", "RD", "UD", "CNP", "XRC"};

static unsigned int expected_len(unsigned int code)
{
	unsigned int low = code & 0x1f, len = rc_len[low];
	bool response = low >= FIRST_RESPONSE && low <= LAST_RESPONSE;

	switch (code >> 5) {
	case 0:
		return len;
	case 1:
		return low <= 0x0b ? len : 0;
	case 3:
		return low == 4 ? 20 : low == 5 ? 24 : 0;
	case 4:
		return low == 1 ? 28 : 0;
	case 5:
		return len && !response ? len + 4 : len;
	}
	return 0;
}

static bool ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && !strcmp(s + n - m, suffix);
}

Test(opcode, wire_opcode__which_exist)
{
	for (unsigned int code = 0; code < 256; code++)
		cr_assert_eq(!!wire_opcode(code), !!expected_len(code), "%#x", code);
}

Test(opcode, wire_opcode__hdr_len)
{
	unsigned int max = 0;

	for (unsigned int code = 0; code < 256; code++) {
		const struct wire_opcode *op = wire_opcode(code);

		if (!op)
			continue;
		cr_assert_eq(op->hdr_len, expected_len(code), "%s", op->name);
		if (op->hdr_len > max)
			max = op->hdr_len;
	}
	cr_assert_eq(max, WIRE_MAX_HDR_LEN);
}

Test(opcode, wire_opcode__code_and_transport)
{
	for (unsigned int code = 0; code < 256; code++) {
		const struct wire_opcode *op = wire_opcode(code);

		if (!op)
			continue;
		cr_assert_eq(op->code, code);
		cr_assert_eq(op->transport, code >> 5);
		cr_assert_eq(
			strncmp(op->name, transports[code >> 5], strlen(transports[code >> 5])), 0,
			"%s", op->name);
	}
}

/* A name says position and extra headers; the columns must say the same. */
Test(opcode, wire_opcode__name)
{
	for (unsigned int code = 0; code < 256; code++) {
		const struct wire_opcode *op = wire_opcode(code);
		unsigned int pos = WIRE_POS_ONLY;

		if (!op)
			continue;
		if (strstr(op->name, "_FIRST"))
			pos = WIRE_POS_FIRST;
		else if (strstr(op->name, "_MIDDLE"))
			pos = WIRE_POS_MIDDLE;
		else if (strstr(op->name, "_LAST"))
			pos = WIRE_POS_LAST;
		cr_assert_eq(op->pos, pos, "%s", op->name);
		cr_assert_eq(!!(op->headers & WIRE_H_IMMDT), ends(op->name, "_IMM"), "%s",
			     op->name);
		cr_assert_eq(!!(op->headers & WIRE_H_IETH), ends(op->name, "_INV"), "%s", op->name);
		for (unsigned int other = 0; other < code; other++)
			cr_assert(!wire_opcode(other) ||
				  strcmp(wire_opcode(other)->name, op->name));
	}
}

Test(opcode, wire_opcode__kind)
{
	static const char *const names[] = {
		[WIRE_KIND_SEND] = "_SEND_",
		[WIRE_KIND_WRITE] = "_WRITE_",
		[WIRE_KIND_READ] = "_READ_REQUEST",
		[WIRE_KIND_CMP_SWAP] = "_CMP_SWAP",
		[WIRE_KIND_FETCH_ADD] = "_FETCH_ADD",
		[WIRE_KIND_READ_RESP] = "_READ_RESP_",
		[WIRE_KIND_ACK] = "C_ACK",
		[WIRE_KIND_ATOMIC_ACK] = "_ATOMIC_ACK",
		[WIRE_KIND_CNP] = "CNP",
	};

	for (unsigned int code = 0; code < 256; code++) {
		const struct wire_opcode *op = wire_opcode(code);
		bool carries;

		if (!op)
			continue;
		cr_assert(strstr(op->name, names[op->kind]), "%s", op->name);
		carries = op->kind == WIRE_KIND_SEND || op->kind == WIRE_KIND_WRITE ||
			  op->kind == WIRE_KIND_READ_RESP;
		cr_assert_eq(op->payload, carries, "%s", op->name);
	}
}

/* An XRC opcode is its RC opcode with 0xa0 and, on requests only, an XRCETH. */
Test(opcode, wire_opcode__xrc_is_rc)
{
	for (unsigned int low = 0; low < 32; low++) {
		const struct wire_opcode *rc = wire_opcode(low), *xrc = wire_opcode(low | 0xa0);

		cr_assert_eq(!rc, !xrc);
		if (!rc)
			continue;
		cr_assert_str_eq(xrc->name + strlen("XRC"), rc->name + strlen("RC"));
		cr_assert_eq(xrc->headers, rc->headers | (wire_is_request(rc) ? WIRE_H_XRCETH : 0),
			     "%s", rc->name);
		cr_assert_eq(xrc->kind, rc->kind);
		cr_assert_eq(xrc->pos, rc->pos);
		cr_assert_eq(xrc->payload, rc->payload);
	}
}

/* UC is RC without READ, atomics and answers. */
Test(opcode, wire_opcode__uc_is_rc)
{
	for (unsigned int low = 0; low <= 0x0b; low++) {
		const struct wire_opcode *rc = wire_opcode(low), *uc = wire_opcode(low | 0x20);

		cr_assert_str_eq(uc->name + 2, rc->name + 2);
		cr_assert_eq(uc->headers, rc->headers);
		cr_assert_eq(uc->kind, rc->kind);
		cr_assert_eq(uc->pos, rc->pos);
		cr_assert_eq(uc->payload, rc->payload);
	}
}

Test(opcode, wire_is_request__by_code)
{
	for (unsigned int code = 0; code < 256; code++) {
		const struct wire_opcode *op = wire_opcode(code);
		unsigned int low = code & 0x1f;

		if (!op)
			continue;
		cr_assert_eq(wire_is_request(op),
			     op->transport != WIRE_TRANSPORT_CNP &&
				     (low < FIRST_RESPONSE || low > LAST_RESPONSE),
			     "%s", op->name);
	}
}
