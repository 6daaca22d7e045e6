/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Completion queues: order, overrun, arming, resizing, cleaning, and lanes that push side by side.
 */
#include "engine/cq.h"

#include "engine_stub.h"

#include <pthread.h>
#include <sched.h>

#define PUSHERS	   4
#define PER_PUSHER 20000
#define POLLERS	   2

static struct engine *e;
static struct cq *cq;
static int user;

static void setup(void)
{
	e = stub_engine_lanes(PUSHERS);
}

static void teardown(void)
{
	engine_destroy(e);
}

TestSuite(cq, .init = setup, .fini = teardown);

static bool push_in(unsigned int lane, uint64_t id, uint32_t qpn)
{
	struct ibv_wc wc = {.wr_id = id, .qp_num = qpn};

	return cq_push(cq, lane, &wc, 1000 + id, false);
}

static bool push(uint64_t id, uint32_t qpn)
{
	return push_in(0, id, qpn);
}

static void create(uint32_t cqe, void *face)
{
	cr_assert_eq(cq_create(e, cqe, face, &cq), 0);
	cr_assert_eq(cq_reserve(cq, 0), 0);
}

static void expect(uint64_t id)
{
	struct cqe cqe;

	cr_assert_eq(cq_poll(cq, 1, &cqe), 1);
	cr_assert_eq(cqe.wc.wr_id, id);
	cr_assert_eq(cqe.timestamp, 1000 + id);
}

Test(cq, cq_create__limits)
{
	cr_assert_eq(cq_create(e, 0, NULL, &cq), -EINVAL);
	cr_assert_eq(cq_create(e, RXE_MAX_CQE + 1, NULL, &cq), -EINVAL);
	create(1, NULL);
	cr_assert_eq(atomic_load(&e->ncqs), 1u);
	cr_assert_eq(cq_destroy(cq), 0);
	cr_assert_eq(cq_create(e, RXE_MAX_CQE, NULL, &cq), 0);
	cr_assert_eq(cq_destroy(cq), 0);
	cr_assert_eq(atomic_load(&e->ncqs), 0u);
}

Test(cq, cq_create__device_full)
{
	struct cq *last;

	atomic_store(&e->ncqs, RXE_MAX_CQ - 1);
	cr_assert_eq(cq_create(e, 1, NULL, &last), 0);
	cr_assert_eq(cq_create(e, 1, NULL, &cq), -ENOMEM);
	cr_assert_eq(atomic_load(&e->ncqs), (unsigned int)RXE_MAX_CQ);
	cr_assert_eq(cq_destroy(last), 0);
}

Test(cq, cq_destroy__busy)
{
	create(1, NULL);
	atomic_fetch_add(&cq->refs, 1);
	cr_assert_eq(cq_destroy(cq), -EBUSY);
	atomic_fetch_sub(&cq->refs, 1);
	cr_assert_eq(cq_destroy(cq), 0);
}

/* A lane's bit is there as long as one of its users is. */
Test(cq, cq_count_lane__as_many_as_came)
{
	cr_assert_eq(cq_create(e, 1, NULL, &cq), 0);
	cq_count_lane(cq, 0, 2);
	cq_count_lane(cq, 3, 1);
	cr_assert_eq(cq_lanes(cq), 0x9u);
	cq_count_lane(cq, 0, 1);
	cq_count_lane(cq, 0, -2);
	cr_assert_eq(cq_lanes(cq), 0x9u);
	cq_count_lane(cq, 0, -1);
	cr_assert_eq(cq_lanes(cq), 0x8u);
	cq_count_lane(cq, 3, -1);
	cr_assert_eq(cq_lanes(cq), 0u);
	cr_assert_eq(cq_destroy(cq), 0);
}

Test(cq, cq_resize__keeps_order)
{
	create(4, &user);
	cr_assert_eq(cq_resize(cq, 0), -EINVAL);
	/* Move the indices, so that the entries wrap round the ring's end. */
	for (uint64_t i = 0; i < 3; i++) {
		cr_assert(push(i, 1));
		expect(i);
	}
	for (uint64_t i = 0; i < 4; i++)
		cr_assert(push(i, 1));
	cr_assert_eq(cq_resize(cq, 3), -EINVAL);
	cr_assert_eq(cq_resize(cq, 0), -EINVAL);
	cr_assert_eq(cq_resize(cq, RXE_MAX_CQE + 1), -EINVAL);
	cr_assert_eq(cq_resize(cq, 4), 0);
	cr_assert_eq(cq_resize(cq, 9), 0);
	for (uint64_t i = 4; i < 9; i++)
		cr_assert(push(i, 1));
	for (uint64_t i = 0; i < 9; i++)
		expect(i);
	cr_assert_eq(cq_used(cq), 0u);
	cr_assert_eq(cq_resize(cq, 1), 0);
	cr_assert(push(0, 1));
	cr_assert_eq(atomic_load(&stub_async_events), 0u);
	cr_assert_eq(cq_destroy(cq), 0);
}

Test(cq, cq_push__overrun_is_one_event_and_for_ever)
{
	create(3, &user);
	cr_assert_eq(atomic_load(&cq->capacity), 3u);
	for (uint64_t i = 0; i < 3; i++)
		cr_assert(push(i, 1));
	cr_assert_not(push(3, 1));
	cr_assert_eq(stub_last_async, IBV_EVENT_CQ_ERR);
	cr_assert_eq(stub_last_user, &user);
	cr_assert_not(push(4, 1));
	for (uint64_t i = 0; i < 3; i++)
		expect(i);
	cr_assert_not(push(5, 1));
	cr_assert_eq(atomic_load(&stub_async_events), 1u);
	cr_assert_eq(cq_used(cq), 0u);
	cr_assert_eq(cq_destroy(cq), 0);
}

Test(cq, cq_poll__batches)
{
	struct cqe cqe[4];

	create(8, NULL);
	cr_assert_eq(cq_poll(cq, 4, cqe), 0);
	for (uint64_t i = 0; i < 5; i++)
		cr_assert(push(i, 1));
	cr_assert_eq(cq_poll(cq, 0, cqe), 0);
	cr_assert_eq(cq_poll(cq, -1, cqe), 0);
	cr_assert_eq(cq_poll(cq, 4, cqe), 4);
	cr_assert_eq(cqe[3].wc.wr_id, 3u);
	cr_assert_eq(cq_poll(cq, 4, cqe), 1);
	cr_assert_eq(cqe[0].wc.wr_id, 4u);
	cr_assert_eq(cq_destroy(cq), 0);
}

/* C5: one event for an arming; what is in the queue already does not fire. */
Test(cq, cq_arm__C5_one_shot)
{
	create(8, NULL);
	cr_assert(push(0, 1));
	cr_assert_eq(atomic_load(&stub_cq_events), 0u);
	cq_arm(cq, false);
	cr_assert_eq(atomic_load(&stub_cq_events), 0u);
	cr_assert(push(1, 1));
	cr_assert(push(2, 1));
	cr_assert_eq(atomic_load(&stub_cq_events), 1u);
	cr_assert_eq(cq_destroy(cq), 0);
}

Test(cq, cq_arm__solicited)
{
	struct ibv_wc good = {.status = IBV_WC_SUCCESS}, bad = {.status = IBV_WC_WR_FLUSH_ERR};

	create(16, NULL);
	cq_arm(cq, true);
	cr_assert(cq_push(cq, 0, &good, 0, false));
	cr_assert_eq(atomic_load(&stub_cq_events), 0u);
	cr_assert(cq_push(cq, 0, &good, 0, true));
	cr_assert_eq(atomic_load(&stub_cq_events), 1u);
	cq_arm(cq, true);
	cr_assert(cq_push(cq, 0, &bad, 0, false)); /* an error fires without the bit */
	cr_assert_eq(atomic_load(&stub_cq_events), 2u);
	cq_arm(cq, true);
	cq_arm(cq, false); /* upgrades */
	cr_assert(cq_push(cq, 0, &good, 0, false));
	cr_assert_eq(atomic_load(&stub_cq_events), 3u);
	cq_arm(cq, false);
	cq_arm(cq, true); /* does not downgrade */
	cr_assert(cq_push(cq, 0, &good, 0, false));
	cr_assert_eq(atomic_load(&stub_cq_events), 4u);
	cr_assert_eq(cq_destroy(cq), 0);
}

Test(cq, cq_clean__only_that_qp)
{
	create(4, NULL);
	for (uint64_t i = 0; i < 3; i++) {
		cr_assert(push(i, 1));
		expect(i);
	}
	for (uint64_t i = 0; i < 4; i++)
		cr_assert(push(i, i % 2 ? 7 : 8));
	cq_clean(cq, 0, 9);
	cq_clean(cq, 0, 8);
	expect(1);
	expect(3);
	cr_assert_eq(cq_used(cq), 0u);
	cr_assert(push(9, 8));
	expect(9);
	cr_assert_eq(cq_destroy(cq), 0);
}

/* The queue has room for what was promised, whoever uses it, and for no more. */
Test(cq, cq_push__capacity_is_shared)
{
	for (unsigned int first = 0; first <= 10; first++) {
		create(10, &user);
		atomic_store(&stub_async_events, 0);
		for (unsigned int i = 0; i < first; i++)
			cr_assert(push_in(0, i, 1));
		cr_assert_eq(cq_reserve(cq, 1), 0);
		for (unsigned int i = first; i < 10; i++)
			cr_assert(push_in(1, i, 1));
		cr_assert_eq(cq_used(cq), 10u);
		cr_assert_eq(atomic_load(&stub_async_events), 0u);
		cr_assert_not(push_in(first % 2, 10, 1));
		cr_assert_eq(atomic_load(&stub_async_events), 1u);
		cr_assert_eq(cq_destroy(cq), 0);
	}
}

/* Room comes back, and with it the time when nobody looks at the others. */
Test(cq, cq_push__room_comes_back)
{
	create(8, NULL);
	cr_assert_eq(cq_reserve(cq, 1), 0);
	for (unsigned int round = 0; round < 3; round++) {
		struct cqe cqe[8];

		for (unsigned int i = 0; i < 8; i++)
			cr_assert(push_in(0, i, 1));
		cr_assert(atomic_load(&cq->tight) & 1);
		cr_assert_eq(cq_poll(cq, 8, cqe), 8);
		cr_assert(push_in(1, 0, 1));
		cr_assert_not(atomic_load(&cq->tight) & 1);
		cr_assert_eq(cq_poll(cq, 8, cqe), 1);
	}
	cr_assert_eq(cq_destroy(cq), 0);
}

/* No lane waits for another's completions to be polled first. */
Test(cq, cq_poll__lanes_take_turns)
{
	create(64, NULL);
	cr_assert_eq(cq_reserve(cq, 1), 0);
	cr_assert_eq(cq_reserve(cq, CQ_FOREIGN), 0);
	for (unsigned int i = 0; i < 4; i++) {
		cr_assert(push_in(0, i, 1));
		cr_assert(push_in(1, 10 + i, 1));
		cr_assert(push_in(CQ_FOREIGN, 20 + i, 1));
	}
	for (unsigned int i = 0; i < 4; i++) {
		expect(i);
		expect(10 + i);
		expect(20 + i);
	}
	cr_assert_eq(cq_used(cq), 0u);
	cr_assert_eq(cq_destroy(cq), 0);
}

static unsigned int count_rings(void)
{
	unsigned int n = 0;

	for (const struct cq_ring *r = cq->rings; r; r = r->next)
		n++;
	return n;
}

Test(cq, cq_resize__all_rings)
{
	struct cqe cqe;

	create(4, NULL);
	cr_assert_eq(cq_reserve(cq, 1), 0);
	cr_assert(push_in(0, 0, 1));
	cr_assert(push_in(1, 1, 1));
	cr_assert(push_in(1, 2, 1));
	cr_assert_eq(cq_resize(cq, 2), -EINVAL);
	cr_assert_eq(cq_resize(cq, 3), 0);
	cr_assert_eq(cq_resize(cq, 1000), 0);
	for (uint64_t i = 3; i < 1000; i++)
		cr_assert(push_in(i % 2, i, 1));
	cr_assert_eq(cq_used(cq), 1000u);
	/* A ring is used again rather than made again: resizing for ever costs no memory. */
	for (unsigned int i = 0; i < 1000; i++)
		cr_assert_eq(cq_poll(cq, 1, &cqe), 1);
	for (unsigned int i = 0; i < 100; i++) {
		cr_assert_eq(cq_resize(cq, 5), 0);
		cr_assert_eq(cq_resize(cq, 2000), 0);
	}
	cr_assert_eq(count_rings(), 6);
	cr_assert_eq(cq_destroy(cq), 0);
}

static unsigned int polled[PUSHERS * PER_PUSHER];
static atomic_uint total, armings;
static atomic_bool resizing;

static void *pusher(void *arg)
{
	unsigned int lane = (uintptr_t)arg;
	uint64_t base = (uint64_t)lane * PER_PUSHER;

	/* Leaves room for the others, who may push one each meanwhile. */
	for (uint64_t i = 0; i < PER_PUSHER; i++) {
		bool ok;

		while (cq_used(cq) >= 100 - PUSHERS)
			sched_yield();
		lane_lock(e->lanes[lane], 0);
		ok = push_in(lane, base + i, 1);
		lane_unlock(e->lanes[lane]);
		if (!ok)
			return "overrun";
	}
	return NULL;
}

static void *poller(void *arg)
{
	uint64_t next[PUSHERS] = {0};
	struct cqe cqe[16];

	while (atomic_load(&total) < PUSHERS * PER_PUSHER) {
		int n = cq_poll(cq, 16, cqe);

		for (int i = 0; i < n; i++) {
			uint64_t id = cqe[i].wc.wr_id, who = id / PER_PUSHER;

			if (cqe[i].timestamp != 1000 + id)
				return "changed";
			if (id % PER_PUSHER < next[who])
				return "out of order";
			next[who] = id % PER_PUSHER + 1;
			polled[id]++;
		}
		atomic_fetch_add(&total, n);
		if (!n)
			sched_yield();
		/* No other arms before this one's event has come. */
		if (arg && atomic_load(&stub_cq_events) == atomic_load(&armings)) {
			atomic_fetch_add(&armings, 1);
			cq_arm(cq, false);
		}
	}
	return NULL;
}

static void *resizer(void *arg)
{
	static const uint32_t sizes[] = {100, 1000, 128, 5000};

	for (unsigned int i = 0; atomic_load(&resizing); i++) {
		int ret = cq_resize(cq, sizes[i % ARRAY_SIZE(sizes)]);

		if (ret)
			return "resize";
		lane_lock(e->lanes[1], 0);
		cq_clean(cq, 1, 77);
		lane_unlock(e->lanes[1]);
		sched_yield();
	}
	return NULL;
}

Test(cq, cq_push__threads)
{
	pthread_t t[PUSHERS + POLLERS + 1];

	create(100, NULL);
	for (uintptr_t i = 0; i < PUSHERS; i++)
		cr_assert_eq(cq_reserve(cq, i), 0);
	atomic_store(&resizing, true);
	for (uintptr_t i = 0; i < PUSHERS; i++)
		cr_assert_eq(pthread_create(&t[i], NULL, pusher, (void *)i), 0);
	for (uintptr_t i = 0; i < POLLERS; i++)
		cr_assert_eq(pthread_create(&t[PUSHERS + i], NULL, poller, (void *)i), 0);
	cr_assert_eq(pthread_create(&t[PUSHERS + POLLERS], NULL, resizer, NULL), 0);
	for (int i = 0; i <= PUSHERS + POLLERS; i++) {
		void *failed;

		if (i == PUSHERS + POLLERS)
			atomic_store(&resizing, false);
		pthread_join(t[i], &failed);
		cr_assert_null(failed, "%s", (char *)failed);
	}
	for (size_t i = 0; i < ARRAY_SIZE(polled); i++)
		cr_assert_eq(polled[i], 1);
	cr_assert_leq(atomic_load(&stub_cq_events), atomic_load(&armings));
	cr_assert_geq(atomic_load(&stub_cq_events) + 1, atomic_load(&armings));
	cr_assert_eq(cq_destroy(cq), 0);
}
