/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wire/ against packets that other implementations sent: every RoCEv2 packet of every capture
 * decodes, has a right ICRC, encodes to the same bytes, and gives its IPv4 identification when that
 * is hidden.
 *
 * Reads tests/data, and beside it the folder that RXE_CAPTURES names, with all folders below. The
 * captures of tests/data must hold the opcodes listed at the end, so that none is lost unnoticed.
 */
#include "wire/hdr.h"
#include "wire/icrc.h"
#include "base/bytes.h"

#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <ftw.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>

#define ETH_LEN	     14
#define ETH_IP4	     0x0800
#define ETH_IP6	     0x86dd
#define IP_PROTO_UDP 17

/* A packet taken from a frame: where its layers are, and what the headers say. */
struct packet {
	const uint8_t *ip_hdr;
	size_t ip_udp_len;
	const uint8_t *bth;
	size_t len; /* from the BTH on, without the ICRC */
	uint32_t icrc;
	struct wire_ip ip;
};

static struct {
	unsigned int files, packets, v4, v6;
	bool seen[256];
} total;

/* Fills in all of @p but the transport packet. Return: the UDP header, or NULL for another
 * protocol. */
static const uint8_t *parse_ip(struct packet *p, const uint8_t *ip, uint16_t ethertype,
			       size_t caplen)
{
	p->ip_hdr = ip;
	memset(&p->ip, 0, sizeof(p->ip));
	if (ethertype == ETH_IP4 && caplen >= 28 && ip[9] == IP_PROTO_UDP) {
		memset(p->ip.src + 10, 0xff, 2);
		memset(p->ip.dst + 10, 0xff, 2);
		memcpy(p->ip.src + 12, ip + 12, 4);
		memcpy(p->ip.dst + 12, ip + 16, 4);
		p->ip.tos = ip[1];
		p->ip.id = get_be16(ip + 4);
		p->ip.ttl = ip[8];
		p->ip_udp_len = 28;
		return ip + 20;
	}
	if (ethertype == ETH_IP6 && caplen >= 48 && ip[6] == IP_PROTO_UDP) {
		memcpy(p->ip.src, ip + 8, 16);
		memcpy(p->ip.dst, ip + 24, 16);
		p->ip.tos = get_be32(ip) >> 20;
		p->ip.flow_label = get_be32(ip) & 0xfffff;
		p->ip.ttl = ip[7];
		p->ip_udp_len = 48;
		return ip + 40;
	}
	return NULL;
}

/* Return: whether the frame holds a RoCEv2 packet. */
static bool parse_frame(struct packet *p, const uint8_t *frame, size_t caplen)
{
	const uint8_t *udp;
	size_t udp_len;

	if (caplen < ETH_LEN)
		return false;
	udp = parse_ip(p, frame + ETH_LEN, get_be16(frame + 12), caplen - ETH_LEN);
	if (!udp || get_be16(udp + 2) != WIRE_UDP_PORT)
		return false;
	udp_len = get_be16(udp + 4);
	cr_assert_geq(udp_len, 8 + WIRE_BTH_LEN + WIRE_ICRC_LEN);
	cr_assert_leq(udp_len, caplen - (udp - frame), "the capture cut the packet off");
	p->ip.sport = get_be16(udp);
	p->bth = udp + 8;
	p->len = udp_len - 8 - WIRE_ICRC_LEN;
	p->icrc = p->bth[p->len] | p->bth[p->len + 1] << 8 | p->bth[p->len + 2] << 16 |
		  (uint32_t)p->bth[p->len + 3] << 24;
	return true;
}

/* The reserved bits of others are carried over: they are sent 0 by us, whatever came. */
static void check_headers(const struct packet *p, const char *where)
{
	uint8_t b[WIRE_MAX_HDR_LEN];
	struct wire_pkt pkt;

	cr_assert_eq(wire_decode(&pkt, p->bth, p->len), WIRE_OK, "%s", where);
	total.seen[pkt.op->code] = true;
	cr_assert_eq(wire_encode_hdr(b, &pkt), pkt.op->hdr_len);
	b[4] |= p->bth[4] & 0x3f;
	b[8] |= p->bth[8] & 0x7f;
	if (pkt.op->headers & WIRE_H_XRCETH)
		b[12] = p->bth[12];
	if (pkt.op->headers & WIRE_H_DETH)
		b[16] = p->bth[16];
	cr_assert_arr_eq(b, p->bth, pkt.op->hdr_len, "%s: %s", where, pkt.op->name);
	cr_assert_eq(pkt.payload, p->bth + pkt.op->hdr_len);
	cr_assert_eq(pkt.payload + pkt.payload_len + pkt.pad, p->bth + p->len);
}

static void check_ip_udp(const struct packet *p, const char *where)
{
	uint8_t b[WIRE_IP_UDP_MAX];

	cr_assert_eq(wire_ip_udp(b, &p->ip, p->len + WIRE_ICRC_LEN), p->ip_udp_len);
	/* The UDP checksum is the sender's choice, and sent 0 by us. */
	cr_assert_arr_eq(b, p->ip_hdr, p->ip_udp_len - 2, "%s", where);
}

static void check_icrc(const struct packet *p, const char *where)
{
	struct wire_ip hidden = p->ip;
	uint16_t id;

	cr_assert_eq(wire_icrc(&p->ip, p->bth, p->len), p->icrc, "%s", where);
	if (!wire_ip_is_v4(p->ip.dst)) {
		total.v6++;
		return;
	}
	total.v4++;
	hidden.id = 0;
	id = ~p->ip.id;
	cr_assert(wire_icrc_solve(p->len, p->icrc ^ wire_icrc(&hidden, p->bth, p->len), &id), "%s",
		  where);
	cr_assert_eq(id, p->ip.id, "%s", where);
}

static void check_capture(const char *path)
{
	char err[PCAP_ERRBUF_SIZE], where[4200];
	pcap_t *capture = pcap_open_offline(path, err);
	struct pcap_pkthdr *h;
	const u_char *frame;
	int ret;

	cr_assert(capture, "%s: %s", path, err);
	cr_assert_eq(pcap_datalink(capture), DLT_EN10MB, "%s", path);
	for (unsigned int n = 1; (ret = pcap_next_ex(capture, &h, &frame)) == 1; n++) {
		struct packet p;

		if (!parse_frame(&p, frame, h->caplen))
			continue;
		snprintf(where, sizeof(where), "%s, frame %u", path, n);
		check_headers(&p, where);
		check_ip_udp(&p, where);
		check_icrc(&p, where);
		total.packets++;
	}
	cr_assert_eq(ret, PCAP_ERROR_BREAK, "%s: %s", path, pcap_geterr(capture));
	pcap_close(capture);
	total.files++;
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	size_t n = strlen(path);

	if (type == FTW_F && n > 5 && !strcmp(path + n - 5, ".pcap"))
		check_capture(path);
	return 0;
}

/* --verbose prints what was read. */
static void check_folder(const char *path)
{
	cr_assert_eq(nftw(path, visit, 16, FTW_PHYS), 0, "%s cannot be read", path);
	cr_log_info("%s: %u files, %u packets (%u IPv4, %u IPv6)\n", path, total.files,
		    total.packets, total.v4, total.v6);
	cr_assert_gt(total.packets, 0, "no RoCEv2 packet below %s", path);
}

Test(captures, folder__tests_data)
{
	static const uint8_t expected[] = {
		WIRE_RC_SEND_FIRST,
		WIRE_RC_SEND_MIDDLE,
		WIRE_RC_SEND_LAST,
		WIRE_RC_SEND_LAST_IMM,
		WIRE_RC_SEND_ONLY,
		WIRE_RC_SEND_ONLY_IMM,
		WIRE_RC_WRITE_FIRST,
		WIRE_RC_WRITE_MIDDLE,
		WIRE_RC_WRITE_LAST,
		WIRE_RC_WRITE_ONLY,
		WIRE_RC_WRITE_ONLY_IMM,
		WIRE_RC_READ_REQUEST,
		WIRE_RC_READ_RESP_FIRST,
		WIRE_RC_READ_RESP_MIDDLE,
		WIRE_RC_READ_RESP_LAST,
		WIRE_RC_READ_RESP_ONLY,
		WIRE_RC_ACK,
		WIRE_RC_ATOMIC_ACK,
		WIRE_RC_CMP_SWAP,
		WIRE_RC_FETCH_ADD,
		WIRE_UC_SEND_FIRST,
		WIRE_UC_SEND_MIDDLE,
		WIRE_UC_SEND_LAST,
		WIRE_UC_SEND_ONLY,
		WIRE_UD_SEND_ONLY,
		WIRE_UD_SEND_ONLY_IMM,
		WIRE_XRC_SEND_ONLY_INV,
	};

	check_folder(TEST_DATA);
	for (unsigned int i = 0; i < sizeof(expected); i++) {
		const struct wire_opcode *op = wire_opcode(expected[i]);

		cr_assert(total.seen[op->code], "no %s", op->name);
		if (op->transport == WIRE_TRANSPORT_RC)
			cr_assert(total.seen[op->code | 0xa0], "no X%s", op->name);
	}
	cr_assert_gt(total.v4, 0);
	cr_assert_gt(total.v6, 0);
}

Test(captures, folder__environment)
{
	const char *path = getenv("RXE_CAPTURES");

	if (!path)
		cr_skip_test("RXE_CAPTURES names no folder");
	check_folder(path);
}
