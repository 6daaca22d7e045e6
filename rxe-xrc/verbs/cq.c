/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues and completion channels.
 *
 * Polling. What is in the queue is returned at once. Only a poll that finds nothing makes progress
 * (progress_run) and looks again: so a program that polls does all the work of the device, in its own
 * thread, when it has nothing better to do. With several lanes it runs those that push to this queue, and looks
 * after those that nobody polls (look_after.c).
 *
 * Channels. A queue that is armed fires once for each arming; the engine says so with the lane held
 * (cq_face_event), and no memory may be needed then: each CQ is itself the entry in the channel's list, with a
 * count. The list is in the order in which events came, but for a queue that fires again before its first event
 * is got: its second comes behind the others when the first has been got. tokens.h has the descriptor.
 *
 * Extended polling takes one completion at a time from the queue, so that what a program leaves stays where
 * ibv_poll_cq(), resizing and the flushing of a QP find it.
 */
#include "verbs/objects.h"

#include "verbs/forward.h"
#include "verbs/tokens.h"

#include <stdlib.h>
#include <unistd.h>

/* Completions that one call of the engine moves. */
#define POLL_BATCH 16

/* --- channels ------------------------------------------------------------------------------- */

static struct vchannel *vchannel_of(struct ibv_comp_channel *ch)
{
	return container_of(ch, struct vchannel, ibv);
}

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	struct vchannel *v;
	int fd;

	if (!is_ours(ctx))
		return REAL(ibv_create_comp_channel)(ctx);
	if (is_dead(ctx))
		return fail(EIO);
	v = calloc(1, sizeof(*v));
	if (!v)
		return fail(ENOMEM);
	fd = tokens_open();
	if (fd < 0) {
		free(v);
		return fail(fd);
	}
	v->ibv.context = ctx;
	v->ibv.fd = fd;
	lock_init(&v->lock);
	CDS_INIT_LIST_HEAD(&v->events);
	object_add(ctx, OBJECT_CHANNEL, &v->obj);
	return &v->ibv;
}

void channel_object_destroy(struct object *obj)
{
	struct vchannel *v = container_of(obj, struct vchannel, obj);

	object_del(obj);
	close(v->ibv.fd);
	free(v);
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *ch)
{
	struct ibv_context *ctx = ch->context;
	bool busy;

	if (!is_ours(ctx))
		return REAL(ibv_destroy_comp_channel)(ch);
	if (is_dead(ctx))
		return 0;
	pthread_mutex_lock(&ctx->mutex);
	busy = ch->refcnt;
	pthread_mutex_unlock(&ctx->mutex);
	if (busy)
		return EBUSY;
	channel_object_destroy(&vchannel_of(ch)->obj);
	return 0;
}

static void channel_ref(struct ibv_comp_channel *ch, int n)
{
	if (!ch)
		return;
	pthread_mutex_lock(&ch->context->mutex);
	ch->refcnt += n;
	pthread_mutex_unlock(&ch->context->mutex);
}

void cq_face_event(struct cq *cq)
{
	struct vcq *v = cq->user;
	struct vchannel *ch;

	if (!v->ibv.channel)
		return;
	ch = vchannel_of(v->ibv.channel);
	lock_take(&ch->lock);
	if (!v->pending++)
		cds_list_add_tail(&v->event, &ch->events);
	lock_give(&ch->lock);
	tokens_give(ch->ibv.fd);
}

/* The queue that fired first, or NULL: it has been destroyed since. */
static struct vcq *channel_pop(struct vchannel *ch)
{
	struct vcq *v = NULL;

	lock_take(&ch->lock);
	if (!cds_list_empty(&ch->events)) {
		v = cds_list_first_entry(&ch->events, struct vcq, event);
		cds_list_del(&v->event);
		if (--v->pending)
			cds_list_add_tail(&v->event, &ch->events);
		v->comp_reported++;
	}
	lock_give(&ch->lock);
	return v;
}

/* Takes back what nobody got. Return: how many were got, and must be acknowledged. */
static uint32_t channel_forget(struct vcq *v)
{
	struct vchannel *ch;
	unsigned int pending;
	uint32_t reported;

	if (!v->ibv.channel)
		return 0;
	ch = vchannel_of(v->ibv.channel);
	lock_take(&ch->lock);
	pending = v->pending;
	if (pending)
		cds_list_del(&v->event);
	v->pending = 0;
	reported = v->comp_reported;
	lock_give(&ch->lock);
	tokens_drop(ch->ibv.fd, pending);
	return reported;
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *ch, struct ibv_cq **cq, void **cq_context)
{
	struct vcq *v;

	if (!is_ours(ch->context))
		return REAL(ibv_get_cq_event)(ch, cq, cq_context);
	do {
		if (is_dead(ch->context)) {
			errno = EIO;
			return -1;
		}
		if (tokens_take(ch->fd))
			return -1;
		v = channel_pop(vchannel_of(ch));
	} while (!v);
	*cq = &v->ibv;
	*cq_context = v->ibv.cq_context;
	return 0;
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	if (!is_ours(cq->context)) {
		REAL(ibv_ack_cq_events)(cq, nevents);
		return;
	}
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

/* --- polling -------------------------------------------------------------------------------- */

static int take(struct vcq *v, int n, struct ibv_wc *wc)
{
	struct cqe batch[POLL_BATCH];
	int got, total = 0;

	do {
		got = cq_poll(v->cq, min_t(int, n - total, POLL_BATCH), batch);
		for (int i = 0; i < got; i++) {
			wc[total++] = batch[i].wc;
			if (unlikely(batch[i].wc.status != IBV_WC_SUCCESS &&
				     batch[i].wc.status != IBV_WC_WR_FLUSH_ERR))
				qp_face_failed(v->dev, batch[i].wc.qp_num);
		}
	} while (got == POLL_BATCH && total < n);
	return total;
}

int cq_face_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct vcq *v = vcq_of(cq);
	int got;

	if (n <= 0)
		return 0;
	got = take(v, n, wc);
	if (got)
		return got;
	progress_run(&v->dev->progress, cq_lanes(v->cq));
	return take(v, n, wc);
}

int cq_face_arm(struct ibv_cq *cq, int solicited_only)
{
	struct vcq *v = vcq_of(cq);

	cq_arm(v->cq, solicited_only);
	if (cq->channel)
		progress_blocking(&v->dev->progress, cq_lanes(v->cq));
	return 0;
}

/* --- extended polling -------------------------------------------------------------------------- */

static struct vcq *vcq_of_ex(struct ibv_cq_ex *cq)
{
	return container_of(cq, struct vcq, ex);
}

static int advance(struct vcq *v)
{
	if (!cq_poll(v->cq, 1, &v->cqe))
		return ENOENT;
	v->ex.status = v->cqe.wc.status;
	v->ex.wr_id = v->cqe.wc.wr_id;
	if (unlikely(v->ex.status != IBV_WC_SUCCESS && v->ex.status != IBV_WC_WR_FLUSH_ERR))
		qp_face_failed(v->dev, v->cqe.wc.qp_num);
	return 0;
}

static int ex_start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	struct vcq *v = vcq_of_ex(cq);
	int err;

	if (unlikely(attr->comp_mask))
		return EINVAL;
	if (is_dead(cq->context))
		return EIO;
	if (!v->single_threaded)
		pthread_mutex_lock(&v->poll_mutex);
	err = advance(v);
	if (err) {
		progress_run(&v->dev->progress, cq_lanes(v->cq));
		err = advance(v);
	}
	if (err && !v->single_threaded)
		pthread_mutex_unlock(&v->poll_mutex);
	return err;
}

static int ex_next_poll(struct ibv_cq_ex *cq)
{
	return advance(vcq_of_ex(cq));
}

static void ex_end_poll(struct ibv_cq_ex *cq)
{
	struct vcq *v = vcq_of_ex(cq);

	if (!v->single_threaded)
		pthread_mutex_unlock(&v->poll_mutex);
}

#define EX_READ(type, name, expr)                                                                  \
	static type ex_read_##name(struct ibv_cq_ex *cq)                                           \
	{                                                                                          \
		struct cqe *cqe = &vcq_of_ex(cq)->cqe;                                             \
                                                                                                   \
		return expr;                                                                       \
	}

EX_READ(enum ibv_wc_opcode, opcode, cqe->wc.opcode)
EX_READ(uint32_t, vendor_err, cqe->wc.vendor_err)
EX_READ(uint32_t, byte_len, cqe->wc.byte_len)
EX_READ(__be32, imm_data, cqe->wc.imm_data)
EX_READ(uint32_t, qp_num, cqe->wc.qp_num)
EX_READ(uint32_t, src_qp, cqe->wc.src_qp)
EX_READ(unsigned int, wc_flags, cqe->wc.wc_flags)
EX_READ(uint32_t, slid, cqe->wc.slid)
EX_READ(uint8_t, sl, cqe->wc.sl)
EX_READ(uint8_t, dlid_path_bits, cqe->wc.dlid_path_bits)
EX_READ(uint64_t, completion_ts, cqe->timestamp)

/* The timestamp is of the monotonic clock; how far the wall's is ahead of it is read once, so that order stays. */
static uint64_t ex_read_wallclock(struct ibv_cq_ex *cq)
{
	static _Atomic uint64_t ahead;
	uint64_t offset = atomic_load_explicit(&ahead, memory_order_relaxed), none = 0;
	struct timespec ts;

	if (!offset) {
		clock_gettime(CLOCK_REALTIME, &ts);
		offset = (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec - now_ns();
		if (!atomic_compare_exchange_strong(&ahead, &none, offset))
			offset = none;
	}
	return vcq_of_ex(cq)->cqe.timestamp + offset;
}

static void ex_init(struct ibv_cq_ex *ex)
{
	ex->start_poll = ex_start_poll;
	ex->next_poll = ex_next_poll;
	ex->end_poll = ex_end_poll;
	ex->read_opcode = ex_read_opcode;
	ex->read_vendor_err = ex_read_vendor_err;
	ex->read_byte_len = ex_read_byte_len;
	ex->read_imm_data = ex_read_imm_data;
	ex->read_qp_num = ex_read_qp_num;
	ex->read_src_qp = ex_read_src_qp;
	ex->read_wc_flags = ex_read_wc_flags;
	ex->read_slid = ex_read_slid;
	ex->read_sl = ex_read_sl;
	ex->read_dlid_path_bits = ex_read_dlid_path_bits;
	ex->read_completion_ts = ex_read_completion_ts;
	ex->read_completion_wallclock_ns = ex_read_wallclock;
}

/* --- create, resize, destroy -------------------------------------------------------------------- */

static struct vcq *create(struct ibv_context *ctx, uint32_t cqe, void *cq_context,
			  struct ibv_comp_channel *ch, uint32_t comp_vector)
{
	struct vcq *v;
	int err;

	if (is_dead(ctx))
		return fail(EIO);
	if (comp_vector >= (uint32_t)ctx->num_comp_vectors || (ch && ch->context != ctx))
		return fail(EINVAL);
	v = calloc(1, sizeof(*v));
	if (!v)
		return fail(ENOMEM);
	v->dev = vcontext_of(ctx)->dev;
	v->ibv.context = ctx;
	v->ibv.channel = ch;
	v->ibv.cq_context = cq_context;
	v->ibv.handle = device_handle();
	pthread_mutex_init(&v->ibv.mutex, NULL);
	pthread_cond_init(&v->ibv.cond, NULL);
	pthread_mutex_init(&v->poll_mutex, NULL);
	err = cq_create(v->dev->engine, cqe, v, &v->cq);
	if (err) {
		free(v);
		return fail(err);
	}
	v->ibv.cqe = (int)v->cq->capacity;
	channel_ref(ch, 1);
	object_add(ctx, OBJECT_CQ, &v->obj);
	return v;
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
				    struct ibv_comp_channel *channel, int comp_vector)
{
	struct vcq *v;

	if (!is_ours(ctx))
		return REAL(ibv_create_cq)(ctx, cqe, cq_context, channel, comp_vector);
	if (cqe <= 0 || comp_vector < 0)
		return fail(EINVAL);
	v = create(ctx, (uint32_t)cqe, cq_context, channel, (uint32_t)comp_vector);
	return v ? &v->ibv : NULL;
}

struct ibv_cq_ex *cq_face_create_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
	const uint64_t wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
				  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
	struct vcq *v;

	/* There are no parent domains here, and an overrun is never ignored. */
	if (attr->comp_mask & ~(uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS ||
	    attr->wc_flags & ~wc_flags || flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED)
		return fail(EOPNOTSUPP);
	v = create(ctx, attr->cqe, attr->cq_context, attr->channel, attr->comp_vector);
	if (!v)
		return NULL;
	v->single_threaded = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	ex_init(&v->ex);
	return &v->ex;
}

EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	int err;

	if (!is_ours(cq->context))
		return REAL(ibv_resize_cq)(cq, cqe);
	if (is_dead(cq->context))
		return EIO;
	if (cqe <= 0)
		return EINVAL;
	err = cq_resize(vcq_of(cq)->cq, (uint32_t)cqe);
	if (!err)
		cq->cqe = (int)vcq_of(cq)->cq->capacity;
	return -err;
}

static void dispose(struct vcq *v)
{
	object_del(&v->obj);
	channel_ref(v->ibv.channel, -1);
	pthread_mutex_destroy(&v->poll_mutex);
	pthread_cond_destroy(&v->ibv.cond);
	pthread_mutex_destroy(&v->ibv.mutex);
	free(v);
}

EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct vcq *v = vcq_of(cq);
	uint32_t reported;
	int err;

	if (!is_ours(cq->context))
		return REAL(ibv_destroy_cq)(cq);
	if (is_dead(cq->context))
		return 0;
	err = cq_destroy(v->cq);
	if (err)
		return -err;
	reported = channel_forget(v);
	async_forget(cq->context, cq);
	async_wait_acks(&cq->mutex, &cq->cond, &cq->comp_events_completed, reported);
	async_wait_acks(&cq->mutex, &cq->cond, &cq->async_events_completed, v->async_reported);
	dispose(v);
	return 0;
}

void cq_object_destroy(struct object *obj)
{
	struct vcq *v = container_of(obj, struct vcq, obj);

	cq_destroy(v->cq);
	channel_forget(v);
	async_forget(v->ibv.context, &v->ibv);
	dispose(v);
}
