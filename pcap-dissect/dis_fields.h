/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fields of fields.def and cm.def as enums and a table, and their values in a packet.
 *
 * A packet is a row of sections: one for each header, in the order of the bytes. A section knows its
 * header, a header its fields, a field where it lies. Whoever prints whole packets walks the three.
 */
#ifndef RXE_DIS_FIELDS_H
#define RXE_DIS_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

struct dis_out;
struct dis_packet;

enum dis_hdr {
	DIS_H_NONE,
#define H(token, title) DIS_H_##token,
#include "pcap-dissect/fields.def"
#include "pcap-dissect/cm.def"
#undef H
	DIS_H_COUNT
};

enum dis_field {
#define F(hdr, token, ...) DIS_F_##hdr##_##token,
#include "pcap-dissect/fields.def"
#include "pcap-dissect/cm.def"
#undef F
	DIS_F_COUNT
};

/* How a value is written. */
enum dis_base {
	DIS_DEC,
	DIS_HEX,     /* with all digits of the field's width */
	DIS_BOOL,    /* one bit */
	DIS_MAC,     /* six bytes */
	DIS_IP4,     /* four bytes */
	DIS_IP,	     /* sixteen bytes, IPv4 as ::ffff:a.b.c.d */
	DIS_IP_LAST, /* sixteen bytes, IPv4 in the last four behind zeros */
	DIS_BYTES,   /* any number of bytes; width 0: to the end of the section */
	DIS_DATA,    /* as BYTES, but a payload: JSON leaves it out */
	DIS_CALC,    /* lies nowhere: dis_calc() tells */
	DIS_TIME,    /* calculated: nanoseconds since the epoch */
};

/* Sets of values with words: V() rows of values.def, and those that a function of dis_words.c makes. */
enum dis_values {
	DIS_V_NONE,
	DIS_V_OPCODE,
	DIS_V_SYNDROME,
	DIS_V_TIMEOUT, /* 4.096 us * 2^value */
	DIS_V_SERVICE, /* a service id of the RDMA IP CM service */
#define VALUES(set) DIS_V_##set,
#include "pcap-dissect/values.def"
#undef VALUES
	DIS_V_COUNT
};

struct dis_field_info {
	const char *name;  /* "roce.bth.psn" */
	const char *label; /* "Packet sequence number" */
	const char *brief; /* its word on a one-line print of a CM message, or NULL */
	uint8_t hdr;	   /* enum dis_hdr */
	uint8_t base;	   /* enum dis_base */
	uint8_t values;	   /* enum dis_values */
	uint8_t bit;	   /* in that byte, 0 is the most significant */
	uint16_t byte;	   /* offset in the header */
	uint16_t bits;	   /* width */
};

struct dis_hdr_info {
	const char *title;
	uint16_t first; /* enum dis_field: its fields are first, ..., first + count - 1 */
	uint16_t count;
};

extern const struct dis_field_info dis_field_table[DIS_F_COUNT];

/* The extension headers of the transport, in the order in which they follow each other. */
struct dis_extension {
	uint16_t header; /* enum wire_header, as in struct wire_opcode.headers */
	uint8_t hdr;	 /* enum dis_hdr */
	uint8_t len;	 /* bytes */
};

#define DIS_EXTENSIONS 9
extern const struct dis_extension dis_extensions[DIS_EXTENSIONS];

/** dis_hdr_info() - title and fields of a header. */
const struct dis_hdr_info *dis_hdr_info(enum dis_hdr hdr);

/* A header in a packet. */
struct dis_section {
	enum dis_hdr hdr;
	const uint8_t *b;
	uint32_t len;  /* bytes that it has, or should have */
	uint32_t have; /* bytes at @b that were captured */
};

#define DIS_SECTIONS_MAX 48

/** dis_sections() - the headers of a packet in order; returns their number. */
unsigned int dis_sections(const struct dis_packet *p, struct dis_section s[DIS_SECTIONS_MAX]);

/** dis_field_bytes() - bytes that a field spans in a section; at least one. */
uint32_t dis_field_bytes(const struct dis_field_info *f, const struct dis_section *s);

/** dis_field_there() - whether all of the field was captured. */
bool dis_field_there(const struct dis_field_info *f, const struct dis_section *s);

/** dis_field_address() - write a field that is there if it is an address, which looks the same in every output.
 *
 * Return: false when it is none, and nothing was written.
 */
bool dis_field_address(struct dis_out *o, const struct dis_field_info *f,
		       const struct dis_section *s);

/** dis_field_value() - the number in a field of at most 64 bits that is there. */
uint64_t dis_field_value(const struct dis_packet *p, enum dis_field field,
			 const struct dis_section *s);

#endif
