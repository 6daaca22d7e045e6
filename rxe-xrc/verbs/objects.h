/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The objects that programs hold: libibverbs' public structure first, behind it the engine's object.
 *
 * A v stands before their names, to tell them from the engine's: struct vqp is what the program points to,
 * struct qp is the engine's.
 */
#ifndef RXE_VERBS_OBJECTS_H
#define RXE_VERBS_OBJECTS_H

#include "engine/ah.h"
#include "engine/mr.h"
#include "engine/qp.h"
#include "verbs/device.h"

struct vpd {
	struct ibv_pd ibv;
	struct object obj;
	struct pd *pd;
};

struct vmr {
	struct ibv_mr ibv;
	struct object obj;
	struct mr *mr;
};

struct vmw {
	struct ibv_mw ibv;
	struct object obj;
	struct mr *mw;
};

struct vah {
	struct ah ah;
	struct object obj;
};

/* Several may be of one domain. Each is busy by what was made through it, whatever else the domain has. */
struct vxrcd {
	struct ibv_xrcd ibv;
	struct object obj;
	struct xrcd *xrcd;
	int file;	   /* holds the inode that names the domain; or -1 */
	atomic_uint users; /* SRQs, TGT QPs and handles to TGT QPs */
};

struct vchannel {
	struct ibv_comp_channel ibv;
	struct object obj;
	struct lock lock; /* events, and what is marked "channel" in vcq */
	struct cds_list_head events;
};

struct vcq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	struct object obj;
	struct device *dev;
	struct cq *cq;
	/* channel: events that nobody has got yet, and those that were got */
	struct cds_list_head event;
	unsigned int pending;
	uint32_t comp_reported;
	uint32_t async_reported; /* under the context's events_lock */
	/* Extended polling: held from start_poll to end_poll, unless single-threaded */
	pthread_mutex_t poll_mutex;
	bool single_threaded;
	struct cqe cqe; /* the current completion */
};

struct vsrq {
	struct ibv_srq ibv;
	struct object obj;
	struct srq *srq;
	struct vxrcd *through; /* XRC */
	uint32_t async_reported;
};

struct vqp {
	struct ibv_qp_ex ex; /* ibv_qp first */
	struct object obj;
	struct device *dev;
	struct qp *qp;
	struct qp_handle *handle;
	struct vxrcd *through;	      /* XRC TGT: the handle by which it was created or opened */
	struct ibv_qp_init_attr init; /* as created, for queries */
	uint32_t async_reported;
	/* The builders of qp_ex.c, under the send queue's lock from wr_start to wr_complete */
	bool has_builders;
	int wr_error;	   /* errno of the first failure */
	struct swqe *wqe;  /* under construction; NULL: none, or it failed */
	bool wr_addressed; /* UD: the address has been set */
};

static inline struct vpd *vpd_of(struct ibv_pd *pd)
{
	return container_of(pd, struct vpd, ibv);
}

static inline struct vcq *vcq_of(struct ibv_cq *cq)
{
	return container_of(cq, struct vcq, ibv);
}

static inline struct vsrq *vsrq_of(struct ibv_srq *srq)
{
	return container_of(srq, struct vsrq, ibv);
}

static inline struct vqp *vqp_of(struct ibv_qp *qp)
{
	return container_of(qp, struct vqp, ex.qp_base);
}

static inline struct vqp *vqp_of_ex(struct ibv_qp_ex *qp)
{
	return container_of(qp, struct vqp, ex);
}

static inline struct vxrcd *vxrcd_of(struct ibv_xrcd *x)
{
	return container_of(x, struct vxrcd, ibv);
}

/* vxrcd_get(), vxrcd_put() - one user more or less; NULL is nothing. After the put another thread may close it. */
static inline void vxrcd_get(struct vxrcd *v)
{
	if (v)
		atomic_fetch_add(&v->users, 1);
}

static inline void vxrcd_put(struct vxrcd *v)
{
	if (v)
		atomic_fetch_sub(&v->users, 1);
}

/* Hot paths and other operations, for ops.c */
int cq_face_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int cq_face_arm(struct ibv_cq *cq, int solicited_only);
int srq_face_post(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int qp_face_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int qp_face_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_mw *mw_face_alloc(struct ibv_pd *pd, enum ibv_mw_type type);
int mw_face_bind(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int mw_face_dealloc(struct ibv_mw *mw);
struct ibv_cq_ex *cq_face_create_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr);
struct ibv_srq *srq_face_create_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr);
int srq_face_get_num(struct ibv_srq *srq, uint32_t *num);
struct ibv_qp *qp_face_create_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *qp_face_open(struct ibv_context *ctx, struct ibv_qp_open_attr *attr);
struct ibv_xrcd *xrcd_face_open(struct ibv_context *ctx, struct ibv_xrcd_init_attr *attr);
int xrcd_face_close(struct ibv_xrcd *xrcd);
int query_face_device(struct ibv_context *ctx, const struct ibv_query_device_ex_input *in,
		      struct ibv_device_attr_ex *attr, size_t size);
int query_face_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, size_t size);
int query_face_rt(struct ibv_context *ctx, struct ibv_values_ex *values);

/** qp_ex_init() - sets the builders. 0, or -EOPNOTSUPP for operations that the QP's type lacks. */
int qp_ex_init(struct vqp *v, uint64_t send_ops_flags);

/** qp_face_sync() - the program reads ibv_qp.state without asking. */
static inline void qp_face_sync(struct vqp *v)
{
	v->ex.qp_base.state = v->qp->state;
}

/** qp_face_failed() - a completion with an error was polled: the QP of that number is in another state. */
void qp_face_failed(struct device *dev, uint32_t qpn);

/** cq_face_event() - engine_ops.cq_event */
void cq_face_event(struct cq *cq);

/* Asynchronous events, async.c. Their classes decide what the event's user pointer is. */
void async_face_event(struct engine *e, enum ibv_event_type type, void *user);
/** async_forget() - removes the events of an object that nobody has got. */
void async_forget(struct ibv_context *ctx, const void *object);
/** async_init(), async_fini() - a context's queue. 0 or -errno. */
int async_init(struct vcontext *ctx);
void async_fini(struct vcontext *ctx);

/** async_wait_acks() - waits until *@completed is @reported, as libibverbs' destroy functions do. */
void async_wait_acks(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
		     uint32_t reported);

#endif
