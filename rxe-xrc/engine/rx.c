/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets that arrive: header checks in the order of IBTA Vol 1 9.6, then the QP, then its responder
 * (requests) or completer (responses).
 *
 * A packet for a QP of another lane is that lane's to check: it is handed over after the look-up.
 *
 * What fails here is discarded without an answer: the sender is not the peer of a connection, or there is no
 * connection. Answers to what a peer does wrong are resp.c's.
 */
#include "engine/rx.h"

#include "engine/comp.h"
#include "engine/qp.h"
#include "engine/qp_state.h"
#include "engine/req.h"
#include "engine/resp.h"

static const enum stat_id verdict_drop[] = {
	[WIRE_SHORT] = DROP_short,
	[WIRE_OPCODE] = DROP_opcode,
	[WIRE_VERSION] = DROP_version,
};

/*
 * The port's one P_Key is the default, with full membership, so a limited member is welcome too
 * (IBTA 10.9.3).
 */
static bool pkey_ok(uint16_t pkey)
{
	return (pkey & 0x7fff) == (WIRE_PKEY_DEFAULT & 0x7fff);
}

/* Does the packet fit the QP's transport, and its half of an XRC connection? */
static bool type_ok(const struct qp *qp, const struct wire_opcode *op)
{
	if (op->transport != qp->transport)
		return false;
	if (qp->type == IBV_QPT_XRC_SEND)
		return !wire_is_request(op);
	if (qp->type == IBV_QPT_XRC_RECV)
		return wire_is_request(op);
	return true;
}

static bool state_ok(const struct qp *qp, const struct wire_opcode *op)
{
	enum ibv_qp_state state = qp->state;

	switch (state) {
	case IBV_QPS_RTR:
		return wire_is_request(op);
	case IBV_QPS_RTS:
	case IBV_QPS_SQD:
	case IBV_QPS_SQE:
		return true;
	default:
		return false;
	}
}

/* A connection's packets come from the address it is connected to, to the address it was made from. */
static bool source_ok(const struct qp *qp, const struct wire_ip *ip)
{
	return !memcmp(ip->src, qp->dest.dgid, 16) &&
	       !memcmp(ip->dst, qp->engine->gids[qp->dest.sgid_index].ip, 16);
}

static void established(struct qp *qp)
{
	if (qp->comm_est || qp->state != IBV_QPS_RTR)
		return;
	qp->comm_est = true;
	qp_event(qp, IBV_EVENT_COMM_EST);
}

/* Why it is not for a QP's responder or completer; STAT_COUNT when it is. */
static enum stat_id classify(struct lane *lane, const struct link_rx *rx, struct wire_pkt *pkt,
			     struct qp **out)
{
	enum wire_verdict v = wire_decode(pkt, rx->data, rx->len);
	struct qp *qp;

	if (unlikely(v != WIRE_OK))
		return verdict_drop[v];
	if (unlikely(!pkey_ok(pkt->pkey)))
		return DROP_pkey;
	qp = qp_find(lane->engine, pkt->dest_qpn);
	if (unlikely(!qp))
		return DROP_no_qp;
	*out = qp;
	/* Nothing else of a QP may be looked at here. */
	if (unlikely(qp->lane != lane))
		return STAT_handed_over;
	if (unlikely(pkt->op->kind == WIRE_KIND_CNP))
		return qp->type != IBV_QPT_UD && source_ok(qp, &rx->ip) ? STAT_cnps_received
									: DROP_source;
	if (unlikely(!type_ok(qp, pkt->op)))
		return DROP_qp_type;
	if (unlikely(!state_ok(qp, pkt->op)))
		return DROP_qp_state;
	if (qp->type != IBV_QPT_UD && unlikely(!source_ok(qp, &rx->ip)))
		return DROP_source;
	return STAT_COUNT;
}

void rx_packet(struct lane *lane, const struct link_rx *rx)
{
	struct wire_pkt pkt;
	struct qp *qp = NULL;
	enum stat_id why = classify(lane, rx, &pkt, &qp);

	if (unlikely(why == STAT_handed_over)) {
		lane_hand_over(lane, qp->lane, rx);
		return;
	}
	if (why == STAT_cnps_received) {
		stats_inc(&lane->stats, STAT_cnps_received);
		req_congested(qp);
		return;
	}
	if (unlikely(why != STAT_COUNT)) {
		stats_drop(&lane->stats, why);
		return;
	}
	if (wire_is_request(pkt.op)) {
		established(qp);
		resp_packet(qp, &pkt, rx);
	} else {
		comp_packet(qp, &pkt);
	}
	qp_check_broken(qp);
}
