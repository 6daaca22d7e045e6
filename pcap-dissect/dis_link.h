/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What lies below IP, and IPv6's extension headers: lengths and numbers that both the decoder and the
 * list of sections need.
 */
#ifndef RXE_DIS_LINK_H
#define RXE_DIS_LINK_H

#include "pcap-dissect/dis_fields.h"

#include <stdint.h>

#define DIS_IP4_LEN	20
#define DIS_IP6_LEN	40
#define DIS_UDP_LEN	8
#define DIS_VLAN_LEN	4
#define DIS_MAD_LEN	256
#define DIS_MAD_HDR_LEN 24

#define DIS_PROTO_UDP	   17
#define DIS_PROTO_FRAGMENT 44

/** dis_link_known() - whether frames with this DLT_ number can be decoded. */
bool dis_link_known(int link);

/** dis_link_hdr() - the header that such a frame begins with, or 0 for bare IP; its length in @len. */
enum dis_hdr dis_link_hdr(int link, uint32_t *len);

/** dis_link_type() - the EtherType in a link header whose bytes are all there; 0 where it has none. */
uint16_t dis_link_type(int link, const uint8_t *b);

/** dis_ip6_ext_len() - length of an extension header of type @next at @b (2 bytes are there).
 *
 * Return: 0 when @next is none, but what the packet carries.
 */
uint32_t dis_ip6_ext_len(uint8_t next, const uint8_t *b);

#endif
