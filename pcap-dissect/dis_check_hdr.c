/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules that one packet keeps or breaks by itself: reserved bits, lengths, padding, addresses.
 *
 * A packet with a wrong ICRC is reported for that alone: its bits are not the sender's. One that is longer
 * than any packet was captured before it was cut into several.
 */
#include "pcap-dissect/dis_check.h"

#include "base/bytes.h"

#define VENDOR_OPCODES 0xc0 /* from here on they belong to manufacturers */
#define RD_FIRST       0x40 /* RD exists, but not in opcode.def */
#define RD_END	       0x60
#define GSI_QKEY       0x80010000
#define MTU_MAX	       4096
#define MAX_MESSAGE    (1u << 31)

/* Returns false when nothing behind the BTH can be relied on. */
static bool check_shape(const struct dis_packet *p)
{
	uint8_t code = p->have ? p->bth[0] : 0;

	if (p->icrc == DIS_ICRC_BAD && p->bth_len > WIRE_MAX_HDR_LEN + MTU_MAX) {
		dis_report(DIS_RULE_SEGMENTED, p->number, "%u bytes", p->bth_len);
		return false;
	}
	if (p->icrc == DIS_ICRC_BAD) {
		dis_report(DIS_RULE_ICRC_BAD, p->number, "0x%08x, should be 0x%08x", p->icrc_got,
			   p->icrc_want);
		return false;
	}
	if (p->have < WIRE_BTH_LEN || p->notes & (DIS_NOTE(TRUNCATED) | DIS_NOTE(FRAGMENT)))
		return false;
	if (p->notes & DIS_NOTE(TVER))
		dis_report(DIS_RULE_TVER, p->number, "%u", p->bth[1] & 15);
	if (p->notes & DIS_NOTE(OPCODE)) {
		if (code < VENDOR_OPCODES && (code < RD_FIRST || code >= RD_END))
			dis_report(DIS_RULE_OPCODE_RESERVED, p->number, "0x%02x", code);
		return false;
	}
	if (p->notes & DIS_NOTE(PAD))
		dis_report(DIS_RULE_PAD_COUNT, p->number, "%u", p->pkt.pad);
	else if (p->notes &
		 (DIS_NOTE(SHORT) | DIS_NOTE(UNALIGNED) | DIS_NOTE(EXCESS) | DIS_NOTE(UDP_LENGTH)))
		dis_report(DIS_RULE_LENGTH, p->number, "%u bytes behind UDP for %s",
			   p->bth_len + WIRE_ICRC_LEN, dis_opcode_words(code));
	else
		return p->pkt.op && p->have >= p->pkt.op->hdr_len;
	return false;
}

static void check_bth(const struct dis_packet *p)
{
	const struct wire_pkt *pkt = &p->pkt;
	const struct wire_opcode *op = pkt->op;

	if (p->bth[4] & 0x3f || p->bth[8] & 0x7f)
		dis_report(DIS_RULE_BTH_RESERVED, p->number, "byte 4: 0x%02x, byte 8: 0x%02x",
			   p->bth[4] & 0x3f, p->bth[8] & 0x7f);
	if (!(pkt->pkey & 0x7fff) && op->kind != WIRE_KIND_CNP)
		dis_report(DIS_RULE_PKEY_INVALID, p->number, "0x%04x", pkt->pkey);
	if (pkt->dest_qpn == 0xffffff && op->transport != WIRE_TRANSPORT_UD &&
	    op->kind != WIRE_KIND_CNP)
		dis_report(DIS_RULE_QPN_MULTICAST, p->number, "%s", dis_opcode_words(op->code));
	if (pkt->se && !(op->pos & WIRE_POS_LAST))
		dis_report(DIS_RULE_SE_EARLY, p->number, "%s", dis_opcode_words(op->code));
}

static void check_payload(const struct dis_packet *p)
{
	const struct wire_pkt *pkt = &p->pkt;
	uint32_t have = p->have - pkt->op->hdr_len;

	if (pkt->pad && !(pkt->op->pos & WIRE_POS_LAST)) {
		dis_report(DIS_RULE_PAD_COUNT, p->number, "%u in %s", pkt->pad,
			   dis_opcode_words(pkt->op->code));
		return;
	}
	for (uint32_t i = 0; i < pkt->pad && pkt->payload_len + i < have; i++) {
		if (pkt->payload[pkt->payload_len + i]) {
			dis_report(DIS_RULE_PAD_NONZERO, p->number, "0x%02x",
				   pkt->payload[pkt->payload_len + i]);
			break;
		}
	}
}

static void check_rdma(const struct dis_packet *p)
{
	const struct wire_pkt *pkt = &p->pkt;
	const struct wire_opcode *op = pkt->op;

	if (op->headers & WIRE_H_ATOMICETH && pkt->va & 7)
		dis_report(DIS_RULE_ATOMIC_ALIGN, p->number, "0x%016llx",
			   (unsigned long long)pkt->va);
	if (!(op->headers & WIRE_H_RETH))
		return;
	if (pkt->dma_len > MAX_MESSAGE)
		dis_report(DIS_RULE_RETH_TOO_LONG, p->number, "%u", pkt->dma_len);
	else if (op->kind == WIRE_KIND_WRITE &&
		 (op->pos == WIRE_POS_ONLY ? pkt->dma_len != pkt->payload_len
					   : pkt->dma_len <= pkt->payload_len))
		dis_report(DIS_RULE_RETH_LENGTH, p->number, "%u, %s carries %u", pkt->dma_len,
			   dis_opcode_words(op->code), pkt->payload_len);
}

static void check_aeth(const struct dis_packet *p)
{
	const struct wire_pkt *pkt = &p->pkt;
	uint8_t s = pkt->syndrome, kind = WIRE_SYN_KIND(s);

	if (s & 0x80 || kind == WIRE_SYN_RSVD ||
	    (kind == WIRE_SYN_NAK && s > WIRE_NAK_INVALID_RD_REQUEST))
		dis_report(DIS_RULE_SYNDROME_RESERVED, p->number, "0x%02x", s);
	else if (kind != WIRE_SYN_ACK && pkt->op->kind != WIRE_KIND_ACK)
		dis_report(DIS_RULE_SYNDROME_KIND, p->number, "%s: %s",
			   dis_opcode_words(pkt->op->code), dis_syndrome_words(s));
}

static void check_datagram(const struct dis_packet *p)
{
	if (p->bth[WIRE_BTH_LEN + 4])
		dis_report(DIS_RULE_DETH_RESERVED, p->number, "0x%02x", p->bth[WIRE_BTH_LEN + 4]);
	if (p->pkt.dest_qpn == 1 && p->pkt.qkey != GSI_QKEY)
		dis_report(DIS_RULE_GSI_QKEY, p->number, "0x%08x", p->pkt.qkey);
	if (p->notes & DIS_NOTE(MAD))
		dis_report(DIS_RULE_MAD_LENGTH, p->number, "%u", p->pkt.payload_len);
}

static void check_cnp(const struct dis_packet *p)
{
	const struct wire_pkt *pkt = &p->pkt;
	const uint8_t *reserved = p->bth + WIRE_BTH_LEN;
	uint8_t any = 0;

	for (uint32_t i = WIRE_BTH_LEN; i < pkt->op->hdr_len; i++)
		any |= *reserved++;
	if (pkt->se || pkt->ackreq || pkt->psn || !pkt->becn || any)
		dis_report(DIS_RULE_CNP_FIELDS, p->number,
			   "SE %u, AckReq %u, PSN %u, BECN %u, reserved bytes %s", pkt->se,
			   pkt->ackreq, pkt->psn, pkt->becn, any ? "used" : "0");
}

void dis_check_hdr(const struct dis_packet *p)
{
	const struct wire_opcode *op;

	if (p->layer != DIS_LAYER_ROCE || !check_shape(p))
		return;
	op = p->pkt.op;
	check_bth(p);
	check_payload(p);
	if (op->headers & WIRE_H_XRCETH && p->bth[WIRE_BTH_LEN])
		dis_report(DIS_RULE_XRCETH_RESERVED, p->number, "0x%02x", p->bth[WIRE_BTH_LEN]);
	if (op->headers & (WIRE_H_RETH | WIRE_H_ATOMICETH))
		check_rdma(p);
	if (op->headers & WIRE_H_AETH)
		check_aeth(p);
	if (op->transport == WIRE_TRANSPORT_UD)
		check_datagram(p);
	if (op->kind == WIRE_KIND_CNP)
		check_cnp(p);
}
