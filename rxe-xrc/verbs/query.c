/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What programs ask before they work: device and port attributes, GIDs, partition keys.
 *
 * The device speaks RoCEv2 only: every address is global (IBV_QPF_GRH_REQUIRED), there are no LIDs, and
 * the one partition key is the default one. Limits are those that the engine enforces.
 */
#include "verbs/objects.h"

#include "verbs/forward.h"

#include <arpa/inet.h>
#include <string.h>

#define PORT 1
/* IBTA 14.2.5.6, PortInfo: physical state, link width 1X, speed 2.5 Gb/s; what Linux says of an
 * Ethernet interface whose speed is unknown. */
#define PHYS_DISABLED 3
#define PHYS_LINK_UP  5
#define WIDTH_1X      1
#define SPEED_SDR     1
/* 4.096 us << 15, as the kernel's rdma_rxe. */
#define ACK_DELAY    15
#define DEFAULT_PKEY 0xffff
/* enum of the kernel's gid_attrs/types */
#define GID_TYPE_SYSFS_ROCE_V2 1
/* Nanoseconds: the clock of completion timestamps runs at 1 GHz. */
#define CORE_CLOCK_KHZ 1000000

static const struct ibv_device_attr limits = {
	.fw_ver = "0.1.0",
	.max_mr_size = UINT64_MAX,
	.page_size_cap = 0xfffff000,
	.vendor_id = 0xffffff,
	.max_qp = RXE_MAX_QP,
	.max_qp_wr = RXE_MAX_QP_WR,
	/* MEM_MGT_EXTENSIONS: send with invalidate, local invalidate */
	.device_cap_flags = IBV_DEVICE_XRC | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_MEM_WINDOW |
			    IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS |
			    IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
			    IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_N_NOTIFY_CQ,
	.max_sge = RXE_MAX_SGE,
	.max_sge_rd = RXE_MAX_SGE,
	.max_cq = RXE_MAX_CQ,
	.max_cqe = RXE_MAX_CQE,
	.max_mr = RXE_MAX_MR,
	.max_pd = RXE_MAX_PD,
	.max_qp_rd_atom = RXE_MAX_RD_ATOMIC,
	.max_res_rd_atom = RXE_MAX_RD_ATOMIC * RXE_MAX_QP,
	.max_qp_init_rd_atom = RXE_MAX_RD_ATOMIC,
	/* The CPU's own atomics: atomic to everything on the host. */
	.atomic_cap = IBV_ATOMIC_GLOB,
	.max_mw = RXE_MAX_MW,
	.max_ah = RXE_MAX_AH,
	.max_srq = RXE_MAX_SRQ,
	.max_srq_wr = RXE_MAX_SRQ_WR,
	.max_srq_sge = RXE_MAX_SGE,
	.max_pkeys = 1,
	.local_ca_ack_delay = ACK_DELAY,
	.phys_port_cnt = PORT,
};

int query_face_device(struct ibv_context *ctx, const struct ibv_query_device_ex_input *in,
		      struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr_ex full = {
		.orig_attr = limits,
		.completion_timestamp_mask = UINT64_MAX,
		.hca_core_clock = CORE_CLOCK_KHZ,
		.device_cap_flags_ex = limits.device_cap_flags,
		.phys_port_cnt_ex = PORT,
	};
	struct device *dev = vcontext_of(ctx)->dev;

	if (in && in->comp_mask)
		return EINVAL;
	if (size < sizeof(full.orig_attr))
		return EOPNOTSUPP;
	full.orig_attr.node_guid = dev->net.guid;
	full.orig_attr.sys_image_guid = dev->net.guid;
	memset(attr, 0, size);
	memcpy(attr, &full, min_t(size_t, size, sizeof(full)));
	return 0;
}

EXPORT int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	struct ibv_device_attr_ex full;
	int err;

	if (!is_ours(ctx))
		return REAL(ibv_query_device)(ctx, attr);
	err = query_face_device(ctx, NULL, &full, sizeof(full));
	*attr = full.orig_attr;
	return err;
}

int query_face_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	struct netdev net;
	struct ibv_port_attr full = {
		.max_mtu = IBV_MTU_4096,
		.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = RXE_MAX_MSG,
		.pkey_tbl_len = 1,
		.max_vl_num = 1,
		.active_width = WIDTH_1X,
		.active_speed = SPEED_SDR,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.flags = IBV_QPF_GRH_REQUIRED,
	};

	if (port != PORT)
		return EINVAL;
	device_net(vcontext_of(ctx)->dev, &net);
	full.state = net.up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	full.phys_state = net.up ? PHYS_LINK_UP : PHYS_DISABLED;
	full.active_mtu = net.active_mtu;
	full.gid_tbl_len = (int)net.ngids;
	memset(attr, 0, size);
	memcpy(attr, &full, min_t(size_t, size, sizeof(full)));
	return 0;
}

/* The structure of this old entry point ends where port_cap_flags2 was added. */
EXPORT int ibv_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	if (!is_ours(ctx))
		return REAL(ibv_query_port)(ctx, port, attr);
	return query_face_port(ctx, port, (struct ibv_port_attr *)attr,
			       offsetof(struct ibv_port_attr, port_cap_flags2));
}

EXPORT int ibv_query_port_speed(struct ibv_context *ctx, uint32_t port, uint64_t *speed)
{
	__typeof__(&ibv_query_port_speed) real;

	if (is_ours(ctx))
		return EOPNOTSUPP;
	real = REAL(ibv_query_port_speed);
	return real ? real(ctx, port, speed) : EOPNOTSUPP;
}

int query_face_rt(struct ibv_context *ctx, struct ibv_values_ex *values)
{
	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	if (values->comp_mask)
		clock_gettime(CLOCK_MONOTONIC, &values->raw_clock);
	return 0;
}

/* --- GIDs ----------------------------------------------------------------------------------- */

static bool gid_used(const struct engine_gid *gid)
{
	static const uint8_t none[16];

	return memcmp(gid->ip, none, sizeof(none));
}

static void fill_entry(const struct netdev *net, unsigned int index, struct ibv_gid_entry *out,
		       size_t size)
{
	struct ibv_gid_entry e = {
		.gid_index = index,
		.port_num = PORT,
		.gid_type = IBV_GID_TYPE_ROCE_V2,
		.ndev_ifindex = net->gids[index].ifindex,
	};

	memcpy(e.gid.raw, net->gids[index].ip, sizeof(e.gid.raw));
	memset(out, 0, size);
	memcpy(out, &e, min_t(size_t, size, sizeof(e)));
}

/* An index inside the table without an address is no error here: the GID is zero. */
EXPORT int ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
	struct netdev net;

	if (!is_ours(ctx))
		return REAL(ibv_query_gid)(ctx, port, index, gid);
	device_net(vcontext_of(ctx)->dev, &net);
	if (port != PORT || index < 0 || (unsigned int)index >= net.ngids) {
		errno = EINVAL;
		return -1;
	}
	memcpy(gid->raw, net.gids[index].ip, sizeof(gid->raw));
	return 0;
}

EXPORT int _ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index,
			     struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	struct netdev net;

	if (!is_ours(ctx))
		return REAL(_ibv_query_gid_ex)(ctx, port, index, entry, flags, entry_size);
	device_net(vcontext_of(ctx)->dev, &net);
	if (flags)
		return EOPNOTSUPP;
	if (port != PORT || index >= net.ngids)
		return EINVAL;
	if (!gid_used(&net.gids[index]))
		return ENODATA;
	fill_entry(&net, index, entry, entry_size);
	return 0;
}

EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries,
				    size_t max, uint32_t flags, size_t entry_size)
{
	struct netdev net;
	size_t n = 0;

	if (!is_ours(ctx))
		return REAL(_ibv_query_gid_table)(ctx, entries, max, flags, entry_size);
	device_net(vcontext_of(ctx)->dev, &net);
	if (flags)
		return -EOPNOTSUPP;
	for (unsigned int i = 0; i < net.ngids; i++) {
		if (!gid_used(&net.gids[i]))
			continue;
		if (n == max)
			return -EINVAL;
		fill_entry(&net, i, (struct ibv_gid_entry *)((uint8_t *)entries + n++ * entry_size),
			   entry_size);
	}
	return (ssize_t)n;
}

EXPORT int ibv_query_gid_type(struct ibv_context *ctx, uint8_t port, unsigned int index, int *type)
{
	struct netdev net;

	if (!is_ours(ctx))
		return REAL(ibv_query_gid_type)(ctx, port, index, type);
	device_net(vcontext_of(ctx)->dev, &net);
	if (port != PORT || index >= net.ngids) {
		errno = EINVAL;
		return -1;
	}
	*type = GID_TYPE_SYSFS_ROCE_V2;
	return 0;
}

/* --- partition keys --------------------------------------------------------------------------- */

EXPORT int ibv_query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey)
{
	if (!is_ours(ctx))
		return REAL(ibv_query_pkey)(ctx, port, index, pkey);
	if (port != PORT || index) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htons(DEFAULT_PKEY);
	return 0;
}

EXPORT int ibv_get_pkey_index(struct ibv_context *ctx, uint8_t port, __be16 pkey)
{
	if (!is_ours(ctx))
		return REAL(ibv_get_pkey_index)(ctx, port, pkey);
	if (port != PORT || pkey != htons(DEFAULT_PKEY)) {
		errno = EINVAL;
		return -1;
	}
	return 0;
}
