/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The explorer: depth first, with a table of the states that were seen. See explore.h. */
#include "explore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define STACK_SIZE 8192
/* Longer runs do not end: the threads of a model have a few dozen steps. */
#define MAX_DEPTH 600
#define NOTHING	  1 /* learned before the first step; not 0, which mix() keeps */

enum status { READY, WAITING, WAITING_CHANGE, ENDED, KILLED };

struct thread {
	ucontext_t at;
	uint64_t learned; /* a hash of all that it read */
	enum status status;
	unsigned int waits_for; /* WAITING: for this thread's end */
	uint64_t since;		/* WAITING_CHANGE: for another memory than this */
	unsigned int ways;	/* it stands before a choice of so many, if not 0 */
	unsigned int way;	/* what was chosen */
	char stack[STACK_SIZE] __attribute__((aligned(64)));
};

static const struct explore *model;
static struct thread threads[EXPLORE_THREADS];
static ucontext_t scheduler, over;
static int running = -1;
static struct explore_result result;

/* The steps to here: a thread's number, or 16 more for its death, and 256 times what it chose. */
static uint16_t path[MAX_DEPTH];
static unsigned int depth;

/* The states on the way here. */
static struct snapshot *saved[MAX_DEPTH + 1];

static uint64_t *table;
static uint64_t table_mask, table_used;

/* --- threads ---------------------------------------------------------------------------------- */

void explore_step(void)
{
	int self = running;

	if (self < 0)
		return;
	running = -1;
	swapcontext(&threads[self].at, &scheduler);
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	h ^= h >> 32;
	h *= UINT64_C(0xd6e8feb86659fd93);
	return h ^ h >> 29;
}

void explore_saw(uint64_t v)
{
	if (running >= 0)
		threads[running].learned = mix(threads[running].learned, v + 1);
}

void explore_forget(uint64_t v)
{
	threads[running].learned = NOTHING;
	explore_saw(v);
}

void explore_wait(unsigned int other)
{
	struct thread *t = &threads[running];

	t->status = WAITING;
	t->waits_for = other;
	explore_step();
	explore_saw(threads[other].status);
}

uint64_t explore_now(void)
{
	const uint64_t *mem = model->shared;
	uint64_t h = 1;

	for (size_t i = 0; i < model->shared_size / 8; i++)
		h = mix(h, mem[i]);
	return h;
}

void explore_wait_change(uint64_t since)
{
	struct thread *t = &threads[running];

	t->status = WAITING_CHANGE;
	t->since = since;
	explore_step();
}

unsigned int explore_choose(unsigned int ways)
{
	struct thread *t = &threads[running];

	if (ways < 2)
		return 0;
	t->ways = ways;
	explore_step();
	return t->way;
}

bool explore_killed(unsigned int thread)
{
	return threads[thread].status == KILLED;
}

bool explore_ended(unsigned int thread)
{
	return thread >= model->nthreads || threads[thread].status >= ENDED;
}

bool explore_in_thread(void)
{
	return running >= 0;
}

unsigned int explore_self(void)
{
	return running;
}

static void body(int self)
{
	model->thread[self]();
	threads[self].status = ENDED;
	running = -1;
	setcontext(&scheduler);
}

static bool can_run(const struct thread *t)
{
	if (t->status == WAITING)
		return threads[t->waits_for].status >= ENDED;
	if (t->status == WAITING_CHANGE)
		return t->since != explore_now();
	return t->status == READY;
}

static void run_step(unsigned int i)
{
	struct thread *t = &threads[i];

	t->status = READY;
	t->ways = 0;
	/* A step that reads nothing is one all the same: what comes behind it is another state. */
	t->learned = mix(t->learned, 0);
	running = (int)i;
	swapcontext(&scheduler, &t->at);
}

static void make_thread(unsigned int i)
{
	struct thread *t = &threads[i];

	memset(t, 0, sizeof(*t));
	t->learned = NOTHING;
	getcontext(&t->at);
	t->at.uc_stack.ss_sp = t->stack;
	t->at.uc_stack.ss_size = STACK_SIZE;
	makecontext(&t->at, (void (*)(void))body, 1, (int)i);
}

static void start_threads(void)
{
	for (unsigned int i = 0; i < model->nthreads; i++) {
		make_thread(i);
		if (model->begun)
			run_step(i);
	}
}

/* --- states ----------------------------------------------------------------------------------- */

static uint64_t state_key(void)
{
	uint64_t h = explore_now();

	for (unsigned int i = 0; i < model->nthreads; i++)
		h = mix(mix(h, threads[i].learned), threads[i].status << 8 | threads[i].ways);
	return h ? h : 1;
}

static bool table_put(uint64_t key)
{
	uint64_t i = key & table_mask;

	for (; table[i]; i = (i + 1) & table_mask)
		if (table[i] == key)
			return false;
	table[i] = key;
	return true;
}

static void table_grow(void)
{
	uint64_t *old = table, size = table_mask + 1;

	table_mask = size * 2 - 1;
	table = calloc(table_mask + 1, sizeof(*table));
	if (!table) {
		table = old;
		explore_fail("no memory for the table of states");
	}
	for (uint64_t i = 0; i < size; i++)
		if (old[i])
			table_put(old[i]);
	free(old);
}

static bool is_new(uint64_t key)
{
	if (table_used * 2 > table_mask)
		table_grow();
	if (!table_put(key))
		return false;
	table_used++;
	return true;
}

struct snapshot {
	struct thread threads[EXPLORE_THREADS];
	char memory[];
};

/* In one of the places that each depth has: nothing to free when the search ends half way. */
static void save(void)
{
	struct snapshot *s = saved[depth];

	if (!s)
		s = saved[depth] = malloc(sizeof(*s) + model->shared_size + model->records_size);
	if (!s)
		explore_fail("no memory for a state");
	memcpy(s->threads, threads, model->nthreads * sizeof(threads[0]));
	memcpy(s->memory, model->shared, model->shared_size);
	if (model->records)
		memcpy(s->memory + model->shared_size, model->records, model->records_size);
}

static void restore(void)
{
	const struct snapshot *s = saved[depth];

	memcpy(threads, s->threads, model->nthreads * sizeof(threads[0]));
	memcpy(model->shared, s->memory, model->shared_size);
	if (model->records)
		memcpy(model->records, s->memory + model->shared_size, model->records_size);
}

/* --- the search ------------------------------------------------------------------------------- */

void explore_fail(const char *what)
{
	running = -1;
	result.wrong = what;
	setcontext(&over);
	abort();
}

static void search(void);

static void follow(unsigned int thread, unsigned int way, bool kill)
{
	if (depth == MAX_DEPTH)
		explore_fail("a run that does not end");
	path[depth++] = (uint16_t)(thread + (kill ? 16 : 0) + (way << 8));
	threads[thread].way = way;
	if (kill)
		threads[thread].status = KILLED;
	else
		run_step(thread);
	search();
	depth--;
	restore();
}

/* A choice belongs to the step that it is made in: nobody else runs before it. */
static bool follow_choice(void)
{
	for (unsigned int i = 0; i < model->nthreads; i++) {
		unsigned int ways = threads[i].ways;

		if (!ways || threads[i].status >= ENDED)
			continue;
		for (unsigned int way = 0; way < ways; way++)
			follow(i, way, false);
		return true;
	}
	return false;
}

/* Return: false: all threads have ended, or wait. */
static bool follow_threads(void)
{
	bool any = false;

	for (unsigned int i = 0; i < model->nthreads; i++) {
		if (!can_run(&threads[i]))
			continue;
		any = true;
		follow(i, 0, false);
		/* One that has not begun is not dead, only late. */
		if (model->killable[i] && threads[i].learned != NOTHING)
			follow(i, 0, true);
	}
	return any;
}

/* From the present state; leaves it changed. */
static void search(void)
{
	if (!is_new(state_key()))
		return;
	result.states++;
	if (model->look)
		model->look();
	save();
	if (follow_choice() || follow_threads())
		return;
	for (unsigned int i = 0; i < model->nthreads; i++)
		if (threads[i].status < ENDED)
			explore_fail("threads that wait for each other");
	result.ends++;
	model->check();
}

static const char *steps(void)
{
	static char text[MAX_DEPTH * sizeof(" kill-0:255")];
	char *at = text;

	*at = '\0';
	for (unsigned int i = 0; i < depth; i++) {
		at += sprintf(at, path[i] & 16 ? " kill-%u" : " %u", path[i] % 16);
		if (path[i] >> 8)
			at += sprintf(at, ":%u", path[i] >> 8);
	}
	return text;
}

static void forget_states(void)
{
	free(table);
	for (unsigned int i = 0; i <= MAX_DEPTH; i++) {
		free(saved[i]);
		saved[i] = NULL;
	}
}

struct explore_result explore(const struct explore *m)
{
	model = m;
	result = (struct explore_result){0};
	depth = 0;
	table_mask = 0xffff;
	table_used = 0;
	table = calloc(table_mask + 1, sizeof(*table));
	/* A failure comes back here, from whatever stack it was found on. */
	getcontext(&over);
	if (!result.wrong) {
		if (!table)
			explore_fail("no memory for the table of states");
		model->setup();
		start_threads();
		search();
	}
	result.steps = steps();
	forget_states();
	return result;
}
