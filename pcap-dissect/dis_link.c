/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Link types and IPv6 extension headers, as tables.
 *
 * A link header is known by its length and by where the EtherType lies in it; bare IP and the BSD
 * loopback header, whose address family is in the byte order of an unknown host, tell IPv4 from IPv6
 * by the first four bits of the IP packet instead.
 */
#include "pcap-dissect/dis_link.h"

#include "base/bytes.h"
#include "base/macros.h"

#include <pcap/pcap.h>

static const struct link_row {
	int link;
	uint8_t hdr; /* enum dis_hdr */
	uint8_t len;
	int8_t type; /* offset of the EtherType, -1 without one */
} links[] = {
	{DLT_EN10MB, DIS_H_ETH, 14, 12},     {DLT_LINUX_SLL, DIS_H_SLL, 16, 14},
	{DLT_LINUX_SLL2, DIS_H_SLL2, 20, 0}, {DLT_NULL, DIS_H_LOOPBACK, 4, -1},
	{DLT_LOOP, DIS_H_LOOPBACK, 4, -1},   {DLT_RAW, DIS_H_NONE, 0, -1},
	{DLT_IPV4, DIS_H_NONE, 0, -1},	     {DLT_IPV6, DIS_H_NONE, 0, -1},
};

static const struct link_row *link_row(int link)
{
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		if (links[i].link == link)
			return &links[i];
	return NULL;
}

bool dis_link_known(int link)
{
	return link_row(link);
}

enum dis_hdr dis_link_hdr(int link, uint32_t *len)
{
	const struct link_row *row = link_row(link);

	*len = row ? row->len : 0;
	return row ? row->hdr : DIS_H_NONE;
}

uint16_t dis_link_type(int link, const uint8_t *b)
{
	const struct link_row *row = link_row(link);

	return row && row->type >= 0 ? get_be16(b + row->type) : 0;
}

uint32_t dis_ip6_ext_len(uint8_t next, const uint8_t *b)
{
	switch (next) {
	case 0:	  /* hop-by-hop options */
	case 43:  /* routing */
	case 60:  /* destination options */
	case 135: /* mobility */
	case 139: /* host identity */
	case 140: /* shim6 */
		return (b[1] + 1) * 8;
	case DIS_PROTO_FRAGMENT:
		return 8;
	case 51: /* authentication: in units of 4, RFC 4302 */
		return (b[1] + 2) * 4;
	default:
		return 0;
	}
}
