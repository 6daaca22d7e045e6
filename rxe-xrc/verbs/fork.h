/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a fork means for devices that are open. Theory in fork.c. */
#ifndef RXE_VERBS_FORK_H
#define RXE_VERBS_FORK_H

/** fork_watch() - from now on forks are handled. Idempotent. */
void fork_watch(void);

#endif
