/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes the atomic operations of a header under test steps of the explorer: include this before it.
 *
 * Only the operations without an order are replaced, which are sequentially consistent, as is the memory of
 * the explorer; those with one are no steps. Code that has hooks of its own (srq/atomics.h) does not need this.
 */
#ifndef TESTS_MODEL_STEPS_H
#define TESTS_MODEL_STEPS_H

#include "explore.h"

#include <stdatomic.h>

/* Some pointers and integers, as one number. */
#define step_value(v) ((uint64_t)(uintptr_t)(v))

#undef atomic_load
#undef atomic_store
#undef atomic_exchange
#undef atomic_fetch_add
#undef atomic_fetch_or
#undef atomic_fetch_and
#undef atomic_compare_exchange_weak
#undef atomic_compare_exchange_strong

/* One that returns what it found. */
#define step_saw(operation)                                                                        \
	({                                                                                         \
		explore_step();                                                                    \
		__auto_type step_v_ = operation;                                                   \
		explore_saw(step_value(step_v_));                                                  \
		step_v_;                                                                           \
	})
#define atomic_load(p)	       step_saw(atomic_load_explicit(p, memory_order_seq_cst))
#define atomic_exchange(p, v)  step_saw(atomic_exchange_explicit(p, v, memory_order_seq_cst))
#define atomic_fetch_add(p, v) step_saw(atomic_fetch_add_explicit(p, v, memory_order_seq_cst))
#define atomic_fetch_or(p, v)  step_saw(atomic_fetch_or_explicit(p, v, memory_order_seq_cst))
#define atomic_fetch_and(p, v) step_saw(atomic_fetch_and_explicit(p, v, memory_order_seq_cst))
#define atomic_store(p, v)                                                                         \
	({                                                                                         \
		explore_step();                                                                    \
		atomic_store_explicit(p, v, memory_order_seq_cst);                                 \
	})
/*
 * A weak one that fails for no reason only goes round its loop once more. Behind one that has put a pointer there
 * is another step: others may follow the pointer before the thread does anything else.
 */
#define atomic_compare_exchange_strong(p, e, v)                                                    \
	({                                                                                         \
		explore_step();                                                                    \
		bool step_ok_ = atomic_compare_exchange_strong_explicit(                           \
			p, e, v, memory_order_seq_cst, memory_order_seq_cst);                      \
		explore_saw(step_ok_ ? UINT64_MAX : step_value(*(e)));                             \
		if (step_ok_ && sizeof(*(p)) == sizeof(void *))                                    \
			explore_step();                                                            \
		step_ok_;                                                                          \
	})
#define atomic_compare_exchange_weak(p, e, v) atomic_compare_exchange_strong(p, e, v)

#endif
