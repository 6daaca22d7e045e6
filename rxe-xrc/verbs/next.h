/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For functions of the C library that this library replaces.
 *
 * INTERPOSE makes a definition visible. It has no symbol version, and so satisfies references to
 * each version. NEXT(f) is the function that a call would have reached without us: of the next
 * library that was preloaded, or of the C library. It is looked up at the first use, since calls
 * come before any constructor of ours has run; two threads that look it up at once find the same.
 */
#ifndef RXE_VERBS_NEXT_H
#define RXE_VERBS_NEXT_H

#include "base/macros.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#define INTERPOSE __attribute__((visibility("default")))

static inline void *next_lookup(const char *name)
{
	int saved = errno;
	void *fn = dlsym(RTLD_NEXT, name);

	/* Whoever called us was linked against a library that has the function. */
	if (!fn)
		abort();
	errno = saved;
	return fn;
}

#define NEXT(name)                                                                                 \
	({                                                                                         \
		static _Atomic(void *) next_;                                                      \
		void *fn_ = atomic_load_explicit(&next_, memory_order_relaxed);                    \
		if (unlikely(!fn_)) {                                                              \
			fn_ = next_lookup(#name);                                                  \
			atomic_store_explicit(&next_, fn_, memory_order_relaxed);                  \
		}                                                                                  \
		(__typeof__(name) *)fn_;                                                           \
	})

#endif
