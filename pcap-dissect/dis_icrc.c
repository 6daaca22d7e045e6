/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ICRC that a captured packet should have.
 *
 * wire_icrc() builds the headers that the device sends: no options, DF set, lengths that fit. A judge
 * has to take the bytes as they were captured, whatever the sender meant by them, so the headers are
 * copied, the fields that a router may change become ones, and the CRC goes on over the packet itself.
 *
 * IBTA Annex A17: IPv4 type of service, time to live, header checksum; IPv6 traffic class, flow label,
 * hop limit; UDP checksum; byte 4 of the BTH.
 */
#include "pcap-dissect/dis.h"

#include "base/bytes.h"
#include "pcap-dissect/dis_link.h"

#include <isa-l/crc.h>

uint32_t dis_icrc(const struct dis_packet *p)
{
	/* The longest headers that are copied; options beyond it go into the CRC where they lie. */
	uint8_t head[8 + DIS_IP6_LEN + DIS_UDP_LEN + WIRE_BTH_LEN];
	uint32_t fixed = p->ip_version == 4 ? DIS_IP4_LEN : DIS_IP6_LEN;
	uint8_t *ip = head + 8;
	uint8_t *udp;
	uint32_t crc = 0;

	memset(head, 0xff, 8);
	memcpy(ip, p->ip, fixed);
	if (p->ip_version == 4) {
		ip[1] = 0xff;
		ip[8] = 0xff;
		put_be16(ip + 10, 0xffff);
	} else {
		ip[0] |= 0x0f;
		ip[1] = ip[2] = ip[3] = 0xff;
		ip[7] = 0xff;
	}
	udp = ip + fixed;
	if (p->ip_hdr_len > fixed) {
		crc = crc32_gzip_refl(0, head, 8 + fixed);
		crc = crc32_gzip_refl(crc, p->ip + fixed, p->ip_hdr_len - fixed);
		udp = head;
	}
	memcpy(udp, p->udp, DIS_UDP_LEN + WIRE_BTH_LEN);
	put_be16(udp + 6, 0xffff);
	udp[DIS_UDP_LEN + 4] = 0xff;
	if (udp == head)
		crc = crc32_gzip_refl(crc, udp, DIS_UDP_LEN + WIRE_BTH_LEN);
	else
		crc = crc32_gzip_refl(0, head, 8 + fixed + DIS_UDP_LEN + WIRE_BTH_LEN);
	crc = crc32_gzip_refl(crc, p->bth + WIRE_BTH_LEN, p->bth_len - WIRE_BTH_LEN);
	/* It is sent least significant byte first. */
	return __builtin_bswap32(crc);
}
