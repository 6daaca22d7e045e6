/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Transport packets: bytes <-> values.
 *
 * A transport packet is what UDP port 4791 carries, without the ICRC: the BTH, extension headers as the
 * opcode's row says, the payload, and 0 to 3 pad bytes that make its length a multiple of 4.
 *
 *      0      4      8      12
 *     +------+------+------+- - - - - - - - - - - -+- - - - - -+- - -+
 *     | BTH                | XRCETH RETH AETH ...  | payload   | pad | (ICRC)
 *     +------+------+------+- - - - - - - - - - - -+- - - - - -+- - -+
 *
 * Pure functions without state. IBTA Vol 1 chapter 9; Annex A14 (XRC), A17 (RoCEv2).
 */
#ifndef RXE_WIRE_HDR_H
#define RXE_WIRE_HDR_H

#include "wire/opcode.h"

#include <stddef.h>

#define WIRE_UDP_PORT	  4791
#define WIRE_PKEY_DEFAULT 0xffff

/* AETH syndromes (IBTA Vol 1, tables 45 and 46): bits 6:5 say what it is, bits 4:0 give the detail. */
#define WIRE_SYN_KIND(s)   ((s) >> 5 & 3)
#define WIRE_SYN_DETAIL(s) ((s)&0x1f)
enum wire_syndrome_kind { WIRE_SYN_ACK = 0, WIRE_SYN_RNR = 1, WIRE_SYN_RSVD = 2, WIRE_SYN_NAK = 3 };
#define WIRE_ACK_NO_CREDITS 0x1f
#define WIRE_RNR(timer)	    (0x20 | (timer))
enum wire_nak {
	WIRE_NAK_SEQUENCE = 0x60,
	WIRE_NAK_INVALID_REQUEST = 0x61,
	WIRE_NAK_REMOTE_ACCESS = 0x62,
	WIRE_NAK_REMOTE_OPERATIONAL = 0x63,
	WIRE_NAK_INVALID_RD_REQUEST = 0x64, /* for XRC: no such SRQ in the domain */
};

/* A transport packet as values in host order. Fields of headers that the opcode lacks are unspecified. */
struct wire_pkt {
	const struct wire_opcode *op;
	/* BTH */
	bool se;  /* solicited event */
	bool mig; /* MigReq */
	bool fecn;
	bool becn;
	bool ackreq; /* the requester wants an acknowledge */
	uint8_t pad; /* pad bytes, 0 to 3; wire_encode() computes it from payload_len */
	uint16_t pkey;
	uint32_t dest_qpn;
	uint32_t psn;
	/* DETH */
	uint32_t qkey;
	uint32_t src_qpn;
	/* XRCETH; the reserved byte is sent 0 and ignored */
	uint32_t srqn;
	/* RETH and AtomicETH */
	uint64_t va;
	uint32_t rkey;
	uint32_t dma_len;  /* RETH: bytes of the whole message */
	uint64_t swap_add; /* AtomicETH: swap value, or what is added */
	uint64_t compare;
	/* AETH, AtomicAckETH */
	uint8_t syndrome;
	uint32_t msn;
	uint64_t orig; /* value before the atomic */
	/* ImmDt: as in the work request, in network order and not touched. IETH */
	uint32_t imm_be;
	uint32_t inv_rkey;

	const uint8_t *payload; /* into the buffer that was decoded */
	uint32_t payload_len;	/* without pad */
};

enum wire_verdict {
	WIRE_OK,
	WIRE_SHORT,   /* shorter than its headers and pad, not a multiple of 4, or bytes behind the
		       * headers of an opcode that has no payload */
	WIRE_OPCODE,  /* no transport has the opcode */
	WIRE_VERSION, /* BTH.TVer is not 0 */
};

/**
 * wire_decode() - bytes to values.
 * @pkt: filled in; its payload points into @b
 * @b: from the BTH on, without the ICRC
 * @len: bytes at @b
 *
 * Reads no byte outside @b. On a verdict other than WIRE_OK @pkt is unspecified, but for op, which is
 * NULL or right.
 */
enum wire_verdict wire_decode(struct wire_pkt *pkt, const uint8_t *b, size_t len);

/**
 * wire_encode_hdr() - values to the bytes of BTH and extension headers.
 * @b: at least pkt->op->hdr_len bytes
 *
 * The pad count comes from pkt->payload_len; the caller writes the payload and wire_pad() zero bytes.
 * TVer and all reserved bits are sent 0.
 *
 * Return: the number of bytes written, pkt->op->hdr_len.
 */
size_t wire_encode_hdr(uint8_t *b, const struct wire_pkt *pkt);

/** wire_pad() - pad bytes behind a payload of @len bytes. */
static inline uint8_t wire_pad(uint32_t len)
{
	return -len & 3;
}

/** wire_rnr_ns() - RNR NAK timer field (IBTA table 47) to nanoseconds; 0 is the longest, 655.36 ms. */
uint64_t wire_rnr_ns(uint8_t timer);

#endif
