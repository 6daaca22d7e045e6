/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A guard in front of the program's own handlers of SIGSEGV and SIGBUS.
 *
 * Copies of user memory may fault when a program has unmapped what it registered
 * (engine/usercopy.h). Our handler repairs such faults and hands all others to what the program
 * wants: its handler, the default action or nothing. A program may install a handler at any time,
 * before us or after us, and expects to be told of its own handler when it asks. So, once the guard
 * is installed, sigaction() and its older relatives do not reach the kernel for these two signals:
 * the program's wish is remembered here, and the kernel always has our handler, with the program's
 * mask and flags.
 *
 *   program's action   | what our handler does with a fault that is not ours
 *   -------------------+---------------------------------------------------------------------------
 *   a handler          | calls it; SA_RESETHAND sets the default first; SA_NODEFER, SA_ONSTACK,
 *                      | SA_RESTART and the mask are given to the kernel as they are
 *   SIG_DFL            | gives the signal back to the kernel and returns: the instruction faults
 *                      | again, and the core dump shows the place. A signal that somebody sent
 *                      | (kill) is sent to ourselves again
 *   SIG_IGN            | as Linux: a sent signal is ignored, for a real fault the default is taken
 *
 * Before the guard is installed everything goes to the C library. Not seen: sigignore(),
 * siginterrupt() and raw system calls.
 *
 * A fault while its signal is blocked kills the process, and threads that block all signals are common. So
 * pthread_sigmask() and sigprocmask() leave these two out of what they block, at all times. The masks of
 * handlers, of sigsuspend() and of pthread_attr_setsigmask_np() are left alone.
 */
#include "verbs/signal.h"

#include "engine/usercopy.h"
#include "verbs/next.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * The program's actions. Written under write_lock with all signals blocked; read by handlers, which
 * may not wait for a lock: the sequence is odd while a write is under way, and a reader that saw it
 * change reads again. A handler never interrupts the writer in the same thread, so it waits for
 * another one only.
 */
struct wish {
	atomic_uint sequence;
	struct sigaction action;
};

static struct wish wishes[2]; /* SIGSEGV, SIGBUS */
static pthread_mutex_t write_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool installed;

static struct wish *wish_of(int sig)
{
	return sig == SIGSEGV ? &wishes[0] : sig == SIGBUS ? &wishes[1] : NULL;
}

static struct sigaction wish_read(struct wish *w)
{
	struct sigaction action;
	unsigned int before;

	do {
		before = atomic_load_explicit(&w->sequence, memory_order_acquire);
		action = w->action;
		atomic_thread_fence(memory_order_acquire);
	} while (before & 1 || before != atomic_load_explicit(&w->sequence, memory_order_relaxed));
	return action;
}

static void wish_write(struct wish *w, const struct sigaction *action)
{
	unsigned int sequence = atomic_load_explicit(&w->sequence, memory_order_relaxed);

	atomic_store_explicit(&w->sequence, sequence + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	w->action = *action;
	atomic_store_explicit(&w->sequence, sequence + 2, memory_order_release);
}

static void write_begin(sigset_t *saved)
{
	sigset_t all;

	sigfillset(&all);
	NEXT(pthread_sigmask)(SIG_SETMASK, &all, saved);
	pthread_mutex_lock(&write_lock);
}

static void write_end(const sigset_t *saved)
{
	pthread_mutex_unlock(&write_lock);
	NEXT(pthread_sigmask)(SIG_SETMASK, saved, NULL);
}

static bool is_handler(const struct sigaction *a)
{
	return (a->sa_flags & SA_SIGINFO) || (a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN);
}

/* SA_RESETHAND: the next signal finds the default. */
static void reset_wish(struct wish *w)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	sigset_t saved;

	write_begin(&saved);
	wish_write(w, &dfl);
	write_end(&saved);
}

static void take_default(int sig, const siginfo_t *info)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};

	NEXT(sigaction)(sig, &dfl, NULL);
	/* Blocked while we are in the handler: it is delivered when that returns. */
	if (info->si_code <= 0)
		syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), sig);
}

static void guard(int sig, siginfo_t *info, void *ucontext)
{
	int saved_errno = errno;
	struct wish *w = wish_of(sig);
	struct sigaction a;

	if (usercopy_fixup(ucontext)) {
		errno = saved_errno;
		return;
	}
	a = wish_read(w);
	if (!is_handler(&a)) {
		if (a.sa_handler == SIG_DFL || info->si_code > 0)
			take_default(sig, info);
		errno = saved_errno;
		return;
	}
	if (a.sa_flags & SA_RESETHAND)
		reset_wish(w);
	errno = saved_errno;
	if (a.sa_flags & SA_SIGINFO)
		a.sa_sigaction(sig, info, ucontext);
	else
		a.sa_handler(sig);
}

/*
 * Makes the kernel call us as it would have called the program. Without a handler of the program's
 * an alternate stack is used where there is one: the Go runtime insists on it for every handler.
 */
static int install(int sig, const struct sigaction *wish)
{
	struct sigaction ours = {.sa_sigaction = guard, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	sigemptyset(&ours.sa_mask);
	if (is_handler(wish)) {
		ours.sa_mask = wish->sa_mask;
		ours.sa_flags =
			SA_SIGINFO | (wish->sa_flags & (SA_ONSTACK | SA_NODEFER | SA_RESTART));
	}
	return NEXT(sigaction)(sig, &ours, NULL);
}

/* A child must not find the lock held by a thread that it does not have. */
static void lock_writes(void)
{
	pthread_mutex_lock(&write_lock);
}

static void unlock_writes(void)
{
	pthread_mutex_unlock(&write_lock);
}

void signal_guard_install(void)
{
	static const int signals[] = {SIGSEGV, SIGBUS};
	sigset_t saved;

	if (atomic_load(&installed))
		return;
	pthread_atfork(lock_writes, unlock_writes, unlock_writes);
	write_begin(&saved);
	for (unsigned int i = 0; i < ARRAY_SIZE(signals) && !atomic_load(&installed); i++) {
		struct sigaction old;

		if (NEXT(sigaction)(signals[i], NULL, &old))
			continue;
		wish_write(wish_of(signals[i]), &old);
		install(signals[i], &old);
	}
	atomic_store(&installed, true);
	write_end(&saved);
}

static bool guarded(int sig)
{
	return unlikely(sig == SIGSEGV || sig == SIGBUS) && atomic_load(&installed);
}

/* sigaction() for a guarded signal. @act may be NULL, @old too. */
static int wish_change(int sig, const struct sigaction *act, struct sigaction *old)
{
	struct wish *w = wish_of(sig);
	struct sigaction before;
	sigset_t saved;
	int rc = 0;

	if (!act) {
		if (old)
			*old = wish_read(w);
		return 0;
	}
	write_begin(&saved);
	before = w->action;
	/* First the wish, so that a fault in between already finds it. */
	wish_write(w, act);
	rc = install(sig, act);
	write_end(&saved);
	if (old)
		*old = before;
	return rc;
}

INTERPOSE int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	return guarded(sig) ? wish_change(sig, act, old) : NEXT(sigaction)(sig, act, old);
}

int __sigaction(int sig, const struct sigaction *act, struct sigaction *old);

INTERPOSE int __sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	return guarded(sig) ? wish_change(sig, act, old) : NEXT(__sigaction)(sig, act, old);
}

static sighandler_t wish_handler(int sig, sighandler_t handler, int flags)
{
	struct sigaction act = {.sa_handler = handler, .sa_flags = flags}, old;

	if (handler == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	sigemptyset(&act.sa_mask);
	if (!(flags & SA_NODEFER))
		sigaddset(&act.sa_mask, sig);
	if (wish_change(sig, &act, &old))
		return SIG_ERR;
	return old.sa_handler;
}

/* BSD: stays installed, restarts system calls. System V: for one signal, which it does not block.
 */
#define BSD_FLAGS  SA_RESTART
#define SYSV_FLAGS (SA_RESETHAND | SA_NODEFER)

#define SIGNAL(name, flags)                                                                        \
	INTERPOSE sighandler_t name(int sig, sighandler_t handler)                                 \
	{                                                                                          \
		return guarded(sig) ? wish_handler(sig, handler, flags)                            \
				    : NEXT(name)(sig, handler);                                    \
	}

sighandler_t bsd_signal(int sig, sighandler_t handler);
sighandler_t __sysv_signal(int sig, sighandler_t handler);

SIGNAL(signal, BSD_FLAGS)
SIGNAL(bsd_signal, BSD_FLAGS)
SIGNAL(ssignal, BSD_FLAGS)
SIGNAL(sysv_signal, SYSV_FLAGS)
SIGNAL(__sysv_signal, SYSV_FLAGS)

typedef int change_mask(int how, const sigset_t *set, sigset_t *old);

static int mask_change(change_mask *real, int how, const sigset_t *set, sigset_t *old)
{
	sigset_t without;

	if (!set || how == SIG_UNBLOCK)
		return real(how, set, old);
	without = *set;
	sigdelset(&without, SIGSEGV);
	sigdelset(&without, SIGBUS);
	return real(how, &without, old);
}

INTERPOSE int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	return mask_change(NEXT(pthread_sigmask), how, set, old);
}

INTERPOSE int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	return mask_change(NEXT(sigprocmask), how, set, old);
}
