/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Devices and contexts: what ibv_get_device_list() shows, and what ibv_open_device() opens.
 *
 * All contexts of a device in a process share one engine, which exists while one of them is open. Its
 * link, and with it the device's address, is taken when the first QP is created, so that programs
 * that only look (ibv_devinfo) run beside one that works.
 *
 * Locks, outermost first; theory in device.c:
 *   device_lock     the list of devices, engines and links; held by control calls only
 *   helper's lock   progress.c
 *   object_lock     lists of contexts and objects, what the port watcher changes; a leaf
 */
#ifndef RXE_VERBS_DEVICE_H
#define RXE_VERBS_DEVICE_H

#include "base/macros.h"
#include "verbs/export.h"
#include "verbs/netdev.h"
#include "verbs/progress.h"

#include <errno.h>
#include <pthread.h>

/* Provider libraries (libmlx5, libefa) look behind any ibv_device for their own members. */
#define DEVICE_BEHIND 1024

struct device {
	struct ibv_device ibv; /* first */
	uint8_t behind[DEVICE_BEHIND];
	struct netdev net; /* up, active_mtu and gids: object_lock */
	struct engine *engine;
	bool linked; /* its lanes have links: since the first QP */
	struct progress progress;
	unsigned int opens;
	struct cds_list_head contexts;
};

/* Destroyed in this order when a program closes the context and leaves them. */
enum object_kind {
	OBJECT_QP,
	OBJECT_AH,
	OBJECT_MW,
	OBJECT_MR,
	OBJECT_SRQ,
	OBJECT_XRCD,
	OBJECT_CQ,
	OBJECT_CHANNEL,
	OBJECT_PD,
	OBJECT_KINDS,
};

/* In each object of a context. */
struct object {
	struct cds_list_head node;
};

struct vcontext {
	struct verbs_context vc;
	struct device *dev;
	bool dead; /* inherited over a fork: everything answers EIO, destroying does nothing */
	struct cds_list_head node;		    /* in dev->contexts */
	struct cds_list_head objects[OBJECT_KINDS]; /* object_lock */
	/* Asynchronous events, async.c */
	struct lock events_lock;
	struct cds_list_head events;
};

extern pthread_mutex_t device_lock, object_lock;

/** device_of() - the device, when it is ours, else NULL: a range check, nothing is read. */
struct device *device_of(const struct ibv_device *d);

static inline bool is_ours(const struct ibv_context *ctx)
{
	return device_of(ctx->device);
}

static inline struct vcontext *vcontext_of(struct ibv_context *ctx)
{
	return container_of(ctx, struct vcontext, vc.context);
}

static inline struct engine *engine_of(struct ibv_context *ctx)
{
	return vcontext_of(ctx)->dev->engine;
}

static inline bool is_dead(struct ibv_context *ctx)
{
	return unlikely(vcontext_of(ctx)->dead);
}

/** device_link() - gives the engine its link, if it has none. 0 or -errno. */
int device_link(struct device *dev);

/** device_open_gid() - makes an address usable as a source, now or when the link is made. 0 or -errno. */
int device_open_gid(struct device *dev, unsigned int sgid_index);

/** device_net() - a copy of what is known of the interface. */
void device_net(struct device *dev, struct netdev *out);

/** device_stats() - all that the process's devices have counted. Return: whether there was any link. */
bool device_stats(struct stats *sum);

/** device_last_words() - sends what is owed, at the end of the process. */
void device_last_words(void);

/** device_fork_child() - every context is dead, and no device is open. device_lock and object_lock are held. */
void device_fork_child(void);

/** device_handle() - the next number for an object's handle. */
uint32_t device_handle(void);

/** object_add(), object_del() - to and from the context's lists. */
void object_add(struct ibv_context *ctx, enum object_kind kind, struct object *obj);
void object_del(struct object *obj);

/* Destructors for what a program leaves when it closes a context: without waiting for acks. */
typedef void object_destructor(struct object *obj);
object_destructor qp_object_destroy, ah_object_destroy, mw_object_destroy, mr_object_destroy,
	srq_object_destroy, xrcd_object_destroy, cq_object_destroy, channel_object_destroy,
	pd_object_destroy;

/* The operations that inline wrappers of verbs.h call; ops.c. */
void ops_init(struct verbs_context *vc);
/* The same for a context that a fork left behind. */
void ops_kill(struct verbs_context *vc);

static inline void *fail(int err)
{
	errno = err < 0 ? -err : err;
	return NULL;
}

#endif
