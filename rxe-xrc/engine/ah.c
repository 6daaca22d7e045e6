/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Address vectors. RoCEv2 addresses by GID alone: the LID fields and the service level are ignored,
 * the GRH becomes the IP header (IBTA Annex A17).
 */
#include "engine/ah.h"

#include <errno.h>

/* An IPv4 TTL or IPv6 hop limit of 0 would not leave the host. */
#define DEFAULT_HOP_LIMIT 64

/*
 * The source port spreads flows over paths and receive queues. It has to be the kernel's function,
 * so that a flow looks the same whoever sends it: 14 bits folded from the 20 of the flow label, or
 * of the product of the two numbers, which is the same in both directions.
 */
static uint16_t udp_sport(uint32_t flow_label, uint32_t lqpn, uint32_t rqpn)
{
	if (!flow_label) {
		uint64_t v = (uint64_t)lqpn * rqpn;

		v ^= v >> 20;
		v ^= v >> 40;
		flow_label = v & 0xfffff;
	}
	return 0xc000 | ((flow_label & 0x3fff) ^ (flow_label & 0xfc000) >> 14);
}

static bool ip_is_zero(const uint8_t ip[16])
{
	static const uint8_t zero[16];

	return !memcmp(ip, zero, sizeof(zero));
}

/* fe80::/10 */
static bool ip_is_link_local(const uint8_t ip[16])
{
	return ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80;
}

int ah_resolve(const struct engine *e, const struct ibv_ah_attr *attr, uint32_t lqpn, uint32_t rqpn,
	       struct link_dest *out)
{
	const struct ibv_global_route *grh = &attr->grh;
	const struct engine_gid *src;

	if (!attr->is_global || attr->port_num != 1 || grh->sgid_index >= e->ngids)
		return -EINVAL;
	src = &e->gids[grh->sgid_index];
	if (ip_is_zero(src->ip) || wire_ip_is_v4(src->ip) != wire_ip_is_v4(grh->dgid.raw))
		return -EINVAL;

	*out = (struct link_dest){
		.flow_label = grh->flow_label & 0xfffff,
		.flow = link_flow(rqpn),
		.sgid_index = grh->sgid_index,
		.tos = grh->traffic_class,
		.ttl = grh->hop_limit ? grh->hop_limit : DEFAULT_HOP_LIMIT,
	};
	memcpy(out->dgid, grh->dgid.raw, sizeof(out->dgid));
	out->sport = udp_sport(out->flow_label, lqpn, rqpn);
	/* A global source may talk to a link-local neighbour: then its interface is the scope. */
	if (ip_is_link_local(out->dgid))
		out->scope_id = src->scope_id ? src->scope_id : src->ifindex;
	return 0;
}
