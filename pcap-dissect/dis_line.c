/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One line a packet, as tcpdump's users expect it:
 *
 *   20:26:51.475855 IP 10.99.0.3.55410 > 10.99.0.2.4791: XRC SEND Only, qp 0x000012, psn 7, srqn 0x020001,
 *	ackreq, length 64, icrc ok
 *
 * The order is that of the bytes: BTH, extension headers, the BTH's flags that are set, the payload's length,
 * the ICRC. What was not captured is left out, and a note in brackets at the end says why. QP, SRQ and key
 * numbers are hexadecimal with all their digits, so that they can be searched for; sequence numbers are
 * decimal, so that a gap can be seen.
 *
 * This is the path that must keep up with a million packets a second: every number is written by a function
 * that knows its format, every name is a literal or one look-up.
 */
#include "pcap-dissect/dis.h"

#include "base/bytes.h"
#include "pcap-dissect/dis_link.h"

static void line_addresses(struct dis_out *o, const struct dis_packet *p)
{
	out_str(o, p->ip_version == 4 ? "IP " : "IP6 ");
	out_ip(o, p->src);
	if (p->layer >= DIS_LAYER_UDP) {
		out_char(o, '.');
		out_dec(o, p->sport);
	}
	out_str(o, " > ");
	out_ip(o, p->dst);
	if (p->layer >= DIS_LAYER_UDP) {
		out_char(o, '.');
		out_dec(o, p->dport);
	}
	out_str(o, ": ");
}

static void line_aeth(struct dis_out *o, const struct wire_pkt *pkt)
{
	out_str(o, ", ");
	out_str(o, dis_syndrome_words(pkt->syndrome));
	out_str(o, " msn ");
	out_dec(o, pkt->msn);
}

static void line_rdma(struct dis_out *o, const struct wire_pkt *pkt)
{
	out_str(o, ", va ");
	out_hex(o, pkt->va, 16);
	out_str(o, " rkey ");
	out_hex(o, pkt->rkey, 8);
	if (pkt->op->headers & WIRE_H_RETH) {
		out_str(o, " dlen ");
		out_dec(o, pkt->dma_len);
		return;
	}
	out_str(o, pkt->op->kind == WIRE_KIND_CMP_SWAP ? " swap " : " add ");
	out_hex(o, pkt->swap_add, 16);
	if (pkt->op->kind == WIRE_KIND_CMP_SWAP) {
		out_str(o, " compare ");
		out_hex(o, pkt->compare, 16);
	}
}

/* The headers behind the BTH, as far as they were captured. */
static void line_extensions(struct dis_out *o, const struct dis_packet *p)
{
	const struct wire_pkt *pkt = &p->pkt;
	unsigned int headers = pkt->op->headers;

	if (p->have < pkt->op->hdr_len)
		for (unsigned int h = WIRE_H_DETH; h <= WIRE_H_CNPRESV; h <<= 1)
			if (!dis_has_hdr(p, h))
				headers &= ~h;
	if (headers & WIRE_H_DETH) {
		out_str(o, ", src-qp ");
		out_hex(o, pkt->src_qpn, 6);
		out_str(o, " qkey ");
		out_hex(o, pkt->qkey, 8);
	}
	if (headers & WIRE_H_XRCETH) {
		out_str(o, ", srqn ");
		out_hex(o, pkt->srqn, 6);
	}
	if (headers & (WIRE_H_RETH | WIRE_H_ATOMICETH))
		line_rdma(o, pkt);
	if (headers & WIRE_H_AETH)
		line_aeth(o, pkt);
	if (headers & WIRE_H_ATOMICACKETH) {
		out_str(o, ", orig ");
		out_hex(o, pkt->orig, 16);
	}
	if (headers & WIRE_H_IMMDT) {
		out_str(o, ", imm ");
		out_hex(o, be32toh(pkt->imm_be), 8);
	}
	if (headers & WIRE_H_IETH) {
		out_str(o, ", inv-rkey ");
		out_hex(o, pkt->inv_rkey, 8);
	}
}

/* What is rarely set in a BTH. */
static void line_flags(struct dis_out *o, const struct wire_pkt *pkt)
{
	if (pkt->ackreq)
		out_str(o, ", ackreq");
	if (pkt->se)
		out_str(o, ", se");
	if (pkt->fecn)
		out_str(o, ", fecn");
	if (pkt->becn)
		out_str(o, ", becn");
	if (pkt->pkey != WIRE_PKEY_DEFAULT) {
		out_str(o, ", pkey ");
		out_hex(o, pkt->pkey, 4);
	}
}

static void out_around(struct dis_out *o, const char *before, const char *s, const char *behind)
{
	out_str(o, before);
	out_str(o, s);
	out_str(o, behind);
}

static void line_cm_field(struct dis_out *o, const struct dis_packet *p, enum dis_field field)
{
	const struct dis_field_info *f = &dis_field_table[field];
	const uint8_t *b = p->mad + DIS_MAD_HDR_LEN + f->byte;
	char buf[DIS_WORDS_MAX];
	const char *words;
	uint64_t v;

	out_char(o, ' ');
	out_str(o, f->brief);
	out_char(o, ' ');
	if (f->base == DIS_IP) {
		out_ip(o, b);
		return;
	}
	dis_cm_get(p, field, &v);
	words = dis_value_words(f->values, v, buf);
	if (field == DIS_F_CM_REQ_TRANSPORT && v == 3 &&
	    dis_cm_get(p, DIS_F_CM_REQ_EXT_TRANSPORT, &v))
		words = dis_value_words(DIS_V_CM_EXT_TRANSPORT, v, buf);
	/* Numbers that one searches for stay; elsewhere the words say it all. */
	if (f->base == DIS_HEX) {
		out_hex(o, v, (f->bits + 3) / 4);
		if (words)
			out_around(o, " (", words, ")");
	} else if (words) {
		out_around(o, strchr(words, ' ') ? "\"" : "", words,
			   strchr(words, ' ') ? "\"" : "");
	} else {
		out_dec(o, v);
	}
}

/* "CM REQ local-id 0x..., ...": the fields whose rows have a brief name. */
static void line_cm(struct dis_out *o, const struct dis_packet *p)
{
	const struct dis_hdr_info *h = dis_hdr_info(p->cm_hdr);
	struct dis_section s = {p->cm_hdr, p->mad + DIS_MAD_HDR_LEN, DIS_MAD_LEN - DIS_MAD_HDR_LEN,
				p->mad_have - DIS_MAD_HDR_LEN};
	const char *name_end = strstr(h->title, " - ");

	out_str(o, ", ");
	out_mem(o, h->title, name_end - h->title);
	for (unsigned int i = h->first; i < h->first + h->count; i++)
		if (dis_field_table[i].brief && dis_field_there(&dis_field_table[i], &s))
			line_cm_field(o, p, i);
	if (p->ip_cm && p->mad + p->mad_have - p->ip_cm >= 36) {
		out_str(o, " ip ");
		out_ip_last(o, p->ip_cm + 4);
		out_char(o, '.');
		out_dec(o, get_be16(p->ip_cm + 2));
		out_str(o, " > ");
		out_ip_last(o, p->ip_cm + 20);
	}
}

static void line_mad(struct dis_out *o, const struct dis_packet *p)
{
	if (p->mad_have < DIS_MAD_HDR_LEN) {
		out_str(o, ", MAD");
		return;
	}
	out_str(o, ", MAD class ");
	out_hex(o, p->mad[1], 2);
	out_str(o, " method ");
	out_hex(o, p->mad[3], 2);
	out_str(o, " attribute ");
	out_hex(o, get_be16(p->mad + 16), 4);
}

static void line_icrc(struct dis_out *o, const struct dis_packet *p)
{
	if (p->icrc == DIS_ICRC_GOOD) {
		out_str(o, ", icrc ok");
	} else if (p->icrc == DIS_ICRC_BAD) {
		out_str(o, ", icrc bad (");
		out_hex(o, p->icrc_got, 8);
		out_str(o, ", should be ");
		out_hex(o, p->icrc_want, 8);
		out_char(o, ')');
	}
}

static void line_roce(struct dis_out *o, const struct dis_packet *p)
{
	const struct wire_pkt *pkt = &p->pkt;

	if (!p->have) {
		out_str(o, "RoCEv2");
		return;
	}
	out_str(o, dis_opcode_words(p->bth[0]));
	if (p->have >= 8) {
		out_str(o, ", qp ");
		out_hex(o, pkt->dest_qpn, 6);
	}
	if (p->have >= WIRE_BTH_LEN) {
		out_str(o, ", psn ");
		out_dec(o, pkt->psn);
		if (pkt->op)
			line_extensions(o, p);
		line_flags(o, pkt);
	}
	if (p->cm_hdr)
		line_cm(o, p);
	else if (p->mad)
		line_mad(o, p);
	out_str(o, ", length ");
	out_dec(o, pkt->payload_len);
	line_icrc(o, p);
}

/* What is no transport packet: enough to see what it is. */
static void line_other(struct dis_out *o, const struct dis_packet *p)
{
	char buf[DIS_WORDS_MAX];
	const char *words;

	if (p->layer == DIS_LAYER_LINK) {
		words = p->ethertype ? dis_value_words(DIS_V_ETHERTYPE, p->ethertype, buf) : "IP";
		out_str(o, p->ethertype ? "ethertype " : "not");
		if (p->ethertype)
			out_hex(o, p->ethertype, 4);
	} else if (p->layer == DIS_LAYER_UDP) {
		words = "UDP";
	} else {
		words = dis_value_words(DIS_V_IP_PROTO, p->proto, buf);
		out_str(o, "protocol ");
		out_dec(o, p->proto);
	}
	if (words) {
		out_str(o, p->layer == DIS_LAYER_UDP ? "" : " ");
		out_str(o, words);
	}
	out_str(o, ", length ");
	if (p->layer == DIS_LAYER_LINK)
		out_dec(o, p->len);
	else
		out_dec(o, p->ip_len > p->ip_hdr_len ? p->ip_len - p->ip_hdr_len : 0);
}

static void line_notes(struct dis_out *o, const struct dis_packet *p)
{
	for (unsigned int i = 0; i < DIS_NOTE_COUNT; i++) {
		if (!(p->notes & 1u << i))
			continue;
		out_str(o, " [");
		out_str(o, dis_note_words(i));
		if (i == DIS_NOTE_BIT_FRAGMENT) {
			out_str(o, " id ");
			out_hex(o, p->frag_id, p->ip_version == 4 ? 4 : 8);
			out_str(o, " offset ");
			out_dec(o, p->frag_off);
		}
		out_char(o, ']');
	}
}

void dis_line(struct dis_out *o, struct dis_style *style, const struct dis_packet *p)
{
	dis_out_room(o);
	if (style->number) {
		out_dec(o, p->number);
		out_char(o, ' ');
	}
	dis_time(o, style, p->ts);
	if (style->link) {
		dis_line_link(o, p);
		dis_out_room(o);
	}
	if (p->layer >= DIS_LAYER_IP)
		line_addresses(o, p);
	if (p->layer == DIS_LAYER_ROCE)
		line_roce(o, p);
	else
		line_other(o, p);
	if (p->notes)
		line_notes(o, p);
	out_char(o, '\n');
}
