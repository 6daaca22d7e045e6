/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ICRC against public vectors and a bit-by-bit reference, and the identification's solution against
 * every identification.
 *
 * The reference works on the whole IP packet as it is sent, masks a copy and knows nothing of the
 * code under test.
 */
#include "wire/icrc.h"
#include "wire/hdr.h"
#include "base/bytes.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define PACKET_MAX 4224

static uint64_t rng;

static uint32_t rnd(void)
{
	/* splitmix64 */
	uint64_t z = rng += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (z ^ z >> 31) >> 32;
}

static void rnd_bytes(uint8_t *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		b[i] = rnd();
}

static uint32_t crc32_bitwise(uint32_t crc, const uint8_t *b, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		crc ^= b[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

/* The ICRC of an IP packet without its last four bytes. */
static uint32_t reference(const uint8_t *packet, size_t len)
{
	static const uint8_t ones[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	static const uint8_t masked4[] = {1, 8, 10, 11, 26, 27, 32};
	static const uint8_t masked6[] = {1, 2, 3, 7, 46, 47, 52};
	uint8_t copy[PACKET_MAX + WIRE_IP_UDP_MAX];
	const uint8_t *masked = packet[0] >> 4 == 4 ? masked4 : masked6;

	memcpy(copy, packet, len);
	for (unsigned int i = 0; i < sizeof(masked4); i++)
		copy[masked[i]] = 0xff;
	if (packet[0] >> 4 == 6)
		copy[0] |= 0x0f;
	return ~crc32_bitwise(crc32_bitwise(~0u, ones, sizeof(ones)), copy, len);
}

static struct wire_ip random_ip(bool v4)
{
	struct wire_ip ip;

	rnd_bytes((uint8_t *)&ip, sizeof(ip));
	if (v4) {
		memset(ip.src, 0, 10);
		memset(ip.src + 10, 0xff, 2);
		memcpy(ip.dst, ip.src, 12);
	} else {
		ip.src[0] = ip.dst[0] = 0xfd;
	}
	return ip;
}

static struct wire_ip ip4(uint8_t s0, uint8_t s1, uint8_t s2, uint8_t s3, uint8_t d0, uint8_t d1,
			  uint8_t d2, uint8_t d3)
{
	return (struct wire_ip){
		.src = {[10] = 0xff, 0xff, s0, s1, s2, s3},
		.dst = {[10] = 0xff, 0xff, d0, d1, d2, d3},
		.ttl = 64,
	};
}

Test(icrc, wire_ip_udp__ip4_bytes)
{
	static const uint8_t expected[] = {
		0x45, 0x01, 0x00, 0x40, 0x04, 0x78, 0x40, 0x00, 0x40, 0x11, 0xb4, 0xd5, 0xc0, 0xa8,
		0x00, 0x07, 0xc0, 0xa8, 0x00, 0x07, 0xc0, 0x00, 0x12, 0xb7, 0x00, 0x2c, 0x00, 0x00,
	};
	struct wire_ip ip = ip4(192, 168, 0, 7, 192, 168, 0, 7);
	uint8_t out[WIRE_IP_UDP_MAX];

	ip.tos = 1;
	ip.id = 1144;
	ip.sport = 49152;
	cr_assert_eq(wire_ip_udp(out, &ip, 36), sizeof(expected));
	cr_assert_arr_eq(out, expected, sizeof(expected));
}

Test(icrc, wire_ip_udp__ip6_bytes)
{
	static const uint8_t expected[] = {
		0x61, 0x2a, 0xbc, 0xde, 0x00, 0x2c, 0x11, 0x07, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0,
		0,    0,    0,	  0,	0,    1,    0xfe, 0x80, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0,
		0,    0,    0,	  2,	0xc0, 0x01, 0x12, 0xb7, 0x00, 0x2c, 0, 0,
	};
	struct wire_ip ip = {.src = {0xfe, 0x80, [15] = 1}, .dst = {0xfe, 0x80, [15] = 2}};
	uint8_t out[WIRE_IP_UDP_MAX];

	ip.tos = 0x12;
	ip.flow_label = 0xfffabcde; /* 20 bits of it */
	ip.ttl = 7;
	ip.sport = 0xc001;
	ip.id = 0xffff; /* there is no such field */
	cr_assert_eq(wire_ip_udp(out, &ip, 36), sizeof(expected));
	cr_assert_arr_eq(out, expected, sizeof(expected));
}

/* The checksum's sum over the header is all ones, whatever the fields are. */
Test(icrc, wire_ip_udp__ip4_checksum)
{
	uint8_t out[WIRE_IP_UDP_MAX];

	rng = 1;
	for (int i = 0; i < 10000; i++) {
		struct wire_ip ip = random_ip(true);
		uint32_t sum = 0;

		wire_ip_udp(out, &ip, rnd() % 4200);
		for (int j = 0; j < 20; j += 2)
			sum += get_be16(out + j);
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		cr_assert_eq(sum, 0xffff);
	}
}

/* A CNP that a ConnectX-4 Lx sent; the ICRC on the wire was 82 fd 00 2a. */
Test(icrc, wire_icrc__vector_cnp)
{
	static const uint8_t cnp[28] = {0x81, 0, 0xff, 0xff, 0x40, 0, 0x01, 0x18};
	struct wire_ip ip = ip4(10, 0, 17, 1, 10, 0, 18, 1);

	ip.tos = 0xc2;
	ip.id = 0x718c;
	cr_assert_eq(wire_icrc(&ip, cnp, sizeof(cnp)), 0x2a00fd82);
}

/* A UC SEND Only with two pad bytes; 78 f3 53 f3 on the wire. */
Test(icrc, wire_icrc__vector_uc_send)
{
	static const uint8_t send[32] = {0x24, 0x60, 0xff, 0xff, 0x00, 0x00, 0x00, 0xd3, 0x00, 0xcf,
					 0x17, 0x10, 'F',  '0',	 0x81, 0x8b, 0xe2, 0x89, '5',  0xd9,
					 0x0e, 0x9a, 0x95, 'P',	 'T',  0x01, 0xbe, 0x88, '^',  'P'};
	struct wire_ip ip = ip4(192, 168, 0, 7, 192, 168, 0, 7);

	ip.tos = 1;
	ip.id = 1144;
	ip.sport = 49152;
	cr_assert_eq(wire_icrc(&ip, send, sizeof(send)), 0xf353f378);
}

Test(icrc, wire_icrc__reference)
{
	uint8_t packet[WIRE_IP_UDP_MAX + PACKET_MAX];

	rng = 2;
	for (int i = 0; i < 4000; i++) {
		struct wire_ip ip = random_ip(i & 1);
		size_t len = i < 2000 ? 12u + i / 2 : 12 + rnd() % (PACKET_MAX - 12);
		size_t h = wire_ip_udp(packet, &ip, len + WIRE_ICRC_LEN);

		rnd_bytes(packet + h, len);
		cr_assert_eq(wire_icrc(&ip, packet + h, len), reference(packet, h + len));
	}
}

/* What routers change, they may change; all else they may not. */
Test(icrc, wire_icrc__invariant)
{
	uint8_t b[64];

	rng = 3;
	rnd_bytes(b, sizeof(b));
	for (int v4 = 0; v4 <= 1; v4++) {
		struct wire_ip ip = random_ip(v4), other = ip;
		uint32_t icrc = wire_icrc(&ip, b, sizeof(b));

		other.tos ^= 0xff;
		other.ttl ^= 0xff;
		other.flow_label ^= 0xfffff;
		b[4] ^= 0xff;
		cr_assert_eq(wire_icrc(&other, b, sizeof(b)), icrc);
		for (unsigned int i = 0; i < sizeof(b); i++) {
			b[i] ^= 1;
			cr_assert_eq(wire_icrc(&ip, b, sizeof(b)) == icrc, i == 4, "byte %u", i);
			b[i] ^= 1;
		}
		other = ip;
		other.sport ^= 1;
		cr_assert_neq(wire_icrc(&other, b, sizeof(b)), icrc);
		other = ip;
		other.src[15] ^= 1;
		cr_assert_neq(wire_icrc(&other, b, sizeof(b)), icrc);
		other = ip;
		other.id ^= 1;
		cr_assert_eq(wire_icrc(&other, b, sizeof(b)) == icrc, !v4);
	}
}

Test(icrc, wire_icrc_solve__every_id)
{
	struct wire_ip ip;
	uint8_t b[76];
	uint32_t zero;

	rng = 4;
	ip = random_ip(true);
	rnd_bytes(b, sizeof(b));
	ip.id = 0;
	zero = wire_icrc(&ip, b, sizeof(b));
	for (uint32_t id = 0; id <= UINT16_MAX; id++) {
		uint16_t solved = ~id;

		ip.id = id;
		cr_assert(wire_icrc_solve(sizeof(b), wire_icrc(&ip, b, sizeof(b)) ^ zero, &solved));
		cr_assert_eq(solved, id);
	}
}

Test(icrc, wire_icrc_solve__every_length)
{
	uint8_t b[4200];

	rng = 5;
	rnd_bytes(b, sizeof(b));
	for (size_t len = 12; len <= sizeof(b); len++) {
		for (int i = 0; i < 4; i++) {
			struct wire_ip ip = random_ip(true);
			uint16_t id = ip.id, solved = ~id;
			uint32_t icrc = wire_icrc(&ip, b, len);

			ip.id = 0;
			cr_assert(wire_icrc_solve(len, icrc ^ wire_icrc(&ip, b, len), &solved));
			cr_assert_eq(solved, id, "length %zu", len);
		}
	}
}

/* The largest datagram there is, and lengths that no datagram has. */
Test(icrc, wire_icrc_solve__longest)
{
	size_t len = UINT16_MAX - 28 - WIRE_ICRC_LEN;
	uint8_t *b = calloc(1, len);
	struct wire_ip ip;
	uint32_t icrc;
	uint16_t id;

	rng = 6;
	ip = random_ip(true);
	ip.id = 0xbeef;
	icrc = wire_icrc(&ip, b, len);
	ip.id = 0;
	cr_assert(wire_icrc_solve(len, icrc ^ wire_icrc(&ip, b, len), &id));
	cr_assert_eq(id, 0xbeef);
	cr_assert_not(wire_icrc_solve(UINT16_MAX, 0, &id));
	cr_assert_not(wire_icrc_solve(SIZE_MAX, 0, &id));
	free(b);
}

/* Of 2^22 random differences 64 are expected to pass, with a deviation of 8; the bounds are five
 * away. */
Test(icrc, wire_icrc_solve__random_difference)
{
	unsigned int passed = 0;
	uint16_t id;

	rng = 7;
	for (unsigned int i = 0; i < 1u << 22; i++)
		passed += wire_icrc_solve(12 + i % 1024, rnd(), &id);
	cr_assert_geq(passed, 24);
	cr_assert_leq(passed, 104);
}

/* Of 2^18 damaged packets 4 are expected to pass. */
Test(icrc, wire_icrc_solve__corruption)
{
	unsigned int passed = 0;
	struct wire_ip ip;
	uint8_t b[128];
	uint32_t icrc;
	uint16_t id;

	rng = 8;
	ip = random_ip(true);
	rnd_bytes(b, sizeof(b));
	icrc = wire_icrc(&ip, b, sizeof(b));
	ip.id = 0;
	for (unsigned int i = 0; i < 1u << 18; i++) {
		unsigned int at = 8 + rnd() % (sizeof(b) - 8);
		uint8_t was = b[at], last = b[127];

		b[at] ^= 1 + rnd() % 255;
		b[127] ^= rnd();
		passed += wire_icrc_solve(sizeof(b), icrc ^ wire_icrc(&ip, b, sizeof(b)), &id);
		b[127] = last;
		b[at] = was;
	}
	cr_assert_leq(passed, 20);
}
