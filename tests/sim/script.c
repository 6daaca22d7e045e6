/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The mechanics of tests that play an engine's peer by hand. */
#include "script.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SENT 4096

static const uint8_t peer_ip[16] = {[10] = 0xff, 0xff, 10, 44, 0, 9};
static const uint8_t stranger_ip[16] = {[10] = 0xff, 0xff, 10, 44, 0, 8};

const struct world_path script_path = {
	.mtu = IBV_MTU_256,
	.timeout = 14, /* 67 ms: far behind what one script does, but for those that wait for it */
	.retry_cnt = 3,
	.rnr_retry = 7,
	.min_rnr_timer = 12,
	.rd_atomic = 4,
	.psn_a = 0x000100,
	.psn_b = 0xfffff8, /* the peer's requests soon wrap */
	.access = WORLD_ALL_ACCESS,
};

static void watch(void *arg, struct world_node *node, enum link_dir dir, const uint8_t *b,
		  size_t len)
{
	struct script *s = arg;
	struct script_sent *sent = &s->sent[s->nsent];

	if (dir != LINK_SENT)
		return;
	cr_assert_lt(s->nsent, MAX_SENT);
	cr_assert_leq(len, sizeof(sent->bytes));
	memcpy(sent->bytes, b, len);
	cr_assert_eq(wire_decode(&sent->pkt, sent->bytes, len), WIRE_OK);
	sent->at = s->w->now;
	s->nsent++;
}

struct script *script_begin(void)
{
	struct world_config config = {.seed = 7, .nodes = 1};
	struct script *s = calloc(1, sizeof(*s));

	cr_assert(s);
	s->w = world_create(&config);
	s->w->trace = getenv("SCRIPT_TRACE") != NULL;
	s->w->watch = watch;
	s->w->watch_arg = s;
	s->sent = malloc(MAX_SENT * sizeof(*s->sent));
	s->mem = calloc(1, SCRIPT_MEM);
	cr_assert(s->sent && s->mem);
	s->node = &s->w->nodes[0];
	s->peer = world_raw_link(s->w, peer_ip);
	s->stranger = world_raw_link(s->w, stranger_ip);
	s->pd = world_pd(s->node);
	s->pd2 = world_pd(s->node);
	s->scq = world_cq(s->node, 64, NULL);
	s->rcq = world_cq(s->node, 64, NULL);
	s->xrcd = world_xrcd(s->node);
	s->xrcd2 = world_xrcd(s->node);
	s->srq = world_xrc_srq(s->pd, s->xrcd, s->rcq, 16, 4);
	s->srq_pd2 = world_xrc_srq(s->pd2, s->xrcd, s->rcq, 16, 4);
	s->srq_other = world_xrc_srq(s->pd, s->xrcd2, s->rcq, 16, 4);
	s->mr = world_mr(s->pd, s->mem, SCRIPT_MEM, WORLD_ALL_ACCESS | IBV_ACCESS_MW_BIND);
	s->mr2 = world_mr(s->pd2, s->mem, SCRIPT_MEM, WORLD_ALL_ACCESS);
	return s;
}

void script_qp(struct script *s, enum ibv_qp_type type)
{
	struct qp_init init = {
		.type = type,
		.pd = type == IBV_QPT_XRC_RECV ? NULL : s->pd,
		.send_cq = type == IBV_QPT_XRC_RECV ? NULL : s->scq,
		.recv_cq = type == IBV_QPT_XRC_RECV || type == IBV_QPT_XRC_SEND ? NULL : s->rcq,
		.xrcd = type == IBV_QPT_XRC_RECV ? s->xrcd : NULL,
		.cap = {64, 64, 4, 4, 64},
		.user = &s->tag,
	};

	if (type == IBV_QPT_XRC_SEND)
		init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
	if (type == IBV_QPT_XRC_RECV)
		init.cap = (struct ibv_qp_cap){0};
	must(qp_create(s->node->engine, &init, &s->handle));
	s->qp = s->handle->qp;
}

void script_connect(struct script *s, const struct world_path *path)
{
	s->path = *path;
	s->psn = path->psn_b;
	s->sq_psn = path->psn_a;
	if (s->qp->type == IBV_QPT_UD) {
		world_start_ud(s->qp, SCRIPT_QKEY);
		return;
	}
	must(world_to_init(s->qp, path));
	must(world_to_rtr(s->qp, peer_ip, PEER_QPN, path, path->psn_b));
	must(world_to_rts(s->qp, path, path->psn_a));
}

struct script *script_of(enum ibv_qp_type type, const struct world_path *path)
{
	struct script *s = script_begin();

	script_qp(s, type);
	script_connect(s, path);
	return s;
}

struct script *script_rc(void)
{
	return script_of(IBV_QPT_RC, &script_path);
}

struct script *script_ini(void)
{
	return script_of(IBV_QPT_XRC_SEND, &script_path);
}

struct script *script_tgt(void)
{
	return script_of(IBV_QPT_XRC_RECV, &script_path);
}

struct script *script_uc(void)
{
	struct world_path path = script_path;

	path.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	return script_of(IBV_QPT_UC, &path);
}

void script_end(struct script *s)
{
	expect_nothing(s);
	if (s->handle)
		must(qp_close(s->handle, s->w->now));
	must(mr_destroy(s->mr));
	must(mr_destroy(s->mr2));
	must(engine_srq_destroy(s->srq));
	must(engine_srq_destroy(s->srq_pd2));
	must(engine_srq_destroy(s->srq_other));
	must(xrcd_close(s->xrcd));
	must(xrcd_close(s->xrcd2));
	must(cq_destroy(s->scq));
	must(cq_destroy(s->rcq));
	must(pd_destroy(s->pd));
	must(pd_destroy(s->pd2));
	world_destroy(s->w);
	free(s->mem);
	free(s->sent);
	free(s);
}

/* Packets in */

struct wire_pkt request(struct script *s, uint8_t code, uint32_t psn)
{
	return (struct wire_pkt){
		.op = &wire_opcode_table[code],
		.mig = true,
		.ackreq = wire_opcode_table[code].pos & WIRE_POS_LAST,
		.pkey = WIRE_PKEY_DEFAULT,
		.dest_qpn = s->qp->qpn,
		.psn = psn & PSN_MASK,
		.srqn = s->srq->srqn,
		.va = (uintptr_t)s->mem,
		.rkey = s->mr->key,
		.qkey = SCRIPT_QKEY,
		.src_qpn = PEER_QPN,
		.payload = s->mem,
	};
}

struct wire_pkt response(struct script *s, uint8_t code, uint32_t psn, uint8_t syndrome,
			 uint32_t msn)
{
	struct wire_pkt p = request(s, code, psn);

	p.ackreq = false;
	p.syndrome = syndrome;
	p.msn = msn;
	return p;
}

void run(struct script *s, uint64_t ns)
{
	world_run(s->w, ns);
}

void inject_bytes(struct script *s, struct link *from, const uint8_t *b, size_t len,
		  unsigned int flags)
{
	struct link_dest to = {.sport = 0xc000, .ttl = 64};
	uint8_t *room;

	memcpy(to.dgid, s->node->ip, sizeof(to.dgid));
	room = from->ops->tx_reserve(from, &to, len);
	cr_assert(room);
	memcpy(room, b, len);
	from->ops->tx_commit(from, flags);
	from->ops->tx_flush(from, s->w->now);
	run(s, SCRIPT_SETTLE);
}

void inject_from(struct script *s, struct link *from, const struct wire_pkt *p, unsigned int flags)
{
	uint8_t b[WIRE_MAX_HDR_LEN + 8192 + 4] = {0};
	size_t n = wire_encode_hdr(b, p);

	if (p->payload_len)
		memcpy(b + n, p->payload, p->payload_len);
	inject_bytes(s, from, b, n + p->payload_len + wire_pad(p->payload_len), flags);
}

void inject(struct script *s, const struct wire_pkt *p)
{
	inject_from(s, s->peer, p, 0);
}

/* Packets out */

const struct script_sent *expect_at(struct script *s, uint8_t code, uint32_t psn)
{
	const struct script_sent *sent = &s->sent[s->next];

	cr_assert_lt(s->next, s->nsent, "expected %s psn %06x, nothing was sent",
		     wire_opcode_table[code].name, psn & PSN_MASK);
	cr_assert_eq(sent->pkt.op->code, code, "expected %s, got %s psn %06x",
		     wire_opcode_table[code].name, sent->pkt.op->name, sent->pkt.psn);
	cr_assert_eq(sent->pkt.psn, psn & PSN_MASK, "%s: expected psn %06x, got %06x",
		     sent->pkt.op->name, psn & PSN_MASK, sent->pkt.psn);
	cr_assert_eq(sent->pkt.dest_qpn, PEER_QPN);
	cr_assert(sent->pkt.mig, "MigReq is sent 1");
	s->next++;
	return sent;
}

const struct wire_pkt *expect(struct script *s, uint8_t code, uint32_t psn)
{
	return &expect_at(s, code, psn)->pkt;
}

void expect_ack(struct script *s, uint32_t psn, uint32_t msn)
{
	const struct wire_pkt *p = expect(s, code_of(s, WIRE_RC_ACK), psn);

	cr_assert_eq(WIRE_SYN_KIND(p->syndrome), WIRE_SYN_ACK, "syndrome %#x", p->syndrome);
	cr_assert_eq(p->msn, msn, "msn %u, expected %u", p->msn, msn);
}

void expect_nak(struct script *s, uint32_t psn, uint8_t syndrome)
{
	const struct wire_pkt *p = expect(s, code_of(s, WIRE_RC_ACK), psn);

	cr_assert_eq(p->syndrome, syndrome, "syndrome %#x, expected %#x", p->syndrome, syndrome);
}

void expect_nothing(struct script *s)
{
	cr_assert_eq(s->next, s->nsent, "unexpected %s psn %06x syndrome %02x",
		     s->sent[s->next].pkt.op->name, s->sent[s->next].pkt.psn,
		     s->sent[s->next].pkt.syndrome);
}

void forget(struct script *s)
{
	s->next = s->nsent;
}

struct ibv_wc expect_wc(struct cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	cr_assert(world_poll(cq, &wc), "no completion, expected wr_id %llu status %d",
		  (unsigned long long)wr_id, status);
	cr_assert_eq(wc.wr_id, wr_id, "wr_id %llu, expected %llu (status %d)",
		     (unsigned long long)wc.wr_id, (unsigned long long)wr_id, wc.status);
	cr_assert_eq(wc.status, status, "wr_id %llu: status %d, expected %d",
		     (unsigned long long)wr_id, wc.status, status);
	return wc;
}

void expect_no_wc(struct cq *cq)
{
	struct ibv_wc wc;

	cr_assert(!world_poll(cq, &wc), "a completion: wr_id %llu status %d",
		  (unsigned long long)wc.wr_id, wc.status);
}
