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

static void on_trap(int sig)
{
	if (!countdown || --countdown)
		return;
	stopped = true;
	others_work();
	if (dies)
		siglongjmp(death, 1);
}

/* --- the calls -------------------------------------------------------------------------------- */

static int posted; /* result of the call, -1: it did not return */
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
	bool ok;

	trap_flag(true);
	ok = rq_take(rq, &rqe);
	trap_flag(false);
	/* Others may have taken later ones before this one was stopped for long. */
	if (ok && rqe.wr_id < MAX_ID)
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
} calls[] = {
	{"post", call_post, 0, true},
	{"post, some there", call_post, 2, true},
	{"post of a chain", call_post_list, 1, false},
	{"take", call_take, 2, false},
	{"take, nothing there", call_take, 0, false},
	{"hold and release", call_hold, 2, true},
};

static void start(unsigned int before)
{
	memset(out, 0, sizeof(out));
	last_other = last_victim = 0;
	next_other = OTHERS;
	posted_others = 0;
	posted = -1;
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
	countdown = k;
	if (!sigsetjmp(death, 1)) {
		calls[i].call();
	} else {
		int ret = rq_recover(rq, VICTIM, OWNER);

		must(ret == 0 || ret == 1);
	}
	countdown = 0;
	check_end(die && stopped, calls[i].call == call_post_list);
	return stopped;
}

int main(void)
{
	struct sigaction sa = {.sa_handler = on_trap};
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
	printf("1..%u\n", n);
	return 0;
}
