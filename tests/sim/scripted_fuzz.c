/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whatever comes in, the engine lives: random bytes, and packets that were right before some bits
 * of them changed. The ICRC is made afterwards, so all of it gets as far as it can. The judges are
 * the sanitizers, and that the QP still works, or is in ERR and works again after a reset.
 */
#include "script.h"

#include <string.h>

#define ROUNDS 20000

static void random_bytes(struct script *s, struct rng *rng)
{
	uint8_t b[600];
	size_t len = 4 * rng_range(rng, 3, sizeof(b) / 4);

	for (size_t i = 0; i < len; i++)
		b[i] = rng_next(rng);
	inject_bytes(s, s->peer, b, len, 0);
}

static uint32_t near_psn(struct script *s, struct rng *rng, bool is_request)
{
	uint32_t psn = is_request ? s->qp->resp.psn : s->qp->req.una;

	return psn_add(psn, rng_percent(rng, 60) ? 0 : (int32_t)rng_below(rng, 9) - 4);
}

/* Does a QP of this type take such packets at all? Mostly it gets those. */
static bool suits(enum ibv_qp_type type, const struct wire_opcode *op)
{
	if (type == IBV_QPT_XRC_SEND)
		return !wire_is_request(op);
	return type == IBV_QPT_RC || wire_is_request(op);
}

/* A packet that would be right, then with some of its fields or bytes changed. */
static void mutated(struct script *s, struct rng *rng)
{
	uint8_t b[WIRE_MAX_HDR_LEN + 2 * SCRIPT_MTU] = {0};
	const struct wire_opcode *op;
	struct wire_pkt p;
	size_t n;

	do
		op = wire_opcode(rng_percent(rng, 90) ? s->qp->transport << 5 | rng_below(rng, 32)
						      : rng_below(rng, 256));
	while (!op || (!suits(s->qp->type, op) && rng_percent(rng, 80)));
	p = request(s, op->code, near_psn(s, rng, wire_is_request(op)));
	p.dma_len = rng_below(rng, 3 * SCRIPT_MTU);
	p.syndrome = rng_next(rng);
	p.inv_rkey = rng_next(rng);
	p.payload_len =
		op->payload ? (rng_percent(rng, 50) ? SCRIPT_MTU : rng_below(rng, SCRIPT_MTU)) : 0;
	if (op->pos == WIRE_POS_ONLY && op->kind == WIRE_KIND_WRITE && rng_percent(rng, 70))
		p.dma_len = p.payload_len;
	n = wire_encode_hdr(b, &p) + p.payload_len + wire_pad(p.payload_len);
	for (unsigned int i = rng_below(rng, 3); i; i--)
		b[rng_below(rng, n)] ^= 1 << rng_below(rng, 8);
	if (rng_percent(rng, 5))
		n = 12 + 4 * rng_below(rng, (n - 12) / 4 + 1);
	inject_bytes(s, s->peer, b, n, 0);
}

static void drain(struct cq *cq)
{
	struct ibv_wc wc;

	while (world_poll(cq, &wc))
		;
}

/* Work for the QP to be disturbed at. */
static void work(struct script *s, struct rng *rng)
{
	static const enum ibv_wr_opcode any[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						 IBV_WR_ATOMIC_FETCH_AND_ADD};
	enum ibv_wr_opcode opcode = any[rng_below(rng, ARRAY_SIZE(any))];
	uint32_t length = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : rng_below(rng, 1000);

	if (s->qp->type == IBV_QPT_XRC_RECV)
		world_srq_recv(s->srq, 1, s->mr, s->mem + 8192, rng_below(rng, 1024));
	else if (s->qp->type != IBV_QPT_UD)
		world_rdma(s->qp, 1, opcode, s->mr, s->mem, length, (uintptr_t)s->mem, s->mr->key,
			   s->srq->srqn);
	if (s->qp->type != IBV_QPT_XRC_RECV && s->qp->type != IBV_QPT_XRC_SEND)
		world_recv(s->qp, 2, s->mr, s->mem + 8192,
			   rng_below(rng, 1024) | (s->qp->type == IBV_QPT_UD ? 512 : 0));
}

static void fuzz(enum ibv_qp_type type, uint64_t seed)
{
	struct world_path path = script_path;
	struct script *s;
	struct rng rng = {seed};

	if (type == IBV_QPT_UC)
		path.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	s = script_of(type, &path);

	for (unsigned int i = 0; i < ROUNDS; i++) {
		if (rng_percent(&rng, 20))
			work(s, &rng);
		if (rng_percent(&rng, 10))
			random_bytes(s, &rng);
		else
			mutated(s, &rng);
		drain(s->scq);
		drain(s->rcq);
		s->nsent = s->next = 0;
		s->node->nevents = 0;
		if (s->qp->state == IBV_QPS_ERR) {
			must(world_to_state(s->qp, IBV_QPS_RESET));
			script_connect(s, &path);
		}
		cr_assert_eq(s->qp->state, IBV_QPS_RTS);
	}
	/* All of it arrived, and not all of it was thrown away at the door. */
	cr_assert_geq(world_stat(s->node, STAT_rx_packets), ROUNDS);
	cr_assert_leq(drops(s, DROP_no_qp) + drops(s, DROP_opcode) + drops(s, DROP_short) +
			      drops(s, DROP_qp_type) + drops(s, DROP_version) + drops(s, DROP_pkey),
		      ROUNDS * 2 / 3);
	script_end(s);
}

Test(fuzz, rc, .timeout = 60)
{
	fuzz(IBV_QPT_RC, 1);
}

Test(fuzz, xrc_ini, .timeout = 60)
{
	fuzz(IBV_QPT_XRC_SEND, 2);
}

Test(fuzz, xrc_tgt, .timeout = 60)
{
	fuzz(IBV_QPT_XRC_RECV, 3);
}

Test(fuzz, uc, .timeout = 60)
{
	fuzz(IBV_QPT_UC, 4);
}

Test(fuzz, ud, .timeout = 60)
{
	fuzz(IBV_QPT_UD, 5);
}
