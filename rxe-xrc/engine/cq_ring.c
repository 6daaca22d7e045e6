/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Completions of one pusher; how it works and why its orders are enough is in cq_ring.h. */
#include "engine/cq_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct cqe) % sizeof(uint64_t) == 0, "an entry is copied in words");

static _Atomic uint64_t *entry_at(struct cq_ring *r, uint64_t pos)
{
	return r->entry[pos & (r->size - 1)].word;
}

static inline void write_entry(_Atomic uint64_t *to, const struct cqe *cqe)
{
	uint64_t w[CQE_WORDS];

	memcpy(w, cqe, sizeof(w));
	for (size_t i = 0; i < CQE_WORDS; i++)
		atomic_store_explicit(&to[i], w[i], memory_order_relaxed);
}

static inline void read_entry(_Atomic uint64_t *from, struct cqe *cqe)
{
	uint64_t w[CQE_WORDS];

	for (size_t i = 0; i < CQE_WORDS; i++)
		w[i] = atomic_load_explicit(&from[i], memory_order_relaxed);
	memcpy(cqe, w, sizeof(w));
}

struct cq_ring *cq_ring_create(unsigned int pusher, uint32_t entries)
{
	struct cq_ring *r;
	uint32_t size = 1;

	while (size < entries)
		size *= 2;
	if (posix_memalign((void **)&r, CACHE_LINE, sizeof(*r) + size * sizeof(r->entry[0])))
		return NULL;
	/* The entries are left alone: a large ring costs the memory of what is used. */
	memset(r, 0, sizeof(*r));
	r->pusher = pusher;
	r->size = size;
	atomic_init(&r->head, CQ_RING_FROZEN);
	return r;
}

void cq_ring_put(struct cq_ring *r, const struct cqe *cqe)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	write_entry(entry_at(r, tail), cqe);
	atomic_store(&r->tail, tail + 1);
}

int cq_ring_take(struct cq_ring *r, int n, struct cqe *out)
{
	uint64_t head = atomic_load(&r->head);

	for (;;) {
		uint64_t pos = head / 2, tail;
		int have;

		if (unlikely(head & CQ_RING_FROZEN))
			return -EAGAIN;
		tail = atomic_load(&r->tail);
		have = (int)min_t(uint64_t, tail - pos, (uint64_t)n);
		if (!have)
			return 0;
		for (int i = 0; i < have; i++)
			read_entry(entry_at(r, pos + (uint64_t)i), &out[i]);
		if (atomic_compare_exchange_strong(&r->head, &head, 2 * (pos + (uint64_t)have)))
			return have;
	}
}

void cq_ring_freeze(struct cq_ring *r)
{
	atomic_fetch_or(&r->head, CQ_RING_FROZEN);
}

/* Positions from @head to @tail, for takers. */
static void open_ring(struct cq_ring *r, uint64_t head, uint64_t tail)
{
	r->head_seen = head;
	atomic_store(&r->tail, tail);
	atomic_store(&r->head, 2 * head);
}

void cq_ring_move_in(struct cq_ring *r, struct cq_ring *from)
{
	/* Above any position that a taker of this ring may still have in his hands. */
	uint64_t head = atomic_load(&r->tail) + 1;
	uint64_t first = from ? atomic_load(&from->head) / 2 : 0;
	uint64_t n = from ? atomic_load(&from->tail) - first : 0;
	struct cqe cqe;

	for (uint64_t i = 0; i < n; i++) {
		read_entry(entry_at(from, first + i), &cqe);
		write_entry(entry_at(r, head + i), &cqe);
	}
	open_ring(r, head, head + n);
}

void cq_ring_remove(struct cq_ring *r, uint32_t qpn)
{
	uint64_t tail = atomic_load(&r->tail), head, keep = tail;
	struct cqe cqe;

	cq_ring_freeze(r);
	head = atomic_load(&r->head) / 2;
	/* Those that stay move up, so that head moves on when any goes. */
	for (uint64_t i = tail; i-- != head;) {
		read_entry(entry_at(r, i), &cqe);
		if (cqe.wc.qp_num != qpn)
			write_entry(entry_at(r, --keep), &cqe);
	}
	open_ring(r, keep, tail);
}
