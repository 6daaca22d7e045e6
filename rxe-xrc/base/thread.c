/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A thread inherits the mask of its creator: that is changed for the moment, so that no signal slips in. */
#include "base/thread.h"

#include <signal.h>

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
