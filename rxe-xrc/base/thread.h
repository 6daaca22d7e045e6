/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads and mutexes of ours in a process that is the program's. */
#ifndef RXE_BASE_THREAD_H
#define RXE_BASE_THREAD_H

#include <pthread.h>

/**
 * thread_start() - a thread that never runs a handler of the program: all signals are blocked in it, but for
 * SIGSEGV and SIGBUS. Copies into memory that is not there fault, and a fault whose signal is blocked would
 * kill the process instead of being repaired (engine/usercopy.h).
 *
 * Return: 0 or what pthread_create() says, negative. The caller's own mask is as it was.
 */
int thread_start(pthread_t *thread, void *(*main)(void *));

/**
 * mutex_enter(), mutex_leave() - a mutex whose holder is not cancelled: it would leave it locked for ever.
 * @cancel: guarded by @m: the cancel state of whoever holds it
 */
void mutex_enter(pthread_mutex_t *m, int *cancel);
void mutex_leave(pthread_mutex_t *m, int *cancel);

#endif
