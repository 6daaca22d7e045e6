/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A thread of a real-time class that waits for an ordinary one on the same core.
 *
 * The thread that waits is the test's own; the other holds what it waits for until it has used the processor
 * for a while, which it gets only if the first one sleeps (or from the kernel's throttle, much later). What is
 * counted is how often it slept. A test program ends after five seconds, whatever happens.
 */
#ifndef TESTS_UNIT_REALTIME_H
#define TESTS_UNIT_REALTIME_H

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* What the holder computes, ns: far more than it gets from one pause. */
#define HOLD_NS 2000000

struct hold {
	void (*take)(void *what), (*give)(void *what);
	void *what;
	atomic_bool held, watched;
	pthread_t thread;
};

/* Of the calling thread, ns. */
static inline uint64_t processor_time(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static void *hold_main(void *arg)
{
	struct hold *h = arg;
	uint64_t begin;

	h->take(h->what);
	atomic_store(&h->held, true);
	/* Until the other one is of its class it may lose the processor to this one for as long as it likes. */
	while (!atomic_load(&h->watched))
		sched_yield();
	begin = processor_time();
	while (processor_time() - begin < HOLD_NS)
		;
	h->give(h->what);
	return NULL;
}

/* Of the calling thread: a sleep is a voluntary switch, a yield is not. */
static inline long sleeps(void)
{
	struct rusage r;

	getrusage(RUSAGE_THREAD, &r);
	return r.ru_nvcsw;
}

/* Makes the calling thread one of @policy; false when that is not permitted. */
static inline bool set_policy(int policy)
{
	struct sched_param p = {.sched_priority = policy == SCHED_OTHER ? 0 : 1};

	return !pthread_setschedparam(pthread_self(), policy, &p);
}

/* The holder holds it, on this thread's core, and this thread is of the class SCHED_FIFO now. */
static inline void hold_begin(struct hold *h)
{
	int cpu = sched_getcpu();
	cpu_set_t one;

	alarm(5);
	if (!set_policy(SCHED_FIFO))
		cr_skip_test("no right to real-time scheduling");
	set_policy(SCHED_OTHER);
	CPU_ZERO(&one);
	CPU_SET((unsigned int)cpu, &one);
	cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	cr_assert_eq(pthread_create(&h->thread, NULL, hold_main, h), 0);
	while (!atomic_load(&h->held))
		sched_yield();
	cr_assert(set_policy(SCHED_FIFO));
	atomic_store(&h->watched, true);
}

static inline void hold_end(struct hold *h)
{
	set_policy(SCHED_OTHER);
	cr_assert_eq(pthread_join(h->thread, NULL), 0);
}

#endif
