/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the owner of an SRQ does for TGT QPs that other processes run. Theory in foreign.h.
 *
 * A peer is one runner. For each of its QPs that has executed something here there is a stand-in: a
 * struct qp that no table knows, with a lane that has no link and runs nothing. The lane only tells the time
 * of completions. A stand-in's responder holds the message in progress and the receive that was taken
 * for it; nothing else of the QP is used.
 *
 * A packet that was executed has left its sequence number and the reply behind. The runner sends one
 * packet of a QP at a time, so the last is enough. A verdict that executed nothing (RNR) is not kept:
 * the same packet comes again, with a new number, when there may be a receive.
 *
 * Only the serving thread touches a peer. It holds no lane and needs none: receive queues, CQs and keys are
 * made for many lanes, and objects stay for the RCU read section round each request.
 */
#include "engine/resp.h"

#include "engine/cq.h"
#include "engine/mr.h"
#include "engine/qp_state.h"
#include "engine/usercopy.h"

#include <stdlib.h>

#define BUCKETS 64

struct stand_in {
	struct qp qp;
	uint64_t seq; /* of the last packet with a verdict that is kept; 0: none */
	struct foreign_reply reply;
	struct stand_in *next; /* in its bucket */
};

struct foreign_peer {
	struct lane lane; /* only now, engine and index are used */
	struct stand_in *bucket[BUCKETS];
	unsigned int n;
};

struct foreign_peer *foreign_peer_create(struct engine *e)
{
	struct foreign_peer *p;

	if (posix_memalign((void **)&p, CACHE_LINE, sizeof(*p)))
		return NULL;
	memset(p, 0, sizeof(*p));
	p->lane.engine = e;
	p->lane.index = CQ_FOREIGN;
	return p;
}

/* Where the stand-in for @qpn hangs, or would. */
static struct stand_in **find(struct foreign_peer *p, uint32_t qpn)
{
	struct stand_in **at = &p->bucket[qpn % BUCKETS];

	while (*at && (*at)->qp.qpn != qpn)
		at = &(*at)->next;
	return at;
}

static struct stand_in *find_or_add(struct foreign_peer *p, uint32_t qpn)
{
	struct stand_in **at = find(p, qpn), *s = *at;

	if (s)
		return s;
	if (p->n >= RXE_MAX_QP || posix_memalign((void **)&s, CACHE_LINE, sizeof(*s)))
		return NULL;
	memset(s, 0, sizeof(*s));
	s->qp.engine = p->lane.engine;
	s->qp.lane = &p->lane;
	s->qp.qpn = qpn;
	s->qp.type = IBV_QPT_XRC_RECV;
	s->qp.transport = WIRE_TRANSPORT_XRC;
	s->qp.stand_in = true;
	qp_state_set(&s->qp, IBV_QPS_RTS);
	*at = s;
	p->n++;
	return s;
}

/* The message in progress will not go on. */
static void end_message(struct stand_in *s, enum ibv_wc_status status)
{
	if (s->qp.resp.have_rqe)
		qp_fail_receive(&s->qp, status);
	s->qp.resp.in_msg = false;
}

static void drop(struct foreign_peer *p, struct stand_in **at, enum ibv_wc_status status)
{
	struct stand_in *s = *at;

	end_message(s, status);
	*at = s->next;
	p->n--;
	free(s);
}

void foreign_peer_destroy(struct foreign_peer *p, uint64_t now)
{
	p->lane.now = now;
	rcu_read_lock();
	for (unsigned int i = 0; i < BUCKETS; i++)
		while (p->bucket[i])
			drop(p, &p->bucket[i], IBV_WC_WR_FLUSH_ERR);
	rcu_read_unlock();
	free(p);
}

/* The SRQ that is asked for, if it is in that domain. */
static struct srq *target(struct foreign_peer *p, const struct foreign_request *req)
{
	struct srq *srq = engine_srq_find(p->lane.engine, req->srqn);

	if (!srq || !srq->xrcd->shared || srq->xrcd->dev != req->dev || srq->xrcd->ino != req->ino)
		return NULL;
	return srq;
}

/* FOREIGN_CHECK and FOREIGN_FETCH. No window of type 2 was bound by a QP of another process. */
static enum verdict read_memory(struct foreign_peer *p, const struct foreign_request *req,
				struct foreign_reply *reply, uint8_t *data)
{
	bool fetch = req->what == FOREIGN_FETCH;
	struct srq *srq = target(p, req);
	const uint8_t *src;

	if (!srq)
		return RESP_BAD_TARGET;
	if (!req->length)
		return RESP_OK;
	if (req->length > (fetch ? FOREIGN_MAX_DATA : RXE_MAX_MSG))
		return RESP_BAD_LENGTH;
	src = mr_remote(p->lane.engine, srq->pd, NULL, req->rkey, req->va, req->length,
			IBV_ACCESS_REMOTE_READ);
	if (!src || (fetch && usercopy(data, src, req->length)))
		return RESP_BAD_KEY;
	reply->data_len = fetch ? req->length : 0;
	return RESP_OK;
}

static struct wire_pkt packet(const struct foreign_request *req, const uint8_t *payload)
{
	return (struct wire_pkt){
		.op = wire_opcode(req->opcode),
		.se = req->se,
		.dest_qpn = req->qpn,
		.srqn = req->srqn,
		.va = req->va,
		.rkey = req->rkey,
		.dma_len = req->length,
		.swap_add = req->swap_add,
		.compare = req->compare,
		.imm_be = req->imm_be,
		.inv_rkey = req->inv_rkey,
		.payload = payload,
		.payload_len = req->payload_len,
	};
}

static bool is_executable(const struct wire_opcode *op)
{
	if (!op || op->transport != WIRE_TRANSPORT_XRC)
		return false;
	return op->kind == WIRE_KIND_SEND || op->kind == WIRE_KIND_WRITE ||
	       op->kind == WIRE_KIND_CMP_SWAP || op->kind == WIRE_KIND_FETCH_ADD;
}

static enum verdict execute(struct foreign_peer *p, const struct foreign_request *req,
			    const uint8_t *payload, struct foreign_reply *reply)
{
	struct wire_pkt pkt = packet(req, payload);
	struct srq *srq = target(p, req);
	struct stand_in *s;
	enum verdict v;

	if (!is_executable(pkt.op) || req->mtu > FOREIGN_MAX_DATA)
		return RESP_BAD_SEQUENCE;
	s = find_or_add(p, req->qpn);
	if (!s)
		return RESP_FULL;
	if (s->seq == req->seq) {
		*reply = s->reply;
		return reply->verdict;
	}
	if (pkt.op->pos & WIRE_POS_FIRST)
		end_message(s, IBV_WC_WR_FLUSH_ERR);
	if (!srq) {
		end_message(s, IBV_WC_WR_FLUSH_ERR);
		return RESP_BAD_TARGET;
	}
	s->qp.xrcd = srq->xrcd;
	s->qp.mtu = req->mtu;
	v = resp_serve(&s->qp, &pkt, &reply->orig);
	reply->broken = s->qp.broken;
	reply->verdict = v;
	if (v != RESP_RNR) {
		s->seq = req->seq;
		s->reply = *reply;
	}
	return v;
}

bool foreign_serve(struct foreign_peer *p, const struct foreign_request *req,
		   const uint8_t *payload, struct foreign_reply *reply, uint8_t *data, uint64_t now)
{
	struct stand_in **at;
	enum verdict v;

	memset(reply, 0, sizeof(*reply));
	p->lane.now = now;
	rcu_read_lock();
	switch (req->what) {
	case FOREIGN_EXECUTE:
		v = execute(p, req, payload, reply);
		break;
	case FOREIGN_CHECK:
	case FOREIGN_FETCH:
		v = read_memory(p, req, reply, data);
		break;
	default:
		at = find(p, req->qpn);
		if (*at)
			drop(p, at, req->status ? req->status : IBV_WC_WR_FLUSH_ERR);
		rcu_read_unlock();
		return false;
	}
	rcu_read_unlock();
	reply->id = req->id;
	reply->verdict = v;
	return true;
}
