/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The receive queue beside four others that could be in its place: srq-bench [--json] [--repeat N]
 *
 * Every thread posts one request and takes one, again and again, on its own CPU as far as there are
 * any. Measured are pairs a second, the 99th percentile of a pair, and how long the others' longest
 * pair takes while one thread stands still for 100 ms inside an operation: with a lock, while it
 * holds it. Time that a thread waited for a CPU is taken off; what else the machine adds shows in
 * the same without a stop, and in the least of several stops.
 *
 * The queues take turns, a few milliseconds each, and the ratio to the mutex ring is the median of
 * the ratios of single turns. Where there is a CPU for every thread, turns in which one was
 * preempted do not count; their number is printed, and when hardly any was undisturbed they all
 * count and the row says so.
 *
 * The queue is internal to the product, which has no other way to measure it than through all of
 * the device: this program alone of bench/ includes srq/.
 */
#include "srq/rq.h"

#include "bench.h"

#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <urcu/urcu-bp.h>
#include <urcu/rculfqueue.h>
#include <urcu/wfcqueue.h>

#define DEPTH	    1024 /* requests that fit */
#define PREFILL	    256	 /* in the queue all the time */
#define MAX_THREADS 8
#define TURN_US	    2000
#define STOP_MS	    100
#define MAX_TURNS   1000
#define LONG_NS	    100000 /* a pair that takes longer waited for something */
#define LINE	    __attribute__((aligned(2 * CACHE_LINE)))

/* Whether this thread is where it is to be stopped: inside the operation, or holding the lock. */
static __thread volatile sig_atomic_t inside;

struct request {
	uint64_t wr_id;
	uint32_t length, num_sge;
	struct ibv_sge sge[1];
};

static void store_request(struct request *r, const struct ibv_recv_wr *wr)
{
	r->wr_id = wr->wr_id;
	r->num_sge = (uint32_t)wr->num_sge;
	r->length = 0;
	for (uint32_t i = 0; i < r->num_sge; i++) {
		r->sge[i] = wr->sg_list[i];
		r->length += r->sge[i].length;
	}
}

static void load_request(const struct request *r, struct rqe *out)
{
	out->wr_id = r->wr_id;
	out->length = r->length;
	out->num_sge = r->num_sge;
	for (uint32_t i = 0; i < r->num_sge; i++)
		out->sge[i] = r->sge[i];
}

/* --- the queue -------------------------------------------------------------------------------- */

static struct rq *rq;

static void rq_setup(void)
{
	if (rq_create(DEPTH, 1, &rq))
		abort();
}

static bool rq_bench_post(const struct ibv_recv_wr *wr)
{
	bool ok;

	inside = 1;
	ok = rq_post(rq, wr) == 0;
	inside = 0;
	return ok;
}

static bool rq_bench_take(struct rqe *out)
{
	bool ok;

	inside = 1;
	ok = rq_take(rq, out);
	inside = 0;
	return ok;
}

/* --- a ring with a lock ----------------------------------------------------------------------- */

static struct {
	pthread_mutex_t mutex LINE;
	pthread_spinlock_t spin LINE;
	uint64_t head LINE, tail;
	struct request *slots;
} ring;

static void ring_setup(void)
{
	pthread_mutex_init(&ring.mutex, NULL);
	pthread_spin_init(&ring.spin, PTHREAD_PROCESS_PRIVATE);
	ring.head = ring.tail = 0;
	free(ring.slots);
	ring.slots = calloc(DEPTH, sizeof(*ring.slots));
	if (!ring.slots)
		abort();
}

static inline bool ring_put(const struct ibv_recv_wr *wr)
{
	if (ring.tail - ring.head == DEPTH)
		return false;
	store_request(&ring.slots[ring.tail++ % DEPTH], wr);
	return true;
}

static inline bool ring_get(struct rqe *out)
{
	if (ring.tail == ring.head)
		return false;
	load_request(&ring.slots[ring.head++ % DEPTH], out);
	return true;
}

#define LOCKED(lock, unlock, what)                                                                 \
	({                                                                                         \
		bool ok_;                                                                          \
		lock;                                                                              \
		inside = 1;                                                                        \
		ok_ = what;                                                                        \
		inside = 0;                                                                        \
		unlock;                                                                            \
		ok_;                                                                               \
	})

static bool mutex_post(const struct ibv_recv_wr *wr)
{
	return LOCKED(pthread_mutex_lock(&ring.mutex), pthread_mutex_unlock(&ring.mutex),
		      ring_put(wr));
}

static bool mutex_take(struct rqe *out)
{
	return LOCKED(pthread_mutex_lock(&ring.mutex), pthread_mutex_unlock(&ring.mutex),
		      ring_get(out));
}

static bool spin_post(const struct ibv_recv_wr *wr)
{
	return LOCKED(pthread_spin_lock(&ring.spin), pthread_spin_unlock(&ring.spin), ring_put(wr));
}

static bool spin_take(struct rqe *out)
{
	return LOCKED(pthread_spin_lock(&ring.spin), pthread_spin_unlock(&ring.spin),
		      ring_get(out));
}

/* --- liburcu's queues of nodes ---------------------------------------------------------------- */

/* Nodes are used again by the thread that took them, so the allocator is not measured. */
struct node {
	union {
		struct cds_wfcq_node wf;
		struct cds_lfq_node_rcu lf;
	};
	struct request request;
	struct node *next;
};

/* Nodes that readers may still see, before they can be used again. */
#define RETIRED 4096

static __thread struct node *spare_nodes, *retired_nodes;
static __thread unsigned int nretired;

static struct node *node_get(void)
{
	struct node *n = spare_nodes;

	if (!n)
		return aligned_alloc(CACHE_LINE, 2 * CACHE_LINE);
	spare_nodes = n->next;
	return n;
}

static void node_put(struct node *n)
{
	n->next = spare_nodes;
	spare_nodes = n;
}

static struct {
	struct cds_wfcq_head head LINE;
	struct cds_wfcq_tail tail LINE;
} wfcq;

static void wfcq_setup(void)
{
	cds_wfcq_init(&wfcq.head, &wfcq.tail);
}

static bool wfcq_post(const struct ibv_recv_wr *wr)
{
	struct node *n = node_get();

	store_request(&n->request, wr);
	cds_wfcq_node_init(&n->wf);
	cds_wfcq_enqueue(&wfcq.head, &wfcq.tail, &n->wf);
	return true;
}

static bool wfcq_take(struct rqe *out)
{
	struct cds_wfcq_node *first;
	struct node *n;

	cds_wfcq_dequeue_lock(&wfcq.head, &wfcq.tail);
	inside = 1;
	first = __cds_wfcq_dequeue_blocking(&wfcq.head, &wfcq.tail);
	inside = 0;
	cds_wfcq_dequeue_unlock(&wfcq.head, &wfcq.tail);
	if (!first)
		return false;
	n = caa_container_of(first, struct node, wf);
	load_request(&n->request, out);
	node_put(n);
	return true;
}

static struct cds_lfq_queue_rcu lfq LINE;

static void lfq_setup(void)
{
	cds_lfq_init_rcu(&lfq, urcu_bp_call_rcu);
}

static bool lfq_post(const struct ibv_recv_wr *wr)
{
	struct node *n = node_get();

	inside = 1;
	store_request(&n->request, wr);
	cds_lfq_node_init_rcu(&n->lf);
	urcu_bp_read_lock();
	cds_lfq_enqueue_rcu(&lfq, &n->lf);
	urcu_bp_read_unlock();
	inside = 0;
	return true;
}

static void node_retire(struct node *n)
{
	n->next = retired_nodes;
	retired_nodes = n;
	if (++nretired < RETIRED)
		return;
	urcu_bp_synchronize_rcu();
	while (retired_nodes) {
		n = retired_nodes;
		retired_nodes = n->next;
		node_put(n);
	}
	nretired = 0;
}

static bool lfq_take(struct rqe *out)
{
	struct cds_lfq_node_rcu *first;
	struct node *n;

	inside = 1;
	urcu_bp_read_lock();
	first = cds_lfq_dequeue_rcu(&lfq);
	urcu_bp_read_unlock();
	inside = 0;
	if (!first)
		return false;
	n = caa_container_of(first, struct node, lf);
	load_request(&n->request, out);
	node_retire(n);
	return true;
}

static const struct queue {
	const char *name;
	void (*setup)(void);
	bool (*post)(const struct ibv_recv_wr *wr);
	bool (*take)(struct rqe *out);
} queues[] = {
	{"srq", rq_setup, rq_bench_post, rq_bench_take},
	{"mutex ring", ring_setup, mutex_post, mutex_take},
	{"spinlock ring", ring_setup, spin_post, spin_take},
	{"wfcqueue, lock", wfcq_setup, wfcq_post, wfcq_take},
	{"rculfqueue", lfq_setup, lfq_post, lfq_take},
};

#define NQUEUES (sizeof(queues) / sizeof(queues[0]))
#define MUTEX	1 /* what the others are compared with */

/* --- turns ------------------------------------------------------------------------------------ */

enum what { THROUGHPUT, LATENCY, STALL, CALM };

#define NBUCKETS 4096 /* of 16 ns; the last has the rest */
#define BUCKET	 16

struct worker {
	pthread_t thread;
	unsigned int index;
	uint64_t pairs;
	uint64_t longest; /* ns */
	uint64_t delayed; /* ns that it waited for a CPU, so far */
	bool preempted;
	uint32_t *buckets;
} LINE;

static const struct queue *queue;
static enum what what;
static struct worker workers[MAX_THREADS];
static atomic_uint ready LINE;
static atomic_bool go LINE, stop;
static atomic_bool stopped; /* one thread stands still, or did in this turn */

static inline void pair(uint64_t id)
{
	struct ibv_sge sge = {0x1000, 64, 7};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
	struct rqe rqe;

	queue->post(&wr);
	queue->take(&rqe);
}

/*
 * For how long this thread has been ready to run and did not, in ns; 0 where the kernel does not
 * say.
 */
static uint64_t run_delay(void)
{
	char text[100];
	unsigned long long ns = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "r");

	if (!f)
		return 0;
	if (!fgets(text, sizeof(text), f) || sscanf(text, "%*s %llu", &ns) != 1)
		ns = 0;
	fclose(f);
	return ns;
}

/* Of a pair that took long, what the scheduler has no part in. */
static uint64_t without_delay(struct worker *w, uint64_t ns)
{
	uint64_t before = w->delayed;

	w->delayed = run_delay();
	return ns > w->delayed - before ? ns - (w->delayed - before) : 0;
}

static void timed_pair(struct worker *w, uint64_t id)
{
	bool counts = what == LATENCY || atomic_load_explicit(&stopped, memory_order_relaxed);
	uint64_t start = now_ns(), ns;

	pair(id);
	ns = now_ns() - start;
	if (what == LATENCY)
		w->buckets[ns / BUCKET < NBUCKETS ? ns / BUCKET : NBUCKETS - 1]++;
	else if (ns > LONG_NS)
		ns = without_delay(w, ns);
	/* A pair that began before the stop and ends after it waited for it. */
	if (w->index && (counts || atomic_load_explicit(&stopped, memory_order_relaxed)) &&
	    ns > w->longest)
		w->longest = ns;
}

static long preemptions(void)
{
	struct rusage ru;

	getrusage(RUSAGE_THREAD, &ru);
	return ru.ru_nivcsw;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t id = 0;
	long before;

	pin_cpu((int)(w->index % (unsigned int)sysconf(_SC_NPROCESSORS_ONLN)));
	atomic_fetch_add(&ready, 1);
	while (!atomic_load(&go))
		sched_yield();
	before = preemptions();
	w->delayed = run_delay();
	if (what == THROUGHPUT)
		while (!atomic_load_explicit(&stop, memory_order_relaxed))
			pair(id++);
	else
		while (!atomic_load_explicit(&stop, memory_order_relaxed))
			timed_pair(w, id++);
	w->pairs = id;
	w->preempted = preemptions() != before;
	return NULL;
}

static void sleep_us(long us)
{
	struct timespec ts = {us / 1000000, us % 1000000 * 1000};

	nanosleep(&ts, NULL);
}

static void on_signal(int sig)
{
	struct timespec ts = {.tv_nsec = STOP_MS * 1000000L};

	(void)sig;
	if (!inside || atomic_load(&stopped) || atomic_load(&stop))
		return;
	atomic_store(&stopped, true);
	nanosleep(&ts, NULL);
	atomic_store(&stop, true);
}

/* Signals thread 0 until it was inside an operation, and waits until it is on its way again. */
static void stop_one(void)
{
	while (!atomic_load(&stopped) && !atomic_load(&stop)) {
		pthread_kill(workers[0].thread, SIGUSR1);
		sleep_us(200);
	}
	while (!atomic_load(&stop))
		sleep_us(1000);
}

/* One turn of @nthreads. Return: pairs a second. */
static double turn(const struct queue *q, enum what measure, unsigned int nthreads, bool *preempted)
{
	uint64_t begin, pairs = 0;
	double seconds;

	queue = q;
	what = measure;
	atomic_store(&ready, 0);
	atomic_store(&go, false);
	atomic_store(&stop, false);
	atomic_store(&stopped, measure == CALM);
	for (unsigned int i = 0; i < nthreads; i++) {
		workers[i].index = i;
		workers[i].longest = 0;
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) {
			fprintf(stderr, "no thread\n");
			exit(1);
		}
	}
	while (atomic_load(&ready) < nthreads)
		sched_yield();
	begin = now_ns();
	atomic_store(&go, true);
	if (measure == STALL) {
		stop_one();
	} else {
		sleep_us(measure == CALM ? STOP_MS * 1000 : TURN_US);
		atomic_store(&stop, true);
	}
	seconds = (double)(now_ns() - begin) / 1e9;
	*preempted = false;
	for (unsigned int i = 0; i < nthreads; i++) {
		pthread_join(workers[i].thread, NULL);
		pairs += workers[i].pairs;
		*preempted |= workers[i].preempted;
	}
	return (double)pairs / seconds;
}

/* --- results ---------------------------------------------------------------------------------- */

struct row {
	unsigned int threads, turns, quiet;
	double rate[NQUEUES];  /* million pairs a second */
	double ratio[NQUEUES]; /* to the mutex ring */
	double p99[NQUEUES];   /* ns */
};

static double p99(unsigned int nthreads)
{
	uint64_t total = 0, seen = 0;

	for (unsigned int i = 0; i < nthreads; i++)
		for (unsigned int b = 0; b < NBUCKETS; b++)
			total += workers[i].buckets[b];
	for (unsigned int b = 0; b < NBUCKETS; b++) {
		for (unsigned int i = 0; i < nthreads; i++)
			seen += workers[i].buckets[b];
		if (seen * 100 >= total * 99)
			return (b + 1) * BUCKET;
	}
	return NBUCKETS * BUCKET;
}

static void measure_row(struct row *row, unsigned int nthreads, unsigned int turns)
{
	static double rates[NQUEUES][MAX_TURNS], ratios[NQUEUES][MAX_TURNS];
	bool alone = nthreads <= (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	/* First pass: undisturbed turns; second, when there were not enough of them: all. */
	bool all = !alone;

	*row = (struct row){.threads = nthreads, .turns = turns};
again:
	row->quiet = 0;
	for (unsigned int t = 0; t < turns; t++) {
		bool disturbed = false;

		for (unsigned int q = 0; q < NQUEUES; q++) {
			bool preempted;

			rates[q][row->quiet] =
				turn(&queues[q], THROUGHPUT, nthreads, &preempted) / 1e6;
			disturbed |= preempted && q <= MUTEX;
		}
		if (disturbed && !all)
			continue;
		for (unsigned int q = 0; q < NQUEUES; q++)
			ratios[q][row->quiet] = rates[q][row->quiet] / rates[MUTEX][row->quiet];
		row->quiet++;
	}
	if (row->quiet < 5 && !all) {
		all = true;
		goto again;
	}
	for (unsigned int q = 0; q < NQUEUES; q++) {
		bool ignored;

		row->rate[q] = median(rates[q], row->quiet);
		row->ratio[q] = median(ratios[q], row->quiet);
		for (unsigned int i = 0; i < nthreads; i++)
			memset(workers[i].buckets, 0, NBUCKETS * sizeof(uint32_t));
		for (unsigned int t = 0; t < 5; t++)
			turn(&queues[q], LATENCY, nthreads, &ignored);
		row->p99[q] = p99(nthreads);
	}
	if (all && alone)
		row->quiet = 0;
}

#define STALLS 7

/* Of the longest pairs of two other threads, in ms. */
struct stall {
	double least; /* what every stop costs is the queue's doing */
	double median;
	double calm; /* the median without a stop: what the machine adds */
};

static double longest(unsigned int q, enum what measure)
{
	bool ignored;

	turn(&queues[q], measure, 3, &ignored);
	return (double)(workers[1].longest > workers[2].longest ? workers[1].longest
								: workers[2].longest) /
	       1e6;
}

static void measure_stall(unsigned int q, struct stall *stall)
{
	double stop_ms[STALLS], calm_ms[STALLS];

	for (int i = 0; i < STALLS; i++) {
		stop_ms[i] = longest(q, STALL);
		calm_ms[i] = longest(q, CALM);
	}
	*stall = (struct stall){.median = median(stop_ms, STALLS), .calm = median(calm_ms, STALLS)};
	stall->least = stop_ms[0];
}

static void print_table(const struct row *rows, size_t n, const struct stall *stall)
{
	for (size_t r = 0; r < n; r++) {
		printf("%u thread%s", rows[r].threads, rows[r].threads > 1 ? "s" : "");
		if (rows[r].threads <= (unsigned int)sysconf(_SC_NPROCESSORS_ONLN))
			printf(rows[r].quiet ? ", %u of %u turns undisturbed"
					     : ", disturbed: compare with care",
			       rows[r].quiet, rows[r].turns);
		printf("\n%-18s %12s %12s %10s\n", "", "M pairs/s", "x mutex", "p99 ns");
		for (size_t q = 0; q < NQUEUES; q++)
			printf("%-18s %12.2f %12.2f %10.0f\n", queues[q].name, rows[r].rate[q],
			       rows[r].ratio[q], rows[r].p99[q]);
		printf("\n");
	}
	printf("one thread stopped for %d ms inside an operation: the longest pair of two others, "
	       "ms\n",
	       STOP_MS);
	printf("%-18s %12s %12s %14s\n", "", "least", "median", "without stop");
	for (size_t q = 0; q < NQUEUES; q++)
		printf("%-18s %12.3f %12.3f %14.3f\n", queues[q].name, stall[q].least,
		       stall[q].median, stall[q].calm);
}

static void print_json(const struct row *rows, size_t n, const struct stall *stall)
{
	printf("{\"rows\": [");
	for (size_t r = 0; r < n; r++)
		for (size_t q = 0; q < NQUEUES; q++)
			printf("%s\n  {\"threads\": %u, \"queue\": \"%s\", \"mpairs_per_s\": %.3f, "
			       "\"ratio_to_mutex\": %.3f, \"p99_ns\": %.0f, \"undisturbed_turns\": "
			       "%u, \"turns\": %u}",
			       r || q ? "," : "", rows[r].threads, queues[q].name, rows[r].rate[q],
			       rows[r].ratio[q], rows[r].p99[q], rows[r].quiet, rows[r].turns);
	printf("],\n \"stop_ms\": %d, \"stalls\": [", STOP_MS);
	for (size_t q = 0; q < NQUEUES; q++)
		printf("%s\n  {\"queue\": \"%s\", \"least_ms\": %.3f, \"median_ms\": %.3f, "
		       "\"calm_ms\": %.3f}",
		       q ? "," : "", queues[q].name, stall[q].least, stall[q].median,
		       stall[q].calm);
	printf("]}\n");
}

static void set_up(void)
{
	struct sigaction sa = {.sa_handler = on_signal};

	sigaction(SIGUSR1, &sa, NULL);
	for (unsigned int i = 0; i < MAX_THREADS; i++) {
		workers[i].buckets = calloc(NBUCKETS, sizeof(uint32_t));
		if (!workers[i].buckets)
			abort();
	}
	for (unsigned int q = 0; q < NQUEUES; q++) {
		struct ibv_recv_wr wr = {.num_sge = 0};

		/* The two rings with a lock are one. */
		if (queues[q].setup == ring_setup && ring.slots)
			continue;
		queues[q].setup();
		for (int i = 0; i < PREFILL; i++)
			queues[q].post(&wr);
	}
}

static int usage(void)
{
	fprintf(stderr, "usage: srq-bench [--json] [--repeat TURNS]    TURNS: 1 to %d\n",
		MAX_TURNS);
	return 2;
}

/* Return: 0 when @text is no number of turns. */
static unsigned int turns_of(const char *text)
{
	unsigned long n;
	char *end;

	/* strtoul() would take a sign and blanks. */
	if (*text < '0' || *text > '9')
		return 0;
	n = strtoul(text, &end, 10);
	return *end || n > MAX_TURNS ? 0 : (unsigned int)n;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'}, {"repeat", required_argument, NULL, 'r'}, {0}};
	static const unsigned int counts[] = {1, 2, 4, 8};
	struct row rows[4];
	struct stall stall[NQUEUES];
	unsigned int turns = 25;
	bool json = false;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'j') {
			json = true;
		} else if (c == 'r') {
			turns = turns_of(optarg);
			if (!turns) {
				fprintf(stderr, "srq-bench: not a number of turns: '%s'\n", optarg);
				return usage();
			}
		} else {
			return usage(); /* getopt has said which */
		}
	}
	if (optind < argc) {
		fprintf(stderr, "srq-bench: superfluous argument: '%s'\n", argv[optind]);
		return usage();
	}
	set_up();
	for (int i = 0; i < 4; i++)
		measure_row(&rows[i], counts[i], turns);
	for (unsigned int q = 0; q < NQUEUES; q++)
		measure_stall(q, &stall[q]);
	(json ? print_json : print_table)(rows, 4, stall);
	return 0;
}
