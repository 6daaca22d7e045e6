/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The engine's creation, numbers and tables, and that no thread of a table's stays behind. */
#include "engine/engine.h"

#include "engine_stub.h"

#include <dirent.h>
#include <sched.h>

static unsigned int threads(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned int n = 0;

	cr_assert_not_null(d);
	for (struct dirent *ent; (ent = readdir(d));)
		n += ent->d_name[0] != '.';
	closedir(d);
	return n;
}

Test(engine_table, engine_create__bad_config)
{
	static const struct engine_ops ops;
	struct engine_config config = {.ops = &ops};
	struct engine *e;

	cr_assert_eq(engine_create(&config, &e), -EINVAL);
	config.nlanes = 3;
	cr_assert_eq(engine_create(&config, &e), -EINVAL);
	config.nlanes = 2 * RXE_MAX_LANES;
	cr_assert_eq(engine_create(&config, &e), -EINVAL);
	config.nlanes = 4;
	config.ngids = RXE_MAX_GIDS + 1;
	cr_assert_eq(engine_create(&config, &e), -EINVAL);
	config.ngids = 1;
	cr_assert_eq(engine_create(&config, &e), 0);
	cr_assert_eq(stub_lanes, 4u);
	engine_destroy(e);
	cr_assert_eq(stub_lanes, 0u);
}

Test(engine_table, engine_create__a_lane_fails)
{
	static const struct engine_ops ops;
	struct engine_config config = {.ops = &ops, .nlanes = 4};
	struct engine *e;

	stub_fail_lane = 2;
	cr_assert_eq(engine_create(&config, &e), -ENOMEM);
	cr_assert_eq(stub_lanes, 0u);
}

Test(engine_table, engine_random__follows_the_seed)
{
	struct engine *a = stub_engine(), *b = stub_engine();
	uint64_t v[8];

	for (int i = 0; i < 8; i++) {
		v[i] = engine_random(a);
		cr_assert_eq(v[i], engine_random(b));
		for (int k = 0; k < i; k++)
			cr_assert_neq(v[i], v[k]);
	}
	engine_destroy(a);
	engine_destroy(b);
}

Test(engine_table, engine_stats__sums_up)
{
	static const struct engine_ops ops;
	struct engine_config config = {.ops = &ops, .nlanes = 2};
	struct stats sum;
	struct engine *e;

	cr_assert_eq(engine_create(&config, &e), 0);
	stats_add(&e->lanes[0]->stats, STAT_tx_packets, 3);
	stats_add(&e->lanes[1]->stats, STAT_tx_packets, 4);
	stats_drop(&e->lanes[1]->stats, DROP_icrc);
	engine_stats(e, &sum);
	cr_assert_eq(stats_get(&sum, STAT_tx_packets), 7u);
	cr_assert_eq(stats_get(&sum, DROP_icrc), 1u);
	cr_assert_eq(stats_get(&sum, STAT_rx_packets), 0u);
	engine_destroy(e);
}

struct item {
	uint32_t number;
	struct cds_lfht_node node;
};

static int match(struct cds_lfht_node *node, const void *key)
{
	return caa_container_of(node, struct item, node)->number == *(const uint32_t *)key;
}

static struct item *find(struct cds_lfht *t, uint32_t number)
{
	struct cds_lfht_node *node = engine_table_find(t, match, number);

	return node ? caa_container_of(node, struct item, node) : NULL;
}

static void add(struct cds_lfht *t, struct item *items, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		items[i].number = i;
		cds_lfht_node_init(&items[i].node);
		rcu_read_lock();
		cds_lfht_add(t, engine_hash(i), &items[i].node);
		rcu_read_unlock();
		engine_table_grow(t, i + 1);
	}
}

static void del(struct cds_lfht *t, struct item *items, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		rcu_read_lock();
		cr_assert_eq(cds_lfht_del(t, &items[i].node), 0);
		rcu_read_unlock();
	}
}

/* ThreadSanitizer starts one of its own with the first thread. */
#ifdef __SANITIZE_THREAD__
#define CHECKER_THREADS 1
#else
#define CHECKER_THREADS 0
#endif

/* A thread that was joined may still be listed for a moment; one that stays runs into the timeout.
 */
static void wait_for_threads(unsigned int n)
{
	while (threads() > n + CHECKER_THREADS)
		sched_yield();
}

/* Enough entries that liburcu splits the work of a resize over threads. */
#define MANY 100000

Test(engine_table, engine_table_grow__finds_all_and_leaves_no_thread, .timeout = 20)
{
	struct item *items = calloc(MANY, sizeof(*items));
	struct cds_lfht *t = engine_table_create();
	unsigned int before = threads();

	cr_assert_not_null(items);
	cr_assert_not_null(t);
	add(t, items, 0, MANY);
	rcu_read_lock();
	for (uint32_t i = 0; i < MANY; i++)
		cr_assert_eq(find(t, i), &items[i]);
	cr_assert_null(find(t, MANY));
	rcu_read_unlock();

	/* Down to few and past a power of two again, which makes it smaller. */
	del(t, items, 50, MANY);
	synchronize_rcu();
	add(t, items, 50, 200);
	rcu_read_lock();
	for (uint32_t i = 0; i < 200; i++)
		cr_assert_eq(find(t, i), &items[i]);
	cr_assert_null(find(t, 200));
	rcu_read_unlock();
	wait_for_threads(before);

	del(t, items, 0, 200);
	synchronize_rcu();
	engine_table_destroy(t);
	wait_for_threads(before);
	free(items);
}
