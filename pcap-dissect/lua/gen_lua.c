/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes the Wireshark dissector from its template and the dissector's own tables:
 *
 *	gen-lua TEMPLATE OUTPUT		the template, its line "-- @TABLES@" replaced by the tables
 *	gen-lua --fields OUTPUT		the fields as rows of a Markdown table, for docs/wireshark.md
 *
 * Wireshark knows the link, IP and UDP headers. From the BTH on, every header, field, word for a value and
 * opcode of fields.def, cm.def, values.def and opcode.def becomes a row of a Lua table here, so that
 * rxe-dissect and Wireshark cannot disagree about where a field lies. The template holds only what walks them.
 *
 * It runs at build time. Exit status 1 and a sentence when it cannot read or write.
 */
#include "base/macros.h"
#include "pcap-dissect/dis.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MARKER "-- @TABLES@\n"
/* Attribute ids of the connection manager's messages, in the order of cm.def (IBTA Vol 1, table 90). */
#define CM_ATTR_REQ 0x10

static const char *const hdr_names[] = {
#define H(token, title) [DIS_H_##token] = #token,
#include "pcap-dissect/fields.def"
#include "pcap-dissect/cm.def"
#undef H
};

static const char *const set_names[] = {
	[DIS_V_OPCODE] = "OPCODE",
	[DIS_V_SYNDROME] = "SYNDROME",
	[DIS_V_TIMEOUT] = "TIMEOUT",
	[DIS_V_SERVICE] = "SERVICE",
#define VALUES(set) [DIS_V_##set] = #set,
#include "pcap-dissect/values.def"
#undef VALUES
};

/* The headers that Wireshark leaves to us begin with the BTH. */
static bool ours(const struct dis_field_info *f)
{
	return f->hdr >= DIS_H_BTH;
}

static void put_string(FILE *out, const char *s)
{
	fputc('"', out);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', out);
		fputc(*s, out);
	}
	fputc('"', out);
}

/* How a field appears in Wireshark: the name of a function of ProtoField, the bytes that it spans, its bits. */
struct lua_type {
	const char *name;
	unsigned int bytes; /* 0: to the end of the header; calculated ones: 0 too */
	uint64_t mask;	    /* of the number in these bytes; 0: all */
};

static struct lua_type type_of(const struct dis_field_info *f)
{
	static const char *const numbers[9] = {
		[1] = "uint8", [2] = "uint16", [3] = "uint24", [4] = "uint32", [8] = "uint64",
	};
	struct lua_type t = {.bytes = (f->bit + f->bits + 7u) / 8};

	switch (f->base) {
	case DIS_IP:
	case DIS_IP_LAST:
		t.name = "ipv6";
		return t;
	case DIS_BYTES:
	case DIS_DATA:
		t.name = "bytes";
		return t;
	case DIS_CALC:
		t.name = "uint32";
		return t;
	default:
		break;
	}
	t.name = f->base == DIS_BOOL ? "bool" : numbers[t.bytes];
	if (f->bits != 8 * t.bytes)
		t.mask = ((UINT64_C(1) << f->bits) - 1) << (8 * t.bytes - f->bit - f->bits);
	return t;
}

/* Bits of the widest field with values of the set; calculated ones have none and are small. 0: unused. */
static unsigned int set_bits(enum dis_values set)
{
	unsigned int bits = 0;

	for (unsigned int i = 0; i < DIS_F_COUNT; i++) {
		const struct dis_field_info *f = &dis_field_table[i];
		unsigned int width = f->base == DIS_CALC ? 8 : f->bits;

		if (f->values == set && ours(f))
			bits = max_t(unsigned int, bits, width);
	}
	return bits;
}

static void put_values(FILE *out)
{
	char buf[DIS_WORDS_MAX];

	fputs("-- Words for values: set -> value -> words.\nlocal VALUES = {\n", out);
	for (unsigned int set = DIS_V_NONE + 1; set < DIS_V_COUNT; set++) {
		unsigned int bits = set_bits(set);

		/* Service ids are too wide for a table: the template has a function. */
		if (!bits || bits > 16)
			continue;
		fprintf(out, "\t%s = {\n", set_names[set]);
		for (unsigned int v = 0; v < 1u << bits; v++) {
			const char *words = dis_value_words(set, v, buf);

			if (!words)
				continue;
			fprintf(out, "\t\t[%u] = ", v);
			put_string(out, words);
			fputs(",\n", out);
		}
		fputs("\t},\n", out);
	}
	fputs("}\n\n", out);
}

static void put_field(FILE *out, const struct dis_field_info *f)
{
	struct lua_type t = type_of(f);

	fputs("\t\t{name = ", out);
	put_string(out, f->name);
	fputs(", label = ", out);
	put_string(out, f->label);
	fprintf(out, ", type = \"%s\", byte = %u, bytes = %u", t.name, f->byte, t.bytes);
	if (t.mask)
		fprintf(out, ", mask = 0x%" PRIx64 ", bit = %u, bits = %u", t.mask, f->bit,
			f->bits);
	if (f->base == DIS_HEX)
		fprintf(out, ", digits = %u", (f->bits + 3u) / 4);
	if (f->base == DIS_CALC)
		fputs(", calculated = true", out);
	if (f->values)
		fprintf(out, ", values = \"%s\"", set_names[f->values]);
	if (f->brief)
		fprintf(out, ", brief = \"%s\"", f->brief);
	fputs("},\n", out);
}

static void put_headers(FILE *out)
{
	fputs("-- Headers and their fields. bytes = 0: to the end of the header.\nlocal HEADERS = "
	      "{\n",
	      out);
	for (unsigned int hdr = DIS_H_BTH; hdr < DIS_H_COUNT; hdr++) {
		const struct dis_hdr_info *h = dis_hdr_info(hdr);

		fprintf(out, "\t%s = {\n\t\ttitle = ", hdr_names[hdr]);
		put_string(out, h->title);
		fputs(",\n", out);
		for (unsigned int i = h->first; i < h->first + h->count; i++)
			put_field(out, &dis_field_table[i]);
		fputs("\t},\n", out);
	}
	fputs("}\n\n", out);
}

static void put_opcodes(FILE *out)
{
	fputs("-- Opcodes: the extension headers behind the BTH, and all their bytes.\nlocal "
	      "OPCODES = {\n",
	      out);
	for (unsigned int code = 0; code < 256; code++) {
		const struct wire_opcode *op = wire_opcode(code);

		if (!op)
			continue;
		fprintf(out, "\t[0x%02x] = {hdr_len = %u", code, op->hdr_len);
		for (unsigned int i = 0; i < DIS_EXTENSIONS; i++)
			if (op->headers & dis_extensions[i].header)
				fprintf(out, ", \"%s\"", hdr_names[dis_extensions[i].hdr]);
		fputs("},\n", out);
	}
	fputs("}\n\nlocal EXTENSION_LEN = {\n", out);
	for (unsigned int i = 0; i < DIS_EXTENSIONS; i++)
		fprintf(out, "\t%s = %u,\n", hdr_names[dis_extensions[i].hdr],
			dis_extensions[i].len);
	fputs("}\n\n", out);
}

static void put_cm(FILE *out)
{
	fputs("-- Messages of the connection manager by their attribute ids.\nlocal CM_MESSAGES = "
	      "{\n",
	      out);
	for (unsigned int hdr = DIS_H_CM_REQ; hdr <= DIS_H_CM_APR; hdr++)
		fprintf(out, "\t[0x%02x] = \"%s\",\n", CM_ATTR_REQ + hdr - DIS_H_CM_REQ,
			hdr_names[hdr]);
	fputs("}\n", out);
}

static void put_tables(FILE *out)
{
	put_values(out);
	put_headers(out);
	put_opcodes(out);
	put_cm(out);
}

static void put_markdown(FILE *out)
{
	for (unsigned int i = 0; i < DIS_F_COUNT; i++) {
		const struct dis_field_info *f = &dis_field_table[i];

		if (ours(f))
			fprintf(out, "| `%s` | %s | %s |\n", f->name, f->label, type_of(f).name);
	}
}

/* Returns whether the template has the marker once. */
static bool fill_in(FILE *template, FILE *out)
{
	unsigned int markers = 0;
	char line[512];

	while (fgets(line, sizeof(line), template)) {
		if (strcmp(line, MARKER) == 0) {
			put_tables(out);
			markers++;
		} else {
			fputs(line, out);
		}
	}
	return markers == 1;
}

static int fail(const char *path, const char *why)
{
	fprintf(stderr, "gen-lua: %s: %s\n", path, why);
	return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	FILE *template = NULL;
	FILE *out;
	bool list;

	if (argc != 3)
		return fail("usage", "gen-lua TEMPLATE|--fields OUTPUT");
	list = strcmp(argv[1], "--fields") == 0;
	if (!list) {
		template = fopen(argv[1], "r");
		if (!template)
			return fail(argv[1], strerror(errno));
	}
	out = fopen(argv[2], "w");
	if (!out)
		return fail(argv[2], strerror(errno));
	dis_init();
	if (list)
		put_markdown(out);
	else if (!fill_in(template, out))
		return fail(argv[1], "it has not one line " MARKER);
	if (template)
		fclose(template);
	if (ferror(out) || fclose(out))
		return fail(argv[2], "cannot write it all");
	return EXIT_SUCCESS;
}
