/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Text output without stdio: a buffer, a few number formats, one write() when it is full.
 *
 * A line of a packet costs less than reading the packet, because nothing here parses a format or takes
 * a lock. dis_out_room() is called once for a piece of at most DIS_OUT_PIECE bytes; what is appended
 * after it needs no check. One thread.
 */
#ifndef RXE_DIS_OUT_H
#define RXE_DIS_OUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/macros.h"

#define DIS_OUT_PIECE 4096

struct dis_out {
	char *p; /* where the next byte goes */
	int fd;	 /* -1: everything is thrown away */
	int error; /* errno of the first write that failed, 0 if none did; nothing is written after it */
	char buf[1 << 16];
};

/** dis_out_init() - an empty buffer before @fd. */
void dis_out_init(struct dis_out *o, int fd);

/** dis_out_flush() - write all of it. A failure is kept in error. */
void dis_out_flush(struct dis_out *o);

/** dis_out_room() - make sure that DIS_OUT_PIECE bytes can be appended. */
static inline void dis_out_room(struct dis_out *o)
{
	if (o->buf + sizeof(o->buf) - o->p < DIS_OUT_PIECE)
		dis_out_flush(o);
}

static inline void out_char(struct dis_out *o, char c)
{
	*o->p++ = c;
}

static inline void out_mem(struct dis_out *o, const char *s, size_t n)
{
	memcpy(o->p, s, n);
	o->p += n;
}

/** out_str() - a string; of a literal the length is a constant. */
static inline __attribute__((always_inline)) void out_str(struct dis_out *o, const char *s)
{
	out_mem(o, s, strlen(s));
}

/** out_dec() - decimal. */
void out_dec(struct dis_out *o, uint64_t v);

/** out_dec_width() - decimal with leading zeros, exactly @digits of it. */
void out_dec_width(struct dis_out *o, uint64_t v, unsigned int digits);

/** out_hex() - "0x" and exactly @digits hexadecimal digits. */
void out_hex(struct dis_out *o, uint64_t v, unsigned int digits);

/** out_bytes() - each of @n bytes as two digits; at most 1024. */
void out_bytes(struct dis_out *o, const uint8_t *b, size_t n);

/** out_ip() - an address of 16 bytes, IPv4-mapped as a.b.c.d, IPv6 as RFC 5952 asks. */
void out_ip(struct dis_out *o, const uint8_t ip[16]);

/** out_ip_last() - as the IP CM header has it: IPv4 in the last four bytes behind zeros. */
void out_ip_last(struct dis_out *o, const uint8_t ip[16]);

/** out_ip4() - an address of 4 bytes. */
void out_ip4(struct dis_out *o, const uint8_t ip[4]);

/** out_mac() - six bytes with colons. */
void out_mac(struct dis_out *o, const uint8_t mac[6]);

/** out_name() - a text that others chose, the name of a file for instance, of any length; makes room itself.
 *
 * Control characters and what is not UTF-8 are shown as "\\x1b", so that no name can command a terminal.
 */
void out_name(struct dis_out *o, const char *s);

/** out_json_name() - the same as a JSON string in quotes: control characters as "\\u001b", a byte that is not UTF-8
 * as "\\ufffd".
 */
void out_json_name(struct dis_out *o, const char *s);

/** dis_warn() - a line "rxe-dissect: ..." on standard error, as out_name() shows it. */
#define dis_warn(...) dis_warn_between("rxe-dissect: ", "\n", __VA_ARGS__)

/** dis_warn_between() - the same between two texts that are written as they are. */
void dis_warn_between(const char *before, const char *behind, const char *fmt, ...)
	PRINTF_LIKE(3, 4);

#endif
