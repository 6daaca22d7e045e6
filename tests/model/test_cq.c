/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The completion queue, in every interleaving of a few calls: nothing is lost or comes twice, each lane's
 * completions come in order, and whoever arms and then finds nothing gets an event.
 *
 * cq.c and cq_ring.c are compiled into this program with a switch to the explorer before each access to
 * shared memory. The words of an entry are no steps: an entry is copied whole, before or after it was written
 * over, and must be thrown away in the second case.
 */
#include "steps.h"

#include "base/lock.h"

/* A frozen ring is waited for: thread 0 makes all control calls here. */
#define give_way(tries) ((void)(tries), explore_wait(0))

#include "../../rxe-xrc/engine/cq.c"
#include "../../rxe-xrc/engine/cq_ring.c"

#include <criterion/criterion.h>

#define PER_THREAD 8 /* completions that a thread gets at most */
#define LANES	   2
#define NO_QP	   5
#define QP	   6
#define OTHER_QP   7

/* Rings, one after the other: of each lane one of SMALL entries, and a spare one of LARGE. */
#define SMALL	   4
#define LARGE	   8
#define RING_BYTES (sizeof(struct cq_ring) + LARGE * CACHE_LINE)

static struct {
	struct cq cq;
	char ring[2 * LANES][RING_BYTES] CACHE_ALIGNED;
} shared CACHE_ALIGNED;

static struct {
	uint64_t out[EXPLORE_THREADS][PER_THREAD];
	unsigned int nout[EXPLORE_THREADS];
	unsigned int pushed[16]; /* by id: 1 */
	unsigned int fired, errors;
	bool empty_handed; /* a poll after arming found nothing */
} rec;

static struct cq *const cq = &shared.cq;
static struct engine engine;
static struct lane lanes[LANES], *lane_list[LANES] = {&lanes[0], &lanes[1]};

void engine_lock(struct engine *e)
{
}

void engine_unlock(struct engine *e)
{
}

/* Thread 0 makes control calls, and is the one that pushes in the lanes that these need. */
void lane_lock(struct lane *lane, uint64_t now)
{
}

void lane_unlock(struct lane *lane)
{
}

static void on_cq_event(struct cq *c)
{
	rec.fired++;
}

static void on_async_event(struct engine *e, enum ibv_event_type type, void *user)
{
	rec.errors++;
}

static const struct engine_ops ops = {.cq_event = on_cq_event, .async_event = on_async_event};

static struct cq_ring *lay_out(unsigned int at, unsigned int pusher, uint32_t size)
{
	struct cq_ring *r = (struct cq_ring *)shared.ring[at];

	r->pusher = pusher;
	r->size = size;
	r->head = CQ_RING_FROZEN;
	r->next = cq->rings;
	cq->rings = r;
	return r;
}

static void start(unsigned int nlanes, uint32_t capacity)
{
	memset(&shared, 0, sizeof(shared));
	memset(&rec, 0, sizeof(rec));
	engine = (struct engine){.ops = &ops, .lanes = lane_list, .nlanes = LANES};
	*cq = (struct cq){.engine = &engine, .capacity = capacity, .quota = capacity};
	lock_init(&cq->foreign);
	for (unsigned int i = 0; i < nlanes; i++) {
		lay_out(2 * i, i, SMALL);
		lay_out(2 * i + 1, i, LARGE);
	}
	/* Finds the rings laid out, the large one first; a resize turns to the small one. */
	for (unsigned int i = 0; i < nlanes; i++)
		cq_reserve(cq, i);
}

/* --- what threads do ------------------------------------------------------------------------------ */

static void push(unsigned int lane, uint64_t id, uint32_t qpn)
{
	struct ibv_wc wc = {.wr_id = id, .qp_num = qpn};

	explore_step();
	rec.pushed[id] += cq_push(cq, lane, &wc, id, false);
}

static int poll(int n)
{
	struct cqe cqe[4];
	unsigned int self = explore_self();
	int got;

	explore_step();
	got = cq_poll(cq, n, cqe);
	for (int i = 0; i < got; i++) {
		explore_must(cqe[i].timestamp == cqe[i].wc.wr_id);
		rec.out[self][rec.nout[self]++] = cqe[i].wc.wr_id;
		/* What it got later depends on it. */
		explore_saw(cqe[i].wc.wr_id);
	}
	return got;
}

static void push_1_2(void)
{
	push(0, 1, QP);
	push(0, 2, QP);
}

static void push_1(void)
{
	push(0, 1, QP);
}

static void push_3_in_lane_1(void)
{
	push(1, 3, QP);
}

static void poll_1_1(void)
{
	poll(1);
	poll(1);
}

static void poll_2(void)
{
	poll(2);
}

static void arm_and_poll(void)
{
	explore_step();
	cq_arm(cq, false);
	rec.empty_handed = !poll(4);
}

static void nothing(void)
{
}

/* --- what must be true at the end ----------------------------------------------------------------- */

/* Each that was pushed is out once, and each thread got those of a lane (by id: 1 and 2 are lane 0's) in order. */
static void check_all_out(void)
{
	unsigned int out[16] = {0};
	struct cqe cqe[4];
	int got;

	for (unsigned int t = 0; t < EXPLORE_THREADS; t++) {
		uint64_t last = 0;

		for (unsigned int i = 0; i < rec.nout[t]; i++) {
			uint64_t id = rec.out[t][i];

			out[id]++;
			if (id == 3)
				continue;
			explore_must(id > last);
			last = id;
		}
	}
	while ((got = cq_poll(cq, 4, cqe)) > 0)
		for (int i = 0; i < got; i++)
			out[cqe[i].wc.wr_id]++;
	for (unsigned int id = 0; id < 16; id++)
		explore_must(out[id] == rec.pushed[id]);
	explore_must(!cq_used(cq));
}

static void check_event(void)
{
	bool left = cq_used(cq);

	explore_must(rec.fired <= 1);
	explore_must(rec.fired == (atomic_load(&cq->armed) == CQ_IDLE));
	/* Only this thread polled. */
	explore_must(!left || rec.fired);
	explore_must(!rec.empty_handed || rec.fired || !left);
	check_all_out();
}

#define MODEL(setup_, check_, a, b, c)                                                             \
	{                                                                                          \
		.name = #setup_, .nthreads = EXPLORE_THREADS, .thread = {a, b, c},                 \
		.setup = setup_, .check = check_, .shared = &shared,                               \
		.shared_size = sizeof(shared), .records = &rec, .records_size = sizeof(rec),       \
	}

static void run(const struct explore *model)
{
	struct explore_result r = explore(model);

	cr_assert_null(r.wrong, "%s\nsteps:%s", r.wrong, r.steps);
	cr_log_info("%s: %lu states, %lu ends", model->name, r.states, r.ends);
	cr_assert_gt(r.ends, 1u);
}

/* --- the models ----------------------------------------------------------------------------------- */

static void one_lane(void)
{
	start(1, 4);
}

Test(cq_model, a_pusher_two_takers)
{
	struct explore model = MODEL(one_lane, check_all_out, push_1_2, poll_1_1, poll_2);

	run(&model);
}

static void two_lanes(void)
{
	start(2, 4);
}

Test(cq_model, two_pushers_a_taker)
{
	struct explore model =
		MODEL(two_lanes, check_all_out, push_1_2, push_3_in_lane_1, poll_1_1);

	run(&model);
}

Test(cq_model, who_arms_and_finds_nothing_gets_an_event)
{
	struct explore model =
		MODEL(two_lanes, check_event, push_1_2, push_3_in_lane_1, arm_and_poll);

	run(&model);
}

/* Room for one: one of both fits, or both when they are pushed at the same time; and an overrun says so once. */
static void room_for_one(void)
{
	start(2, 1);
}

static void check_overrun(void)
{
	unsigned int pushed = rec.pushed[1] + rec.pushed[3];

	explore_must(pushed >= 1);
	explore_must(rec.errors == (pushed < 2));
	check_all_out();
}

Test(cq_model, two_pushers_and_room_for_one)
{
	struct explore model =
		MODEL(room_for_one, check_overrun, push_1, push_3_in_lane_1, nothing);

	run(&model);
}

/*
 * One is there. It is polled, and only then its receive is posted again and completes in the other lane: so there
 * are never more than two, whatever the pusher of lane 0 sees at the two rings, one after the other.
 */
static void one_there_of_two(void)
{
	struct ibv_wc wc = {.wr_id = 1};

	start(2, 2);
	rec.pushed[1] = cq_push(cq, 0, &wc, 1, false);
}

static void push_2(void)
{
	push(0, 2, QP);
}

static void poll_and_push_3(void)
{
	if (poll(1))
		push(1, 3, QP);
}

static void check_no_overrun(void)
{
	explore_must(!rec.errors);
	check_all_out();
}

Test(cq_model, a_queue_that_is_never_full_is_not_overrun)
{
	struct explore model =
		MODEL(one_there_of_two, check_no_overrun, push_2, poll_and_push_3, nothing);

	run(&model);
}

/* A QP goes away: none of its completions is polled by anybody who began after that. */
static void push_and_remove(void)
{
	push(0, 1, QP);
	push(0, 2, OTHER_QP);
	explore_step();
	cq_clean(cq, 0, NO_QP);
	explore_step();
	cq_clean(cq, 0, QP);
	/* Out already, or gone. */
	rec.pushed[1] = 0;
	for (unsigned int t = 0; t < EXPLORE_THREADS; t++)
		for (unsigned int i = 0; i < rec.nout[t]; i++)
			rec.pushed[1] += rec.out[t][i] == 1;
}

static void check_removed(void)
{
	unsigned int got = 0;

	/* A poll that ran beside the removal may have had it in its hands. */
	for (unsigned int t = 0; t < EXPLORE_THREADS; t++)
		for (unsigned int i = 0; i < rec.nout[t]; i++)
			got += rec.out[t][i] == 1;
	explore_must(got <= 1 && rec.pushed[1] <= got);
	rec.pushed[1] = got;
	check_all_out();
}

Test(cq_model, a_qp_is_removed_beside_two_takers)
{
	struct explore model = MODEL(one_lane, check_removed, push_and_remove, poll_1_1, poll_2);

	run(&model);
}

/* From one ring to another and back, while two take. */
static void small_ring(void)
{
	start(1, 2);
	cq_ring_freeze(cq->ring[0]);
	cq_ring_move_in((struct cq_ring *)shared.ring[0], cq->ring[0]);
	cq->ring[0] = (struct cq_ring *)shared.ring[0];
}

static void push_and_resize(void)
{
	push(0, 1, QP);
	explore_step();
	explore_must(cq_resize(cq, LARGE) == 0);
	explore_must(cq->ring[0]->size == LARGE);
	push(0, 2, QP);
}

Test(cq_model, a_queue_is_resized_beside_two_takers)
{
	struct explore model = MODEL(small_ring, check_all_out, push_and_resize, poll_1_1, poll_2);

	run(&model);
}
