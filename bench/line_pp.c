/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How far apart CPU 0 and CPU 1 are: the round trip of a cache line between two threads.
 *
 * Virtual CPUs are moved by their host: the round trip was seen to jump between some 90 ns (one L3
 * cache) and 390 ns (two) while a machine ran, and everything that two processes do together
 * follows it. So a benchmark reads this before and after, and is void when the two differ.
 *
 * Prints "NANOSECONDS near" or "NANOSECONDS far".
 */
#include "bench.h"

#include <immintrin.h>
#include <pthread.h>
#include <stdatomic.h>

#define ROUNDS	5000
#define SAMPLES 101
#define FAR_NS	200

static struct {
	_Alignas(CACHE_LINE) atomic_uint ping;
	_Alignas(CACHE_LINE) atomic_uint pong;
} line;

static void await(const atomic_uint *word, unsigned int value)
{
	while (atomic_load_explicit(word, memory_order_acquire) != value)
		_mm_pause();
}

static void *echo(void *unused)
{
	pin_cpu(1);
	for (unsigned int i = 1; i <= ROUNDS * SAMPLES; i++) {
		await(&line.ping, i);
		atomic_store_explicit(&line.pong, i, memory_order_release);
	}
	return NULL;
}

int main(void)
{
	double rtt[SAMPLES], mid;
	unsigned int i = 0;
	pthread_t thread;

	pin_cpu(0);
	if (pthread_create(&thread, NULL, echo, NULL))
		return 1;
	for (unsigned int s = 0; s < SAMPLES; s++) {
		uint64_t start = now_ns();

		for (unsigned int k = 0; k < ROUNDS; k++) {
			atomic_store_explicit(&line.ping, ++i, memory_order_release);
			await(&line.pong, i);
		}
		rtt[s] = (double)(now_ns() - start) / ROUNDS;
	}
	pthread_join(thread, NULL);
	mid = median(rtt, SAMPLES);
	printf("%.1f %s\n", mid, mid < FAR_NS ? "near" : "far");
	return 0;
}
