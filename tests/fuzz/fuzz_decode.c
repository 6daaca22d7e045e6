/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzz target: any bytes as a transport packet.
 *
 * No input may make the decoder read outside its buffer. What it accepts must lie in the buffer,
 * encode to the same header bytes but for reserved bits, and have an ICRC from which the
 * identification can be solved. A violated property aborts.
 *
 * With -Dfuzzers=true (clang) this is a libFuzzer program; linked with replay.c it runs over a
 * folder.
 */
#include "wire/hdr.h"
#include "wire/icrc.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(property)                                                                             \
	do {                                                                                       \
		if (!(property))                                                                   \
			abort();                                                                   \
	} while (0)

static void check_encode(const struct wire_pkt *pkt, const uint8_t *b)
{
	const struct wire_opcode *op = pkt->op;
	uint8_t out[WIRE_MAX_HDR_LEN];

	MUST(wire_encode_hdr(out, pkt) == op->hdr_len);
	out[4] |= b[4] & 0x3f;
	out[8] |= b[8] & 0x7f;
	if (op->headers & WIRE_H_XRCETH)
		out[12] = b[12];
	if (op->headers & WIRE_H_DETH)
		out[16] = b[16];
	if (op->headers & WIRE_H_CNPRESV)
		memcpy(out + 12, b + 12, 16);
	MUST(!memcmp(out, b, op->hdr_len));
}

static void check_icrc(const uint8_t *b, size_t len)
{
	struct wire_ip ip = {.src = {[10] = 0xff, 0xff, 10, 0, 0, 1},
			     .dst = {[10] = 0xff, 0xff, 10, 0, 0, 2}};
	uint32_t zero = wire_icrc(&ip, b, len);
	uint16_t id;

	ip.id = b[len - 1] << 8 | b[9];
	MUST(wire_icrc_solve(len, wire_icrc(&ip, b, len) ^ zero, &id));
	MUST(id == ip.id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_pkt pkt;
	enum wire_verdict verdict = wire_decode(&pkt, data, size);

	if (verdict != WIRE_OK) {
		MUST(!pkt.op || pkt.op == wire_opcode(data[0]));
		return 0;
	}
	MUST(pkt.op == wire_opcode(data[0]));
	MUST(pkt.payload == data + pkt.op->hdr_len);
	MUST(pkt.op->hdr_len + pkt.payload_len + pkt.pad == size);
	MUST(pkt.op->payload || !pkt.payload_len);
	MUST(wire_pad(pkt.payload_len) == pkt.pad);
	check_encode(&pkt, data);
	if (size <= 9000)
		check_icrc(data, size);
	return 0;
}
