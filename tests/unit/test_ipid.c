// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which IPv4 identifications are guessed and believed. */
#include "net/ipid.h"

#include <criterion/criterion.h>
#include <string.h>

#define NOW 5000000000u /* ns */

static struct ipid_table table;

static struct ipid_source *source(unsigned int n)
{
	uint8_t ip[16] = {[10] = 0xff, [11] = 0xff, [12] = 10};

	ip[14] = n >> 8;
	ip[15] = n;
	return ipid_source(&table, ip);
}

/* A source whose last packet had @id. */
static struct ipid_source *source_at(unsigned int n, uint16_t id)
{
	struct ipid_source *s = source(n);

	cr_assert(ipid_accept(s, id, 0, NOW), "the first packet of an address is believed");
	return s;
}

static void forget(void)
{
	memset(&table, 0, sizeof(table));
}

TestSuite(ipid, .init = forget);

Test(ipid, ipid_source__finds_again)
{
	struct ipid_source *s[128];

	/* Addresses in a row, as a subnet has them, spread so that half of the table is used. */
	for (unsigned int i = 0; i < 128; i++)
		s[i] = source_at(i, 1000 + i);
	for (unsigned int i = 0; i < 128; i++) {
		cr_assert_eq(source(i), s[i]);
		cr_assert_eq(source(i)->last, 1000 + i);
	}
}

/* The one in use stays while thousands of others come and go. */
Test(ipid, ipid_source__forgets_the_least_recently_used)
{
	struct ipid_source *s = source_at(0, 5000);

	source_at(1, 6000);
	for (unsigned int i = 2; i < 4000; i++) {
		source_at(i, 7000);
		cr_assert_eq(source(0), s);
		cr_assert_eq(s->last, 5000);
	}
	cr_assert(source(1)->fresh, "pushed out, so unknown again");
}

Test(ipid, ipid_source__clock_wraps)
{
	struct ipid_source *s;

	table.clock = UINT32_MAX - 50;
	s = source_at(0, 5000);
	for (unsigned int i = 1; i < 4000; i++) {
		source(i);
		cr_assert_eq(source(0), s);
	}
}

Test(ipid, ipid_guess__index_or_counter)
{
	struct ipid_source *s = source(0);

	cr_assert_eq(ipid_guess(s, 0), 0);
	cr_assert_eq(ipid_guess(s, 17), 17);
	ipid_seen(s, 17, 17, NOW);
	cr_assert_eq(ipid_guess(s, 18), 18);
	cr_assert(ipid_accept(s, 100, 0, NOW));
	cr_assert_eq(ipid_guess(s, 0), 101);
	s = source_at(1, 65535);
	cr_assert_eq(ipid_guess(s, 0), 0);
}

Test(ipid, ipid_accept__own_sender)
{
	for (unsigned int id = 0; id < IPID_OWN; id++)
		cr_assert(ipid_accept(source_at(id, 30000), id, 0, NOW));
	cr_assert_not(ipid_accept(source_at(300, 30000), IPID_OWN, 0, NOW));
}

Test(ipid, ipid_accept__window)
{
	cr_assert(ipid_accept(source_at(0, 30000), 30001, 0, NOW));
	cr_assert(ipid_accept(source_at(1, 30000), 30000 + IPID_WINDOW, 0, NOW));
	cr_assert_not(ipid_accept(source_at(2, 30000), 30000 + IPID_WINDOW + 1, 0, NOW));
	/* Overtaken on the way: believed, and the counter is not turned back. */
	cr_assert(ipid_accept(source_at(3, 30000), 30000 - IPID_BEHIND, 0, NOW));
	cr_assert_eq(source(3)->last, 30000);
	cr_assert_eq(ipid_guess(source(3), 0), 30001);
	cr_assert_not(ipid_accept(source_at(4, 30000), 30000 - IPID_BEHIND - 1, 0, NOW));
	cr_assert(ipid_accept(source_at(5, 65000), 200, 0, NOW), "round the end");
	cr_assert_eq(source(5)->last, 200);
}

/* Linux skips up to a step for each clock tick of a pause. */
Test(ipid, ipid_accept__window_grows_while_nothing_comes)
{
	uint64_t second = 1000000000u;

	cr_assert(
		ipid_accept(source_at(0, 30000), 30000 + IPID_WINDOW + 3000, 0, NOW + 3 * second));
	cr_assert_not(
		ipid_accept(source_at(1, 30000), 30000 + IPID_WINDOW + 3001, 0, NOW + 3 * second));
	cr_assert(ipid_accept(source_at(2, 30000), 29000 - IPID_BEHIND, 0, NOW + 65 * second),
		  "anything after a minute");
	/* The pause is over with the packet. */
	cr_assert_not(ipid_accept(source(2), 20000, 0, NOW + 65 * second));
	/* A clock that seems to go back is no pause. */
	cr_assert_not(ipid_accept(source_at(3, 30000), 30000 + IPID_WINDOW + 1, 0, NOW - second));
}

Test(ipid, ipid_accept__resynchronises)
{
	struct ipid_source *s = source_at(0, 30000);

	cr_assert_not(ipid_accept(s, 1000, 0, NOW));
	cr_assert_not(ipid_accept(s, 1001, 0, NOW));
	cr_assert(ipid_accept(s, 1002, 0, NOW));
	cr_assert_eq(s->last, 1002);

	/* A good packet between them: not in a row. */
	s = source_at(1, 30000);
	cr_assert_not(ipid_accept(s, 1000, 0, NOW));
	cr_assert_not(ipid_accept(s, 1001, 0, NOW));
	cr_assert(ipid_accept(s, 30001, 0, NOW));
	cr_assert_not(ipid_accept(s, 1002, 0, NOW));

	/* Damage: they do not fit each other. */
	s = source_at(2, 30000);
	cr_assert_not(ipid_accept(s, 1000, 0, NOW));
	cr_assert_not(ipid_accept(s, 20000, 0, NOW));
	cr_assert_not(ipid_accept(s, 50000, 0, NOW));
	cr_assert_not(ipid_accept(s, 9000, 0, NOW));
	cr_assert_eq(s->last, 30000);
}
