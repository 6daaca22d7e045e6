// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Fault injection, round a simulated link without faults of its own. */
#include "net/fault.h"
#include "net/sim.h"
#include "wire/hdr.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEN 64

static const uint8_t ip_a[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1};
static const uint8_t ip_b[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2};

static struct sim *sim;
static struct link *a, *b; /* faults on a's way out */
static struct stats stats_a, stats_b;

static void setup(const struct fault_spec *spec)
{
	struct link *below;

	memset(&stats_a, 0, sizeof(stats_a));
	memset(&stats_b, 0, sizeof(stats_b));
	sim = sim_create(&(struct sim_config){.seed = 1});
	below = sim_link(sim, ip_a, &stats_a);
	b = sim_link(sim, ip_b, &stats_b);
	cr_assert_eq(fault_create(below, spec, &a), 0);
}

static void teardown(void)
{
	if (!sim)
		return;
	a->ops->destroy(a);
	b->ops->destroy(b);
	sim_destroy(sim);
	sim = NULL;
}

static void put(uint32_t number)
{
	struct link_dest d = {.ttl = 64};
	uint8_t *p;

	memcpy(d.dgid, ip_b, 16);
	p = a->ops->tx_reserve(a, &d, LEN);
	cr_assert_not_null(p);
	memset(p, number, LEN);
	memcpy(p, &number, sizeof(number));
	a->ops->tx_commit(a, 0);
}

/* Return: how many arrived, their numbers in @got. */
static unsigned int take(uint64_t now, uint32_t *got, unsigned int room)
{
	struct link_rx v[LINK_RX_BURST];
	unsigned int n, total = 0;

	while ((n = b->ops->rx_burst(b, v, LINK_RX_BURST, now)) != 0) {
		for (unsigned int i = 0; i < n; i++) {
			cr_assert_lt(total, room);
			cr_assert_eq(v[i].len, LEN);
			memcpy(&got[total], v[i].data, sizeof(*got));
			cr_assert_eq(v[i].data[LEN - 1], (uint8_t)got[total]);
			total++;
		}
	}
	return total;
}

/* Sends @n packets, eight a flush, and comes back for those that are held. Return: how many
 * arrived. */
static unsigned int run(const struct fault_spec *spec, unsigned int n, uint32_t *got,
			unsigned int room)
{
	unsigned int total = 0;
	uint64_t now = 1, deadline;

	setup(spec);
	for (unsigned int i = 0; i < n; i++) {
		put(i);
		if (i % 8 == 7 || i == n - 1)
			a->ops->tx_flush(a, now += 1000);
		total += take(now, got + total, room - total);
	}
	while ((deadline = a->ops->next_deadline(a)) != UINT64_MAX) {
		cr_assert_gt(deadline, now, "a deadline that is past would spin");
		a->ops->tx_flush(a, now = deadline);
		total += take(now, got + total, room - total);
	}
	return total;
}

static unsigned int late(const uint32_t *got, unsigned int n)
{
	unsigned int count = 0;

	for (unsigned int i = 1; i < n; i++)
		count += got[i] < got[i - 1];
	return count;
}

static uint32_t got[20000];

TestSuite(fault, .fini = teardown, .timeout = 20);

Test(fault, fault_create__passes_through)
{
	struct link_tap tap = {0};

	cr_assert_eq(run(&(struct fault_spec){.seed = 1}, 1000, got, 1000), 1000);
	cr_assert_eq(late(got, 1000), 0);
	cr_assert_eq(a->ops->open_gid(a, 0), 0);
	cr_assert_eq(a->ops->open_gid(a, 1), -EINVAL);
	cr_assert_eq(a->ops->rx_capacity(a, LEN), UINT32_MAX);
	cr_assert_eq(a->fd, -1);
	cr_assert_eq(a->tap, NULL);
	a->tap = &tap;
	a->ops->next_deadline(a);
	a->tap = NULL;
}

Test(fault, fault_create__drop)
{
	unsigned int n =
		run(&(struct fault_spec){.seed = 2, .drop = UINT32_MAX / 4}, 10000, got, 10000);

	cr_assert(n > 7200 && n < 7800, "%u", n);
	cr_assert_eq(stats_get(&stats_a, DROP_fault), 10000 - n);
	cr_assert_eq(late(got, n), 0);
}

Test(fault, fault_create__dup)
{
	unsigned int n =
		run(&(struct fault_spec){.seed = 3, .dup = UINT32_MAX / 4}, 10000, got, 20000);
	unsigned int twice = 0;

	for (unsigned int i = 1; i < n; i++)
		twice += got[i] == got[i - 1];
	cr_assert(n > 12200 && n < 12800, "%u", n);
	cr_assert_eq(twice, n - 10000, "the copy is right behind");
}

Test(fault, fault_create__corrupt)
{
	unsigned int n =
		run(&(struct fault_spec){.seed = 4, .corrupt = UINT32_MAX / 4}, 10000, got, 10000);

	cr_assert(n > 7200 && n < 7800, "%u", n);
	cr_assert_eq(stats_get(&stats_b, DROP_icrc), 10000 - n);
	cr_assert_eq(stats_get(&stats_a, DROP_fault), 0);
}

/* Nothing is lost, and a packet moves by three places, or few more where its neighbours move too.
 */
Test(fault, fault_create__reorder)
{
	static bool seen[10000];
	unsigned int n =
		run(&(struct fault_spec){.seed = 5, .reorder = UINT32_MAX / 20}, 10000, got, 10000);

	cr_assert_eq(n, 10000);
	for (unsigned int i = 0; i < n; i++)
		seen[got[i]] = true;
	for (unsigned int i = 0; i < n; i++) {
		cr_assert(seen[i]);
		cr_assert_lt(abs((int)got[i] - (int)i), 8);
	}
	cr_assert(late(got, n) > 400, "%u", late(got, n));
}

/* The last packet of all has nothing that could pass it: it goes by time. */
Test(fault, fault_create__reorder_of_the_last)
{
	cr_assert_eq(run(&(struct fault_spec){.seed = 6, .reorder = UINT32_MAX}, 1, got, 1), 1);
}

Test(fault, fault_create__delay)
{
	setup(&(struct fault_spec){.seed = 7, .delay = UINT32_MAX, .delay_ns = 5000});
	put(1);
	a->ops->tx_flush(a, 100);
	put(2);
	a->ops->tx_flush(a, 200);
	cr_assert_eq(take(200, got, 9), 0);
	cr_assert_eq(a->ops->next_deadline(a), 5100);
	a->ops->tx_flush(a, 5099);
	cr_assert_eq(take(5099, got, 9), 0);
	a->ops->tx_flush(a, 5100);
	cr_assert_eq(take(5100, got, 9), 1);
	cr_assert_eq(got[0], 1);
	cr_assert_eq(a->ops->next_deadline(a), 5200);
	a->ops->tx_flush(a, 6000);
	cr_assert_eq(take(6000, got, 9), 1);
	cr_assert_eq(got[0], 2);
	cr_assert_eq(a->ops->next_deadline(a), UINT64_MAX);
}

/* More than there are slots for: the rest is sent at once, nothing is lost. */
Test(fault, fault_create__held_packets_are_bounded)
{
	unsigned int early;

	setup(&(struct fault_spec){.seed = 8, .delay = UINT32_MAX, .delay_ns = 5000});
	for (unsigned int i = 0; i < 1000; i++)
		put(i);
	a->ops->tx_flush(a, 1);
	early = take(1, got, 1000);
	cr_assert(early > 800 && early < 1000, "%u", early);
	a->ops->tx_flush(a, 5001);
	cr_assert_eq(take(5001, got, 1000), 1000 - early);
	for (unsigned int i = 0; i < 1000 - early; i++)
		cr_assert_eq(got[i], i, "in the order in which they were held");
}

Test(fault, fault_create__same_seed_same_faults)
{
	struct fault_spec spec = {.seed = 9,
				  .drop = UINT32_MAX / 20,
				  .dup = UINT32_MAX / 20,
				  .reorder = UINT32_MAX / 20,
				  .corrupt = UINT32_MAX / 20,
				  .delay = UINT32_MAX / 20};
	static uint32_t again[20000];
	unsigned int n, m;

	n = run(&spec, 5000, got, 20000);
	teardown();
	m = run(&spec, 5000, again, 20000);
	teardown();
	cr_assert_eq(n, m);
	cr_assert_arr_eq(got, again, n * sizeof(*got));
	spec.seed++;
	m = run(&spec, 5000, again, 20000);
	cr_assert(n != m || memcmp(got, again, n * sizeof(*got)));
}

Test(fault, fault_parse__understands)
{
	struct fault_spec s;
	const char *bad;

	cr_assert_eq(
		fault_parse("drop=1%,dup=0.5%,reorder=2%,corrupt=0.001,delay=100%,delay-us=200,"
			    "seed=7",
			    &s, &bad),
		0);
	cr_assert_eq(s.drop, 42949672);
	cr_assert_eq(s.dup, 21474836);
	cr_assert_eq(s.reorder, 85899345);
	cr_assert_eq(s.corrupt, 4294967);
	cr_assert_eq(s.delay, UINT32_MAX);
	cr_assert_eq(s.delay_ns, 200000);
	cr_assert_eq(s.seed, 7);
	cr_assert_eq(fault_parse("drop=1", &s, &bad), 0);
	cr_assert_eq(s.drop, UINT32_MAX);
	cr_assert_eq(s.delay_ns, 1000000);
	cr_assert_eq(fault_parse("drop=0", &s, &bad), 0);
	cr_assert_eq(s.drop, 0);
}

/* '^' stands before the first character that is wrong. */
Test(fault, fault_parse__points_at_the_error)
{
	static const char *const cases[] = {
		"^",
		"^lose=1%",
		"drop=^",
		"drop=^x",
		"drop=^-1%",
		"drop=^101%",
		"drop=^1.5",
		"drop=^nan",
		"drop=0^x1",
		"drop=^.",
		"drop=0.5^.1",
		"drop=1^e-3",
		"drop=^0.0000000000000001",
		"drop=^ 1%",
		"drop=1%^%",
		"drop=1%^;dup=1%",
		"drop=1%,^",
		"^drop",
		"drop=1%,^dro=1",
		"drop=1%,^,dup=1%",
		"seed=^-7",
		"seed=^",
		"seed=7^x",
		"seed=^99999999999999999999",
		"delay-us=^18446744073709551615",
		"delay-us=1^%",
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fault_spec s = {.seed = 77};
		char text[64];
		const char *bad = NULL;
		size_t at = strcspn(cases[i], "^");

		memcpy(text, cases[i], at);
		strcpy(text + at, cases[i] + at + 1);
		cr_assert_eq(fault_parse(text, &s, &bad), -EINVAL, "%s", text);
		cr_assert_eq(bad, text + at, "%s: points at \"%s\"", text, bad);
		cr_assert_eq(s.seed, 77, "left alone");
	}
}
