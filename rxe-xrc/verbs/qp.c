/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs.
 *
 * The first one makes the device take its address (device_link), which is where a second process on the same
 * address learns that it must choose another.
 *
 * ibv_qp.state is read by programs without asking. It follows ibv_modify_qp() and ibv_query_qp(), and when the
 * engine takes a QP to an error state by itself, it follows the event or the completion that tells the
 * program so.
 *
 * An XRC TGT QP may have several handles (ibv_open_qp), each with an ibv_qp of its own.
 */
#include "verbs/objects.h"

#include "verbs/forward.h"

#include <stdlib.h>

/* --- hot paths ------------------------------------------------------------------------------ */

int qp_face_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return -qp_post_send(vqp_of(qp)->qp, wr, bad, now_ns());
}

int qp_face_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return -qp_post_recv(vqp_of(qp)->qp, wr, bad, now_ns());
}

/* Once for each QP that fails, so a walk will do. */
void qp_face_failed(struct device *dev, uint32_t qpn)
{
	struct vcontext *ctx;
	struct vqp *v;

	pthread_mutex_lock(&object_lock);
	cds_list_for_each_entry (ctx, &dev->contexts, node)
		cds_list_for_each_entry (v, &ctx->objects[OBJECT_QP], obj.node)
			if (v->ex.qp_base.qp_num == qpn)
				qp_face_sync(v);
	pthread_mutex_unlock(&object_lock);
}

/* --- create --------------------------------------------------------------------------------- */

/* What an attribute structure of either form asks for. */
struct wanted {
	const struct ibv_qp_init_attr *attr;
	struct ibv_pd *pd;
	struct ibv_xrcd *xrcd;
	bool builders;
	uint64_t send_ops;
};

static int check_wanted(const struct wanted *w, const struct ibv_context *ctx)
{
	const struct ibv_qp_init_attr *a = w->attr;

	switch (a->qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
		if (!a->recv_cq || a->recv_cq->context != ctx)
			return -EINVAL;
		if (a->srq && a->srq->context != ctx)
			return -EINVAL;
		/* fall through */
	case IBV_QPT_XRC_SEND:
		if (!w->pd || w->pd->context != ctx || !a->send_cq || a->send_cq->context != ctx)
			return -EINVAL;
		return 0;
	case IBV_QPT_XRC_RECV:
		return w->xrcd && w->xrcd->context == ctx && !w->builders ? 0 : -EINVAL;
	default:
		return -EOPNOTSUPP;
	}
}

/* Only what the type has: programs leave garbage in the rest. */
static void fill_init(const struct wanted *w, struct vqp *v, struct qp_init *init)
{
	const struct ibv_qp_init_attr *a = w->attr;
	bool sends = a->qp_type != IBV_QPT_XRC_RECV;
	bool receives = sends && a->qp_type != IBV_QPT_XRC_SEND;

	*init = (struct qp_init){.type = a->qp_type, .cap = a->cap, .user = v};
	v->init = *a;
	if (sends) {
		init->pd = vpd_of(w->pd)->pd;
		init->send_cq = vcq_of(a->send_cq)->cq;
		init->sq_sig_all = a->sq_sig_all;
	} else {
		v->through = vxrcd_of(w->xrcd);
		init->xrcd = v->through->xrcd;
		init->cap = (struct ibv_qp_cap){};
		v->init.send_cq = NULL;
	}
	if (receives) {
		init->recv_cq = vcq_of(a->recv_cq)->cq;
		init->srq = a->srq ? vsrq_of(a->srq)->srq : NULL;
	} else {
		v->init.recv_cq = NULL;
		v->init.srq = NULL;
	}
	if (!receives || init->srq)
		init->cap.max_recv_wr = init->cap.max_recv_sge = 0;
}

static void fill_public(struct vqp *v, struct ibv_context *ctx, struct ibv_pd *pd)
{
	struct ibv_qp *qp = &v->ex.qp_base;

	qp->context = ctx;
	qp->qp_context = v->init.qp_context;
	qp->pd = pd;
	qp->send_cq = v->init.send_cq;
	qp->recv_cq = v->init.recv_cq;
	qp->srq = v->init.srq;
	qp->handle = device_handle();
	qp->qp_type = v->init.qp_type;
	pthread_mutex_init(&qp->mutex, NULL);
	pthread_cond_init(&qp->cond, NULL);
}

/* The engine's object is there. */
static void adopt(struct vqp *v, struct qp_handle *handle)
{
	v->handle = handle;
	v->qp = handle->qp;
	v->ex.qp_base.qp_num = v->qp->qpn;
	qp_face_sync(v);
	vxrcd_get(v->through);
	object_add(v->ex.qp_base.context, OBJECT_QP, &v->obj);
}

static void dispose(struct vqp *v)
{
	pthread_cond_destroy(&v->ex.qp_base.cond);
	pthread_mutex_destroy(&v->ex.qp_base.mutex);
	free(v);
}

static struct ibv_qp *create(struct ibv_context *ctx, const struct wanted *w,
			     struct ibv_qp_cap *cap)
{
	struct qp_handle *handle;
	struct qp_init init;
	struct vqp *v;
	int err;

	if (is_dead(ctx))
		return fail(EIO);
	err = check_wanted(w, ctx);
	if (err)
		return fail(err);
	err = device_link(vcontext_of(ctx)->dev);
	if (err)
		return fail(err);
	v = calloc(1, sizeof(*v));
	if (!v)
		return fail(ENOMEM);
	v->dev = vcontext_of(ctx)->dev;
	fill_init(w, v, &init);
	fill_public(v, ctx, init.pd ? w->pd : NULL);
	if (w->builders) {
		err = qp_ex_init(v, w->send_ops);
		if (err)
			goto err_free;
	}
	err = qp_create(v->dev->engine, &init, &handle);
	if (err)
		goto err_free;
	*cap = v->init.cap = init.cap;
	adopt(v, handle);
	return &v->ex.qp_base;

err_free:
	dispose(v);
	return fail(err);
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct wanted w = {.attr = attr, .pd = pd};

	if (!is_ours(pd->context))
		return REAL(ibv_create_qp)(pd, attr);
	return create(pd->context, &w, &attr->cap);
}

struct ibv_qp *qp_face_create_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	/* Both structures begin alike. */
	struct wanted w = {.attr = (const struct ibv_qp_init_attr *)attr};

	if (attr->comp_mask & ~known)
		return fail(EOPNOTSUPP);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags)
		return fail(EOPNOTSUPP);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_PD)
		w.pd = attr->pd;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD)
		w.xrcd = attr->xrcd;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		w.builders = true;
		w.send_ops = attr->send_ops_flags;
	}
	return create(ctx, &w, &attr->cap);
}

struct ibv_qp *qp_face_open(struct ibv_context *ctx, struct ibv_qp_open_attr *attr)
{
	const uint32_t needed =
		IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	struct qp_handle *handle;
	struct vqp *v;
	int err;

	if (is_dead(ctx))
		return fail(EIO);
	if (attr->comp_mask & ~(needed | IBV_QP_OPEN_ATTR_CONTEXT))
		return fail(EOPNOTSUPP);
	if ((attr->comp_mask & needed) != needed || attr->qp_type != IBV_QPT_XRC_RECV ||
	    !attr->xrcd || attr->xrcd->context != ctx)
		return fail(EINVAL);
	v = calloc(1, sizeof(*v));
	if (!v)
		return fail(ENOMEM);
	v->dev = vcontext_of(ctx)->dev;
	v->through = vxrcd_of(attr->xrcd);
	v->init.qp_type = IBV_QPT_XRC_RECV;
	if (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT)
		v->init.qp_context = attr->qp_context;
	fill_public(v, ctx, NULL);
	err = qp_open(v->through->xrcd, attr->qp_num, v, &handle);
	if (err) {
		dispose(v);
		return fail(err);
	}
	adopt(v, handle);
	return &v->ex.qp_base;
}

EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	if (!is_ours(qp->context))
		return REAL(ibv_qp_to_qp_ex)(qp);
	return vqp_of(qp)->has_builders ? &vqp_of(qp)->ex : NULL;
}

/* --- modify, query, destroy ------------------------------------------------------------------- */

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct vqp *v = vqp_of(qp);
	int err;

	if (!is_ours(qp->context))
		return REAL(ibv_modify_qp)(qp, attr, mask);
	if (is_dead(qp->context))
		return EIO;
	err = qp_modify(v->qp, attr, mask, now_ns());
	qp_face_sync(v);
	return -err;
}

EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init_attr)
{
	struct vqp *v = vqp_of(qp);
	struct qp_init init;
	int err;

	if (!is_ours(qp->context))
		return REAL(ibv_query_qp)(qp, attr, mask, init_attr);
	if (is_dead(qp->context))
		return EIO;
	err = qp_query(v->qp, attr, &init);
	if (err)
		return -err;
	qp_face_sync(v);
	*init_attr = v->init;
	init_attr->cap = init.cap;
	init_attr->sq_sig_all = init.sq_sig_all;
	return 0;
}

EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	__typeof__(&ibv_query_qp_data_in_order) real;

	if (is_ours(qp->context))
		return 0;
	real = REAL(ibv_query_qp_data_in_order);
	return real ? real(qp, op, flags) : 0;
}

static void forget(struct vqp *v)
{
	async_forget(v->ex.qp_base.context, &v->ex.qp_base);
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct vqp *v = vqp_of(qp);
	int err;

	if (!is_ours(qp->context))
		return REAL(ibv_destroy_qp)(qp);
	if (is_dead(qp->context))
		return 0;
	/* From the list first: who walks it looks at the engine's QP. */
	object_del(&v->obj);
	err = qp_close(v->handle, now_ns());
	if (err) {
		object_add(qp->context, OBJECT_QP, &v->obj);
		return -err;
	}
	vxrcd_put(v->through);
	forget(v);
	async_wait_acks(&qp->mutex, &qp->cond, &qp->events_completed, v->async_reported);
	dispose(v);
	return 0;
}

void qp_object_destroy(struct object *obj)
{
	struct vqp *v = container_of(obj, struct vqp, obj);

	object_del(obj);
	qp_close(v->handle, now_ns());
	vxrcd_put(v->through);
	forget(v);
	dispose(v);
}

/* --- what the device does not do ------------------------------------------------------------------ */

EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (!is_ours(qp->context))
		return REAL(ibv_attach_mcast)(qp, gid, lid);
	return EOPNOTSUPP;
}

EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (!is_ours(qp->context))
		return REAL(ibv_detach_mcast)(qp, gid, lid);
	return EOPNOTSUPP;
}

EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (!is_ours(qp->context))
		return REAL(ibv_query_ece)(qp, ece);
	return EOPNOTSUPP;
}

EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (!is_ours(qp->context))
		return REAL(ibv_set_ece)(qp, ece);
	return EOPNOTSUPP;
}
