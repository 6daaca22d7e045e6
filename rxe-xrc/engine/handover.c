/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packets that arrived in one lane and belong to another. Theory in handover.h. */
#include "engine/handover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int handover_init(struct handover *h)
{
	memset(h, 0, sizeof(*h));
	/* A megabyte that is not touched before it is used. */
	h->packets = malloc(HANDOVER_PACKETS * sizeof(*h->packets));
	return h->packets ? 0 : -ENOMEM;
}

void handover_fini(struct handover *h)
{
	free(h->packets);
}

static struct handover_packet *get_packet(struct handover *h)
{
	struct pile_node *n;

	if (!h->free)
		h->free = pile_take(&h->back);
	if (!h->free)
		return h->used < HANDOVER_PACKETS ? &h->packets[h->used++] : NULL;
	n = h->free;
	h->free = n->next;
	return handover_packet_of(n);
}

bool handover_give(struct handover *from, struct handover *to, const struct link_rx *rx)
{
	struct handover_packet *p;

	if (rx->len > HANDOVER_MAX_LEN)
		return false;
	p = get_packet(from);
	if (!p)
		return false;
	p->home = from;
	p->ip = rx->ip;
	p->len = rx->len;
	memcpy(p->data, rx->data, rx->len);
	pile_push(&to->in, &p->node);
	return true;
}
