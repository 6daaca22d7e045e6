/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The time in front of a packet, in tcpdump's forms.
 *
 * The C library breaks a second down into date and time of day slowly, and a capture holds many packets
 * a second: the text of the last second is kept.
 */
#include "pcap-dissect/dis.h"

#include <time.h>

#define NS 1000000000

static void out_fraction(struct dis_out *o, const struct dis_style *style, int64_t ns)
{
	out_char(o, '.');
	if (style->nano)
		out_dec_width(o, ns, 9);
	else
		out_dec_width(o, ns / 1000, 6);
}

/* "2026-11-29 20:26:51"; the time of day begins at 11. */
static const char *second_text(int64_t second)
{
	static __thread int64_t last = INT64_MIN;
	static __thread char text[32];
	time_t t = second;
	struct tm tm;

	if (second != last) {
		if (!localtime_r(&t, &tm) ||
		    !strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
			memcpy(text, "0000-00-00 00:00:00", 20);
		last = second;
	}
	return text;
}

static void out_delta(struct dis_out *o, const struct dis_style *style, int64_t ns)
{
	int64_t s;

	if (ns < 0) {
		out_char(o, '-');
		ns = -ns;
	}
	s = ns / NS;
	out_dec_width(o, s / 3600, s / 3600 > 99 ? 7 : 2);
	out_char(o, ':');
	out_dec_width(o, s / 60 % 60, 2);
	out_char(o, ':');
	out_dec_width(o, s % 60, 2);
	out_fraction(o, style, ns % NS);
}

void dis_time(struct dis_out *o, struct dis_style *style, int64_t ts)
{
	const char *text;
	int64_t last = style->last < 0 ? ts : style->last;

	style->last = ts;
	switch (style->clock) {
	case DIS_CLOCK_NONE:
		return;
	case DIS_CLOCK_EPOCH:
		out_dec(o, ts / NS);
		out_fraction(o, style, ts % NS);
		break;
	case DIS_CLOCK_DELTA:
		out_delta(o, style, ts - last);
		break;
	case DIS_CLOCK_TIME:
	case DIS_CLOCK_DATE:
		text = second_text(ts / NS);
		/* A year has more than four digits only in a damaged file. */
		out_str(o, style->clock == DIS_CLOCK_DATE ? text : text + strlen(text) - 8);
		out_fraction(o, style, ts % NS);
		break;
	}
	out_char(o, ' ');
}

void dis_time_value(struct dis_out *o, enum dis_clock clock, int64_t ts)
{
	struct dis_style style = {.clock = clock, .nano = true, .last = -1};

	dis_time(o, &style, ts);
	o->p--; /* the blank behind it */
}
