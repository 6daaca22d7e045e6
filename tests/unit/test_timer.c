/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The heap of deadlines against a list that is searched from end to end. */
#include "engine/timer.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define N 64

static uint64_t seed = 1;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % n;
}

Test(timer, timer_heap_reserve__keeps_what_is_set)
{
	struct timer_heap h;
	struct timer t;

	timer_heap_init(&h);
	timer_init(&t);
	cr_assert_eq(timer_next(&h), TIMER_NEVER);
	cr_assert_eq(timer_heap_reserve(&h, 1), 0);
	timer_set(&h, &t, 5);
	cr_assert_eq(timer_heap_reserve(&h, 1000), 0);
	cr_assert_geq(h.room, 1000u);
	cr_assert_eq(timer_next(&h), 5u);
	timer_heap_fini(&h);
}

Test(timer, timer_set__cancels_with_never)
{
	struct timer_heap h;
	struct timer t;

	timer_heap_init(&h);
	timer_init(&t);
	cr_assert_eq(timer_heap_reserve(&h, 1), 0);
	timer_set(&h, &t, TIMER_NEVER);
	cr_assert_eq(h.n, 0u);
	timer_set(&h, &t, 7);
	timer_set(&h, &t, TIMER_NEVER);
	cr_assert_eq(h.n, 0u);
	cr_assert_eq(timer_next(&h), TIMER_NEVER);
	cr_assert_null(timer_expire(&h, TIMER_NEVER));
	timer_heap_fini(&h);
}

static uint64_t model_next(const struct timer *t)
{
	uint64_t next = TIMER_NEVER;

	for (int i = 0; i < N; i++)
		if (t[i].when < next)
			next = t[i].when;
	return next;
}

static void check_heap(const struct timer_heap *h)
{
	for (uint32_t i = 0; i < h->n; i++) {
		cr_assert_eq(h->v[i]->index, i);
		if (i)
			cr_assert_leq(h->v[(i - 1) / 2]->when, h->v[i]->when);
	}
}

Test(timer, timer_set__random_ops_against_a_model)
{
	struct timer t[N];
	uint64_t model[N];
	struct timer_heap h;

	timer_heap_init(&h);
	cr_assert_eq(timer_heap_reserve(&h, N), 0);
	for (int i = 0; i < N; i++) {
		timer_init(&t[i]);
		model[i] = TIMER_NEVER;
	}
	for (int step = 0; step < 50000; step++) {
		uint32_t i = rnd(N);

		/* Few different times, so that many are equal. */
		model[i] = rnd(4) ? rnd(100) : TIMER_NEVER;
		timer_set(&h, &t[i], model[i]);
		for (int k = 0; k < N; k++)
			cr_assert_eq(t[k].when, model[k]);
		check_heap(&h);
		cr_assert_eq(timer_next(&h), model_next(t));
	}
	timer_heap_fini(&h);
}

Test(timer, timer_expire__in_order_and_only_what_is_due)
{
	struct timer t[N];
	struct timer_heap h;
	uint64_t last = 0;
	int due = 0, got = 0;

	timer_heap_init(&h);
	cr_assert_eq(timer_heap_reserve(&h, N), 0);
	for (int i = 0; i < N; i++) {
		timer_init(&t[i]);
		timer_set(&h, &t[i], rnd(1000));
		due += t[i].when <= 500;
	}
	for (;;) {
		uint64_t next = timer_next(&h);
		struct timer *x = timer_expire(&h, 500);

		if (!x)
			break;
		cr_assert_eq(x->when, TIMER_NEVER);
		cr_assert_leq(last, next);
		cr_assert_leq(next, 500u);
		last = next;
		got++;
		check_heap(&h);
	}
	cr_assert_eq(got, due);
	cr_assert_gt(timer_next(&h), 500u);
	timer_heap_fini(&h);
}
