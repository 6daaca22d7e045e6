/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues: a ring under a lock, an arming, and an overrun that cannot be undone.
 *
 * Events are raised after the lock has been released, since the face's callback makes a system
 * call. They are decided under the lock, so an arming gives one event and an overrun gives one,
 * however many lanes push. The queue outlives the callback: whoever pushes holds a reference to the
 * queue through its QP or SRQ, and those are only released after a grace period.
 */
#include "engine/cq.h"

#include "base/macros.h"

#include <errno.h>
#include <stdlib.h>

static uint32_t get(const _Atomic uint32_t *index)
{
	return atomic_load_explicit(index, memory_order_relaxed);
}

static void put(_Atomic uint32_t *index, uint32_t v)
{
	atomic_store_explicit(index, v, memory_order_relaxed);
}

static uint32_t ring_size(uint32_t cqe)
{
	uint32_t size = 1;

	while (size < cqe)
		size *= 2;
	return size;
}

int cq_create(struct engine *e, uint32_t cqe, void *user, struct cq **out)
{
	struct cq *cq;

	if (!cqe || cqe > RXE_MAX_CQE)
		return -EINVAL;
	if (atomic_fetch_add(&e->ncqs, 1) >= RXE_MAX_CQ)
		goto err_count;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		goto err_count;
	*cq = (struct cq){.engine = e, .user = user, .size = ring_size(cqe), .capacity = cqe};
	lock_init(&cq->lock);
	cq->ring = malloc(cq->size * sizeof(struct cqe));
	if (!cq->ring)
		goto err_free;
	*out = cq;
	return 0;

err_free:
	free(cq);
err_count:
	atomic_fetch_sub(&e->ncqs, 1);
	return -ENOMEM;
}

int cq_destroy(struct cq *cq)
{
	struct engine *e = cq->engine;
	bool busy;

	engine_lock(e);
	busy = atomic_load(&cq->refs);
	engine_unlock(e);
	if (busy)
		return -EBUSY;
	atomic_fetch_sub(&e->ncqs, 1);
	free(cq->ring);
	free(cq);
	return 0;
}

void cq_count_lane(struct cq *cq, unsigned int lane, int n)
{
	cq->lane_users[lane] += n;
	if (cq->lane_users[lane])
		atomic_fetch_or(&cq->lanes, 1u << lane);
	else
		atomic_fetch_and(&cq->lanes, ~(1u << lane));
}

/* Moves the entries into @ring. Return: false when they do not fit; nothing has changed then. */
static bool move_ring_locked(struct cq *cq, struct cqe *ring, uint32_t size, uint32_t cqe)
{
	uint32_t head = get(&cq->head), n = get(&cq->tail) - head;

	if (n > cqe)
		return false;
	for (uint32_t i = 0; i < n; i++)
		ring[i] = cq->ring[(head + i) & (cq->size - 1)];
	cq->ring = ring;
	cq->size = size;
	cq->capacity = cqe;
	put(&cq->head, 0);
	put(&cq->tail, n);
	return true;
}

int cq_resize(struct cq *cq, uint32_t cqe)
{
	uint32_t size = ring_size(min_t(uint32_t, cqe, RXE_MAX_CQE));
	struct cqe *ring, *old;
	bool fits;

	if (!cqe || cqe > RXE_MAX_CQE)
		return -EINVAL;
	ring = malloc(size * sizeof(struct cqe));
	if (!ring)
		return -ENOMEM;
	lock_take(&cq->lock);
	old = cq->ring;
	fits = move_ring_locked(cq, ring, size, cqe);
	lock_give(&cq->lock);
	free(fits ? old : ring);
	return fits ? 0 : -EINVAL;
}

/* Whether this completion fires; disarms then. */
static bool fires_locked(struct cq *cq, const struct ibv_wc *wc, bool solicited)
{
	if (likely(cq->armed == CQ_IDLE))
		return false;
	if (cq->armed == CQ_ARMED_SOLICITED && !solicited && wc->status == IBV_WC_SUCCESS)
		return false;
	cq->armed = CQ_IDLE;
	return true;
}

bool cq_push(struct cq *cq, const struct ibv_wc *wc, uint64_t now, bool solicited)
{
	bool full, fire = false, broke = false;
	uint32_t tail;

	lock_take(&cq->lock);
	tail = get(&cq->tail);
	full = cq->overrun || tail - get(&cq->head) >= cq->capacity;
	if (unlikely(full)) {
		broke = !cq->overrun;
		cq->overrun = true;
	} else {
		struct cqe *cqe = &cq->ring[tail & (cq->size - 1)];

		cqe->wc = *wc;
		cqe->timestamp = now;
		put(&cq->tail, tail + 1);
		fire = fires_locked(cq, wc, solicited);
	}
	lock_give(&cq->lock);

	if (unlikely(broke))
		cq->engine->ops->async_event(cq->engine, IBV_EVENT_CQ_ERR, cq->user);
	if (fire)
		cq->engine->ops->cq_event(cq);
	return !full;
}

int cq_poll(struct cq *cq, int n, struct cqe *out)
{
	uint32_t head, have;

	/* Programs poll empty queues most of the time: that must not disturb whoever pushes. */
	if (n <= 0 || cq_is_empty(cq))
		return 0;
	lock_take(&cq->lock);
	head = get(&cq->head);
	have = min_t(uint32_t, get(&cq->tail) - head, n);
	for (uint32_t i = 0; i < have; i++)
		out[i] = cq->ring[(head + i) & (cq->size - 1)];
	put(&cq->head, head + have);
	lock_give(&cq->lock);
	return have;
}

bool cq_is_empty(const struct cq *cq)
{
	return get(&cq->head) == get(&cq->tail);
}

void cq_arm(struct cq *cq, bool solicited_only)
{
	lock_take(&cq->lock);
	if (!solicited_only)
		cq->armed = CQ_ARMED_ANY;
	else if (cq->armed == CQ_IDLE)
		cq->armed = CQ_ARMED_SOLICITED;
	lock_give(&cq->lock);
}

void cq_clean(struct cq *cq, uint32_t qpn)
{
	uint32_t keep;

	lock_take(&cq->lock);
	keep = get(&cq->head);
	for (uint32_t i = keep; i != get(&cq->tail); i++) {
		const struct cqe *cqe = &cq->ring[i & (cq->size - 1)];

		if (cqe->wc.qp_num != qpn)
			cq->ring[keep++ & (cq->size - 1)] = *cqe;
	}
	put(&cq->tail, keep);
	lock_give(&cq->lock);
}
