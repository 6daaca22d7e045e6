/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One captured packet, decoded: what dis_decode() fills in and every consumer reads.
 *
 *      file or interface -> struct dis_packet -> dis_line(), dis_tree(), dis_json(), ...
 *      (rxe-dissect.c)      (dis_decode.c)       consumers: look, never change
 *
 * A packet may end anywhere: the capture was cut (snap length), the sender was wrong, or bytes were
 * damaged on the way. So there is no "cannot decode". The layer says how far the packet is what it
 * should be, notes name what is wrong with it, and have says how many bytes of the transport packet
 * are there to be looked at.
 *
 * Numbers are in host order. Pointers go into the captured frame and live as long as it does: until
 * the next packet is read. No memory is allocated for a packet.
 */
#ifndef RXE_DIS_H
#define RXE_DIS_H

#include "pcap-dissect/dis_fields.h"
#include "pcap-dissect/dis_out.h"
#include "wire/hdr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far a packet is understood; each layer implies those before it. */
enum dis_layer {
	DIS_LAYER_LINK, /* not IP, or cut before the addresses */
	DIS_LAYER_IP, /* addresses are known; not UDP, a later fragment, or cut in the UDP header */
	DIS_LAYER_UDP,	/* ports are known; not to port 4791 */
	DIS_LAYER_ROCE, /* a transport packet, perhaps a damaged one */
};

/* What is wrong with a packet: bits of struct dis_packet.notes. */
enum dis_note {
#define NOTE(token, text, why) DIS_NOTE_BIT_##token,
#include "pcap-dissect/notes.def"
#undef NOTE
	DIS_NOTE_COUNT
};
#define DIS_NOTE(token) (1u << DIS_NOTE_BIT_##token)

enum dis_icrc {
	DIS_ICRC_BAD = 0, /* the numbers of Wireshark's checksum fields */
	DIS_ICRC_GOOD = 1,
	DIS_ICRC_UNVERIFIED = 2, /* not all bytes are there: snapped, or a fragment */
};

struct dis_packet {
	/* The record: set by who reads the capture. */
	const char *file;     /* its name, or NULL when there is only one */
	const uint8_t *frame; /* caplen bytes */
	uint64_t number;      /* in its file, from 1 */
	int64_t ts;	      /* nanoseconds since the epoch, not negative */
	uint32_t len;	      /* bytes that were on the wire */
	uint32_t caplen;      /* of these, bytes that were captured */
	int link;	      /* what the frame begins with, a DLT_ number of libpcap */

	/* All that follows is set by dis_decode(). */
	uint32_t notes; /* DIS_NOTE() bits */
	uint8_t layer;	/* enum dis_layer */
	uint8_t vlans;	/* number of VLAN tags */

	/* IP */
	uint8_t ip_version; /* 4, 6, or 0 when there is no IP */
	uint8_t proto;	    /* what the IP packet carries, behind IPv6 extension headers */
	uint16_t ethertype;
	const uint8_t *ip;   /* its first byte; NULL without IP */
	uint32_t ip_hdr_len; /* with options or extension headers */
	uint32_t ip_len;     /* of the whole IP packet, as its header says */
	uint32_t frag_off;   /* bytes before this fragment; see the note FRAGMENT */
	uint32_t frag_id;
	uint8_t src[16]; /* IPv4 as ::ffff:a.b.c.d; from DIS_LAYER_IP on */
	uint8_t dst[16];

	/* UDP */
	const uint8_t *udp; /* its header */
	uint16_t sport;
	uint16_t dport;

	/* The transport packet, from DIS_LAYER_ROCE on. */
	const uint8_t *bth;
	uint32_t bth_len;   /* its bytes without the ICRC, as UDP says */
	uint32_t have;	    /* of these, bytes that were captured */
	uint8_t icrc;	    /* enum dis_icrc */
	uint32_t icrc_want; /* what it should be; set for GOOD and BAD, its first byte on top */
	uint32_t icrc_got;

	/*
	 * Its fields. Those of a header are valid when dis_has_hdr() says so; the BTH's from have >= 12
	 * on. op is NULL for an opcode that no transport has, and then there is nothing behind the BTH.
	 * payload_len is what the packet had on the wire, dis_payload_have() what there is of it.
	 */
	struct wire_pkt pkt;

	/* A management datagram on QP 1; NULL without one. */
	const uint8_t *mad;
	uint32_t mad_have;    /* captured bytes of it */
	enum dis_hdr cm_hdr;  /* message of the connection manager, DIS_H_CM_REQ...; 0 = none */
	const uint8_t *ip_cm; /* RDMA IP CM header in its private data, NULL without one */
};

/** dis_init() - build the tables of words. Once, before all else here. */
void dis_init(void);

/** dis_decode() - fill in @p, whose record is set. Any thread. */
void dis_decode(struct dis_packet *p);

/** dis_icrc() - the ICRC that the packet should have, its first byte on top.
 *
 * Over the very bytes that were captured, whatever their sender meant by them. Needs a whole packet: IP header, UDP header and bth_len (at least 12) bytes.
 */
uint32_t dis_icrc(const struct dis_packet *p);

/** dis_has_hdr() - whether the opcode has the extension header, all of it captured. */
bool dis_has_hdr(const struct dis_packet *p, enum wire_header h);

/** dis_payload_have() - how many bytes at pkt.payload were captured. */
static inline uint32_t dis_payload_have(const struct dis_packet *p)
{
	uint32_t hdr_len = p->pkt.op ? p->pkt.op->hdr_len : WIRE_BTH_LEN;
	uint32_t have = p->have > hdr_len ? p->have - hdr_len : 0;

	return have < p->pkt.payload_len ? have : p->pkt.payload_len;
}

/** dis_cm_get() - a field of the CM message, such as DIS_F_CM_REQ_LOCAL_QPN, of at most 64 bits.
 *
 * Return: false when the message is another one or the field was not captured.
 */
bool dis_cm_get(const struct dis_packet *p, enum dis_field field, uint64_t *value);

/* How consumers print. */
enum dis_clock {
	DIS_CLOCK_TIME, /* local time of day */
	DIS_CLOCK_NONE,
	DIS_CLOCK_EPOCH, /* seconds since the epoch */
	DIS_CLOCK_DELTA, /* since the packet that was printed before */
	DIS_CLOCK_DATE,	 /* local date and time of day */
};

struct dis_style {
	enum dis_clock clock;
	bool nano;    /* nine digits of a second, not six */
	bool number;  /* the packet's number first */
	bool link;    /* lines: the link-level header behind the time */
	int64_t last; /* ts of the packet before; -1 before the first */
};

/*
 * A consumer prints one packet. What it writes goes through dis_out and never needs flushing by it.
 */
void dis_line(struct dis_out *o, struct dis_style *style, const struct dis_packet *p);
void dis_tree(struct dis_out *o, struct dis_style *style, const struct dis_packet *p);
void dis_json(struct dis_out *o, struct dis_style *style, const struct dis_packet *p);

/** dis_line_link() - the link-level header of a packet, a part of its line. */
void dis_line_link(struct dis_out *o, const struct dis_packet *p);

/* dis_time.c */
void dis_time(struct dis_out *o, struct dis_style *style, int64_t ts);

/** dis_time_value() - a time by itself, with nanoseconds, in the form of @clock. */
void dis_time_value(struct dis_out *o, enum dis_clock clock, int64_t ts);

/* Words: dis_words.c. All are constant strings, or made in @buf. */
#define DIS_WORDS_MAX 64

/** dis_opcode_words() - "XRC SEND Only", for any byte. */
const char *dis_opcode_words(uint8_t code);

/** dis_syndrome_words() - "ack", "ack credits 8", "rnr-nak 0.64 ms", "nak remote-access-error". */
const char *dis_syndrome_words(uint8_t syndrome);

/** dis_note_words() - "snapped", for one enum dis_note. */
const char *dis_note_words(enum dis_note note);

/** dis_value_words() - what a value of the set means, or NULL. */
const char *dis_value_words(enum dis_values set, uint64_t value, char buf[DIS_WORDS_MAX]);

#endif
