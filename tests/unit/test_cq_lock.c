/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues: what another thread may do just before a call has the lock, and just after it gave it back.
 *
 * cq.c is compiled into this program with a lock that lets an intruder in at these two moments, which threads
 * meet too seldom to rely on. What comes out must be as if one of the two calls had come first.
 */
#include "base/lock.h"

#include <criterion/criterion.h>

struct cq;
static void take_noted(struct lock *l);
static void give_noted(struct lock *l);

#define lock_take take_noted
#define lock_give give_noted
#include "../../rxe-xrc/engine/cq.c"
#undef lock_take
#undef lock_give

#include "engine_stub.h"

enum moment { BEFORE, AFTER };

static struct engine *e;
static struct cq *cq;
static struct cqe out[4];

static void (*intruder)(void);
static enum moment moment;
static unsigned int locked; /* times that the call under test had the lock */
static bool is_held;

static void intrude(enum moment now)
{
	void (*f)(void) = intruder;

	if (!f || now != moment)
		return;
	intruder = NULL;
	f();
}

static void take_noted(struct lock *l)
{
	intrude(BEFORE);
	lock_take(l);
	cr_assert_not(is_held);
	is_held = true;
	locked++;
}

static void give_noted(struct lock *l)
{
	cr_assert(is_held);
	is_held = false;
	lock_give(l);
	intrude(AFTER);
}

static void setup(void)
{
	e = stub_engine();
	cr_assert_eq(cq_create(e, 4, NULL, &cq), 0);
}

static void teardown(void)
{
	cr_assert_not(is_held);
	cr_assert_eq(cq_destroy(cq), 0);
	engine_destroy(e);
}

TestSuite(cq_lock, .init = setup, .fini = teardown);

static void push_of(uint64_t id, uint32_t qpn)
{
	struct ibv_wc wc = {.wr_id = id, .qp_num = qpn};

	cr_assert(cq_push(cq, &wc, 0, false));
}

static void push_7(void)
{
	push_of(7, 1);
}

static void poll_2(void)
{
	cr_assert_eq(cq_poll(cq, 2, out + 2), 2);
}

static void poll_1(void)
{
	cr_assert_eq(cq_poll(cq, 1, out + 2), 1);
}

static void arm(void)
{
	cq_arm(cq, false);
}

static void grow(void)
{
	cr_assert_eq(cq_resize(cq, 64), 0);
}

/* The call that follows is the one under test. */
static void let_in(void (*f)(void), enum moment when)
{
	intruder = f;
	moment = when;
	locked = 0;
}

/* @n: with the intruder's. It must have come in. */
static void expect_locked(unsigned int n)
{
	cr_assert_null(intruder);
	cr_assert_eq(locked, n);
}

/* @ids: what is left, as a string of digits */
static void expect_left(const char *ids)
{
	for (; *ids; ids++) {
		cr_assert_eq(cq_poll(cq, 1, out), 1);
		cr_assert_eq(out[0].wc.wr_id, (uint64_t)(*ids - '0'));
	}
	cr_assert(cq_is_empty(cq));
}

Test(cq_lock, cq_push__both_are_there)
{
	let_in(push_7, BEFORE);
	push_of(1, 1);
	expect_locked(2);
	let_in(push_7, AFTER);
	push_of(2, 1);
	expect_locked(2);
	expect_left("7127");
}

/* What is in the queue when it is armed does not fire. */
Test(cq_lock, cq_push__armed_behind_it)
{
	let_in(arm, AFTER);
	push_of(1, 1);
	expect_locked(2);
	cr_assert_eq(atomic_load(&stub_cq_events), 0u);
	let_in(push_7, BEFORE);
	push_of(2, 1);
	cr_assert_eq(atomic_load(&stub_cq_events), 1u);
	expect_left("172");
}

Test(cq_lock, cq_poll__each_once)
{
	for (int when = BEFORE; when <= AFTER; when++) {
		for (uint64_t i = 1; i <= 4; i++)
			push_of(i, 1);
		let_in(poll_2, when);
		cr_assert_eq(cq_poll(cq, 2, out), 2);
		expect_locked(2);
		/* One got 1 and 2, the other 3 and 4. */
		cr_assert_eq(out[0].wc.wr_id, when == BEFORE ? 3u : 1u);
		cr_assert_eq(out[2].wc.wr_id, when == BEFORE ? 1u : 3u);
		cr_assert(cq_is_empty(cq));
	}
}

/* It was not empty when it was looked at. */
Test(cq_lock, cq_poll__another_was_faster)
{
	push_of(1, 1);
	let_in(poll_1, BEFORE);
	cr_assert_eq(cq_poll(cq, 1, out), 0);
	expect_locked(2);
	expect_left("");
}

Test(cq_lock, cq_arm__an_event_for_what_comes_behind_it)
{
	let_in(push_7, AFTER);
	cq_arm(cq, false);
	expect_locked(2);
	cr_assert_eq(atomic_load(&stub_cq_events), 1u);
	let_in(push_7, BEFORE);
	cq_arm(cq, true);
	expect_locked(2);
	cr_assert_eq(atomic_load(&stub_cq_events), 1u);
	expect_left("77");
}

Test(cq_lock, cq_resize__another_was_faster)
{
	push_of(1, 1);
	let_in(grow, BEFORE);
	cr_assert_eq(cq_resize(cq, 2), 0);
	expect_locked(2);
	cr_assert_eq(cq->capacity, 2u);
	let_in(push_7, BEFORE);
	cr_assert_eq(cq_resize(cq, 8), 0);
	expect_locked(2);
	expect_left("17");
}

Test(cq_lock, cq_clean__what_was_polled_does_not_come_back)
{
	for (uint64_t i = 1; i <= 4; i++)
		push_of(i, i % 2 ? 9 : 8);
	let_in(poll_1, BEFORE);
	cq_clean(cq, 9);
	expect_locked(2);
	cr_assert_eq(out[2].wc.wr_id, 1u);
	expect_left("24");
	let_in(push_7, AFTER);
	cq_clean(cq, 1);
	expect_locked(2);
	expect_left("7");
}
