/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A tap that writes a capture: Ethernet link type, one packet a record, readable by Wireshark.
 *
 * MAC addresses are made of the IP addresses (02:00 and the last four bytes). Timestamps are wall clock,
 * with nanosecond resolution.
 */
#ifndef RXE_NET_PCAP_H
#define RXE_NET_PCAP_H

#include "net/link.h"

/** pcap_tap_create() - opens @path for writing. 0 or -errno. Each record is flushed by pcap_tap_flush(). */
int pcap_tap_create(const char *path, struct link_tap **out);
/** pcap_tap_create_clocked() - the same with timestamps from @now (ns), for virtual time. */
int pcap_tap_create_clocked(const char *path, const uint64_t *now, struct link_tap **out);
void pcap_tap_flush(struct link_tap *tap);
void pcap_tap_destroy(struct link_tap *tap);

#endif
