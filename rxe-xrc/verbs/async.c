/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asynchronous events: from the engine, and from the port watcher, to a context's queue.
 *
 * The engine names the object that an event is about by the user pointer that it was created with; events
 * of the port and the device go to every context. Each context has a list of events and a descriptor
 * with one token for each (tokens.h). Whoever gets an event must acknowledge it, and destroying its object
 * waits for that; events that nobody has got go with the object.
 */
#include "verbs/objects.h"

#include "verbs/forward.h"
#include "verbs/tokens.h"

#include <stdlib.h>
#include <unistd.h>

enum event_class { EVENT_OF_CONTEXT, EVENT_OF_CQ, EVENT_OF_QP, EVENT_OF_SRQ };

/* The rest are of the port or of the device. */
static const uint8_t event_class[] = {
	[IBV_EVENT_CQ_ERR] = EVENT_OF_CQ,
	[IBV_EVENT_QP_FATAL] = EVENT_OF_QP,
	[IBV_EVENT_QP_REQ_ERR] = EVENT_OF_QP,
	[IBV_EVENT_QP_ACCESS_ERR] = EVENT_OF_QP,
	[IBV_EVENT_COMM_EST] = EVENT_OF_QP,
	[IBV_EVENT_SQ_DRAINED] = EVENT_OF_QP,
	[IBV_EVENT_PATH_MIG] = EVENT_OF_QP,
	[IBV_EVENT_PATH_MIG_ERR] = EVENT_OF_QP,
	[IBV_EVENT_QP_LAST_WQE_REACHED] = EVENT_OF_QP,
	[IBV_EVENT_SRQ_ERR] = EVENT_OF_SRQ,
	[IBV_EVENT_SRQ_LIMIT_REACHED] = EVENT_OF_SRQ,
	[IBV_EVENT_WQ_FATAL] = EVENT_OF_CONTEXT,
};

struct event {
	struct cds_list_head node;
	struct ibv_async_event ev;
	const void *object; /* ibv_cq, ibv_qp or ibv_srq; NULL: of the context */
	uint32_t *reported; /* the object's count of events that were got, or NULL */
};

static void push(struct vcontext *ctx, const struct ibv_async_event *ev, const void *object,
		 uint32_t *reported)
{
	struct event *e = malloc(sizeof(*e));

	if (!e) {
		stats_inc(&ctx->dev->engine->lanes[0]->stats, STAT_events_lost);
		return;
	}
	e->ev = *ev;
	e->object = object;
	e->reported = reported;
	lock_take(&ctx->events_lock);
	cds_list_add_tail(&e->node, &ctx->events);
	lock_give(&ctx->events_lock);
	tokens_give(ctx->vc.context.async_fd);
}

static void push_all(struct device *dev, struct ibv_async_event *ev)
{
	struct vcontext *ctx;

	ev->element.port_num = 1;
	pthread_mutex_lock(&object_lock);
	cds_list_for_each_entry (ctx, &dev->contexts, node)
		push(ctx, ev, NULL, NULL);
	pthread_mutex_unlock(&object_lock);
}

void async_face_event(struct engine *e, enum ibv_event_type type, void *user)
{
	struct ibv_async_event ev = {.event_type = type};
	struct vcq *cq = user;
	struct vqp *qp = user;
	struct vsrq *srq = user;

	switch (event_class[type]) {
	case EVENT_OF_CQ:
		ev.element.cq = &cq->ibv;
		push(vcontext_of(cq->ibv.context), &ev, &cq->ibv, &cq->async_reported);
		break;
	case EVENT_OF_QP:
		qp_face_sync(qp);
		ev.element.qp = &qp->ex.qp_base;
		push(vcontext_of(qp->ex.qp_base.context), &ev, &qp->ex.qp_base,
		     &qp->async_reported);
		break;
	case EVENT_OF_SRQ:
		ev.element.srq = &srq->ibv;
		push(vcontext_of(srq->ibv.context), &ev, &srq->ibv, &srq->async_reported);
		break;
	default:
		push_all(e->user, &ev);
	}
}

void async_forget(struct ibv_context *ibctx, const void *object)
{
	struct vcontext *ctx = vcontext_of(ibctx);
	struct event *e, *tmp;
	unsigned int n = 0;

	lock_take(&ctx->events_lock);
	cds_list_for_each_entry_safe (e, tmp, &ctx->events, node) {
		if (e->object != object)
			continue;
		cds_list_del(&e->node);
		free(e);
		n++;
	}
	lock_give(&ctx->events_lock);
	tokens_drop(ibctx->async_fd, n);
}

int async_init(struct vcontext *ctx)
{
	int fd = tokens_open();

	if (fd < 0)
		return fd;
	lock_init(&ctx->events_lock);
	CDS_INIT_LIST_HEAD(&ctx->events);
	ctx->vc.context.async_fd = fd;
	return 0;
}

void async_fini(struct vcontext *ctx)
{
	struct event *e, *tmp;

	cds_list_for_each_entry_safe (e, tmp, &ctx->events, node)
		free(e);
	close(ctx->vc.context.async_fd);
}

void async_wait_acks(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
		     uint32_t reported)
{
	pthread_mutex_lock(mutex);
	while (*completed != reported)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}

static struct event *pop(struct vcontext *ctx)
{
	struct event *e = NULL;

	lock_take(&ctx->events_lock);
	if (!cds_list_empty(&ctx->events)) {
		e = cds_list_first_entry(&ctx->events, struct event, node);
		cds_list_del(&e->node);
		if (e->reported)
			++*e->reported;
	}
	lock_give(&ctx->events_lock);
	return e;
}

EXPORT int ibv_get_async_event(struct ibv_context *ibctx, struct ibv_async_event *event)
{
	struct event *e;

	if (!is_ours(ibctx))
		return REAL(ibv_get_async_event)(ibctx, event);
	do {
		if (is_dead(ibctx)) {
			errno = EIO;
			return -1;
		}
		if (tokens_take(ibctx->async_fd))
			return -1;
		/* Nothing there: its object was destroyed in between. */
		e = pop(vcontext_of(ibctx));
	} while (!e);
	*event = e->ev;
	free(e);
	return 0;
}

static void ack(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}

/* The members that count acknowledges are public and the same in both libraries: ours need no check. */
EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;

	if ((unsigned int)event->event_type == IBV_EVENT_WQ_FATAL) {
		REAL(ibv_ack_async_event)(event);
		return;
	}
	switch ((size_t)event->event_type < sizeof(event_class) ? event_class[event->event_type]
								: EVENT_OF_CONTEXT) {
	case EVENT_OF_CQ:
		ack(&cq->mutex, &cq->cond, &cq->async_events_completed);
		break;
	case EVENT_OF_QP:
		ack(&qp->mutex, &qp->cond, &qp->events_completed);
		break;
	case EVENT_OF_SRQ:
		ack(&srq->mutex, &srq->cond, &srq->events_completed);
		break;
	default:
		break;
	}
}
