/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * XRC domains across processes, over the real sockets: a process that owns an SRQ, one that asks.
 *
 * Each test forks first, while it has no thread and no socket; then either side makes its engine. What an owner must
 * see is awaited on an eventfd that completions signal, so nothing here depends on how fast anything is, but for
 * the tests of the patience itself.
 */
#include "node/domain.h"
#include "node/domain_addr.h"

#include "base/macros.h"
#include "engine/mr.h"
#include "engine/resp.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>

#define IFINDEX 1
#define DEV	7
#define INO	42
#define MEM	65536u
#define WAIT_MS 10000
#define NOBODY	65534
#define MTU	1024u

/* --- an engine with an SRQ in the domain --- */

struct side {
	struct engine *engine;
	struct pd *pd;
	struct cq *cq;
	struct xrcd *xrcd;
	struct srq *srq;
	struct mr *mr;
	uint8_t *mem;
	int completed; /* eventfd */
};

/* What a runner must know of it. */
struct target {
	uint32_t srqn, rkey;
	uint64_t va;
};

static void on_cq(struct cq *cq)
{
	eventfd_t one = 1;

	if (eventfd_write(*(int *)cq->user, one))
		abort();
}

static void on_async(struct engine *e, enum ibv_event_type type, void *user)
{
}

static uint32_t claim(struct engine *e)
{
	return domain_claim(e, IFINDEX);
}

static int ask(struct engine *e, struct foreign_request *req, const void *payload,
	       struct foreign_reply *reply, void *data)
{
	return domain_ask(e, IFINDEX, req, payload, reply, data);
}

static const struct foreign_ops foreign = {.claim = claim, .ask = ask, .tell = domain_tell};
static const struct engine_ops ops = {
	.cq_event = on_cq, .async_event = on_async, .foreign = &foreign};

#define must(call)                                                                                 \
	do {                                                                                       \
		int must_ret_ = (call);                                                            \
		cr_assert_eq(must_ret_, 0, "%s: %d", #call, must_ret_);                            \
	} while (0)

static struct side *side_create(void)
{
	struct engine_config config = {.ops = &ops, .nlanes = 1, .seed = (uint64_t)getpid()};
	struct ibv_srq_attr attr = {.max_wr = 16, .max_sge = 1};
	struct side *s = calloc(1, sizeof(*s));

	cr_assert(s);
	s->mem = calloc(1, MEM);
	s->completed = eventfd(0, EFD_CLOEXEC);
	must(engine_create(&config, &s->engine));
	must(pd_create(s->engine, &s->pd));
	must(cq_create(s->engine, 64, &s->completed, &s->cq));
	must(xrcd_open(s->engine, true, DEV, INO, O_CREAT, &s->xrcd));
	must(engine_srq_create(s->pd, IBV_SRQT_XRC, s->xrcd, s->cq, &attr, NULL, &s->srq));
	must(mr_create(s->pd, s->mem, MEM, (uintptr_t)s->mem,
		       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
		       &s->mr));
	cq_arm(s->cq, false);
	return s;
}

static void side_destroy(struct side *s)
{
	must(mr_destroy(s->mr));
	must(engine_srq_destroy(s->srq));
	must(xrcd_close(s->xrcd));
	must(cq_destroy(s->cq));
	must(pd_destroy(s->pd));
	domain_detach(s->engine);
	engine_destroy(s->engine);
	close(s->completed);
	free(s->mem);
	free(s);
}

static struct target target_of(const struct side *s)
{
	return (struct target){s->srq->srqn, s->mr->key, (uintptr_t)s->mem};
}

static void post(struct side *s, uint64_t wr_id, uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)s->mem, length, s->mr->key};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

	must(rq_post(s->srq->rq, &wr));
}

/* The next completion, whenever it comes. */
static struct ibv_wc await(struct side *s)
{
	struct pollfd p = {.fd = s->completed, .events = POLLIN};
	struct cqe cqe;
	eventfd_t n;

	while (!cq_poll(s->cq, 1, &cqe)) {
		cq_arm(s->cq, false);
		if (cq_used(s->cq))
			continue;
		cr_assert_eq(poll(&p, 1, WAIT_MS), 1, "no completion");
		cr_assert_eq(eventfd_read(s->completed, &n), 0);
	}
	return cqe.wc;
}

/* --- the runner's questions --- */

static uint64_t last_seq;

static struct foreign_request question(const struct target *t, uint8_t opcode, uint32_t n)
{
	return (struct foreign_request){
		.what = FOREIGN_EXECUTE,
		.seq = ++last_seq,
		.dev = DEV,
		.ino = INO,
		.qpn = 0x123,
		.srqn = t->srqn,
		.rkey = t->rkey,
		.va = t->va,
		.mtu = MTU,
		.opcode = opcode,
		.payload_len = n,
	};
}

/* Return: the verdict, or -errno of the carrier. */
static int put(struct side *s, struct foreign_request *req, const void *payload)
{
	struct foreign_reply reply;
	int err = ask(s->engine, req, payload, &reply, NULL);

	return err ? err : reply.verdict;
}

/* The same, again and again as a requester would: on a busy machine an owner that runs may be silent. */
static int put_patiently(struct side *s, struct foreign_request *req, const void *payload)
{
	uint64_t end = domain_now() + WAIT_MS * 1000000ull;
	int v;

	do
		v = put(s, req, payload);
	while (v == -ETIMEDOUT && domain_now() < end);
	return v;
}

/* --- the other process --- */

struct other {
	pid_t pid;
	int in, out; /* pipes of this process: from the other, to it */
};

/* Return: true in the child, which then plays its part and leaves by leave(). */
static bool other_begin(struct other *o)
{
	int down[2], up[2];

	cr_assert(!pipe2(down, O_CLOEXEC) && !pipe2(up, O_CLOEXEC));
	o->pid = fork();
	cr_assert_geq(o->pid, 0);
	if (!o->pid) {
		/* Whatever happens to the test, it does not stay. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(60);
		*o = (struct other){.in = down[0], .out = up[1]};
		close(down[1]);
		close(up[0]);
		return true;
	}
	o->in = up[0];
	o->out = down[1];
	close(down[0]);
	close(up[1]);
	return false;
}

static void say(const struct other *o, const void *what, size_t n)
{
	cr_assert_eq(write(o->out, what, n), (ssize_t)n);
}

static void hear(const struct other *o, void *what, size_t n)
{
	struct pollfd p = {.fd = o->in, .events = POLLIN};

	cr_assert_eq(poll(&p, 1, WAIT_MS), 1, "the other process says nothing");
	cr_assert_eq(read(o->in, what, n), (ssize_t)n);
}

static void stay(const struct other *o)
{
	char b;

	while (read(o->in, &b, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

static void other_end(struct other *o)
{
	int status;

	close(o->out);
	cr_assert_eq(waitpid(o->pid, &status, 0), o->pid);
	cr_assert_eq(status, 0, "the other process failed: %#x", status);
	close(o->in);
}

static void other_kill(struct other *o)
{
	must(kill(o->pid, SIGKILL));
	cr_assert_eq(waitpid(o->pid, NULL, 0), o->pid);
	close(o->out);
	close(o->in);
}

/* Stopped for certain, not only told to. */
static void other_stop(struct other *o)
{
	int status;

	must(kill(o->pid, SIGSTOP));
	cr_assert_eq(waitpid(o->pid, &status, WUNTRACED), o->pid);
	cr_assert(WIFSTOPPED(status));
}

/* An owner that has posted @n receives, and says its completions' wr_id and status as they come. */
static void be_owner(struct other *o, int n)
{
	struct side *s = side_create();
	struct target t = target_of(s);

	for (int i = 0; i < n; i++)
		post(s, (uint64_t)i, 4096);
	for (uint32_t i = 0; i < MEM; i++)
		s->mem[i] = (uint8_t)(i * 7);
	say(o, &t, sizeof(t));
	for (int i = 0; i < n; i++) {
		struct ibv_wc wc = await(s);
		uint32_t what[2] = {(uint32_t)wc.wr_id, wc.status};

		say(o, what, sizeof(what));
	}
	stay(o);
}

static void hear_completion(const struct other *o, uint32_t wr_id, uint32_t status)
{
	uint32_t got[2];

	hear(o, got, sizeof(got));
	cr_assert_eq(got[0], wr_id);
	cr_assert_eq(got[1], status, "wr_id %u: status %u", wr_id, got[1]);
}

/* Addresses that nobody else uses, where that is allowed; elsewhere they are random enough. */
static void own_addresses(void)
{
	if (unshare(CLONE_NEWNET))
		cr_log_info("no network namespace without root");
}

TestSuite(domain_claim, .init = own_addresses);
TestSuite(domain_ask, .init = own_addresses);
TestSuite(domain_tell, .init = own_addresses);
TestSuite(domain_user, .init = own_addresses);
TestSuite(domain_fork, .init = own_addresses);

/* --- claim --- */

Test(domain_claim, blocks_are_disjoint_and_free_again)
{
	struct sockaddr_un addr;
	socklen_t len;
	struct side *a, *b;
	uint32_t first;
	int fd;

	a = side_create();
	b = side_create();
	first = a->srq->srqn & ~(FOREIGN_BLOCK - 1);
	cr_assert_neq(first, b->srq->srqn & ~(FOREIGN_BLOCK - 1));
	len = domain_addr(&addr, IFINDEX, first);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&addr, len), -1);
	cr_assert_eq(errno, EADDRINUSE);
	side_destroy(a);
	cr_assert_eq(bind(fd, (struct sockaddr *)&addr, len), 0);
	close(fd);
	side_destroy(b);
}

/* More SRQs than a block has numbers for. */
Test(domain_claim, a_second_block)
{
	enum { N = FOREIGN_BLOCK + 100 };
	struct ibv_srq_attr attr = {.max_wr = 1, .max_sge = 1};
	static struct srq *srqs[N];
	struct side *s = side_create();

	for (int i = 0; i < N; i++)
		must(engine_srq_create(s->pd, IBV_SRQT_XRC, s->xrcd, s->cq, &attr, NULL, &srqs[i]));
	cr_assert_eq(s->engine->nblocks, 2);
	for (int i = 0; i < N; i++)
		must(engine_srq_destroy(srqs[i]));
	side_destroy(s);
}

/* --- ask --- */

Test(domain_ask, executes_in_the_other_process)
{
	struct foreign_request req;
	struct foreign_reply reply;
	uint8_t data[64], payload[100];
	struct other o;
	struct target t;
	struct side *s;
	uint64_t end;
	int err;

	if (other_begin(&o))
		be_owner(&o, 2);
	s = side_create();
	hear(&o, &t, sizeof(t));
	memset(payload, 0x5a, sizeof(payload));
	for (uint32_t i = 0; i < 2; i++) {
		req = question(&t, WIRE_XRC_SEND_ONLY, sizeof(payload));
		cr_assert_eq(put_patiently(s, &req, payload), RESP_OK);
		hear_completion(&o, i, IBV_WC_SUCCESS);
	}
	req = question(&t, WIRE_XRC_SEND_ONLY, sizeof(payload));
	cr_assert_eq(put_patiently(s, &req, payload), RESP_RNR);
	/* What was sent is there, and what lay behind it still is. */
	req = question(&t, 0, 0);
	req.what = FOREIGN_FETCH;
	req.va += 90;
	req.length = 20;
	end = domain_now() + WAIT_MS * 1000000ull;
	while ((err = ask(s->engine, &req, NULL, &reply, data)) == -ETIMEDOUT)
		cr_assert_lt(domain_now(), end);
	must(err);
	cr_assert_eq(reply.verdict, RESP_OK);
	cr_assert_eq(reply.data_len, 20);
	for (uint8_t i = 0; i < 20; i++)
		cr_assert_eq(data[i], i < 10 ? 0x5a : (uint8_t)((90 + i) * 7));
	other_end(&o);
	side_destroy(s);
}

/* Of a block that is this process's own the answer is the same as of another's. */
Test(domain_ask, nobody_is_there)
{
	struct side *s = side_create();
	struct target t = target_of(s);
	struct foreign_request req;

	t.srqn ^= 1;
	req = question(&t, WIRE_XRC_SEND_ONLY, 0);
	cr_assert_eq(put_patiently(s, &req, NULL), RESP_BAD_TARGET);
	t.srqn ^= FOREIGN_BLOCK;
	req = question(&t, WIRE_XRC_SEND_ONLY, 0);
	cr_assert_eq(put_patiently(s, &req, NULL), -ENOENT);
	side_destroy(s);
}

Test(domain_ask, a_stopped_owner_is_silent_and_executes_once)
{
	struct foreign_request req;
	struct other o;
	struct target t;
	struct side *s;
	uint64_t begin, end;

	if (other_begin(&o))
		be_owner(&o, 2);
	s = side_create();
	hear(&o, &t, sizeof(t));
	other_stop(&o);
	req = question(&t, WIRE_XRC_SEND_ONLY, 0);
	begin = domain_now();
	/* It is waited for once; what else the lane has to do does not stand still a hundred times. */
	cr_assert_eq(put(s, &req, NULL), -ETIMEDOUT);
	cr_assert_geq(domain_now() - begin, DOMAIN_PATIENCE / 2);
	for (int i = 0; i < 100; i++)
		cr_assert_eq(put(s, &req, NULL), -ETIMEDOUT);
	end = domain_now();
	cr_assert_lt(end - begin, 50 * DOMAIN_PATIENCE);
	must(kill(o.pid, SIGCONT));
	while (put(s, &req, NULL) == -ETIMEDOUT)
		cr_assert_lt(domain_now() - end, WAIT_MS * 1000000ull);
	hear_completion(&o, 0, IBV_WC_SUCCESS);
	/* The next completion is of the next packet. */
	req = question(&t, WIRE_XRC_SEND_ONLY, 0);
	cr_assert_eq(put_patiently(s, &req, NULL), RESP_OK);
	hear_completion(&o, 1, IBV_WC_SUCCESS);
	other_end(&o);
	side_destroy(s);
}

/*
 * An owner that executes one packet late, and is stopped again when the answer is out: the service thread gives
 * its lock back only behind that, and a fork waits for the lock.
 */
static void be_a_slow_owner(struct other *o)
{
	struct side *s = side_create();
	struct target t = target_of(s);

	post(s, 0, 4096);
	say(o, &t, sizeof(t));
	await(s);
	domain_fork_prepare();
	domain_fork_parent();
	raise(SIGSTOP);
	stay(o);
}

Test(domain_ask, a_late_answer_is_for_its_packet)
{
	struct foreign_request first, second;
	struct other o;
	struct target t;
	struct side *s;
	int status;

	if (other_begin(&o))
		be_a_slow_owner(&o);
	s = side_create();
	hear(&o, &t, sizeof(t));
	other_stop(&o);
	first = question(&t, WIRE_XRC_SEND_ONLY, 0);
	cr_assert_eq(put(s, &first, NULL), -ETIMEDOUT);
	must(kill(o.pid, SIGCONT));
	cr_assert_eq(waitpid(o.pid, &status, WUNTRACED), o.pid);
	cr_assert(WIFSTOPPED(status));
	/* Not for another one, which nobody answers. */
	second = question(&t, WIRE_XRC_SEND_ONLY, 0);
	second.qpn++;
	cr_assert_eq(put(s, &second, NULL), -ETIMEDOUT);
	cr_assert_eq(put(s, &first, NULL), RESP_OK);
	cr_assert_eq(put(s, &first, NULL), -ETIMEDOUT);
	must(kill(o.pid, SIGCONT));
	other_end(&o);
	side_destroy(s);
}

/* Its service thread has to wait until it is told to go on; then it says when the answer is out. */
static void be_a_held_owner(struct other *o)
{
	struct side *s = side_create();
	struct target t = target_of(s);
	bool go;

	post(s, 0, 4096);
	domain_fork_prepare();
	say(o, &t, sizeof(t));
	hear(o, &go, sizeof(go));
	domain_fork_parent();
	await(s);
	domain_fork_prepare();
	domain_fork_parent();
	say(o, &go, sizeof(go));
	stay(o);
}

static struct other *held;

/* The answer comes while this thread is here, and the patience ends. */
static void on_alarm(int sig)
{
	uint64_t end = domain_now() + 2 * DOMAIN_PATIENCE;
	struct pollfd p = {.fd = held->in, .events = POLLIN};
	bool go = true;

	if (write(held->out, &go, sizeof(go)) != sizeof(go))
		abort();
	/* Should the question not be out yet, it has an owner who answers. */
	poll(&p, 1, 3000);
	while (domain_now() < end)
		;
}

Test(domain_ask, an_answer_counts_that_came_while_the_runner_was_stopped)
{
	struct itimerval soon = {.it_value.tv_usec = DOMAIN_PATIENCE / 1000 / 4};
	struct foreign_request req;
	struct other o;
	struct target t;
	struct side *s;

	if (other_begin(&o))
		be_a_held_owner(&o);
	s = side_create();
	hear(&o, &t, sizeof(t));
	held = &o;
	signal(SIGALRM, on_alarm);
	req = question(&t, WIRE_XRC_SEND_ONLY, 0);
	must(setitimer(ITIMER_REAL, &soon, NULL));
	cr_assert_eq(put(s, &req, NULL), RESP_OK);
	other_end(&o);
	side_destroy(s);
}

Test(domain_ask, the_owner_is_killed)
{
	struct foreign_request req;
	struct other o;
	struct target t;
	struct side *s;

	if (other_begin(&o))
		be_owner(&o, 2);
	s = side_create();
	hear(&o, &t, sizeof(t));
	req = question(&t, WIRE_XRC_SEND_ONLY, 0);
	cr_assert_eq(put_patiently(s, &req, NULL), RESP_OK);
	other_kill(&o);
	req = question(&t, WIRE_XRC_SEND_ONLY, 0);
	cr_assert_eq(put_patiently(s, &req, NULL), -ENOENT);
	cr_assert_eq(put_patiently(s, &req, NULL), -ENOENT);
	side_destroy(s);
}

/* --- tell --- */

static void be_runner_in_the_middle(struct other *o)
{
	static const uint8_t payload[MTU];
	struct side *s = side_create();
	struct foreign_request req;
	struct target t;
	int verdict;

	hear(o, &t, sizeof(t));
	req = question(&t, WIRE_XRC_SEND_FIRST, MTU);
	verdict = put_patiently(s, &req, payload);
	say(o, &verdict, sizeof(verdict));
	stay(o);
}

Test(domain_tell, a_runner_that_is_killed_need_not)
{
	struct other o;
	struct target t;
	struct side *s;
	struct ibv_wc wc;
	int verdict;

	if (other_begin(&o))
		be_runner_in_the_middle(&o);
	s = side_create();
	post(s, 11, 4096);
	t = target_of(s);
	say(&o, &t, sizeof(t));
	hear(&o, &verdict, sizeof(verdict));
	cr_assert_eq(verdict, RESP_OK);
	cr_assert_eq(cq_used(s->cq), 0u);
	other_kill(&o);
	wc = await(s);
	cr_assert_eq(wc.wr_id, 11);
	cr_assert_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(wc.qp_num, 0x123);
	side_destroy(s);
}

/* More QPs that are gone than an owner that is stopped has room to be told of. */
static void fill_queue(struct side *s, const struct target *t)
{
	struct foreign_request req = question(t, 0, 0);

	req.what = FOREIGN_ABANDON;
	req.srqn = 0;
	for (req.qpn = 0x200; req.qpn < 0x300; req.qpn++)
		domain_tell(s->engine, &req);
}

/*
 * An owner of @n receives that has got the first packet of a message and is stopped, with its queue full. Return: the
 * runner.
 */
static struct side *stop_owner_in_the_middle(struct other *o, unsigned int n,
					     const uint8_t *payload, struct target *t)
{
	struct foreign_request req;
	struct side *s;

	if (other_begin(o))
		be_owner(o, n);
	s = side_create();
	hear(o, t, sizeof(*t));
	req = question(t, WIRE_XRC_SEND_FIRST, MTU);
	cr_assert_eq(put_patiently(s, &req, payload), RESP_OK);
	other_stop(o);
	fill_queue(s, t);
	return s;
}

/* Those QPs had nothing in progress there, so the one that has is not cut off. */
Test(domain_tell, a_full_queue_does_not_end_others_messages)
{
	static const uint8_t payload[MTU];
	struct foreign_request req;
	struct other o;
	struct target t;
	struct side *s;

	s = stop_owner_in_the_middle(&o, 1, payload, &t);
	req = question(&t, WIRE_XRC_SEND_LAST, MTU);
	cr_assert_eq(put(s, &req, payload), -ETIMEDOUT);
	must(kill(o.pid, SIGCONT));
	cr_assert_eq(put_patiently(s, &req, payload), RESP_OK);
	hear_completion(&o, 0, IBV_WC_SUCCESS);
	other_end(&o);
	side_destroy(s);
}

/* The QP that fails has. When the owner goes on, it completes the receive, and the runner can reach it again. */
Test(domain_tell, arrives_though_the_queue_is_full)
{
	static const uint8_t payload[MTU];
	struct foreign_request req;
	struct other o;
	struct target t;
	struct side *s;

	s = stop_owner_in_the_middle(&o, 2, payload, &t);
	req = question(&t, 0, 0);
	req.what = FOREIGN_ABANDON;
	req.status = IBV_WC_WR_FLUSH_ERR;
	domain_tell(s->engine, &req);
	req = question(&t, WIRE_XRC_SEND_ONLY, 10);
	cr_assert_eq(put(s, &req, payload), -ETIMEDOUT);
	must(kill(o.pid, SIGCONT));
	hear_completion(&o, 0, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(put_patiently(s, &req, payload), RESP_OK);
	hear_completion(&o, 1, IBV_WC_SUCCESS);
	other_end(&o);
	side_destroy(s);
}

/* --- other users: addresses that they can guess or take --- */

Test(domain_user, an_owner_of_another_user_is_nobody)
{
	struct target t = {.srqn = RXE_SRQN_FIRST};
	struct foreign_request req;
	struct sockaddr_un addr;
	socklen_t len = domain_addr(&addr, IFINDEX, t.srqn);
	struct other o;
	struct side *s;
	bool ready = true;
	int fd;

	if (geteuid())
		cr_skip_test("needs root, to become another user");
	if (other_begin(&o)) {
		must(setuid(NOBODY));
		fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		must(bind(fd, (struct sockaddr *)&addr, len));
		must(listen(fd, 1));
		say(&o, &ready, sizeof(ready));
		stay(&o);
	}
	s = side_create();
	hear(&o, &ready, sizeof(ready));
	req = question(&t, WIRE_XRC_SEND_ONLY, 0);
	cr_assert_eq(put_patiently(s, &req, NULL), -ENOENT);
	other_end(&o);
	side_destroy(s);
}

Test(domain_user, a_runner_of_another_user_gets_no_answer)
{
	struct foreign_request req;
	struct sockaddr_un addr;
	struct other o;
	struct target t;
	struct side *s;
	ssize_t n = 0;
	char b;
	int fd;

	if (geteuid())
		cr_skip_test("needs root, to become another user");
	if (other_begin(&o)) {
		socklen_t len;

		hear(&o, &t, sizeof(t));
		len = domain_addr(&addr, IFINDEX, t.srqn & ~(FOREIGN_BLOCK - 1));
		must(setuid(NOBODY));
		fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		must(connect(fd, (struct sockaddr *)&addr, len));
		req = question(&t, WIRE_XRC_SEND_ONLY, 0);
		/* It may be closed already. */
		n = send(fd, &req, sizeof(req), MSG_NOSIGNAL);
		n = recv(fd, &b, 1, 0);
		say(&o, &n, sizeof(n));
		stay(&o);
	}
	s = side_create();
	post(s, 1, 4096);
	t = target_of(s);
	say(&o, &t, sizeof(t));
	hear(&o, &n, sizeof(n));
	cr_assert_leq(n, 0);
	cr_assert_eq(rq_count(s->srq->rq), 1);
	cr_assert_eq(cq_used(s->cq), 0u);
	other_end(&o);
	side_destroy(s);
}

/* --- fork --- */

/* The child neither keeps the parent's addresses nor serves them, and can have its own. */
Test(domain_fork, the_child_begins_anew)
{
	struct side *s = side_create(), *own;
	struct target t = target_of(s);
	struct foreign_request req;
	pid_t pid;
	int status;

	post(s, 1, 4096);
	req = question(&t, WIRE_XRC_SEND_ONLY, 0);
	urcu_bp_before_fork();
	domain_fork_prepare();
	pid = fork();
	if (!pid) {
		urcu_bp_after_fork_child();
		domain_fork_child();
		alarm(30);
		own = side_create();
		/* The parent's SRQ is another process's now. */
		status = put_patiently(own, &req, NULL);
		side_destroy(own);
		_exit(status == RESP_OK ? 0 : 1);
	}
	domain_fork_parent();
	urcu_bp_after_fork_parent();
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0, "%#x", status);
	cr_assert_eq(await(s).wr_id, 1);
	side_destroy(s);
}
