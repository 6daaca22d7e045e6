/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the measuring programs share: a clock, a pinned CPU, a median. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Distance of two things that different CPUs write. */
#define CACHE_LINE 64

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* What is measured between two CPUs means nothing on one, so that ends the program. */
static inline void pin_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		fprintf(stderr, "cannot run on CPU %d\n", cpu);
		exit(77);
	}
}

static inline int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts @v. */
static inline double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), compare_double);
	return v[n / 2];
}

#endif
