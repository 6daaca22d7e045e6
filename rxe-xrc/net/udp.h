/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The link over UDP sockets: RoCEv2 on port 4791. Theory in udp.c. */
#ifndef RXE_NET_UDP_H
#define RXE_NET_UDP_H

#include "net/link.h"

/* One address of the device. */
struct udp_addr {
	uint8_t ip[16];	   /* IPv4 mapped; all zero: the slot is unused */
	uint32_t scope_id; /* interface index of a link-local address, else 0 */
};

struct udp_config {
	const struct udp_addr *addrs; /* indexed by GID index; copied */
	unsigned int naddrs;
	bool gso; /* UDP_SEGMENT for streams; off where a NIC segments or captures are taken */
	/*
	 * This link is lane number @lane of @nlanes, a power of two; both 0: the only one. An address must be
	 * opened lane by lane, from 0 on, and closed in the opposite order.
	 */
	unsigned int lane, nlanes;
};

/**
 * udp_create() - a link without open sockets yet; open_gid() opens them.
 * @stats: stays the caller's, and must outlive the link
 *
 * Return: 0 or -errno.
 */
int udp_create(const struct udp_config *config, struct stats *stats, struct link **out);

#endif
