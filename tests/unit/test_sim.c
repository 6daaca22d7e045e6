// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The simulated network: what it promises to the tests that rely on it. */
#include "net/sim.h"
#include "wire/hdr.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#define PERCENT (UINT32_MAX / 100)
#define LATENCY 1000

static const uint8_t ip_a[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1};
static const uint8_t ip_b[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2};
static const uint8_t ip_b6[16] = {0xfd, [15] = 2};

static struct sim *sim;
static struct link *a, *b;
static struct stats stats_a, stats_b;
static unsigned int fates[SIM_REORDERED + 1];

static void observe(void *arg, uint64_t now, const struct wire_ip *ip, const uint8_t *p, size_t len,
		    enum sim_fate fate)
{
	cr_assert_geq(len, WIRE_BTH_LEN);
	fates[fate]++;
}

static void setup(const struct sim_config *config)
{
	memset(&stats_a, 0, sizeof(stats_a));
	memset(&stats_b, 0, sizeof(stats_b));
	memset(fates, 0, sizeof(fates));
	sim = sim_create(config);
	a = sim_link(sim, ip_a, &stats_a);
	b = sim_link(sim, ip_b, &stats_b);
	sim_observe(sim, observe, NULL);
}

static void teardown(void)
{
	if (!sim)
		return;
	a->ops->destroy(a);
	sim_destroy(sim);
	b->ops->destroy(b);
	sim = NULL;
}

/* A packet with its number in the BTH's place of the PSN, so that a copy is recognised. */
static void put(struct link *l, const uint8_t to[16], uint32_t number, size_t len)
{
	struct link_dest d = {.ttl = 64, .sport = 50000};
	uint8_t *p;

	memcpy(d.dgid, to, 16);
	p = l->ops->tx_reserve(l, &d, len);
	cr_assert_not_null(p);
	for (size_t i = 0; i < len; i++)
		p[i] = i * 5 + number;
	memcpy(p, &number, sizeof(number));
	l->ops->tx_commit(l, 0);
}

static uint32_t number_of(const struct link_rx *v)
{
	uint32_t number;

	memcpy(&number, v->data, sizeof(number));
	for (size_t i = sizeof(number); i < v->len; i++)
		cr_assert_eq(v->data[i], (uint8_t)(i * 5 + number), "damaged and delivered");
	return number;
}

struct run {
	unsigned int delivered, distinct, late; /* late: behind one with a higher number */
	uint64_t hash;				/* of numbers and times of arrival */
};

/* @n packets, one each 100 ns, until the last has arrived. */
static struct run run(const struct sim_config *config, unsigned int n)
{
	static bool seen[100000];
	struct run r = {.hash = 14695981039346656037u};
	struct link_rx v[LINK_RX_BURST];
	uint64_t now = 0;
	uint32_t highest = 0;

	setup(config);
	memset(seen, 0, sizeof(seen));
	for (unsigned int i = 0; i < n || sim_next(sim) != UINT64_MAX; i++, now += 100) {
		unsigned int got;

		if (i < n) {
			put(a, ip_b, i, 16 + i % 300 * 4);
			a->ops->tx_flush(a, now);
		}
		while ((got = b->ops->rx_burst(b, v, LINK_RX_BURST, now)) != 0) {
			for (unsigned int k = 0; k < got; k++) {
				uint32_t number = number_of(&v[k]);

				r.delivered++;
				r.distinct += !seen[number];
				seen[number] = true;
				r.late += number < highest;
				highest = number > highest ? number : highest;
				r.hash = (r.hash ^ number ^ now << 32) * 1099511628211u;
			}
		}
	}
	cr_assert_eq(fates[0] + fates[1] + fates[2] + fates[3] + fates[4], n);
	teardown();
	return r;
}

TestSuite(sim, .fini = teardown, .timeout = 20);

Test(sim, rx_burst__only_what_has_arrived)
{
	struct link_rx v[4];

	setup(&(struct sim_config){.seed = 1, .latency_ns = LATENCY});
	cr_assert_eq(sim_next(sim), UINT64_MAX);
	put(a, ip_b, 7, 64);
	cr_assert_eq(sim_next(sim), UINT64_MAX, "not sent before the flush");
	a->ops->tx_flush(a, 500);
	cr_assert_eq(sim_next(sim), 500 + LATENCY);
	cr_assert_eq(b->ops->rx_burst(b, v, 4, 500 + LATENCY - 1), 0);
	cr_assert_eq(b->ops->rx_burst(b, v, 4, 500 + LATENCY), 1);
	cr_assert_eq(number_of(&v[0]), 7);
	cr_assert_arr_eq(v[0].ip.src, ip_a, 16);
	cr_assert_arr_eq(v[0].ip.dst, ip_b, 16);
	cr_assert_eq(v[0].ip.sport, 50000);
	cr_assert_eq(b->ops->rx_burst(b, v, 4, 500 + LATENCY), 0);
	cr_assert_eq(sim_next(sim), UINT64_MAX);
}

Test(sim, rx_burst__in_order_without_faults)
{
	struct run r = run(&(struct sim_config){.seed = 3, .latency_ns = LATENCY}, 5000);

	cr_assert_eq(r.delivered, 5000);
	cr_assert_eq(r.distinct, 5000);
	cr_assert_eq(r.late, 0);
}

/* Packets of one flush arrive at the same time, in the order of sending and over several bursts. */
Test(sim, rx_burst__in_order_at_one_time)
{
	struct link_rx v[10];

	setup(&(struct sim_config){.seed = 3});
	for (unsigned int i = 0; i < 500; i++)
		put(a, ip_b, i, 64);
	a->ops->tx_flush(a, 9);
	for (unsigned int i = 0; i < 500; i++) {
		if (i % 10 == 0)
			cr_assert_eq(b->ops->rx_burst(b, v, 10, 9), 10);
		cr_assert_eq(number_of(&v[i % 10]), i);
	}
}

Test(sim, sim_add_ip__more_addresses)
{
	struct link_rx v[2];

	setup(&(struct sim_config){.seed = 1});
	cr_assert_eq(b->ops->open_gid(b, 0), 0);
	cr_assert_eq(b->ops->open_gid(b, 1), -EINVAL);
	cr_assert_eq(sim_add_ip(b, ip_b6), 0);
	cr_assert_eq(b->ops->open_gid(b, 1), 0);
	put(a, ip_b6, 1, 64);
	put(a, (const uint8_t[16]){1}, 2, 64);
	a->ops->tx_flush(a, 0);
	cr_assert_eq(b->ops->rx_burst(b, v, 2, 0), 1);
	cr_assert_arr_eq(v[0].ip.dst, ip_b6, 16);
	cr_assert_eq(fates[SIM_DROPPED], 1, "nobody has the address");
}

static const struct sim_config hostile = {
	.seed = 42,
	.drop = 5 * PERCENT,
	.dup = 5 * PERCENT,
	.reorder = 5 * PERCENT,
	.corrupt = 5 * PERCENT,
	.latency_ns = LATENCY,
	.jitter_ns = 5000,
};

Test(sim, sim_create__same_seed_same_run)
{
	struct sim_config other = hostile;
	struct run first = run(&hostile, 5000), again = run(&hostile, 5000), third;

	other.seed++;
	third = run(&other, 5000);
	cr_assert_eq(first.hash, again.hash);
	cr_assert_eq(first.delivered, again.delivered);
	cr_assert_neq(first.hash, third.hash);
}

/* Five standard deviations round the expected count. */
static void near(unsigned int got, double n, double p, const char *what)
{
	double mean = n * p, off = got - mean;

	cr_assert(off * off < 25 * n * p * (1 - p), "%s: %u, not about %.0f", what, got, mean);
}

Test(sim, sim_create__rates)
{
	const unsigned int n = 20000;
	struct run r = run(&hostile, n);

	near(fates[SIM_DROPPED], n, .05, "dropped");
	near(fates[SIM_CORRUPTED], n, .05 * .95, "corrupted");
	near(fates[SIM_DUPLICATED], n, .05 * .95 * .95, "duplicated");
	near(fates[SIM_REORDERED], n, .05 * .95 * .95 * .95, "reordered");
	cr_assert_eq(r.distinct, n - fates[SIM_DROPPED] - fates[SIM_CORRUPTED]);
	cr_assert_eq(r.delivered, r.distinct + fates[SIM_DUPLICATED]);
	cr_assert_eq(stats_get(&stats_b, STAT_rx_packets), r.delivered);
}

/* Reordered packets are late by up to 50 packets: few keep their place, none is lost. */
Test(sim, sim_create__reorder)
{
	struct run r = run(&(struct sim_config){.seed = 6,
						.reorder = 5 * PERCENT,
						.latency_ns = LATENCY,
						.jitter_ns = 5000},
			   10000);

	near(fates[SIM_REORDERED], 10000, .05, "reordered");
	cr_assert_eq(r.distinct, 10000);
	cr_assert_eq(r.delivered, 10000);
	cr_assert(r.late > fates[SIM_REORDERED] * 9 / 10 && r.late <= fates[SIM_REORDERED], "%u",
		  r.late);
}

/* One flipped bit anywhere: never delivered, always counted. number_of() compares each byte. */
Test(sim, sim_create__corrupt_never_arrives)
{
	struct run r = run(&(struct sim_config){.seed = 5, .corrupt = UINT32_MAX}, 20000);

	cr_assert_eq(r.delivered, 0);
	cr_assert_eq(fates[SIM_CORRUPTED], 20000);
	cr_assert_eq(stats_get(&stats_b, DROP_icrc), 20000);
}

Test(sim, tx_commit__corrupt_flag)
{
	struct link_dest d = {.ttl = 64};
	struct link_rx v[2];

	setup(&(struct sim_config){.seed = 1});
	memcpy(d.dgid, ip_b, 16);
	memset(a->ops->tx_reserve(a, &d, 64), 0, 64);
	a->ops->tx_commit(a, LINK_TX_CORRUPT);
	a->ops->tx_flush(a, 0);
	cr_assert_eq(b->ops->rx_burst(b, v, 2, 0), 0);
	cr_assert_eq(fates[SIM_CORRUPTED], 1);
	cr_assert_eq(stats_get(&stats_b, DROP_icrc), 1);
}

Test(sim, tx_reserve__may_be_abandoned)
{
	struct link_dest d = {.ttl = 64};
	struct link_rx v[2];

	setup(&(struct sim_config){.seed = 1});
	memcpy(d.dgid, ip_b, 16);
	cr_assert_not_null(a->ops->tx_reserve(a, &d, 64));
	put(a, ip_b, 1, 64);
	cr_assert_not_null(a->ops->tx_reserve(a, &d, 64));
	a->ops->tx_flush(a, 0);
	cr_assert_eq(b->ops->rx_burst(b, v, 2, 0), 1);
}

Test(sim, sim_create__queue)
{
	struct link_rx v[LINK_RX_BURST];

	setup(&(struct sim_config){.seed = 1, .queue = 8, .latency_ns = LATENCY});
	cr_assert_eq(b->ops->rx_capacity(b, 4096), 8);
	for (unsigned int i = 0; i < 20; i++)
		put(a, ip_b, i, 64);
	a->ops->tx_flush(a, 0);
	cr_assert_eq(fates[SIM_DELIVERED], 8);
	cr_assert_eq(fates[SIM_DROPPED], 12);
	cr_assert_eq(b->ops->rx_burst(b, v, LINK_RX_BURST, LATENCY), 8);
	put(a, ip_b, 20, 64);
	a->ops->tx_flush(a, LATENCY);
	cr_assert_eq(fates[SIM_DELIVERED], 9);
}

Test(sim, sim_set_faults__from_now_on)
{
	struct sim_config config = {.seed = 1};
	struct link_rx v[4];

	setup(&config);
	config.drop = UINT32_MAX;
	sim_set_faults(sim, &config);
	put(a, ip_b, 1, 64);
	a->ops->tx_flush(a, 0);
	config.drop = 0;
	sim_set_faults(sim, &config);
	put(a, ip_b, 2, 64);
	a->ops->tx_flush(a, 0);
	cr_assert_eq(b->ops->rx_burst(b, v, 4, 0), 1);
	cr_assert_eq(number_of(&v[0]), 2);
}

/* The tap sees the counter and an ICRC that is right with it. */
static unsigned int tapped;

static void check_packet(struct link_tap *t, enum link_dir dir, const struct wire_ip *ip,
			 const uint8_t *p, size_t len)
{
	static uint16_t last;
	uint32_t icrc = htole32(wire_icrc(ip, p, len - WIRE_ICRC_LEN));

	cr_assert_arr_eq(p + len - WIRE_ICRC_LEN, (uint8_t *)&icrc, WIRE_ICRC_LEN);
	if (dir == LINK_SENT && tapped)
		cr_assert_eq(ip->id, (uint16_t)(last + 1));
	last = ip->id;
	tapped++;
}

Test(sim, tap__sees_the_real_id)
{
	struct link_tap tap = {.packet = check_packet};
	struct link_rx v[4];

	setup(&(struct sim_config){.seed = 1});
	a->tap = b->tap = &tap;
	for (unsigned int i = 0; i < 3; i++) {
		put(a, ip_b, i, 64);
		a->ops->tx_flush(a, i);
		cr_assert_eq(b->ops->rx_burst(b, v, 4, i), 1);
	}
	cr_assert_eq(tapped, 6);
}

/* Whichever goes first; what is under way goes too. */
Test(sim, sim_destroy__in_any_order)
{
	setup(&(struct sim_config){.seed = 1, .latency_ns = LATENCY});
	put(a, ip_b, 1, 64);
	a->ops->tx_flush(a, 0);
	put(a, ip_b, 2, 64);
	b->ops->destroy(b);
	a->ops->tx_flush(a, 1);
	cr_assert_eq(fates[SIM_DROPPED], 1);
	sim_destroy(sim);
	sim = NULL;
	put(a, ip_b, 3, 64);
	a->ops->destroy(a);
}
