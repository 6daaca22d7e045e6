/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where packets come from: capture files, or an interface.
 */
#ifndef RXE_DIS_READ_H
#define RXE_DIS_READ_H

#include "pcap-dissect/dis.h"

#include <stdio.h>

/* What is to be done with packets; the same for all files of a run. */
struct dis_job {
	/* Shows one packet, or takes note of it. */
	void (*packet)(struct dis_out *o, struct dis_style *style, const struct dis_packet *p);
	/* Which packets packet() is for, or NULL: all. */
	bool (*pick)(const struct dis_packet *p);
	struct dis_out *out;
	struct dis_style style;
	const char *filter; /* libpcap's filter language, or NULL */
	bool all;	    /* show also what is not RoCEv2 */
	bool tell_file;	    /* fill in dis_packet.file */
	bool quiet;	    /* no complaint about a file: it is read a second time */
	bool progress;	    /* tell how far a large file is, on stderr */
	bool no_promisc;  /* an interface: what is not for this host only when it comes by itself */
	uint32_t snaplen; /* an interface: bytes to capture of a frame; 0: all */
	uint64_t limit;	  /* packets to show, then stop; 0: no limit */

	/* What was done so far. */
	uint64_t shown;
	uint64_t other; /* packets that are not RoCEv2 and were not shown */
	bool stop;	/* limit reached, output broken, or a signal */
};

/** dis_read_file() - all packets of a capture file; "-" is standard input.
 *
 * What the file holds before it turns out to be damaged is shown.
 *
 * Return: 0, or -EINVAL after a message with the file's name and the reason on stderr.
 */
int dis_read_file(struct dis_job *job, const char *name);

/** dis_read_stream() - the same for an open file, which it closes. @size: of the file, 0 if unknown. */
int dis_read_stream(struct dis_job *job, const char *name, FILE *file, uint64_t size);

/** dis_read_live() - packets of an interface, until the limit or a signal (SIGINT, SIGTERM). */
int dis_read_live(struct dis_job *job, const char *interface);

#endif
