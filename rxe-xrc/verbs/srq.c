/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared receive queues, and the XRC domains that some of them belong to. */
#include "verbs/objects.h"

#include "verbs/forward.h"
#include "verbs/rawfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/*
 * --- domains --------------------------------------------------------------------------------
 *
 * Each ibv_open_xrcd() makes a handle, and several may be of one domain (the kernel's ib_uxrcd_object and
 * ib_xrcd). Closing one is refused while there is anything that was made through it; what was made through
 * others does not matter. So when the last one goes, the domain is empty.
 */

/*
 * The number of an inode is free again when its last link and descriptor are gone, and the next file may get it, on
 * ext4 at once: so the domain of a deleted file would become that of another. The kernel keeps a reference. This
 * one is of a descriptor that can do nothing, and whose closing drops no locks of the program's.
 *
 * Return: the descriptor, or -1 without /proc.
 */
static int hold_inode(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return raw_openat(AT_FDCWD, path, O_PATH, 0);
}

static void free_handle(struct vxrcd *v)
{
	if (v->file >= 0)
		close(v->file);
	free(v);
}

struct ibv_xrcd *xrcd_face_open(struct ibv_context *ctx, struct ibv_xrcd_init_attr *attr)
{
	const uint32_t both = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct stat st = {};
	struct vxrcd *v;
	int err, saved = errno;

	if (is_dead(ctx))
		return fail(EIO);
	if (attr->comp_mask & ~both)
		return fail(EOPNOTSUPP);
	if (attr->comp_mask != both)
		return fail(EINVAL);
	/* The file names the domain; the program need not keep it open. */
	if (attr->fd != -1 && fstat(attr->fd, &st))
		return NULL;
	v = calloc(1, sizeof(*v));
	if (!v)
		return fail(ENOMEM);
	v->file = attr->fd != -1 ? hold_inode(attr->fd) : -1;
	errno = saved;
	err = xrcd_open(engine_of(ctx), attr->fd != -1, st.st_dev, st.st_ino, attr->oflags,
			&v->xrcd);
	if (err) {
		free_handle(v);
		return fail(err);
	}
	v->ibv.context = ctx;
	object_add(ctx, OBJECT_XRCD, &v->obj);
	return &v->ibv;
}

int xrcd_face_close(struct ibv_xrcd *xrcd)
{
	struct vxrcd *v = vxrcd_of(xrcd);
	int err;

	if (is_dead(xrcd->context))
		return 0;
	if (atomic_load(&v->users))
		return EBUSY;
	err = xrcd_close(v->xrcd);
	if (err)
		return -err;
	object_del(&v->obj);
	free_handle(v);
	return 0;
}

void xrcd_object_destroy(struct object *obj)
{
	struct vxrcd *v = container_of(obj, struct vxrcd, obj);

	xrcd_close(v->xrcd);
	object_del(obj);
	free_handle(v);
}

/* --- queues --------------------------------------------------------------------------------- */

int srq_face_post(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return -rq_post_list(vsrq_of(srq)->srq->rq, wr, bad);
}

static struct ibv_srq *create(struct ibv_context *ctx, struct ibv_pd *ibpd, enum ibv_srq_type type,
			      struct ibv_xrcd *xrcd, struct ibv_cq *cq, struct ibv_srq_attr *attr,
			      void *srq_context)
{
	struct vsrq *v;
	int err;

	if (is_dead(ctx))
		return fail(EIO);
	v = calloc(1, sizeof(*v));
	if (!v)
		return fail(ENOMEM);
	v->ibv.context = ctx;
	v->ibv.srq_context = srq_context;
	v->ibv.pd = ibpd;
	v->ibv.handle = device_handle();
	v->through = xrcd ? vxrcd_of(xrcd) : NULL;
	pthread_mutex_init(&v->ibv.mutex, NULL);
	pthread_cond_init(&v->ibv.cond, NULL);
	err = engine_srq_create(vpd_of(ibpd)->pd, type, xrcd ? v->through->xrcd : NULL,
				cq ? vcq_of(cq)->cq : NULL, attr, v, &v->srq);
	if (err) {
		free(v);
		return fail(err);
	}
	vxrcd_get(v->through);
	object_add(ctx, OBJECT_SRQ, &v->obj);
	return &v->ibv;
}

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	if (!is_ours(pd->context))
		return REAL(ibv_create_srq)(pd, init);
	return create(pd->context, pd, IBV_SRQT_BASIC, NULL, NULL, &init->attr, init->srq_context);
}

struct ibv_srq *srq_face_create_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			       IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	const uint32_t xrc = known;
	enum ibv_srq_type type = IBV_SRQT_BASIC;

	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE)
		type = attr->srq_type;
	if (attr->comp_mask & ~known || (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC))
		return fail(EOPNOTSUPP);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd || attr->pd->context != ctx)
		return fail(EINVAL);
	if (type == IBV_SRQT_BASIC)
		return create(ctx, attr->pd, type, NULL, NULL, &attr->attr, attr->srq_context);
	if (attr->comp_mask != xrc || !attr->xrcd || attr->xrcd->context != ctx || !attr->cq ||
	    attr->cq->context != ctx)
		return fail(EINVAL);
	return create(ctx, attr->pd, type, attr->xrcd, attr->cq, &attr->attr, attr->srq_context);
}

int srq_face_get_num(struct ibv_srq *srq, uint32_t *num)
{
	struct srq *s = vsrq_of(srq)->srq;

	if (is_dead(srq->context))
		return EIO;
	if (s->type != IBV_SRQT_XRC)
		return EOPNOTSUPP; /* as Linux and its providers */
	*num = s->srqn;
	return 0;
}

EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	if (!is_ours(srq->context))
		return REAL(ibv_modify_srq)(srq, attr, mask);
	if (is_dead(srq->context))
		return EIO;
	return -engine_srq_modify(vsrq_of(srq)->srq, attr, mask);
}

EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	if (!is_ours(srq->context))
		return REAL(ibv_query_srq)(srq, attr);
	if (is_dead(srq->context))
		return EIO;
	engine_srq_query(vsrq_of(srq)->srq, attr);
	return 0;
}

static void dispose(struct vsrq *v)
{
	object_del(&v->obj);
	pthread_cond_destroy(&v->ibv.cond);
	pthread_mutex_destroy(&v->ibv.mutex);
	free(v);
}

EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
	struct vsrq *v = vsrq_of(srq);
	int err;

	if (!is_ours(srq->context))
		return REAL(ibv_destroy_srq)(srq);
	if (is_dead(srq->context))
		return 0;
	err = engine_srq_destroy(v->srq);
	if (err)
		return -err;
	vxrcd_put(v->through);
	async_forget(srq->context, srq);
	async_wait_acks(&srq->mutex, &srq->cond, &srq->events_completed, v->async_reported);
	dispose(v);
	return 0;
}

void srq_object_destroy(struct object *obj)
{
	struct vsrq *v = container_of(obj, struct vsrq, obj);

	engine_srq_destroy(v->srq);
	vxrcd_put(v->through);
	async_forget(v->ibv.context, &v->ibv);
	dispose(v);
}
