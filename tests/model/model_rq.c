/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The receive queue and the SRQ's limit, in every interleaving of a few calls on a ring of two
 * slots.
 *
 * The sources of srq/ are compiled into this program with a switch to the explorer before each
 * access to shared memory. At each end the calls and their results must be those of a bounded FIFO
 * in some order that respects which call returned before which began (linearizability, tried by
 * brute force); then the queue is emptied, must have what the calls left in it, and must take
 * exactly max_wr requests again.
 *
 * A post may fail for lack of room when the requests in the queue and the posts under way together
 * fill it: that is the one entry that a thread stopped inside a call costs.
 */
#include "explore.h"

#define SRQ_STEP()	(explore_self() == whole_calls ? (void)0 : explore_step())
#define SRQ_DATA_STEP() (data_steps ? explore_step() : (void)0)
#define SRQ_SAW(v)	explore_saw(v)

/* Whether the words of a request are stepped through too, not only the slots' words. */
static bool data_steps;
/* The thread whose calls are a step each, where every step of all threads would be too many. */
static unsigned int whole_calls;

#include "../../srq/rq.c"
#include "../../srq/rq_hold.c"
#include "../../srq/srq.c"

#include <stdio.h>

#define MAX_CALLS 10
#define FAILED	  0 /* a value that nobody posts */

enum kind { POST, TAKE, HOLD, RELEASE, RECOVER };

struct call {
	enum kind kind;
	uint64_t value; /* posted, taken (FAILED: none) */
	bool ok, returned;
	uint32_t before; /* calls that had returned when this one began, as bits */
};

/* What the threads did: of no influence on what they do. */
static struct records {
	struct call call[MAX_CALLS];
	unsigned int ncalls, fired;
	uint64_t held; /* by the thread that may be killed */
} rec;

static struct {
	struct srq srq;
	char mem[2048] __attribute__((aligned(RQ_ALIGN)));
} shared __attribute__((aligned(RQ_ALIGN)));

static struct rq *rq;
static uint32_t saw_states; /* bits of enum slot_state */

/* --- calls, recorded -------------------------------------------------------------------------- */

static uint32_t returned(void)
{
	uint32_t bits = 0;

	for (unsigned int i = 0; i < rec.ncalls; i++)
		bits |= (uint32_t)rec.call[i].returned << i;
	return bits;
}

static struct call *begin(enum kind kind, uint64_t value)
{
	struct call *c;

	/* The call begins with its first step, not when the one before it returned. */
	explore_step();
	c = &rec.call[rec.ncalls++];
	*c = (struct call){.kind = kind, .value = value, .before = returned()};
	/* Numbers of calls depend on their order. */
	explore_saw((uint64_t)rec.ncalls << 32 | c->before);
	return c;
}

static void end(struct call *c, bool ok, uint64_t value)
{
	c->ok = ok;
	c->value = value;
	c->returned = true;
}

static void post_by(uint32_t epoch, uint64_t value)
{
	struct ibv_recv_wr wr = {.wr_id = value};
	struct call *c = begin(POST, value);
	int ret = rq_post_as(rq, epoch, &wr);

	end(c, !ret, value);
}

static void post(uint64_t value)
{
	post_by(0, value);
}

static void post_chain(uint64_t first, uint64_t second)
{
	struct ibv_recv_wr wr[2] = {{.wr_id = first, .next = &wr[1]}, {.wr_id = second}},
			   *bad = NULL;
	struct call *a = begin(POST, first), *b = &rec.call[rec.ncalls++];
	int ret;

	*b = *a;
	b->value = second;
	ret = rq_post_list(rq, wr, &bad);
	end(a, !ret || bad == &wr[1], first);
	/* What comes behind the bad one was not tried. */
	end(b, !ret, second);
	if (bad == &wr[0])
		b->kind = RELEASE;
}

static void take_one(void)
{
	struct call *c = begin(TAKE, FAILED);
	struct rqe rqe;
	bool ok = rq_take(rq, &rqe);

	end(c, ok, ok ? rqe.wr_id : FAILED);
}

static void srq_take_one(void)
{
	struct call *c = begin(TAKE, FAILED);
	struct rqe rqe;
	enum srq_take taken = srq_take(&shared.srq, &rqe);

	rec.fired += taken == SRQ_TAKEN_LIMIT;
	end(c, taken != SRQ_EMPTY, taken == SRQ_EMPTY ? FAILED : rqe.wr_id);
}

static void arm(void)
{
	explore_step();
	rec.fired += srq_arm(&shared.srq, 2);
}

#define VICTIM 7 /* its epoch */

static void hold_and_release(void)
{
	struct call *c = begin(HOLD, FAILED);
	uint64_t ticket;
	struct rqe rqe;

	if (!rq_hold(rq, VICTIM, &rqe, &ticket)) {
		end(c, false, FAILED);
		return;
	}
	end(c, true, rqe.wr_id);
	c = begin(RELEASE, rqe.wr_id);
	end(c, rq_release(rq, VICTIM, ticket), rqe.wr_id);
	explore_must(c->ok);
}

/* What the owner does once thread 0 is gone. */
static void recover(void)
{
	int ret;

	explore_wait(0);
	if (!explore_killed(0))
		return;
	/* Slots that others just write to may be all there are. */
	while ((ret = rq_recover(rq, VICTIM, 1)) == -EAGAIN)
		explore_wait(2);
	explore_must(ret == 0 || ret == 1);
}

/* --- the specification ------------------------------------------------------------------------ */

struct fifo {
	uint64_t value[MAX_CALLS];
	unsigned int n;
};

static unsigned int posts_beside(unsigned int i)
{
	unsigned int n = 0;

	for (unsigned int j = 0; j < rec.ncalls; j++)
		n += j != i && rec.call[j].kind == POST && !(rec.call[i].before & 1u << j) &&
		     !(rec.call[j].before & 1u << i);
	return n;
}

/* Whether call @i could have had its result with the queue as @q; changes it. */
static bool apply(struct fifo *q, unsigned int i)
{
	const struct call *c = &rec.call[i];

	switch (c->kind) {
	case POST:
		if (!c->ok)
			return q->n + posts_beside(i) >= rq->max_wr;
		q->value[q->n++] = c->value;
		return q->n <= rq->max_wr;
	case TAKE:
		if (!c->ok)
			return q->n == 0;
		if (!q->n || q->value[0] != c->value)
			return false;
		memmove(q->value, q->value + 1, --q->n * sizeof(q->value[0]));
		return true;
	default:
		return true;
	}
}

static struct fifo left; /* what the queue still had */

/* Whether the calls that are not in @done can follow in some order, from @q on to what was left. */
static bool linearizable(struct fifo q, uint32_t done)
{
	if (done == (1u << rec.ncalls) - 1)
		return q.n == left.n && !memcmp(q.value, left.value, q.n * sizeof(q.value[0]));
	for (unsigned int i = 0; i < rec.ncalls; i++) {
		struct fifo next = q;

		if (!(done & 1u << i) && !(rec.call[i].before & ~done) && apply(&next, i) &&
		    linearizable(next, done | 1u << i))
			return true;
	}
	return false;
}

/* --- ends ------------------------------------------------------------------------------------- */

static struct fifo first; /* what was in the queue at the start */

static void drain(void)
{
	struct rqe rqe;

	explore_must(rq_count(rq) <= rq->mask + 1);
	left.n = 0;
	for (uint32_t n = rq_count(rq); n; n--) {
		explore_must(rq_take(rq, &rqe));
		left.value[left.n++] = rqe.wr_id;
	}
	explore_must(!rq_take(rq, &rqe));
}

static void takes_max_wr(void)
{
	struct ibv_recv_wr wr = {.wr_id = 99};

	for (int lap = 0; lap < 3; lap++) {
		struct rqe rqe;

		for (uint32_t i = 0; i < rq->max_wr; i++)
			explore_must(rq_post(rq, &wr) == 0);
		explore_must(rq_count(rq) == rq->max_wr);
		explore_must(rq_post(rq, &wr) == -ENOMEM);
		for (uint32_t i = 0; i < rq->max_wr; i++)
			explore_must(rq_take(rq, &rqe));
		explore_must(!rq_take(rq, &rqe));
	}
}

static void check_fifo(void)
{
	drain();
	explore_must(linearizable(first, 0));
	takes_max_wr();
}

/* With a death: what is posted comes out once, what was being posted at most once. */
static void check_once(void)
{
	unsigned int out[16] = {0}, in[16] = {0}, maybe[16] = {0};

	drain();
	for (unsigned int i = 0; i < first.n; i++)
		in[first.value[i]]++;
	for (unsigned int i = 0; i < left.n; i++)
		out[left.value[i]]++;
	for (unsigned int i = 0; i < rec.ncalls; i++) {
		const struct call *c = &rec.call[i];

		if (c->kind == POST)
			*(c->returned ? &in[c->value] : &maybe[c->value]) += c->ok || !c->returned;
		else if (c->kind == TAKE)
			out[c->value] += c->ok;
		/* A release that did not return may have been one. */
		else if (c->kind == RELEASE)
			*(c->returned ? &out[c->value] : &maybe[c->value]) += 1;
	}
	for (unsigned int v = 1; v < 16; v++) {
		/* One that was being released is out, or was posted back. */
		if (maybe[v] && in[v])
			explore_must(out[v] <= 1);
		else
			explore_must(out[v] >= in[v] && out[v] <= in[v] + maybe[v]);
	}
	takes_max_wr();
}

static void check_limit(void)
{
	explore_must(rec.fired <= 1);
	explore_must(rec.fired == (srq_limit(&shared.srq) == 0));
	explore_must(rec.fired || rq_count(rq) >= 2);
	check_fifo();
}

/* The first arming fires once. There are always enough for the second, which nobody may claim. */
static void check_two_armings(void)
{
	explore_must(rec.fired == 1);
	explore_must(srq_limit(&shared.srq) == 2);
	check_fifo();
}

static void look(void)
{
	for (uint32_t i = 0; i <= rq->mask; i++)
		saw_states |= 1u << state_in(*slot_at(rq, i));
	explore_must(rq->max_wr <= 3);
}

/* --- the models ------------------------------------------------------------------------------- */

/* @taken requests have gone through before, @posted are there; 1 << @shift slots. */
static void fill_ring(uint32_t shift, uint32_t max_wr, unsigned int taken, unsigned int posted)
{
	struct rqe rqe;

	memset(&rec, 0, sizeof(rec));
	memset(&shared, 0, sizeof(shared));
	whole_calls = EXPLORE_THREADS;
	rq = shared.srq.rq = lay_out(shared.mem, max_wr, 0, shift);
	first.n = 0;
	for (unsigned int i = 0; i < taken + posted; i++) {
		struct ibv_recv_wr wr = {.wr_id = i < taken ? 99 : 1 + i - taken};

		rq_post(rq, &wr);
		if (i < taken)
			rq_take(rq, &rqe);
		else
			first.value[first.n++] = wr.wr_id;
	}
}

static void fill(uint32_t max_wr, unsigned int taken, unsigned int posted)
{
	fill_ring(1, max_wr, taken, posted);
}

static void empty(void)
{
	fill(2, 1, 0);
}

static void empty_private(void)
{
	fill(2, 1, 0);
	rq->one_taker = true;
}

static void empty_for_one(void)
{
	fill(1, 0, 0);
}

static void empty_of_four(void)
{
	fill_ring(2, 3, 0, 0);
	whole_calls = 1;
}

static void two_posted_and_armed(void)
{
	fill_ring(2, 3, 1, 2);
	whole_calls = 1;
	srq_arm(&shared.srq, 2);
}

static void one_posted(void)
{
	fill(2, 0, 1);
}

static void two_posted(void)
{
	fill(2, 1, 2);
}

static void post_3(void)
{
	post(3);
}

static void post_4(void)
{
	post(4);
}

static void post_5_6(void)
{
	post(5);
	post(6);
}

static void chain_5_6(void)
{
	post_chain(5, 6);
}

static void take_2(void)
{
	take_one();
	take_one();
}

static void nothing(void)
{
}

static void post_as_victim(void)
{
	post_by(VICTIM, 3);
}

static void recover_then_post(void)
{
	recover();
	post(4);
}

static void post_then_take(void)
{
	post(5);
	take_one();
}

/* Once round the ring, without its ever being empty after the first two posts. */
static void go_round(void)
{
	post_chain(5, 6);
	take_one();
	explore_wait(0);
	post(7);
	take_2();
}

static void fire_refill_and_arm(void)
{
	srq_take_one();
	post_5_6();
	arm();
}

/* One row: the name, threads, first state, check, whether thread 0 may be killed, and see below. */
#define MODEL(text, threads_, start, end_, kill, data, only_long_, must)                           \
	{                                                                                          \
		.model = {.name = text,                                                            \
			  .nthreads = EXPLORE_THREADS,                                             \
			  .thread = {THREADS threads_},                                            \
			  .killable = {kill},                                                      \
			  .setup = start,                                                          \
			  .look = look,                                                            \
			  .check = end_,                                                           \
			  .shared = &shared,                                                       \
			  .shared_size = sizeof(shared),                                           \
			  .records = &rec,                                                         \
			  .records_size = sizeof(rec)},                                            \
		.data_steps = data, .only_long = only_long_, .states = 1 << (must),                \
	}
#define THREADS(a, b, c) a, b, c

static const struct {
	struct explore model;
	bool data_steps;
	bool only_long;	 /* minutes: with --long alone */
	uint32_t states; /* that must come up, or the model shows nothing about them */
} models[] = {
	/* clang-format off */
	MODEL("two posters, a taker", (post_3, post_4, take_one), empty, check_fifo, false, true, false, SLOT_LEFT),
	MODEL("two posters, a taker of two", (post_3, post_4, take_2), empty, check_fifo, false, true, true, SLOT_LEFT),
	MODEL("two posters, the only taker", (post_3, post_4, take_one), empty_private, check_fifo, false, false, false, SLOT_LEFT),
	MODEL("a poster of two, two takers", (post_5_6, take_one, take_one), one_posted, check_fifo, false, true, false, SLOT_WRITING),
	MODEL("a chain, a taker", (chain_5_6, take_2, nothing), empty, check_fifo, false, true, false, SLOT_WRITING),
	MODEL("a chain, a poster, a taker", (chain_5_6, post_3, take_one), empty, check_fifo, false, false, true, SLOT_LEFT),
	MODEL("a lap, a taker", (post_3, go_round, take_one), empty_of_four, check_fifo, false, false, false, SLOT_LEFT),
	MODEL("room for one", (post_5_6, post_3, take_one), empty_for_one, check_fifo, false, false, false, SLOT_WRITING),
	MODEL("a full queue", (post_3, take_2, post_4), two_posted, check_fifo, false, false, false, SLOT_WRITING),
	MODEL("a full queue, three posts", (post_5_6, take_2, post_3), two_posted, check_fifo, false, false, true, SLOT_WRITING),
	MODEL("the limit, two takers", (arm, srq_take_one, srq_take_one), two_posted, check_limit, false, false, false, SLOT_POSTED),
	MODEL("the limit, a taker, a poster", (arm, srq_take_one, post_3), two_posted, check_limit, false, false, false, SLOT_WRITING),
	MODEL("the limit, two armings", (srq_take_one, fire_refill_and_arm, nothing), two_posted_and_armed, check_two_armings, false, false, false, SLOT_POSTED),
	MODEL("a poster dies", (post_as_victim, recover_then_post, post_then_take), empty, check_once, true, false, false, SLOT_LEFT),
	MODEL("a holder dies", (hold_and_release, recover, post_then_take), one_posted, check_once, true, false, false, SLOT_TAKEN),
	MODEL("a holder dies, takers", (hold_and_release, recover, take_2), two_posted, check_once, true, false, false, SLOT_TAKEN),
	/* clang-format on */
};

int main(int argc, char **argv)
{
	bool all = argc > 1 && !strcmp(argv[1], "--long");

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..%zu\n", ARRAY_SIZE(models));
	for (size_t i = 0; i < ARRAY_SIZE(models); i++) {
		const char *name = models[i].model.name;
		uint32_t must = models[i].states;
		struct explore_result r;

		if (models[i].only_long && !all) {
			printf("ok %zu - %s # SKIP with --long only\n", i + 1, name);
			continue;
		}
		saw_states = 0;
		data_steps = models[i].data_steps;
		r = explore(&models[i].model);
		if (r.wrong) {
			printf("not ok %zu - %s: %s\n# steps:%s\n", i + 1, name, r.wrong, r.steps);
			return 1;
		}
		if ((saw_states & must) != must) {
			printf("not ok %zu - %s: states %#x were to come up, and %#x did\n", i + 1,
			       name, must, saw_states);
			return 1;
		}
		printf("ok %zu - %s: %lu states, %lu ends\n", i + 1, name, r.states, r.ends);
	}
	return 0;
}
