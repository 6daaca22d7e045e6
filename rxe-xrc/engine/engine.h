/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The engine: the whole protocol of one device, without a system call or a clock.
 *
 * Whoever runs it (the verbs face, a simulation) gives it links that carry packets, calls it with the
 * time as an argument, and is told of completion and asynchronous events through struct engine_ops.
 *
 * Objects are looked up by number in RCU hash tables (liburcu, flavour bp); a lane holds one read section
 * for each burst. Destroying an object takes it out of its table and waits for a grace period, so a
 * packet in flight never meets freed memory. Control calls may sleep; the data path never does.
 */
#ifndef RXE_ENGINE_ENGINE_H
#define RXE_ENGINE_ENGINE_H

#include "base/lock.h"
#include "base/stats.h"
#include "engine/foreign.h"
#include "engine/limits.h"
#include "net/link.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <urcu-bp.h>
#include <urcu/list.h>
#include <urcu/rculfhash.h>

struct cq;
struct engine;
struct foreign_ops;
struct lane;
struct qp;
struct srq;

/*
 * What the face above provides. Called with a lane held, so they may not call back into the engine; the first
 * two also by the thread that serves other processes (foreign.h).
 */
struct engine_ops {
	/* An armed completion queue got a completion (once for each arming). */
	void (*cq_event)(struct cq *cq);
	/* @user: the object's user pointer; for port and device events NULL. */
	void (*async_event)(struct engine *e, enum ibv_event_type type, void *user);
	/* The next deadline of @lane moved forward, or work waits for a holder of it. May be NULL. */
	void (*wake)(struct engine *e, struct lane *lane);
	/* The way to SRQs of other processes (foreign.h); NULL: there is none. */
	const struct foreign_ops *foreign;
};

/* One entry of the GID table. */
struct engine_gid {
	uint8_t ip[16]; /* IPv4 mapped; all zero: the entry is unused */
	uint32_t ifindex;
	uint32_t scope_id; /* of a link-local address, else 0 */
};

struct engine_config {
	const struct engine_ops *ops;
	void *user; /* engine->user */
	struct engine_gid gids[RXE_MAX_GIDS];
	unsigned int ngids;
	enum ibv_mtu active_mtu;
	uint64_t seed;	     /* of the numbers of QPs, SRQs and keys */
	unsigned int nlanes; /* power of two, at most RXE_MAX_LANES */
};

struct engine {
	const struct engine_ops *ops;
	void *user;
	struct engine_gid gids[RXE_MAX_GIDS];
	unsigned int ngids;
	atomic_uint open_gids;		  /* a bit for each index that is usable in every lane */
	_Atomic(enum ibv_mtu) active_mtu; /* follows the interface */
	unsigned int nlanes;
	struct lane **lanes;
	atomic_uint lanes_used; /* those that have QPs, a bit each; written under ctl */
	/* Number -> object. Readers: lanes, in an RCU section. Writers: control calls, under ctl. */
	struct cds_lfht *qps;
	struct cds_lfht *srqs;
	struct cds_lfht *keys;
	struct cds_list_head xrcds; /* domains that a file names (pd.c), under ctl */
	/* Serialises control calls that change tables, domains or reference counts. */
	pthread_mutex_t ctl; /* engine_lock() */
	int ctl_cancel;	     /* cancel state of the thread that holds it */
	uint64_t rng;
	atomic_uint nqps, nsrqs, ncqs, nmrs, nmws, npds;
	/* Changes to memory windows, which lanes make too (mr.c): type 2 windows that are bound. */
	struct lock mw_lock;
	struct cds_list_head mw_bound;
	/* Numbers for SRQs of shared domains (srq_obj.c), under ctl */
	uint32_t srqn_blocks[FOREIGN_MAX_BLOCKS];
	unsigned int nblocks;
	unsigned int nshared_srqs;
	_Atomic uint64_t foreign_seq; /* the last sequence number that a packet for an owner got */
};

/** engine_create() - 0 or -errno. Lanes have no link yet: lane_set_link(). */
int engine_create(const struct engine_config *config, struct engine **out);

/** engine_destroy() - every object must be gone; links are destroyed with their lanes. */
void engine_destroy(struct engine *e);

/** engine_random() - next number of the engine's seeded generator; ctl must be held. */
uint64_t engine_random(struct engine *e);

/*
 * engine_lock(), engine_unlock() - the ctl mutex. A thread that is cancelled inside would leave it locked for
 * ever: cancellation waits until it is outside, as it does while a lane is held. engine_wait_readers() - a
 * grace period, by the same rule: liburcu has locks, too.
 */
void engine_lock(struct engine *e);
void engine_unlock(struct engine *e);
void engine_wait_readers(void);

/** engine_stats() - sum over the lanes. */
void engine_stats(const struct engine *e, struct stats *sum);

/** engine_hash() - the hash by which every table files a 24 or 32 bit number. */
static inline unsigned long engine_hash(uint32_t number)
{
	return (unsigned long)number * 0x9e3779b97f4a7c15ul >> 20;
}

/*
 * engine_table_*: number -> object tables. Adding and removing is done under ctl. They do not resize by
 * themselves (that would need a helper thread, which a fork would lose): engine_table_add() doubles the
 * table in the caller when it has become full.
 */
struct cds_lfht *engine_table_create(void);
void engine_table_destroy(struct cds_lfht *t);
void engine_table_grow(struct cds_lfht *t, unsigned int count);

/** engine_table_find() - the node of @number, which @match compares with; NULL. In the caller's RCU section. */
static inline struct cds_lfht_node *engine_table_find(struct cds_lfht *t, cds_lfht_match_fct match,
						      uint32_t number)
{
	struct cds_lfht_iter iter;

	cds_lfht_lookup(t, engine_hash(number), match, &number, &iter);
	return cds_lfht_iter_get_node(&iter);
}

#endif
