/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses: an address vector of the verbs becomes a destination for a link. */
#ifndef RXE_ENGINE_AH_H
#define RXE_ENGINE_AH_H

#include "engine/pd.h"

/* An address handle: the program holds a pointer to ibv, and names it in its work requests. */
struct ah {
	struct ibv_ah ibv;
	struct pd *pd;
	struct link_dest dest;
};

/**
 * ah_resolve() - checks an address vector and turns it into a destination.
 * @lqpn, @rqpn: for the UDP source port when the vector has no flow label; 0 if there is no connection
 *
 * The source port follows the kernel (rdma_get_udp_sport): from the flow label if it is set, otherwise from
 * the product of the numbers. Return: 0; -EINVAL when there is no GRH (RoCE needs one), the port is not 1, the
 * GID index is empty, or source and destination are not of one address family.
 */
int ah_resolve(const struct engine *e, const struct ibv_ah_attr *attr, uint32_t lqpn, uint32_t rqpn,
	       struct link_dest *out);

#endif
