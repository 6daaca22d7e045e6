/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The opcodes of opcode.def as an enum and a table.
 *
 * A reader of a packet looks its first byte up with wire_opcode() and gets the transport, what the
 * packet does, where in its message it stands, and which headers follow the BTH.
 */
#ifndef RXE_WIRE_OPCODE_H
#define RXE_WIRE_OPCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wire_opcode_code {
#define OP(token, code, ...) WIRE_##token = code,
#include "wire/opcode.def"
#undef OP
};

/* The top three bits of an opcode; a response has its request's. */
enum wire_transport {
	WIRE_TRANSPORT_RC = 0,
	WIRE_TRANSPORT_UC = 1,
	WIRE_TRANSPORT_RD = 2,
	WIRE_TRANSPORT_UD = 3,
	WIRE_TRANSPORT_CNP = 4,
	WIRE_TRANSPORT_XRC = 5,
};

enum wire_kind {
	WIRE_KIND_SEND,
	WIRE_KIND_WRITE,
	WIRE_KIND_READ,
	WIRE_KIND_CMP_SWAP,
	WIRE_KIND_FETCH_ADD,
	/* The kinds above are requests, those below are responses. */
	WIRE_KIND_READ_RESP,
	WIRE_KIND_ACK,
	WIRE_KIND_ATOMIC_ACK,
	WIRE_KIND_CNP,
};

/* Bits: FIRST begins a message, LAST ends it, ONLY does both. */
enum wire_pos {
	WIRE_POS_MIDDLE = 0,
	WIRE_POS_FIRST = 1,
	WIRE_POS_LAST = 2,
	WIRE_POS_ONLY = 3,
};

/* Extension headers, in the order in which they follow each other. */
enum wire_header {
	WIRE_H_DETH = 1 << 0,
	WIRE_H_XRCETH = 1 << 1,
	WIRE_H_RETH = 1 << 2,
	WIRE_H_ATOMICETH = 1 << 3,
	WIRE_H_AETH = 1 << 4,
	WIRE_H_ATOMICACKETH = 1 << 5,
	WIRE_H_IMMDT = 1 << 6,
	WIRE_H_IETH = 1 << 7,
	WIRE_H_CNPRESV = 1 << 8,
};

#define WIRE_BTH_LEN  12
#define WIRE_ICRC_LEN 4
/* The longest chain of headers: BTH, XRCETH, AtomicETH. */
#define WIRE_MAX_HDR_LEN (12 + 4 + 28)

struct wire_opcode {
	const char *name; /* "XRC_SEND_ONLY"; NULL for a code that no transport has */
	uint16_t headers; /* enum wire_header bits */
	uint8_t code;
	uint8_t transport; /* enum wire_transport */
	uint8_t kind;	   /* enum wire_kind */
	uint8_t pos;	   /* enum wire_pos */
	uint8_t hdr_len;   /* bytes of BTH and extension headers together */
	bool payload;	   /* a payload may follow */
};

extern const struct wire_opcode wire_opcode_table[256];

/** wire_opcode() - the row of @code, or NULL when no transport has it. */
static inline const struct wire_opcode *wire_opcode(uint8_t code)
{
	const struct wire_opcode *op = &wire_opcode_table[code];

	return op->name ? op : NULL;
}

static inline bool wire_is_request(const struct wire_opcode *op)
{
	return op->kind < WIRE_KIND_READ_RESP;
}

#endif
