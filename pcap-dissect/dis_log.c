/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The log of a half's requests: sorted by PSN, without an overlap, holes filled in as entries.
 *
 *	psn   10    11    12..14   15       16..20    21
 *	     [SEND][SEND][hole   ][SEND]   [READ    ][SEND]   next = 22
 *
 * A request is appended as long as they come in order, and the oldest quarter goes when there is no room;
 * only a packet that fills a hole makes room in the middle.
 */
#include "pcap-dissect/dis_log.h"

#include "base/macros.h"
#include "wire/psn.h"

#include <string.h>

struct dis_req *dis_log_find(struct dis_log *l, uint32_t psn)
{
	uint32_t lo = 0, hi = l->n;

	/* The last entry that does not lie behind psn. */
	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (psn_sub(psn, l->e[mid].psn) >= 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return NULL;
	lo--;
	if (psn_sub(psn, l->e[lo].psn) < (int32_t)max_t(uint32_t, l->e[lo].span, 1))
		return &l->e[lo];
	return NULL;
}

bool dis_log_next(const struct dis_log *l, uint32_t *psn)
{
	const struct dis_req *last;

	if (!l->n)
		return false;
	last = &l->e[l->n - 1];
	*psn = psn_add(last->psn, max_t(uint32_t, last->span, 1));
	return last->span;
}

static void make_room(struct dis_log *l)
{
	const uint32_t quarter = DIS_LOG_MAX / 4;

	memmove(l->e, l->e + quarter, (l->n - quarter) * sizeof(l->e[0]));
	l->n -= quarter;
}

struct dis_req *dis_log_append(struct dis_log *l, uint32_t psn, uint32_t span)
{
	struct dis_req *r;

	if (l->n == DIS_LOG_MAX)
		make_room(l);
	r = &l->e[l->n++];
	*r = (struct dis_req){.psn = psn, .span = span};
	return r;
}

/* Puts an entry behind number @i; what was before @i stays where it is. */
static void insert(struct dis_log *l, uint32_t i, uint32_t psn, uint32_t span, uint8_t flags)
{
	memmove(&l->e[i + 1], &l->e[i], (l->n - i) * sizeof(l->e[0]));
	l->e[i] = (struct dis_req){.psn = psn, .span = span, .flags = flags};
	l->n++;
}

struct dis_req *dis_log_fill(struct dis_log *l, uint32_t psn, uint32_t span)
{
	struct dis_req *hole;
	uint8_t flags = 0;
	uint32_t first, end, i;

	if (l->n > DIS_LOG_MAX - 2)
		make_room(l);
	hole = dis_log_find(l, psn);
	if (!hole)
		return NULL;
	i = hole - l->e;
	first = hole->psn;
	end = psn_add(first, hole->span);
	/* A READ whose end was asked for once more, and that is in the log already. */
	if (!span || psn_sub(psn_add(psn, span), end) > 0) {
		span = psn_sub(end, psn);
		flags = DIS_REQ_GUESSED;
	}
	if (psn_add(psn, span) != end)
		insert(l, i + 1, psn_add(psn, span), psn_sub(end, psn_add(psn, span)),
		       DIS_REQ_HOLE);
	if (psn != first) {
		l->e[i].span = psn_sub(psn, first);
		insert(l, ++i, psn, span, 0);
	}
	l->e[i] = (struct dis_req){.psn = psn, .span = span, .flags = flags};
	return &l->e[i];
}

/* Eight steps for each power of two. */
static uint32_t bucket(uint64_t ns)
{
	uint32_t log2;

	if (ns < 8)
		return ns;
	log2 = 63 - __builtin_clzll(ns);
	return min_t(uint32_t, (log2 - 2) * 8 + (ns >> (log2 - 3) & 7), DIS_HIST - 1);
}

void dis_log_delay_add(struct dis_log *l, int64_t ns)
{
	l->hist[bucket(ns < 0 ? 0 : ns)]++;
	l->hist_n++;
}

/* The middle of a bucket. */
static uint64_t bucket_ns(uint32_t b)
{
	uint32_t shift;

	if (b < 16)
		return b;
	shift = b / 8 - 1;
	return ((uint64_t)(8 + b % 8) << shift) + (UINT64_C(1) << shift) / 2;
}

uint64_t dis_log_delay(const struct dis_log *l, uint32_t share)
{
	uint64_t want = (l->hist_n * share + 999) / 1000;
	uint64_t sum = 0;

	for (uint32_t b = 0; b < DIS_HIST; b++) {
		sum += l->hist[b];
		if (sum >= want && sum)
			return bucket_ns(b);
	}
	return 0;
}
