// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which IPv4 identifications to expect of, and to believe from, an address.
 *
 * The ICRC covers the identification and a UDP socket does not show it (wire/icrc.h). A right guess
 * leaves all 32 bits of the ICRC to detect damage; an identification that is solved from the ICRC
 * leaves 16, and the plausibility of the result has to make up for a part of the others. Two kinds
 * of senders exist:
 *
 *	ours	segment i of a GSO send has i, a packet sent alone 0: so 0 to 127 (Linux 6.18,
 *		an unconnected socket with IP_PMTUDISC_PROBE)
 *	theirs	a counter: Linux' rdma_rxe (6.1) has one per destination, with a random start.
 *		After a pause it skips a random number of steps, at most as many as clock ticks
 *		have passed (net/ipv4/route.c, ip_idents_reserve()); and with several senders at
 *		work packets overtake each other by some hundred steps (751 of 24,683 of an
 *		ib_write_bw -q 8 -b, by up to 150)
 *
 * The rule: 0 to 127 are always believed. Others are believed inside a window round the last one:
 * IPID_BEHIND steps back, and ahead IPID_WINDOW and one step for each millisecond of the pause, so
 * after a minute anything. The first packet of an unknown address is believed. When a peer's
 * counter has jumped otherwise (it rebooted), IPID_RESYNC refused packets in a row that are
 * plausible seen from each other set the window anew; the transport repeats what was lost by then.
 *
 * The table is set-associative: a look-up that misses the most recent entry costs one hash and at
 * most four compares of 16 bytes, whatever the number of peers. An address that fell out is unknown
 * again.
 */
#include "net/ipid.h"

#include "base/bytes.h"

#include <string.h>

static unsigned int set_of(const uint8_t ip[16])
{
	/* Multiplied by the golden ratio, addresses in a row spread evenly over the top bits. */
	uint64_t key = get_be64(ip) * 3 + get_be64(ip + 8);

	return (key * 0x9e3779b97f4a7c15 >> 32) * IPID_SETS >> 32;
}

/* Is @id plausible when @last came @pause ns ago? */
static bool near(uint16_t id, uint16_t last, uint64_t pause)
{
	uint16_t ahead = id - last, behind = last - id;

	return behind <= IPID_BEHIND || ahead <= IPID_WINDOW + pause / IPID_NS_PER_STEP;
}

struct ipid_source *ipid_source(struct ipid_table *t, const uint8_t ip[16])
{
	struct ipid_source *s = t->recent, *set, *oldest;

	if (s && !memcmp(s->ip, ip, 16))
		return s;

	t->clock++;
	oldest = set = t->source[set_of(ip)];
	for (s = set; s < set + IPID_WAYS; s++) {
		if (s->used && !memcmp(s->ip, ip, 16))
			goto found;
		/* As an age, so that the clock may wrap. A free slot is older than all. */
		if (!s->used || (oldest->used && t->clock - s->used > t->clock - oldest->used))
			oldest = s;
	}
	s = oldest;
	*s = (struct ipid_source){.fresh = true};
	memcpy(s->ip, ip, 16);
found:
	s->used = t->clock | 1;
	t->recent = s;
	return s;
}

uint16_t ipid_guess(const struct ipid_source *s, unsigned int index)
{
	return s->counting ? s->last + 1u : index;
}

void ipid_seen(struct ipid_source *s, uint16_t id, unsigned int index, uint64_t now)
{
	bool counting = id != index;

	/* A packet that was overtaken does not turn the counter back. */
	if (!counting || !s->counting || (uint16_t)(s->last - id) > IPID_BEHIND)
		s->last = id;
	s->counting = counting;
	s->refused = 0;
	s->fresh = false;
	s->at = now;
}

bool ipid_accept(struct ipid_source *s, uint16_t id, unsigned int index, uint64_t now)
{
	uint64_t pause = now > s->at ? now - s->at : 0;

	if (s->fresh || id < IPID_OWN || near(id, s->last, pause)) {
		ipid_seen(s, id, index, now);
		return true;
	}
	s->refused = s->refused && near(id, s->refused_id, 0) ? s->refused + 1 : 1;
	s->refused_id = id;
	if (s->refused < IPID_RESYNC)
		return false;
	s->counting = false; /* the old counter says nothing of the new one */
	ipid_seen(s, id, index, now);
	return true;
}
