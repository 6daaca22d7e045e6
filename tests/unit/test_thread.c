/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The signals of a thread of ours, and of the one that starts it. */
#include "base/thread.h"

#include <criterion/criterion.h>
#include <signal.h>

static sigset_t inside;

static void *look(void *arg)
{
	pthread_sigmask(SIG_BLOCK, NULL, &inside);
	return NULL;
}

static bool is_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS;
}

Test(thread, thread_start__blocks_all_but_faults)
{
	sigset_t mine, before, after;
	pthread_t t;

	/* A creator's own mask is neither inherited nor lost. */
	sigemptyset(&mine);
	sigaddset(&mine, SIGSEGV);
	sigaddset(&mine, SIGUSR1);
	pthread_sigmask(SIG_SETMASK, &mine, NULL);
	pthread_sigmask(SIG_BLOCK, NULL, &before);
	cr_assert_eq(thread_start(&t, look), 0);
	pthread_sigmask(SIG_BLOCK, NULL, &after);
	cr_assert_eq(pthread_join(t, NULL), 0);
	for (int sig = 1; sig <= SIGRTMAX; sig++) {
		cr_assert_eq(sigismember(&after, sig), sigismember(&before, sig), "%d", sig);
		/* Neither can these be blocked, nor those between, which are the C library's. */
		if (sig == SIGKILL || sig == SIGSTOP || (sig >= 32 && sig < SIGRTMIN))
			continue;
		cr_assert_eq(sigismember(&inside, sig), !is_fault(sig), "%d", sig);
	}
}
