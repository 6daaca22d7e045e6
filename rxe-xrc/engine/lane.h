/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A lane: the unit of progress.
 *
 * It owns a link, a set of QPs (by the low bits of their number) and a heap of deadlines, and one thread at a
 * time runs it: the program's own, while it posts and polls, or the helper thread. An engine has one lane or
 * several (RXE_LANES), which run in parallel. The data path never waits for a lane. Its word is FREE, HELD or
 * HELD|PENDING (lane_word.h):
 *
 *   acquire  CAS FREE -> HELD; if it is held, set PENDING (and try again when it was FREE after all)
 *   release  CAS HELD -> FREE; if that fails PENDING was set: clear it and run another pass
 *
 * so whoever finds the lane held leaves his work to the holder, which sees it. After LANE_MAX_PASSES passes
 * the holder hands over to the helper (engine_ops.wake). Control calls do wait: lane_lock().
 *
 * A packet that arrives in a lane which is not its QP's is handed over to that lane (handover.h), which whoever
 * has handed something over runs when he has released his own.
 *
 * One pass: take what was handed over, receive a burst, run the kicked QPs' requesters, run due timers, send the acknowledges that
 * are ripe, flush the link. Acknowledges ripen when the program has posted, when a poll finds nothing to
 * receive, after LANE_ACK_COUNT requests for one, or after LANE_ACK_DELAY. While the helper sleeps in the kernel
 * (sleep_until is set) they do not wait at all: the program is not polling, and nobody would come back soon.
 */
#ifndef RXE_ENGINE_LANE_H
#define RXE_ENGINE_LANE_H

#include "engine/engine.h"
#include "base/lock.h"
#include "base/macros.h"
#include "base/pile.h"
#include "engine/handover.h"
#include "engine/lane_word.h"
#include "engine/timer.h"

#include <urcu/list.h>

/* sleep_until: before every deadline. */
#define LANE_AWAKE 1u

/* Passes that one holder makes on others' behalf before it hands over. */
#define LANE_MAX_PASSES 16
/* An acknowledge waits no longer than this for a post to ride behind, ns. */
#define LANE_ACK_DELAY 20000
/* Acknowledge requests after which it does not wait: with AckReq on every 16th packet, 32 packets. */
#define LANE_ACK_COUNT 2
/* Packets that one QP may send in one pass before the others get their turn. */
#define LANE_TX_BUDGET 64

/* Who runs the lane, which decides when acknowledges go out. */
enum lane_why {
	LANE_POST,   /* the program posted: its packets first, then acknowledges */
	LANE_POLL,   /* the program polls: acknowledges go when nothing arrives */
	LANE_HELPER, /* the helper, a look by who polls others, a control call: they go at once */
};

struct lane {
	struct engine *engine;
	unsigned int index;
	struct link *link;
	struct stats stats;
	struct timer_heap timers;
	struct cds_list_head ready; /* QPs that have more to send than their budget allowed */
	struct cds_list_head acks;  /* QPs that owe an acknowledge or READ responses */
	uint64_t now;		    /* of the pass under way */
	int cancel;	 /* cancel state of the holder, which is not cancelled while it holds */
	bool more;	 /* packets or responses are left for the next pass */
	uint32_t handed; /* lanes that got packets from this one and must be run; a bit each */
	/* Under engine ctl: its QPs, XRC TGT QPs and others */
	unsigned int ntgts, nothers;

	atomic_uint word CACHE_ALIGNED;
	struct pile kicked; /* QPs with something to do */
	/* Published at release: when the lane wants to run next. */
	_Atomic uint64_t deadline;
	/*
	 * The helper sleeps until then; a deadline before it calls engine_ops.wake(). 0: it leaves the lane to
	 * the program, which polls. LANE_AWAKE: it is at work, and will look at the deadline before it sleeps.
	 */
	_Atomic uint64_t sleep_until;
	struct handover handover;
};

/** lane_create() - lane @index of @e, without a link. 0 or -ENOMEM. */
int lane_create(struct engine *e, unsigned int index, struct lane **out);
/** lane_destroy() - destroys its link too. No QP may be left; NULL is nothing. */
void lane_destroy(struct lane *lane);

/** lane_set_link() - gives the lane its link, which it will destroy. Before the first QP. */
void lane_set_link(struct lane *lane, struct link *link);

/**
 * lane_run() - acquire, pass, release; returns at once when another thread holds the lane.
 * @now: nanoseconds, never going back by more than the skew between cores
 *
 * Return: whether something was received or sent.
 */
bool lane_run(struct lane *lane, uint64_t now, enum lane_why why);

/**
 * lane_try() - the same, for a thread that polls several lanes: 1 when something was received or sent, 0 when
 * not, -EBUSY when another thread holds the lane. If nothing came of any of them it calls lane_give_way().
 */
int lane_try(struct lane *lane, uint64_t now, enum lane_why why);

/**
 * lane_give_way() - the holder may be waiting for this very processor: a program that goes on polling kept its
 * preempted helper from it for half a second and more (three pairs on one core, 2026-11-29). To a holder at work on
 * another core the yield costs nothing. A program of a real-time class sleeps now and then, too (give_way_once()).
 */
static inline void lane_give_way(void)
{
	give_way_once();
}

/**
 * lane_lock(), lane_unlock() - exclusion for control calls, and an RCU read section; lane_unlock() makes one
 * pass and whatever became pending.
 * @now: as lane_run(); it becomes lane->now
 */
void lane_lock(struct lane *lane, uint64_t now);
void lane_unlock(struct lane *lane);

/**
 * lanes_open_gid() - makes an address usable in every lane, in the order of the lanes. Control call, no lane held.
 * Return: 0 or what the link's open_gid() says.
 */
int lanes_open_gid(struct engine *e, unsigned int sgid_index, uint64_t now);

/** lane_of() - the lane of a QP number: its low bits, by which the kernel steers packets, too (net/udp.h). */
static inline struct lane *lane_of(struct engine *e, uint32_t qpn)
{
	return e->lanes[qpn & (e->nlanes - 1)];
}

/**
 * lane_ready() - @qp may send: its requester runs later in this pass. Lane held.
 * lane_owe() - @qp owes its peer an acknowledge or responses. Lane held.
 */
void lane_ready(struct qp *qp);
void lane_owe(struct qp *qp);

/** lane_hand_over() - @rx belongs to lane @to: copied, or dropped and counted. @lane is held. */
void lane_hand_over(struct lane *lane, struct lane *to, const struct link_rx *rx);

/** lane_deadline() - @qp wants to be called at @when at the latest; an earlier deadline stays. Lane held. */
void lane_deadline(struct qp *qp, uint64_t when);

/** lane_kick() - puts @qp on the pile of kicked QPs; any thread. The caller runs the lane afterwards. */
void lane_kick(struct qp *qp);

/** lane_forget() - takes @qp off every list of its lane; lane locked. */
void lane_forget(struct qp *qp);

#endif
