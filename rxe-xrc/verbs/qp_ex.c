/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Posting in pieces: the ibv_wr_* builders and setters.
 *
 *	wr_start   locks the send queue
 *	wr_send    a builder takes a slot; the request that came before it is complete and is checked
 *	wr_set_*   setters fill the slot in, in any order
 *	wr_complete  checks the last request, publishes all of them and unlocks; or, after a failure of
 *	             any, publishes none and says which error came first
 *
 * Nothing is copied twice: requests are built in their slots of the ring.
 */
#include "verbs/objects.h"

/* After a failure requests are still built, nowhere: `wqe` is NULL and setters do nothing. */
static void set_error(struct vqp *v, int err)
{
	if (!v->wr_error)
		v->wr_error = err;
	v->wqe = NULL;
}

/* The request under construction is complete: what would ibv_post_send() say of it? */
static void finish(struct vqp *v)
{
	int err;

	if (!v->wqe)
		return;
	if (v->qp->type == IBV_QPT_UD && !v->wr_addressed) {
		set_error(v, EINVAL);
		return;
	}
	err = qp_sq_check(v->qp, v->wqe);
	if (err)
		set_error(v, -err);
	v->wqe = NULL;
}

static struct swqe *build(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	struct vqp *v = vqp_of_ex(ex);
	struct swqe *w;

	finish(v);
	if (v->wr_error)
		return NULL;
	w = qp_sq_alloc(v->qp);
	if (!w) {
		set_error(v, ENOMEM);
		return NULL;
	}
	w->wr_id = ex->wr_id;
	w->opcode = opcode;
	/* The setters of inline data say so, nobody else. */
	w->flags = ex->wr_flags & (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
	if (ex->wr_flags & IBV_SEND_IP_CSUM) {
		set_error(v, EINVAL);
		return NULL;
	}
	v->wr_addressed = false;
	v->wqe = w;
	return w;
}

/* --- builders ------------------------------------------------------------------------------- */

static void build_rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey,
		       uint64_t addr, __be32 imm)
{
	struct swqe *w = build(ex, opcode);

	if (!w)
		return;
	w->rkey = rkey;
	w->remote_addr = addr;
	w->imm_be = imm;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	build_rdma(ex, IBV_WR_RDMA_READ, rkey, addr, 0);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	build_rdma(ex, IBV_WR_RDMA_WRITE, rkey, addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
	build_rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr, imm);
}

static void build_atomic(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey,
			 uint64_t addr, uint64_t compare_add, uint64_t swap)
{
	struct swqe *w = build(ex, opcode);

	if (!w)
		return;
	w->rkey = rkey;
	w->remote_addr = addr;
	w->atomic.compare_add = compare_add;
	w->atomic.swap = swap;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare,
			      uint64_t swap)
{
	build_atomic(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add)
{
	build_atomic(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, add, 0);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	build(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	struct swqe *w = build(ex, IBV_WR_SEND_WITH_IMM);

	if (w)
		w->imm_be = imm;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct swqe *w = build(ex, IBV_WR_SEND_WITH_INV);

	if (w)
		w->imm_be = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct swqe *w = build(ex, IBV_WR_LOCAL_INV);

	if (w)
		w->imm_be = rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct swqe *w = build(ex, IBV_WR_BIND_MW);

	if (!w)
		return;
	/* Type 1 windows are bound by ibv_bind_mw() alone. */
	if (mw->type != IBV_MW_TYPE_2 || !info->mr) {
		set_error(vqp_of_ex(ex), EINVAL);
		return;
	}
	w->rkey = rkey;
	w->bind.addr = info->addr;
	w->bind.length = info->length;
	w->bind.mw_key = mw->rkey;
	w->bind.lkey = info->mr->lkey;
	w->bind.access = (int)info->mw_access_flags;
}

/* Operations that no QP of ours was created with. */
static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	set_error(vqp_of_ex(ex), EOPNOTSUPP);
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, const void *data)
{
	set_error(vqp_of_ex(ex), EOPNOTSUPP);
}

/* --- setters -------------------------------------------------------------------------------- */

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct vqp *v = vqp_of_ex(ex);

	if (!v->wqe)
		return;
	if (v->qp->type != IBV_QPT_UD) {
		set_error(v, EINVAL);
		return;
	}
	v->wqe->ud.to = container_of(ah, struct ah, ibv)->dest;
	v->wqe->ud.qpn = qpn;
	v->wqe->ud.qkey = qkey;
	v->wr_addressed = true;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t srqn)
{
	struct vqp *v = vqp_of_ex(ex);

	if (v->wqe)
		v->wqe->srqn = srqn & 0xffffff;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *list)
{
	struct vqp *v = vqp_of_ex(ex);
	int err;

	if (!v->wqe)
		return;
	err = qp_sq_set_sges(v->qp, v->wqe, list, n);
	if (err)
		set_error(v, -err);
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

	wr_set_sge_list(ex, 1, &sge);
}

static void begin_inline(struct swqe *w)
{
	w->flags |= IBV_SEND_INLINE;
	w->num_sge = 0;
	w->length = 0;
}

/* Copied now: the program may use its buffers again at once. */
static void add_inline(struct vqp *v, const void *p, size_t n)
{
	int err = qp_sq_add_inline(v->qp, v->wqe, p, n);

	if (unlikely(err))
		set_error(v, -err);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *list)
{
	struct vqp *v = vqp_of_ex(ex);

	if (!v->wqe)
		return;
	begin_inline(v->wqe);
	for (size_t i = 0; i < n && v->wqe; i++)
		add_inline(v, list[i].addr, list[i].length);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct vqp *v = vqp_of_ex(ex);

	if (!v->wqe)
		return;
	begin_inline(v->wqe);
	add_inline(v, addr, length);
}

/* --- the critical section --------------------------------------------------------------------- */

static void wr_start(struct ibv_qp_ex *ex)
{
	struct vqp *v = vqp_of_ex(ex);

	v->wqe = NULL;
	/* A fork left the queue behind, its lock perhaps held. */
	if (is_dead(ex->qp_base.context)) {
		v->wr_error = EIO;
		return;
	}
	qp_sq_begin(v->qp);
	v->wqe = NULL;
	v->wr_error = 0;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	struct vqp *v = vqp_of_ex(ex);

	v->wqe = NULL;
	if (!is_dead(ex->qp_base.context))
		qp_sq_abort(v->qp);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct vqp *v = vqp_of_ex(ex);
	int err;

	finish(v);
	err = v->wr_error;
	if (err)
		wr_abort(ex);
	else
		qp_sq_commit(v->qp, now_ns());
	return err;
}

/* --- which operations a type has: IBTA table 92 (UC has no opcode for SEND with invalidate) --- */

#define OPS_SEND (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define OPS_UC                                                                                     \
	(OPS_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |               \
	 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW)
#define OPS_RC                                                                                     \
	(OPS_UC | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_READ |                        \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

static uint64_t ops_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_XRC_SEND:
		return OPS_RC;
	case IBV_QPT_UC:
		return OPS_UC;
	case IBV_QPT_UD:
		return OPS_SEND;
	default:
		return 0;
	}
}

int qp_ex_init(struct vqp *v, uint64_t send_ops_flags)
{
	struct ibv_qp_ex *ex = &v->ex;

	if (send_ops_flags & ~ops_of(v->init.qp_type))
		return -EOPNOTSUPP;
	v->has_builders = true;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_send_tso = wr_send_tso;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_atomic_write = wr_atomic_write;
	return 0;
}
