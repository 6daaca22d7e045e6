/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What messages of the connection manager tell: which QPs are connected, and whether they are in order.
 */
#ifndef RXE_DIS_CM_H
#define RXE_DIS_CM_H

#include "pcap-dissect/dis_check.h"

#define DIS_CM_CONNS   1024 /* of which the oldest is forgotten */
#define DIS_CM_SOURCES 256
#define DIS_CM_DOUBTS  64

struct dis_cm_conn {
	uint8_t a[16], b[16];	 /* addresses of the active and the passive side */
	uint32_t id_a, id_b;	 /* communication ids */
	uint32_t qpn_a, qpn_b;	 /* 0: not known */
	uint32_t psn_a;		 /* where a expects to receive */
	uint64_t req, rep, dreq; /* packet numbers, 0: not seen */
	uint32_t mtu;
	bool xrc;
};

/* A GSI: its PSNs grow by one a message, so that one knows when the capture lacks none. */
struct dis_cm_source {
	uint8_t addr[16];
	uint32_t psn;
	uint64_t since; /* packet number from which on none is missing */
	int64_t since_ts;
	bool used;
};

/* A message that should have come from @addr was not seen; it stays open until the next one from there. */
struct dis_cm_doubt {
	uint8_t addr[16];
	uint64_t number;
	enum dis_rule rule;
	uint32_t id;
	bool open;
};

struct dis_cm {
	struct dis_cm_conn conn[DIS_CM_CONNS];
	struct dis_cm_source source[DIS_CM_SOURCES];
	struct dis_cm_doubt doubt[DIS_CM_DOUBTS];
	uint32_t orphan[DIS_CM_DOUBTS];	       /* ids in REPs whose REQ was not seen before */
	uint32_t n_conns, n_doubts, n_orphans; /* that there ever were */
	void (*report)(enum dis_rule rule, uint64_t number, const char *fmt, ...)
		PRINTF_LIKE(3, 4); /* NULL: only pair */
};

/** dis_cm_packet() - take note of a packet if it is a CM message; pairs halves of @conns. */
void dis_cm_packet(struct dis_cm *cm, struct dis_conns *conns, const struct dis_packet *p);

#endif
