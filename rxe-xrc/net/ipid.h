/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which IPv4 identifications to expect of, and to believe from, an address. Theory in ipid.c. */
#ifndef RXE_NET_IPID_H
#define RXE_NET_IPID_H

#include <stdbool.h>
#include <stdint.h>

/* Identifications that our own sender uses: i for segment i of a GSO send. */
#define IPID_OWN 128
/* How far a peer's counter may have run on since its last packet, beside what time does to it. */
#define IPID_WINDOW 4096
/* How far behind a packet may be that was overtaken on its way. */
#define IPID_BEHIND 1024
/* Linux adds up to the number of clock ticks that passed since the last packet; HZ is 1000 at most. */
#define IPID_NS_PER_STEP 1000000
/* So many refused packets in a row, each within the window of the one before: the counter has
 * jumped. */
#define IPID_RESYNC 3

#define IPID_SETS 64
#define IPID_WAYS 4

struct ipid_source {
	uint8_t ip[16];
	uint32_t used;	     /* ipid_table.clock when it was last looked up; 0: slot is free */
	uint64_t at;	     /* when its last packet was accepted, ns */
	uint16_t last;	     /* the highest identification that was accepted */
	uint16_t refused_id; /* of the last one that was refused */
	uint8_t refused;     /* consistent refusals in a row */
	bool fresh;	     /* nothing was accepted yet */
	bool counting;	     /* the identification is a counter and not the segment's index */
};

/* Fixed in size; one thread at a time. All zero is an empty table. */
struct ipid_table {
	struct ipid_source source[IPID_SETS][IPID_WAYS];
	struct ipid_source *recent; /* the one that was looked up last */
	uint32_t clock;
};

/**
 * ipid_source() - the entry of @ip; makes one, in the place of the least recently used, if there is
 * none. The entry stays until another address is looked up.
 */
struct ipid_source *ipid_source(struct ipid_table *t, const uint8_t ip[16]);

/** ipid_guess() - the most likely identification of segment @index of a datagram from @s. */
uint16_t ipid_guess(const struct ipid_source *s, unsigned int index);

/** ipid_seen() - a packet's ICRC was right with @id, a guess. @now: ns */
void ipid_seen(struct ipid_source *s, uint16_t id, unsigned int index, uint64_t now);

/** ipid_accept() - whether an identification that was solved from the ICRC is plausible. Notes it
 * if so. */
bool ipid_accept(struct ipid_source *s, uint16_t id, unsigned int index, uint64_t now);

#endif
