/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The only code that touches the program's memory.
 *
 * A program may unmap memory that it has registered. Here that must be a completion with the right
 * status, not a crash, so every access goes through the functions of this file, whose machine code has a
 * known range of addresses: the handler of SIGSEGV and SIGBUS calls usercopy_fixup(), which turns a
 * fault inside that range into an error return, and leaves all others to the program.
 *
 * Copies store the last eight bytes last, by one store: programs poll the last byte of a message. What comes
 * before is stored at ascending addresses, but for long copies on processors whose rep movsb is fast.
 *
 * RXE_SAFE_COPY=1 (usercopy_use_syscalls()) copies with process_vm_readv/writev instead, for programs
 * whose own handlers get in the way.
 */
#ifndef RXE_ENGINE_USERCOPY_H
#define RXE_ENGINE_USERCOPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** usercopy() - copies @n bytes; either side may be the program's memory. 0 or -EFAULT. */
int usercopy(void *dst, const void *src, size_t n);

/** usercopy_cas64(), usercopy_fadd64() - atomics on an aligned word; *@old is the value before. 0 or -EFAULT. */
int usercopy_cas64(uint64_t *p, uint64_t compare, uint64_t swap, uint64_t *old);
int usercopy_fadd64(uint64_t *p, uint64_t add, uint64_t *old);

/**
 * usercopy_fixup() - called by a signal handler.
 * @ucontext: the handler's third argument
 *
 * Return: true when the fault was in here; the interrupted function will return -EFAULT.
 */
bool usercopy_fixup(void *ucontext);

void usercopy_use_syscalls(bool on);

#endif
