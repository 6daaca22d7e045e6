/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One engine, and a test that plays its peer: packets made by hand go in, packets that come out are
 * compared.
 *
 *     struct script *s = script_rc();
 *     struct wire_pkt p = request(s, WIRE_RC_SEND_ONLY, s->psn);
 *     inject(s, &p);
 *     expect_ack(s, p.psn, 1);
 *     script_end(s);
 *
 * inject() lets the engine run until its acknowledges are out. The engine's QP is s->qp; the peer's
 * number is PEER_QPN, its requests start at s->psn, the engine's own at s->sq_psn.
 */
#ifndef RXE_TESTS_SCRIPT_H
#define RXE_TESTS_SCRIPT_H

#include "world.h"

#include "wire/psn.h"

#include <criterion/criterion.h>

#define PEER_QPN    0x00beefu
#define SCRIPT_QKEY 0x1234u
#define SCRIPT_MTU  256u
#define SCRIPT_MEM  65536u
/* Time that inject() gives: above LANE_ACK_DELAY, far below a timeout. */
#define SCRIPT_SETTLE 100000ull

struct script_sent {
	uint64_t at; /* ns */
	struct wire_pkt pkt;
	uint8_t bytes[4096 + WIRE_MAX_HDR_LEN + 4];
};

struct script {
	struct world *w;
	struct world_node *node;
	struct link *peer, *stranger; /* 10.44.0.9 and, unknown to the QP, 10.44.0.8 */
	struct pd *pd, *pd2;
	struct cq *scq, *rcq; /* completions of sends, of receives */
	struct xrcd *xrcd, *xrcd2;
	struct srq *srq, *srq_pd2; /* in xrcd, of pd and pd2; their CQ is rcq */
	struct srq *srq_other;	   /* in xrcd2 */
	struct qp_handle *handle;
	struct qp *qp;
	bool reliable;
	uint32_t psn, sq_psn;
	struct world_path path;
	uint8_t *mem;
	struct mr *mr, *mr2; /* of mem, in pd and pd2 */
	struct script_sent *sent;
	size_t nsent, next;
	int tag; /* its address is the handle's user pointer */
};

/* An engine with everything but a QP. */
struct script *script_begin(void);
/* The same with a connected QP; script_*_path() with other attributes. */
struct script *script_rc(void);
struct script *script_ini(void);
struct script *script_tgt(void);
struct script *script_uc(void);
struct script *script_of(enum ibv_qp_type type, const struct world_path *path);
extern const struct world_path script_path;
/** script_end() - destroys all, and checks that nothing more was sent than was expected. */
void script_end(struct script *s);
/** script_qp() - the QP, in RESET; script_connect() to RTS. */
void script_qp(struct script *s, enum ibv_qp_type type);
void script_connect(struct script *s, const struct world_path *path);

/** request() - a packet of the peer with sane fields, XRC: to s->srq. response() - likewise. */
struct wire_pkt request(struct script *s, uint8_t code, uint32_t psn);
struct wire_pkt response(struct script *s, uint8_t code, uint32_t psn, uint8_t syndrome,
			 uint32_t msn);

void inject(struct script *s, const struct wire_pkt *p);
void inject_from(struct script *s, struct link *from, const struct wire_pkt *p, unsigned int flags);
void inject_bytes(struct script *s, struct link *from, const uint8_t *b, size_t len,
		  unsigned int flags);
/** run() - lets @ns pass. */
void run(struct script *s, uint64_t ns);

/** expect() - the next packet that was sent; fails unless it is this one. */
const struct wire_pkt *expect(struct script *s, uint8_t code, uint32_t psn);
const struct script_sent *expect_at(struct script *s, uint8_t code, uint32_t psn);
void expect_ack(struct script *s, uint32_t psn, uint32_t msn);
void expect_nak(struct script *s, uint32_t psn, uint8_t syndrome);
void expect_nothing(struct script *s);
/** forget() - what was sent so far does not matter. */
void forget(struct script *s);

/** expect_wc() - the next completion of @cq. */
struct ibv_wc expect_wc(struct cq *cq, uint64_t wr_id, enum ibv_wc_status status);
void expect_no_wc(struct cq *cq);

static inline uint64_t drops(const struct script *s, enum stat_id reason)
{
	return world_stat(s->node, reason);
}

/** code_of() - the opcode of the QP's transport for an RC one. */
static inline uint8_t code_of(const struct script *s, uint8_t rc)
{
	return s->qp->transport << 5 | (rc & 0x1f);
}

#endif
