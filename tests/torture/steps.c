/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A thread that is stopped, or dies, after every single instruction of a call.
 *
 * The program sets the processor's trap flag before a call, so that a signal comes after each of
 * its instructions. At the k-th the handler does what other threads would do while this one stands
 * still: fill the queue, empty it, go round the ring. All of that must succeed. Then the call goes
 * on where it stood, or never does (the handler jumps out of it) and what it had in its hands is
 * recovered. Either way every request comes out once, in its poster's order, and the queue takes
 * max_wr requests afterwards. k runs until the call ends before it.
 *
 * Then two at once: while a poster stands still a taker is stopped, too, after each of its instructions, and the
 * others go round the ring without ever leaving the queue empty. So the taker must get something.
 *
 * The random kills of processes.c try more states of the queue; this one leaves no instruction out.
 */
#include "srq/rq.h"

#include "base/macros.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define DEPTH	  4
#define VICTIM	  9 /* epoch of the stopped one */
#define OWNER	  1
#define VICTIM_ID 50 /* what it posts, and one more in a chain */
#define OTHERS	  100
#define MAX_ID	  200

static struct rq *rq;
static unsigned int prefill; /* requests in the queue before the call */

static volatile unsigned int countdown; /* instructions until the stop; 0: no stop */
static volatile bool stopped, dies;
static void (*meanwhile)(void); /* what is done at the stop */
static sigjmp_buf death;

static unsigned int out[MAX_ID]; /* how often each id came out */
static uint64_t last_other, last_victim, next_other;
static unsigned int posted_others;
static const char *wrong;

static void must(bool what, const char *text)
{
	if (!what && !wrong)
		wrong = text;
}
#define must(what) must(what, #what)

static struct ibv_sge sge = {.addr = 0x1000, .length = 64, .lkey = 7};

/* --- what others do --------------------------------------------------------------------------- */

static bool post_other(void)
{
	struct ibv_recv_wr wr = {.wr_id = next_other, .sg_list = &sge, .num_sge = 1};

	if (rq_post(rq, &wr))
		return false;
	next_other++;
	posted_others++;
	return true;
}

static void came_out(const struct rqe *rqe)
{
	uint64_t id = rqe->wr_id;

	must(id < MAX_ID && rqe->num_sge == 1 && rqe->length == 64 && rqe->sge[0].lkey == 7);
	if (id >= MAX_ID)
		return;
	out[id]++;
	if (id >= OTHERS) {
		must(id > last_other);
		last_other = id;
	} else {
		must(id > last_victim);
		last_victim = id;
	}
}

static bool take_other(void)
{
	struct rqe rqe;

	if (!rq_take(rq, &rqe))
		return false;
	came_out(&rqe);
	return true;
}

static unsigned int take_all(void)
{
	unsigned int n = 0;

	while (take_other())
		n++;
	return n;
}

/* Three times as many as fit, in bursts: all but one slot are there, and each burst comes out. */
static void others_work(void)
{
	take_all();
	for (int lap = 0; lap < 4; lap++) {
		unsigned int n = 0;

		while (post_other())
			n++;
		must(n >= DEPTH - 1 && n <= DEPTH);
		must(take_all() >= n);
	}
	while (prefill && next_other % DEPTH)
		post_other();
}

/* Round the ring with one more request than before at most, and never one fewer. */
static void others_go_round(void)
{
	for (int i = 0; i < 40; i++) {
		must(post_other());
		must(take_other());
	}
}

/* --- stops ------------------------------------------------------------------------------------ */

#define TRAP_FLAG 0x100

static inline void trap_flag(bool on)
{
#ifdef __x86_64__
	/* Below the red zone. */
	if (on)
		__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; orq %0, (%%rsp); popfq; lea "
				 "128(%%rsp), %%rsp" ::"i"(TRAP_FLAG)
				 : "memory", "cc");
	else
		__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; andq %0, (%%rsp); popfq; lea "
				 "128(%%rsp), %%rsp" ::"i"(~TRAP_FLAG)
				 : "memory", "cc");
#endif
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	if (!countdown || --countdown)
		return;
	stopped = true;
	meanwhile();
	if (dies)
		siglongjmp(death, 1);
#ifdef __x86_64__
	/* The rest of the call at full speed. */
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
#endif
}

/* --- the calls -------------------------------------------------------------------------------- */

static int posted; /* result of the call, -1: it did not return */
static bool got;
static bool held, released;
static uint64_t ticket;
static struct rqe hold_rqe;

static void call_post(void)
{
	struct ibv_recv_wr wr = {.wr_id = VICTIM_ID, .sg_list = &sge, .num_sge = 1};

	trap_flag(true);
	posted = rq_post_as(rq, VICTIM, &wr);
	trap_flag(false);
}

static void call_post_list(void)
{
	struct ibv_recv_wr wr[2] = {
		{.wr_id = VICTIM_ID, .next = &wr[1], .sg_list = &sge, .num_sge = 1},
		{.wr_id = VICTIM_ID + 1, .sg_list = &sge, .num_sge = 1}};
	struct ibv_recv_wr *bad;

	trap_flag(true);
	posted = rq_post_list(rq, wr, &bad);
	trap_flag(false);
}

static void call_take(void)
{
	struct rqe rqe;

	trap_flag(true);
	got = rq_take(rq, &rqe);
	trap_flag(false);
	/* Others may have taken later ones before this one was stopped for long. */
	if (got && rqe.wr_id < MAX_ID)
		out[rqe.wr_id]++;
}

static void call_hold(void)
{
	trap_flag(true);
	held = rq_hold(rq, VICTIM, &hold_rqe, &ticket);
	if (held)
		released = rq_release(rq, VICTIM, ticket);
	trap_flag(false);
	if (released)
		out[hold_rqe.wr_id]++;
}

static const struct {
	const char *name;
	void (*call)(void);
	unsigned int prefill;
	bool recoverable; /* by epoch, so it may die */
	/* What others do; if not all kinds of things, then the call succeeds wherever it is stopped. */
	void (*others)(void);
} calls[] = {
	{"post", call_post, 0, true, others_work},
	{"post, some there", call_post, 2, true, others_work},
	{"post, always room", call_post, 2, false, others_go_round},
	{"post of a chain", call_post_list, 1, false, others_work},
	{"post of a chain, always room", call_post_list, 1, false, others_go_round},
	{"take", call_take, 2, false, others_work},
	{"take, nothing there", call_take, 0, false, others_work},
	{"take, never empty", call_take, 2, false, others_go_round},
	{"hold and release", call_hold, 2, true, others_work},
};

static void start(unsigned int before)
{
	memset(out, 0, sizeof(out));
	last_other = last_victim = 0;
	next_other = OTHERS;
	posted_others = 0;
	posted = -1;
	got = false;
	held = released = false;
	prefill = before;
	if (rq_create(DEPTH, 1, &rq))
		abort();
	for (unsigned int i = 0; i < before; i++)
		post_other();
}

/* @may_lack: ids that the dead one may or may not have got rid of. */
static void check_end(bool died, bool list)
{
	struct rqe rqe;
	unsigned int n = 0;

	/* What a dead one held comes back out of order, so order is looked at no more. */
	while (rq_take(rq, &rqe))
		out[rqe.wr_id]++;
	for (uint64_t id = OTHERS; id < next_other; id++) {
		/* Between the release and its note in out[] a completed one seems lost. */
		bool perhaps = died && held && id == hold_rqe.wr_id;

		must(out[id] == 1 || (perhaps && out[id] == 0));
	}
	if (posted == 0)
		must(out[VICTIM_ID] == 1 && (!list || out[VICTIM_ID + 1] == 1));
	else
		must(out[VICTIM_ID] <= 1);
	must(rq_count(rq) == 0);
	while (post_other())
		n++;
	must(n == DEPTH && rq_count(rq) == DEPTH);
	rq_destroy(rq);
}

/* Stops call @i at its @k-th instruction. Return: false: it has fewer. */
static bool stop_at(unsigned int i, unsigned int k, bool die)
{
	start(calls[i].prefill);
	stopped = false;
	dies = die;
	meanwhile = calls[i].others;
	countdown = k;
	if (!sigsetjmp(death, 1)) {
		calls[i].call();
	} else {
		int ret = rq_recover(rq, VICTIM, OWNER);

		must(ret == 0 || ret == 1);
	}
	countdown = 0;
	if (calls[i].others == others_go_round)
		must(posted == 0 || got);
	check_end(die && stopped, calls[i].call == call_post_list);
	return stopped;
}

/* --- two at once ------------------------------------------------------------------------------ */

static unsigned int taker_countdown;
static bool taker_stopped;

static void taker_is_stopped(void)
{
	bool was_stopped = stopped;
	struct rqe rqe;
	bool ok;

	must(post_other());
	meanwhile = others_go_round;
	stopped = false;
	countdown = taker_countdown;
	trap_flag(true);
	ok = rq_take(rq, &rqe);
	trap_flag(false);
	countdown = 0;
	taker_stopped = stopped;
	stopped = was_stopped;
	must(ok);
	if (ok && rqe.wr_id < MAX_ID)
		out[rqe.wr_id]++;
}

/*
 * Stops a post at its @k-th instruction, and then a take at its @j-th. Return: whether the take was
 * stopped.
 */
static bool stop_two(unsigned int k, unsigned int j)
{
	start(0);
	stopped = taker_stopped = false;
	dies = false;
	taker_countdown = j;
	meanwhile = taker_is_stopped;
	countdown = k;
	call_post();
	must(stopped);
	countdown = 0;
	check_end(false, false);
	return taker_stopped;
}

static unsigned int stop_two_everywhere(unsigned int k)
{
	unsigned int j = 1;

	while (stop_two(k, j) && !wrong)
		j++;
	return j;
}

int main(void)
{
	struct sigaction sa = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER};
	unsigned int n = 0;

#ifndef __x86_64__
	printf("1..0 # SKIP knows the trap flag of x86-64 only\n");
	return 0;
#endif
	sigaction(SIGTRAP, &sa, NULL);
	for (unsigned int i = 0; i < ARRAY_SIZE(calls); i++) {
		for (int die = 0; die <= calls[i].recoverable; die++) {
			unsigned int k = 1;

			while (stop_at(i, k, die) && !wrong)
				k++;
			if (k < 20)
				must(!"single steps come");
			printf("%s %u - %s: %s after each of %u instructions",
			       wrong ? "not ok" : "ok", ++n, calls[i].name,
			       die ? "dies" : "is stopped", k - 1);
			printf(wrong ? ": at %u, %s\n" : "\n", k, wrong);
			if (wrong)
				return 1;
		}
	}
	for (unsigned int k = 20; k <= 90; k += 35) {
		unsigned int j = stop_two_everywhere(k);

		printf("%s %u - post stopped after %u instructions: a take after each of %u",
		       wrong ? "not ok" : "ok", ++n, k, j - 1);
		printf(wrong ? ": at %u, %s\n" : "\n", j, wrong);
		if (wrong)
			return 1;
	}
	printf("1..%u\n", n);
	return 0;
}
