/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Completion queues: order, overrun, arming, resizing, cleaning, and lanes that push side by side.
 */
#include "engine/cq.h"

#include "engine_stub.h"

#include <pthread.h>
#include <sched.h>

static struct engine *e;
static struct cq *cq;
static int user;

static void setup(void)
{
	e = stub_engine();
}

static void teardown(void)
{
	engine_destroy(e);
}

TestSuite(cq, .init = setup, .fini = teardown);

static bool push(uint64_t id, uint32_t qpn)
{
	struct ibv_wc wc = {.wr_id = id, .qp_num = qpn};

	return cq_push(cq, &wc, 1000 + id, false);
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
	cr_assert_eq(cq_create(e, 1, NULL, &cq), 0);
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
	cr_assert_eq(cq_create(e, 1, NULL, &cq), 0);
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
	cr_assert_eq(cq_create(e, 4, &user, &cq), 0);
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
	cr_assert(cq_is_empty(cq));
	cr_assert_eq(cq_resize(cq, 1), 0);
	cr_assert(push(0, 1));
	cr_assert_eq(atomic_load(&stub_async_events), 0u);
	cr_assert_eq(cq_destroy(cq), 0);
}

Test(cq, cq_push__overrun_is_one_event_and_for_ever)
{
	cr_assert_eq(cq_create(e, 3, &user, &cq), 0);
	cr_assert_eq(cq->capacity, 3u);
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
	cr_assert(cq_is_empty(cq));
	cr_assert_eq(cq_destroy(cq), 0);
}

Test(cq, cq_poll__batches)
{
	struct cqe cqe[4];

	cr_assert_eq(cq_create(e, 8, NULL, &cq), 0);
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
	cr_assert_eq(cq_create(e, 8, NULL, &cq), 0);
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

	cr_assert_eq(cq_create(e, 16, NULL, &cq), 0);
	cq_arm(cq, true);
	cr_assert(cq_push(cq, &good, 0, false));
	cr_assert_eq(atomic_load(&stub_cq_events), 0u);
	cr_assert(cq_push(cq, &good, 0, true));
	cr_assert_eq(atomic_load(&stub_cq_events), 1u);
	cq_arm(cq, true);
	cr_assert(cq_push(cq, &bad, 0, false)); /* an error fires without the bit */
	cr_assert_eq(atomic_load(&stub_cq_events), 2u);
	cq_arm(cq, true);
	cq_arm(cq, false); /* upgrades */
	cr_assert(cq_push(cq, &good, 0, false));
	cr_assert_eq(atomic_load(&stub_cq_events), 3u);
	cq_arm(cq, false);
	cq_arm(cq, true); /* does not downgrade */
	cr_assert(cq_push(cq, &good, 0, false));
	cr_assert_eq(atomic_load(&stub_cq_events), 4u);
	cr_assert_eq(cq_destroy(cq), 0);
}

Test(cq, cq_clean__only_that_qp)
{
	cr_assert_eq(cq_create(e, 4, NULL, &cq), 0);
	for (uint64_t i = 0; i < 3; i++) {
		cr_assert(push(i, 1));
		expect(i);
	}
	for (uint64_t i = 0; i < 4; i++)
		cr_assert(push(i, i % 2 ? 7 : 8));
	cq_clean(cq, 9);
	cq_clean(cq, 8);
	expect(1);
	expect(3);
	cr_assert(cq_is_empty(cq));
	cr_assert(push(9, 8));
	expect(9);
	cr_assert_eq(cq_destroy(cq), 0);
}

#define PUSHERS	   3
#define PER_PUSHER 20000

static void *pusher(void *arg)
{
	uint64_t base = (uintptr_t)arg * PER_PUSHER;

	/* Leaves room for the others: never more than its share of the queue is outstanding. */
	for (uint64_t i = 0; i < PER_PUSHER; i++) {
		while (cq->tail - cq->head >= cq->capacity - PUSHERS)
			sched_yield();
		if (!push(base + i, 1))
			return (void *)1;
	}
	return NULL;
}

Test(cq, cq_push__threads)
{
	uint64_t next[PUSHERS] = {0};
	pthread_t t[PUSHERS];
	struct cqe cqe[16];
	unsigned int armed = 0;

	cr_assert_eq(cq_create(e, 100, NULL, &cq), 0);
	for (uintptr_t i = 0; i < PUSHERS; i++)
		cr_assert_eq(pthread_create(&t[i], NULL, pusher, (void *)i), 0);
	for (unsigned int total = 0; total < PUSHERS * PER_PUSHER;) {
		int n = cq_poll(cq, 16, cqe);

		for (int i = 0; i < n; i++) {
			uint64_t id = cqe[i].wc.wr_id, who = id / PER_PUSHER;

			cr_assert_eq(id % PER_PUSHER, next[who]++);
		}
		total += n;
		if (!n)
			sched_yield();
		if (atomic_load(&stub_cq_events) == armed) {
			armed++;
			cq_arm(cq, false);
		}
		cr_assert_leq(atomic_load(&stub_cq_events), armed);
	}
	for (int i = 0; i < PUSHERS; i++) {
		void *failed;

		pthread_join(t[i], &failed);
		cr_assert_null(failed);
	}
	cr_assert_eq(cq_destroy(cq), 0);
}
