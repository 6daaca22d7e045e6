/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Redirection of the C library's file functions. Theory in fs.c. */
#ifndef RXE_VERBS_FS_H
#define RXE_VERBS_FS_H

#include <stdbool.h>

/**
 * fs_bypass() - for this thread, show the host's files as they are.
 *
 * For calls into the real libibverbs, which must not take our devices for the kernel's. Calls nest.
 */
void fs_bypass(bool on);

#endif
