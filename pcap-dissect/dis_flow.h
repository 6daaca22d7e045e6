/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What --flows, --follow and --check do with packets: begin before a file, a consumer, end behind it.
 *
 * Each has its state in its own file, for one capture at a time. Single thread.
 */
#ifndef RXE_DIS_FLOW_H
#define RXE_DIS_FLOW_H

#include "pcap-dissect/dis.h"

/* --flows: dis_flow.c. @json: objects, not text. Begin returns 0 or -ENOMEM. */
int dis_flow_begin(bool json);
void dis_flow_packet(struct dis_out *o, struct dis_style *style, const struct dis_packet *p);
void dis_flow_end(struct dis_out *o);

/* --follow QPN: dis_follow.c. A file is read twice: first to learn, then to show what is picked. */
int dis_follow_begin(uint32_t qpn);
void dis_follow_learn(struct dis_out *o, struct dis_style *style, const struct dis_packet *p);
/** dis_follow_learnt() - between the two. Return: the number of halves that belong to it. */
uint32_t dis_follow_learnt(void);
/** dis_follow_pick() - whether a packet belongs to the conversation. */
bool dis_follow_pick(const struct dis_packet *p);
void dis_follow_end(void);

/* --check: dis_check.c. End prints a summary, when @whole or when there were packets. It returns how much
 * was reported, notes not counted. */
int dis_check_begin(const char *file);
void dis_check_packet(struct dis_out *o, struct dis_style *style, const struct dis_packet *p);
uint64_t dis_check_end(struct dis_out *o, bool whole);

#endif
