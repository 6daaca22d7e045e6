/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A network in virtual time: links whose packets go through one seeded, lossy, reordering wire.
 *
 * Nothing here reads a clock or a random source: the same seed gives the same run. Packets carry real
 * ICRCs, so a damaged one is discarded where a real one would be. The network also keeps the record from
 * which an oracle judges a requester's retries: sim_observe() tells what became of each packet.
 */
#ifndef RXE_NET_SIM_H
#define RXE_NET_SIM_H

#include "net/link.h"

struct sim_config {
	uint64_t seed;
	/* Parts of 2^32, each packet drawn alone. */
	uint32_t drop, dup, reorder, corrupt;
	uint64_t latency_ns; /* of every packet */
	uint64_t jitter_ns;  /* a reordered packet is late by up to this much */
	/*
	 * Packets on their way to a receiver or waiting there, beyond which a new one is dropped; 0: no
	 * limit. Those under way count, so that a packet's fate is known when it is sent.
	 */
	unsigned int queue;
	/*
	 * Addresses with several links: the part of 2^32 that does not go to the link that the destination QP
	 * says, but to the one that it said for the packet before.
	 */
	uint32_t missteer;
};

struct sim;

struct sim *sim_create(const struct sim_config *config);
/** sim_destroy() - before or after the links, whose destroy() the caller calls; the last one frees it. */
void sim_destroy(struct sim *sim);

/** sim_link() - a new link with GID index 0 = @ip (16 bytes, IPv4 mapped); further GIDs by sim_add_ip(). */
struct link *sim_link(struct sim *sim, const uint8_t ip[16], struct stats *stats);
/**
 * sim_link_lane() - link number @lane of @nlanes that share @ip: packets are steered by the low bits of the
 * destination QP, as net/udp.h does. Create them in order.
 */
struct link *sim_link_lane(struct sim *sim, const uint8_t ip[16], unsigned int lane,
			   unsigned int nlanes, struct stats *stats);
int sim_add_ip(struct link *link, const uint8_t ip[16]);

/** sim_next() - virtual time at which the next packet arrives somewhere, UINT64_MAX when none is under way. */
uint64_t sim_next(const struct sim *sim);

/** sim_set_faults() - change the probabilities for packets sent from now on. */
void sim_set_faults(struct sim *sim, const struct sim_config *config);

/* Called for each packet put on the wire, with what will become of it; @b is from the BTH on, no ICRC. */
enum sim_fate { SIM_DELIVERED, SIM_DROPPED, SIM_CORRUPTED, SIM_DUPLICATED, SIM_REORDERED };
typedef void sim_observer(void *arg, uint64_t now, const struct wire_ip *ip, const uint8_t *b,
			  size_t len, enum sim_fate fate);
void sim_observe(struct sim *sim, sim_observer *fn, void *arg);

#endif
