/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The queue of receive work requests: a ring whose producers lock and whose takers do not.
 *
 *          head                tail
 *           |                   |
 *     ------+-------------------+------
 *     free  |      posted       |  free
 *         takers             producers
 *
 * Head and tail run freely, 64 bits wide, so that no value comes back. A producer fills the slot at
 * tail under the lock and publishes it by storing tail. A taker copies the slot at head and then
 * claims it by moving head with a compare-and-swap. If that fails another taker was faster, a
 * producer may have overwritten the slot meanwhile, and the copy is thrown away. So the slots are
 * arrays of atomic words (read and written relaxed, which costs nothing). The number of SGEs shares
 * a word with the length: even in a copy that mixes two requests it is one that was checked.
 *
 *     store                     pairs with
 *     tail, release (producer)  tail, acquire (taker): the slot's words are there
 *     head, seq_cst (taker)     head, acquire (producer): the slot was read and may be reused
 *     head, seq_cst (taker)     head, seq_cst (rq_count): arming the limit, see srq.c
 *
 * A program may change its list while it is being posted. Everything is read once: num_sge into a
 * local that is checked and then used, each SGE into a local that is stored and summed up.
 */
#include "srq/rq.h"

#include "base/lock.h"
#include "base/macros.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

/* A slot: the wr_id; num_sge and length in one word; two words for each SGE. */
#define SLOT_WORDS(sges) (2 + 2 * (size_t)(sges))
/* The bytes of a ring stay far from overflow. */
#define RQ_MAX_WR (1u << 24)

typedef _Atomic uint64_t slot_word;

struct rq {
	slot_word *ring;
	uint32_t mask;	 /* slots - 1 */
	uint32_t max_wr; /* requests that fit */
	uint32_t max_sge;

	_Atomic uint64_t head CACHE_ALIGNED;

	_Atomic uint64_t tail CACHE_ALIGNED;
	struct lock lock; /* producers */
};

static slot_word *rq_slot(const struct rq *rq, uint64_t index)
{
	return rq->ring + (size_t)(index & rq->mask) * SLOT_WORDS(rq->max_sge);
}

static void put_word(slot_word *w, uint64_t v)
{
	atomic_store_explicit(w, v, memory_order_relaxed);
}

static uint64_t get_word(slot_word *w)
{
	return atomic_load_explicit(w, memory_order_relaxed);
}

static uint32_t ring_size(uint32_t n)
{
	return n <= 1 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

int rq_create(uint32_t max_wr, uint32_t max_sge, struct rq **out)
{
	struct rq *rq;
	size_t words;

	if (max_sge > RQ_MAX_SGE)
		return -EINVAL;
	if (max_wr > RQ_MAX_WR)
		return -ENOMEM;
	rq = aligned_alloc(CACHE_LINE, sizeof(*rq));
	if (!rq)
		return -ENOMEM;
	*rq = (struct rq){.mask = ring_size(max_wr) - 1, .max_wr = max_wr, .max_sge = max_sge};
	lock_init(&rq->lock);
	words = (rq->mask + 1) * SLOT_WORDS(max_sge);
	rq->ring = calloc(words, sizeof(slot_word));
	if (!rq->ring) {
		free(rq);
		return -ENOMEM;
	}
	*out = rq;
	return 0;
}

void rq_destroy(struct rq *rq)
{
	if (!rq)
		return;
	free(rq->ring);
	free(rq);
}

static uint64_t pack(uint32_t low, uint32_t high)
{
	return (uint64_t)high << 32 | low;
}

/* What another thread of the program may be writing to. */
#define read_once(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

/* Fills the slot at @index from what the program may be changing. Return: 0 or -EINVAL. */
static int fill_slot(struct rq *rq, uint64_t index, const struct ibv_recv_wr *wr)
{
	slot_word *slot = rq_slot(rq, index);
	const struct ibv_sge *list = read_once(wr->sg_list);
	int num_sge = read_once(wr->num_sge);
	uint64_t length = 0;

	if (num_sge < 0 || (uint32_t)num_sge > rq->max_sge)
		return -EINVAL;
	for (int i = 0; i < num_sge; i++) {
		uint32_t bytes = read_once(list[i].length);

		put_word(&slot[2 + 2 * i], read_once(list[i].addr));
		put_word(&slot[3 + 2 * i], pack(bytes, read_once(list[i].lkey)));
		length += bytes;
	}
	put_word(&slot[0], wr->wr_id);
	put_word(&slot[1], pack(min_t(uint64_t, length, UINT32_MAX), num_sge));
	return 0;
}

static int post_locked(struct rq *rq, const struct ibv_recv_wr *wr, uint64_t *tail)
{
	int ret;

	if (*tail - atomic_load_explicit(&rq->head, memory_order_acquire) >= rq->max_wr)
		return -ENOMEM;
	ret = fill_slot(rq, *tail, wr);
	if (!ret)
		++*tail;
	return ret;
}

int rq_post(struct rq *rq, const struct ibv_recv_wr *wr)
{
	uint64_t tail;
	int ret;

	lock_take(&rq->lock);
	tail = atomic_load_explicit(&rq->tail, memory_order_relaxed);
	ret = post_locked(rq, wr, &tail);
	atomic_store_explicit(&rq->tail, tail, memory_order_release);
	lock_give(&rq->lock);
	return ret;
}

int rq_post_list(struct rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	uint64_t tail;
	int ret = 0;

	/* One publication for the chain. A chain that runs in a circle ends when the queue is full.
	 */
	lock_take(&rq->lock);
	tail = atomic_load_explicit(&rq->tail, memory_order_relaxed);
	for (; wr; wr = wr->next) {
		ret = post_locked(rq, wr, &tail);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	atomic_store_explicit(&rq->tail, tail, memory_order_release);
	lock_give(&rq->lock);
	return ret;
}

static void copy_slot(const struct rq *rq, uint64_t index, struct rqe *out)
{
	slot_word *slot = rq_slot(rq, index);
	uint64_t sizes = get_word(&slot[1]);

	out->wr_id = get_word(&slot[0]);
	out->length = (uint32_t)sizes;
	out->num_sge = sizes >> 32;
	for (uint32_t i = 0; i < out->num_sge; i++) {
		uint64_t word = get_word(&slot[3 + 2 * i]);

		out->sge[i] = (struct ibv_sge){.addr = get_word(&slot[2 + 2 * i]),
					       .length = (uint32_t)word,
					       .lkey = word >> 32};
	}
}

bool rq_take(struct rq *rq, struct rqe *out)
{
	uint64_t head = atomic_load_explicit(&rq->head, memory_order_acquire);

	for (;;) {
		if (head == atomic_load_explicit(&rq->tail, memory_order_acquire))
			return false;
		copy_slot(rq, head, out);
		if (atomic_compare_exchange_weak_explicit(
			    &rq->head, &head, head + 1, memory_order_seq_cst, memory_order_acquire))
			return true;
	}
}

uint32_t rq_count(const struct rq *rq)
{
	/* Head before tail, so that the difference is never negative; it may count what came
	 * meanwhile. */
	uint64_t head = atomic_load_explicit(&rq->head, memory_order_seq_cst);
	uint64_t tail = atomic_load_explicit(&rq->tail, memory_order_acquire);

	return min_t(uint64_t, tail - head, rq->max_wr);
}

uint32_t rq_max_wr(const struct rq *rq)
{
	return rq->max_wr;
}

uint32_t rq_max_sge(const struct rq *rq)
{
	return rq->max_sge;
}
