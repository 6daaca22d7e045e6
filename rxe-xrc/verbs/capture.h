/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The capture of this process: one file for all its devices. */
#ifndef RXE_VERBS_CAPTURE_H
#define RXE_VERBS_CAPTURE_H

#include "net/link.h"

/** capture_tap() - the tap that every link gets; NULL without --pcap, or when the file cannot be had. */
struct link_tap *capture_tap(void);

/** capture_flush() - what is buffered goes to the file. */
void capture_flush(void);

void capture_fork_prepare(void);
void capture_fork_parent(void);
void capture_fork_child(void);

#endif
