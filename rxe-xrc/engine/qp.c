/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs as objects: create, open, modify, query, close.
 *
 * Control calls change tables and reference counts under the engine's ctl mutex, and what a lane looks at with
 * the lane locked; where both are needed ctl comes first. Nothing waits for a grace period while holding either.
 */
#include "engine/qp.h"

#include "base/log.h"
#include "engine/ah.h"
#include "engine/foreign_ask.h"
#include "engine/mr.h"
#include "engine/qp_state.h"
#include "engine/req.h"
#include "engine/resp.h"
#include "wire/psn.h"

#include <errno.h>
#include <stdlib.h>

#define ACCESS_FLAGS                                                                               \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

static uint8_t transport_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_UC:
		return WIRE_TRANSPORT_UC;
	case IBV_QPT_UD:
		return WIRE_TRANSPORT_UD;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return WIRE_TRANSPORT_XRC;
	default:
		return WIRE_TRANSPORT_RC;
	}
}

/* --- lookups --- */

static int match_qpn(struct cds_lfht_node *node, const void *key)
{
	return container_of(node, struct qp, node)->qpn == *(const uint32_t *)key;
}

struct qp *qp_find(struct engine *e, uint32_t qpn)
{
	struct cds_lfht_node *node = engine_table_find(e->qps, match_qpn, qpn);

	return node ? container_of(node, struct qp, node) : NULL;
}

void qp_event(struct qp *qp, enum ibv_event_type type)
{
	struct qp_handle *h;

	cds_list_for_each_entry (h, &qp->handles, list)
		qp->engine->ops->async_event(qp->engine, type, h->user);
}

/* --- create and close --- */

static int check_init(const struct qp_init *init)
{
	const struct ibv_qp_cap *cap = &init->cap;

	switch (init->type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
		if (!init->pd || !init->send_cq || !init->recv_cq || init->xrcd)
			return -EINVAL;
		break;
	case IBV_QPT_XRC_SEND:
		if (!init->pd || !init->send_cq || init->srq || init->xrcd)
			return -EINVAL;
		break;
	case IBV_QPT_XRC_RECV:
		return init->xrcd && !init->srq ? 0 : -EINVAL;
	default:
		return -EOPNOTSUPP;
	}
	/* ibv_create_qp(3): an SRQ is for RC and UD. */
	if (init->srq && init->type == IBV_QPT_UC)
		return -EINVAL;
	/* An XRC SRQ is reached by its number only. */
	if (init->srq && init->srq->type == IBV_SRQT_XRC)
		return -EINVAL;
	if (cap->max_send_wr > RXE_MAX_QP_WR || cap->max_send_sge > RXE_MAX_SGE ||
	    cap->max_inline_data > RXE_MAX_INLINE)
		return -EINVAL;
	/* With an SRQ the receive queue's numbers mean nothing (case B4). */
	if (init->type != IBV_QPT_XRC_SEND && !init->srq &&
	    (cap->max_recv_wr > RXE_MAX_QP_WR || cap->max_recv_sge > RXE_MAX_SGE))
		return -EINVAL;
	return 0;
}

static int create_queues(struct qp *qp, struct qp_init *init)
{
	struct ibv_qp_cap *cap = &init->cap;
	int ret;

	if (init->type == IBV_QPT_XRC_RECV) {
		memset(cap, 0, sizeof(*cap));
		return 0;
	}
	if (init->srq || init->type == IBV_QPT_XRC_SEND)
		cap->max_recv_wr = cap->max_recv_sge = 0;
	ret = wq_init(&qp->sq, cap->max_send_wr, max_t(uint32_t, cap->max_send_sge, 1),
		      cap->max_inline_data);
	if (ret)
		return ret;
	cap->max_send_wr = qp->sq.capacity;
	cap->max_send_sge = qp->sq.max_sge;
	cap->max_inline_data = qp->sq.max_inline;
	if (init->srq || init->type == IBV_QPT_XRC_SEND)
		return 0;
	ret = rq_create_private(cap->max_recv_wr, max_t(uint32_t, cap->max_recv_sge, 1), &qp->rq);
	if (ret) {
		wq_fini(&qp->sq);
		return ret;
	}
	cap->max_recv_wr = rq_max_wr(qp->rq);
	cap->max_recv_sge = rq_max_sge(qp->rq);
	return 0;
}

/* Room for its completions; ctl held. */
static int reserve_queues(struct qp *qp)
{
	unsigned int lane = qp->lane->index;
	int ret = 0;

	if (qp->send_cq)
		ret = cq_reserve(qp->send_cq, lane);
	if (!ret && qp->recv_cq)
		ret = cq_reserve(qp->recv_cq, lane);
	if (!ret && qp->xrcd)
		ret = xrcd_reserve_lane(qp->xrcd, lane);
	return ret;
}

/* Takes its completions away; lane held. */
static void clean_queues(struct qp *qp)
{
	if (qp->send_cq)
		cq_clean(qp->send_cq, qp->lane->index, qp->qpn);
	if (qp->recv_cq)
		cq_clean(qp->recv_cq, qp->lane->index, qp->qpn);
}

static void count_refs(struct qp *qp, int n)
{
	if (qp->pd)
		atomic_fetch_add(&qp->pd->refs, n);
	if (qp->send_cq) {
		atomic_fetch_add(&qp->send_cq->refs, n);
		cq_count_lane(qp->send_cq, qp->lane->index, n);
	}
	if (qp->recv_cq) {
		atomic_fetch_add(&qp->recv_cq->refs, n);
		cq_count_lane(qp->recv_cq, qp->lane->index, n);
	}
	if (qp->srq)
		atomic_fetch_add(&qp->srq->refs, n);
	if (qp->xrcd) {
		atomic_fetch_add(&qp->xrcd->refs, n);
		xrcd_count_lane(qp->xrcd, qp->lane->index, n);
	}
}

static struct qp_handle *handle_create(struct qp *qp, void *user)
{
	struct qp_handle *h = calloc(1, sizeof(*h));

	if (h) {
		h->qp = qp;
		h->user = user;
	}
	return h;
}

/* Where a lane counts QPs of @qp's kind: what receives for an SRQ, and the rest. */
static unsigned int *lane_count(struct lane *lane, const struct qp *qp)
{
	return qp->type == IBV_QPT_XRC_RECV ? &lane->ntgts : &lane->nothers;
}

/* One QP more in its lane (@n 1), or less (-1). Under ctl. */
static void count_in_lane(struct qp *qp, int n)
{
	struct lane *lane = qp->lane;

	*lane_count(lane, qp) += n;
	if (lane->ntgts + lane->nothers)
		atomic_fetch_or(&qp->engine->lanes_used, 1u << lane->index);
	else
		atomic_fetch_and(&qp->engine->lanes_used, ~(1u << lane->index));
}

/*
 * The lane that has fewest QPs of this kind: so a few QPs are spread evenly, and a program that makes them in
 * pairs of XRC INI and TGT has each pair in one lane. Under ctl.
 */
static unsigned int pick_lane(struct engine *e, const struct qp *qp)
{
	unsigned int best = 0;

	for (unsigned int i = 1; i < e->nlanes; i++)
		if (*lane_count(e->lanes[i], qp) < *lane_count(e->lanes[best], qp))
			best = i;
	return best;
}

/*
 * A number of lane @lane that no QP has, in random order so that a stale packet rarely meets a new QP.
 * Under ctl.
 */
static uint32_t pick_qpn(struct engine *e, unsigned int lane)
{
	uint32_t qpn;

	rcu_read_lock();
	do {
		qpn = RXE_QPN_FIRST + engine_random(e) % (RXE_QPN_LAST - RXE_QPN_FIRST + 1);
		qpn = (qpn & ~(e->nlanes - 1)) | lane;
	} while (qp_find(e, qpn));
	rcu_read_unlock();
	return qpn;
}

/* Gives the QP a number and a lane, and makes it findable. */
static int publish(struct engine *e, struct qp *qp, struct qp_handle *h)
{
	int ret;

	engine_lock(e);
	if (e->nqps >= RXE_MAX_QP) {
		ret = -ENOMEM;
		goto out;
	}
	qp->qpn = pick_qpn(e, pick_lane(e, qp));
	qp->lane = lane_of(e, qp->qpn);
	ret = reserve_queues(qp);
	if (ret)
		goto out;
	lane_lock(qp->lane, 0);
	ret = timer_heap_reserve(&qp->lane->timers, qp->lane->ntgts + qp->lane->nothers + 1);
	if (!ret)
		count_in_lane(qp, 1);
	lane_unlock(qp->lane);
	if (ret)
		goto out;
	e->nqps++;
	count_refs(qp, 1);
	cds_list_add(&h->list, &qp->handles);
	engine_table_grow(e->qps, e->nqps);
	rcu_read_lock();
	cds_lfht_add(e->qps, engine_hash(qp->qpn), &qp->node);
	rcu_read_unlock();
out:
	engine_unlock(e);
	return ret;
}

static void qp_free(struct qp *qp)
{
	resp_destroy(qp);
	if (qp->rq)
		rq_destroy(qp->rq);
	wq_fini(&qp->sq);
	free(qp);
}

int qp_create(struct engine *e, struct qp_init *init, struct qp_handle **out)
{
	struct qp_handle *h;
	struct qp *qp;
	int ret;

	ret = check_init(init);
	if (ret)
		return ret;
	if (posix_memalign((void **)&qp, CACHE_LINE, sizeof(*qp)))
		return -ENOMEM;
	memset(qp, 0, sizeof(*qp));
	qp->engine = e;
	qp->type = init->type;
	qp->transport = transport_of(init->type);
	qp->sq_sig_all = init->sq_sig_all;
	if (init->type != IBV_QPT_XRC_RECV) {
		qp->pd = init->pd;
		qp->send_cq = init->send_cq;
		qp->srq = init->srq;
		if (init->type != IBV_QPT_XRC_SEND)
			qp->recv_cq = init->recv_cq;
	} else {
		qp->xrcd = init->xrcd;
	}
	CDS_INIT_LIST_HEAD(&qp->handles);
	timer_init(&qp->timer);
	qp_state_set(qp, IBV_QPS_RESET);
	qp->req.deadline = TIMER_NEVER;
	ret = create_queues(qp, init);
	if (ret)
		goto err_free;
	qp->cap = init->cap;
	h = handle_create(qp, init->user);
	ret = h ? publish(e, qp, h) : -ENOMEM;
	if (ret)
		goto err_handle;
	*out = h;
	return 0;

err_handle:
	free(h);
err_free:
	qp_free(qp);
	return ret;
}

int qp_open(struct xrcd *xrcd, uint32_t qpn, void *user, struct qp_handle **out)
{
	struct engine *e = xrcd->engine;
	struct qp_handle *h;
	struct qp *qp;
	int ret = -EINVAL;

	engine_lock(e);
	rcu_read_lock();
	qp = qp_find(e, qpn);
	rcu_read_unlock();
	/* ctl keeps it alive. */
	if (!qp || qp->xrcd != xrcd)
		goto out;
	h = handle_create(qp, user);
	ret = h ? 0 : -ENOMEM;
	if (ret)
		goto out;
	lane_lock(qp->lane, 0);
	cds_list_add_tail(&h->list, &qp->handles);
	lane_unlock(qp->lane);
	*out = h;
out:
	engine_unlock(e);
	return ret;
}

/* The last handle is gone: out of every table and list, then free after a grace period. */
static void retire_qp(struct qp *qp)
{
	struct engine *e = qp->engine;

	rcu_read_lock();
	cds_lfht_del(e->qps, &qp->node);
	rcu_read_unlock();
	lane_lock(qp->lane, 0);
	foreign_abandon(qp, IBV_WC_WR_FLUSH_ERR);
	qp_state_set(qp, IBV_QPS_RESET);
	lane_forget(qp);
	clean_queues(qp);
	count_in_lane(qp, -1);
	lane_unlock(qp->lane);
	mw_unbind_qp(e, qp);
	e->nqps--;
	count_refs(qp, -1);
}

int qp_close(struct qp_handle *h, uint64_t now)
{
	struct qp *qp = h->qp;
	struct engine *e = qp->engine;
	bool last;

	engine_lock(e);
	/* What the peer is owed for what it has sent already goes out first. */
	lane_lock(qp->lane, now);
	if (qp->on_acks)
		resp_output(qp, LANE_TX_BUDGET);
	cds_list_del(&h->list);
	last = cds_list_empty(&qp->handles);
	lane_unlock(qp->lane);
	if (last)
		retire_qp(qp);
	engine_unlock(e);
	free(h);
	if (!last)
		return 0;
	engine_wait_readers();
	qp_free(qp);
	return 0;
}

/* --- modify and query --- */

/* Values, without regard to the transition. */
static int check_values(const struct qp *qp, const struct ibv_qp_attr *a, int mask)
{
	if ((mask & IBV_QP_PORT) && a->port_num != 1)
		return -EINVAL;
	if ((mask & IBV_QP_PKEY_INDEX) && a->pkey_index != 0)
		return -EINVAL;
	if ((mask & IBV_QP_ACCESS_FLAGS) && (a->qp_access_flags & ~ACCESS_FLAGS))
		return -EINVAL;
	if ((mask & IBV_QP_PATH_MTU) &&
	    (a->path_mtu < IBV_MTU_256 || a->path_mtu > qp->engine->active_mtu))
		return -EINVAL;
	if ((mask & IBV_QP_DEST_QPN) && a->dest_qp_num > PSN_MASK)
		return -EINVAL;
	if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && a->max_rd_atomic > RXE_MAX_RD_ATOMIC)
		return -EINVAL;
	if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && a->max_dest_rd_atomic > RXE_MAX_RD_ATOMIC)
		return -EINVAL;
	if ((mask & IBV_QP_TIMEOUT) && a->timeout > 31)
		return -EINVAL;
	if ((mask & IBV_QP_RETRY_CNT) && a->retry_cnt > 7)
		return -EINVAL;
	if ((mask & IBV_QP_RNR_RETRY) && a->rnr_retry > 7)
		return -EINVAL;
	if ((mask & IBV_QP_MIN_RNR_TIMER) && a->min_rnr_timer > 31)
		return -EINVAL;
	/* No automatic path migration. */
	if ((mask & IBV_QP_ALT_PATH) ||
	    ((mask & IBV_QP_PATH_MIG_STATE) && a->path_mig_state != IBV_MIG_MIGRATED))
		return -EOPNOTSUPP;
	return 0;
}

static void take_values(struct qp *qp, const struct ibv_qp_attr *a, int mask)
{
	struct ibv_qp_attr *q = &qp->attr;

	if (mask & IBV_QP_PORT)
		q->port_num = a->port_num;
	if (mask & IBV_QP_PKEY_INDEX)
		q->pkey_index = a->pkey_index;
	if (mask & IBV_QP_ACCESS_FLAGS)
		q->qp_access_flags = a->qp_access_flags;
	if (mask & IBV_QP_QKEY)
		q->qkey = a->qkey;
	if (mask & IBV_QP_AV)
		q->ah_attr = a->ah_attr;
	if (mask & IBV_QP_PATH_MTU)
		q->path_mtu = a->path_mtu;
	if (mask & IBV_QP_DEST_QPN)
		q->dest_qp_num = a->dest_qp_num;
	if (mask & IBV_QP_RQ_PSN)
		q->rq_psn = a->rq_psn & PSN_MASK; /* Linux masks them, too */
	if (mask & IBV_QP_SQ_PSN)
		q->sq_psn = a->sq_psn & PSN_MASK;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		q->max_rd_atomic = a->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		q->max_dest_rd_atomic = a->max_dest_rd_atomic;
	if (mask & IBV_QP_TIMEOUT)
		q->timeout = a->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		q->retry_cnt = a->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		q->rnr_retry = a->rnr_retry;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		q->min_rnr_timer = a->min_rnr_timer;
	q->path_mig_state = IBV_MIG_MIGRATED;
}

static void to_reset(struct qp *qp)
{
	foreign_abandon(qp, IBV_WC_WR_FLUSH_ERR);
	qp_state_set(qp, IBV_QPS_RESET);
	lane_forget(qp);
	atomic_store(&qp->sq.head, atomic_load(&qp->sq.tail));
	while (qp->rq && rq_take(qp->rq, &qp->resp.rqe))
		;
	resp_reset(qp, 0);
	req_reset(qp, 0);
	qp->comm_est = qp->last_wqe = qp->broken = qp->sqd_notify = false;
	memset(&qp->attr, 0, sizeof(qp->attr));
	clean_queues(qp);
}

/* What a transition needs that can fail; done before anything is changed. */
static int prepare(struct qp *qp, const struct ibv_qp_attr *a, int mask, enum ibv_qp_state from,
		   enum ibv_qp_state to, struct link_dest *dest)
{
	struct link *link = qp->lane->link;
	uint32_t dest_qpn = mask & IBV_QP_DEST_QPN ? a->dest_qp_num : qp->attr.dest_qp_num;
	int ret = 0;

	if (mask & IBV_QP_AV) {
		ret = ah_resolve(qp->engine, &a->ah_attr, qp->qpn, dest_qpn, dest);
		/* It must be opened in every lane, and this one is held: qp_modify() does it. */
		if (!ret && link && !(atomic_load(&qp->engine->open_gids) & 1u << dest->sgid_index))
			return -EAGAIN;
	}
	if (!ret && from == IBV_QPS_INIT && to == IBV_QPS_RTR &&
	    (qp->type == IBV_QPT_RC || qp->type == IBV_QPT_XRC_RECV))
		ret = resp_create(qp, a->max_dest_rd_atomic);
	else if (!ret && (mask & IBV_QP_MAX_DEST_RD_ATOMIC) && to == IBV_QPS_SQD)
		ret = resp_create(qp, a->max_dest_rd_atomic);
	return ret;
}

static void enter(struct qp *qp, const struct ibv_qp_attr *a, int mask, enum ibv_qp_state from,
		  enum ibv_qp_state to)
{
	switch (to) {
	case IBV_QPS_RTR:
		/* UD has no path MTU: whatever the port carries. */
		qp->mtu = 128u << (qp->type == IBV_QPT_UD ? qp->engine->active_mtu
							  : qp->attr.path_mtu);
		resp_reset(qp, qp->attr.rq_psn);
		break;
	case IBV_QPS_RTS:
		if (from == IBV_QPS_RTR)
			req_reset(qp, qp->attr.sq_psn);
		lane_ready(qp);
		break;
	case IBV_QPS_SQD:
		qp->sqd_notify = (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) && a->en_sqd_async_notify;
		lane_ready(qp);
		break;
	default:
		break;
	}
	qp_state_set(qp, to);
}

/* The transition, lane locked. */
static int transition(struct qp *qp, const struct ibv_qp_attr *a, int mask)
{
	enum ibv_qp_state from = qp->state;
	enum ibv_qp_state to = mask & IBV_QP_STATE ? a->qp_state : from;
	struct link_dest dest;
	int ret;

	if ((mask & IBV_QP_CUR_STATE) && a->cur_qp_state != from)
		return -EINVAL;
	mask = qp_state_strip(qp->type, mask);
	ret = qp_state_check(qp->type, from, to, mask);
	if (!ret)
		ret = check_values(qp, a, mask);
	if (!ret)
		ret = prepare(qp, a, mask, from, to, &dest);
	if (ret)
		return ret;
	if (to == IBV_QPS_RESET) {
		to_reset(qp);
		return 0;
	}
	if (to == IBV_QPS_ERR) {
		qp_state_error(qp);
		return 0;
	}
	take_values(qp, a, mask);
	if (mask & IBV_QP_AV)
		qp->dest = dest;
	if (mask & IBV_QP_STATE)
		enter(qp, a, mask, from, to);
	return 0;
}

int qp_modify(struct qp *qp, const struct ibv_qp_attr *attr, int mask, uint64_t now)
{
	int ret;

	for (;;) {
		lane_lock(qp->lane, now);
		ret = transition(qp, attr, mask);
		lane_unlock(qp->lane);
		if (ret != -EAGAIN)
			return ret;
		/* Nothing has changed: the source address is not open yet. */
		ret = lanes_open_gid(qp->engine, attr->ah_attr.grh.sgid_index, now);
		if (ret)
			return ret;
	}
}

int qp_query(struct qp *qp, struct ibv_qp_attr *attr, struct qp_init *init)
{
	lane_lock(qp->lane, 0);
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = qp->state;
	attr->cap = qp->cap;
	attr->sq_draining = qp->state == IBV_QPS_SQD && qp->req.una != qp->req.next;
	if (qp->state != IBV_QPS_RESET && qp->state != IBV_QPS_INIT) {
		/* As Linux: the PSNs that come next. */
		attr->sq_psn = qp->req.next;
		attr->rq_psn = qp->resp.psn;
	}
	lane_unlock(qp->lane);
	*init = (struct qp_init){
		.type = qp->type,
		.pd = qp->pd,
		.send_cq = qp->send_cq,
		.recv_cq = qp->recv_cq,
		.srq = qp->srq,
		.xrcd = qp->xrcd,
		.cap = qp->cap,
		.sq_sig_all = qp->sq_sig_all,
	};
	return 0;
}
