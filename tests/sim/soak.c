/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soak: seeded mixed traffic of RC and XRC over a network that loses, doubles, reorders and damages
 * packets.
 *
 *     soak [--seed N | --seeds A-B] [--faults PERCENT] [--lanes N] [--pcap FILE] [-v]
 *
 * Each kind of fault hits 5 percent of the packets, unless --faults says otherwise.
 * Each seed runs in a process of its own, so a crash or a hang is a failed seed like any other; it
 * is then run again with a capture, soak-N.pcap. Output is TAP, a line for each block of seeds. A
 * single --seed runs in this process, for a debugger.
 */
#include "soak.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK 20
/* No seed takes longer: seconds of this machine, and of the simulated world. */
#define MAX_SECONDS 60
#define MAX_VIRTUAL 3000000000000ull
#define MAX_IDLE    1000

void soak_fail(const struct soak *s, const char *fmt, ...)
{
	va_list ap;

	printf("# seed %llu at %llu ns: ", (unsigned long long)s->seed,
	       (unsigned long long)s->world->now);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	if (s->world->pcap)
		pcap_tap_flush(s->world->pcap);
	_exit(1);
}

static void poll_cqs(struct soak *s)
{
	for (unsigned int i = 0; i < s->world->n; i++)
		for (unsigned int k = 0; k < s->nodes[i].ncqs; k++) {
			struct cq *cq = s->nodes[i].cqs[k];
			struct ibv_wc wc;

			while (world_poll(cq, &wc)) {
				unsigned int owner = wc.wr_id >> 48,
					     index = wc.wr_id >> 32 & 0xffff;

				if (owner == OWNER_FLOW && index < s->nflows)
					flow_completion(&s->flows[index], cq, &wc);
				else if (owner == OWNER_QUEUE && index < s->nqueues)
					queue_completion(&s->queues[index], cq, &wc);
				else
					soak_fail(s, "a completion with wr_id %llx",
						  (unsigned long long)wc.wr_id);
			}
		}
}

/* A receive is flushed only when its QP fails, as the requester of the other direction. */
static void check_flushes(const struct soak *s)
{
	for (unsigned int i = 0; i < s->nflows && !s->ending; i++) {
		const struct flow *f = &s->flows[i];

		if (f->flushed && !(f->back && f->back->failed))
			soak_fail(s, "flow %u: a receive was flushed", i);
	}
}

static void poll_all(struct soak *s)
{
	poll_cqs(s);
	check_flushes(s);
}

static bool finished(const struct soak *s)
{
	for (unsigned int i = 0; i < s->nflows; i++)
		if (!flow_finished(&s->flows[i]))
			return false;
	return true;
}

static void stuck(const struct soak *s, const char *why)
{
	for (unsigned int i = 0; i < s->nflows; i++) {
		const struct flow *f = &s->flows[i];

		if (!flow_finished(f))
			printf("# flow %u%s: QP %06x to %06x: %u of %u posted, %u done, psn "
			       "%06x..%06x\n",
			       i, f->xrc ? " (XRC)" : "", f->qp->qpn, f->peer->qpn, f->posted,
			       f->total, f->done, f->oracle.una, f->oracle.next);
	}
	soak_fail(s, "%s", why);
}

static void traffic(struct soak *s)
{
	unsigned int idle = 0;

	while (!finished(s)) {
		uint64_t limit = UINT64_MAX, before = s->requests;

		for (unsigned int i = 0; i < s->nqueues; i++) {
			queue_post(&s->queues[i]);
			limit = min_t(uint64_t, limit, s->queues[i].next_post);
		}
		for (unsigned int i = 0; i < s->nflows; i++)
			flow_post(&s->flows[i]);
		if (world_step(s->world, limit) || world_next(s->world) != UINT64_MAX ||
		    s->requests != before)
			idle = 0;
		else if (++idle > MAX_IDLE)
			stuck(s, "nothing happens any more");
		if (s->world->now > MAX_VIRTUAL)
			stuck(s, "no end in sight");
		poll_all(s);
	}
}

/* Reasons for which a sound engine discards packets on a bad network. */
static bool drop_expected(const struct soak *s, enum stat_id reason)
{
	bool failures = false;

	for (unsigned int i = 0; i < s->nflows; i++)
		failures |= s->flows[i].failed != IBV_WC_SUCCESS;
	switch ((int)reason) {
	case DROP_icrc:
	case DROP_gap:
	case DROP_ghost_ack:
	case DROP_bad_response:
	case DROP_dup_invalid:
	case DROP_link_full:
		return true;
	case DROP_qp_state:
		return failures;
	default:
		return false;
	}
}

static void check_counters(const struct soak *s)
{
	for (unsigned int i = 0; i < s->world->n; i++)
		for (unsigned int k = 0; k < STAT_COUNT; k++) {
			uint64_t n = world_stat(&s->world->nodes[i], k);

			if (stats_is_drop(k) && n && !drop_expected(s, k))
				soak_fail(s, "node %u dropped %llu packets: %s", i,
					  (unsigned long long)n, stats_text(k));
		}
}

static void check_events(const struct soak *s)
{
	for (unsigned int i = 0; i < s->world->n; i++)
		for (unsigned int k = 0; k < s->world->nodes[i].nevents; k++)
			soak_fail(s, "node %u raised asynchronous event %d", i,
				  s->world->nodes[i].events[k].type);
}

/* Every QP to the error state: what is still posted is flushed, in order. */
static void flush(struct soak *s)
{
	bool failures = false;

	for (unsigned int i = 0; i < s->nflows; i++)
		failures |= s->flows[i].failed != IBV_WC_SUCCESS;
	if (!failures)
		check_events(s);
	s->ending = true;
	for (unsigned int i = 0; i < s->nflows; i++) {
		must(world_to_state(s->flows[i].qp, IBV_QPS_ERR));
		must(world_to_state(s->flows[i].peer, IBV_QPS_ERR));
	}
	world_run(s->world, 1000000000);
	poll_all(s);
	for (unsigned int i = 0; i < s->nqueues; i++)
		for (unsigned int k = 0; s->queues[i].qp && k < SOAK_RECVS; k++)
			if (s->queues[i].slots[k].posted)
				soak_fail(s, "queue %u: receive %u was not flushed", i, k);
}

static unsigned int faults = 5, lanes = 1;

static int run_seed(uint64_t seed, const char *pcap, bool trace)
{
	static struct soak s;

	memset(&s, 0, sizeof(s));
	s.seed = seed;
	s.faults = faults;
	s.lanes = lanes;
	soak_setup(&s, pcap, trace);
	traffic(&s);
	/* What is still under way must not meet an object that is gone. */
	world_run(s.world, 10000000000);
	poll_all(&s);
	for (unsigned int i = 0; i < s.nflows; i++)
		flow_verify(&s.flows[i]);
	check_counters(&s);
	flush(&s);
	soak_teardown(&s);
	return 0;
}

/* In a child. Return: whether the seed passed. */
static bool run_apart(uint64_t seed, const char *pcap, bool quiet)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		perror("fork");
		exit(2);
	}
	if (!pid) {
		if (quiet &&
		    (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)))
			_exit(2);
		alarm(MAX_SECONDS);
		exit(run_seed(seed, pcap, false));
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			exit(2);
	if (!quiet && WIFSIGNALED(status))
		printf("# seed %llu: %s\n", (unsigned long long)seed, strsignal(WTERMSIG(status)));
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static void report(const char *self, uint64_t seed, const char *pcap)
{
	char name[64];

	if (!pcap) {
		snprintf(name, sizeof(name), "soak-%llu.pcap", (unsigned long long)seed);
		pcap = name;
	}
	run_apart(seed, pcap, true);
	printf("# capture: %s\n# replay: %s --seed %llu --faults %u --lanes %u -v\n", pcap, self,
	       (unsigned long long)seed, faults, lanes);
}

static int run_seeds(const char *self, uint64_t first, uint64_t last, const char *pcap)
{
	uint64_t blocks = (last - first) / BLOCK + 1;
	int failed = 0;

	printf("1..%llu\n", (unsigned long long)blocks);
	for (uint64_t i = 0; i < blocks; i++) {
		uint64_t from = first + i * BLOCK;
		uint64_t to = min_t(uint64_t, from + BLOCK - 1, last);
		bool ok = true;

		for (uint64_t seed = from; seed <= to; seed++)
			if (!run_apart(seed, NULL, false)) {
				ok = false;
				failed++;
				report(self, seed, pcap);
			}
		printf("%sok %llu - seeds %llu-%llu\n", ok ? "" : "not ", (unsigned long long)i + 1,
		       (unsigned long long)from, (unsigned long long)to);
	}
	return failed ? 1 : 0;
}

static int usage(const char *self, int ret)
{
	fprintf(ret ? stderr : stdout,
		"usage: %s [--seed N | --seeds A-B] [--faults PERCENT] [--lanes N] [--pcap FILE] "
		"[-v]\n",
		self);
	return ret;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"seed", required_argument, NULL, 's'},
		{"seeds", required_argument, NULL, 'r'},
		{"faults", required_argument, NULL, 'f'},
		{"lanes", required_argument, NULL, 'l'},
		{"pcap", required_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	unsigned long long first = 1, last = 60;
	const char *pcap = NULL;
	bool single = false, trace = false;
	int c;

	while ((c = getopt_long(argc, argv, "vh", options, NULL)) != -1) {
		if (c == 's' && sscanf(optarg, "%llu", &first) == 1)
			single = true;
		else if (c == 'r' && sscanf(optarg, "%llu-%llu", &first, &last) == 2 &&
			 first <= last)
			single = false;
		else if (c == 'f' && sscanf(optarg, "%u", &faults) == 1 && faults <= 50)
			continue;
		else if (c == 'l' && sscanf(optarg, "%u", &lanes) == 1 && lanes &&
			 lanes <= RXE_MAX_LANES && !(lanes & (lanes - 1)))
			continue;
		else if (c == 'p')
			pcap = optarg;
		else if (c == 'v')
			trace = true;
		else
			return usage(argv[0], c == 'h' ? 0 : 2);
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!single)
		return run_seeds(argv[0], first, last, pcap);
	alarm(trace ? 0 : MAX_SECONDS);
	if (run_seed(first, pcap, trace))
		return 1;
	printf("1..1\nok 1 - seed %llu\n", first);
	return 0;
}
