/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The log of requests: look-ups over holes and READs, filling holes, overflow, delays. */
#include "pcap-dissect/dis_log.h"

#include "wire/psn.h"

#include <criterion/criterion.h>

static struct dis_log l;

static void setup(void)
{
	memset(&l, 0, sizeof(l));
}

TestSuite(dis_log, .init = setup);

/* The entries lie behind each other without a gap. */
static void check_order(void)
{
	for (uint32_t i = 1; i < l.n; i++)
		cr_assert_eq(l.e[i].psn, psn_add(l.e[i - 1].psn, l.e[i - 1].span), "entry %u", i);
}

Test(dis_log, find__across_the_wrap)
{
	dis_log_append(&l, 0xfffffe, 1);
	dis_log_append(&l, 0xffffff, 3);
	dis_log_append(&l, 2, 1);
	cr_assert_null(dis_log_find(&l, 0xfffffd));
	cr_assert_eq(dis_log_find(&l, 0xfffffe), &l.e[0]);
	cr_assert_eq(dis_log_find(&l, 0xffffff), &l.e[1]);
	cr_assert_eq(dis_log_find(&l, 0), &l.e[1]);
	cr_assert_eq(dis_log_find(&l, 1), &l.e[1]);
	cr_assert_eq(dis_log_find(&l, 2), &l.e[2]);
	cr_assert_null(dis_log_find(&l, 3));
}

Test(dis_log, find__empty)
{
	cr_assert_null(dis_log_find(&l, 0));
}

Test(dis_log, next__unknown_behind_a_read)
{
	uint32_t psn;

	cr_assert_not(dis_log_next(&l, &psn));
	dis_log_append(&l, 7, 5);
	cr_assert(dis_log_next(&l, &psn));
	cr_assert_eq(psn, 12);
	dis_log_append(&l, 12, 0);
	cr_assert_not(dis_log_next(&l, &psn));
	cr_assert_eq(psn, 13);
}

Test(dis_log, append__forgets_the_oldest)
{
	for (uint32_t i = 0; i < 10 * DIS_LOG_MAX; i++)
		dis_log_append(&l, i, 1);
	cr_assert_leq(l.n, (uint32_t)DIS_LOG_MAX);
	cr_assert_geq(l.n, (uint32_t)DIS_LOG_MAX * 3 / 4);
	cr_assert_eq(l.e[l.n - 1].psn, 10u * DIS_LOG_MAX - 1);
	check_order();
}

/* Every place and length in a hole of five. */
Test(dis_log, fill)
{
	for (uint32_t at = 0; at < 5; at++) {
		for (uint32_t span = 1; span <= 5 - at; span++) {
			struct dis_req *r;

			setup();
			dis_log_append(&l, 9, 1);
			dis_log_append(&l, 10, 5)->flags = DIS_REQ_HOLE;
			dis_log_append(&l, 15, 1);
			r = dis_log_fill(&l, 10 + at, span);
			cr_assert_not_null(r);
			cr_assert_eq(r->psn, 10 + at);
			cr_assert_eq(r->span, span);
			cr_assert_eq(r->flags, 0);
			cr_assert_eq(l.n, 3u + (at > 0) + (at + span < 5));
			check_order();
			for (uint32_t i = 10; i < 15; i++)
				cr_assert_eq(!(dis_log_find(&l, i)->flags & DIS_REQ_HOLE),
					     i >= 10 + at && i < 10 + at + span, "%u of %u: %u",
					     span, at, i);
		}
	}
}

Test(dis_log, fill__longer_than_the_hole)
{
	struct dis_req *r;

	dis_log_append(&l, 10, 5)->flags = DIS_REQ_HOLE;
	dis_log_append(&l, 15, 1);
	r = dis_log_fill(&l, 13, 4);
	cr_assert_eq(r->span, 2);
	cr_assert_eq(r->flags, DIS_REQ_GUESSED);
	check_order();
}

Test(dis_log, fill__when_there_is_no_room)
{
	for (uint32_t i = 0; i < DIS_LOG_MAX - 1; i++)
		dis_log_append(&l, 10 * i, 10)->flags = DIS_REQ_HOLE;
	/* It leaves with the oldest. */
	cr_assert_null(dis_log_fill(&l, 15, 1));
	cr_assert_not_null(dis_log_fill(&l, 10 * (DIS_LOG_MAX - 2) + 5, 1));
	cr_assert_leq(l.n, (uint32_t)DIS_LOG_MAX);
	check_order();
}

/* A bucket is an eighth of a power of two wide, so its middle is within 1/16 of each value in it. */
Test(dis_log, delay__within_a_sixteenth)
{
	for (uint64_t ns = 1; ns < UINT64_C(1) << 40; ns += ns / 3 + 1) {
		uint64_t got;

		setup();
		dis_log_delay_add(&l, ns);
		got = dis_log_delay(&l, 500);
		cr_assert_leq(got > ns ? got - ns : ns - got, ns / 16, "%lu gives %lu", ns, got);
	}
}

Test(dis_log, delay__shares)
{
	cr_assert_eq(dis_log_delay(&l, 500), 0);
	for (unsigned int i = 0; i < 98; i++)
		dis_log_delay_add(&l, 8);
	dis_log_delay_add(&l, 1 << 20);
	dis_log_delay_add(&l, 1 << 20);
	cr_assert_eq(dis_log_delay(&l, 500), 8);
	cr_assert_eq(dis_log_delay(&l, 980), 8);
	cr_assert_gt(dis_log_delay(&l, 990), 1 << 20);
	cr_assert_eq(dis_log_delay(&l, 1000), dis_log_delay(&l, 990));
}
