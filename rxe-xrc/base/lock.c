/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waiting for a thread that holds something: the slow side of lock.h.
 *
 * Yielding gives the processor to threads of the same priority and above. A waiter of a real-time class
 * whose core the holder needs gets it straight back, and a holder of the ordinary class runs only when the
 * kernel's throttle of real-time threads, if it is on, says so: 0.95 s later (Linux 6.18, 2026-11-30). A
 * program that polls with SCHED_FIFO on a core of its own works with hardware, so it must not stop here when
 * the library's helper thread is woken on that core. Hence the pause, long enough for what a holder does, which
 * comes when yielding has been of no use: waiters of the ordinary class hardly ever see it.
 */
#include "base/lock.h"

#include <pthread.h>
#include <time.h>

/* Looks at a lock before the first yield */
#define SPINS 64
/* Yields before each pause, and the pause, ns */
#define YIELDS 64
#define PAUSE  20000

/* The sleep is a cancellation point, and who waits for a lock may hold another. errno stays. */
static void pause_thread(void)
{
	const struct timespec pause = {.tv_nsec = PAUSE};
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	pthread_setcancelstate(cancel, NULL);
}

void give_way(unsigned int tries)
{
	if (tries % YIELDS)
		sched_yield();
	else
		pause_thread();
}

/* Of the classes in which yielding does not reach an ordinary thread; a thread may change its class. */
static bool is_realtime(void)
{
	int class = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;

	return class == SCHED_FIFO || class == SCHED_RR;
}

void give_way_once(void)
{
	static __thread unsigned int times __attribute__((tls_model("initial-exec")));

	if (++times % YIELDS || !is_realtime())
		sched_yield();
	else
		pause_thread();
}

void lock_wait(struct lock *l)
{
	for (unsigned int looks = 1; !lock_try(l); looks++)
		if (looks > SPINS)
			give_way(looks - SPINS);
}
