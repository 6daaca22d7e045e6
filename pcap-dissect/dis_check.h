/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rules of checks.def, and the files that look after them.
 *
 * The principle: a capture does not have all packets. It may begin in the middle, lose some, see one side
 * only; and what it has may still be lost, doubled or reordered behind it. Nothing is reported that packets
 * which it lacks, or the network, could explain. So a rule about several packets holds
 *
 *   - for packets that are neighbours by their PSNs, whatever the order in which they came; or
 *   - when a counter proves that nothing is missing: the MSN, or the GSI's own PSNs for CM messages
 *     (timestamps that go back prove that the capture changes the order, and spoil this); or
 *   - when the same thing happened so often that chance is no explanation (the rule's text says so).
 *
 * It holds within one connection. QP numbers are used again, mostly without a word of the CM: dis_conn.h says
 * what is taken as a new connection. An answer that breaks a rule beside the requests of its pair, but may be to
 * a request of another half, is held against nobody (dis_conns_other()).
 */
#ifndef RXE_DIS_CHECK_H
#define RXE_DIS_CHECK_H

#include "base/macros.h"
#include "pcap-dissect/dis_conn.h"

enum dis_rule {
#define RULE(token, severity, text, clause) DIS_RULE_##token,
#include "pcap-dissect/checks.def"
#undef RULE
	DIS_RULE_COUNT
};

/** dis_report() - a rule was broken by packet @number of the file; @fmt: details, or "". */
void dis_report(enum dis_rule rule, uint64_t number, const char *fmt, ...) PRINTF_LIKE(3, 4);

/** dis_check_hdr() - what one packet shows: dis_check_hdr.c. */
void dis_check_hdr(const struct dis_packet *p);

/** dis_check_req() - a request, and those before it: dis_check_req.c. */
void dis_check_req(const struct dis_event *ev);

/** dis_check_resp() - an answer, and the requests: dis_check_resp.c. */
void dis_check_resp(const struct dis_event *ev);

/** dis_check_susp() - before a request enters the books: was it acknowledged already? */
void dis_check_susp(const struct dis_event *ev);

#endif
