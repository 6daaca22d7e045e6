/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packets from lane to lane: order, bound, and many givers at once. */
#include "engine/handover.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#define GIVERS 3
#define EACH   20000

static struct handover lanes[GIVERS + 1];

static void create(void)
{
	/* Nothing is expected of the memory. */
	memset(lanes, 0xa5, sizeof(lanes));
	for (unsigned int i = 0; i <= GIVERS; i++)
		cr_assert_eq(handover_init(&lanes[i]), 0);
}

static void destroy(void)
{
	for (unsigned int i = 0; i <= GIVERS; i++)
		handover_fini(&lanes[i]);
}

TestSuite(handover, .init = create, .fini = destroy, .timeout = 30);

/* A packet that says who sent it, and its number. */
static bool give(unsigned int from, unsigned int to, uint32_t number)
{
	uint8_t b[100];
	struct link_rx rx = {.data = b, .len = 8 + number % 90, .ip.sport = (uint16_t)number};

	memset(b, (int)number, sizeof(b));
	memcpy(b, &from, 4);
	memcpy(b + 4, &number, 4);
	return handover_give(&lanes[from], &lanes[to], &rx);
}

static uint32_t check(const struct handover_packet *p, unsigned int *from)
{
	uint32_t number;

	memcpy(from, p->data, 4);
	memcpy(&number, p->data + 4, 4);
	cr_assert_eq(p->len, 8 + number % 90);
	cr_assert_eq(p->ip.sport, (uint16_t)number);
	for (uint32_t i = 8; i < p->len; i++)
		cr_assert_eq(p->data[i], (uint8_t)number);
	cr_assert_eq(p->home, &lanes[*from]);
	return number;
}

Test(handover, handover_give__keeps_the_order)
{
	struct pile_node *n, *next;
	unsigned int from, expected = 0;

	cr_assert_null(handover_take(&lanes[0]));
	for (uint32_t i = 0; i < 10; i++)
		cr_assert(give(1 + i % 2, 0, i));
	for (n = handover_take(&lanes[0]); n; n = next) {
		next = n->next;
		cr_assert_eq(check(handover_packet_of(n), &from), expected);
		cr_assert_eq(from, 1 + expected % 2);
		expected++;
		handover_return(handover_packet_of(n));
	}
	cr_assert_eq(expected, 10);
	cr_assert_null(handover_take(&lanes[0]));
}

Test(handover, handover_give__is_bounded_and_gets_its_memory_back)
{
	struct pile_node *n, *next;

	for (unsigned int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < HANDOVER_PACKETS; i++)
			cr_assert(give(1, 0, i));
		cr_assert(!give(1, 0, 0));
		/* Another lane has memory of its own. */
		cr_assert(give(2, 0, 0));
		for (n = handover_take(&lanes[0]); n; n = next) {
			next = n->next;
			handover_return(handover_packet_of(n));
		}
	}
}

Test(handover, handover_give__refuses_what_is_too_long)
{
	static uint8_t b[HANDOVER_MAX_LEN + 1];
	struct link_rx rx = {.data = b, .len = HANDOVER_MAX_LEN};

	cr_assert(handover_give(&lanes[1], &lanes[0], &rx));
	rx.len++;
	cr_assert(!handover_give(&lanes[1], &lanes[0], &rx));
}

static void *giver(void *arg)
{
	unsigned int me = (unsigned int)(uintptr_t)arg;

	for (uint32_t i = 0; i < EACH;) {
		if (give(me, 0, i))
			i++;
		else
			sched_yield();
	}
	return NULL;
}

Test(handover, handover_take__from_several_at_once)
{
	uint32_t next_of[GIVERS + 1] = {0}, total = 0;
	pthread_t threads[GIVERS + 1];

	for (unsigned int i = 1; i <= GIVERS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, giver, (void *)(uintptr_t)i), 0);
	while (total < GIVERS * EACH) {
		struct pile_node *n = handover_take(&lanes[0]), *next;

		if (!n)
			sched_yield();
		for (; n; n = next, total++) {
			unsigned int from;

			next = n->next;
			cr_assert_eq(check(handover_packet_of(n), &from), next_of[from]);
			next_of[from]++;
			handover_return(handover_packet_of(n));
		}
	}
	for (unsigned int i = 1; i <= GIVERS; i++)
		pthread_join(threads[i], NULL);
}
