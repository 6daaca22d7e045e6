/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An explorer of interleavings: runs a few small threads of real code in every order of their
 * steps.
 *
 * A step is what a thread does from one explore_step() to the next; the code under test calls that
 * before each access to shared memory (srq/atomics.h has the hook, steps.h makes one for code that
 * has none). Threads are contexts of this process, so a state is their stacks and the shared memory;
 * the explorer saves it, runs one thread one step, goes on from there, and comes back.
 *
 * A state that was seen before is not entered again. Two are the same when the shared memory is,
 * and each thread has learned the same from it: a thread is a function of the values that it read,
 * which explore_saw() collects. What a check at the end depends on besides, such as which call
 * returned before which began, must be told with explore_saw() too. Where a thread has nothing left
 * of what it learned, explore_forget() says so, and more states are the same.
 *
 * Every order includes those in which a thread is never run again while others finish, so "one
 * stopped thread does not stop the rest" needs no case of its own: waiting for it would be a run
 * that does not end, and the explorer gives up on those. A thread may also be killed between any
 * two steps. Memory is what the code under test makes of it: plain variables are sequentially
 * consistent, and weak.h is C11's memory with its weaker orders.
 */
#ifndef TESTS_MODEL_EXPLORE_H
#define TESTS_MODEL_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPLORE_THREADS 3

struct explore {
	const char *name;
	unsigned int nthreads;
	void (*thread[EXPLORE_THREADS])(void);
	bool killable[EXPLORE_THREADS];
	bool begun;	     /* in the first state each thread stands at its first step */
	void (*setup)(void); /* makes the first state; its accesses are no steps */
	void (*look)(void);  /* at each new state; may be NULL */
	void (*check)(void); /* when no thread can run any more; its accesses are no steps */
	void *shared;	     /* compared and saved */
	size_t shared_size;  /* bytes, a multiple of 8 */
	void *records;	     /* of the threads' doings: saved, not compared; may be NULL */
	size_t records_size;
};

struct explore_result {
	uint64_t states, ends;
	const char *wrong; /* NULL, or the first thing that was found wrong */
	/*
	 * What led there: a thread's number for each step, kill-number for a death. Until the next
	 * explore().
	 */
	const char *steps;
};

/** explore() - runs everything, or up to the first failure. Not for several threads at once. */
struct explore_result explore(const struct explore *model);

/** explore_step() - lets other threads run; nothing outside of a thread. */
void explore_step(void);
/** explore_saw() - the running thread learned @v. */
void explore_saw(uint64_t v);
/** explore_forget() - what it does from here on follows from @v and the shared memory alone. */
void explore_forget(uint64_t v);
/** explore_wait() - the running thread goes on when thread @other has ended or was killed. */
void explore_wait(unsigned int other);
/**
 * explore_wait_change() - in a loop that waits for another thread: goes on when the shared memory is
 * no longer as it was at @since, an explore_now() from before the thread looked.
 */
void explore_wait_change(uint64_t since);
uint64_t explore_now(void);
/** explore_choose() - the running thread goes on with each number below @ways, each in a run of its own. */
unsigned int explore_choose(unsigned int ways);
bool explore_killed(unsigned int thread);
/** explore_ended() - or was killed, or does not exist. */
bool explore_ended(unsigned int thread);
/** explore_in_thread() - not in the setup, a look or a check. */
bool explore_in_thread(void);
unsigned int explore_self(void);

/** explore_fail() - @what is wrong: ends the search. Anywhere between begin and end of explore(). */
void explore_fail(const char *what) __attribute__((noreturn));
#define explore_must(what)                                                                         \
	do {                                                                                       \
		if (!(what))                                                                       \
			explore_fail(#what);                                                       \
	} while (0)

#endif
