/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The engine as a whole: its tables of numbers, its lanes, its source of random numbers.
 *
 * The tables are liburcu's lock-free hash tables without automatic resizing, which would leave a
 * worker thread behind, and a fork loses threads. Instead whoever adds an object calls
 * engine_table_grow() with the number of objects, which resizes in the caller.
 *
 * Objects leave in three steps everywhere: out of the table under ctl, synchronize_rcu() without
 * any lock, free. Control calls never take ctl inside a read section, so the grace period always
 * ends.
 */
#include "engine/engine.h"

#include "base/thread.h"
#include "engine/lane.h"

#include <errno.h>
#include <stdlib.h>

/* Buckets of an empty table, a power of two. */
#define TABLE_MIN 64u

int engine_create(const struct engine_config *config, struct engine **out)
{
	struct engine *e;
	int ret = -ENOMEM;

	if (!config->ops || !config->nlanes || (config->nlanes & (config->nlanes - 1)) ||
	    config->nlanes > RXE_MAX_LANES || config->ngids > RXE_MAX_GIDS)
		return -EINVAL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->ops = config->ops;
	e->user = config->user;
	memcpy(e->gids, config->gids, sizeof(e->gids));
	e->ngids = config->ngids;
	e->active_mtu = config->active_mtu;
	e->nlanes = config->nlanes;
	e->rng = config->seed;
	CDS_INIT_LIST_HEAD(&e->xrcds);
	CDS_INIT_LIST_HEAD(&e->mw_bound);
	lock_init(&e->mw_lock);
	pthread_mutex_init(&e->ctl, NULL);

	e->qps = engine_table_create();
	e->srqs = engine_table_create();
	e->keys = engine_table_create();
	e->lanes = calloc(e->nlanes, sizeof(struct lane *));
	if (!e->qps || !e->srqs || !e->keys || !e->lanes)
		goto err_destroy;
	for (unsigned int i = 0; i < e->nlanes; i++) {
		ret = lane_create(e, i, &e->lanes[i]);
		if (ret)
			goto err_destroy;
	}
	*out = e;
	return 0;

err_destroy:
	engine_destroy(e);
	return ret;
}

void engine_destroy(struct engine *e)
{
	/* Lane 0 last: its link holds the addresses against other processes (net/udp.h). */
	if (e->lanes)
		for (unsigned int i = e->nlanes; i--;)
			if (e->lanes[i])
				lane_destroy(e->lanes[i]);
	free(e->lanes);
	engine_table_destroy(e->keys);
	engine_table_destroy(e->srqs);
	engine_table_destroy(e->qps);
	pthread_mutex_destroy(&e->ctl);
	free(e);
}

/* A counter whose bits are well mixed (Weyl sequence and the finaliser of MurmurHash3, 64 bits). */
uint64_t engine_random(struct engine *e)
{
	uint64_t v = e->rng += 0x9e3779b97f4a7c15ull;

	v ^= v >> 33;
	v *= 0xff51afd7ed558ccdull;
	v ^= v >> 33;
	v *= 0xc4ceb9fe1a85ec53ull;
	return v ^ v >> 33;
}

void engine_stats(const struct engine *e, struct stats *sum)
{
	for (unsigned int s = 0; s < STAT_COUNT; s++) {
		uint64_t n = 0;

		for (unsigned int i = 0; i < e->nlanes; i++)
			n += stats_get(&e->lanes[i]->stats, s);
		atomic_store_explicit(&sum->value[s], n, memory_order_relaxed);
	}
}

struct cds_lfht *engine_table_create(void)
{
	return cds_lfht_new(TABLE_MIN, TABLE_MIN, 0, 0, NULL);
}

void engine_table_destroy(struct cds_lfht *t)
{
	if (t)
		cds_lfht_destroy(t, NULL);
}

void engine_lock(struct engine *e)
{
	mutex_enter(&e->ctl, &e->ctl_cancel);
}

void engine_unlock(struct engine *e)
{
	mutex_leave(&e->ctl, &e->ctl_cancel);
}

void engine_wait_readers(void)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	synchronize_rcu();
	pthread_setcancelstate(cancel, NULL);
}

void engine_table_grow(struct cds_lfht *t, unsigned int count)
{
	/*
	 * A power of two is reached: the table has at most that many buckets, or it was larger once
	 * and shrinks to what it needs. Between two powers there is nothing to do.
	 */
	if (count >= TABLE_MIN && !(count & (count - 1)))
		cds_lfht_resize(t, 2ul * count);
}
