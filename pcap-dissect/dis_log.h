/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writing to the log of a half's requests; reading it is in dis_conn.h.
 */
#ifndef RXE_DIS_LOG_H
#define RXE_DIS_LOG_H

#include "pcap-dissect/dis_conn.h"

/** dis_log_append() - an entry at the end; entries move, so that pointers into the log end here. */
struct dis_req *dis_log_append(struct dis_log *l, uint32_t psn, uint32_t span);

/** dis_log_fill() - an entry in place of a hole, or of a part of it. NULL when it just left the log. */
struct dis_req *dis_log_fill(struct dis_log *l, uint32_t psn, uint32_t span);

/** dis_log_delay_add() - a request was answered after @ns. */
void dis_log_delay_add(struct dis_log *l, int64_t ns);

#endif
