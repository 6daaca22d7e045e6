/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A pile: any thread puts entries on it, and one takes all of them at once.
 *
 * Intrusive and lock-free. Since nobody takes a single entry there is no ABA problem: a top that comes back
 * while a push compares it still has below it what the push has linked to. All accesses are sequentially
 * consistent: who uses a pile together with a lane's word (engine/lane_word.h) relies on that.
 *
 *     store                    pairs with
 *     top, by pile_push()      top, exchanged by pile_take(): the entry, and next of all below it
 */
#ifndef RXE_BASE_PILE_H
#define RXE_BASE_PILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct pile_node {
	struct pile_node *next;
};

struct pile {
	_Atomic(struct pile_node *) top;
};

/** pile_push() - any thread; @n is on no pile. */
static inline void pile_push(struct pile *p, struct pile_node *n)
{
	struct pile_node *top = atomic_load(&p->top);

	do
		n->next = top;
	while (!atomic_compare_exchange_weak(&p->top, &top, n));
}

/**
 * pile_push_once() - unless it is on the pile already, as @on says; any thread.
 *
 * The taker stores false to @on and looks at what the entry stands for afterwards: so whoever changes that and
 * then calls this is seen, whether it pushes or not.
 */
static inline void pile_push_once(struct pile *p, struct pile_node *n, atomic_bool *on)
{
	if (!atomic_exchange(on, true))
		pile_push(p, n);
}

/** pile_is_empty() - at some moment during the call. */
static inline bool pile_is_empty(struct pile *p)
{
	return !atomic_load(&p->top);
}

/** pile_take() - everything, linked by next, in the order in which it came; NULL when there is nothing. */
static inline struct pile_node *pile_take(struct pile *p)
{
	struct pile_node *n, *next, *fifo = NULL;

	if (pile_is_empty(p))
		return NULL;
	for (n = atomic_exchange(&p->top, NULL); n; n = next) {
		next = n->next;
		n->next = fifo;
		fifo = n;
	}
	return fifo;
}

#endif
