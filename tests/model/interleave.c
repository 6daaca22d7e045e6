/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The explorer of interleavings. Theory in interleave.h. */
#include "interleave.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define STATES (1u << 22) /* a power of two; three quarters may be used */
#define STACK  (64 * 1024)

struct thread {
	ucontext_t context;
	char *stack;
	uint64_t seen; /* hash of what it has seen */
	bool ended;
	bool waits; /* until the shared memory is no longer what it was: */
	uint64_t waits_on;
};

/* A step of the schedule, and the threads that are still to be tried in its place. */
struct choice {
	uint8_t thread, left;
};

static struct {
	const struct model *model;
	ucontext_t main;
	struct thread threads[MODEL_THREADS];
	unsigned int running;
	const char *wrong;
	struct choice schedule[MODEL_STEPS];
	unsigned int depth;
	uint64_t *states;
	unsigned int nstates, runs;
} x;

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static uint64_t hash_memory(void)
{
	const uint8_t *b = x.model->shared;
	uint64_t h = 1;

	for (size_t i = 0; i < x.model->size; i++)
		h = mix(h, b[i]);
	return h;
}

/* --- called by threads of the model --- */

void model_step(void)
{
	swapcontext(&x.threads[x.running].context, &x.main);
}

void model_seen(uint64_t v)
{
	struct thread *t = &x.threads[x.running];

	t->seen = mix(t->seen + 1, v);
}

void model_forget(uint64_t v)
{
	x.threads[x.running].seen = mix(x.running + 1, v);
}

uint64_t model_now(void)
{
	return hash_memory();
}

void model_wait(uint64_t since)
{
	struct thread *t = &x.threads[x.running];

	t->waits = true;
	t->waits_on = since;
	model_step();
}

void model_check(bool ok, const char *what)
{
	if (!ok && !x.wrong)
		x.wrong = what;
}

static void life(int id)
{
	struct thread *t = &x.threads[id];

	x.model->thread((unsigned int)id);
	t->ended = true;
	model_seen(0);
	swapcontext(&t->context, &x.main);
}

/* --- the search --- */

static void switch_to(unsigned int id)
{
	x.running = id;
	x.threads[id].waits = false;
	swapcontext(&x.main, &x.threads[id].context);
}

/* Everything as it was; each thread runs up to its first step. */
static void begin(void)
{
	x.model->begin();
	x.runs++;
	for (unsigned int i = 0; i < x.model->nthreads; i++) {
		struct thread *t = &x.threads[i];

		t->seen = i;
		t->ended = false;
		getcontext(&t->context);
		t->context.uc_stack.ss_sp = t->stack;
		t->context.uc_stack.ss_size = STACK;
		makecontext(&t->context, (void (*)(void))life, 1, (int)i);
		switch_to(i);
	}
}

/* Who may make the next step, a bit each. */
static uint8_t runnable(void)
{
	uint64_t memory = hash_memory();
	uint8_t mask = 0;

	for (unsigned int i = 0; i < x.model->nthreads; i++) {
		const struct thread *t = &x.threads[i];

		if (!t->ended && !(t->waits && t->waits_on == memory))
			mask |= 1u << i;
	}
	return mask;
}

static bool all_ended(void)
{
	for (unsigned int i = 0; i < x.model->nthreads; i++)
		if (!x.threads[i].ended)
			return false;
	return true;
}

/* Return: whether this state was never met before; it has been now. */
static bool is_new(void)
{
	uint64_t memory = hash_memory(), h = memory;

	/* Of two threads that have seen the same one may have looked in vain, and wait. */
	for (unsigned int i = 0; i < x.model->nthreads; i++) {
		const struct thread *t = &x.threads[i];

		h = mix(mix(h, t->seen), t->waits && t->waits_on == memory);
	}
	h += !h;
	for (uint64_t i = h;; i++) {
		uint64_t *slot = &x.states[i & (STATES - 1)];

		if (*slot == h)
			return false;
		if (*slot)
			continue;
		*slot = h;
		if (++x.nstates > STATES / 4 * 3)
			abort(); /* the model is too large */
		return true;
	}
}

/* On from where the schedule ends, until all threads have ended or nothing new can come. */
static void go_on(void)
{
	while (!x.wrong && is_new()) {
		uint8_t may = runnable();
		unsigned int id;

		if (all_ended()) {
			x.wrong = x.model->finish();
			return;
		}
		if (!may) {
			x.wrong = "every thread waits for another";
			return;
		}
		if (x.depth == MODEL_STEPS) {
			x.wrong = "a thread goes round in a circle";
			return;
		}
		id = (unsigned int)__builtin_ctz(may);
		x.schedule[x.depth++] = (struct choice){(uint8_t)id, may & ~(1u << id)};
		switch_to(id);
	}
}

/* The schedule up to the last step that could have been another thread's. False: there is none. */
static bool turn_back(void)
{
	while (x.depth) {
		struct choice *c = &x.schedule[x.depth - 1];

		if (c->left) {
			c->thread = (uint8_t)__builtin_ctz(c->left);
			c->left &= c->left - 1;
			return true;
		}
		x.depth--;
	}
	return false;
}

struct model_result model_explore(const struct model *m)
{
	struct model_result r = {0};

	memset(&x, 0, sizeof(x));
	x.model = m;
	x.states = calloc(STATES, sizeof(*x.states));
	for (unsigned int i = 0; i < m->nthreads; i++)
		x.threads[i].stack = malloc(STACK);
	begin();
	go_on();
	while (!x.wrong && turn_back()) {
		begin();
		for (unsigned int i = 0; i < x.depth; i++)
			switch_to(x.schedule[i].thread);
		go_on();
	}
	r.wrong = x.wrong;
	r.states = x.nstates;
	r.runs = x.runs;
	for (unsigned int i = 0; x.wrong && i < x.depth; i++)
		r.schedule[i] = (char)('0' + x.schedule[i].thread);
	for (unsigned int i = 0; i < m->nthreads; i++)
		free(x.threads[i].stack);
	free(x.states);
	return r;
}
