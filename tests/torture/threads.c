/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that post, post chains and take at random, and are stopped at random; their history must
 * be linearizable.
 *
 *     threads [ROUNDS [SEED]]
 *
 * Each round is another number of threads (2 to 8) and another size of the queue, down to one
 * request, so that it is full and empty all the time. A thread is stopped by a signal whose handler
 * sleeps, wherever it is. A plain program, since the race checker (which this is also built for)
 * does not start under the test framework.
 */
#include "history.h"
#include "srq/rq.h"

#include "base/macros.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_THREADS 8
#define CALLS	    6000 /* a thread and round */
#define MAX_CHAIN   4

struct worker {
	pthread_t thread;
	unsigned int index;
	uint64_t random;
	struct event *log;
	size_t nlog;
	uint32_t next_value;
	bool bad_content;
};

static struct rq *rq;
static atomic_ullong clock_ticks;
static atomic_uint running;

static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t tick(void)
{
	return atomic_fetch_add(&clock_ticks, 1);
}

static void post_chain(struct worker *w, unsigned int n)
{
	struct ibv_sge sge[MAX_CHAIN];
	struct ibv_recv_wr wr[MAX_CHAIN], *bad = NULL;
	struct event e = {.kind = EVENT_POST, .ok = true};
	int ret;

	for (unsigned int i = 0; i < n; i++) {
		sge[i] = (struct ibv_sge){w->next_value + i, 64, ~(w->next_value + i)};
		wr[i] = (struct ibv_recv_wr){
			.wr_id = w->next_value + i,
			.next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = &sge[i],
			.num_sge = 1,
		};
	}
	e.begin = tick();
	ret = rq_post_list(rq, wr, &bad);
	e.end = tick();
	for (unsigned int i = 0; i < n && e.ok; i++) {
		e.ok = !ret || bad != &wr[i];
		e.value = w->next_value++;
		e.chain = i;
		w->log[w->nlog++] = e;
	}
}

static bool take(struct worker *w)
{
	struct event e = {.kind = EVENT_TAKE};
	struct rqe rqe;

	e.begin = tick();
	e.ok = rq_take(rq, &rqe);
	e.end = tick();
	if (e.ok) {
		e.value = rqe.wr_id;
		w->bad_content |= rqe.num_sge != 1 || rqe.length != 64 ||
				  rqe.sge[0].addr != rqe.wr_id ||
				  rqe.sge[0].lkey != ~(uint32_t)rqe.wr_id;
	}
	w->log[w->nlog++] = e;
	return e.ok;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	while (w->nlog < CALLS) {
		uint64_t r = draw(&w->random);

		if (r % 8 < 3)
			post_chain(w, 1);
		else if (r % 8 == 3)
			post_chain(w, 2 + r / 8 % (MAX_CHAIN - 1));
		else
			take(w);
	}
	atomic_fetch_sub(&running, 1);
	return NULL;
}

static void pause_us(unsigned int us)
{
	struct timespec ts = {.tv_nsec = us * 1000L};

	nanosleep(&ts, NULL);
}

static void on_stop(int sig)
{
	pause_us(150);
}

static const char *run_round(unsigned int nthreads, uint32_t max_wr, uint64_t *random)
{
	static struct worker w[MAX_THREADS];
	/* Threads, and what is drained at the end; a chain may pass CALLS. */
	size_t each = CALLS + 2 * MAX_CHAIN + max_wr, n = 0;
	struct event *events = calloc(nthreads * each, sizeof(*events));
	const char *wrong;

	if (!events || rq_create(max_wr, 1, &rq))
		return "no memory";
	atomic_store(&clock_ticks, 0);
	atomic_store(&running, nthreads);
	for (unsigned int i = 0; i < nthreads; i++) {
		w[i] = (struct worker){.index = i,
				       .random = draw(random),
				       .log = events + i * each,
				       .next_value = i * each};
		if (pthread_create(&w[i].thread, NULL, work, &w[i]))
			return "no thread";
	}
	while (atomic_load(&running)) {
		/* The threads are not joined yet, so they can be signalled. */
		pthread_kill(w[draw(random) % nthreads].thread, SIGUSR1);
		pause_us(50);
	}
	for (unsigned int i = 0; i < nthreads; i++)
		pthread_join(w[i].thread, NULL);
	while (take(&w[0]))
		;
	wrong = rq_count(rq) ? "something is left" : NULL;
	for (unsigned int i = 0; i < nthreads; i++) {
		memmove(events + n, w[i].log, w[i].nlog * sizeof(*events));
		n += w[i].nlog;
		if (w[i].bad_content)
			wrong = "a request came out changed";
	}
	if (!wrong)
		wrong = history_check(events, n, nthreads * each, atomic_load(&clock_ticks),
				      max_wr);
	rq_destroy(rq);
	free(events);
	return wrong;
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = {1, 2, 3, 5, 8, 100};
	unsigned int rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 14;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, random = seed * 2 + 1;
	struct sigaction sa = {.sa_handler = on_stop, .sa_flags = SA_RESTART};

	sigaction(SIGUSR1, &sa, NULL);
	for (unsigned int i = 0; i < rounds; i++) {
		unsigned int nthreads = 2 + i % (MAX_THREADS - 1);
		uint32_t max_wr = sizes[i % ARRAY_SIZE(sizes)];
		const char *wrong = run_round(nthreads, max_wr, &random);

		printf("%s %u - %u threads, %u requests%s%s\n", wrong ? "not ok" : "ok", i + 1,
		       nthreads, max_wr, wrong ? ": " : "", wrong ? wrong : "");
		fflush(stdout);
		if (wrong)
			return 1;
	}
	printf("1..%u\n", rounds);
	return 0;
}
