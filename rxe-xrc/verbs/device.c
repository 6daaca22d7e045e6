/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The list of devices, opening and closing, and a device's engine and link.
 *
 * Devices live in a static array and are never freed: "is this object ours?" is a range check on
 * context->device, and a program may keep an ibv_device beyond ibv_free_device_list(), as many do. A list
 * that we hand out holds ours first, then the real library's, whose own list must live as long as ours
 * does: it is kept in front of the array.
 *
 * Engine and link:
 *
 *	open_device ---> engine (tables, lanes)        first context of the process
 *	create_qp  ----> a link for each lane: udp [fault [capture]], address bound, helper thread
 *	close_device --> objects left behind, helper, engine with its links     last context
 *
 * The address belongs to one process at a time. Programs that only look never create a QP.
 *
 * Locks: device_lock is held over engine_create() and engine_destroy(), which may wait for an RCU grace period,
 * and over progress_detach(), which joins the helper; so the helper never takes it. object_lock is a leaf:
 * nothing of the engine is called with it.
 */
#include "verbs/objects.h"

#include "base/log.h"
#include "base/thread.h"
#include "engine/usercopy.h"
#include "net/udp.h"
#include "node/domain.h"
#include "verbs/capture.h"
#include "verbs/config.h"
#include "verbs/fork.h"
#include "verbs/forward.h"
#include "verbs/fs.h"
#include "verbs/signal.h"
#include "verbs/sysfs.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define CMD_FD_NAME "rxe-xrc-device"

pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t object_lock = PTHREAD_MUTEX_INITIALIZER;

static int enter_cancel; /* cancel state of the thread that holds device_lock */

/* Nobody is cancelled inside: descriptors are opened and closed there, and the lock would stay locked. */
static void device_enter(void)
{
	mutex_enter(&device_lock, &enter_cancel);
}

static void device_leave(void)
{
	mutex_leave(&device_lock, &enter_cancel);
}

static struct device devices[NETDEV_MAX];
static unsigned int ndevices; /* device_lock; never shrinks */
static struct stats closed;   /* what engines had counted that are gone */
static bool ever_linked;

struct device *device_of(const struct ibv_device *d)
{
	uintptr_t at = (uintptr_t)d, first = (uintptr_t)devices;

	/* An ibv_device is a device's first member. */
	return at >= first && at < first + sizeof(devices) ? (struct device *)at : NULL;
}

uint32_t device_handle(void)
{
	static atomic_uint next = 1;

	return atomic_fetch_add(&next, 1);
}

/* --- the list ------------------------------------------------------------------------------ */

struct list {
	struct ibv_device **real; /* NULL: there was none */
	struct ibv_device *v[];
};

static struct device *device_named(const char *ibname)
{
	for (unsigned int i = 0; i < ndevices; i++)
		if (!strcmp(devices[i].ibv.name, ibname))
			return &devices[i];
	return NULL;
}

static struct device *device_add(const struct netdev *net)
{
	struct device *dev;

	if (ndevices == NETDEV_MAX)
		return NULL;
	dev = &devices[ndevices++];
	dev->ibv.node_type = IBV_NODE_CA;
	dev->ibv.transport_type = IBV_TRANSPORT_IB;
	memcpy(dev->ibv.name, net->ibname, sizeof(dev->ibv.name));
	CDS_INIT_LIST_HEAD(&dev->contexts);
	return dev;
}

static void device_update(struct device *dev, const struct netdev *net)
{
	pthread_mutex_lock(&object_lock);
	/* An open device's addresses are its engine's; the port watcher changes them. */
	if (!dev->opens)
		dev->net = *net;
	pthread_mutex_unlock(&object_lock);
	snprintf(dev->ibv.dev_name, sizeof(dev->ibv.dev_name), "uverbs%u", net->uverbs);
	snprintf(dev->ibv.dev_path, sizeof(dev->ibv.dev_path),
		 "/sys/class/infiniband_verbs/uverbs%u", net->uverbs);
	snprintf(dev->ibv.ibdev_path, sizeof(dev->ibv.ibdev_path), "/sys/class/infiniband/%s",
		 net->ibname);
}

/* Ours, as they are now. Return: how many were put into @out. */
static unsigned int list_ours(struct ibv_device **out)
{
	struct netdev *v = calloc(NETDEV_MAX, sizeof(*v));
	unsigned int n = 0;
	struct device *dev;
	int count;

	if (!v)
		return 0;
	count = netdev_list(v, NETDEV_MAX);
	device_enter();
	for (int i = 0; i < count; i++) {
		dev = device_named(v[i].ibname);
		if (!dev)
			dev = device_add(&v[i]);
		if (!dev)
			break;
		device_update(dev, &v[i]);
		out[n++] = &dev->ibv;
	}
	device_leave();
	free(v);
	return n;
}

static bool name_is_ours(const char *name)
{
	bool ours;

	device_enter();
	ours = device_named(name);
	device_leave();
	return ours;
}

/* Without kernel support the real library says NULL and ENOSYS: no devices, for us. */
static struct ibv_device **list_real(int *n)
{
	__typeof__(&ibv_get_device_list) real = REAL(ibv_get_device_list);
	struct ibv_device **v = NULL;

	*n = 0;
	fs_bypass(true);
	if (real)
		v = real(n);
	fs_bypass(false);
	if (!v)
		*n = 0;
	return v;
}

EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **real;
	struct list *list;
	unsigned int n;
	int nreal;

	real = list_real(&nreal);
	list = calloc(1, sizeof(*list) + sizeof(list->v[0]) * ((size_t)nreal + NETDEV_MAX + 1));
	if (!list)
		goto err_real;
	list->real = real;
	n = list_ours(list->v);
	for (int i = 0; i < nreal; i++)
		if (!name_is_ours(real[i]->name))
			list->v[n++] = real[i];
	if (num_devices)
		*num_devices = (int)n;
	errno = 0;
	return list->v;

err_real:
	if (real)
		REAL(ibv_free_device_list)(real);
	if (num_devices)
		*num_devices = 0;
	return fail(ENOMEM);
}

EXPORT void ibv_free_device_list(struct ibv_device **v)
{
	struct list *list;

	if (!v)
		return;
	list = container_of(v, struct list, v);
	if (list->real)
		REAL(ibv_free_device_list)(list->real);
	free(list);
}

EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	if (!device_of(device))
		return REAL(ibv_get_device_name)(device);
	return device->name;
}

EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	struct device *dev = device_of(device);

	return dev ? dev->net.guid : REAL(ibv_get_device_guid)(device);
}

EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	struct device *dev = device_of(device);
	__typeof__(&ibv_get_device_index) real;

	if (dev)
		return dev->net.index;
	real = REAL(ibv_get_device_index);
	return real ? real(device) : -1;
}

void device_net(struct device *dev, struct netdev *out)
{
	pthread_mutex_lock(&object_lock);
	*out = dev->net;
	pthread_mutex_unlock(&object_lock);
}

/* --- engine and link ------------------------------------------------------------------------ */

static void face_wake(struct engine *e, struct lane *lane)
{
	progress_wake();
}

static unsigned int ifindex_of(const struct engine *e)
{
	const struct device *dev = e->user;

	return dev->net.ifindex; /* does not change while the device is open */
}

static uint32_t face_claim(struct engine *e)
{
	return domain_claim(e, ifindex_of(e));
}

static int face_ask(struct engine *e, struct foreign_request *req, const void *payload,
		    struct foreign_reply *reply, void *data)
{
	return domain_ask(e, ifindex_of(e), req, payload, reply, data);
}

static const struct foreign_ops face_foreign_ops = {
	.claim = face_claim,
	.ask = face_ask,
	.tell = domain_tell,
};

static const struct engine_ops face_ops = {
	.cq_event = cq_face_event,
	.async_event = async_face_event,
	.wake = face_wake,
	.foreign = &face_foreign_ops,
};

static int engine_get(struct device *dev)
{
	struct engine_config c = {.ops = &face_ops, .user = dev, .nlanes = config_get()->lanes};
	int err;

	if (dev->opens) {
		dev->opens++;
		return 0;
	}
	if (getrandom(&c.seed, sizeof(c.seed), 0) != sizeof(c.seed))
		c.seed = now_ns() ^ (uint64_t)getpid() << 32;
	memcpy(c.gids, dev->net.gids, sizeof(c.gids));
	c.ngids = dev->net.ngids;
	c.active_mtu = dev->net.active_mtu;
	err = engine_create(&c, &dev->engine);
	if (!err)
		dev->opens = 1;
	return err;
}

static void engine_put(struct device *dev)
{
	struct stats sum = {};

	if (--dev->opens)
		return;
	progress_detach(&dev->progress);
	domain_detach(dev->engine);
	engine_stats(dev->engine, &sum);
	for (unsigned int i = 0; i < STAT_COUNT; i++)
		stats_add(&closed, i, stats_get(&sum, i));
	engine_destroy(dev->engine);
	dev->engine = NULL;
	dev->linked = false;
}

static void log_open_failure(const struct device *dev, unsigned int index, int err)
{
	const uint8_t *ip = dev->net.gids[index].ip;
	char text[INET6_ADDRSTRLEN];

	if (wire_ip_is_v4(ip))
		inet_ntop(AF_INET, ip + 12, text, sizeof(text));
	else
		inet_ntop(AF_INET6, ip, text, sizeof(text));
	log_error("%s: cannot open %s port 4791: %s%s", dev->ibv.name, text, strerror(-err),
		  err == -EADDRINUSE ? " (another process holds it: choose another with --addr)"
				     : "");
}

/* Each lane draws its own faults, whatever the seed. */
static int fault_wrap(struct lane *lane, struct link *below, struct link **out)
{
	struct fault_spec spec = config_get()->fault;
	int err;

	if (spec.seed)
		spec.seed += lane->index * 0x9e3779b97f4a7c15ull;
	err = fault_create(below, &spec, out);
	if (!err)
		(*out)->stats = &lane->stats;
	return err;
}

/* A UDP link with address 0 open, its capture and its faults; or -errno, which has been logged. */
static int link_create(struct device *dev, struct lane *lane, struct link **out)
{
	const struct config *conf = config_get();
	struct udp_addr addrs[RXE_MAX_GIDS] = {};
	struct udp_config c = {
		.addrs = addrs,
		.naddrs = dev->engine->ngids,
		.gso = conf->gso && dev->net.soft,
		.lane = lane->index,
		.nlanes = dev->engine->nlanes,
	};
	struct link *link;
	int err;

	for (unsigned int i = 0; i < c.naddrs; i++) {
		memcpy(addrs[i].ip, dev->engine->gids[i].ip, sizeof(addrs[i].ip));
		addrs[i].scope_id = dev->engine->gids[i].scope_id;
	}
	err = udp_create(&c, &lane->stats, &link);
	if (err)
		goto err_log;
	err = link->ops->open_gid(link, 0);
	if (err) {
		log_open_failure(dev, 0, err);
		goto err_destroy;
	}
	link->tap = capture_tap();
	*out = link;
	err = conf->has_fault ? fault_wrap(lane, link, out) : 0;
	if (!err)
		return 0;
	link->ops->destroy(link);

err_log:
	log_error("%s: cannot make the link of lane %u: %s", dev->ibv.name, lane->index,
		  strerror(-err));
	return err;

err_destroy:
	link->ops->destroy(link);
	return err;
}

static void port_changed(struct progress *p, enum portmon_what what);

/* A link for each lane, or none. In order: see net/udp.h. */
static int links_create(struct device *dev, struct link **links)
{
	struct engine *e = dev->engine;
	int err;

	for (unsigned int i = 0; i < e->nlanes; i++) {
		err = link_create(dev, e->lanes[i], &links[i]);
		if (!err)
			continue;
		while (i--)
			links[i]->ops->destroy(links[i]);
		return err;
	}
	return 0;
}

static int link_make(struct device *dev)
{
	struct link *links[RXE_MAX_LANES];
	struct progress *p = &dev->progress;
	int err;

	err = links_create(dev, links);
	if (err)
		return err;
	usercopy_use_syscalls(config_get()->safe_copy);
	signal_guard_install();
	for (unsigned int i = 0; i < dev->engine->nlanes; i++)
		lane_set_link(dev->engine->lanes[i], links[i]);
	dev->linked = true;
	p->engine = dev->engine;
	p->ifindex = dev->net.ifindex;
	p->port_changed = port_changed;
	ever_linked = true;
	return 0;
}

static int helper_attach(struct device *dev)
{
	int err = progress_attach(&dev->progress);

	if (err)
		log_error("%s: cannot start the helper thread: %s", dev->ibv.name, strerror(-err));
	return err;
}

/* Whatever fails has been logged, once. */
int device_link(struct device *dev)
{
	int err = 0;

	device_enter();
	if (!dev->linked)
		err = link_make(dev);
	if (!err && !atomic_load(&dev->progress.attached))
		err = helper_attach(dev);
	device_leave();
	return err;
}

int device_open_gid(struct device *dev, unsigned int sgid_index)
{
	int err = device_link(dev);

	if (err || !sgid_index)
		return err;
	err = lanes_open_gid(dev->engine, sgid_index, now_ns());
	if (err)
		log_open_failure(dev, sgid_index, err);
	return err;
}

bool device_stats(struct stats *sum)
{
	struct stats one;

	*sum = closed;
	for (unsigned int i = 0; i < ndevices; i++) {
		if (!devices[i].engine)
			continue;
		memset(&one, 0, sizeof(one));
		engine_stats(devices[i].engine, &one);
		for (unsigned int k = 0; k < STAT_COUNT; k++)
			stats_add(sum, k, stats_get(&one, k));
	}
	return ever_linked;
}

void device_last_words(void)
{
	for (unsigned int i = 0; i < ndevices; i++) {
		const struct device *dev = &devices[i];

		for (unsigned int k = 0; dev->linked && k < dev->engine->nlanes; k++)
			lane_run(dev->engine->lanes[k], now_ns(), LANE_HELPER);
	}
}

/* --- the port ------------------------------------------------------------------------------- */

/* Return: what became of the port's state, as an event; -1 when nothing did. */
static int port_update(struct device *dev, bool up)
{
	int event = -1;

	pthread_mutex_lock(&object_lock);
	if (dev->net.up != up)
		event = up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR;
	dev->net.up = up;
	pthread_mutex_unlock(&object_lock);
	return event;
}

static bool has_ip(const struct netdev *net, const uint8_t ip[16])
{
	for (unsigned int i = 0; i < net->ngids; i++)
		if (!memcmp(net->gids[i].ip, ip, 16))
			return true;
	return false;
}

/*
 * Addresses keep their index while they exist; one that is gone leaves its slot empty. A new one is
 * shown when the device is opened the next time, since the link knows the addresses that it began with.
 */
static bool gids_update(struct device *dev, const struct netdev *fresh)
{
	static const uint8_t none[16];
	struct netdev *net = &dev->net;
	bool changed = false;

	pthread_mutex_lock(&object_lock);
	for (unsigned int i = 0; i < net->ngids; i++) {
		if (!memcmp(net->gids[i].ip, none, 16) || has_ip(fresh, net->gids[i].ip))
			continue;
		memset(&net->gids[i], 0, sizeof(net->gids[i]));
		changed = true;
	}
	for (unsigned int i = 0; i < fresh->ngids; i++)
		changed |= !has_ip(net, fresh->gids[i].ip);
	pthread_mutex_unlock(&object_lock);
	return changed;
}

/* Without an address the device is not offered any more: then it has none of them, and is down. */
static void look_anew(struct device *dev)
{
	struct netdev *v = calloc(NETDEV_MAX, sizeof(*v)), none = {}, *fresh = &none;
	char why[128];
	int count = v ? netdev_find(config_get(), v, NETDEV_MAX, why, sizeof(why)) : 0, event;

	for (int i = 0; i < count; i++)
		if (v[i].ifindex == dev->progress.ifindex)
			fresh = &v[i];
	event = port_update(dev, fresh->up);
	if (fresh->active_mtu) {
		pthread_mutex_lock(&object_lock);
		dev->net.active_mtu = fresh->active_mtu;
		pthread_mutex_unlock(&object_lock);
		atomic_store(&dev->engine->active_mtu, fresh->active_mtu);
	}
	if (event >= 0)
		async_face_event(dev->engine, (enum ibv_event_type)event, NULL);
	if (gids_update(dev, fresh))
		async_face_event(dev->engine, IBV_EVENT_GID_CHANGE, NULL);
	free(v);
}

/* The kernel tells of a link whenever anything about it changes, its MTU, too. */
static void port_changed(struct progress *p, enum portmon_what what)
{
	sysfs_invalidate();
	look_anew(container_of(p, struct device, progress));
}

/* --- contexts ------------------------------------------------------------------------------- */

void object_add(struct ibv_context *ctx, enum object_kind kind, struct object *obj)
{
	pthread_mutex_lock(&object_lock);
	cds_list_add_tail(&obj->node, &vcontext_of(ctx)->objects[kind]);
	pthread_mutex_unlock(&object_lock);
}

void object_del(struct object *obj)
{
	pthread_mutex_lock(&object_lock);
	cds_list_del(&obj->node);
	pthread_mutex_unlock(&object_lock);
}

static struct vcontext *context_create(struct device *dev)
{
	struct vcontext *ctx = calloc(1, sizeof(*ctx));
	struct ibv_context *ibctx;
	int err;

	if (!ctx)
		return NULL;
	ibctx = &ctx->vc.context;
	ctx->dev = dev;
	ops_init(&ctx->vc);
	ibctx->device = &dev->ibv;
	ibctx->num_comp_vectors = 1;
	pthread_mutex_init(&ibctx->mutex, NULL);
	for (int i = 0; i < OBJECT_KINDS; i++)
		CDS_INIT_LIST_HEAD(&ctx->objects[i]);
	/* Programs pass it on and duplicate it: its name is what ibv_import_device() knows it by. */
	ibctx->cmd_fd = memfd_create(CMD_FD_NAME, MFD_CLOEXEC);
	if (ibctx->cmd_fd < 0)
		goto err_free;
	err = async_init(ctx);
	if (err) {
		errno = -err;
		goto err_cmd;
	}
	return ctx;

err_cmd:
	close(ibctx->cmd_fd);
err_free:
	free(ctx);
	return NULL;
}

static struct ibv_context *open_real(struct ibv_device *device)
{
	struct ibv_context *ctx;

	fs_bypass(true);
	ctx = REAL(ibv_open_device)(device);
	fs_bypass(false);
	return ctx;
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct device *dev = device_of(device);
	struct vcontext *ctx;
	int err;

	if (!dev)
		return open_real(device);
	fork_watch();
	device_enter();
	err = engine_get(dev);
	if (err)
		goto err_unlock;
	ctx = context_create(dev);
	if (!ctx) {
		err = -errno;
		engine_put(dev);
		goto err_unlock;
	}
	pthread_mutex_lock(&object_lock);
	cds_list_add_tail(&ctx->node, &dev->contexts);
	pthread_mutex_unlock(&object_lock);
	device_leave();
	return &ctx->vc.context;

err_unlock:
	device_leave();
	return fail(err);
}

/* What the kernel does for a process that closes its descriptor: everything goes, dependants first. */
static void destroy_leftovers(struct vcontext *ctx)
{
	static object_destructor *const destroy[OBJECT_KINDS] = {
		[OBJECT_QP] = qp_object_destroy,   [OBJECT_AH] = ah_object_destroy,
		[OBJECT_MW] = mw_object_destroy,   [OBJECT_MR] = mr_object_destroy,
		[OBJECT_SRQ] = srq_object_destroy, [OBJECT_XRCD] = xrcd_object_destroy,
		[OBJECT_CQ] = cq_object_destroy,   [OBJECT_CHANNEL] = channel_object_destroy,
		[OBJECT_PD] = pd_object_destroy,
	};

	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		while (!cds_list_empty(&ctx->objects[kind]))
			destroy[kind](
				cds_list_first_entry(&ctx->objects[kind], struct object, node));
}

EXPORT int ibv_close_device(struct ibv_context *ibctx)
{
	struct vcontext *ctx;

	if (!is_ours(ibctx))
		return REAL(ibv_close_device)(ibctx);
	if (is_dead(ibctx))
		return 0;
	ctx = vcontext_of(ibctx);
	destroy_leftovers(ctx);
	device_enter();
	pthread_mutex_lock(&object_lock);
	cds_list_del(&ctx->node);
	pthread_mutex_unlock(&object_lock);
	engine_put(ctx->dev);
	device_leave();
	async_fini(ctx);
	close(ibctx->cmd_fd);
	pthread_mutex_destroy(&ibctx->mutex);
	free(ctx);
	return 0;
}

/* --- fork ------------------------------------------------------------------------------------ */

static void context_kill(struct vcontext *ctx)
{
	struct ibv_context *ibctx = &ctx->vc.context;
	struct vchannel *ch;
	struct vxrcd *x;

	ctx->dead = true;
	ops_kill(&ctx->vc);
	close(ibctx->async_fd);
	close(ibctx->cmd_fd);
	ibctx->async_fd = ibctx->cmd_fd = -1;
	cds_list_for_each_entry (ch, &ctx->objects[OBJECT_CHANNEL], obj.node) {
		close(ch->ibv.fd);
		ch->ibv.fd = -1;
	}
	cds_list_for_each_entry (x, &ctx->objects[OBJECT_XRCD], obj.node) {
		if (x->file >= 0)
			close(x->file);
		x->file = -1;
	}
}

/* Closes the child's copies of the sockets; a thread of the parent may hold a lane. */
static void links_drop(struct device *dev)
{
	for (unsigned int i = 0; dev->linked && i < dev->engine->nlanes; i++) {
		struct link *link = dev->engine->lanes[i]->link;

		link->ops->destroy(link);
	}
	dev->linked = false;
}

void device_fork_child(void)
{
	struct vcontext *ctx;

	for (unsigned int i = 0; i < ndevices; i++) {
		struct device *dev = &devices[i];

		cds_list_for_each_entry (ctx, &dev->contexts, node)
			context_kill(ctx);
		CDS_INIT_LIST_HEAD(&dev->contexts);
		links_drop(dev);
		dev->engine = NULL;
		dev->opens = 0;
	}
	memset(&closed, 0, sizeof(closed));
	ever_linked = false;
}

/* --- import: the kernel's way to share objects between processes; ours are not in the kernel ------ */

static bool cmd_fd_is_ours(int fd)
{
	static const char ours[] = "/memfd:" CMD_FD_NAME;
	char path[32], name[sizeof(ours)];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, name, sizeof(name)) == sizeof(name) &&
	       !memcmp(name, ours, sizeof(ours) - 1);
}

EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	__typeof__(&ibv_import_device) real = REAL(ibv_import_device);

	if (!real || cmd_fd_is_ours(cmd_fd))
		return fail(EOPNOTSUPP);
	return real(cmd_fd);
}

EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *ctx, uint32_t handle)
{
	return is_ours(ctx) ? fail(EOPNOTSUPP) : REAL(ibv_import_pd)(ctx, handle);
}

EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
	if (!is_ours(pd->context))
		REAL(ibv_unimport_pd)(pd);
}

EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	return is_ours(pd->context) ? fail(EOPNOTSUPP) : REAL(ibv_import_mr)(pd, handle);
}

EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
	if (!is_ours(mr->context))
		REAL(ibv_unimport_mr)(mr);
}

EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *ctx, uint32_t handle)
{
	return is_ours(ctx) ? fail(EOPNOTSUPP) : REAL(ibv_import_dm)(ctx, handle);
}

EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
	if (!is_ours(dm->context))
		REAL(ibv_unimport_dm)(dm);
}
