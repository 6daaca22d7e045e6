/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Text output without stdio: flushing, and the number formats.
 *
 * Decimal goes two digits at a time from a table; an IPv4 address is four look-ups. IPv6 text has rules
 * (RFC 5952) that cost more than the rest of a line, so addresses lately written are kept.
 */
#include "pcap-dissect/dis_out.h"

#include "base/bytes.h"
#include "wire/icrc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233"
			    "34353637383940414243444546474849505152535455565758596061626364656667"
			    "6869707172737475767778798081828384858687888990919293949596979899";
static const char nibbles[] = "0123456789abcdef";

void dis_out_init(struct dis_out *o, int fd)
{
	o->p = o->buf;
	o->fd = fd;
	o->error = 0;
}

void dis_out_flush(struct dis_out *o)
{
	const char *from = o->buf;

	while (o->fd >= 0 && !o->error && from < o->p) {
		ssize_t n = write(o->fd, from, o->p - from);

		if (n >= 0)
			from += n;
		else if (errno != EINTR)
			o->error = errno;
	}
	o->p = o->buf;
}

void out_dec_width(struct dis_out *o, uint64_t v, unsigned int digits)
{
	char *end = o->p + digits;

	for (char *p = end; p > o->p; v /= 10)
		*--p = '0' + v % 10;
	o->p = end;
}

void out_dec(struct dis_out *o, uint64_t v)
{
	char text[20];
	char *p = text + sizeof(text);

	while (v >= 100) {
		p -= 2;
		memcpy(p, pairs + v % 100 * 2, 2);
		v /= 100;
	}
	if (v >= 10) {
		p -= 2;
		memcpy(p, pairs + v * 2, 2);
	} else {
		*--p = '0' + v;
	}
	out_mem(o, p, text + sizeof(text) - p);
}

void out_hex(struct dis_out *o, uint64_t v, unsigned int digits)
{
	char *end = o->p + 2 + digits;

	o->p[0] = '0';
	o->p[1] = 'x';
	for (char *p = end; p > o->p + 2; v >>= 4)
		*--p = nibbles[v & 15];
	o->p = end;
}

static void out_byte(struct dis_out *o, uint8_t b)
{
	*o->p++ = nibbles[b >> 4];
	*o->p++ = nibbles[b & 15];
}

void out_bytes(struct dis_out *o, const uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out_byte(o, b[i]);
}

void out_mac(struct dis_out *o, const uint8_t mac[6])
{
	for (unsigned int i = 0; i < 6; i++) {
		if (i)
			out_char(o, ':');
		out_byte(o, mac[i]);
	}
}

void out_ip4(struct dis_out *o, const uint8_t ip[4])
{
	for (unsigned int i = 0; i < 4; i++) {
		if (i)
			out_char(o, '.');
		out_dec(o, ip[i]);
	}
}

static void out_ip6(struct dis_out *o, const uint8_t ip[16])
{
	static __thread struct {
		uint8_t ip[16];
		uint8_t len; /* of the text; 0: the slot is empty */
		char text[INET6_ADDRSTRLEN];
	} cache[64], *slot;
	uint64_t hash = (get_be64(ip) ^ get_be64(ip + 8)) * UINT64_C(0x9e3779b97f4a7c15);

	slot = &cache[hash >> 58];
	if (!slot->len || memcmp(slot->ip, ip, 16)) {
		memcpy(slot->ip, ip, 16);
		inet_ntop(AF_INET6, ip, slot->text, sizeof(slot->text));
		slot->len = strlen(slot->text);
	}
	out_mem(o, slot->text, slot->len);
}

void out_ip(struct dis_out *o, const uint8_t ip[16])
{
	if (wire_ip_is_v4(ip))
		out_ip4(o, ip + 12);
	else
		out_ip6(o, ip);
}

void out_ip_last(struct dis_out *o, const uint8_t ip[16])
{
	static const uint8_t zeros[12];

	/* Of IPv6, "::1" has so many zeros too. */
	if (!memcmp(ip, zeros, 12) && ip[12])
		out_ip4(o, ip + 12);
	else
		out_ip(o, ip);
}
