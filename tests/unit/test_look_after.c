/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lanes that a polling thread looks after beside its own: both ends of a connection are one thread's, in different
 * lanes, and only one queue is polled.
 *
 *     end[0]: RC QP and queue in lane 0  <--- 127.0.47.x:4791 --->  end[1]: RC QP and queue in lane 1
 *
 * The helper is held by its lock, as around a fork, so what happens in the other lane is the poller's doing.
 * Nothing here waits for a time: a poller that does not look after the other lane polls until the alarm.
 */
#include "verbs/progress.h"

#include "engine/mr.h"
#include "engine/qp.h"
#include "net/udp.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#define LANES	    4
#define MAX_SECONDS 40

struct end {
	struct cq *cq;
	struct qp_handle *h;
};

static struct engine *engine;
static struct progress progress;
static struct pd *pd;
static struct mr *mr;
static uint8_t mem[256];
static struct end end[2];

static void on_cq_event(struct cq *cq)
{
}

static void on_async_event(struct engine *e, enum ibv_event_type type, void *user)
{
}

static void on_wake(struct engine *e, struct lane *lane)
{
	progress_wake();
}

static void on_port(struct progress *p, enum portmon_what what)
{
}

static const struct engine_ops ops = {
	.cq_event = on_cq_event, .async_event = on_async_event, .wake = on_wake};

static void end_create(struct end *x)
{
	struct qp_init init = {.type = IBV_QPT_RC, .pd = pd, .cap = {4, 4, 1, 1, 0}};

	cr_assert_eq(cq_create(engine, 16, NULL, &x->cq), 0);
	init.send_cq = init.recv_cq = x->cq;
	cr_assert_eq(qp_create(engine, &init, &x->h), 0);
}

static void end_destroy(struct end *x)
{
	cr_assert_eq(qp_close(x->h, now_ns()), 0);
	cr_assert_eq(cq_destroy(x->cq), 0);
}

static void modify(struct end *x, struct ibv_qp_attr attr, int mask)
{
	cr_assert_eq(qp_modify(x->h->qp, &attr, mask | IBV_QP_STATE, now_ns()), 0);
}

/* @timeout: as in struct ibv_qp_attr; one repetition, then an error */
static void connect_to(struct end *x, uint32_t dest_qpn, uint8_t timeout)
{
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest_qpn,
		.ah_attr = {.is_global = 1, .port_num = 1},
	};

	memcpy(rtr.ah_attr.grh.dgid.raw, engine->gids[0].ip, 16);
	modify(x,
	       (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE},
	       IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	modify(x, rtr,
	       IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	modify(x, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = timeout, .retry_cnt = 1},
	       IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC);
}

static void create(void)
{
	struct udp_addr addr = {.ip = {[10] = 0xff, 0xff, 127, 0, 47, 1}};
	struct engine_config c = {
		.ops = &ops, .ngids = 1, .active_mtu = IBV_MTU_4096, .seed = 7, .nlanes = LANES};

	alarm(MAX_SECONDS);
	/* Tests run beside each other, each in a process of its own. */
	addr.ip[14] = (uint8_t)getpid();
	addr.ip[15] = (uint8_t)(getpid() >> 8 | 1);
	memcpy(c.gids[0].ip, addr.ip, 16);
	cr_assert_eq(engine_create(&c, &engine), 0);
	for (unsigned int i = 0; i < LANES; i++) {
		struct udp_config uc = {
			.addrs = &addr, .naddrs = 1, .gso = true, .lane = i, .nlanes = LANES};
		struct link *link;

		cr_assert_eq(udp_create(&uc, &engine->lanes[i]->stats, &link), 0);
		lane_set_link(engine->lanes[i], link);
	}
	cr_assert_eq(lanes_open_gid(engine, 0, now_ns()), 0);
	progress = (struct progress){.engine = engine, .port_changed = on_port};
	cr_assert_eq(progress_attach(&progress), 0);
	cr_assert_eq(pd_create(engine, &pd), 0);
	cr_assert_eq(mr_create(pd, mem, sizeof(mem), (uintptr_t)mem,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &mr),
		     0);
	end_create(&end[0]);
	end_create(&end[1]);
	/* From here on the helper does nothing. */
	progress_fork_prepare();
}

static void destroy(void)
{
	progress_fork_parent();
	progress_detach(&progress);
	end_destroy(&end[0]);
	end_destroy(&end[1]);
	cr_assert_eq(mr_destroy(mr), 0);
	cr_assert_eq(pd_destroy(pd), 0);
	engine_destroy(engine);
}

TestSuite(progress_look_after, .init = create, .fini = destroy);
TestSuite(progress_count, .init = create, .fini = destroy);
TestSuite(progress_unattended, .init = create, .fini = destroy);
TestSuite(progress_blocking, .init = create, .fini = destroy);

static void post_write(struct end *x)
{
	struct ibv_sge sge = {(uintptr_t)mem, 64, mr->key};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = (uintptr_t)mem + 128, .rkey = mr->key},
	};
	struct ibv_send_wr *bad;

	cr_assert_eq(qp_post_send(x->h->qp, &wr, &bad, now_ns()), 0);
}

/* Return: the status of the next completion. */
static enum ibv_wc_status poll_for(struct end *x)
{
	struct cqe cqe;

	while (!cq_poll(x->cq, 1, &cqe))
		progress_run(&progress, cq_lanes(x->cq));
	return cqe.wc.status;
}

static uint32_t lane_bit(const struct end *x)
{
	return 1u << x->h->qp->lane->index;
}

/* --- which lanes have QPs ------------------------------------------------------------------- */

Test(progress_look_after, lanes_in_use_are_known)
{
	struct end more;

	cr_assert_eq(engine->lanes_used, lane_bit(&end[0]) | lane_bit(&end[1]));
	end_create(&more);
	cr_assert_eq(engine->lanes_used, lane_bit(&end[0]) | lane_bit(&end[1]) | lane_bit(&more));
	end_destroy(&more);
	cr_assert_eq(engine->lanes_used, lane_bit(&end[0]) | lane_bit(&end[1]));
}

/* --- who polls them ------------------------------------------------------------------------- */

static void *poll_once(void *arg)
{
	progress_run(&progress, *(uint32_t *)arg);
	return NULL;
}

static void poll_in_another_thread(uint32_t lanes)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, poll_once, &lanes), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

Test(progress_unattended, what_another_thread_polls_is_its)
{
	struct progress_lane *own = &progress.lanes[0], *other = &progress.lanes[1];
	uint64_t then;

	poll_in_another_thread(1u << 1);
	then = other->polled;
	cr_assert_eq(progress_unattended(&progress, own, 1u << 1, then), 0);
	/* The answer stands for a while; then the lane is looked at again. */
	other->polled_by = this_thread();
	cr_assert_eq(progress_unattended(&progress, own, 1u << 1, then + 1), 0);
	cr_assert_eq(progress_unattended(&progress, own, 1u << 1, then + PROGRESS_LOOK), 1u << 1);
}

Test(progress_unattended, what_another_thread_polls_no_more_is_anyones)
{
	struct progress_lane *own = &progress.lanes[0];

	poll_in_another_thread(1u << 1);
	cr_assert_eq(progress_unattended(&progress, own, 1u << 1,
					 progress.lanes[1].polled + PROGRESS_LOOK),
		     1u << 1);
}

Test(progress_unattended, what_this_thread_polls_is_its)
{
	progress_run(&progress, 1u << 1);
	cr_assert_eq(progress_unattended(&progress, &progress.lanes[0], 1u << 1, now_ns()),
		     1u << 1);
}

Test(progress_unattended, a_look_is_no_poll)
{
	connect_to(&end[0], end[1].h->qp->qpn, 14);
	connect_to(&end[1], end[0].h->qp->qpn, 14);
	post_write(&end[0]);
	cr_assert_eq(poll_for(&end[0]), IBV_WC_SUCCESS);
	cr_assert_neq(progress.lanes[end[1].h->qp->lane->index].last, 0);
	cr_assert_eq(progress.lanes[end[1].h->qp->lane->index].polled, 0);
}

/* --- what a poll does for them -------------------------------------------------------------- */

Test(progress_look_after, the_responder_is_in_another_lane)
{
	cr_assert_neq(end[0].h->qp->lane, end[1].h->qp->lane);
	/* The longest timeout: who is not looked after is not saved by a repetition either. */
	connect_to(&end[0], end[1].h->qp->qpn, 31);
	connect_to(&end[1], end[0].h->qp->qpn, 31);
	for (unsigned int i = 0; i < 100; i++) {
		mem[0] = (uint8_t)i;
		post_write(&end[0]);
		cr_assert_eq(poll_for(&end[0]), IBV_WC_SUCCESS);
		cr_assert_eq(mem[128], i);
	}
	/* And the other way round: the queue that has been polled so far belongs to the other lane now. */
	post_write(&end[1]);
	cr_assert_eq(poll_for(&end[1]), IBV_WC_SUCCESS);
}

/* Several lanes are asked about in one call, and only one has something. */
Test(progress_look_after, idle_lanes_beside_the_responders)
{
	struct end idle[LANES - 2];

	for (unsigned int i = 0; i < LANES - 2; i++)
		end_create(&idle[i]);
	cr_assert_eq(engine->lanes_used, (1u << LANES) - 1);
	connect_to(&end[0], end[1].h->qp->qpn, 31);
	connect_to(&end[1], end[0].h->qp->qpn, 31);
	for (unsigned int i = 0; i < 100; i++) {
		post_write(&end[0]);
		cr_assert_eq(poll_for(&end[0]), IBV_WC_SUCCESS);
	}
	for (unsigned int i = 0; i < LANES - 2; i++)
		end_destroy(&idle[i]);
}

/* The peer's number is nobody's, so no answer comes and nothing is ever readable. */
Test(progress_look_after, deadlines_of_another_lane)
{
	connect_to(&end[1], 0x123450 | end[0].h->qp->lane->index, 1);
	post_write(&end[1]);
	while (!cq_used(end[1].cq))
		progress_run(&progress, cq_lanes(end[0].cq));
	cr_assert_eq(poll_for(&end[1]), IBV_WC_RETRY_EXC_ERR);
}

/* --- the modes ------------------------------------------------------------------------------ */

/* A look at the end of a stretch that is long enough. Return: the mode that it leads to. */
static enum progress_mode look_at(struct progress_lane *pl)
{
	uint64_t now = now_ns();

	pl->mode = PROGRESS_SLEEP;
	pl->last = now - PROGRESS_GAP_LOOK;
	pl->stretch = now - pl->required;
	progress_count(pl, now, LANE_HELPER);
	return pl->mode;
}

Test(progress_count, looks_take_a_lane_over)
{
	cr_assert_eq(look_at(&progress.lanes[1]), PROGRESS_APP);
}

Test(progress_count, but_not_from_one_who_waits_for_events)
{
	progress_blocking(&progress, 1u << 1);
	cr_assert_eq(look_at(&progress.lanes[1]), PROGRESS_SLEEP);
	/* He polls again. */
	progress_run(&progress, 1u << 1);
	cr_assert_eq(look_at(&progress.lanes[1]), PROGRESS_APP);
}

/* --- and who has them afterwards ------------------------------------------------------------ */

Test(progress_blocking, the_helper_gets_them_all)
{
	struct progress_lane *own = &progress.lanes[end[0].h->qp->lane->index],
			     *other = &progress.lanes[end[1].h->qp->lane->index];

	connect_to(&end[0], end[1].h->qp->qpn, 31);
	connect_to(&end[1], end[0].h->qp->qpn, 31);
	post_write(&end[0]);
	cr_assert_eq(poll_for(&end[0]), IBV_WC_SUCCESS);
	own->mode = other->mode = PROGRESS_APP;
	progress_blocking(&progress, cq_lanes(end[0].cq));
	cr_assert_eq(own->mode, PROGRESS_SLEEP);
	cr_assert_eq(other->mode, PROGRESS_SLEEP);
}

Test(progress_blocking, but_not_what_another_thread_polls)
{
	struct progress_lane *other = &progress.lanes[end[1].h->qp->lane->index];

	poll_in_another_thread(cq_lanes(end[1].cq));
	other->mode = PROGRESS_APP;
	progress_blocking(&progress, cq_lanes(end[0].cq));
	cr_assert_eq(other->mode, PROGRESS_APP);
}
