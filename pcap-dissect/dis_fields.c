/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A packet as a row of sections, and the values of fields in them.
 *
 * dis_decode() keeps only pointers to where the layers begin; the sections between them are found here
 * again, for the outputs that show everything. Every section carries how many of its bytes were
 * captured, and a field is read only where all of its bytes are.
 */
#include "pcap-dissect/dis_fields.h"

#include "base/bytes.h"
#include "base/macros.h"
#include "pcap-dissect/dis.h"
#include "pcap-dissect/dis_link.h"

const struct dis_field_info dis_field_table[DIS_F_COUNT] = {
#define F(header, token, nam, lab, at, first_bit, width, form, set, word)                          \
	[DIS_F_##header##_##token] = {                                                             \
		.name = nam,                                                                       \
		.label = lab,                                                                      \
		.brief = word,                                                                     \
		.hdr = DIS_H_##header,                                                             \
		.base = DIS_##form,                                                                \
		.values = DIS_V_##set,                                                             \
		.bit = first_bit,                                                                  \
		.byte = at,                                                                        \
		.bits = width,                                                                     \
	},
#include "pcap-dissect/fields.def"
#include "pcap-dissect/cm.def"
#undef F
};

/* The fields of a header follow each other in the table: count them once. */
static struct dis_hdr_info hdr_table[DIS_H_COUNT] = {
#define H(token, text) [DIS_H_##token] = {.title = text},
#include "pcap-dissect/fields.def"
#include "pcap-dissect/cm.def"
#undef H
};

static void __attribute__((constructor)) count_fields(void)
{
	for (unsigned int i = 0; i < DIS_F_COUNT; i++) {
		struct dis_hdr_info *h = &hdr_table[dis_field_table[i].hdr];

		if (!h->count++)
			h->first = i;
	}
}

const struct dis_hdr_info *dis_hdr_info(enum dis_hdr hdr)
{
	return &hdr_table[hdr];
}

const struct dis_extension dis_extensions[DIS_EXTENSIONS] = {
	{WIRE_H_DETH, DIS_H_DETH, 8},	     {WIRE_H_XRCETH, DIS_H_XRCETH, 4},
	{WIRE_H_RETH, DIS_H_RETH, 16},	     {WIRE_H_ATOMICETH, DIS_H_ATOMICETH, 28},
	{WIRE_H_AETH, DIS_H_AETH, 4},	     {WIRE_H_ATOMICACKETH, DIS_H_ATOMICACKETH, 8},
	{WIRE_H_IMMDT, DIS_H_IMMDT, 4},	     {WIRE_H_IETH, DIS_H_IETH, 4},
	{WIRE_H_CNPRESV, DIS_H_CNPRESV, 16},
};

bool dis_has_hdr(const struct dis_packet *p, enum wire_header h)
{
	uint32_t end = WIRE_BTH_LEN;

	if (!p->pkt.op || !(p->pkt.op->headers & h))
		return false;
	for (size_t i = 0; i < DIS_EXTENSIONS; i++) {
		if (p->pkt.op->headers & dis_extensions[i].header)
			end += dis_extensions[i].len;
		if (dis_extensions[i].header == h)
			break;
	}
	return p->have >= end;
}

/* The row of sections as it grows: a cursor over the captured bytes. */
struct cutter {
	struct dis_section *s;
	unsigned int n;
	const uint8_t *b;
	const uint8_t *end; /* of what was captured */
};

/* The next @len bytes are a header; one that was not captured at all is left out. */
static void cut(struct cutter *c, enum dis_hdr hdr, uint32_t len)
{
	uint32_t left = c->end - c->b;
	uint32_t have = len < left ? len : left;

	if (c->n == DIS_SECTIONS_MAX || (len && !have))
		return;
	c->s[c->n++] = (struct dis_section){.hdr = hdr, .b = c->b, .len = len, .have = have};
	c->b += have;
}

static void cut_ip6(struct cutter *c, const struct dis_packet *p)
{
	uint32_t left = p->ip_hdr_len - DIS_IP6_LEN;
	uint8_t next;

	cut(c, DIS_H_IP6, DIS_IP6_LEN);
	if (p->layer < DIS_LAYER_IP)
		return;
	next = p->ip[6];
	while (left >= 8 && c->end - c->b >= 8) {
		uint32_t len = dis_ip6_ext_len(next, c->b);

		if (!len || len > left)
			return;
		left -= len;
		/* The cut moves on: look at the next header's type before. */
		enum dis_hdr hdr = next == DIS_PROTO_FRAGMENT ? DIS_H_IP6_FRAG : DIS_H_IP6_EXT;

		next = c->b[0];
		cut(c, hdr, len);
	}
}

static void cut_network(struct cutter *c, const struct dis_packet *p)
{
	if (!p->ip)
		return;
	c->b = p->ip;
	if (p->ip_version == 6) {
		cut_ip6(c, p);
	} else {
		cut(c, DIS_H_IP4, DIS_IP4_LEN);
		if (p->ip_hdr_len > DIS_IP4_LEN)
			cut(c, DIS_H_IP4_OPTIONS, p->ip_hdr_len - DIS_IP4_LEN);
	}
	if (p->udp) {
		c->b = p->udp;
		cut(c, DIS_H_UDP, DIS_UDP_LEN);
	}
}

static void cut_mad(struct cutter *c, const struct dis_packet *p)
{
	const uint8_t *start = p->mad;

	c->b = start;
	c->end = start + p->mad_have;
	cut(c, DIS_H_MAD, DIS_MAD_HDR_LEN);
	if (p->cm_hdr)
		cut(c, p->cm_hdr, DIS_MAD_LEN - DIS_MAD_HDR_LEN);
	if (p->ip_cm) {
		c->b = p->ip_cm;
		cut(c, DIS_H_IP_CM, start + DIS_MAD_LEN - p->ip_cm);
	}
}

static void cut_transport(struct cutter *c, const struct dis_packet *p)
{
	const struct wire_opcode *op = p->pkt.op;
	const uint8_t *captured = c->end;

	c->b = p->bth;
	c->end = p->bth + p->have;
	cut(c, DIS_H_BTH, WIRE_BTH_LEN);
	for (size_t i = 0; op && i < DIS_EXTENSIONS; i++)
		if (op->headers & dis_extensions[i].header)
			cut(c, dis_extensions[i].hdr, dis_extensions[i].len);
	if (p->mad)
		cut_mad(c, p);
	else if (p->pkt.payload_len)
		cut(c, DIS_H_PAYLOAD, p->pkt.payload_len);
	/* The ICRC has a status also where it has no bytes. */
	c->b = p->bth + p->have;
	c->end = p->have == p->bth_len ? captured : c->b;
	if (c->n < DIS_SECTIONS_MAX)
		c->s[c->n++] =
			(struct dis_section){.hdr = DIS_H_ICRC,
					     .b = c->b,
					     .len = WIRE_ICRC_LEN,
					     .have = min_t(uint32_t, c->end - c->b, WIRE_ICRC_LEN)};
}

unsigned int dis_sections(const struct dis_packet *p, struct dis_section s[DIS_SECTIONS_MAX])
{
	struct cutter c = {.s = s, .b = p->frame, .end = p->frame + p->caplen};
	enum dis_hdr hdr;
	uint32_t len;

	cut(&c, DIS_H_FRAME, 0);
	hdr = dis_link_hdr(p->link, &len);
	if (hdr)
		cut(&c, hdr, len);
	for (unsigned int i = 0; i < p->vlans; i++)
		cut(&c, DIS_H_VLAN, DIS_VLAN_LEN);
	cut_network(&c, p);
	if (p->layer == DIS_LAYER_ROCE)
		cut_transport(&c, p);
	return c.n;
}

uint32_t dis_field_bytes(const struct dis_field_info *f, const struct dis_section *s)
{
	if (!f->bits)
		return s->len > f->byte ? s->len - f->byte : 0;
	return (f->bit + f->bits + 7u) / 8;
}

bool dis_field_there(const struct dis_field_info *f, const struct dis_section *s)
{
	if (f->base == DIS_CALC || f->base == DIS_TIME)
		return true;
	/* Of a run of bytes to the end, what there is. */
	if (!f->bits)
		return s->have > f->byte;
	return f->byte + dis_field_bytes(f, s) <= s->have;
}

bool dis_field_address(struct dis_out *o, const struct dis_field_info *f,
		       const struct dis_section *s)
{
	static void (*const out[])(struct dis_out * o, const uint8_t *b) = {
		[DIS_MAC] = out_mac,
		[DIS_IP4] = out_ip4,
		[DIS_IP] = out_ip,
		[DIS_IP_LAST] = out_ip_last,
	};

	if (f->base >= ARRAY_SIZE(out) || !out[f->base])
		return false;
	out[f->base](o, s->b + f->byte);
	return true;
}

static uint64_t calculated(const struct dis_packet *p, enum dis_field field)
{
	switch (field) {
	case DIS_F_FRAME_NUMBER:
		return p->number;
	case DIS_F_FRAME_TIME:
		return p->ts;
	case DIS_F_FRAME_LEN:
		return p->len;
	case DIS_F_FRAME_CAP_LEN:
		return p->caplen;
	case DIS_F_PAYLOAD_LEN:
		return p->pkt.payload_len;
	case DIS_F_ICRC_STATUS:
		return p->icrc;
	default:
		return 0;
	}
}

uint64_t dis_field_value(const struct dis_packet *p, enum dis_field field,
			 const struct dis_section *s)
{
	const struct dis_field_info *f = &dis_field_table[field];
	const uint8_t *b = s->b + f->byte;
	uint64_t v = 0;

	if (f->base == DIS_CALC || f->base == DIS_TIME)
		return calculated(p, field);
	for (uint32_t i = 0; i < dis_field_bytes(f, s); i++)
		v = v << 8 | b[i];
	v >>= (8 - (f->bit + f->bits) % 8) % 8;
	return f->bits < 64 ? v & ((UINT64_C(1) << f->bits) - 1) : v;
}

bool dis_cm_get(const struct dis_packet *p, enum dis_field field, uint64_t *value)
{
	const struct dis_field_info *f = &dis_field_table[field];
	struct dis_section s = {.hdr = f->hdr};

	if (!p->cm_hdr || (f->hdr != p->cm_hdr && !(f->hdr == DIS_H_IP_CM && p->ip_cm)))
		return false;
	s.b = f->hdr == DIS_H_IP_CM ? p->ip_cm : p->mad + DIS_MAD_HDR_LEN;
	s.have = p->mad + p->mad_have - s.b;
	s.len = s.have;
	if (!dis_field_there(f, &s))
		return false;
	*value = dis_field_value(p, field, &s);
	return true;
}
