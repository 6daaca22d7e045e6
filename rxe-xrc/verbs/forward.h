/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The way to the real libibverbs, for objects that are not ours. Theory in forward.c. */
#ifndef RXE_VERBS_FORWARD_H
#define RXE_VERBS_FORWARD_H

#include "verbs/export.h"

#include <stdatomic.h>

/** forward_symbol() - the address of @name in the real libibverbs, or NULL. Keeps errno. */
void *forward_symbol(const char *name);

/*
 * REAL(f): pointer to the real function f. An object that is not ours was made by the real library, so
 * it is there; functions that take no object must bear with NULL.
 */
#define REAL(name)                                                                                 \
	({                                                                                         \
		static _Atomic(void *) real_;                                                      \
		void *p_ = atomic_load_explicit(&real_, memory_order_relaxed);                     \
                                                                                                   \
		if (!p_) {                                                                         \
			p_ = forward_symbol(#name);                                                \
			atomic_store_explicit(&real_, p_, memory_order_relaxed);                   \
		}                                                                                  \
		(__typeof__(&(name)))p_;                                                           \
	})

#endif
