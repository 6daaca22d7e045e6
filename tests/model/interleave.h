/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs a few threads through every interleaving of their atomic accesses.
 *
 * Include this before the header under test, whose atomic operations then become steps: before each the thread
 * stops, and the explorer decides who goes next. Threads are coroutines, so a step is one switch, and memory is
 * sequentially consistent: this is for code that asks for that order.
 *
 * The search goes in depth first and replays its schedule from the start when it turns back. A state is what the
 * shared memory holds and what each thread has seen so far, since a thread does nothing but what follows from
 * that; a state that was met before is not entered again. This makes the search finite and leaves nothing out.
 *
 *     step   thread 0: load word    thread 1: push ...
 *       |         |                      |
 *     explore() --+--- schedule: 0 0 1 0 1 1 ... --> finish(): is everything as it must be?
 */
#ifndef RXE_TESTS_INTERLEAVE_H
#define RXE_TESTS_INTERLEAVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#define MODEL_THREADS 3
#define MODEL_STEPS   400 /* of one run; more is a loop that does not end */

struct model {
	void *shared; /* all memory that the threads share, and that is not the explorer's */
	size_t size;
	unsigned int nthreads;
	void (*begin)(void);		 /* puts the shared memory into its first state */
	void (*thread)(unsigned int id); /* one thread's life */
	const char *(*finish)(void);	 /* all threads have ended: NULL, or what is wrong */
};

struct model_result {
	const char *wrong; /* NULL, or the first violation that was found */
	unsigned int states, runs;
	char schedule[MODEL_STEPS +
		      1]; /* that led to it: a digit for each step, the thread that made it */
};

/** model_explore() - every interleaving, or up to the first violation. Not for several threads at once. */
struct model_result model_explore(const struct model *m);

/* For the code under test, which runs as a thread of the model. */

/** model_check() - notes a violation unless @ok. */
void model_check(bool ok, const char *what);

/**
 * model_wait() - in a loop that waits for another thread: comes back when the shared memory is no longer as it
 * was at model_now(), before the thread looked.
 */
uint64_t model_now(void);
void model_wait(uint64_t since);

/** model_forget() - what the thread does from here on follows from @v and the shared memory: merges states. */
void model_forget(uint64_t v);

/* The thread stops until it is its turn; and what it learns then decides what it does next. */
void model_step(void);
void model_seen(uint64_t v);

/* Some pointers and integers, as one number. */
#define model_value(v) ((uint64_t)(uintptr_t)(v))

#undef atomic_load
#undef atomic_store
#undef atomic_exchange
#undef atomic_fetch_add
#undef atomic_compare_exchange_weak
#undef atomic_compare_exchange_strong

#define atomic_load(p)                                                                             \
	({                                                                                         \
		model_step();                                                                      \
		__auto_type model_v_ = atomic_load_explicit(p, memory_order_seq_cst);              \
		model_seen(model_value(model_v_));                                                 \
		model_v_;                                                                          \
	})
#define atomic_store(p, v)                                                                         \
	({                                                                                         \
		model_step();                                                                      \
		atomic_store_explicit(p, v, memory_order_seq_cst);                                 \
		model_seen(0);                                                                     \
	})
#define atomic_exchange(p, v)                                                                      \
	({                                                                                         \
		model_step();                                                                      \
		__auto_type model_v_ = atomic_exchange_explicit(p, v, memory_order_seq_cst);       \
		model_seen(model_value(model_v_));                                                 \
		model_v_;                                                                          \
	})
#define atomic_fetch_add(p, v)                                                                     \
	({                                                                                         \
		model_step();                                                                      \
		__auto_type model_v_ = atomic_fetch_add_explicit(p, v, memory_order_seq_cst);      \
		model_seen(model_value(model_v_));                                                 \
		model_v_;                                                                          \
	})
/*
 * A weak one that fails for no reason only goes round its loop once more. Behind one that has put a pointer there
 * is another step: others may follow the pointer before the thread does anything else.
 */
#define atomic_compare_exchange_strong(p, e, v)                                                    \
	({                                                                                         \
		model_step();                                                                      \
		bool model_ok_ = atomic_compare_exchange_strong_explicit(                          \
			p, e, v, memory_order_seq_cst, memory_order_seq_cst);                      \
		model_seen(model_ok_ ? ~0ull : model_value(*(e)));                                 \
		if (model_ok_ && sizeof(*(p)) == sizeof(void *)) {                                 \
			model_step();                                                              \
			model_seen(0);                                                             \
		}                                                                                  \
		model_ok_;                                                                         \
	})
#define atomic_compare_exchange_weak(p, e, v) atomic_compare_exchange_strong(p, e, v)

#endif
