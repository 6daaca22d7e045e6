/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A link carries transport packets between devices: UDP sockets, the simulator, later shared memory.
 *
 * The engine knows links by this interface only. A transport packet goes from the BTH to the pad; IP,
 * UDP and the ICRC are the link's business, so that a link that cannot damage packets may leave them
 * out. Whoever calls a link holds the lane that owns it: one thread at a time.
 *
 * Sending is zero-copy towards the link's staging memory: tx_reserve() gives room, the caller builds
 * the packet there, tx_commit() hands it over, tx_flush() makes sure that all are on their way. A
 * reservation without a commit is void at the next tx_reserve() or tx_flush().
 * Receiving is in bursts: the packets of one burst stay readable until the next rx_burst().
 *
 * Wrappers (net/fault.h) are links that hold another link. Captures (net/pcap.h) are taps: only the
 * link itself knows the IPv4 identification and the ICRC that a packet left or arrived with.
 */
#ifndef RXE_NET_LINK_H
#define RXE_NET_LINK_H

#include "base/stats.h"
#include "wire/icrc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a packet goes: an address handle as a link needs it. Addresses as in struct wire_ip. */
struct link_dest {
	uint8_t dgid[16];
	uint32_t scope_id;   /* interface of a link-local dgid, 0 otherwise */
	uint32_t flow_label; /* IPv6 */
	uint16_t sport;	     /* UDP source port that the flow asks for; a link may use another */
	uint8_t flow;	     /* of the QP it is for: link_flow(), or LINK_FLOW_ANY */
	uint8_t sgid_index;  /* which of the device's addresses it is sent from */
	uint8_t tos;
	uint8_t ttl;
};

/*
 * A receiver with several lanes steers a burst by the QP of its first packet, so packets for QPs that may be in
 * different lanes over there go in bursts of their own. What carries no data may ride behind any.
 */
#define LINK_MAX_LANES 16
#define LINK_FLOW_ANY  0xff

static inline uint8_t link_flow(uint32_t qpn)
{
	return qpn % LINK_MAX_LANES;
}

/* A packet that arrived. */
struct link_rx {
	const uint8_t *data; /* from the BTH on, without the ICRC */
	uint32_t len;
	struct wire_ip ip; /* tos and ttl are 0 where the link cannot tell; id as solved */
};

enum link_tx_flags {
	/* Send the packet with one bit of it flipped behind the ICRC's back. Fault injection. */
	LINK_TX_CORRUPT = 1 << 0,
};

enum link_dir { LINK_SENT, LINK_RECEIVED };

/* Sees each packet that a link sends or receives, with the ICRC (4 bytes, as on the wire) behind it. */
struct link_tap {
	void (*packet)(struct link_tap *tap, enum link_dir dir, const struct wire_ip *ip,
		       const uint8_t *b, size_t len_with_icrc);
};

struct link;

struct link_ops {
	/**
	 * open_gid - make an address of the device usable as source and destination.
	 * Idempotent. Return: 0 or -errno; -EADDRINUSE when another process holds the address.
	 */
	int (*open_gid)(struct link *l, unsigned int sgid_index);
	/**
	 * tx_reserve - room for one packet of @len bytes, from the BTH to the pad.
	 * Return: where to build it, or NULL when there is no room until packets went out: keep the
	 * packet and come back.
	 */
	uint8_t *(*tx_reserve)(struct link *l, const struct link_dest *to, size_t len);
	/* tx_commit - the packet of the last tx_reserve() is complete. @flags: enum link_tx_flags */
	void (*tx_commit)(struct link *l, unsigned int flags);
	/* tx_flush - send what was committed. */
	void (*tx_flush)(struct link *l, uint64_t now);
	/**
	 * rx_burst - up to @max packets that have arrived and passed the ICRC.
	 * Return: how many were put into @v; 0 means that nothing is waiting.
	 */
	unsigned int (*rx_burst)(struct link *l, struct link_rx *v, unsigned int max, uint64_t now);
	/* next_deadline - when the link wants tx_flush() although nobody sends, ns; UINT64_MAX never. */
	uint64_t (*next_deadline)(struct link *l);
	/* rx_capacity - how many packets of @len bytes the receive buffer holds before it drops. */
	unsigned int (*rx_capacity)(struct link *l, size_t len);
	void (*destroy)(struct link *l);
};

struct link {
	const struct link_ops *ops;
	struct stats *stats;  /* of the lane that owns the link; set by whoever creates it */
	struct link_tap *tap; /* NULL: nobody looks */
	int fd;		      /* readable when packets wait; -1 when there is none (simulator) */
};

#define LINK_RX_BURST 64

#endif
