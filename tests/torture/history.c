/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The check of a queue's history; what it looks for, and why that is enough, is in history.h. */
#include "history.h"

#include "base/macros.h"

#include <stdlib.h>

struct value {
	const struct event *post, *take;
};

static int by_post_begin(const void *a, const void *b)
{
	const struct value *x = a, *y = b;

	return (x->post->begin > y->post->begin) - (x->post->begin < y->post->begin);
}

static int by_post_end(const void *a, const void *b)
{
	const struct value *x = a, *y = b;

	return (x->post->end > y->post->end) - (x->post->end < y->post->end);
}

/* Fresh and repeat; fills the table of values. */
static const char *pair_up(struct event *events, size_t n, struct value *by_id, size_t nids,
			   struct value *values, size_t *nvalues)
{
	const char *wrong = NULL;

	*nvalues = 0;
	for (size_t i = 0; i < n && !wrong; i++) {
		struct event *e = &events[i];

		if (!e->ok)
			continue;
		if (e->kind == EVENT_POST)
			wrong = by_id[e->value].post ? "the test posts a value twice" : NULL;
		else
			wrong = by_id[e->value].take ? "a value is taken twice" : NULL;
		*(e->kind == EVENT_POST ? &by_id[e->value].post : &by_id[e->value].take) = e;
	}
	for (size_t i = 0; i < nids && !wrong; i++) {
		struct value *v = &by_id[i];

		if (!v->post && !v->take)
			continue;
		if (!v->post || (v->take && v->take->end < v->post->begin))
			wrong = "a value is taken before it was posted";
		else if (!v->take)
			wrong = "a value is lost";
		values[(*nvalues)++] = *v;
	}
	return wrong;
}

/* Of all that were posted before b, none may be taken after b. */
static const char *check_order(struct value *values, size_t n)
{
	struct value *ended = calloc(n, sizeof(*ended));
	uint64_t latest = 0; /* begin of a take, of those whose post has ended */
	const char *wrong = NULL;
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		ended[i] = values[i];
	qsort(ended, n, sizeof(*ended), by_post_end);
	qsort(values, n, sizeof(*values), by_post_begin);
	for (size_t i = 0; i < n; i++) {
		for (; k < n && ended[k].post->end < values[i].post->begin; k++)
			latest = max_t(uint64_t, latest, ended[k].take->begin);
		if (values[i].take->end < latest)
			wrong = "a value is taken before one that was posted before it";
	}
	free(ended);
	return wrong;
}

static const char *check_chains(struct event *events, size_t n, const struct value *by_id)
{
	uint64_t latest = 0;

	for (size_t i = 0; i < n; i++) {
		if (events[i].kind != EVENT_POST || !events[i].ok)
			continue;
		if (!events[i].chain)
			latest = 0;
		if (by_id[events[i].value].take->end < latest)
			return "a chain comes out in another order";
		latest = max_t(uint64_t, latest, by_id[events[i].value].take->begin);
	}
	return NULL;
}

/*
 * Running sums over the ticks: values certainly in the queue, and the most that may take up room.
 */
static void count(const struct event *events, size_t n, const struct value *values, size_t nvalues,
		  int32_t *sure, int32_t *may, uint64_t nticks)
{
	for (size_t i = 0; i < nvalues; i++) {
		/* The post may have ended after the take began. */
		if (values[i].post->end < values[i].take->begin) {
			sure[values[i].post->end]++;
			sure[values[i].take->begin]--;
		}
		may[values[i].post->begin]++;
		may[values[i].take->end]--;
	}
	for (size_t i = 0; i < n; i++) {
		if (events[i].kind != EVENT_POST || events[i].ok)
			continue;
		may[events[i].begin]++;
		may[events[i].end]--;
	}
	for (uint64_t t = 1; t < nticks; t++) {
		sure[t] += sure[t - 1];
		may[t] += may[t - 1];
	}
}

/* The calls that found nothing, or no room, each need a moment at which that was so. */
static const char *check_failures(const struct event *events, size_t n, const int32_t *sure,
				  const int32_t *may, uint32_t bound)
{
	for (size_t i = 0; i < n; i++) {
		bool could = events[i].ok;

		for (uint64_t t = events[i].begin; t < events[i].end && !could; t++)
			could = events[i].kind == EVENT_TAKE ? sure[t] == 0
							     : may[t] - 1 >= (int32_t)bound;
		if (!could)
			return events[i].kind == EVENT_TAKE ? "the queue seemed empty and was not"
							    : "the queue seemed full and was not";
	}
	return NULL;
}

const char *history_check(struct event *events, size_t n, size_t nids, uint64_t nticks,
			  uint32_t bound)
{
	struct value *values = calloc(nids, sizeof(*values)), *by_id = calloc(nids, sizeof(*by_id));
	int32_t *sure = calloc(nticks + 1, sizeof(*sure)), *may = calloc(nticks + 1, sizeof(*may));
	const char *wrong;
	size_t nvalues;

	if (!values || !by_id || !sure || !may)
		return "no memory";
	wrong = pair_up(events, n, by_id, nids, values, &nvalues);
	if (wrong)
		goto out;
	wrong = check_order(values, nvalues);
	if (!wrong)
		wrong = check_chains(events, n, by_id);
	if (wrong)
		goto out;
	count(events, n, values, nvalues, sure, may, nticks);
	for (uint64_t t = 0; t < nticks && !wrong; t++)
		if (sure[t] > (int32_t)bound)
			wrong = "more are queued than fit";
	if (!wrong)
		wrong = check_failures(events, n, sure, may, bound);
out:
	free(values);
	free(by_id);
	free(sure);
	free(may);
	return wrong;
}
