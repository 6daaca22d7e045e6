/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lanes: who runs the engine, and in which order one pass does things. The hand-over word and the rules
 * for acknowledges are described in lane.h.
 *
 * Memory order: a thread leaves work on a pile (a kick, or a packet of another lane) before it looks at the word;
 * the holder empties the piles after it has cleared PENDING. lane_word.h has the argument.
 */
#include "engine/lane.h"

#include "engine/comp.h"
#include "engine/qp.h"
#include "engine/qp_state.h"
#include "engine/req.h"
#include "engine/resp.h"
#include "engine/rx.h"

#include <errno.h>
#include <stdlib.h>

_Static_assert(RXE_MAX_LANES == LINK_MAX_LANES, "links know flows by the lane's bits");
_Static_assert(RXE_QPN_FIRST % RXE_MAX_LANES == 0 && (RXE_QPN_LAST + 1) % RXE_MAX_LANES == 0,
	       "any lane's bits make a QPN of the range");

/* Bursts that one pass receives before it lets the program look at its completions. */
#define RX_BURSTS 4

int lane_create(struct engine *e, unsigned int index, struct lane **out)
{
	struct lane *lane;

	if (posix_memalign((void **)&lane, CACHE_LINE, sizeof(*lane)))
		return -ENOMEM;
	memset(lane, 0, sizeof(*lane));
	lane->engine = e;
	lane->index = index;
	if (e->nlanes > 1 && handover_init(&lane->handover)) {
		free(lane);
		return -ENOMEM;
	}
	timer_heap_init(&lane->timers);
	CDS_INIT_LIST_HEAD(&lane->ready);
	CDS_INIT_LIST_HEAD(&lane->acks);
	atomic_store(&lane->deadline, TIMER_NEVER);
	*out = lane;
	return 0;
}

void lane_destroy(struct lane *lane)
{
	if (lane->link)
		lane->link->ops->destroy(lane->link);
	timer_heap_fini(&lane->timers);
	handover_fini(&lane->handover);
	free(lane);
}

void lane_set_link(struct lane *lane, struct link *link)
{
	lane->link = link;
}

void lane_kick(struct qp *qp)
{
	pile_push_once(&qp->lane->kicked, &qp->kick, &qp->kicked);
}

void lane_hand_over(struct lane *lane, struct lane *to, const struct link_rx *rx)
{
	if (!handover_give(&lane->handover, &to->handover, rx)) {
		stats_drop(&lane->stats, DROP_lane_full);
		return;
	}
	stats_inc(&lane->stats, STAT_handed_over);
	lane->handed |= 1u << to->index;
}

void lane_ready(struct qp *qp)
{
	if (qp->on_ready)
		return;
	qp->on_ready = true;
	cds_list_add_tail(&qp->ready, &qp->lane->ready);
}

void lane_owe(struct qp *qp)
{
	if (qp->on_acks)
		return;
	qp->on_acks = true;
	cds_list_add_tail(&qp->acks, &qp->lane->acks);
}

void lane_deadline(struct qp *qp, uint64_t when)
{
	/*
	 * The heap is moved only when the deadline comes nearer. A timer that fires too early looks at the
	 * QP's real deadlines and sets itself again: cheaper than a move for each acknowledge.
	 */
	if (when < qp->timer.when)
		timer_set(&qp->lane->timers, &qp->timer, when);
}

/* Puts the QPs that were kicked on the ready list, in the order of the kicks. */
static void take_kicks(struct lane *lane)
{
	struct pile_node *n, *next;

	for (n = pile_take(&lane->kicked); n; n = next) {
		struct qp *qp = container_of(n, struct qp, kick);

		next = n->next;
		/* From here on a new post kicks again. */
		atomic_store(&qp->kicked, false);
		lane_ready(qp);
	}
}

void lane_forget(struct qp *qp)
{
	take_kicks(qp->lane);
	if (qp->on_ready)
		cds_list_del(&qp->ready);
	if (qp->on_acks)
		cds_list_del(&qp->acks);
	qp->on_ready = qp->on_acks = false;
	timer_set(&qp->lane->timers, &qp->timer, TIMER_NEVER);
}

/* Runs each QP that was ready when the pass came here; one with more to send goes to the end of the list. */
static bool run_ready(struct lane *lane)
{
	struct cds_list_head todo;
	bool sent = false;

	take_kicks(lane);
	if (cds_list_empty(&lane->ready))
		return false;
	CDS_INIT_LIST_HEAD(&todo);
	cds_list_splice(&lane->ready, &todo);
	CDS_INIT_LIST_HEAD(&lane->ready);
	while (!cds_list_empty(&todo)) {
		struct qp *qp = cds_list_first_entry(&todo, struct qp, ready);

		cds_list_del(&qp->ready);
		qp->on_ready = false;
		sent |= req_run(qp);
		qp_check_broken(qp);
	}
	return sent;
}

static void run_timers(struct lane *lane)
{
	struct timer *t;

	while ((t = timer_expire(&lane->timers, lane->now))) {
		struct qp *qp = container_of(t, struct qp, timer);

		comp_timer(qp);
		qp_check_broken(qp);
	}
}

/* May this QP's acknowledge go now? @force: whatever is owed goes. */
static bool ack_is_ripe(const struct lane *lane, const struct qp *qp, bool force)
{
	const struct qp_resp *r = &qp->resp;

	return force || r->ack_urgent || r->job_head != r->job_tail ||
	       r->ack_count >= LANE_ACK_COUNT || lane->now - r->ack_since >= LANE_ACK_DELAY;
}

static bool run_acks(struct lane *lane, bool force)
{
	struct cds_list_head *pos, *next;
	bool sent = false;

	for (pos = lane->acks.next; pos != &lane->acks; pos = next) {
		struct qp *qp = cds_list_entry(pos, struct qp, acks);

		next = pos->next;
		if (!ack_is_ripe(lane, qp, force))
			continue;
		sent = true;
		if (resp_output(qp, LANE_TX_BUDGET)) {
			cds_list_del(&qp->acks);
			qp->on_acks = false;
		} else {
			lane->more = true;
		}
		qp_check_broken(qp);
	}
	return sent;
}

/* Packets that other lanes received. */
static bool receive_handed_over(struct lane *lane)
{
	struct pile_node *n, *next, *first = handover_take(&lane->handover);

	for (n = first; n; n = next) {
		struct handover_packet *p = handover_packet_of(n);
		struct link_rx rx = {.data = p->data, .len = p->len, .ip = p->ip};

		next = n->next;
		rx_packet(lane, &rx);
		handover_return(p);
	}
	return first;
}

static bool receive(struct lane *lane)
{
	struct link_rx rx[LINK_RX_BURST];
	unsigned int n, bursts = 0;

	do {
		n = lane->link->ops->rx_burst(lane->link, rx, LINK_RX_BURST, lane->now);
		for (unsigned int i = 0; i < n; i++)
			rx_packet(lane, &rx[i]);
		/*
		 * What a full burst made ripe goes before the next: the peer's window may depend on it.
		 */
		if (n == LINK_RX_BURST)
			run_acks(lane, false);
	} while (n == LINK_RX_BURST && ++bursts < RX_BURSTS);
	/* The link may have read more than it has handed out: then its descriptor tells nobody. */
	lane->more |= n == LINK_RX_BURST;
	return n || bursts;
}

static bool lane_pass(struct lane *lane, uint64_t now, enum lane_why why)
{
	/* Nobody polls for certain: the helper's mode is told by sleep_until. */
	bool eager = why == LANE_HELPER ||
		     atomic_load_explicit(&lane->sleep_until, memory_order_relaxed);
	bool received, sent = false;

	if (now > lane->now)
		lane->now = now;
	if (!lane->link)
		return false;
	lane->more = false;
	received = receive_handed_over(lane);
	/* Nor does a timer fire while the answer that it waits for lies in the socket. */
	if (why != LANE_POST || timer_next(&lane->timers) <= lane->now)
		received |= receive(lane);
	/*
	 * Before what the program posted: a program that waits for events may count on its peer's send being
	 * complete before the answer arrives, as with hardware (perftest -e has one channel for both).
	 */
	if (eager && !cds_list_empty(&lane->acks))
		sent |= run_acks(lane, true);
	sent |= run_ready(lane);
	if (timer_next(&lane->timers) <= lane->now)
		run_timers(lane);
	if (!cds_list_empty(&lane->acks))
		sent |= run_acks(lane, why != LANE_POLL || !received || eager);
	/* A timer or an acknowledge may have made a requester ready. */
	if (!cds_list_empty(&lane->ready))
		sent |= run_ready(lane);
	lane->link->ops->tx_flush(lane->link, lane->now);
	return received || sent;
}

/*
 * What a holder does before anything else and after all. Links make system calls that are cancellation points,
 * and a thread that is cancelled there would hold the lane for ever; hardware's poll and post have none.
 */
static bool try_enter(struct lane *lane, bool leave_work)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (!lane_word_acquire(&lane->word, leave_work)) {
		pthread_setcancelstate(cancel, NULL);
		return false;
	}
	lane->cancel = cancel;
	rcu_read_lock();
	return true;
}

static void leave(int cancel)
{
	rcu_read_unlock();
	pthread_setcancelstate(cancel, NULL);
}

static uint64_t next_deadline(struct lane *lane)
{
	uint64_t when = timer_next(&lane->timers), link_when;

	if (!lane->link)
		return when;
	link_when = lane->link->ops->next_deadline(lane->link);
	when = min_t(uint64_t, when, link_when);
	if (lane->more || !cds_list_empty(&lane->ready))
		return lane->now;
	if (!cds_list_empty(&lane->acks))
		when = min_t(uint64_t, when, lane->now + LANE_ACK_DELAY);
	return when;
}

/* Gives the lane back. False: work was left meanwhile, and the caller still holds the lane. */
static bool lane_release(struct lane *lane)
{
	atomic_store_explicit(&lane->deadline, next_deadline(lane), memory_order_relaxed);
	return lane_word_release(&lane->word);
}

static void wake_helper(struct lane *lane)
{
	struct engine *e = lane->engine;

	if (e->ops->wake && atomic_load(&lane->deadline) < atomic_load(&lane->sleep_until))
		e->ops->wake(e, lane);
}

/* The lanes that got packets from this one since the last call; lane held. */
static uint32_t take_handed(struct lane *lane)
{
	uint32_t handed = lane->handed;

	lane->handed = 0;
	return handed;
}

/*
 * Passes for what others left, until nothing is left or the helper takes over.
 * Return: the lanes that got packets from this one, for run_others().
 */
static uint32_t lane_finish(struct lane *lane)
{
	uint32_t handed = take_handed(lane);
	int cancel = lane->cancel;

	for (unsigned int passes = 1; !lane_release(lane); passes++) {
		if (passes >= LANE_MAX_PASSES && lane->engine->ops->wake) {
			atomic_store(&lane->deadline, lane->now);
			lane_word_abandon(&lane->word);
			break;
		}
		lane_pass(lane, lane->now, LANE_HELPER);
		handed |= take_handed(lane);
	}
	wake_helper(lane);
	leave(cancel);
	return handed;
}

/*
 * What was handed over is these lanes' to deal with, and they may have nobody who polls. They may hand over in
 * their turn, if work was left with them while they ran: not without end in the program's thread.
 */
static void run_others(struct engine *e, uint32_t lanes, uint64_t now)
{
	int cancel;

	/* Waking makes a system call, too. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	for (unsigned int rounds = 0; lanes; rounds++) {
		struct lane *lane = e->lanes[__builtin_ctz(lanes)];

		if (rounds >= LANE_MAX_PASSES && e->ops->wake) {
			e->ops->wake(e, lane);
			break;
		}
		lanes &= lanes - 1;
		if (!try_enter(lane, true))
			continue;
		lane_pass(lane, now, LANE_POST);
		lanes |= lane_finish(lane);
	}
	pthread_setcancelstate(cancel, NULL);
}

int lane_try(struct lane *lane, uint64_t now, enum lane_why why)
{
	uint32_t handed;
	bool did;

	if (!try_enter(lane, why != LANE_POLL))
		return -EBUSY;
	did = lane_pass(lane, now, why);
	handed = lane_finish(lane);
	if (unlikely(handed))
		run_others(lane->engine, handed, now);
	return did;
}

bool lane_run(struct lane *lane, uint64_t now, enum lane_why why)
{
	int ret = lane_try(lane, now, why);

	if (ret < 0 && why == LANE_POLL)
		lane_give_way();
	return ret > 0;
}

void lane_lock(struct lane *lane, uint64_t now)
{
	unsigned int tries = 0;

	while (!try_enter(lane, false))
		give_way(++tries);
	if (now > lane->now)
		lane->now = now;
}

void lane_unlock(struct lane *lane)
{
	struct engine *e = lane->engine;
	uint64_t now = lane->now;
	uint32_t handed;

	lane_pass(lane, now, LANE_HELPER);
	handed = lane_finish(lane);
	if (unlikely(handed))
		run_others(e, handed, now);
}

int lanes_open_gid(struct engine *e, unsigned int sgid_index, uint64_t now)
{
	int ret = 0;

	for (unsigned int i = 0; i < e->nlanes && !ret; i++) {
		struct lane *lane = e->lanes[i];

		lane_lock(lane, now);
		if (lane->link)
			ret = lane->link->ops->open_gid(lane->link, sgid_index);
		lane_unlock(lane);
	}
	if (!ret)
		atomic_fetch_or(&e->open_gids, 1u << sgid_index);
	return ret;
}
