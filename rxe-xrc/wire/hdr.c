/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Transport packets: the bytes of the headers <-> struct wire_pkt.
 *
 * Both directions walk the extension headers that the opcode's row names, in the order of enum
 * wire_header. One length check against the row's hdr_len before the walk covers every header, so
 * the walk itself needs none; the test over the whole opcode table holds the two together.
 *
 *	      7   6   5 4   3..0
 *	 0  |            opcode            |
 *	 1  | SE | Mig | pad | TVer (0)    |
 *	 2  | P_Key                        |
 *	 4  | FECN | BECN | reserved (0)   |   a router may change it: masked in the ICRC
 *	 5  | destination QPN, 24 bits     |
 *	 8  | AckReq | reserved (0)        |
 *	 9  | PSN, 24 bits                 |
 *
 * IBTA Vol 1, 9.2 (BTH) and 9.3 (extension headers); Annex A14 (XRCETH).
 */
#include "wire/hdr.h"

#include "base/bytes.h"
#include "base/macros.h"

#include <assert.h>

#define BTH_SE	   0x80
#define BTH_MIG	   0x40
#define BTH_TVER   0x0f
#define BTH_FECN   0x80
#define BTH_BECN   0x40
#define BTH_ACKREQ 0x80

/* In units of 10 us (IBTA Vol 1, table 47). */
static const uint32_t rnr_10us[32] = {
	65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
	48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

static void decode_bth(struct wire_pkt *pkt, const uint8_t *b)
{
	pkt->se = b[1] & BTH_SE;
	pkt->mig = b[1] & BTH_MIG;
	pkt->pad = b[1] >> 4 & 3;
	pkt->pkey = get_be16(b + 2);
	pkt->fecn = b[4] & BTH_FECN;
	pkt->becn = b[4] & BTH_BECN;
	pkt->dest_qpn = get_be24(b + 5);
	pkt->ackreq = b[8] & BTH_ACKREQ;
	pkt->psn = get_be24(b + 9);
}

static void decode_ext(struct wire_pkt *pkt, const uint8_t *b, unsigned int headers)
{
	if (headers & WIRE_H_DETH) {
		pkt->qkey = get_be32(b);
		pkt->src_qpn = get_be24(b + 5);
		b += 8;
	}
	if (headers & WIRE_H_XRCETH) {
		pkt->srqn = get_be24(b + 1);
		b += 4;
	}
	if (headers & WIRE_H_RETH) {
		pkt->va = get_be64(b);
		pkt->rkey = get_be32(b + 8);
		pkt->dma_len = get_be32(b + 12);
		b += 16;
	}
	if (headers & WIRE_H_ATOMICETH) {
		pkt->va = get_be64(b);
		pkt->rkey = get_be32(b + 8);
		pkt->swap_add = get_be64(b + 12);
		pkt->compare = get_be64(b + 20);
		b += 28;
	}
	if (headers & WIRE_H_AETH) {
		pkt->syndrome = b[0];
		pkt->msn = get_be24(b + 1);
		b += 4;
	}
	if (headers & WIRE_H_ATOMICACKETH) {
		pkt->orig = get_be64(b);
		b += 8;
	}
	if (headers & WIRE_H_IMMDT) {
		memcpy(&pkt->imm_be, b, sizeof(pkt->imm_be));
		b += 4;
	}
	if (headers & WIRE_H_IETH)
		pkt->inv_rkey = get_be32(b);
}

static void encode_bth(uint8_t *b, const struct wire_pkt *pkt)
{
	b[0] = pkt->op->code;
	b[1] = (pkt->se ? BTH_SE : 0) | (pkt->mig ? BTH_MIG : 0) | wire_pad(pkt->payload_len) << 4;
	put_be16(b + 2, pkt->pkey);
	b[4] = (pkt->fecn ? BTH_FECN : 0) | (pkt->becn ? BTH_BECN : 0);
	put_be24(b + 5, pkt->dest_qpn);
	b[8] = pkt->ackreq ? BTH_ACKREQ : 0;
	put_be24(b + 9, pkt->psn);
}

static void encode_ext(uint8_t *b, const struct wire_pkt *pkt, unsigned int headers)
{
	if (headers & WIRE_H_DETH) {
		put_be32(b, pkt->qkey);
		b[4] = 0;
		put_be24(b + 5, pkt->src_qpn);
		b += 8;
	}
	if (headers & WIRE_H_XRCETH) {
		b[0] = 0;
		put_be24(b + 1, pkt->srqn);
		b += 4;
	}
	if (headers & WIRE_H_RETH) {
		put_be64(b, pkt->va);
		put_be32(b + 8, pkt->rkey);
		put_be32(b + 12, pkt->dma_len);
		b += 16;
	}
	if (headers & WIRE_H_ATOMICETH) {
		put_be64(b, pkt->va);
		put_be32(b + 8, pkt->rkey);
		put_be64(b + 12, pkt->swap_add);
		put_be64(b + 20, pkt->compare);
		b += 28;
	}
	if (headers & WIRE_H_AETH) {
		b[0] = pkt->syndrome;
		put_be24(b + 1, pkt->msn);
		b += 4;
	}
	if (headers & WIRE_H_ATOMICACKETH) {
		put_be64(b, pkt->orig);
		b += 8;
	}
	if (headers & WIRE_H_IMMDT) {
		memcpy(b, &pkt->imm_be, sizeof(pkt->imm_be));
		b += 4;
	}
	if (headers & WIRE_H_IETH) {
		put_be32(b, pkt->inv_rkey);
		b += 4;
	}
	if (headers & WIRE_H_CNPRESV)
		memset(b, 0, 16);
}

enum wire_verdict wire_decode(struct wire_pkt *pkt, const uint8_t *b, size_t len)
{
	const struct wire_opcode *op;
	size_t body;

	pkt->op = NULL;
	if (unlikely(len < WIRE_BTH_LEN || len & 3))
		return WIRE_SHORT;
	op = wire_opcode(b[0]);
	if (unlikely(!op))
		return WIRE_OPCODE;
	pkt->op = op;
	if (unlikely(b[1] & BTH_TVER))
		return WIRE_VERSION;
	if (unlikely(len < op->hdr_len))
		return WIRE_SHORT;
	decode_bth(pkt, b);
	body = len - op->hdr_len;
	if (unlikely(body < pkt->pad || (body && !op->payload)))
		return WIRE_SHORT;
	decode_ext(pkt, b + WIRE_BTH_LEN, op->headers);
	pkt->payload = b + op->hdr_len;
	pkt->payload_len = body - pkt->pad;
	return WIRE_OK;
}

size_t wire_encode_hdr(uint8_t *b, const struct wire_pkt *pkt)
{
	const struct wire_opcode *op = pkt->op;

	assert(op->payload || !pkt->payload_len);
	encode_bth(b, pkt);
	encode_ext(b + WIRE_BTH_LEN, pkt, op->headers);
	return op->hdr_len;
}

uint64_t wire_rnr_ns(uint8_t timer)
{
	return rnr_10us[WIRE_SYN_DETAIL(timer)] * UINT64_C(10000);
}
