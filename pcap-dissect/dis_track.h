/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets -> conversations with all that tells of them, PSNs and the connection manager: what --flows, --follow
 * and --check begin, feed and end alike.
 */
#ifndef RXE_DIS_TRACK_H
#define RXE_DIS_TRACK_H

#include "pcap-dissect/dis_cm.h"
#include "pcap-dissect/dis_conn.h"

struct dis_track {
	struct dis_conns conns;
	struct dis_cm *cm;
};

/** dis_track_begin() - before the first packet of a capture. Hooks of conns and cm are set behind it.
 *
 * Return: 0, or -ENOMEM, and then there is nothing to end.
 */
int dis_track_begin(struct dis_track *t);

/** dis_track_packet() - take note of a packet; what it is goes to @ev. */
void dis_track_packet(struct dis_track *t, const struct dis_packet *p, struct dis_event *ev);

/** dis_track_end() - give all memory back. */
void dis_track_end(struct dis_track *t);

#endif
