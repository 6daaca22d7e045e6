/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Text output without stdio: flushing, and the number formats.
 *
 * Decimal goes two digits at a time from a table; an IPv4 address is four look-ups. IPv6 text has rules
 * (RFC 5952) that cost more than the rest of a line, so addresses lately written are kept.
 *
 * Names of files are bytes without an encoding. They go to terminals and into JSON, which is UTF-8; so they are
 * taken apart here into characters that may be shown and bytes that may not.
 */
#include "pcap-dissect/dis_out.h"

#include "base/bytes.h"
#include "wire/icrc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
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

/*
 * Bytes of the UTF-8 character at @s, 0 for a byte that is part of none: RFC 3629, section 4, so neither
 * surrogates nor a longer form than needed.
 */
static unsigned int utf8_len(const char *s)
{
	const uint8_t *b = (const uint8_t *)s;
	unsigned int n = b[0] < 0x80 ? 1 : b[0] < 0xc2 ? 0 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;

	if (b[0] > 0xf4)
		return 0;
	/* The string's end is none of these. */
	for (unsigned int i = 1; i < n; i++)
		if ((b[i] & 0xc0) != 0x80)
			return 0;
	if ((b[0] == 0xe0 && b[1] < 0xa0) || (b[0] == 0xed && b[1] >= 0xa0) ||
	    (b[0] == 0xf0 && b[1] < 0x90) || (b[0] == 0xf4 && b[1] >= 0x90))
		return 0;
	return n;
}

/* The controls of ASCII, and those behind it that some terminals obey: U+0080 to U+009f. */
static bool is_control(const char *s, unsigned int len)
{
	const uint8_t *b = (const uint8_t *)s;

	return len == 2 ? b[0] == 0xc2 && b[1] < 0xa0 : len == 1 && (b[0] < 0x20 || b[0] == 0x7f);
}

/* How many characters at @s, of those that go into one piece, need no second look: nearly always all. */
static size_t plain_len(const char *s)
{
	size_t n = 0;

	while (n < DIS_OUT_PIECE / 2 && s[n] >= 0x20 && s[n] < 0x7f && s[n] != '"' && s[n] != '\\')
		n++;
	return n;
}

static const char *out_plain(struct dis_out *o, const char *s)
{
	size_t n = plain_len(s);

	dis_out_room(o);
	out_mem(o, s, n);
	return s + n;
}

void out_name(struct dis_out *o, const char *s)
{
	while (*(s = out_plain(o, s))) {
		unsigned int n = utf8_len(s);

		if (n && !is_control(s, n)) {
			out_mem(o, s, n);
			s += n;
			continue;
		}
		/* Of a control of two bytes both. */
		for (unsigned int i = 0; i < (n ? n : 1); i++) {
			out_str(o, "\\x");
			out_byte(o, *s++);
		}
	}
}

void out_json_name(struct dis_out *o, const char *s)
{
	out_char(o, '"');
	while (*(s = out_plain(o, s))) {
		unsigned int n = utf8_len(s);

		if (!n) {
			out_str(o, "\\ufffd");
			n = 1;
		} else if (is_control(s, n)) {
			out_str(o, "\\u00");
			out_byte(o, s[n - 1]);
		} else {
			if (*s == '"' || *s == '\\')
				out_char(o, '\\');
			out_mem(o, s, n);
		}
		s += n;
	}
	out_char(o, '"');
}

void dis_warn_between(const char *before, const char *behind, const char *fmt, ...)
{
	static struct dis_out o;
	char text[8192];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	dis_out_init(&o, STDERR_FILENO);
	out_str(&o, before);
	out_name(&o, text);
	out_str(&o, behind);
	dis_out_flush(&o);
}
