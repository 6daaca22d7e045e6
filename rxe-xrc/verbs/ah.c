/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Address handles, and addresses from received datagrams.
 *
 * A datagram's first 40 bytes in the receive buffer are its network header. For IPv6 that is the IPv6
 * header, which has the layout of a GRH; for IPv4 the header is in the last 20 bytes and the first 20
 * say nothing (IBTA Annex A17.4.5.1). The version nibble at either place tells which.
 */
#include "verbs/objects.h"

#include "base/bytes.h"
#include "verbs/forward.h"

#include <stdlib.h>
#include <string.h>

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *ibpd, struct ibv_ah_attr *attr)
{
	struct device *dev;
	struct vah *v;
	int err;

	if (!is_ours(ibpd->context))
		return REAL(ibv_create_ah)(ibpd, attr);
	if (is_dead(ibpd->context))
		return fail(EIO);
	dev = vcontext_of(ibpd->context)->dev;
	v = calloc(1, sizeof(*v));
	if (!v)
		return fail(ENOMEM);
	err = ah_resolve(dev->engine, attr, 0, 0, &v->ah.dest);
	if (!err && attr->grh.sgid_index)
		err = device_open_gid(dev, attr->grh.sgid_index);
	if (err) {
		free(v);
		return fail(err);
	}
	v->ah.pd = vpd_of(ibpd)->pd;
	atomic_fetch_add(&v->ah.pd->refs, 1);
	v->ah.ibv.context = ibpd->context;
	v->ah.ibv.pd = ibpd;
	v->ah.ibv.handle = device_handle();
	object_add(ibpd->context, OBJECT_AH, &v->obj);
	return &v->ah.ibv;
}

void ah_object_destroy(struct object *obj)
{
	struct vah *v = container_of(obj, struct vah, obj);

	atomic_fetch_sub(&v->ah.pd->refs, 1);
	object_del(obj);
	free(v);
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	if (!is_ours(ah->context))
		return REAL(ibv_destroy_ah)(ah);
	/* Requests have a copy of the destination. */
	if (!is_dead(ah->context))
		ah_object_destroy(&container_of(ah, struct vah, ah.ibv)->obj);
	return 0;
}

struct network_hdr {
	uint8_t src[16], dst[16]; /* IPv4 mapped */
	uint32_t flow_label;
	uint8_t tos;
};

static void map_v4(uint8_t out[16], const uint8_t ip[4])
{
	memset(out, 0, 10);
	memset(out + 10, 0xff, 2);
	memcpy(out + 12, ip, 4);
}

static int parse_grh(const uint8_t *grh, struct network_hdr *h)
{
	const uint8_t *v4 = grh + 20;

	if (grh[0] >> 4 == 6) {
		h->flow_label = get_be32(grh) & 0xfffff;
		h->tos = (uint8_t)(get_be32(grh) >> 20);
		memcpy(h->src, grh + 8, 16);
		memcpy(h->dst, grh + 24, 16);
		return 0;
	}
	if (v4[0] >> 4 != 4)
		return -EPROTONOSUPPORT;
	h->flow_label = 0;
	h->tos = v4[1];
	map_v4(h->src, v4 + 12);
	map_v4(h->dst, v4 + 16);
	return 0;
}

static int gid_index(const struct netdev *net, const uint8_t ip[16])
{
	for (unsigned int i = 0; i < net->ngids; i++)
		if (!memcmp(net->gids[i].ip, ip, 16))
			return (int)i;
	return -1;
}

EXPORT int ibv_init_ah_from_wc(struct ibv_context *ctx, uint8_t port, struct ibv_wc *wc,
			       struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	struct network_hdr h;
	struct netdev net;
	int index, err;

	if (!is_ours(ctx))
		return REAL(ibv_init_ah_from_wc)(ctx, port, wc, grh, attr);
	/* Without the network header nobody can say who sent it. */
	err = wc->wc_flags & IBV_WC_GRH ? parse_grh((const uint8_t *)grh, &h) : -EINVAL;
	if (err) {
		errno = -err;
		return -1;
	}
	device_net(vcontext_of(ctx)->dev, &net);
	index = gid_index(&net, h.dst);
	if (port != 1 || index < 0) {
		errno = EINVAL;
		return -1;
	}
	memset(attr, 0, sizeof(*attr));
	attr->is_global = 1;
	attr->port_num = port;
	attr->sl = wc->sl;
	memcpy(attr->grh.dgid.raw, h.src, sizeof(h.src));
	attr->grh.sgid_index = (uint8_t)index;
	attr->grh.hop_limit = 0xff;
	attr->grh.flow_label = h.flow_label;
	attr->grh.traffic_class = h.tos;
	return 0;
}

EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
					    struct ibv_grh *grh, uint8_t port)
{
	struct ibv_ah_attr attr;

	if (!is_ours(pd->context))
		return REAL(ibv_create_ah_from_wc)(pd, wc, grh, port);
	if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

/* The kernel's UDP stack resolves neighbours for us: there is no address for the program to see. */
EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *ctx, struct ibv_ah_attr *attr,
				       uint8_t mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	if (!is_ours(ctx))
		return REAL(ibv_resolve_eth_l2_from_gid)(ctx, attr, mac, vid);
	return EOPNOTSUPP;
}
