/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads and mutexes that put up with what the program does with its threads. */
#include "base/thread.h"

#include <signal.h>

/* A thread inherits the mask of its creator: that is changed for the moment, so that no signal slips in. */
int thread_start(pthread_t *thread, void *(*main)(void *))
{
	sigset_t mask, old;
	int err;

	sigfillset(&mask);
	sigdelset(&mask, SIGSEGV);
	sigdelset(&mask, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &mask, &old);
	err = -pthread_create(thread, NULL, main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

void mutex_enter(pthread_mutex_t *m, int *cancel)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(m);
	*cancel = state;
}

void mutex_leave(pthread_mutex_t *m, int *cancel)
{
	int state = *cancel;

	pthread_mutex_unlock(m);
	pthread_setcancelstate(state, NULL);
}
