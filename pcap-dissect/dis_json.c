/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * --json: one object a line, flat, its keys the names of fields.def.
 *
 *   {"frame.number":1,...,"roce.bth.opcode":164,"roce.bth.opcode.text":"XRC SEND Only",...,"notes":[]}
 *
 * Numbers of up to 32 bits are JSON numbers. Wider ones are strings of hexadecimal digits, since readers that
 * know only doubles would round them; so are runs of bytes, without "0x". Single bits are true or false. A
 * value that has words is followed by NAME.text. When a header occurs more than once, a second VLAN tag for
 * instance, the keys of the second end in "#2". The payload is left out, its length is there.
 */
#include "pcap-dissect/dis.h"

#include "base/macros.h"

static void json_key(struct dis_out *o, const char *name, const char *suffix, unsigned int copy)
{
	out_str(o, ",\"");
	out_str(o, name);
	out_str(o, suffix);
	if (copy > 1) {
		out_char(o, '#');
		out_dec(o, copy);
	}
	out_str(o, "\":");
}

/* Values that are no numbers; in quotes. */
static void json_quoted(struct dis_out *o, const struct dis_packet *p,
			const struct dis_field_info *f, const struct dis_section *s)
{
	uint32_t n;

	out_char(o, '"');
	if (f->base == DIS_TIME) {
		dis_time_value(o, DIS_CLOCK_EPOCH, p->ts);
	} else if (!dis_field_address(o, f, s)) {
		n = min_t(uint32_t, dis_field_bytes(f, s), s->have - f->byte);
		out_bytes(o, s->b + f->byte, min_t(uint32_t, n, 1024));
	}
	out_char(o, '"');
}

static void json_number(struct dis_out *o, const struct dis_field_info *f, uint64_t v,
			unsigned int copy)
{
	char buf[DIS_WORDS_MAX];
	const char *words = dis_value_words(f->values, v, buf);

	if (f->base == DIS_BOOL) {
		out_str(o, v ? "true" : "false");
	} else if (f->bits > 32) {
		out_char(o, '"');
		out_hex(o, v, (f->bits + 3) / 4);
		out_char(o, '"');
	} else {
		out_dec(o, v);
	}
	if (words) {
		json_key(o, f->name, ".text", copy);
		out_json_name(o, words);
	}
}

static void json_field(struct dis_out *o, const struct dis_packet *p, enum dis_field field,
		       const struct dis_section *s, unsigned int copy)
{
	const struct dis_field_info *f = &dis_field_table[field];

	dis_out_room(o);
	json_key(o, f->name, "", copy);
	switch (f->base) {
	case DIS_DEC:
	case DIS_HEX:
	case DIS_BOOL:
	case DIS_CALC:
		json_number(o, f, dis_field_value(p, field, s), copy);
		break;
	default:
		json_quoted(o, p, f, s);
	}
}

static void json_section(struct dis_out *o, const struct dis_packet *p, const struct dis_section *s,
			 unsigned int copy)
{
	const struct dis_hdr_info *h = dis_hdr_info(s->hdr);

	for (unsigned int i = h->first; i < h->first + h->count; i++)
		if (dis_field_table[i].base != DIS_DATA && dis_field_there(&dis_field_table[i], s))
			json_field(o, p, i, s, copy);
}

static void json_notes(struct dis_out *o, const struct dis_packet *p)
{
	bool first = true;

	dis_out_room(o);
	if (p->icrc == DIS_ICRC_BAD) {
		json_key(o, "roce.icrc.expected", "", 1);
		out_dec(o, p->icrc_want);
	}
	json_key(o, "notes", "", 1);
	out_char(o, '[');
	for (unsigned int i = 0; i < DIS_NOTE_COUNT; i++) {
		if (!(p->notes & 1u << i))
			continue;
		if (!first)
			out_char(o, ',');
		first = false;
		out_json_name(o, dis_note_words(i));
	}
	out_str(o, "]}\n");
}

void dis_json(struct dis_out *o, struct dis_style *style, const struct dis_packet *p)
{
	struct dis_section s[DIS_SECTIONS_MAX];
	unsigned int n = dis_sections(p, s);
	uint8_t seen[DIS_H_COUNT] = {0};

	(void)style;
	dis_out_room(o);
	out_str(o, "{\"file\":");
	if (p->file)
		out_json_name(o, p->file);
	else
		out_str(o, "null");
	for (unsigned int i = 0; i < n; i++)
		json_section(o, p, &s[i], ++seen[s[i].hdr]);
	json_notes(o, p);
}
