/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes that share a queue, stopped and killed at random points.
 *
 *     processes [SECONDS [SEED]]
 *
 * Children map the queue each at its own address, and post, hold and release without end. The
 * parent, its owner, stops one and posts and takes beside it, or kills one, recovers what it had
 * and starts another in its place with a new epoch. At the end every request that was posted has
 * completed exactly once. Of a killed child two things cannot be known from its notes: whether the
 * post that it was in happened, and whether the release that it was in did. Those two may be
 * either.
 */
#include "srq/rq.h"

#include "base/macros.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILDREN 4
#define MAX_WR	 6
#define MAX_ID	 (1u << 22) /* a round */
#define OWNER	 1

enum fate { UNUSED, POSTING, REFUSED, POSTED };

struct shared {
	atomic_bool stop;
	atomic_uint next_id;
	atomic_uint
		releasing[RQ_MAX_EPOCH +
			  1]; /* what the process of an epoch is about to complete; 0: nothing */
	atomic_uchar fate[MAX_ID];
	atomic_uchar completed[MAX_ID];
	atomic_uchar perhaps[MAX_ID]; /* its holder was killed on the point of completing it */
};

static struct shared *shared;
static struct rq *rq;
static int queue_fd;
static uint32_t last_epoch;
static uint32_t refused_id; /* of this process: tried again, so that numbers last */
static uint64_t seed_state;

static uint64_t draw(void)
{
	seed_state ^= seed_state << 13;
	seed_state ^= seed_state >> 7;
	seed_state ^= seed_state << 17;
	return seed_state;
}

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * UINT64_C(1000000) + ts.tv_nsec / 1000;
}

static void __attribute__((noreturn)) die(const char *what)
{
	printf("not ok - %s\n", what);
	fflush(stdout);
	/* Children go with their parent. */
	exit(1);
}

static bool post_new(uint32_t epoch)
{
	uint32_t id = refused_id;
	struct ibv_sge sge;
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
	int ret;

	if (!id)
		id = atomic_fetch_add(&shared->next_id, 1);
	if (id >= MAX_ID)
		return false;
	sge = (struct ibv_sge){id, 64, ~id};
	wr.wr_id = id;
	atomic_store(&shared->fate[id], POSTING);
	ret = rq_post_as(rq, epoch, &wr);
	atomic_store(&shared->fate[id], ret ? REFUSED : POSTED);
	refused_id = ret ? id : 0;
	return !ret;
}

/* Return: whether there was one; false in @right: it came out changed, or could not be released. */
static bool take_new(uint32_t epoch, bool *right)
{
	struct rqe rqe;
	uint64_t ticket;
	uint32_t id;

	if (!rq_hold(rq, epoch, &rqe, &ticket))
		return false;
	id = rqe.wr_id;
	*right = id < MAX_ID && rqe.num_sge == 1 && rqe.length == 64 && rqe.sge[0].addr == id &&
		 rqe.sge[0].lkey == ~id;
	if (!*right)
		return true;
	atomic_store(&shared->releasing[epoch], id);
	if (rq_release(rq, epoch, ticket))
		atomic_fetch_add(&shared->completed[id], 1);
	else
		*right = false;
	atomic_store(&shared->releasing[epoch], 0);
	return true;
}

static int child(uint32_t epoch)
{
	size_t size = rq_size(MAX_WR, 1);
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, queue_fd, 0);
	bool right = true;

	refused_id = 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	seed_state += epoch * 1000003;
	if (mem == MAP_FAILED || mem == (void *)rq)
		return 1;
	rq = rq_attach(mem, size);
	if (!rq)
		return 1;
	while (!atomic_load(&shared->stop) && right) {
		if (draw() & 4)
			post_new(epoch);
		else
			take_new(epoch, &right);
	}
	return !right;
}

struct kid {
	pid_t pid;
	uint32_t epoch;
};

static void start(struct kid *k)
{
	k->epoch = ++last_epoch;
	fflush(stdout);
	k->pid = fork();
	if (k->pid < 0)
		die("no process");
	if (!k->pid)
		_exit(child(k->epoch));
}

/* The owner posts and takes @n requests; nobody may keep it from that. */
static void get_on(unsigned int n)
{
	uint64_t deadline = now_us() + 20000000;
	unsigned int taken = 0, posted = 0;
	bool right = true;

	while (taken < n || posted < n) {
		posted += post_new(OWNER);
		taken += take_new(OWNER, &right);
		if (!right)
			die("the owner took what is wrong");
		if (now_us() > deadline)
			die("the owner does not get on while a child is stopped");
	}
}

static void recover(uint32_t dead)
{
	uint64_t deadline = now_us() + 20000000;
	uint32_t id = atomic_load(&shared->releasing[dead]);
	bool right = true;
	int ret;

	if (id)
		atomic_store(&shared->perhaps[id], 1);
	while ((ret = rq_recover(rq, dead, OWNER)) < 0) {
		/* All slots are taken up; the owner makes room. */
		take_new(OWNER, &right);
		if (now_us() > deadline)
			die("what a dead child had cannot be recovered");
	}
	if (ret > 1)
		die("a child held more than one request");
}

static void stop_one(struct kid *k)
{
	int status;

	kill(k->pid, SIGSTOP);
	waitpid(k->pid, &status, WUNTRACED);
	if (!WIFSTOPPED(status))
		die("a child ended");
	get_on(50);
	kill(k->pid, SIGCONT);
}

/* @stopped: it is killed while it stands still, and others go on in between. */
static void kill_one(struct kid *k, bool stopped)
{
	int status;

	if (stopped) {
		kill(k->pid, SIGSTOP);
		waitpid(k->pid, &status, WUNTRACED);
		get_on(50);
	}
	kill(k->pid, SIGKILL);
	waitpid(k->pid, &status, 0);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		die("a child ended");
	recover(k->epoch);
	start(k);
}

/* Return: requests that were posted. */
static uint32_t check_end(void)
{
	uint32_t last = min_t(uint32_t, atomic_load(&shared->next_id), MAX_ID), posted = 0;
	struct ibv_recv_wr wr = {.wr_id = 0};
	bool right = true;

	while (take_new(OWNER, &right))
		;
	if (rq_count(rq) || !right)
		die("the queue is not empty in the end");
	for (uint32_t id = 1; id < last; id++) {
		unsigned int n = atomic_load(&shared->completed[id]);
		enum fate fate = atomic_load(&shared->fate[id]);

		posted += fate == POSTED;
		if (n > 1)
			die("a request completed twice");
		if (fate == REFUSED && n)
			die("a request completed that was not posted");
		if (fate == POSTED && !n && !atomic_load(&shared->perhaps[id]))
			die("a request was lost");
	}
	for (int i = 0; i < MAX_WR; i++)
		if (rq_post(rq, &wr))
			die("slots were lost");
	if (rq_post(rq, &wr) == 0)
		die("more fit than should");
	return posted;
}

static void set_up(void)
{
	size_t size = rq_size(MAX_WR, 1);
	void *mem;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	queue_fd = memfd_create("queue", MFD_CLOEXEC);
	if (shared == MAP_FAILED || queue_fd < 0 || ftruncate(queue_fd, size))
		die("no memory");
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, queue_fd, 0);
	if (mem == MAP_FAILED)
		die("no memory");
	rq = rq_init_at(mem, MAX_WR, 1);
	last_epoch = OWNER;
	refused_id = 0;
	atomic_store(&shared->next_id, 1);
}

static void clean_up(void)
{
	munmap(rq, rq_size(MAX_WR, 1));
	munmap(shared, sizeof(*shared));
	close(queue_fd);
}

/* Until @end, or numbers for requests or processes run out. Return: requests that were posted. */
static uint32_t run_round(uint64_t end, unsigned int *stops, unsigned int *kills)
{
	struct kid kids[CHILDREN];
	uint32_t posted;

	set_up();
	for (int i = 0; i < CHILDREN; i++)
		start(&kids[i]);
	while (now_us() < end && last_epoch < RQ_MAX_EPOCH - 1 &&
	       atomic_load(&shared->next_id) < MAX_ID / 2) {
		struct kid *k = &kids[draw() % CHILDREN];
		struct timespec ts = {.tv_nsec = draw() % 500000};

		nanosleep(&ts, NULL);
		if (draw() & 4) {
			stop_one(k);
			++*stops;
		} else {
			kill_one(k, draw() & 8);
			++*kills;
		}
	}
	atomic_store(&shared->stop, true);
	for (int i = 0; i < CHILDREN; i++) {
		int status;

		waitpid(kids[i].pid, &status, 0);
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			die("a child found a request changed, or not its own any more");
	}
	posted = check_end();
	clean_up();
	return posted;
}

int main(int argc, char **argv)
{
	uint64_t end = now_us() + (argc > 1 ? strtoul(argv[1], NULL, 10) : 3) * 1000000;
	unsigned int stops = 0, kills = 0;
	uint64_t posted = 0;

	seed_state = 2 * (argc > 2 ? strtoull(argv[2], NULL, 10) : 1) + 1;
	while (now_us() < end)
		posted += run_round(end, &stops, &kills);
	if (!stops || !kills)
		die("nothing was stopped or killed");
	printf("ok 1 - %lu requests, %u children stopped, %u killed\n1..1\n", posted, stops, kills);
	return 0;
}
