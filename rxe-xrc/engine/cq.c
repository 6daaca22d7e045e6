/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues: rings, an arming, and an overrun that cannot be undone.
 *
 * Events. A pusher puts its entry and then reads `armed`; a program arms and then polls. All four are
 * sequentially consistent, so the entry is polled or the event comes. Pushers that see an arming claim it with a
 * compare-and-swap, so one arming gives one event. It may be that of a completion which was polled while its pusher
 * had not looked at `armed` yet: programs find nothing then, and arm again.
 * The face's callback makes a system call, but no lock is held then. The queue outlives it: whoever pushes holds
 * a reference to the queue through its QP or SRQ, and those are only released after a grace period.
 *
 * Room. Entries of all rings together must not exceed the capacity, and to look at every ring for each
 * completion would bring the other lanes' cache lines here. So a pusher that has less than its share in the queue
 * looks at nobody. One that exceeds it says so (`tight`) and then all look, until there is room for everybody
 * again. Lanes that push at the very same time may each take the last place: a queue may hold as many more than
 * was promised as there are other lanes, never fewer. Each ring has room for all.
 *
 * Control calls that move entries keep pushers away by holding their lanes, and takers by freezing the rings.
 */
#include "engine/cq.h"

#include "engine/lane.h"

#include <errno.h>
#include <stdlib.h>

/* In `tight`; the rest counts those who said so, since this may be taken back only if nobody did meanwhile. */
#define TIGHT	  1u
#define TIGHT_ONE 2u

static struct cq_ring *ring_of(struct cq *cq, unsigned int pusher)
{
	return atomic_load(&cq->ring[pusher]);
}

/* The next of the pushers in @set, which it leaves. */
static inline unsigned int next_pusher(uint32_t *set)
{
	unsigned int pusher = (unsigned int)__builtin_ctz(*set);

	*set &= *set - 1;
	return pusher;
}

static uint32_t pushers(struct cq *cq)
{
	return atomic_load(&cq->pushers);
}

int cq_create(struct engine *e, uint32_t cqe, void *user, struct cq **out)
{
	struct cq *cq;

	if (!cqe || cqe > RXE_MAX_CQE)
		return -EINVAL;
	if (atomic_fetch_add(&e->ncqs, 1) >= RXE_MAX_CQ)
		goto err_count;
	if (posix_memalign((void **)&cq, CACHE_LINE, sizeof(*cq)))
		goto err_count;
	*cq = (struct cq){.engine = e, .user = user, .capacity = cqe, .quota = cqe};
	lock_init(&cq->foreign);
	*out = cq;
	return 0;

err_count:
	atomic_fetch_sub(&e->ncqs, 1);
	return -ENOMEM;
}

int cq_destroy(struct cq *cq)
{
	struct engine *e = cq->engine;
	struct cq_ring *r, *next;
	bool busy;

	engine_lock(e);
	busy = atomic_load(&cq->refs);
	engine_unlock(e);
	if (busy)
		return -EBUSY;
	atomic_fetch_sub(&e->ncqs, 1);
	for (r = cq->rings; r; r = next) {
		next = r->next;
		free(r);
	}
	free(cq);
	return 0;
}

/* --- rings ------------------------------------------------------------------------------------ */

static void say_tight(struct cq *cq)
{
	uint32_t was = atomic_load(&cq->tight);

	while (!atomic_compare_exchange_strong(&cq->tight, &was, (was + TIGHT_ONE) | TIGHT))
		;
}

static void share_out(struct cq *cq)
{
	unsigned int n = (unsigned int)__builtin_popcount(pushers(cq));

	atomic_store(&cq->quota, atomic_load(&cq->capacity) / (n ? n : 1));
	/* Those that exceed it by now have not said so. */
	say_tight(cq);
}

/* A ring of @pusher that is not in use and large enough, or a new one. */
static struct cq_ring *spare_ring(struct cq *cq, unsigned int pusher, uint32_t entries)
{
	struct cq_ring *r;

	for (r = cq->rings; r; r = r->next)
		if (r->pusher == pusher && r->size >= entries && r != ring_of(cq, pusher))
			return r;
	r = cq_ring_create(pusher, entries);
	if (r) {
		r->next = cq->rings;
		cq->rings = r;
	}
	return r;
}

int cq_reserve(struct cq *cq, unsigned int pusher)
{
	struct cq_ring *r;

	if (ring_of(cq, pusher))
		return 0;
	r = spare_ring(cq, pusher, atomic_load(&cq->capacity));
	if (!r)
		return -ENOMEM;
	cq_ring_move_in(r, NULL);
	atomic_store(&cq->ring[pusher], r);
	atomic_fetch_or(&cq->pushers, 1u << pusher);
	share_out(cq);
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

/* Rings for @cqe entries, where those there are too small. 0 or -ENOMEM. */
static int larger_rings(struct cq *cq, uint32_t cqe, struct cq_ring **larger)
{
	for (uint32_t set = pushers(cq); set;) {
		unsigned int i = next_pusher(&set);

		if (ring_of(cq, i)->size >= cqe)
			continue;
		larger[i] = spare_ring(cq, i, cqe);
		if (!larger[i])
			return -ENOMEM;
	}
	return 0;
}

/* Keeps all pushers away, or lets them go on. */
static void keep_away(struct cq *cq)
{
	for (uint32_t set = pushers(cq) & ~(1u << CQ_FOREIGN); set;)
		lane_lock(cq->engine->lanes[next_pusher(&set)], 0);
	lock_take(&cq->foreign);
}

static void let_go(struct cq *cq)
{
	lock_give(&cq->foreign);
	for (uint32_t set = pushers(cq) & ~(1u << CQ_FOREIGN); set;)
		lane_unlock(cq->engine->lanes[next_pusher(&set)]);
}

/* Pushers are away. */
static void move_rings(struct cq *cq, struct cq_ring **larger)
{
	for (unsigned int i = 0; i < CQ_PUSHERS; i++) {
		struct cq_ring *from;

		if (!larger[i])
			continue;
		from = ring_of(cq, i);
		cq_ring_freeze(from);
		cq_ring_move_in(larger[i], from);
		atomic_store(&cq->ring[i], larger[i]);
	}
}

int cq_resize(struct cq *cq, uint32_t cqe)
{
	struct cq_ring *larger[CQ_PUSHERS] = {NULL};
	int ret = -EINVAL;

	if (!cqe || cqe > RXE_MAX_CQE)
		return -EINVAL;
	engine_lock(cq->engine);
	keep_away(cq);
	if (cq_used(cq) <= cqe)
		ret = larger_rings(cq, cqe, larger);
	if (!ret) {
		move_rings(cq, larger);
		atomic_store(&cq->capacity, cqe);
		share_out(cq);
	}
	let_go(cq);
	engine_unlock(cq->engine);
	return ret;
}

void cq_clean(struct cq *cq, unsigned int lane, uint32_t qpn)
{
	struct cq_ring *r = ring_of(cq, lane);

	if (r)
		cq_ring_remove(r, qpn);
}

/* --- pushing ---------------------------------------------------------------------------------- */

uint64_t cq_used(struct cq *cq)
{
	struct cq_ring *ring[CQ_PUSHERS];
	uint64_t tail[CQ_PUSHERS], n = 0;
	unsigned int nrings = 0;

	for (uint32_t set = pushers(cq); set; nrings++) {
		ring[nrings] = ring_of(cq, next_pusher(&set));
		tail[nrings] = atomic_load(&ring[nrings]->tail);
	}
	/* What was taken since the last of these looks is not there, and what was pushed is not counted. */
	for (unsigned int i = 0; i < nrings; i++) {
		uint64_t head = atomic_load(&ring[i]->head) / 2;

		n += head < tail[i] ? tail[i] - head : 0;
	}
	return n;
}

/* Whether the pusher of @r, who does not know of enough room in his share, has it. */
static bool find_room(struct cq *cq, struct cq_ring *r)
{
	uint32_t quota = atomic_load(&cq->quota), tight;
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed), used;

	r->head_seen = atomic_load(&r->head) / 2;
	if (tail - r->head_seen >= quota)
		say_tight(cq);
	tight = atomic_load(&cq->tight);
	if (!(tight & TIGHT))
		return true;
	used = cq_used(cq);
	if (used < quota)
		atomic_compare_exchange_strong(&cq->tight, &tight, tight & ~TIGHT);
	return used < atomic_load(&cq->capacity);
}

static inline bool has_room(struct cq *cq, struct cq_ring *r)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	if (likely(tail - r->head_seen < atomic_load(&cq->quota) &&
		   !(atomic_load(&cq->tight) & TIGHT)))
		return true;
	return find_room(cq, r);
}

/* Whether this completion fires; disarms then. */
static bool fires(struct cq *cq, const struct ibv_wc *wc, bool solicited)
{
	enum cq_arm armed = atomic_load(&cq->armed);

	for (;;) {
		if (likely(armed == CQ_IDLE))
			return false;
		if (armed == CQ_ARMED_SOLICITED && !solicited && wc->status == IBV_WC_SUCCESS)
			return false;
		if (atomic_compare_exchange_strong(&cq->armed, &armed, CQ_IDLE))
			return true;
	}
}

static bool put(struct cq *cq, unsigned int pusher, const struct ibv_wc *wc, uint64_t now)
{
	struct cq_ring *r = ring_of(cq, pusher);
	struct cqe cqe;

	if (unlikely(atomic_load(&cq->overrun) || !has_room(cq, r)))
		return false;
	cqe.wc = *wc;
	cqe.timestamp = now;
	cq_ring_put(r, &cqe);
	return true;
}

bool cq_push(struct cq *cq, unsigned int pusher, const struct ibv_wc *wc, uint64_t now,
	     bool solicited)
{
	bool done;

	if (unlikely(pusher == CQ_FOREIGN)) {
		lock_take(&cq->foreign);
		done = put(cq, pusher, wc, now);
		lock_give(&cq->foreign);
	} else {
		done = put(cq, pusher, wc, now);
	}
	if (unlikely(!done)) {
		if (!atomic_exchange(&cq->overrun, true))
			cq->engine->ops->async_event(cq->engine, IBV_EVENT_CQ_ERR, cq->user);
		return false;
	}
	if (fires(cq, wc, solicited))
		cq->engine->ops->cq_event(cq);
	return true;
}

/* --- polling ---------------------------------------------------------------------------------- */

/* The rings of @set, from that of @turn on, which becomes the one behind the last. Return: as cq_ring_take() */
static int take_from(struct cq *cq, uint32_t set, unsigned int *turn, int n, struct cqe *out)
{
	uint32_t before = set & ((1u << *turn) - 1), now = set ^ before;
	int got = 0, ret = 0;

	while (got < n && (now || before)) {
		unsigned int pusher;
		int more;

		if (!now) {
			now = before;
			before = 0;
		}
		pusher = next_pusher(&now);
		more = cq_ring_take(ring_of(cq, pusher), n - got, out + got);
		if (unlikely(more < 0)) {
			ret = more;
			continue;
		}
		got += more;
		*turn = (pusher + 1) % CQ_PUSHERS;
	}
	return got ? got : ret;
}

int cq_poll(struct cq *cq, int n, struct cqe *out)
{
	uint32_t set = pushers(cq);
	unsigned int turn = 0, tries = 0;
	bool several = set & (set - 1);
	int got;

	if (n <= 0)
		return 0;
	if (several)
		turn = atomic_load(&cq->turn);
	/* Frozen: a control call is moving what is in it, to another ring perhaps. */
	while (unlikely((got = take_from(cq, set, &turn, n, out)) < 0))
		give_way(++tries);
	if (several && got)
		atomic_store_explicit(&cq->turn, turn, memory_order_relaxed);
	return got;
}

void cq_arm(struct cq *cq, bool solicited_only)
{
	enum cq_arm idle = CQ_IDLE;

	if (!solicited_only)
		atomic_store(&cq->armed, CQ_ARMED_ANY);
	else /* what is armed for all stays so */
		atomic_compare_exchange_strong(&cq->armed, &idle, CQ_ARMED_SOLICITED);
}
