/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Words for numbers: opcodes, syndromes, service ids, timeouts, and the sets of values.def.
 *
 * The words of the 256 opcodes and of the 256 syndromes are put together once, from the rows of
 * opcode.def and from the tables of IBTA Vol 1 (44 to 47), so that a line takes them with one look-up.
 */
#include "pcap-dissect/dis.h"

#include "base/macros.h"

#include <stdio.h>

static char opcode_words[256][32];
static char syndrome_words[256][40];

static const char *const transport_words[] = {
	[WIRE_TRANSPORT_RC] = "RC", [WIRE_TRANSPORT_UC] = "UC",	  [WIRE_TRANSPORT_RD] = "RD",
	[WIRE_TRANSPORT_UD] = "UD", [WIRE_TRANSPORT_CNP] = "CNP", [WIRE_TRANSPORT_XRC] = "XRC",
};

static const struct {
	const char *words;
	bool pos; /* its place in the message belongs to the name */
} kind_words[] = {
	[WIRE_KIND_SEND] = {"SEND", true},
	[WIRE_KIND_WRITE] = {"RDMA WRITE", true},
	[WIRE_KIND_READ] = {"RDMA READ Request", false},
	[WIRE_KIND_CMP_SWAP] = {"CmpSwap", false},
	[WIRE_KIND_FETCH_ADD] = {"FetchAdd", false},
	[WIRE_KIND_READ_RESP] = {"RDMA READ Response", true},
	[WIRE_KIND_ACK] = {"Acknowledge", false},
	[WIRE_KIND_ATOMIC_ACK] = {"ATOMIC Acknowledge", false},
};

static const char *const pos_words[] = {
	[WIRE_POS_MIDDLE] = " Middle",
	[WIRE_POS_FIRST] = " First",
	[WIRE_POS_LAST] = " Last",
	[WIRE_POS_ONLY] = " Only",
};

static const char *const nak_words[] = {
	[WIRE_SYN_DETAIL(WIRE_NAK_SEQUENCE)] = "psn-sequence-error",
	[WIRE_SYN_DETAIL(WIRE_NAK_INVALID_REQUEST)] = "invalid-request",
	[WIRE_SYN_DETAIL(WIRE_NAK_REMOTE_ACCESS)] = "remote-access-error",
	[WIRE_SYN_DETAIL(WIRE_NAK_REMOTE_OPERATIONAL)] = "remote-operational-error",
	[WIRE_SYN_DETAIL(WIRE_NAK_INVALID_RD_REQUEST)] = "invalid-rd-request",
};

/* End-to-end credits that an ACK grants, by its five bits (IBTA Vol 1, table 46). */
static const uint16_t credits[31] = {
	0,    1,    2,	  3,	4,    6,     8,	    12,	   16,	  24,	32,
	48,   64,   96,	  128,	192,  256,   384,   512,   768,	  1024, 1536,
	2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
};

static void name_opcode(char *to, size_t size, uint8_t code)
{
	const struct wire_opcode *op = wire_opcode(code);

	if (!op)
		snprintf(to, size, "opcode 0x%02x", code);
	else if (op->kind == WIRE_KIND_CNP)
		snprintf(to, size, "CNP");
	else
		snprintf(to, size, "%s %s%s%s", transport_words[op->transport],
			 kind_words[op->kind].words,
			 kind_words[op->kind].pos ? pos_words[op->pos] : "",
			 op->headers & WIRE_H_IMMDT  ? " Imm"
			 : op->headers & WIRE_H_IETH ? " Inv"
						     : "");
}

static void name_syndrome(char *to, size_t size, uint8_t s)
{
	unsigned int detail = WIRE_SYN_DETAIL(s);
	unsigned int us;

	if (s & 0x80 || WIRE_SYN_KIND(s) == WIRE_SYN_RSVD) {
		snprintf(to, size, "reserved-syndrome 0x%02x", s);
	} else if (WIRE_SYN_KIND(s) == WIRE_SYN_ACK) {
		if (detail == WIRE_ACK_NO_CREDITS)
			snprintf(to, size, "ack");
		else
			snprintf(to, size, "ack credits %u", credits[detail]);
	} else if (WIRE_SYN_KIND(s) == WIRE_SYN_RNR) {
		us = wire_rnr_ns(detail) / 1000;
		snprintf(to, size, "rnr-nak %u.%02u ms", us / 1000, us % 1000 / 10);
	} else if (detail < ARRAY_SIZE(nak_words)) {
		snprintf(to, size, "nak %s", nak_words[detail]);
	} else {
		snprintf(to, size, "nak reserved-code %u", detail);
	}
}

void dis_init(void)
{
	for (unsigned int i = 0; i < 256; i++) {
		name_opcode(opcode_words[i], sizeof(opcode_words[i]), i);
		name_syndrome(syndrome_words[i], sizeof(syndrome_words[i]), i);
	}
}

const char *dis_opcode_words(uint8_t code)
{
	return opcode_words[code];
}

const char *dis_syndrome_words(uint8_t syndrome)
{
	return syndrome_words[syndrome];
}

const char *dis_note_words(enum dis_note note)
{
	static const char *const words[] = {
#define NOTE(token, text, why) text,
#include "pcap-dissect/notes.def"
#undef NOTE
	};

	return words[note];
}

/* 4.096 us * 2^value, as the CM's timeouts are told. */
static const char *timeout_words(uint64_t value, char *buf)
{
	double us = 4.096 * (double)(UINT64_C(1) << (value & 31));

	if (us < 1e3)
		snprintf(buf, DIS_WORDS_MAX, "%.3g us", us);
	else if (us < 1e6)
		snprintf(buf, DIS_WORDS_MAX, "%.3g ms", us / 1e3);
	else
		snprintf(buf, DIS_WORDS_MAX, us < 1e9 ? "%.3g s" : "%.0f s", us / 1e6);
	return buf;
}

/* RDMA IP CM service (Annex A11): 00 00 00 00 01 protocol port. librdmacm's IPoIB space is 0x0002. */
static const char *service_words(uint64_t id, char *buf)
{
	unsigned int proto = id >> 16 & 0xff;
	unsigned int port = id & 0xffff;
	const char *name = proto == 6 ? "TCP" : proto == 0x11 ? "UDP" : proto == 0x3f ? "IB" : NULL;

	if (id >> 24 == 1 && name)
		snprintf(buf, DIS_WORDS_MAX, "RDMA IP CM, %s port %u", name, port);
	else if (id >> 24 == 1)
		snprintf(buf, DIS_WORDS_MAX, "RDMA IP CM, protocol %u port %u", proto, port);
	else if (id >> 16 == 2)
		snprintf(buf, DIS_WORDS_MAX, "RDMA IP CM, IPoIB port %u", port);
	else
		return NULL;
	return buf;
}

const char *dis_value_words(enum dis_values set, uint64_t value, char buf[DIS_WORDS_MAX])
{
	static const struct {
		uint16_t set;
		uint16_t value;
		const char *words;
	} table[] = {
#define V(of, number, text) {DIS_V_##of, number, text},
#include "pcap-dissect/values.def"
#undef V
	};

	switch (set) {
	case DIS_V_NONE:
		return NULL;
	case DIS_V_OPCODE:
		return opcode_words[value & 0xff];
	case DIS_V_SYNDROME:
		return syndrome_words[value & 0xff];
	case DIS_V_TIMEOUT:
		return timeout_words(value, buf);
	case DIS_V_SERVICE:
		return service_words(value, buf);
	default:
		for (size_t i = 0; i < ARRAY_SIZE(table); i++)
			if (table[i].set == set && table[i].value == value)
				return table[i].words;
		return NULL;
	}
}
