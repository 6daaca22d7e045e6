/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frame -> struct dis_packet: link header, VLAN tags, IP, UDP, transport packet, management datagram.
 *
 *   frame [link][VLAN]* [IP + options or extension headers][UDP][BTH ...  payload pad][ICRC]
 *                       |                                       |<----- bth_len ---->|
 *                       |<----------------------- ip_len ---------------------------------->|
 *   captured  ------------------------------------------------------------>|  (may end anywhere)
 *
 * Two ends are kept apart everywhere: where a header says that something ends, and where the captured
 * bytes do. Nothing is read behind the second. Each layer narrows the first: UDP cannot be longer than
 * the IP packet around it.
 *
 * wire_decode() is as strict as the engine, which has to be. When it refuses a packet, or the packet is
 * not all there, its headers are copied in front of zeros and decoded once more without payload: what
 * was captured is right then, what was not is zero, and have tells which is which.
 */
#include "pcap-dissect/dis.h"

#include "base/bytes.h"
#include "base/macros.h"
#include "pcap-dissect/dis_link.h"

#define ETHERTYPE_IP4 0x0800
#define ETHERTYPE_IP6 0x86dd
#define VLANS_MAX     8
#define IP6_EXT_MAX   16
#define QP1_QKEY      0x80010000
#define CM_CLASS      0x07

static bool is_vlan(uint16_t type)
{
	return type == 0x8100 || type == 0x88a8 || type == 0x9100;
}

/* What is left from @at on: captured, and on the wire. */
static uint32_t captured_from(const struct dis_packet *p, const uint8_t *at)
{
	return p->frame + p->caplen - at;
}

static uint32_t wire_from(const struct dis_packet *p, const uint8_t *at)
{
	uint32_t off = at - p->frame;
	uint32_t len = max_t(uint32_t, p->len, p->caplen);

	return len - off;
}

/* Something ends before it should: because of the capture, or already on the wire? */
static void note_cut(struct dis_packet *p, const uint8_t *at, uint32_t wanted)
{
	p->notes |= wire_from(p, at) >= wanted ? DIS_NOTE(SNAPPED) : DIS_NOTE(TRUNCATED);
}

/* Skips the VLAN tags at @b; NULL when they are cut. */
static const uint8_t *decode_vlans(struct dis_packet *p, const uint8_t *b)
{
	while (is_vlan(p->ethertype) && p->vlans < VLANS_MAX) {
		if (captured_from(p, b) < DIS_VLAN_LEN) {
			note_cut(p, b, DIS_VLAN_LEN);
			return NULL;
		}
		p->ethertype = get_be16(b + 2);
		b += DIS_VLAN_LEN;
		p->vlans++;
	}
	return b;
}

/* 4, 6, or 0 for neither. The frame knows better than the packet what it carries. */
static uint8_t ip_version(struct dis_packet *p, const uint8_t *ip)
{
	uint8_t says = ip[0] >> 4;
	uint8_t version = p->ethertype == ETHERTYPE_IP4	  ? 4
			  : p->ethertype == ETHERTYPE_IP6 ? 6
			  : says == 4 || says == 6	  ? says
							  : 0;

	if (says != version)
		p->notes |= DIS_NOTE(IP_VERSION);
	return version;
}

/* Sets p->ip when there is at least a byte of an IP packet. */
static void decode_link(struct dis_packet *p)
{
	const uint8_t *b = p->frame;
	uint32_t len;

	dis_link_hdr(p->link, &len);
	if (p->caplen < len) {
		note_cut(p, b, len);
		return;
	}
	p->ethertype = dis_link_type(p->link, b);
	b = decode_vlans(p, b + len);
	if (!b || (p->ethertype && p->ethertype != ETHERTYPE_IP4 && p->ethertype != ETHERTYPE_IP6))
		return;
	if (!captured_from(p, b)) {
		note_cut(p, b, 1);
		return;
	}
	p->ip_version = ip_version(p, b);
	p->ip = p->ip_version ? b : NULL;
}

static bool ip4_checksum_ok(const uint8_t *ip, uint32_t len)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < len; i += 2)
		sum += get_be16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

static void mapped(uint8_t to[16], const uint8_t *ip4)
{
	static const uint8_t prefix[12] = {[10] = 0xff, 0xff};

	memcpy(to, prefix, sizeof(prefix));
	memcpy(to + 12, ip4, 4);
}

/* Returns whether what follows the header may be looked at. */
static bool decode_ip4(struct dis_packet *p)
{
	const uint8_t *ip = p->ip;
	uint32_t captured = captured_from(p, ip);
	uint16_t frag;

	if (captured < DIS_IP4_LEN) {
		note_cut(p, ip, DIS_IP4_LEN);
		return false;
	}
	p->layer = DIS_LAYER_IP;
	p->ip_hdr_len = (ip[0] & 15) * 4;
	p->ip_len = get_be16(ip + 2);
	p->proto = ip[9];
	mapped(p->src, ip + 12);
	mapped(p->dst, ip + 16);
	/* A host that lets its network card segment captures a length of 0. */
	if (!p->ip_len)
		p->ip_len = wire_from(p, ip);
	if (p->ip_hdr_len < DIS_IP4_LEN || p->ip_hdr_len > p->ip_len) {
		p->notes |= DIS_NOTE(IP_HEADER);
		p->ip_hdr_len = DIS_IP4_LEN;
		return false;
	}
	if (captured < p->ip_hdr_len) {
		note_cut(p, ip, p->ip_hdr_len);
		return false;
	}
	/* Zero: left to the network card. */
	if (get_be16(ip + 10) && !ip4_checksum_ok(ip, p->ip_hdr_len))
		p->notes |= DIS_NOTE(IP_CHECKSUM);
	frag = get_be16(ip + 6);
	if (frag & 0x3fff) {
		p->notes |= DIS_NOTE(FRAGMENT);
		p->frag_off = (frag & 0x1fff) * 8;
		p->frag_id = get_be16(ip + 4);
	}
	return !p->frag_off;
}

static void decode_ip6_frag(struct dis_packet *p, const uint8_t *ext)
{
	/* All zero: an atomic fragment, which is whole. */
	if (!(get_be16(ext + 2) & 0xfff9))
		return;
	p->notes |= DIS_NOTE(FRAGMENT);
	p->frag_off = get_be16(ext + 2) & 0xfff8;
	p->frag_id = get_be32(ext + 4);
}

/* Passes over the extension headers; false when one is cut or longer than the packet. */
static bool decode_ip6_ext(struct dis_packet *p, uint32_t captured)
{
	static const uint8_t shortest[2];

	for (unsigned int i = 0; i < IP6_EXT_MAX; i++) {
		const uint8_t *ext = p->ip + p->ip_hdr_len;
		uint32_t len;

		if (!dis_ip6_ext_len(p->proto, shortest))
			return true;
		if (captured < p->ip_hdr_len + 8) {
			note_cut(p, p->ip, p->ip_hdr_len + 8);
			return false;
		}
		len = dis_ip6_ext_len(p->proto, ext);
		if (p->ip_hdr_len + len > p->ip_len) {
			p->notes |= DIS_NOTE(IP_HEADER);
			return false;
		}
		if (captured < p->ip_hdr_len + len) {
			note_cut(p, p->ip, p->ip_hdr_len + len);
			return false;
		}
		if (p->proto == DIS_PROTO_FRAGMENT)
			decode_ip6_frag(p, ext);
		p->proto = ext[0];
		p->ip_hdr_len += len;
	}
	return true;
}

static bool decode_ip6(struct dis_packet *p)
{
	const uint8_t *ip = p->ip;
	uint32_t captured = captured_from(p, ip);

	if (captured < DIS_IP6_LEN) {
		note_cut(p, ip, DIS_IP6_LEN);
		return false;
	}
	p->layer = DIS_LAYER_IP;
	p->ip_hdr_len = DIS_IP6_LEN;
	p->ip_len = DIS_IP6_LEN + get_be16(ip + 4);
	p->proto = ip[6];
	if (p->ip_len == DIS_IP6_LEN && p->proto == DIS_PROTO_UDP)
		p->ip_len = max_t(uint32_t, wire_from(p, ip), DIS_IP6_LEN);
	memcpy(p->src, ip + 8, 16);
	memcpy(p->dst, ip + 24, 16);
	return decode_ip6_ext(p, captured) && !p->frag_off;
}

/* The transport packet's extent: @udp_len as UDP says it, @captured of it, both without the UDP header. */
static void bound_transport(struct dis_packet *p, uint32_t udp_len, uint32_t captured)
{
	bool fragment = p->notes & DIS_NOTE(FRAGMENT);

	p->layer = DIS_LAYER_ROCE;
	p->bth = p->udp + DIS_UDP_LEN;
	/* A first fragment holds less than UDP says, and that is all right. */
	if (captured < udp_len && !fragment)
		note_cut(p, p->bth, udp_len);
	if (udp_len < WIRE_BTH_LEN + WIRE_ICRC_LEN)
		p->notes |= DIS_NOTE(SHORT);
	if (udp_len & 3)
		p->notes |= DIS_NOTE(UNALIGNED);
	p->bth_len = udp_len > WIRE_ICRC_LEN ? udp_len - WIRE_ICRC_LEN : 0;
	p->have = min_t(uint32_t, captured, p->bth_len);
	if (captured < udp_len || p->bth_len < WIRE_BTH_LEN || fragment)
		return;
	p->icrc_got = get_be32(p->bth + p->bth_len);
	p->icrc_want = dis_icrc(p);
	p->icrc = p->icrc_got == p->icrc_want ? DIS_ICRC_GOOD : DIS_ICRC_BAD;
}

static void decode_udp(struct dis_packet *p)
{
	uint32_t room = p->ip_len - p->ip_hdr_len; /* what IP leaves for UDP */
	uint32_t captured, udp_len;

	p->udp = p->ip + p->ip_hdr_len;
	/* Behind the IP packet there may be Ethernet's padding. */
	captured = min_t(uint32_t, captured_from(p, p->udp), room);
	if (captured < DIS_UDP_LEN) {
		if (room < DIS_UDP_LEN)
			p->notes |= DIS_NOTE(UDP_LENGTH);
		else
			note_cut(p, p->udp, DIS_UDP_LEN);
		if (!captured)
			p->udp = NULL;
		return;
	}
	p->sport = get_be16(p->udp);
	p->dport = get_be16(p->udp + 2);
	p->layer = DIS_LAYER_UDP;
	udp_len = get_be16(p->udp + 4);
	if (udp_len < DIS_UDP_LEN || (udp_len > room && !(p->notes & DIS_NOTE(FRAGMENT)))) {
		p->notes |= DIS_NOTE(UDP_LENGTH);
		udp_len = room;
	}
	if (p->dport == WIRE_UDP_PORT)
		bound_transport(p, udp_len - DIS_UDP_LEN, captured - DIS_UDP_LEN);
}

/* A transport packet that wire_decode() refuses, or that is not all there. */
static void decode_leniently(struct dis_packet *p)
{
	uint8_t b[WIRE_MAX_HDR_LEN] = {0};
	struct wire_pkt *pkt = &p->pkt;
	const struct wire_opcode *op = NULL;
	uint32_t hdr_len = WIRE_BTH_LEN;
	uint32_t body;
	uint8_t pad;

	memcpy(b, p->bth, min_t(uint32_t, p->have, sizeof(b)));
	if (p->have) {
		op = wire_opcode(b[0]);
		if (!op)
			p->notes |= DIS_NOTE(OPCODE);
	}
	if (b[1] & 15)
		p->notes |= DIS_NOTE(TVER);
	pad = b[1] >> 4 & 3;
	b[1] &= 0xc0;
	/* Any opcode without extension headers serves for the BTH alone. */
	if (op)
		hdr_len = op->hdr_len;
	else
		b[0] = WIRE_RC_SEND_MIDDLE;
	wire_decode(pkt, b, hdr_len);
	pkt->op = op;
	pkt->pad = pad;
	pkt->payload = p->bth + min_t(uint32_t, hdr_len, p->have);
	body = p->bth_len > hdr_len ? p->bth_len - hdr_len : 0;
	if (p->bth_len < hdr_len)
		p->notes |= DIS_NOTE(SHORT);
	else if (op && !op->payload && body)
		p->notes |= DIS_NOTE(EXCESS);
	else if (op && pad > body)
		p->notes |= DIS_NOTE(PAD);
	pkt->payload_len = body > pad ? body - pad : 0;
}

static void decode_transport(struct dis_packet *p)
{
	if (likely(p->have == p->bth_len && wire_decode(&p->pkt, p->bth, p->bth_len) == WIRE_OK))
		return;
	decode_leniently(p);
}

static enum dis_hdr cm_message(uint16_t attr_id)
{
	static const uint8_t messages[] = {
		DIS_H_CM_REQ,	   DIS_H_CM_MRA,  DIS_H_CM_REJ,	 DIS_H_CM_REP,
		DIS_H_CM_RTU,	   DIS_H_CM_DREQ, DIS_H_CM_DREP, DIS_H_CM_SIDR_REQ,
		DIS_H_CM_SIDR_REP, DIS_H_CM_LAP,  DIS_H_CM_APR,
	};

	if (attr_id < 0x10 || attr_id >= 0x10 + ARRAY_SIZE(messages))
		return DIS_H_NONE;
	return messages[attr_id - 0x10];
}

/* The RDMA IP CM header in the private data of a request for one of librdmacm's service ids. */
static const uint8_t *find_ip_cm(const struct dis_packet *p)
{
	uint32_t private = p->cm_hdr == DIS_H_CM_REQ	    ? 140
			   : p->cm_hdr == DIS_H_CM_SIDR_REQ ? 16
							    : 0;
	const uint8_t *b = p->mad + DIS_MAD_HDR_LEN + private;
	uint64_t service;

	if (!private || p->mad_have < DIS_MAD_HDR_LEN + private + 2)
		return NULL;
	if (!dis_cm_get(p, DIS_F_CM_REQ_SERVICE_ID, &service) &&
	    !dis_cm_get(p, DIS_F_CM_SIDR_REQ_SERVICE_ID, &service))
		return NULL;
	if (service >> 24 != 1 && service >> 16 != 2)
		return NULL;
	/* The IB port space has no header when the program uses native addresses. */
	return b[0] == 0 && (b[1] >> 4 == 4 || b[1] >> 4 == 6) ? b : NULL;
}

static void decode_mad(struct dis_packet *p)
{
	const struct wire_pkt *pkt = &p->pkt;

	if (!pkt->op || pkt->op->transport != WIRE_TRANSPORT_UD || pkt->dest_qpn != 1 ||
	    !dis_has_hdr(p, WIRE_H_DETH) || pkt->qkey != QP1_QKEY)
		return;
	if (pkt->payload_len != DIS_MAD_LEN)
		p->notes |= DIS_NOTE(MAD);
	p->mad_have = min_t(uint32_t, dis_payload_have(p), DIS_MAD_LEN);
	if (!p->mad_have)
		return;
	p->mad = pkt->payload;
	if (p->mad_have < DIS_MAD_HDR_LEN || p->mad[1] != CM_CLASS)
		return;
	p->cm_hdr = cm_message(get_be16(p->mad + 16));
	p->ip_cm = find_ip_cm(p);
}

void dis_decode(struct dis_packet *p)
{
	bool go_on;

	/* The fields of the transport packet are set with it, or not looked at. */
	memset((char *)p + offsetof(struct dis_packet, notes), 0,
	       offsetof(struct dis_packet, pkt) - offsetof(struct dis_packet, notes));
	p->pkt.op = NULL;
	p->pkt.payload_len = 0;
	p->mad = NULL;
	p->mad_have = 0;
	p->cm_hdr = DIS_H_NONE;
	p->ip_cm = NULL;
	p->icrc = DIS_ICRC_UNVERIFIED;

	decode_link(p);
	if (!p->ip)
		return;
	go_on = p->ip_version == 4 ? decode_ip4(p) : decode_ip6(p);
	if (p->layer == DIS_LAYER_IP && captured_from(p, p->ip) < p->ip_len &&
	    !(p->notes & (DIS_NOTE(SNAPPED) | DIS_NOTE(TRUNCATED))))
		note_cut(p, p->ip, p->ip_len);
	if (!go_on || p->proto != DIS_PROTO_UDP)
		return;
	decode_udp(p);
	if (p->layer != DIS_LAYER_ROCE)
		return;
	decode_transport(p);
	if (p->pkt.op && p->pkt.op->transport == WIRE_TRANSPORT_UD)
		decode_mad(p);
}
