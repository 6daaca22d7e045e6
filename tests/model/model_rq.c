/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The receive queue and the SRQ's limit, in every interleaving of a few calls on a ring of two
 * slots, or four.
 *
 * The sources of srq/ are compiled into this program with a switch to the explorer before each
 * access to shared memory. At each end the calls and their results must be those of a bounded FIFO
 * in some order that respects which call returned before which began (linearizability, tried by
 * brute force); then the queue is emptied, must have what the calls left in it, and must take
 * exactly max_wr requests again.
 *
 * With WEAK_MEMORY, the second program made of this file, memory is C11's (weak.h) and not
 * sequentially consistent; then a call comes before another when the other's thread knows of it.
 *
 * A post may fail for lack of room when the requests in the queue and the posts under way together
 * fill it: that is the one entry that a thread stopped inside a call costs.
 */
#include "explore.h"

/* Whether the words of a request are stepped through too, not only the slots' words. */
static bool data_steps;
/* The thread whose calls are a step each, where every step of all threads would be too many. */
static unsigned int whole_calls;

#define SRQ_STEP()	(explore_self() == whole_calls ? (void)0 : explore_step())
#define SRQ_DATA_STEP() (data_steps ? explore_step() : (void)0)
#define SRQ_SAW(v)	explore_saw(v)

#ifdef WEAK_MEMORY
#include "weak.h"

#define load_word(w, order)                                                                        \
	({                                                                                         \
		SRQ_STEP();                                                                        \
		weak_load(w, sizeof(*(w)), memory_order_##order);                                  \
	})
#define store_word(w, v, order)                                                                    \
	({                                                                                         \
		SRQ_STEP();                                                                        \
		weak_store(w, sizeof(*(w)), v, memory_order_##order);                              \
	})
#define swap_word(w, seen, v, order)                                                               \
	({                                                                                         \
		uint64_t was_ = *(seen);                                                           \
		SRQ_STEP();                                                                        \
		bool done_ = weak_swap(w, sizeof(*(w)), &was_, v, memory_order_##order,            \
				       memory_order_acquire);                                      \
		*(seen) = was_;                                                                    \
		done_;                                                                             \
	})
#define load_data(w)                                                                               \
	({                                                                                         \
		SRQ_DATA_STEP();                                                                   \
		weak_load(w, sizeof(*(w)), memory_order_relaxed);                                  \
	})
#define store_data(w, v)                                                                           \
	({                                                                                         \
		SRQ_DATA_STEP();                                                                   \
		weak_store(w, sizeof(*(w)), v, memory_order_relaxed);                              \
	})
#endif

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
#ifdef WEAK_MEMORY
	struct weak_memory weak;
#endif
	struct srq srq;
	char mem[2048] __attribute__((aligned(RQ_ALIGN)));
} shared __attribute__((aligned(RQ_ALIGN)));

static struct rq *rq;
static uint32_t saw_states; /* bits of enum slot_state */

/* --- calls, recorded -------------------------------------------------------------------------- */

/* Calls that the running thread knows to have returned. */
static uint32_t returned(void)
{
#ifdef WEAK_MEMORY
	return weak_calls();
#else
	uint32_t bits = 0;

	for (unsigned int i = 0; i < rec.ncalls; i++)
		bits |= (uint32_t)rec.call[i].returned << i;
	return bits;
#endif
}

/* Whether the running thread may still find the slot at @pos being written. */
static bool may_be_writing(uint64_t pos)
{
#ifdef WEAK_MEMORY
	return state_in(weak_oldest(slot_at(rq, pos))) == SLOT_WRITING;
#else
	return true;
#endif
}

/* The running thread waits for thread @other, and is told of its end or death. */
static void wait_for(unsigned int other)
{
	explore_wait(other);
#ifdef WEAK_MEMORY
	weak_join(other);
#endif
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
#ifdef WEAK_MEMORY
	weak_returned((unsigned int)(c - rec.call));
#endif
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

	wait_for(0);
	if (!explore_killed(0))
		return;
	/* Slots that others just write to may be all there are. */
	while ((ret = rq_recover(rq, VICTIM, 1)) == -EAGAIN)
		wait_for(2);
	explore_must(ret == 0 || ret == 1);
}

/* --- the specification ------------------------------------------------------------------------ */

struct fifo {
	uint64_t value[MAX_CALLS];
	unsigned int n;
};

/*
 * A post that came round to a stopped poster's slot has given its position up. Without spare slots that costs room
 * until head has passed it, so a post takes room from those beside it even when it has been refused.
 */
static bool gaps_cost_room;

/* Posts that run beside call @i and are not in @done, the calls that came before. */
static unsigned int posts_beside(unsigned int i, uint32_t done)
{
	unsigned int n = 0;

	if (gaps_cost_room)
		done = 0;

	for (unsigned int j = 0; j < rec.ncalls; j++)
		n += j != i && rec.call[j].kind == POST && !(done & 1u << j) &&
		     !(rec.call[i].before & 1u << j) && !(rec.call[j].before & 1u << i);
	return n;
}

/* Whether call @i could have had its result with the queue as @q; changes it. */
static bool apply(struct fifo *q, unsigned int i, uint32_t done)
{
	const struct call *c = &rec.call[i];

	switch (c->kind) {
	case POST:
		if (!c->ok)
			return q->n + posts_beside(i, done) >= rq->max_wr;
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

		if (!(done & 1u << i) && !(rec.call[i].before & ~done) && apply(&next, i, done) &&
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

#ifdef WEAK_MEMORY
/*
 * A taker that finds nothing and a poster that finds no room may each not see yet what the other did; then no
 * one order explains both. What succeeded has one order, and each refusal has its place in one.
 */
static bool explained(void)
{
	uint32_t refused = 0;

	for (unsigned int i = 0; i < rec.ncalls; i++)
		refused |= (uint32_t)!rec.call[i].ok << i;
	for (unsigned int i = 0; i < rec.ncalls; i++)
		if (refused & 1u << i && !linearizable(first, refused & ~(1u << i)))
			return false;
	return linearizable(first, refused);
}
#else
static bool explained(void)
{
	return linearizable(first, 0);
}
#endif

static void check_fifo(void)
{
	drain();
	explore_must(explained());
	gaps_cost_room = false;
	takes_max_wr();
}

static void check_fifo_with_gaps(void)
{
	gaps_cost_room = true;
	check_fifo();
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
	/* Where a poster was stopped from the start it has its slot still. */
	explore_must(rq_recover(rq, VICTIM, 1) == 0);
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
		saw_states |= 1u << state_in(load_word(slot_at(rq, i), relaxed));
	explore_must(rq->max_wr <= rq->mask + 1);
}

/* --- the models ------------------------------------------------------------------------------- */

/* An empty queue of 1 << @shift slots. */
static void make(uint32_t max_wr, uint32_t shift)
{
	memset(&rec, 0, sizeof(rec));
	memset(&shared, 0, sizeof(shared));
#ifdef WEAK_MEMORY
	weak_use(&shared.weak);
#endif
	whole_calls = EXPLORE_THREADS;
	rq = shared.srq.rq = lay_out(shared.mem, max_wr, 0, shift);
	first.n = 0;
}

/* @taken requests have gone through before, @posted are there. */
static void fill_ring(uint32_t shift, uint32_t max_wr, unsigned int taken, unsigned int posted)
{
	struct rqe rqe;

	make(max_wr, shift);
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

/* A poster has been stopped while it wrote, and another has posted behind it. */
static void writing_and_posted(void)
{
	struct ibv_recv_wr wr = {.wr_id = 1};
	uint64_t pos = 0;

	fill(2, 0, 0);
	explore_must(!rq_claim(rq, VICTIM, 2, &pos));
	explore_must(!rq_post(rq, &wr));
	first.value[first.n++] = 1;
}

/*
 * One is posted; behind it is a slot in the posters' way, since somebody has held a request in it for a lap.
 * Whoever goes round it has a gap between requests.
 */
static void one_held(uint32_t max_wr)
{
	struct ibv_recv_wr wr = {.wr_id = 99};
	uint64_t ticket;
	struct rqe rqe;

	make(max_wr, 2);
	explore_must(!rq_post(rq, &wr) && rq_take(rq, &rqe));
	explore_must(!rq_post(rq, &wr) && rq_hold(rq, VICTIM, &rqe, &ticket));
	for (int i = 0; i < 2; i++)
		explore_must(!rq_post(rq, &wr) && rq_take(rq, &rqe));
	wr.wr_id = 1;
	explore_must(!rq_post(rq, &wr));
	first.value[first.n++] = 1;
	store_word(&rq->head_seen, rq_head_now(rq), relaxed);
}

/* The holder is still there, though late. */
static void release_held(void)
{
	explore_step();
	explore_must(rq_release(rq, VICTIM, 1));
}

static void slot_in_way(void)
{
	one_held(3);
}

static void slot_gone_round(void)
{
	uint64_t pos = 5;

	one_held(2);
	skip(rq, pos, load_word(slot_at(rq, pos), relaxed));
	store_word(&rq->tail, pos + 1, relaxed);
}

/* The post of 3 has filled its slot, and 4 was posted behind it meanwhile. */
static void fill_and_post(uint32_t shift)
{
	struct ibv_recv_wr wr = {.wr_id = 3}, behind = {.wr_id = 4};
	uint64_t pos = 0;

	make(2, shift);
	explore_must(!rq_claim(rq, 0, 2, &pos));
	fill_slot(slot_at(rq, pos), &wr, 0);
	explore_must(!rq_post(rq, &behind));
	rec.call[rec.ncalls++] = (struct call){.kind = POST, .value = 3};
	rec.call[rec.ncalls++] =
		(struct call){.kind = POST, .value = 4, .ok = true, .returned = true};
}

static void filled_and_posted(void)
{
	fill_and_post(2);
}

static void filled_and_passed(void)
{
	struct rqe rqe;

	fill_and_post(2);
	explore_must(rq_take(rq, &rqe) && rqe.wr_id == 4);
	rec.call[rec.ncalls++] =
		(struct call){.kind = TAKE, .value = 4, .ok = true, .returned = true};
}

/* With no spare slot, so that posts may find no room: only what comes out is looked at. */
static void filled_and_posted_of_2(void)
{
	fill_and_post(1);
}

static void post_5(void)
{
	post(5);
}

static void finish_post_of_3(void)
{
	uint64_t pos = 0;
	int ret = 0;

	explore_step();
	if (!rq_publish(rq, 0, pos))
		ret = post_again(rq, 0, &pos);
	end(&rec.call[0], !ret, 3);
}

/* A process has died that held 1; 2 is posted. */
static void dead_holds(void)
{
	uint64_t ticket;
	struct rqe rqe;

	make(4, 2);
	for (uint64_t i = 1; i <= 2; i++)
		explore_must(!rq_post(rq, &(struct ibv_recv_wr){.wr_id = i}));
	explore_must(rq_hold(rq, VICTIM, &rqe, &ticket));
	first.value[0] = 1;
	first.value[1] = 2;
	first.n = 2;
}

static void recover_beside_another(void)
{
	uint32_t me = 1 + explore_self();
	int ret;

	explore_step();
	while ((ret = rq_recover(rq, VICTIM, me)) == -EAGAIN)
		wait_for(2);
	explore_must(ret == 0 || ret == 1);
}

/* Comes round to the slot that the dead one had. */
static void post_5_6_take(void)
{
	post(5);
	post(6);
	take_one();
}

/* Posts that others began at 1 and 3 are given up, by two threads; those at 0, 2 and 4 are there. */
static void two_to_give_up(void)
{
	uint64_t pos = 0;

	make(5, 3);
	for (uint64_t i = 0; i < 5; i++) {
		if (i % 2)
			explore_must(!rq_claim(rq, VICTIM, 5, &pos) && pos == i);
		else
			explore_must(!rq_post(rq, &(struct ibv_recv_wr){.wr_id = 1 + i}));
	}
}

static void unclaim_1(void)
{
	explore_step();
	rq_unclaim(rq, VICTIM, 1);
}

static void unclaim_3(void)
{
	explore_step();
	rq_unclaim(rq, VICTIM, 3);
}

/* Both gaps are known, whoever made his last. */
static void check_counts_are_exact(void)
{
	struct rqe rqe;

	for (uint32_t n = 3; n; n--) {
		explore_must(rq_count(rq) == n);
		explore_must(rq_take(rq, &rqe));
	}
	explore_must(rq_count(rq) == 0);
	takes_max_wr();
}

#define GIVEN_UP 1 /* the position */

/* A poster has died while it wrote, between two that are posted; and tail is old. */
static void given_up_soon(void)
{
	struct ibv_recv_wr wr = {.wr_id = 1};
	uint64_t pos = 0;

	make(3, 2);
	explore_must(!rq_post(rq, &wr) && !rq_claim(rq, VICTIM, 3, &pos) && !rq_post(rq, &wr));
	explore_must(pos == GIVEN_UP);
	store_word(&rq->tail, GIVEN_UP, relaxed);
}

static void recover_others(void)
{
	explore_step();
	explore_must(rq_recover(rq, VICTIM, 1) == 0);
}

static void unclaim_others(void)
{
	explore_step();
	rq_unclaim(rq, VICTIM, GIVEN_UP);
}

/* Whoever has seen that a position was given up counts it no more. */
static void count_3_or_2(void)
{
	uint32_t n;

	explore_step();
	n = rq_count(rq);
	explore_must(n == 2 || (n == 3 && may_be_writing(GIVEN_UP)));
}

/* Beside a post into an empty queue. */
static void count_1_at_most(void)
{
	explore_step();
	explore_must(rq_count(rq) <= 1);
}

static void post_and_take_3(void)
{
	for (uint64_t i = 3; i < 6; i++) {
		post(i);
		take_one();
	}
}

/* Also when more have come and gone meanwhile than there are slots. */
static void count_what_fits_at_most(void)
{
	explore_step();
	explore_must(rq_count(rq) <= rq->mask + 1);
}

/* One is posted and another is being posted, perhaps behind a position that its poster gives up. */
static void count_2_at_most(void)
{
	explore_step();
	explore_must(rq_count(rq) <= 2);
}

static void check_two_left(void)
{
	explore_must(rq_count(rq) == 2);
	drain();
	takes_max_wr();
}

static void post_3_take(void)
{
	post(3);
	take_one();
}

static void post_4_take(void)
{
	post(4);
	take_one();
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
/* In which program a model runs: never, with --long alone (minutes), or always. */
enum when { NEVER, LONG, ALWAYS };

/* One row: the name, threads, first state, check, whether thread 0 may be killed, and see below. */
#define MODEL(text, threads_, start, end_, kill, data, strong_, weak_, must)                       \
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
		.data_steps = data, .strong = strong_, .weak = weak_, .states = 1 << (must),       \
	}
#define THREADS(a, b, c) a, b, c

static const struct {
	struct explore model;
	bool data_steps;
	enum when strong, weak; /* with sequentially consistent memory; with C11's */
	uint32_t states;	/* that must come up, or the model shows nothing about them */
} models[] = {
	/* clang-format off */
	MODEL("a poster, a taker", (post_3, take_one, nothing), empty, check_fifo, false, true, ALWAYS, ALWAYS, SLOT_WRITING),
	MODEL("a poster of two, a taker", (post_5_6, take_2, nothing), one_posted, check_fifo, false, false, ALWAYS, ALWAYS, SLOT_WRITING),
	MODEL("two posters, a taker", (post_3, post_4, take_one), empty, check_fifo, false, true, ALWAYS, LONG, SLOT_LEFT),
	MODEL("two posters, a taker of two", (post_3, post_4, take_2), empty, check_fifo, false, true, LONG, NEVER, SLOT_LEFT),
	MODEL("two posters, the only taker", (post_3, post_4, take_one), empty_private, check_fifo, false, false, ALWAYS, NEVER, SLOT_LEFT),
	MODEL("two who post and take", (post_3_take, post_4_take, nothing), empty, check_fifo, false, false, ALWAYS, LONG, SLOT_LEFT),
	MODEL("two takers", (take_one, take_one, nothing), two_posted, check_fifo, false, true, ALWAYS, ALWAYS, SLOT_POSTED),
	MODEL("a poster of two, two takers", (post_5_6, take_one, take_one), one_posted, check_fifo, false, true, ALWAYS, NEVER, SLOT_WRITING),
	MODEL("a chain, a taker", (chain_5_6, take_2, nothing), empty, check_fifo, false, true, ALWAYS, NEVER, SLOT_WRITING),
	MODEL("a chain, a poster, a taker", (chain_5_6, post_3, take_one), empty, check_fifo_with_gaps, false, false, LONG, NEVER, SLOT_LEFT),
	MODEL("a lap, a taker", (post_3, go_round, take_one), empty_of_four, check_fifo, false, false, ALWAYS, NEVER, SLOT_LEFT),
	MODEL("room for one", (post_5_6, post_3, take_one), empty_for_one, check_fifo, false, false, ALWAYS, NEVER, SLOT_WRITING),
	MODEL("a full queue, a taker", (post_5_6, take_2, nothing), two_posted, check_fifo, false, false, ALWAYS, ALWAYS, SLOT_WRITING),
	MODEL("a full queue", (post_3, take_2, post_4), two_posted, check_fifo, false, false, ALWAYS, NEVER, SLOT_WRITING),
	MODEL("a full queue, three posts", (post_5_6, take_2, post_3), two_posted, check_fifo, false, false, LONG, NEVER, SLOT_WRITING),
	MODEL("a post that was passed", (finish_post_of_3, take_2, nothing), filled_and_posted, check_fifo, false, true, ALWAYS, ALWAYS, SLOT_LEFT),
	MODEL("a post that is passed twice", (finish_post_of_3, take_one, post_5), filled_and_passed, check_fifo, false, false, ALWAYS, NEVER, SLOT_WRITING),
	MODEL("a post that was passed, a poster", (finish_post_of_3, take_one, post_5), filled_and_posted_of_2, check_once, false, true, ALWAYS, NEVER, SLOT_LEFT),
	MODEL("a post and a take, a count", (post_3_take, count_1_at_most, nothing), empty, check_fifo, false, false, ALWAYS, ALWAYS, SLOT_POSTED),
	MODEL("a post is recovered, a count", (recover_others, count_3_or_2, nothing), given_up_soon, check_two_left, false, false, ALWAYS, ALWAYS, SLOT_WRITING),
	MODEL("a post is given up, a count", (unclaim_others, count_3_or_2, nothing), given_up_soon, check_two_left, false, false, ALWAYS, ALWAYS, SLOT_WRITING),
	MODEL("two posts are given up", (unclaim_1, unclaim_3, nothing), two_to_give_up, check_counts_are_exact, false, false, ALWAYS, NEVER, SLOT_WRITING),
	MODEL("many come and go, a count", (post_and_take_3, count_what_fits_at_most, nothing), empty, check_fifo, false, false, ALWAYS, LONG, SLOT_POSTED),
	MODEL("a slot in the way, a count", (post_3, count_2_at_most, nothing), slot_in_way, check_fifo, false, false, ALWAYS, ALWAYS, SLOT_TAKEN),
	MODEL("a slot in the way, its holder", (post_3, release_held, take_2), slot_in_way, check_fifo, false, false, ALWAYS, NEVER, SLOT_TAKEN),
	MODEL("a slot in the way", (post_3, post_4, nothing), slot_in_way, check_fifo, false, false, ALWAYS, ALWAYS, SLOT_TAKEN),
	MODEL("a gap, room for one", (post_3, post_4, nothing), slot_gone_round, check_fifo, false, false, ALWAYS, ALWAYS, SLOT_TAKEN),
	MODEL("the limit, a taker", (arm, srq_take_one, nothing), two_posted, check_limit, false, false, ALWAYS, ALWAYS, SLOT_POSTED),
	MODEL("the limit, a taker who passes", (arm, srq_take_one, nothing), writing_and_posted, check_limit, false, false, ALWAYS, ALWAYS, SLOT_LEFT),
	MODEL("the limit, two takers", (arm, srq_take_one, srq_take_one), two_posted, check_limit, false, false, ALWAYS, LONG, SLOT_POSTED),
	MODEL("the limit, a taker, a poster", (arm, srq_take_one, post_3), two_posted, check_limit, false, false, ALWAYS, NEVER, SLOT_WRITING),
	MODEL("the limit, two armings", (srq_take_one, fire_refill_and_arm, nothing), two_posted_and_armed, check_two_armings, false, false, ALWAYS, NEVER, SLOT_POSTED),
	MODEL("a poster dies", (post_as_victim, recover_then_post, post_then_take), empty, check_once, true, false, ALWAYS, NEVER, SLOT_LEFT),
	MODEL("a holder dies", (hold_and_release, recover, post_then_take), one_posted, check_once, true, false, ALWAYS, NEVER, SLOT_TAKEN),
	MODEL("a holder has died, two recover", (recover_beside_another, recover_beside_another, take_one), dead_holds, check_once, false, false, ALWAYS, NEVER, SLOT_TAKEN),
	MODEL("a holder has died, a poster", (recover_beside_another, nothing, post_5_6_take), dead_holds, check_once, false, true, ALWAYS, NEVER, SLOT_TAKEN),
	MODEL("a holder dies, takers", (hold_and_release, recover, take_2), two_posted, check_once, true, false, ALWAYS, NEVER, SLOT_TAKEN),
	/* clang-format on */
};

/* Return: whether it runs in this program. */
static bool is_wanted(size_t i, bool all)
{
#ifdef WEAK_MEMORY
	enum when when = models[i].weak;
#else
	enum when when = models[i].strong;
#endif

	return when == ALWAYS || (when == LONG && all);
}

int main(int argc, char **argv)
{
	bool all = argc > 1 && !strcmp(argv[1], "--long");
	unsigned int n = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < ARRAY_SIZE(models); i++) {
		const char *name = models[i].model.name;
		uint32_t must = models[i].states;
		struct explore_result r;

		if (!is_wanted(i, all))
			continue;
		saw_states = 0;
		data_steps = models[i].data_steps;
		r = explore(&models[i].model);
		if (r.wrong) {
			printf("not ok %zu - %s: %s\n# steps:%s\n", i + 1, name, r.wrong, r.steps);
			return 1;
		}
		if ((saw_states & must) != must) {
			printf("not ok - %s: states %#x were to come up, and %#x did\n", name, must,
			       saw_states);
			return 1;
		}
		printf("ok %u - %s: %lu states, %lu ends\n", ++n, name, r.states, r.ends);
	}
	printf("1..%u\n", n);
	return 0;
}
