/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The operations that the inline wrappers of verbs.h call through a context.
 *
 * Members of ibv_context.ops are called without a check for NULL, so each of them is set. Members of verbs_context
 * that are NULL make their wrapper say EOPNOTSUPP, which is right for all that the device lacks: flow
 * steering, device memory, work queues with an indirection table, counters, thread domains, rate limits,
 * null regions, advice, moderation.
 *
 * A context that a child inherits gets a second set: the child has neither the sockets nor the helper
 * thread, so everything that would need them says EIO, and destroying an object does nothing. This keeps
 * the check off the hot path.
 */
#include "verbs/objects.h"

#include <string.h>

/* libibverbs' own functions look into this; all zero means that no feature is there. */
static uint8_t no_private[4096];

static int query_compat_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	struct ibv_device_attr_ex ex;
	int err = query_face_device(ctx, NULL, &ex, sizeof(ex));

	*attr = ex.orig_attr;
	return err;
}

static int query_compat_port(struct ibv_context *ctx, uint8_t port,
			     struct _compat_ibv_port_attr *attr)
{
	return query_face_port(ctx, port, (struct ibv_port_attr *)attr,
			       offsetof(struct ibv_port_attr, port_cap_flags2));
}

void ops_init(struct verbs_context *vc)
{
	struct ibv_context_ops *ops = &vc->context.ops;

	vc->sz = sizeof(*vc);
	vc->priv = (struct verbs_ex_private *)no_private;
	vc->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	vc->query_port = query_face_port;
	vc->query_device_ex = query_face_device;
	vc->query_rt_values = query_face_rt;
	vc->create_cq_ex = cq_face_create_ex;
	vc->open_xrcd = xrcd_face_open;
	vc->close_xrcd = xrcd_face_close;
	vc->create_srq_ex = srq_face_create_ex;
	vc->get_srq_num = srq_face_get_num;
	vc->create_qp_ex = qp_face_create_ex;
	vc->open_qp = qp_face_open;

	ops->_compat_query_device = query_compat_device;
	ops->_compat_query_port = query_compat_port;
	ops->alloc_mw = mw_face_alloc;
	ops->bind_mw = mw_face_bind;
	ops->dealloc_mw = mw_face_dealloc;
	ops->poll_cq = cq_face_poll;
	ops->req_notify_cq = cq_face_arm;
	ops->post_srq_recv = srq_face_post;
	ops->post_send = qp_face_post_send;
	ops->post_recv = qp_face_post_recv;
}

static int dead_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	return -EIO;
}

static int dead_arm(struct ibv_cq *cq, int solicited_only)
{
	return EIO;
}

static int dead_post_srq(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = wr;
	return EIO;
}

static int dead_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	*bad = wr;
	return EIO;
}

static int dead_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = wr;
	return EIO;
}

static int dead_bind(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	return EIO;
}

void ops_kill(struct verbs_context *vc)
{
	struct ibv_context_ops *ops = &vc->context.ops;

	ops->poll_cq = dead_poll;
	ops->req_notify_cq = dead_arm;
	ops->post_srq_recv = dead_post_srq;
	ops->post_send = dead_post_send;
	ops->post_recv = dead_post_recv;
	ops->bind_mw = dead_bind;
}
