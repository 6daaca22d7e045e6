/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The memory of C11 as lists of values and views of threads. Theory in weak.h. */
#include "weak.h"

#include "base/macros.h"

#include <string.h>

static struct weak_memory *mem;

/* Which variable a word is; they keep their numbers, whatever state the explorer goes back to. */
static const void *words[WEAK_WORDS];

void weak_use(struct weak_memory *m)
{
	mem = m;
	memset(words, 0, sizeof(words));
}

static unsigned int word_number(const void *w)
{
	for (unsigned int i = 0; i < WEAK_WORDS; i++) {
		if (!words[i])
			words[i] = w;
		if (words[i] == w)
			return i;
	}
	explore_fail("more words than WEAK_WORDS");
}

static uint64_t variable(const void *w, unsigned int size)
{
	return size == 4 ? *(const uint32_t *)w : *(const uint64_t *)w;
}

static void set_variable(void *w, unsigned int size, uint64_t v)
{
	if (size == 4)
		*(uint32_t *)w = (uint32_t)v;
	else
		*(uint64_t *)w = v;
}

static bool acquires(memory_order o)
{
	return o == memory_order_acquire || o == memory_order_acq_rel || o == memory_order_seq_cst;
}

static bool releases(memory_order o)
{
	return o == memory_order_release || o == memory_order_acq_rel || o == memory_order_seq_cst;
}

static void join(struct weak_view *into, const struct weak_view *from)
{
	for (unsigned int i = 0; i < WEAK_WORDS; i++)
		into->from[i] = max_t(uint8_t, into->from[i], from->from[i]);
	into->calls |= from->calls;
}

/* --- what nobody can read any more ------------------------------------------------------------ */

static void lower(uint8_t *from, unsigned int by)
{
	*from -= min_t(unsigned int, *from, by);
}

/* Takes values of word @i away that are below every thread's view, so that states are the same that act the same. */
static void forget_old(unsigned int i)
{
	unsigned int oldest = mem->n[i] - 1;

	for (unsigned int t = 0; t < EXPLORE_THREADS; t++)
		if (!explore_ended(t))
			oldest = min_t(unsigned int, oldest, mem->thread[t].from[i]);
	if (!oldest)
		return;
	mem->n[i] -= oldest;
	memmove(mem->value[i], mem->value[i] + oldest, mem->n[i] * sizeof(mem->value[i][0]));
	memset(mem->value[i] + mem->n[i], 0, oldest * sizeof(mem->value[i][0]));
	lower(&mem->sc[i], oldest);
	for (unsigned int t = 0; t < EXPLORE_THREADS; t++)
		lower(&mem->thread[t].from[i], oldest);
	for (unsigned int w = 0; w < WEAK_WORDS; w++)
		for (unsigned int k = 0; k < mem->n[w]; k++)
			lower(&mem->value[w][k].view.from[i], oldest);
}

/* --- accesses --------------------------------------------------------------------------------- */

/* The word of @w with its list of values, the first of which is the variable's. */
static unsigned int get_word(const void *w, unsigned int size)
{
	unsigned int i = word_number(w);

	if (!mem->n[i]) {
		mem->n[i] = 1;
		mem->value[i][0].v = variable(w, size);
	}
	return i;
}

/* Outside of threads: the last value, or the variable when there is no list yet. */
static uint64_t *last_of(unsigned int i)
{
	return mem->n[i] ? &mem->value[i][mem->n[i] - 1].v : NULL;
}

static uint64_t read_value(unsigned int i, unsigned int k, memory_order order)
{
	struct weak_view *mine = &mem->thread[explore_self()];
	const struct weak_value *value = &mem->value[i][k];
	uint64_t v = value->v;

	mine->from[i] = (uint8_t)k;
	if (acquires(order))
		join(mine, &value->view);
	forget_old(i);
	return v;
}

/* @base: the view of the value that is replaced, or NULL */
static void append(unsigned int i, uint64_t v, memory_order order, const struct weak_view *base)
{
	struct weak_view *mine = &mem->thread[explore_self()], view = {0};
	unsigned int k = mem->n[i]++;

	if (mem->n[i] > WEAK_VALUES)
		explore_fail("more values than WEAK_VALUES");
	mine->from[i] = (uint8_t)k;
	if (releases(order))
		view = *mine;
	if (base)
		join(&view, base);
	view.from[i] = (uint8_t)k;
	mem->value[i][k] = (struct weak_value){v, view};
	if (order == memory_order_seq_cst)
		mem->sc[i] = (uint8_t)k;
	forget_old(i);
}

/* The oldest value that the thread may read. */
static unsigned int oldest_for(unsigned int i, memory_order order)
{
	unsigned int k = mem->thread[explore_self()].from[i];

	return order == memory_order_seq_cst ? max_t(unsigned int, k, mem->sc[i]) : k;
}

uint64_t weak_load(const void *w, unsigned int size, memory_order order)
{
	unsigned int i, oldest;
	uint64_t v;

	if (!explore_in_thread()) {
		uint64_t *last = last_of(word_number(w));

		return last ? *last : variable(w, size);
	}
	i = get_word(w, size);
	oldest = oldest_for(i, order);
	v = read_value(i, mem->n[i] - 1 - explore_choose(mem->n[i] - oldest), order);
	explore_saw(v);
	return v;
}

void weak_store(void *w, unsigned int size, uint64_t v, memory_order order)
{
	if (!explore_in_thread()) {
		uint64_t *last = last_of(word_number(w));

		if (last)
			*last = v;
		else
			set_variable(w, size, v);
		return;
	}
	append(get_word(w, size), v, order, NULL);
}

bool weak_swap(void *w, unsigned int size, uint64_t *seen, uint64_t v, memory_order order,
	       memory_order failure)
{
	unsigned int i, ways = 0, way, k[WEAK_VALUES];

	if (!explore_in_thread()) {
		uint64_t now = weak_load(w, size, order);
		bool same = now == *seen;

		*seen = now;
		if (same)
			weak_store(w, size, v, order);
		return same;
	}
	i = get_word(w, size);
	/* To replace the last value, if it is the one; or to fail because of any other that may be read. */
	for (unsigned int n = mem->n[i], old = oldest_for(i, failure); n-- > old;)
		if (n == mem->n[i] - 1u || mem->value[i][n].v != *seen)
			k[ways++] = n;
	way = k[explore_choose(ways)];
	if (mem->value[i][way].v == *seen) {
		struct weak_view base = mem->value[i][way].view;

		if (acquires(order))
			join(&mem->thread[explore_self()], &base);
		append(i, v, order, &base);
		explore_saw(UINT64_MAX);
		return true;
	}
	*seen = read_value(i, way, failure);
	explore_saw(*seen);
	return false;
}

uint64_t weak_oldest(const void *w)
{
	unsigned int i = word_number(w);

	return mem->value[i][mem->thread[explore_self()].from[i]].v;
}

void weak_join(unsigned int other)
{
	join(&mem->thread[explore_self()], &mem->thread[other]);
}

void weak_returned(unsigned int call)
{
	mem->thread[explore_self()].calls |= 1u << call;
}

uint32_t weak_calls(void)
{
	return mem->thread[explore_self()].calls;
}
