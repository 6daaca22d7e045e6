/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The hand-over word of a lane and the pile of kicked QPs, through every interleaving: no work is stranded, and
 * nobody is in the lane beside the holder.
 *
 * The code of lane_word.h and pile.h is the product's own. Round it stands here what lane.c does with it: kick,
 * run, pass, finish. A QP is a counter of requests posted, and the pass notes how many it has seen. When all
 * threads have ended each QP's last request must have been seen, and the lane must be free.
 *
 * The packets that lanes hand over lie on piles, too: engine/handover.c is run in the same way.
 *
 * That the explorer would notice is shown by words that are wrong in the ways one could get them wrong.
 */
#include "steps.h"

#include "base/macros.h"
#include "base/pile.h"
#include "engine/lane_word.h"

#include "../../rxe-xrc/engine/handover.c"

#include <criterion/criterion.h>
#include <string.h>

#define QPS 3
/* So many passes that a holder does everything by himself. */
#define ALONE 100
/*
 * Where a thread is, for explore_forget(), which is called where it has nothing in its hands: a number for each
 * operation of its script, and room for the places inside it.
 */
#define AT(op) (((unsigned int)(op) + 1) * 1000)

struct qp {
	struct pile_node kick;
	atomic_bool kicked;
	atomic_uint posted;
	unsigned int served;
};

/* What each thread does: '0' to '2' post to that QP, 'p' poll, 'c' a control call, 'h' the helper. */
static const char *const *scripts;

static bool (*release)(atomic_uint *word);
static bool (*acquire)(atomic_uint *word, bool leave_work);
static unsigned int max_passes, nthreads;

static struct {
	atomic_uint word;
	struct pile kicked;
	struct qp qps[QPS];
	unsigned int inside;
	atomic_uint woken; /* a holder has called for the helper */
	atomic_uint ended; /* threads that call for nobody any more */
} s;

static void check(bool ok, const char *what)
{
	if (!ok)
		explore_fail(what);
}

static void begin(void)
{
	memset(&s, 0, sizeof(s));
}

/* lane.c: take_kicks() and req_run() */
static void pass(void)
{
	struct pile_node *n, *next;

	check(s.inside++ == 0, "two threads are in the lane");
	for (n = pile_take(&s.kicked); n; n = next) {
		struct qp *qp = container_of(n, struct qp, kick);

		next = n->next;
		atomic_store(&qp->kicked, false);
		qp->served = atomic_load(&qp->posted);
	}
	s.inside--;
}

/* lane.c: lane_finish() */
static void finish_passes(unsigned int at)
{
	for (unsigned int passes = 1;; passes++) {
		explore_forget(at + 2 * passes);
		if (release(&s.word))
			return;
		explore_forget(at + 2 * passes + 1);
		if (passes >= max_passes) {
			lane_word_abandon(&s.word);
			atomic_store(&s.woken, 1);
			return;
		}
		pass();
	}
}

static void run(bool leave_work, unsigned int at)
{
	bool got = acquire(&s.word, leave_work);

	explore_forget(at + got);
	if (!got)
		return;
	pass();
	finish_passes(at);
}

static void post(struct qp *qp, unsigned int at)
{
	atomic_fetch_add(&qp->posted, 1);
	pile_push_once(&s.kicked, &qp->kick, &qp->kicked);
	explore_forget(at - 1);
	run(true, at);
}

/* lane.c: lane_lock() and lane_unlock() */
static void control(unsigned int at)
{
	for (;;) {
		uint64_t now = explore_now();

		if (acquire(&s.word, false))
			break;
		explore_forget(at - 1);
		explore_wait_change(now);
	}
	check(s.inside++ == 0, "two threads are in the lane");
	explore_step();
	s.inside--;
	pass();
	finish_passes(at);
}

/* verbs/progress.c: woken, it runs the lane; it ends when nobody can wake it any more. */
static void helper(unsigned int at)
{
	for (;;) {
		uint64_t now = explore_now();
		bool last = atomic_load(&s.ended) == nthreads - 1;

		if (atomic_load(&s.woken)) {
			atomic_store(&s.woken, 0);
			run(true, at);
		} else if (last) {
			return;
		} else {
			explore_forget(at - 1);
			explore_wait_change(now);
		}
	}
}

static void thread(void)
{
	const char *script = scripts[explore_self()];

	for (const char *op = script; *op; op++) {
		unsigned int at = AT(op - script);

		explore_forget(at - 2);
		if (*op == 'p')
			run(false, at);
		else if (*op == 'c')
			control(at);
		else if (*op == 'h')
			helper(at);
		else
			post(&s.qps[*op - '0'], at);
	}
	explore_forget(AT(strlen(script)));
	if (max_passes != ALONE)
		atomic_fetch_add(&s.ended, 1);
}

static void finish(void)
{
	check(atomic_load_explicit(&s.word, memory_order_relaxed) == LANE_FREE,
	      "the lane is not free");
	for (unsigned int i = 0; i < QPS; i++)
		check(s.qps[i].served ==
			      atomic_load_explicit(&s.qps[i].posted, memory_order_relaxed),
		      "work was stranded");
}

static struct explore_result run_scripts(const char *const *v, unsigned int passes)
{
	struct explore m = {.thread = {thread, thread, thread},
			    .begun = true,
			    .setup = begin,
			    .check = finish,
			    .shared = &s,
			    .shared_size = sizeof(s)};

	scripts = v;
	max_passes = passes;
	while (m.nthreads < EXPLORE_THREADS && v[m.nthreads])
		m.nthreads++;
	nthreads = m.nthreads;
	return explore(&m);
}

static void set_word(bool (*a)(atomic_uint *, bool), bool (*r)(atomic_uint *))
{
	acquire = a;
	release = r;
}

static const char *const scenarios[][EXPLORE_THREADS + 1] = {
	{"0", "1"},	 {"00", "0"},	   {"00", "11"},      {"0", "0", "0"},
	{"0", "1", "p"}, {"00", "0", "p"}, {"0", "c"},	      {"00", "c"},
	{"0", "1", "c"}, {"0", "c", "c"},  {"0", "c", "p"},   {"p0", "p0"},
	{"01", "10"},	 {"0", "1", "2"},  {"00", "11", "p"}, {"01", "10", "c"},
};

Test(lane_word, no_work_is_stranded)
{
	set_word(lane_word_acquire, lane_word_release);
	for (unsigned int i = 0; i < ARRAY_SIZE(scenarios); i++) {
		struct explore_result r = run_scripts(scenarios[i], ALONE);

		cr_log_info("scenario %u: %lu states, %lu ends", i, r.states, r.ends);
		cr_assert_null(r.wrong, "scenario %u: %s: %s", i, r.wrong, r.steps);
	}
}

Test(lane_word, what_a_holder_leaves_the_helper_does)
{
	static const char *const with_helper[][EXPLORE_THREADS + 1] = {
		{"0", "1", "h"}, {"00", "0", "h"}, {"0", "c", "h"}, {"00", "h"}};

	set_word(lane_word_acquire, lane_word_release);
	for (unsigned int i = 0; i < ARRAY_SIZE(with_helper); i++) {
		struct explore_result r = run_scripts(with_helper[i], 1);

		cr_log_info("scenario %u: %lu states, %lu ends", i, r.states, r.ends);
		cr_assert_null(r.wrong, "scenario %u: %s: %s", i, r.wrong, r.steps);
	}
}

/* Looks, and then stores: what is set in between is lost. */
static bool release_in_two_steps(atomic_uint *word)
{
	if (atomic_load(word) == LANE_HELD) {
		atomic_store(word, LANE_FREE);
		return true;
	}
	atomic_store(word, LANE_HELD);
	return false;
}

/* The mark is taken away behind the pass that it asked for, and not before it. */
static bool release_behind_the_pass(atomic_uint *word)
{
	unsigned int w = LANE_HELD;

	if (atomic_compare_exchange_strong(word, &w, LANE_FREE))
		return true;
	pass();
	atomic_store(word, LANE_FREE);
	return true;
}

/* Whoever finds the lane held trusts that the holder will look once more. */
static bool acquire_without_a_mark(atomic_uint *word, bool leave_work)
{
	unsigned int w = LANE_FREE;

	return atomic_compare_exchange_strong(word, &w, LANE_HELD);
}

/* Looks whether it is held, and then takes it. */
static bool acquire_in_two_steps(atomic_uint *word, bool leave_work)
{
	if (atomic_load(word) & LANE_HELD)
		return lane_word_acquire(word, leave_work);
	atomic_store(word, LANE_HELD);
	return true;
}

static void finds(bool (*a)(atomic_uint *, bool), bool (*r)(atomic_uint *), const char *const *with,
		  const char *what)
{
	struct explore_result result;

	set_word(a, r);
	result = run_scripts(with, ALONE);
	cr_assert_not_null(result.wrong);
	cr_assert_str_eq(result.wrong, what, "%s", result.steps);
}

Test(lane_word, the_explorer_finds_words_that_are_wrong)
{
	static const char *const posts[] = {"0", "12", NULL, NULL};
	/* The control call's release alone can lose a mark, and a step that reads nothing comes before it. */
	static const char *const control_call[] = {"0", "c", NULL, NULL};

	finds(lane_word_acquire, release_in_two_steps, posts, "work was stranded");
	finds(lane_word_acquire, release_in_two_steps, control_call, "work was stranded");
	finds(lane_word_acquire, release_behind_the_pass, posts, "work was stranded");
	finds(acquire_without_a_mark, lane_word_release, posts, "work was stranded");
	finds(acquire_in_two_steps, lane_word_release, posts, "two threads are in the lane");
}

static void wake(void)
{
	atomic_store(&s.woken, 1);
}

static void wait_until_woken(void)
{
	bool waited = false;
	uint64_t now;

	for (now = explore_now(); !atomic_load(&s.woken); now = explore_now()) {
		waited = true;
		explore_forget(1);
		explore_wait_change(now);
	}
	check(!waited, "a thread that had waited went on");
}

Test(lane_word, the_explorer_runs_a_thread_that_has_waited)
{
	struct explore m = {.nthreads = 2,
			    .thread = {wake, wait_until_woken},
			    .begun = true,
			    .setup = begin,
			    .check = finish,
			    .shared = &s,
			    .shared_size = sizeof(s)};

	cr_assert_not_null(explore(&m).wrong);
}

/* --- packets from lane to lane --- */

#define PACKETS 3

static struct {
	struct handover lane[2];
	unsigned int taken;
	/* One less than are sent: the last needs what has come back. */
	struct handover_packet room[PACKETS - 1];
} h __attribute__((aligned(CACHE_LINE)));

static void begin_packets(void)
{
	memset(&h, 0, sizeof(h));
	memset(h.room, 0xa5, sizeof(h.room));
	h.lane[0].used = HANDOVER_PACKETS - ARRAY_SIZE(h.room);
	/* As if the room were the end of a whole array: as a number, since there is none before it. */
	h.lane[0].packets =
		(struct handover_packet *)((uintptr_t)h.room - h.lane[0].used * sizeof(h.room[0]));
}

static void give_packets(void)
{
	for (uint8_t i = 0; i < PACKETS;) {
		struct link_rx rx = {.data = &i, .len = 1, .ip.sport = i};
		uint64_t now = explore_now();

		if (handover_give(&h.lane[0], &h.lane[1], &rx))
			i++;
		else
			explore_wait_change(now);
	}
}

static void take_packets(void)
{
	while (h.taken < PACKETS) {
		uint64_t now = explore_now();
		struct pile_node *n = handover_take(&h.lane[1]), *next;

		if (!n)
			explore_wait_change(now);
		for (; n; n = next) {
			struct handover_packet *p = handover_packet_of(n);

			next = n->next;
			check(p->home == &h.lane[0] && p->len == 1 && p->ip.sport == h.taken &&
				      p->data[0] == h.taken,
			      "a packet is not whole, or not the next");
			h.taken++;
			handover_return(p);
		}
	}
}

static void all_taken(void)
{
	check(h.taken == PACKETS, "a packet was lost");
}

Test(lane_word, handover_give__a_packet_that_is_found_is_whole)
{
	struct explore m = {.nthreads = 2,
			    .thread = {give_packets, take_packets},
			    .setup = begin_packets,
			    .check = all_taken,
			    .shared = &h,
			    .shared_size = sizeof(h)};
	struct explore_result r = explore(&m);

	cr_log_info("%lu states, %lu ends", r.states, r.ends);
	cr_assert_null(r.wrong, "%s: %s", r.wrong, r.steps);
	cr_assert_gt(r.ends, 1u);
}
