/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The guard of SIGSEGV and SIGBUS: ours are repaired, the program keeps all that it asked for. */
#include "verbs/signal.h"

#include "engine/usercopy.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Stands for the engine's: while `copying` is set a fault is ours. Repairing it makes the page
 * readable, so that the interrupted instruction goes on.
 */
static volatile bool copying;
static volatile int repaired;
static char *page;

bool usercopy_fixup(void *ucontext)
{
	if (!copying)
		return false;
	repaired++;
	return !mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void setup(void)
{
	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(page, MAP_FAILED);
}

TestSuite(signal, .init = setup, .timeout = 20);

static void touch(void)
{
	*(volatile char *)page = 1;
}

static void copy(void)
{
	cr_assert(!mprotect(page, 4096, PROT_NONE));
	repaired = 0;
	copying = true;
	touch();
	copying = false;
	cr_assert_eq(repaired, 1);
}

static volatile int handled;
static siginfo_t last_info;
static sigjmp_buf back;

static void jump_out(int sig, siginfo_t *info, void *ucontext)
{
	handled++;
	last_info = *info;
	siglongjmp(back, 1);
}

static void simple(int sig)
{
	handled++;
	siglongjmp(back, 1);
}

static void counts(int sig)
{
	handled++;
}

/* A fault that is the program's own. */
static void fault(void)
{
	cr_assert(!mprotect(page, 4096, PROT_NONE));
	if (!sigsetjmp(back, 1))
		touch();
}

static void set_action(int sig, void (*fn)(int, siginfo_t *, void *), int flags)
{
	struct sigaction act = {.sa_sigaction = fn, .sa_flags = SA_SIGINFO | flags};

	sigemptyset(&act.sa_mask);
	cr_assert(!sigaction(sig, &act, NULL));
}

Test(signal, guard__repairs_ours)
{
	signal_guard_install();
	copy();
	copy();
}

Test(signal, guard__handler_installed_before)
{
	set_action(SIGSEGV, jump_out, 0);
	signal_guard_install();
	copy();
	cr_expect_eq(handled, 0);
	fault();
	cr_expect_eq(handled, 1);
	cr_expect_eq(last_info.si_addr, page);
	copy();
}

Test(signal, guard__handler_installed_later)
{
	signal_guard_install();
	signal_guard_install();
	set_action(SIGSEGV, jump_out, 0);
	copy();
	fault();
	fault();
	cr_expect_eq(handled, 2);
	copy();
}

Test(signal, guard__plain_handler)
{
	signal_guard_install();
	cr_expect_eq(signal(SIGSEGV, simple), SIG_DFL);
	fault();
	cr_expect_eq(handled, 1);
	cr_expect_eq(signal(SIGSEGV, SIG_DFL), simple);
	copy();
}

Test(signal, guard__both_signals_apart)
{
	signal_guard_install();
	set_action(SIGBUS, jump_out, 0);
	if (!sigsetjmp(back, 1))
		raise(SIGBUS);
	cr_expect_eq(handled, 1);
	cr_expect_eq(last_info.si_signo, SIGBUS);
}

Test(signal, sigaction__tells_the_program_its_own)
{
	struct sigaction act = {.sa_handler = counts, .sa_flags = SA_RESTART}, old;

	sigemptyset(&act.sa_mask);
	sigaddset(&act.sa_mask, SIGUSR1);
	signal_guard_install();
	cr_assert(!sigaction(SIGSEGV, NULL, &old));
	cr_expect_eq(old.sa_handler, SIG_DFL);
	cr_assert(!sigaction(SIGSEGV, &act, NULL));
	cr_assert(!sigaction(SIGSEGV, NULL, &old));
	cr_expect_eq(old.sa_handler, counts);
	cr_expect_eq(old.sa_flags & SA_RESTART, SA_RESTART);
	cr_expect_eq(old.sa_flags & SA_SIGINFO, 0);
	cr_expect(sigismember(&old.sa_mask, SIGUSR1));
	act.sa_handler = SIG_IGN;
	cr_assert(!sigaction(SIGSEGV, &act, &old));
	cr_expect_eq(old.sa_handler, counts);
}

/* What a program puts back when it has saved the old action, as crash handlers do. */
Test(signal, sigaction__save_and_restore)
{
	struct sigaction saved, act = {.sa_handler = counts};

	set_action(SIGSEGV, jump_out, 0);
	signal_guard_install();
	cr_assert(!sigaction(SIGSEGV, &act, &saved));
	cr_assert(!sigaction(SIGSEGV, &saved, NULL));
	fault();
	cr_expect_eq(handled, 1);
}

static volatile int usr1_blocked;

static void look_at_mask(int sig, siginfo_t *info, void *ucontext)
{
	sigset_t now;

	sigprocmask(SIG_BLOCK, NULL, &now);
	usr1_blocked = sigismember(&now, SIGUSR1);
	siglongjmp(back, 1);
}

Test(signal, guard__mask_is_the_programs)
{
	struct sigaction act = {.sa_sigaction = look_at_mask, .sa_flags = SA_SIGINFO};

	sigemptyset(&act.sa_mask);
	sigaddset(&act.sa_mask, SIGUSR1);
	signal_guard_install();
	cr_assert(!sigaction(SIGSEGV, &act, NULL));
	fault();
	cr_expect_eq(usr1_blocked, 1);
}

static char alternate[65536];
static volatile bool on_alternate;

static void look_at_stack(int sig, siginfo_t *info, void *ucontext)
{
	char here;

	on_alternate = &here >= alternate && &here < alternate + sizeof(alternate);
	siglongjmp(back, 1);
}

Test(signal, guard__alternate_stack_only_when_asked_for)
{
	stack_t ss = {.ss_sp = alternate, .ss_size = sizeof(alternate)};

	cr_assert(!sigaltstack(&ss, NULL));
	signal_guard_install();
	set_action(SIGSEGV, look_at_stack, SA_ONSTACK);
	fault();
	cr_expect(on_alternate);
	set_action(SIGSEGV, look_at_stack, 0);
	fault();
	cr_expect(!on_alternate);
}

/* Runs @fn in a child; returns the signal that it died of, or -1. */
static int dies_of(void (*fn)(void))
{
	struct rlimit no_core = {0, 0};
	pid_t pid = fork();
	int status;

	cr_assert_geq(pid, 0);
	if (!pid) {
		setrlimit(RLIMIT_CORE, &no_core);
		fn();
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

static void touch_closed_page(void)
{
	mprotect(page, 4096, PROT_NONE);
	touch();
}

static void send_segv(void)
{
	raise(SIGSEGV);
}

static void fault_twice(void)
{
	fault();
	fault();
}

Test(signal, guard__default_is_death)
{
	signal_guard_install();
	copy();
	cr_expect_eq(dies_of(touch_closed_page), SIGSEGV);
	cr_expect_eq(dies_of(send_segv), SIGSEGV);
}

Test(signal, guard__ignored_when_sent_but_not_when_real)
{
	signal_guard_install();
	signal(SIGSEGV, SIG_IGN);
	cr_expect_eq(dies_of(send_segv), -1);
	cr_expect_eq(dies_of(touch_closed_page), SIGSEGV);
}

Test(signal, guard__one_shot_handler)
{
	struct sigaction old;

	signal_guard_install();
	set_action(SIGSEGV, jump_out, SA_RESETHAND | SA_NODEFER);
	fault();
	cr_expect_eq(handled, 1);
	cr_assert(!sigaction(SIGSEGV, NULL, &old));
	cr_expect_eq(old.sa_handler, SIG_DFL);
	copy();
	set_action(SIGSEGV, jump_out, SA_RESETHAND);
	cr_expect_eq(dies_of(fault_twice), SIGSEGV);
}

Test(signal, guard__system_v_signal_is_one_shot)
{
	signal_guard_install();
	cr_expect_eq(sysv_signal(SIGSEGV, simple), SIG_DFL);
	cr_expect_eq(dies_of(fault_twice), SIGSEGV);
}

Test(signal, signal__bad_arguments_and_other_signals)
{
	signal_guard_install();
	cr_expect_eq(signal(SIGSEGV, SIG_ERR), SIG_ERR);
	cr_expect_eq(errno, EINVAL);
	cr_expect_eq(signal(SIGUSR1, counts), SIG_DFL);
	raise(SIGUSR1);
	cr_expect_eq(handled, 1);
}
