/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The shared receive queue's limit: fires once for one arming, whoever takes and whoever arms. */
#include "srq/srq.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>

static void post_n(struct srq *srq, unsigned int n)
{
	struct ibv_recv_wr wr = {.num_sge = 0};

	for (unsigned int i = 0; i < n; i++)
		cr_assert_eq(rq_post(srq->rq, &wr), 0);
}

Test(srq, srq_init__errors)
{
	struct srq srq = {0};

	cr_assert_eq(srq_init(&srq, 4, RQ_MAX_SGE + 1), -EINVAL);
	cr_assert_eq(srq_init(&srq, 4, 1), 0);
	cr_assert_eq(srq_limit(&srq), 0u);
	srq_fini(&srq);
}

Test(srq, srq_take__limit_is_one_shot)
{
	struct srq srq = {0};
	struct rqe rqe;

	cr_assert_eq(srq_init(&srq, 8, 1), 0);
	cr_assert_eq(srq_take(&srq, &rqe), SRQ_EMPTY);
	post_n(&srq, 5);
	cr_assert_eq(srq_arm(&srq, 3), 0);
	cr_assert_eq(srq_take(&srq, &rqe), SRQ_TAKEN); /* 4 left */
	cr_assert_eq(srq_take(&srq, &rqe), SRQ_TAKEN); /* 3: not below */
	/* B12: the armed limit can be read until it fires. */
	cr_assert_eq(srq_limit(&srq), 3u);
	cr_assert_eq(srq_take(&srq, &rqe), SRQ_TAKEN_LIMIT);
	cr_assert_eq(srq_limit(&srq), 0u);
	cr_assert_eq(srq_take(&srq, &rqe), SRQ_TAKEN);
	srq_fini(&srq);
}

Test(srq, srq_arm__cases)
{
	struct srq srq = {0};
	struct rqe rqe;

	cr_assert_eq(srq_init(&srq, 8, 1), 0);
	cr_assert_eq(srq_arm(&srq, 9), -EINVAL);
	cr_assert_eq(srq_arm(&srq, 1), 1); /* empty: fires at once, and is not armed any more */
	cr_assert_eq(srq_limit(&srq), 0u);
	post_n(&srq, 2);
	cr_assert_eq(srq_arm(&srq, 2), 0);
	cr_assert_eq(srq_arm(&srq, 0), 0); /* disarms */
	cr_assert_eq(srq_take(&srq, &rqe), SRQ_TAKEN);
	cr_assert_eq(srq_take(&srq, &rqe), SRQ_TAKEN);
	srq_fini(&srq);
}

#define TAKERS 3
#define ROUNDS 3000
#define DEPTH  8

struct race {
	struct srq *srq;
	atomic_uint *fired, *taken;
};

static void *take_all(void *arg)
{
	struct race *r = arg;
	struct rqe rqe;

	while (atomic_load(r->taken) < ROUNDS * DEPTH) {
		switch (srq_take(r->srq, &rqe)) {
		case SRQ_EMPTY:
			sched_yield();
			continue;
		case SRQ_TAKEN_LIMIT:
			atomic_fetch_add(r->fired, 1);
			break;
		case SRQ_TAKEN:
			break;
		}
		atomic_fetch_add(r->taken, 1);
	}
	return NULL;
}

/*
 * Each round fills the queue, arms a limit against running takers and waits until the queue is
 * empty: then the event must have come exactly once, from a taker or from arming.
 */
Test(srq, srq_take__one_event_for_one_arming)
{
	atomic_uint fired = 0, taken = 0;
	struct srq srq = {0};
	struct race r = {&srq, &fired, &taken};
	pthread_t t[TAKERS];

	cr_assert_eq(srq_init(&srq, DEPTH, 1), 0);
	for (unsigned int i = 0; i < TAKERS; i++)
		cr_assert_eq(pthread_create(&t[i], NULL, take_all, &r), 0);
	for (unsigned int round = 1; round <= ROUNDS; round++) {
		int ret;

		post_n(&srq, DEPTH);
		ret = srq_arm(&srq, 1 + round % DEPTH);
		cr_assert_geq(ret, 0);
		atomic_fetch_add(&fired, ret);
		while (atomic_load(&taken) < round * DEPTH)
			sched_yield();
		cr_assert_eq(atomic_load(&fired), round, "round %u: %u events", round,
			     atomic_load(&fired));
	}
	for (unsigned int i = 0; i < TAKERS; i++)
		pthread_join(t[i], NULL);
	srq_fini(&srq);
}
