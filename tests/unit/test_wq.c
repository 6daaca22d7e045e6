/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The send queue's ring: what fits, what is visible, and what a slot has room for. */
#include "engine/wq.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(wq, wq_init__slots_have_room)
{
	static const struct {
		uint32_t wr, sge, inl;
	} rows[] = {{1, 0, 0}, {3, 1, 0}, {4, 32, 0}, {5, 1, 512}, {5, 32, 512}};

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t room = max_t(size_t, rows[i].sge * sizeof(struct ibv_sge), rows[i].inl);
		struct wq wq;

		cr_assert_eq(wq_init(&wq, rows[i].wr, rows[i].sge, rows[i].inl), 0);
		cr_assert_eq(wq.capacity, rows[i].wr);
		cr_assert_geq(wq.mask + 1, rows[i].wr);
		cr_assert_eq(wq.mask & (wq.mask + 1), 0u);
		cr_assert_geq(wq.stride, sizeof(struct swqe) + room);
		/* Each slot is the program's to fill: a checker of memory sees it if one is too
		 * small. */
		for (uint32_t s = 0; s <= wq.mask; s++) {
			cr_assert_eq((uintptr_t)wq_slot(&wq, s) % CACHE_LINE, 0u);
			memset(wq_slot(&wq, s), s, sizeof(struct swqe) + room);
		}
		for (uint32_t s = 0; s <= wq.mask; s++)
			cr_assert_eq(*(uint8_t *)wq_slot(&wq, s), (uint8_t)s);
		wq_fini(&wq);
	}
}

Test(wq, wq_init__no_requests)
{
	struct wq wq;

	cr_assert_eq(wq_init(&wq, 0, 4, 64), 0);
	cr_assert_null(wq_alloc(&wq));
	wq_fini(&wq);
}

Test(wq, wq_alloc__full_until_the_head_moves)
{
	struct wq wq;

	cr_assert_eq(wq_init(&wq, 3, 1, 0), 0);
	/* Free running indices: the queue works across their wrap too. */
	wq.pending = UINT32_MAX - 1;
	atomic_store(&wq.tail, wq.pending);
	atomic_store(&wq.head, wq.pending);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 3; i++)
			cr_assert_not_null(wq_alloc(&wq));
		cr_assert_null(wq_alloc(&wq));
		wq_publish(&wq);
		atomic_fetch_add(&wq.head, 1);
		cr_assert_not_null(wq_alloc(&wq));
		cr_assert_null(wq_alloc(&wq));
		wq_publish(&wq);
		atomic_fetch_add(&wq.head, 3);
	}
	wq_fini(&wq);
}

Test(wq, wq_rollback__nothing_was_posted)
{
	struct swqe *first;
	struct wq wq;

	cr_assert_eq(wq_init(&wq, 2, 1, 0), 0);
	first = wq_alloc(&wq);
	cr_assert_not_null(wq_alloc(&wq));
	cr_assert_eq(atomic_load(&wq.tail), 0u);
	wq_rollback(&wq);
	cr_assert_eq(wq_alloc(&wq), first);
	wq_publish(&wq);
	cr_assert_eq(atomic_load(&wq.tail), 1u);
	wq_fini(&wq);
}
