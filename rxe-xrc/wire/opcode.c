/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table behind wire_opcode(), made from opcode.def.
 *
 * The length of a packet's headers is a sum over its row's header bits, done here by the compiler,
 * so that no row states a length which could disagree with its headers.
 */
#include "wire/opcode.h"

/* The words of opcode.def's columns "headers" and "needs". */
enum {
	DETH = WIRE_H_DETH,
	XRCETH = WIRE_H_XRCETH,
	RETH = WIRE_H_RETH,
	ATOMICETH = WIRE_H_ATOMICETH,
	AETH = WIRE_H_AETH,
	ATOMICACKETH = WIRE_H_ATOMICACKETH,
	IMMDT = WIRE_H_IMMDT,
	IETH = WIRE_H_IETH,
	CNPRESV = WIRE_H_CNPRESV,
};
enum { NONE = false, PAY = true };

/* IBTA Vol 1, 9.3; XRCETH: Annex A14; the CNP's reserved bytes: Annex A17. */
#define LEN(headers, bit, bytes) ((headers) & (bit) ? (bytes) : 0)
#define HDR_LEN(h)                                                                                 \
	(WIRE_BTH_LEN + LEN(h, DETH, 8) + LEN(h, XRCETH, 4) + LEN(h, RETH, 16) +                   \
	 LEN(h, ATOMICETH, 28) + LEN(h, AETH, 4) + LEN(h, ATOMICACKETH, 8) + LEN(h, IMMDT, 4) +    \
	 LEN(h, IETH, 4) + LEN(h, CNPRESV, 16))

const struct wire_opcode wire_opcode_table[256] = {
#define OP(token, num, trans, knd, position, hdrs, needs)                                          \
	[num] = {                                                                                  \
		.name = #token,                                                                    \
		.headers = (hdrs),                                                                 \
		.code = (num),                                                                     \
		.transport = WIRE_TRANSPORT_##trans,                                               \
		.kind = WIRE_KIND_##knd,                                                           \
		.pos = WIRE_POS_##position,                                                        \
		.hdr_len = HDR_LEN(hdrs),                                                          \
		.payload = (needs),                                                                \
	},
#include "wire/opcode.def"
#undef OP
};
