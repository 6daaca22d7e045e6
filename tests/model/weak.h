/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory of C11 for the explorer, with what its weaker orders allow, but for two things.
 *
 * A word is the list of the values that were stored to it. Each thread has a view: of each word the oldest value
 * that it may still read. A load reads any value from there on, each in a run of its own, and the view moves up to
 * it. A store with release puts the thread's view beside the value, and a load with acquire that reads this value
 * takes the view over: that is all that makes threads see more of each other. A swap reads the last value, and
 * passes the view of the value it replaces on (a release sequence); one that fails may have read an older value.
 * Among accesses that are sequentially consistent the order of the run is the one order, so such a load reads
 * nothing older than the last such store.
 *
 * No load reads what is stored later in the run, so of code that relies on a relaxed load being done before a later
 * relaxed store nothing is shown here. (A release, or a decision that depends on the load, keeps these two in
 * order.) And a store that is sequentially consistent is seen by such loads from then on, though C11 lets one that
 * does not know of it come before it even when it has read a later relaxed store of that thread.
 *
 * The view also holds the calls of the model that are known to have returned, since on such a machine "before"
 * means no more than that.
 *
 *     thread 0:  store data, store word (release)     word:  [0: initially] [1: new | view: data 1]
 *     thread 1:  load word (acquire) -> either; then load data -> either after 0, the new one after 1
 */
#ifndef TESTS_MODEL_WEAK_H
#define TESTS_MODEL_WEAK_H

#include "explore.h"

#include <stdatomic.h>
#include <stdint.h>

#define WEAK_WORDS  16
#define WEAK_VALUES 24 /* of a word, that somebody may still read */

struct weak_view {
	uint8_t from[WEAK_WORDS];
	uint32_t calls;
};

struct weak_value {
	uint64_t v;
	struct weak_view view;
};

/* Part of what the explorer compares and saves; all zero at first. */
struct weak_memory {
	struct weak_value value[WEAK_WORDS][WEAK_VALUES];
	uint8_t n[WEAK_WORDS];	/* values; 0: the one that the variable itself has */
	uint8_t sc[WEAK_WORDS]; /* the last that was stored sequentially consistent */
	struct weak_view thread[EXPLORE_THREADS];
};

/** weak_use() - the memory of all calls below. */
void weak_use(struct weak_memory *m);

/*
 * Outside of threads, before and after them, these read and change the last value. @w is the address of the variable,
 * @size its bytes, 4 or 8: it is only looked at before the first store.
 */
uint64_t weak_load(const void *w, unsigned int size, memory_order order);
void weak_store(void *w, unsigned int size, uint64_t v, memory_order order);
bool weak_swap(void *w, unsigned int size, uint64_t *seen, uint64_t v, memory_order order,
	       memory_order failure);

/** weak_oldest() - of the values of @w that the running thread may read; somebody has accessed it before. */
uint64_t weak_oldest(const void *w);

/** weak_join() - the running thread knows all that thread @other did, which has ended or was killed. */
void weak_join(unsigned int other);

/** weak_returned() - call number @call of the running thread has returned. */
void weak_returned(unsigned int call);
/** weak_calls() - those that the running thread knows to have returned, as bits. */
uint32_t weak_calls(void);

#endif
