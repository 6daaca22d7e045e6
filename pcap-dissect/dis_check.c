/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * --check: every packet through every rule, one line for each that is broken, a summary.
 *
 * A rule that is broken all the time would bury the others, so each is told REPORTS_MAX times and then only
 * counted.
 */
#include "pcap-dissect/dis_check.h"
#include "pcap-dissect/dis_flow.h"
#include "pcap-dissect/dis_track.h"

#include <stdarg.h>
#include <stdio.h>

#define REPORTS_MAX  100
#define PKEY_DEFAULT 0x7fff /* without the membership bit */

enum severity { BROKEN, NOTE };

static const struct {
	const char *token, *text, *clause;
	enum severity severity;
} rules[] = {
#define RULE(token, severity, text, clause) {#token, text, clause, severity},
#include "pcap-dissect/checks.def"
#undef RULE
};

static struct {
	struct dis_track track;
	struct dis_out *out;
	const char *file;
	uint64_t packets;
	uint64_t reports[DIS_RULE_COUNT];
} check;

void dis_report(enum dis_rule rule, uint64_t number, const char *fmt, ...)
{
	char details[256];
	struct dis_out *o = check.out;
	va_list ap;

	if (check.reports[rule]++ >= REPORTS_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(details, sizeof(details), fmt, ap);
	va_end(ap);
	out_name(o, check.file);
	dis_out_room(o);
	o->p += snprintf(o->p, DIS_OUT_PIECE, ": packet %llu: %s: %s%s%s%s (%s)\n",
			 (unsigned long long)number, rules[rule].token,
			 rules[rule].severity == NOTE ? "note: " : "", rules[rule].text,
			 *details ? ": " : "", details, rules[rule].clause);
}

int dis_check_begin(const char *file)
{
	int ret;

	memset(check.reports, 0, sizeof(check.reports));
	check.file = file;
	check.packets = 0;
	ret = dis_track_begin(&check.track);
	if (!ret)
		check.track.cm->report = dis_report;
	return ret;
}

static void check_half(const struct dis_event *ev)
{
	const struct dis_packet *p = ev->p;
	struct dis_half *h = ev->half;
	const struct wire_opcode *op = p->pkt.op;

	if ((p->pkt.pkey & 0x7fff) != PKEY_DEFAULT && p->pkt.pkey & 0x7fff &&
	    !h->checks.pkey_told) {
		h->checks.pkey_told = true;
		dis_report(DIS_RULE_PKEY_OTHER, p->number, "0x%04x", p->pkt.pkey);
	}
	if (ev->kind == DIS_EV_NONE && h->transport != op->transport && !h->checks.mix_told) {
		h->checks.mix_told = true;
		dis_report(DIS_RULE_TRANSPORT_MIX, p->number, "%s to QP 0x%06x",
			   dis_opcode_words(op->code), h->qpn);
	}
}

void dis_check_packet(struct dis_out *o, struct dis_style *style, const struct dis_packet *p)
{
	struct dis_event ev;

	check.out = o;
	check.packets++;
	dis_check_hdr(p);
	dis_track_packet(&check.track, p, &ev);
	if (!ev.half)
		return;
	check_half(&ev);
	if (ev.kind == DIS_EV_ANSWER) {
		dis_check_resp(&ev);
	} else if (ev.kind != DIS_EV_NONE && ev.kind != DIS_EV_DATAGRAM) {
		dis_check_susp(&ev);
		dis_check_req(&ev);
	}
}

static void print_summary(struct dis_out *o, uint64_t sum, uint64_t notes)
{
	const char *before = ": ";

	out_name(o, check.file);
	dis_out_room(o);
	o->p += snprintf(o->p, DIS_OUT_PIECE, ": %llu packets, reported %llu",
			 (unsigned long long)check.packets, (unsigned long long)sum);
	if (notes)
		o->p += sprintf(o->p, ", notes %llu", (unsigned long long)notes);
	for (unsigned int i = 0; i < DIS_RULE_COUNT; i++) {
		if (!check.reports[i])
			continue;
		o->p += sprintf(o->p, "%s%s %llu", before, rules[i].token,
				(unsigned long long)check.reports[i]);
		before = ", ";
	}
	if (check.track.conns.evicted)
		o->p += sprintf(o->p, "; %llu directions were forgotten, more than %d at a time",
				(unsigned long long)check.track.conns.evicted, DIS_CONN_HALVES);
	*o->p++ = '\n';
}

uint64_t dis_check_end(struct dis_out *o, bool whole)
{
	uint64_t sum = 0, notes = 0;

	for (unsigned int i = 0; i < DIS_RULE_COUNT; i++)
		*(rules[i].severity == BROKEN ? &sum : &notes) += check.reports[i];
	if (whole || check.packets)
		print_summary(o, sum, notes);
	dis_track_end(&check.track);
	return sum;
}
