/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Conversations and the connection manager's part in them, fed together.
 *
 * The CM comes first: a REP pairs two halves before a packet to one of them is looked at.
 */
#include "pcap-dissect/dis_track.h"

#include <errno.h>
#include <stdlib.h>

int dis_track_begin(struct dis_track *t)
{
	int ret;

	t->cm = calloc(1, sizeof(*t->cm));
	if (!t->cm)
		return -ENOMEM;
	ret = dis_conns_init(&t->conns);
	if (ret)
		free(t->cm);
	return ret;
}

void dis_track_packet(struct dis_track *t, const struct dis_packet *p, struct dis_event *ev)
{
	dis_cm_packet(t->cm, &t->conns, p);
	dis_conns_packet(&t->conns, p, ev);
}

void dis_track_end(struct dis_track *t)
{
	dis_conns_exit(&t->conns);
	free(t->cm);
}
