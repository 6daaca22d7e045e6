/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The completions that one pusher has for one queue: a ring with one producer and any number of takers.
 *
 * A pusher is a lane, so two threads never push to one ring at the same time (whoever runs the lane does), and
 * pushing needs no compare-and-swap. Takers copy entries first and then claim what they copied with one
 * compare-and-swap of head, a whole batch at once. Had others been faster, it fails and the copies are thrown
 * away; positions count up without end, so no head comes twice. A thread that is stopped anywhere in here holds
 * nobody up but those who wait for its own lane: the others go on, and lose nothing.
 *
 *     store                             pairs with                      so that
 *     put: tail, seq_cst                take: tail, seq_cst             the entry is there
 *     take: head, release               room: head, acquire             what is copied is not written
 *     put: tail, then armed is read     armed is stored, then tail read an event or an entry is seen (cq.c)
 *     freeze: head, acq_rel             take: swap of head fails        nobody claims what is being moved
 *
 * Entries are arrays of atomic words, read and written relaxed: a taker may copy one that is being written, and
 * then cannot claim it.
 *
 * Frozen, a ring keeps takers away; so a control call can take entries out of the middle, or move all to
 * another ring. What moved has new positions above all old ones, so a taker that copied before that fails.
 * Rings are not freed before their queue, since a taker may still look at one that is no longer used.
 */
#ifndef RXE_ENGINE_CQ_RING_H
#define RXE_ENGINE_CQ_RING_H

#include "base/macros.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct cqe {
	struct ibv_wc wc;
	uint64_t timestamp; /* ns, as the lane's now */
};

#define CQE_WORDS (sizeof(struct cqe) / sizeof(uint64_t))

struct cq_ring {
	struct cq_ring *next; /* of its queue's, newest first */
	unsigned int pusher;
	uint32_t size;	    /* power of two */
	uint64_t head_seen; /* pusher: a value that head had */
	_Atomic uint64_t tail CACHE_ALIGNED;
	_Atomic uint64_t head CACHE_ALIGNED; /* position * 2, and CQ_RING_FROZEN */
	struct {
		_Atomic uint64_t word[CQE_WORDS];
	} CACHE_ALIGNED entry[];
};

#define CQ_RING_FROZEN 1u

/** cq_ring_create() - room for at least @entries; frozen until something is moved in. NULL: no memory. */
struct cq_ring *cq_ring_create(unsigned int pusher, uint32_t entries);

/**
 * cq_ring_put() - appends; the pusher. There must be room.
 */
void cq_ring_put(struct cq_ring *r, const struct cqe *cqe);

/** cq_ring_take() - removes up to @n. Any thread. Return: how many; -EAGAIN: it is frozen. */
int cq_ring_take(struct cq_ring *r, int n, struct cqe *out);

/*
 * Control calls, with the pusher kept away.
 * cq_ring_freeze() - from here on nobody takes
 * cq_ring_move_in() - takes over all of @from (NULL: nothing), which stays frozen, and is open
 * cq_ring_remove() - takes out all of QP @qpn
 */
void cq_ring_freeze(struct cq_ring *r);
void cq_ring_move_in(struct cq_ring *r, struct cq_ring *from);
void cq_ring_remove(struct cq_ring *r, uint32_t qpn);

#endif
