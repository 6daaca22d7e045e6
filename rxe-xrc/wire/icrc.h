/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The invariant CRC of RoCEv2, and the IP and UDP headers it covers (IBTA Annex A17).
 *
 * CRC-32 (the Ethernet one) over eight bytes of ones, the IP header, the UDP header and the transport
 * packet, with the fields that a router may change taken as ones: IPv4 TOS, TTL and checksum; IPv6
 * traffic class, flow label and hop limit; UDP checksum; BTH byte 4. It is sent little-endian.
 *
 * The IPv4 identification is covered, and a UDP socket does not show it. wire_icrc_solve() finds it: a
 * CRC is linear, so the difference between two CRCs is a function of the difference of the two bytes
 * and of how many bytes follow them, and that function can be run backwards. Sixteen of the CRC's 32
 * bits are spent on this; the caller should accept only an identification that is plausible.
 */
#ifndef RXE_WIRE_ICRC_H
#define RXE_WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the headers below a transport packet say. Addresses are 16 bytes, IPv4 mapped (::ffff:a.b.c.d). */
struct wire_ip {
	uint8_t src[16];
	uint8_t dst[16];
	uint32_t flow_label; /* IPv6 only; 20 bits */
	uint16_t id;	     /* IPv4 only: identification; sent with DF */
	uint16_t sport;
	uint8_t tos; /* IPv4 TOS or IPv6 traffic class */
	uint8_t ttl;
};

static inline bool wire_ip_is_v4(const uint8_t ip[16])
{
	static const uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	return !__builtin_memcmp(ip, prefix, sizeof(prefix));
}

#define WIRE_IP_UDP_MAX (40 + 8)

/**
 * wire_ip_udp() - the IP and UDP headers as they are sent, IPv4 header checksum right, UDP checksum 0.
 * @out: WIRE_IP_UDP_MAX bytes
 * @len: bytes behind the UDP header, the ICRC among them
 *
 * Return: bytes written, 28 or 48.
 */
size_t wire_ip_udp(uint8_t *out, const struct wire_ip *ip, size_t len);

/**
 * wire_icrc() - the ICRC of a transport packet.
 * @b: from the BTH on, without the ICRC
 * @len: at least 12
 *
 * Return: the CRC as a number; it goes on the wire little-endian.
 */
uint32_t wire_icrc(const struct wire_ip *ip, const uint8_t *b, size_t len);

/**
 * wire_icrc_solve() - which IPv4 identification makes the ICRC right?
 * @len: bytes of the transport packet, without the ICRC
 * @diff: the received ICRC XOR the one that wire_icrc() gives for an identification of 0
 * @id: the answer
 *
 * About 27 ns for a length that was solved lately, 175 ns for another (measured 2026-11-29). Any thread.
 *
 * Return: whether there is one. A damaged packet gets through with a probability of 2^-16.
 */
bool wire_icrc_solve(size_t len, uint32_t diff, uint16_t *id);

#endif
