/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SIGSEGV and SIGBUS in copies of user memory become error returns; all others stay the program's.
 * Theory in signal.c. */
#ifndef RXE_VERBS_SIGNAL_H
#define RXE_VERBS_SIGNAL_H

/**
 * signal_guard_install() - from now on faults inside engine/usercopy.h are repaired.
 *
 * Idempotent, any thread. What the program had installed for the two signals keeps working and is
 * what sigaction() reports.
 */
void signal_guard_install(void);

#endif
