/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The queue's accesses to shared memory, each one a step that a test may interleave with others.
 *
 * The product defines neither hook, so these are C11's operations and nothing else. The explorer of
 * tests/model compiles the same sources with SRQ_STEP() as a switch to its scheduler, called before
 * an access, and SRQ_SAW() as a note of what the thread learned from it; SRQ_DATA_STEP() is the
 * same for the words of a request, which are guarded by the slot's word. Or it brings accesses of
 * its own, to a memory as weak as C11 allows (tests/model/weak.h).
 */
#ifndef RXE_SRQ_ATOMICS_H
#define RXE_SRQ_ATOMICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#ifndef SRQ_STEP
#define SRQ_STEP()	((void)0)
#define SRQ_DATA_STEP() ((void)0)
#define SRQ_SAW(v)	((void)0)
#define SRQ_PATIENT	1 /* waiting a moment for another thread makes sense */
#endif

typedef _Atomic uint64_t word;

#ifndef load_word
#define load_word(w, order)                                                                        \
	({                                                                                         \
		SRQ_STEP();                                                                        \
		uint64_t seen_ = atomic_load_explicit(w, memory_order_##order);                    \
		SRQ_SAW(seen_);                                                                    \
		seen_;                                                                             \
	})

#define store_word(w, v, order)                                                                    \
	({                                                                                         \
		SRQ_STEP();                                                                        \
		atomic_store_explicit(w, v, memory_order_##order);                                 \
	})

#define load_data(w)                                                                               \
	({                                                                                         \
		SRQ_DATA_STEP();                                                                   \
		uint64_t seen_ = atomic_load_explicit(w, memory_order_relaxed);                    \
		SRQ_SAW(seen_);                                                                    \
		seen_;                                                                             \
	})

#define store_data(w, v)                                                                           \
	({                                                                                         \
		SRQ_DATA_STEP();                                                                   \
		atomic_store_explicit(w, v, memory_order_relaxed);                                 \
	})

/*
 * Strong. In failure *@seen is what is there, acquired. That this may be more than @order says is C17's
 * (7.17.7.4), not yet C11's; compilers take it in both.
 */
#define swap_word(w, seen, v, order)                                                               \
	({                                                                                         \
		SRQ_STEP();                                                                        \
		bool done_ = atomic_compare_exchange_strong_explicit(                              \
			w, seen, v, memory_order_##order, memory_order_acquire);                   \
		SRQ_SAW(done_ ? UINT64_MAX : *(seen));                                             \
		done_;                                                                             \
	})
#endif

#endif
