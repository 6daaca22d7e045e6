/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * --follow QPN: the packets of one conversation, both directions.
 *
 * Which half answers which is often known only packets later, so a file is read twice: first to learn, then
 * to show. What is shown are the packets to the QP, those to the QP that it is connected with, and of UD
 * also those that it sent. When hosts use the same number, the conversations of all are shown.
 */
#include "pcap-dissect/dis_flow.h"
#include "pcap-dissect/dis_track.h"

#define HALVES_MAX 256

static struct {
	struct dis_track track;
	uint32_t qpn;
	uint32_t n;
	struct {
		uint8_t src[16], dst[16];
		uint32_t qpn;
	} half[HALVES_MAX];
} follow;

static bool known(const uint8_t src[16], const uint8_t dst[16], uint32_t qpn)
{
	for (uint32_t i = 0; i < follow.n; i++)
		if (follow.half[i].qpn == qpn && !memcmp(follow.half[i].src, src, 16) &&
		    !memcmp(follow.half[i].dst, dst, 16))
			return true;
	return false;
}

static void keep(const struct dis_half *h)
{
	if (!h || follow.n == HALVES_MAX || known(h->src, h->dst, h->qpn))
		return;
	memcpy(follow.half[follow.n].src, h->src, 16);
	memcpy(follow.half[follow.n].dst, h->dst, 16);
	follow.half[follow.n++].qpn = h->qpn;
}

static void keep_with_peer(struct dis_conns *c, struct dis_half *h)
{
	if (h->qpn == follow.qpn || (h->peer && h->peer->qpn == follow.qpn)) {
		keep(h);
		keep(h->peer);
	}
}

int dis_follow_begin(uint32_t qpn)
{
	int ret = dis_track_begin(&follow.track);

	follow.qpn = qpn;
	follow.n = 0;
	follow.track.conns.evict = follow.track.conns.renew = keep_with_peer;
	return ret;
}

void dis_follow_learn(struct dis_out *o, struct dis_style *style, const struct dis_packet *p)
{
	struct dis_event ev;

	dis_track_packet(&follow.track, p, &ev);
}

uint32_t dis_follow_learnt(void)
{
	for (struct dis_half *h = follow.track.conns.oldest; h; h = h->newer)
		keep_with_peer(&follow.track.conns, h);
	return follow.n;
}

bool dis_follow_pick(const struct dis_packet *p)
{
	if (p->layer != DIS_LAYER_ROCE || p->have < WIRE_BTH_LEN)
		return false;
	if (dis_has_hdr(p, WIRE_H_DETH) && p->pkt.src_qpn == follow.qpn)
		return true;
	return known(p->src, p->dst, p->pkt.dest_qpn);
}

void dis_follow_end(void)
{
	dis_track_end(&follow.track);
}
