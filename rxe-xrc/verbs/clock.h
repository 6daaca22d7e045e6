/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The clock that the engine is driven by. */
#ifndef RXE_VERBS_CLOCK_H
#define RXE_VERBS_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NSEC_PER_SEC 1000000000ull

/** now_ns() - CLOCK_MONOTONIC in nanoseconds; no system call (vDSO), some 25 ns. */
static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

#endif
