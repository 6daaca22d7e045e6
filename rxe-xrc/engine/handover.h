/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets that arrived in one lane and belong to another.
 *
 * The kernel steers packets to the lane of their QP (net/udp.c), but not all of them: it looks at the
 * first packet of a burst, behind which acknowledges for other lanes may ride (net/link.h: LINK_FLOW_ANY), and not at all
 * where it cannot run the program that steers. What a lane gets that is another's it copies, and puts the copy
 * on that lane's pile; who holds that lane takes them in the order in which they came.
 *
 *     lane a, holder: handover_give() -> [ pile "in" of lane b ] -> lane b, holder: handover_take()
 *                         ^                                            |
 *                         +---- free list of a <-- pile "back" of a <--+ handover_return()
 *
 * The memory is the giving lane's, HANDOVER_PACKETS at most: with none left the packet is dropped, and comes
 * again like any lost one. No thread waits for another.
 */
#ifndef RXE_ENGINE_HANDOVER_H
#define RXE_ENGINE_HANDOVER_H

#include "base/macros.h"
#include "base/pile.h"
#include "net/link.h"

/* Packets that a lane has given away and not got back, at most. */
#define HANDOVER_PACKETS 256
/* A packet of the largest MTU with all headers and its pad. */
#define HANDOVER_MAX_LEN 4224

struct handover_packet {
	struct pile_node node;
	struct handover *home; /* whose memory it is */
	struct wire_ip ip;
	uint32_t len;
	uint8_t data[HANDOVER_MAX_LEN];
};

struct handover {
	/* The holder's of the lane */
	struct handover_packet *packets; /* NULL: there is one lane only */
	struct pile_node *free;
	unsigned int used; /* packets that were ever given; the rest is untouched memory */
	/* Any thread's */
	struct pile in CACHE_ALIGNED;
	struct pile back CACHE_ALIGNED;
};

/** handover_init() - 0 or -ENOMEM. */
int handover_init(struct handover *h);
/** handover_fini() - no lane of the engine runs any more. */
void handover_fini(struct handover *h);

/**
 * handover_give() - copies a packet to the lane of @to; the lane of @from is held.
 * Return: false when there is no room, or it is longer than any packet should be.
 */
bool handover_give(struct handover *from, struct handover *to, const struct link_rx *rx);

/** handover_take() - all that was given, oldest first; lane held. Each goes back by handover_return(). */
static inline struct pile_node *handover_take(struct handover *h)
{
	return pile_take(&h->in);
}

static inline struct handover_packet *handover_packet_of(struct pile_node *node)
{
	return container_of(node, struct handover_packet, node);
}

static inline void handover_return(struct handover_packet *p)
{
	pile_push(&p->home->back, &p->node);
}

#endif
