/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzz target: any bytes as a captured frame, decoded and shown in every way.
 *
 * The first byte of an input chooses the link type and by how much the frame was longer on the wire. No
 * input may make the dissector read outside the frame, print a byte that is no text, or find a header
 * that lies elsewhere. A violated property aborts.
 *
 * With -Dfuzzers=true (clang) this is a libFuzzer program; linked with replay.c it runs over a folder.
 */
#include "pcap-dissect/dis.h"

#include <pcap/pcap.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(property)                                                                             \
	do {                                                                                       \
		if (!(property))                                                                   \
			abort();                                                                   \
	} while (0)

static void check_text(struct dis_out *o)
{
	MUST(o->p > o->buf && o->p[-1] == '\n');
	for (const char *c = o->buf; c < o->p; c++)
		MUST(*c == '\n' || (*c >= ' ' && *c <= '~'));
	o->p = o->buf;
}

static void check_sections(const struct dis_packet *p)
{
	struct dis_section s[DIS_SECTIONS_MAX];
	unsigned int n = dis_sections(p, s);

	for (unsigned int i = 0; i < n; i++) {
		MUST(s[i].have <= s[i].len);
		MUST(s[i].b >= p->frame && s[i].b + s[i].have <= p->frame + p->caplen);
	}
	MUST(p->have <= p->bth_len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int links[] = {DLT_EN10MB, DLT_LINUX_SLL, DLT_LINUX_SLL2, DLT_RAW, DLT_NULL};
	static const uint32_t beyond[] = {0, 0, 4, 60000};
	static struct dis_out out;
	static struct dis_style style = {.link = true, .last = -1};
	static bool ready;
	struct dis_packet p = {.number = 1};

	if (!ready) {
		dis_init();
		dis_out_init(&out, -1);
		ready = true;
	}
	if (!size)
		return 0;
	p.link = links[(data[0] & 0x0f) % (sizeof(links) / sizeof(*links))];
	p.frame = data + 1;
	p.caplen = size - 1;
	p.len = p.caplen + beyond[data[0] >> 4 & 3];
	dis_decode(&p);
	check_sections(&p);
	dis_line(&out, &style, &p);
	check_text(&out);
	dis_tree(&out, &style, &p);
	check_text(&out);
	dis_json(&out, &style, &p);
	check_text(&out);
	return 0;
}
