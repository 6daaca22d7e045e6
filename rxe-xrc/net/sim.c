// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A network in virtual time: links whose packets go through one seeded, lossy, reordering wire.
 *
 * Theory. tx_commit() gives a packet its IPv4 identification (a counter of its link, as hardware
 * does) and its ICRC; tx_flush(now) puts what was committed on the wire, where its fate is drawn;
 * it then waits in the heap of its receiver, ordered by time of arrival and, at the same time, by
 * the order in which it was sent. rx_burst(now) takes what has arrived by then and checks the ICRC
 * as a socket link does.
 *
 *	tx_commit -> out list -> tx_flush: fate -> heap of the receiver -> rx_burst: ICRC -> caller
 *	                             |                (arrival, number)
 *	                             +-> observer
 *
 * Each packet takes the same count of random numbers whatever its fate, so that a changed
 * probability changes the packets it concerns and not the whole run behind them.
 *
 * A packet's bytes are an allocation of exactly their size: an address sanitizer sees each byte
 * that is read or written beyond.
 */
#include "net/sim.h"

#include "base/macros.h"
#include "net/prng.h"
#include "wire/hdr.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_IPS 16

struct packet {
	uint64_t arrival; /* ns of virtual time */
	uint64_t number;  /* of all packets of the simulation, in the order of sending */
	struct wire_ip ip;
	struct packet *next; /* in the out list of its sender */
	bool corrupt;	     /* damage it on the wire: LINK_TX_CORRUPT */
	uint32_t len;	     /* without the ICRC, which follows */
	uint8_t b[];
};

struct sim_link {
	struct link link;
	struct sim *sim;
	struct sim_link *next;
	unsigned int lane, nlanes; /* nlanes links share the addresses */
	uint8_t ip[MAX_IPS][16];
	unsigned int nips;
	uint16_t id;		 /* of the next IPv4 packet */
	struct packet *reserved; /* between reserve and commit */
	struct packet *out, **out_tail;
	/* A binary heap: under way to this link. */
	struct packet **heap;
	unsigned int waiting, room;
	/* Handed out by the last rx_burst(). */
	struct packet *burst[LINK_RX_BURST];
	unsigned int nburst;
};

struct sim {
	struct sim_config config;
	struct prng prng;
	struct sim_link *links;
	uint64_t packets;
	unsigned int last_lane; /* that a packet was steered to */
	sim_observer *observer;
	void *observer_arg;
	bool destroyed; /* goes with its last link */
};

static struct sim_link *sim_of(struct link *l)
{
	return (struct sim_link *)l; /* its first member */
}

/* The heap */

static bool before(const struct packet *a, const struct packet *b)
{
	return a->arrival != b->arrival ? a->arrival < b->arrival : a->number < b->number;
}

static int heap_push(struct sim_link *s, struct packet *p)
{
	unsigned int i, up;

	if (s->waiting == s->room) {
		unsigned int room = s->room ? 2 * s->room : 64;
		struct packet **heap = realloc(s->heap, room * sizeof(struct packet *));

		if (!heap)
			return -ENOMEM;
		s->heap = heap;
		s->room = room;
	}
	for (i = s->waiting++; i; i = up) {
		up = (i - 1) / 2;
		if (before(s->heap[up], p))
			break;
		s->heap[i] = s->heap[up];
	}
	s->heap[i] = p;
	return 0;
}

static struct packet *heap_pop(struct sim_link *s)
{
	struct packet *top = s->heap[0], *last = s->heap[--s->waiting];
	unsigned int i = 0, down;

	while ((down = 2 * i + 1) < s->waiting) {
		if (down + 1 < s->waiting && before(s->heap[down + 1], s->heap[down]))
			down++;
		if (before(last, s->heap[down]))
			break;
		s->heap[i] = s->heap[down];
		i = down;
	}
	s->heap[i] = last;
	return top;
}

/* The wire */

static struct sim_link *link_of_ip(const struct sim *sim, const uint8_t ip[16])
{
	for (struct sim_link *s = sim->links; s; s = s->next)
		for (unsigned int i = 0; i < s->nips; i++)
			if (!memcmp(s->ip[i], ip, 16))
				return s;
	return NULL;
}

/* Which of the links that share the address of @to gets a packet whose BTH is at @b. */
static struct sim_link *steer(struct sim *sim, struct sim_link *to, const uint8_t *b)
{
	unsigned int lane;

	if (!to || to->nlanes <= 1)
		return to;
	lane = b[7] & (to->nlanes - 1);
	if (sim->config.missteer && prng_hit(&sim->prng, sim->config.missteer))
		lane = sim->last_lane & (to->nlanes - 1);
	sim->last_lane = lane;
	/* link_of_ip() found the first, and they were made in order. */
	for (struct sim_link *s = to; s; s = s->next)
		if (s->lane == lane && !memcmp(s->ip[0], to->ip[0], 16))
			return s;
	return to;
}

/*
 * One bit anywhere but in BTH byte 4, which the ICRC does not cover. (Ethernet's CRC would see that
 * one; nothing in a RoCEv2 receiver does.)
 */
static void flip_bit(struct packet *p, uint64_t random)
{
	uint32_t bit = random % ((p->len + WIRE_ICRC_LEN) * 8);

	if (bit / 8 == 4)
		bit += 8;
	p->b[bit / 8] ^= 1 << bit % 8;
}

static struct packet *copy_of(const struct packet *p)
{
	size_t size = sizeof(*p) + p->len + WIRE_ICRC_LEN;
	struct packet *copy = malloc(size);

	if (copy)
		memcpy(copy, p, size);
	return copy;
}

/* Queues @p for @to, or frees it when that cannot be. */
static bool arrive(struct sim_link *to, struct packet *p, uint64_t when)
{
	p->arrival = when;
	p->number = to->sim->packets++;
	if (!heap_push(to, p))
		return true;
	free(p);
	return false;
}

static void put_on_wire(struct sim *sim, struct packet *p, uint64_t now)
{
	const struct sim_config *c = &sim->config;
	struct sim_link *to = steer(sim, link_of_ip(sim, p->ip.dst), p->b);
	bool drop = prng_hit(&sim->prng, c->drop);
	bool dup = prng_hit(&sim->prng, c->dup);
	bool reorder = prng_hit(&sim->prng, c->reorder);
	bool corrupt = prng_hit(&sim->prng, c->corrupt) || p->corrupt;
	uint64_t bit = prng_next(&sim->prng);
	uint64_t late = 1 + prng_below(&sim->prng, c->jitter_ns + 1);
	uint64_t dup_late = prng_below(&sim->prng, c->jitter_ns + 1);
	uint64_t arrival = now + c->latency_ns;
	struct packet *copy;
	enum sim_fate fate = SIM_DELIVERED;

	if (!to || (c->queue && to->waiting >= c->queue))
		drop = true;
	if (drop)
		fate = SIM_DROPPED;
	else if (corrupt)
		fate = SIM_CORRUPTED;
	else if (dup)
		fate = SIM_DUPLICATED;
	else if (reorder)
		fate = SIM_REORDERED;
	if (sim->observer)
		sim->observer(sim->observer_arg, now, &p->ip, p->b, p->len, fate);

	if (fate == SIM_DROPPED) {
		free(p);
		return;
	}
	if (fate == SIM_CORRUPTED)
		flip_bit(p, bit);
	if (fate == SIM_DUPLICATED && (copy = copy_of(p)))
		arrive(to, copy, arrival + dup_late);
	arrive(to, p, arrival + (reorder ? late : 0));
}

/* The links */

static int sim_open_gid(struct link *l, unsigned int gid)
{
	return gid < sim_of(l)->nips ? 0 : -EINVAL;
}

static uint8_t *sim_tx_reserve(struct link *l, const struct link_dest *to, size_t len)
{
	struct sim_link *s = sim_of(l);
	struct packet *p;

	assert(to->sgid_index < s->nips && len >= WIRE_BTH_LEN);
	free(s->reserved);
	s->reserved = p = malloc(sizeof(*p) + len + WIRE_ICRC_LEN);
	if (!p)
		return NULL;
	*p = (struct packet){
		.len = len,
		.ip = {.sport = to->sport ? to->sport : WIRE_UDP_PORT,
		       .tos = to->tos,
		       .ttl = to->ttl ? to->ttl : 64},
	};
	memcpy(p->ip.src, s->ip[to->sgid_index], 16);
	memcpy(p->ip.dst, to->dgid, 16);
	if (!wire_ip_is_v4(p->ip.dst))
		p->ip.flow_label = to->flow_label;
	return p->b;
}

static void sim_tx_commit(struct link *l, unsigned int flags)
{
	struct sim_link *s = sim_of(l);
	struct packet *p = s->reserved;
	uint32_t icrc;

	assert(p);
	s->reserved = NULL;
	if (wire_ip_is_v4(p->ip.src))
		p->ip.id = s->id++;
	icrc = htole32(wire_icrc(&p->ip, p->b, p->len));
	memcpy(p->b + p->len, &icrc, sizeof(icrc));
	p->corrupt = flags & LINK_TX_CORRUPT;
	*s->out_tail = p;
	s->out_tail = &p->next;

	stats_inc(l->stats, STAT_tx_packets);
	stats_add(l->stats, STAT_tx_bytes, p->len);
	if (l->tap)
		l->tap->packet(l->tap, LINK_SENT, &p->ip, p->b, p->len + WIRE_ICRC_LEN);
}

static void sim_tx_flush(struct link *l, uint64_t now)
{
	struct sim_link *s = sim_of(l);
	struct packet *p;

	if (s->out)
		stats_inc(l->stats, STAT_tx_sends);
	while ((p = s->out)) {
		s->out = p->next;
		put_on_wire(s->sim, p, now);
	}
	s->out_tail = &s->out;
}

static bool icrc_right(const struct packet *p)
{
	uint32_t icrc = htole32(wire_icrc(&p->ip, p->b, p->len));

	return !memcmp(p->b + p->len, &icrc, sizeof(icrc));
}

static void free_burst(struct sim_link *s)
{
	while (s->nburst)
		free(s->burst[--s->nburst]);
}

static unsigned int sim_rx_burst(struct link *l, struct link_rx *v, unsigned int max, uint64_t now)
{
	struct sim_link *s = sim_of(l);

	free_burst(s);
	max = min_t(unsigned int, max, LINK_RX_BURST);
	while (s->nburst < max && s->waiting && s->heap[0]->arrival <= now) {
		struct packet *p = heap_pop(s);

		if (l->tap)
			l->tap->packet(l->tap, LINK_RECEIVED, &p->ip, p->b, p->len + WIRE_ICRC_LEN);
		if (!icrc_right(p)) {
			stats_drop(l->stats, DROP_icrc);
			free(p);
			continue;
		}
		v[s->nburst] = (struct link_rx){.data = p->b, .len = p->len, .ip = p->ip};
		s->burst[s->nburst++] = p;
		stats_inc(l->stats, STAT_rx_packets);
		stats_add(l->stats, STAT_rx_bytes, p->len);
	}
	return s->nburst;
}

static uint64_t sim_next_deadline(struct link *l)
{
	return UINT64_MAX;
}

static unsigned int sim_rx_capacity(struct link *l, size_t len)
{
	unsigned int queue = sim_of(l)->sim->config.queue;

	return queue ? queue : UINT32_MAX;
}

static void free_if_unused(struct sim *sim)
{
	if (sim->destroyed && !sim->links)
		free(sim);
}

static void sim_link_destroy(struct link *l)
{
	struct sim_link *s = sim_of(l), **at = &s->sim->links;
	struct packet *p;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	free_if_unused(s->sim);

	free_burst(s);
	while (s->waiting)
		free(s->heap[--s->waiting]);
	while ((p = s->out)) {
		s->out = p->next;
		free(p);
	}
	free(s->reserved);
	free(s->heap);
	free(s);
}

static const struct link_ops sim_ops = {
	.open_gid = sim_open_gid,
	.tx_reserve = sim_tx_reserve,
	.tx_commit = sim_tx_commit,
	.tx_flush = sim_tx_flush,
	.rx_burst = sim_rx_burst,
	.next_deadline = sim_next_deadline,
	.rx_capacity = sim_rx_capacity,
	.destroy = sim_link_destroy,
};

struct sim *sim_create(const struct sim_config *config)
{
	struct sim *sim = calloc(1, sizeof(*sim));

	if (!sim)
		return NULL;
	sim->config = *config;
	sim->prng.state = config->seed;
	return sim;
}

void sim_destroy(struct sim *sim)
{
	sim->destroyed = true;
	free_if_unused(sim);
}

struct link *sim_link(struct sim *sim, const uint8_t ip[16], struct stats *stats)
{
	return sim_link_lane(sim, ip, 0, 1, stats);
}

struct link *sim_link_lane(struct sim *sim, const uint8_t ip[16], unsigned int lane,
			   unsigned int nlanes, struct stats *stats)
{
	struct sim_link *s = calloc(1, sizeof(*s)), **at = &sim->links;

	if (!s)
		return NULL;
	s->link = (struct link){.ops = &sim_ops, .stats = stats, .fd = -1};
	s->sim = sim;
	s->lane = lane;
	s->nlanes = nlanes;
	s->out_tail = &s->out;
	s->id = prng_next(&sim->prng);
	memcpy(s->ip[s->nips++], ip, 16);
	/* At the end: link_of_ip() finds the oldest owner of an address. */
	while (*at)
		at = &(*at)->next;
	*at = s;
	return &s->link;
}

int sim_add_ip(struct link *link, const uint8_t ip[16])
{
	struct sim_link *s = sim_of(link);

	if (s->nips == MAX_IPS)
		return -ENOSPC;
	memcpy(s->ip[s->nips++], ip, 16);
	return 0;
}

uint64_t sim_next(const struct sim *sim)
{
	uint64_t next = UINT64_MAX;

	for (const struct sim_link *s = sim->links; s; s = s->next)
		if (s->waiting && s->heap[0]->arrival < next)
			next = s->heap[0]->arrival;
	return next;
}

void sim_set_faults(struct sim *sim, const struct sim_config *config)
{
	sim->config.drop = config->drop;
	sim->config.dup = config->dup;
	sim->config.reorder = config->reorder;
	sim->config.corrupt = config->corrupt;
}

void sim_observe(struct sim *sim, sim_observer *fn, void *arg)
{
	sim->observer = fn;
	sim->observer_arg = arg;
}
