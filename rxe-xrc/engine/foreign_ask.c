/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the runner of a TGT QP asks the owner of an SRQ in another process. Theory in foreign.h.
 *
 * Only foreign_execute() changes anything over there, so only it needs a sequence number. The owner's
 * verdict is believed if it is one; a broken library at the other end shall not break this one.
 */
#include "engine/foreign_ask.h"

#include <errno.h>

static struct foreign_request question(const struct qp *qp, enum foreign_what what, uint32_t srqn)
{
	return (struct foreign_request){
		.what = what,
		.dev = qp->xrcd->dev,
		.ino = qp->xrcd->ino,
		.qpn = qp->qpn,
		.srqn = srqn,
		.mtu = qp->mtu,
	};
}

static enum verdict ask(struct qp *qp, struct foreign_request *req, const void *payload,
			struct foreign_reply *reply, void *data)
{
	struct engine *e = qp->engine;
	int err;

	stats_inc(&qp->lane->stats, STAT_foreign_requests);
	qp->resp.foreign_used = true;
	err = e->ops->foreign->ask(e, req, payload, reply, data);
	if (err)
		return err == -ENOENT ? RESP_BAD_TARGET : RESP_SILENT;
	if (reply->broken)
		qp->broken = true;
	return reply->verdict < RESP_VERDICTS ? reply->verdict : RESP_BAD_TARGET;
}

/* Only what the packet has: the rest of @pkt is what lay on the stack, which is no other process's business. */
static void add_headers(struct foreign_request *req, const struct wire_pkt *pkt)
{
	unsigned int headers = pkt->op->headers;

	if (headers & (WIRE_H_RETH | WIRE_H_ATOMICETH)) {
		req->va = pkt->va;
		req->rkey = pkt->rkey;
	}
	if (headers & WIRE_H_RETH)
		req->length = pkt->dma_len;
	if (headers & WIRE_H_ATOMICETH) {
		req->compare = pkt->compare;
		req->swap_add = pkt->swap_add;
	}
	if (headers & WIRE_H_IMMDT)
		req->imm_be = pkt->imm_be;
	if (headers & WIRE_H_IETH)
		req->inv_rkey = pkt->inv_rkey;
}

enum verdict foreign_execute(struct qp *qp, const struct wire_pkt *pkt, uint64_t *orig)
{
	struct foreign_request req = question(qp, FOREIGN_EXECUTE, pkt->srqn);
	struct foreign_reply reply = {};
	struct qp_resp *r = &qp->resp;
	enum verdict v;

	if (!r->foreign_open)
		r->foreign_seq = atomic_fetch_add(&qp->engine->foreign_seq, 1) + 1;
	r->foreign_open = true;
	req.seq = r->foreign_seq;
	req.opcode = pkt->op->code;
	req.se = pkt->se;
	req.payload_len = pkt->payload_len;
	add_headers(&req, pkt);
	v = ask(qp, &req, pkt->payload, &reply, NULL);
	if (v != RESP_SILENT)
		r->foreign_open = false;
	*orig = reply.orig;
	return v;
}

enum verdict foreign_check(struct qp *qp, const struct wire_pkt *pkt)
{
	struct foreign_request req = question(qp, FOREIGN_CHECK, pkt->srqn);
	struct foreign_reply reply = {};

	req.va = pkt->va;
	req.rkey = pkt->rkey;
	req.length = pkt->dma_len;
	return ask(qp, &req, NULL, &reply, NULL);
}

enum verdict foreign_fetch(struct qp *qp, const struct qp_resp_job *job, uint32_t offset,
			   uint8_t *dst, uint32_t n)
{
	struct foreign_request req = question(qp, FOREIGN_FETCH, job->srqn);
	struct foreign_reply reply = {};
	enum verdict v;

	req.va = job->va + offset;
	req.rkey = job->rkey;
	req.length = n;
	v = ask(qp, &req, NULL, &reply, dst);
	return v == RESP_OK && reply.data_len != n ? RESP_SILENT : v;
}

void foreign_abandon(struct qp *qp, enum ibv_wc_status status)
{
	struct foreign_request req;

	if (likely(!qp->resp.foreign_used))
		return;
	req = question(qp, FOREIGN_ABANDON,
		       qp->resp.in_msg || qp->resp.foreign_open ? qp->resp.srqn : 0);
	req.status = status;
	qp->engine->ops->foreign->tell(qp->engine, &req);
	qp->resp.foreign_used = qp->resp.foreign_open = false;
}
