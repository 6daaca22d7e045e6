/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests, their completions, and the model of the peer's memory.
 *
 * The shadow of a region is changed when a request is posted, for a QP's requests take effect in
 * that order (IBTA 9.5). So the shadow at the time of posting says what a READ or an atomic will
 * see, on one condition: a READ may be repeated as long as it is not complete, so what would change
 * the bytes that an outstanding READ wants must wait for it. That is what the fence is for (o9-32),
 * and the model sets it just then, and now and then without need.
 */
#include "soak.h"

#include <stdlib.h>
#include <string.h>

/* Data */

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

void pattern_fill(uint8_t *b, uint32_t len, uint64_t key)
{
	uint64_t word;
	uint32_t at;

	for (at = 0; at + 8 <= len; at += 8) {
		word = mix(key += 0x9e3779b97f4a7c15ull);
		memcpy(b + at, &word, 8);
	}
	word = mix(key + 0x9e3779b97f4a7c15ull);
	memcpy(b + at, &word, len - at);
}

void pieces_cut(struct pieces *p, struct rng *rng, uint8_t *slot, uint32_t len, uint32_t lkey,
		unsigned int max)
{
	uint8_t *at = slot + SOAK_GAP;

	p->n = rng_range(rng, 1, max);
	for (unsigned int i = 0; i < p->n; i++) {
		uint32_t n = i + 1 == p->n ? len : rng_range(rng, 0, len);

		p->sge[i] = (struct ibv_sge){(uintptr_t)at, n, lkey};
		at += n + SOAK_GAP;
		len -= n;
	}
}

void pieces_store(const struct pieces *p, const uint8_t *b, uint32_t len)
{
	for (unsigned int i = 0; i < p->n && len; i++) {
		uint32_t n = min_t(uint32_t, len, p->sge[i].length);

		memcpy((void *)(uintptr_t)p->sge[i].addr, b, n);
		b += n;
		len -= n;
	}
}

void pieces_load(const struct pieces *p, uint8_t *b, uint32_t len)
{
	for (unsigned int i = 0; i < p->n && len; i++) {
		uint32_t n = min_t(uint32_t, len, p->sge[i].length);

		memcpy(b, (void *)(uintptr_t)p->sge[i].addr, n);
		b += n;
		len -= n;
	}
}

static bool is_poison(const uint8_t *b, uint32_t n)
{
	while (n--)
		if (*b++ != SOAK_POISON)
			return false;
	return true;
}

bool pieces_clean(const struct pieces *p, uint32_t len)
{
	for (unsigned int i = 0; i < p->n; i++) {
		const uint8_t *at = (const uint8_t *)(uintptr_t)p->sge[i].addr;
		uint32_t used = min_t(uint32_t, len, p->sge[i].length);
		/* Of what is left in the piece only the beginning: a stray write starts there. */
		uint32_t rest = min_t(uint32_t, p->sge[i].length - used, 64);

		if (!is_poison(at - SOAK_GAP, SOAK_GAP) || !is_poison(at + used, rest) ||
		    !is_poison(at + p->sge[i].length, SOAK_GAP))
			return false;
		len -= used;
	}
	return true;
}

static uint8_t *slot_at(const struct flow *f, unsigned int n)
{
	return f->mem + (size_t)(n % SOAK_WINDOW) * SOAK_SLOT;
}

/* Drawing a request */

static uint32_t draw_length(struct flow *f)
{
	switch (rng_below(&f->rng, 12)) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 2:
		return f->mtu - 1;
	case 3:
		return f->mtu;
	case 4:
		return f->mtu + 1;
	case 5:
		return 2 * f->mtu + rng_range(&f->rng, 0, 2) - 1;
	case 6:
		return rng_range(&f->rng, 0, min_t(uint32_t, 40 * f->mtu, SOAK_MAX_LEN));
	case 7:
		return rng_percent(&f->rng, 15) ? SOAK_MAX_LEN : rng_below(&f->rng, 8 * f->mtu);
	default:
		return rng_below(&f->rng, 300);
	}
}

static bool is_atomic(const struct request *r)
{
	return r->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool is_write(const struct request *r)
{
	return r->opcode == IBV_WR_RDMA_WRITE || r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_send(const struct request *r)
{
	return r->opcode == IBV_WR_SEND || r->opcode == IBV_WR_SEND_WITH_IMM ||
	       r->opcode == IBV_WR_SEND_WITH_INV;
}

/* Of the flow's own side, nothing goes over the wire. */
static bool is_local(const struct request *r)
{
	return r->opcode == IBV_WR_BIND_MW || r->opcode == IBV_WR_LOCAL_INV;
}

bool flow_consumes(const struct request *r)
{
	return is_send(r) || r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static enum ibv_wr_opcode draw_opcode(struct flow *f)
{
	static const enum ibv_wr_opcode any[] = {
		IBV_WR_SEND,
		IBV_WR_SEND,
		IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ,
		IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
	};

	if (f->back && f->back->mw.state == WINDOW_FREE && !f->back->failed &&
	    rng_percent(&f->rng, 20))
		return IBV_WR_BIND_MW;
	if (f->back && f->back->mw.state == WINDOW_BOUND && f->back->mw.local)
		return IBV_WR_LOCAL_INV;
	if (f->mw.state == WINDOW_BOUND && !f->mw.local && rng_percent(&f->rng, 30))
		return IBV_WR_SEND_WITH_INV;
	return any[rng_below(&f->rng, ARRAY_SIZE(any))];
}

/* Whether a READ that has not completed wants bytes of [@at, @at + @n). */
static bool read_outstanding(const struct flow *f, const struct target *t, uint32_t at, uint32_t n)
{
	for (unsigned int i = f->done; i < f->posted; i++) {
		const struct request *r = &f->requests[i];

		if (r->opcode == IBV_WR_RDMA_READ && r->target->region == t->region &&
		    r->at < at + n && at < r->at + r->length)
			return true;
	}
	return false;
}

static void draw_flags(struct flow *f, struct request *r)
{
	bool last = f->posted + 1 == f->total;

	if (rng_percent(&f->rng, 60) || last || is_local(r) || f->silent + 1 >= f->window)
		r->flags |= IBV_SEND_SIGNALED;
	if (rng_percent(&f->rng, 20))
		r->flags |= IBV_SEND_SOLICITED;
	if (rng_percent(&f->rng, 10))
		r->flags |= IBV_SEND_FENCE;
	if ((is_write(r) || is_atomic(r)) && read_outstanding(f, r->target, r->at, r->length))
		r->flags |= IBV_SEND_FENCE;
	if ((is_send(r) || is_write(r)) && r->length <= f->qp->cap.max_inline_data &&
	    rng_percent(&f->rng, 50))
		r->flags |= IBV_SEND_INLINE;
	f->silent = r->flags & IBV_SEND_SIGNALED ? 0 : f->silent + 1;
}

/* Requests of each kind: the WR's fields, and what they do to the model. */

static void build_write(struct flow *f, struct request *r, struct ibv_send_wr *wr)
{
	struct region *g = r->target->region;
	bool windowed = f->mw.state == WINDOW_BOUND && !f->mw.local && rng_percent(&f->rng, 50);

	if (windowed) {
		r->length = min_t(uint32_t, r->length, f->mw.length);
		r->at = f->mw.at + rng_range(&f->rng, 0, f->mw.length - r->length);
	} else {
		r->at = REGION_WRITE + rng_range(&f->rng, 0, REGION_WRITE_LEN - r->length);
	}
	wr->wr.rdma.remote_addr = (uintptr_t)g->mem + r->at;
	wr->wr.rdma.rkey = windowed ? f->mw.rkey : g->mr->key;
	pattern_fill(g->shadow + r->at, r->length, r->key);
}

static void build_read(struct flow *f, struct request *r, struct ibv_send_wr *wr)
{
	struct region *g = r->target->region;

	r->at = rng_range(&f->rng, 0, REGION_LEN - r->length);
	wr->wr.rdma.remote_addr = (uintptr_t)g->mem + r->at;
	wr->wr.rdma.rkey = g->mr->key;
	r->expect = malloc(r->length + 1);
	if (!r->expect)
		abort();
	memcpy(r->expect, g->shadow + r->at, r->length);
}

static void build_atomic(struct flow *f, struct request *r, struct ibv_send_wr *wr)
{
	struct region *g = r->target->region;
	uint64_t operand = rng_next(&f->rng), after;

	r->length = 8;
	r->at = REGION_WORDS + 8 * rng_below(&f->rng, REGION_NWORDS);
	memcpy(&r->orig, g->shadow + r->at, 8);
	wr->wr.atomic.remote_addr = (uintptr_t)g->mem + r->at;
	wr->wr.atomic.rkey = g->mr->key;
	if (r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.compare_add = operand;
		after = r->orig + operand;
	} else {
		wr->wr.atomic.compare_add = r->orig + rng_percent(&f->rng, 50);
		wr->wr.atomic.swap = operand;
		after = wr->wr.atomic.compare_add == r->orig ? operand : r->orig;
	}
	memcpy(g->shadow + r->at, &after, 8);
}

static uint32_t next_key(uint32_t key)
{
	return (key & 0xffffff00u) | ((key + 1) & 0xff);
}

static void build_bind(struct flow *f, struct request *r, struct ibv_send_wr *wr,
		       struct ibv_mw *verbs_mw, struct ibv_mr *verbs_mr)
{
	struct flow *user = f->back;
	struct window *mw = &user->mw;

	r->length = 0;
	mw->length = rng_range(&f->rng, 1, REGION_WRITE_LEN);
	mw->at = REGION_WRITE + rng_range(&f->rng, 0, REGION_WRITE_LEN - mw->length);
	mw->local = rng_percent(&f->rng, 25);
	mw->state = WINDOW_BINDING;
	verbs_mw->rkey = mw->rkey ? mw->rkey : mw->mw->key;
	verbs_mw->type = IBV_MW_TYPE_2;
	verbs_mr->lkey = verbs_mr->rkey = user->regions[0].mr->key;
	mw->rkey = next_key(verbs_mw->rkey);
	wr->bind_mw.mw = verbs_mw;
	wr->bind_mw.rkey = mw->rkey;
	wr->bind_mw.bind_info.mr = verbs_mr;
	wr->bind_mw.bind_info.addr = (uintptr_t)user->regions[0].mem + mw->at;
	wr->bind_mw.bind_info.length = mw->length;
	wr->bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
}

static void build(struct flow *f, struct request *r, struct ibv_send_wr *wr, struct ibv_mw *mw,
		  struct ibv_mr *mr)
{
	r->target = &f->targets[rng_below(&f->rng, f->ntargets)];
	r->key = rng_next(&f->rng);
	r->length = draw_length(f);
	wr->opcode = r->opcode = draw_opcode(f);
	if (f->xrc)
		wr->qp_type.xrc.remote_srqn = r->target->srqn;
	if (r->opcode == IBV_WR_SEND_WITH_IMM || r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		wr->imm_data = r->imm_be = (uint32_t)rng_next(&f->rng);
	if (is_write(r)) {
		build_write(f, r, wr);
	} else if (r->opcode == IBV_WR_RDMA_READ) {
		build_read(f, r, wr);
	} else if (is_atomic(r)) {
		build_atomic(f, r, wr);
	} else if (r->opcode == IBV_WR_BIND_MW) {
		build_bind(f, r, wr, mw, mr);
	} else if (r->opcode == IBV_WR_LOCAL_INV) {
		r->length = 0;
		wr->invalidate_rkey = f->back->mw.rkey;
		f->back->mw.state = WINDOW_DYING;
	} else if (r->opcode == IBV_WR_SEND_WITH_INV) {
		wr->invalidate_rkey = r->imm_be = f->mw.rkey;
		f->mw.state = WINDOW_DYING;
	}
}

/* Source or destination of the request in the flow's own memory. */
static void build_pieces(struct flow *f, struct request *r, struct ibv_send_wr *wr, uint8_t *slot)
{
	static uint8_t data[SOAK_MAX_LEN];

	memset(slot, SOAK_POISON, r->length + (SOAK_MAX_SGE + 1) * SOAK_GAP);
	pieces_cut(&r->pieces, &f->rng, slot, r->length, f->mr->key,
		   is_atomic(r) ? 1 : SOAK_MAX_SGE);
	if (is_send(r) || is_write(r)) {
		pattern_fill(data, r->length, r->key);
		pieces_store(&r->pieces, data, r->length);
	}
	wr->sg_list = r->pieces.sge;
	wr->num_sge = is_local(r) || (!r->length && rng_percent(&f->rng, 50)) ? 0 : r->pieces.n;
	if (r->flags & IBV_SEND_INLINE)
		/* The lkey does not matter then. */
		for (unsigned int i = 0; i < r->pieces.n; i++)
			r->pieces.sge[i].lkey = 0xdeadbeef;
}

static void post_one(struct flow *f)
{
	struct request *r = &f->requests[f->posted];
	struct ibv_send_wr wr = {.wr_id = wr_name(OWNER_FLOW, f->index, f->posted)};
	uint8_t *slot = slot_at(f, f->posted);
	struct ibv_mw mw = {0};
	struct ibv_mr mr = {0};
	int ret;

	build(f, r, &wr, &mw, &mr);
	draw_flags(f, r);
	build_pieces(f, r, &wr, slot);
	wr.send_flags = r->flags;
	f->posted++;
	f->soak->requests++;
	ret = world_post(f->qp, &wr);
	if (ret)
		soak_fail(f->soak, "flow %u: posting request %u, opcode %d, failed: %s", f->index,
			  f->posted - 1, r->opcode, strerror(-ret));
	if (r->flags & IBV_SEND_INLINE)
		/* The buffer is the program's again. */
		memset(slot, 0x55, r->length + (SOAK_MAX_SGE + 1) * SOAK_GAP);
}

void flow_post(struct flow *f)
{
	unsigned int n = rng_below(&f->soak->rng, 4);

	while (n-- && !f->failed && f->posted < f->total && f->posted - f->done < f->window)
		post_one(f);
}

bool flow_finished(const struct flow *f)
{
	return f->failed ? f->done == f->posted : f->done == f->total;
}

/* Completions */

static void check_returned(const struct flow *f, unsigned int n)
{
	static uint8_t got[SOAK_MAX_LEN];
	const struct request *r = &f->requests[n];

	pieces_load(&r->pieces, got, r->length);
	if (is_atomic(r) && memcmp(got, &r->orig, 8))
		soak_fail(f->soak, "flow %u: atomic %u returned %016llx, expected %016llx",
			  f->index, n, (unsigned long long)*(uint64_t *)got,
			  (unsigned long long)r->orig);
	if (r->expect && memcmp(got, r->expect, r->length))
		soak_fail(f->soak, "flow %u: READ %u of %u bytes returned other bytes", f->index, n,
			  r->length);
	if (!pieces_clean(&r->pieces, r->length))
		soak_fail(f->soak, "flow %u: bytes beside READ or atomic %u were written", f->index,
			  n);
}

static void retire(struct flow *f, unsigned int n)
{
	struct request *r = &f->requests[n];

	r->done = true;
	f->done = n + 1;
	if (is_atomic(r) || r->opcode == IBV_WR_RDMA_READ)
		check_returned(f, n);
	if (r->opcode == IBV_WR_BIND_MW)
		f->back->mw.state = WINDOW_BOUND;
	else if (r->opcode == IBV_WR_LOCAL_INV)
		f->back->mw.state = WINDOW_FREE;
}

static enum ibv_wc_opcode wc_opcode(const struct request *r)
{
	switch (r->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	default:
		return IBV_WC_SEND;
	}
}

/* The first request that fails: whether it may. */
static void first_failure(struct flow *f, unsigned int n, const struct ibv_wc *wc)
{
	f->failed = wc->status;
	f->good = n;
	/* Nothing else can go wrong: not even a failure of the other direction, which is the
	 * peer's. */
	if (wc->status != IBV_WC_RETRY_EXC_ERR && wc->status != IBV_WC_RNR_RETRY_EXC_ERR)
		soak_fail(f->soak, "flow %u: request %u (opcode %d) failed with status %d",
			  f->index, n, f->requests[n].opcode, wc->status);
	oracle_judge(f);
}

void flow_completion(struct flow *f, const struct cq *cq, const struct ibv_wc *wc)
{
	unsigned int n = (uint32_t)wc->wr_id;

	if (cq != f->cq || wc->qp_num != f->qp->qpn)
		soak_fail(f->soak, "flow %u: request %u completed on the wrong CQ or QP", f->index,
			  n);
	if (n < f->done || n >= f->posted)
		soak_fail(f->soak,
			  "flow %u: request %u completed, between %u and %u are outstanding",
			  f->index, n, f->done, f->posted);
	if (f->failed) {
		if (n != f->done || wc->status != IBV_WC_WR_FLUSH_ERR)
			soak_fail(f->soak,
				  "flow %u: request %u has status %d after an error, %u was due",
				  f->index, n, wc->status, f->done);
		f->done++;
		return;
	}
	for (unsigned int i = f->done; i < n; i++) {
		if (f->requests[i].flags & IBV_SEND_SIGNALED)
			soak_fail(f->soak, "flow %u: request %u did not complete before %u",
				  f->index, i, n);
		retire(f, i);
	}
	if (wc->status != IBV_WC_SUCCESS) {
		first_failure(f, n, wc);
		f->done = n + 1;
		return;
	}
	if (!(f->requests[n].flags & IBV_SEND_SIGNALED))
		soak_fail(f->soak, "flow %u: request %u is unsignalled and completed", f->index, n);
	if (wc->opcode != wc_opcode(&f->requests[n]))
		soak_fail(f->soak, "flow %u: request %u completed as opcode %d", f->index, n,
			  wc->opcode);
	if (f->requests[n].opcode == IBV_WR_RDMA_READ && wc->byte_len != f->requests[n].length)
		soak_fail(f->soak, "flow %u: READ %u of %u bytes has byte_len %u", f->index, n,
			  f->requests[n].length, wc->byte_len);
	retire(f, n);
}

/* The end */

/* Memory is as the shadow but where a request that did not succeed may have left traces. */
static void check_region(struct flow *f, const struct region *g)
{
	for (unsigned int i = f->failed ? f->good : f->posted; i < f->posted; i++) {
		const struct request *r = &f->requests[i];

		if (r->target->region == g && (is_write(r) || is_atomic(r)))
			memcpy(g->shadow + r->at, g->mem + r->at, r->length);
	}
	for (uint32_t i = 0; i < REGION_LEN; i++)
		if (g->mem[i] != g->shadow[i])
			soak_fail(f->soak, "flow %u: byte %u of its region is %02x, must be %02x",
				  f->index, i, g->mem[i], g->shadow[i]);
}

void flow_verify(struct flow *f)
{
	unsigned int sure = f->failed ? f->good : f->total;

	for (unsigned int i = 0; i < sure; i++)
		if (flow_consumes(&f->requests[i]) && !f->requests[i].received)
			soak_fail(f->soak, "flow %u: request %u completed, its receive did not",
				  f->index, i);
	for (unsigned int i = 0; i < ARRAY_SIZE(f->regions); i++)
		if (f->regions[i].mem)
			check_region(f, &f->regions[i]);
}
