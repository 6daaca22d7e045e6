/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * -V: every field of a packet, header by header.
 *
 * A walk over the sections and the rows of their fields; nothing here knows a header. Only what is said of
 * the packet as a whole stands outside: its notes, and what the ICRC should have been.
 */
#include "pcap-dissect/dis.h"

#include "base/macros.h"

#define BYTES_SHOWN 32

static void tree_bytes(struct dis_out *o, const uint8_t *b, uint32_t n)
{
	uint32_t shown = n;

	/* Private data are mostly zeros: say how many, do not print them. */
	while (shown && !b[shown - 1])
		shown--;
	if (n - shown < 8)
		shown = n;
	if (shown > BYTES_SHOWN)
		shown = BYTES_SHOWN;
	out_bytes(o, b, shown);
	if (shown == n)
		return;
	out_str(o, shown ? " and " : "");
	out_dec(o, n - shown);
	for (uint32_t i = shown; i < n; i++) {
		if (b[i]) {
			out_str(o, " more");
			return;
		}
	}
	out_str(o, " zeros");
}

static void tree_number(struct dis_out *o, const struct dis_field_info *f, uint64_t v)
{
	char buf[DIS_WORDS_MAX];
	const char *words = dis_value_words(f->values, v, buf);

	if (f->base == DIS_HEX)
		out_hex(o, v, (f->bits + 3) / 4);
	else
		out_dec(o, v);
	if (words) {
		out_str(o, " (");
		out_str(o, words);
		out_char(o, ')');
	}
}

static void tree_value(struct dis_out *o, const struct dis_packet *p, enum dis_field field,
		       const struct dis_section *s)
{
	const struct dis_field_info *f = &dis_field_table[field];

	if (dis_field_address(o, f, s))
		return;
	if (f->base == DIS_BYTES || f->base == DIS_DATA)
		tree_bytes(o, s->b + f->byte,
			   min_t(uint32_t, dis_field_bytes(f, s), s->have - f->byte));
	else if (f->base == DIS_TIME)
		dis_time_value(o, DIS_CLOCK_DATE, p->ts);
	else
		tree_number(o, f, dis_field_value(p, field, s));
}

static void tree_section(struct dis_out *o, const struct dis_packet *p, const struct dis_section *s)
{
	const struct dis_hdr_info *h = dis_hdr_info(s->hdr);

	dis_out_room(o);
	out_str(o, s->hdr == DIS_H_FRAME ? "" : "    ");
	out_str(o, h->title);
	if (s->have < s->len) {
		out_str(o, " [");
		out_dec(o, s->have);
		out_str(o, " of ");
		out_dec(o, s->len);
		out_str(o, " bytes]");
	}
	out_char(o, '\n');
	for (unsigned int i = h->first; i < h->first + h->count; i++) {
		const struct dis_field_info *f = &dis_field_table[i];

		if (!dis_field_there(f, s))
			continue;
		dis_out_room(o);
		out_str(o, "        ");
		out_str(o, f->label);
		out_str(o, ": ");
		tree_value(o, p, i, s);
		out_char(o, '\n');
	}
}

static void tree_notes(struct dis_out *o, const struct dis_packet *p)
{
	static const char *const why[] = {
#define NOTE(token, text, reason) reason,
#include "pcap-dissect/notes.def"
#undef NOTE
	};

	dis_out_room(o);
	if (p->icrc == DIS_ICRC_BAD) {
		out_str(o, "        Should be: ");
		out_hex(o, p->icrc_want, 8);
		out_char(o, '\n');
	}
	for (unsigned int i = 0; i < DIS_NOTE_COUNT; i++) {
		if (!(p->notes & 1u << i))
			continue;
		out_str(o, "    [");
		out_str(o, dis_note_words(i));
		out_str(o, ": ");
		out_str(o, why[i]);
		out_str(o, "]\n");
	}
}

void dis_tree(struct dis_out *o, struct dis_style *style, const struct dis_packet *p)
{
	struct dis_section s[DIS_SECTIONS_MAX];
	unsigned int n = dis_sections(p, s);

	(void)style;
	for (unsigned int i = 0; i < n; i++)
		tree_section(o, p, &s[i]);
	tree_notes(o, p);
	out_char(o, '\n');
}
