/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * -e: the link-level header at the beginning of a line, in the words of tcpdump:
 *
 *   02:00:00:00:00:a0 > 02:00:00:00:00:b0, ethertype VLAN (0x8100), vlan 100, p 5, ethertype IPv4 (0x0800), length 74:
 *
 * A row for each field that is shown, in this order; what was not captured is left out. Bare IP has the length
 * only. Nobody asks for it at a million packets a second, so the sections are good enough.
 */
#include "pcap-dissect/dis.h"

#include "base/macros.h"

static const struct {
	uint16_t field; /* enum dis_field */
	const char *before;
} rows[] = {
	{DIS_F_ETH_SRC, ""},
	{DIS_F_ETH_DST, " > "},
	{DIS_F_ETH_TYPE, ", ethertype "},
	{DIS_F_VLAN_ID, ", vlan "},
	{DIS_F_VLAN_PRIORITY, ", p "},
	{DIS_F_VLAN_DEI, ", DEI"},
	{DIS_F_VLAN_TYPE, ", ethertype "},
	{DIS_F_SLL_PKTTYPE, ""},
	{DIS_F_SLL_SRC, " "},
	{DIS_F_SLL_TYPE, ", ethertype "},
	{DIS_F_SLL2_IFINDEX, "ifindex "},
	{DIS_F_SLL2_PKTTYPE, " "},
	{DIS_F_SLL2_SRC, " "},
	{DIS_F_SLL2_TYPE, ", ethertype "},
	{DIS_F_LOOPBACK_FAMILY, "AF "},
};

static void link_number(struct dis_out *o, const struct dis_field_info *f, uint64_t v)
{
	static const char *const directions[] = {"In", "B", "M", "P", "Out"};
	char buf[DIS_WORDS_MAX];
	const char *words = dis_value_words(f->values, v, buf);

	if (f->values == DIS_V_PACKET_TYPE && v < ARRAY_SIZE(directions)) {
		out_str(o, directions[v]);
	} else if (f->values == DIS_V_ETHERTYPE) {
		out_str(o, words ? words : "unknown");
		out_str(o, " (");
		out_hex(o, v, 4);
		out_char(o, ')');
	} else if (f->base == DIS_HEX) {
		out_hex(o, v, f->bits / 4);
	} else {
		out_dec(o, v);
	}
}

static void link_field(struct dis_out *o, const struct dis_packet *p, uint16_t field,
		       const struct dis_section *s, const char *before, bool first)
{
	const struct dis_field_info *f = &dis_field_table[field];
	uint64_t v;

	if (f->hdr != s->hdr || !dis_field_there(f, s))
		return;
	if (f->base == DIS_BOOL) {
		if (dis_field_value(p, field, s))
			out_str(o, before);
		return;
	}
	/* The source that should stand here was cut off: it lies behind the destination. */
	if (first && *before == ' ')
		out_char(o, '?');
	out_str(o, before);
	if (dis_field_address(o, f, s))
		return;
	v = dis_field_value(p, field, s);
	if (f->base == DIS_BYTES) /* of Linux cooked captures: eight, of which Ethernet has six */
		out_mac(o, s->b + f->byte);
	else
		link_number(o, f, v);
}

void dis_line_link(struct dis_out *o, const struct dis_packet *p)
{
	struct dis_section s[DIS_SECTIONS_MAX];
	unsigned int n = dis_sections(p, s);
	const char *start = o->p;

	/* The frame is first; behind the link's are those of IP. */
	for (unsigned int i = 1; i < n; i++)
		for (size_t k = 0; k < ARRAY_SIZE(rows); k++)
			link_field(o, p, rows[k].field, &s[i], rows[k].before, o->p == start);
	out_str(o, o->p > start ? ", length " : "length ");
	out_dec(o, p->len);
	out_str(o, ": ");
}
