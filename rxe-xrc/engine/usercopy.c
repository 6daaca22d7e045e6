/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Copies to and from the program's memory that survive its absence.
 *
 * On x86-64 the copy and the atomics are assembly between the labels usercopy_text and
 * usercopy_text_end. None of it touches the stack, so at every instruction the return address is
 * where the stack pointer points: whatever faults, setting RIP to usercopy_fault gives an ordinary
 * return of -EFAULT.
 *
 * The copy stores at ascending addresses. The last eight bytes (all of a copy shorter than that)
 * are held back until the rest is stored, and then stored by one instruction and once: a program
 * that polls the last byte or the last word may change it at once, which a second store would undo.
 *
 *     body (n - 8 bytes)    how
 *     1 to 7                4 + overlap, or 2 + 1; one store for 1, 2 and 4. As n < 8 as a whole
 *     8 to 16, to 32, to 64 from both ends, overlapping in the middle
 *     more                  64 bytes a turn, then 64 from the end, overlapping
 *     from REP_MIN on       rep movsb, where the processor says that it is fast
 *
 * SSE2 and not AVX: the same code everywhere. rep movsb stores in an order of its own, but all
 * before the last eight bytes. Measured in the first level cache (Zen 5 EPYC, 2026-11-29):
 *
 *     bytes    loop     rep movsb, destination aligned     not aligned
 *     1800     19 ns    14 ns                              26 ns
 *     4096     43 ns    28 ns                              38 ns
 *
 * Where the destination lies 1 to 64 bytes above the source, modulo a page, some processors do rep
 * movsb very slowly, so there it is not used.
 *
 * Elsewhere, and with RXE_SAFE_COPY, process_vm_readv() on ourselves: the kernel meets the fault
 * and returns an error. It cannot do atomics; there the word's page is tried first with a futex
 * operation that adds 0 to it, which needs the same rights and changes nothing, and then a plain
 * atomic follows. A program that unmaps the page in between gets its signal.
 */
#include "engine/usercopy.h"

#include "base/log.h"
#include "base/macros.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __x86_64__

#include <cpuid.h>

int usercopy_asm(void *dst, const void *src, size_t n);
int usercopy_asm_cas64(uint64_t *p, uint64_t compare, uint64_t swap, uint64_t *old);
int usercopy_asm_fadd64(uint64_t *p, uint64_t add, uint64_t *old);
extern const char usercopy_text[], usercopy_text_end[], usercopy_fault[];

/* Bytes from which rep movsb is never slower where it is fast at all. */
#define REP_MIN 3072
extern size_t usercopy_rep_min;
/* Bytes of body from which rep movsb is used here. */
size_t usercopy_rep_min = SIZE_MAX;

/*
 * In: rdi to, rsi from, rdx bytes. Scratch: rax, rcx, r8 to r11, xmm0 to xmm3. Loads of a group
 * come before its stores.
 */
/* clang-format off */
__asm__(
"	.pushsection .text.usercopy, \"ax\", @progbits\n"
"	.hidden usercopy_text, usercopy_text_end, usercopy_fault\n"
"	.hidden usercopy_asm, usercopy_asm_cas64, usercopy_asm_fadd64\n"
"	.globl usercopy_text, usercopy_text_end, usercopy_fault\n"
"	.globl usercopy_asm, usercopy_asm_cas64, usercopy_asm_fadd64\n"
"\n"
	/* 0 to 7 bytes, rdx of them, then to \done. */
"	.macro usercopy_below_8 done\n"
"	cmp $4, %rdx\n"
"	jb 1f\n"
"	mov (%rsi), %eax\n"
"	je 3f\n"
"	mov -4(%rsi,%rdx), %ecx\n"
"	mov %eax, (%rdi)\n"
"	mov %ecx, -4(%rdi,%rdx)\n"
"	jmp \\done\n"
"3:	mov %eax, (%rdi)\n"
"	jmp \\done\n"
"1:	cmp $2, %rdx\n"
"	jb 2f\n"
"	movzwl (%rsi), %eax\n"
"	je 4f\n"
"	movzbl 2(%rsi), %ecx\n"
"	mov %ax, (%rdi)\n"
"	mov %cl, 2(%rdi)\n"
"	jmp \\done\n"
"4:	mov %ax, (%rdi)\n"
"	jmp \\done\n"
"2:	test %rdx, %rdx\n"
"	jz \\done\n"
"	movzbl (%rsi), %eax\n"
"	mov %al, (%rdi)\n"
"	jmp \\done\n"
"	.endm\n"
"\n"
"	.p2align 6\n"
"usercopy_text:\n"
"	.type usercopy_asm, @function\n"
"usercopy_asm:\n"
"	.cfi_startproc\n"
"	sub $8, %rdx\n"
"	jb .Lusercopy_short\n"
	/* Now rdx bytes of body, then the last 8. */
"	cmp $64, %rdx\n"
"	ja .Lusercopy_bulk\n"
"	cmp $32, %rdx\n"
"	ja .Lusercopy_64\n"
"	cmp $16, %rdx\n"
"	ja .Lusercopy_32\n"
"	cmp $8, %rdx\n"
"	jae .Lusercopy_16\n"
"	lea (%rsi,%rdx), %r8\n"
"	usercopy_below_8 .Lusercopy_last\n"
"\n"
"	.p2align 4\n"
".Lusercopy_16:\n"
"	lea (%rsi,%rdx), %r8\n"
"	mov (%rsi), %rax\n"
"	mov -8(%r8), %rcx\n"
"	mov %rax, (%rdi)\n"
"	mov %rcx, -8(%rdi,%rdx)\n"
".Lusercopy_last:\n"
"	mov (%r8), %rax\n"
"	mov %rax, (%rdi,%rdx)\n"
"	xor %eax, %eax\n"
"	ret\n"
"\n"
"	.p2align 4\n"
".Lusercopy_32:\n"
"	movups (%rsi), %xmm0\n"
"	movups -16(%rsi,%rdx), %xmm1\n"
"	mov (%rsi,%rdx), %rax\n"
"	movups %xmm0, (%rdi)\n"
"	movups %xmm1, -16(%rdi,%rdx)\n"
"	mov %rax, (%rdi,%rdx)\n"
"	xor %eax, %eax\n"
"	ret\n"
"\n"
"	.p2align 4\n"
".Lusercopy_bulk:\n"
"	lea (%rsi,%rdx), %r8\n"
"	lea (%rdi,%rdx), %r9\n"
"	cmp usercopy_rep_min(%rip), %rdx\n"
"	jae .Lusercopy_rep\n"
".Lusercopy_loop:\n"
"	lea -64(%r9), %r10\n"
"	.p2align 5\n"
"5:	movups (%rsi), %xmm0\n"
"	movups 16(%rsi), %xmm1\n"
"	movups 32(%rsi), %xmm2\n"
"	movups 48(%rsi), %xmm3\n"
"	movups %xmm0, (%rdi)\n"
"	movups %xmm1, 16(%rdi)\n"
"	movups %xmm2, 32(%rdi)\n"
"	movups %xmm3, 48(%rdi)\n"
"	add $64, %rsi\n"
"	add $64, %rdi\n"
"	cmp %r10, %rdi\n"
"	jb 5b\n"
	/* At most 64 bytes of body are left, and 64 before its end are there. */
"	movups -64(%r8), %xmm0\n"
"	movups -48(%r8), %xmm1\n"
"	movups -32(%r8), %xmm2\n"
"	movups -16(%r8), %xmm3\n"
"	mov (%r8), %rax\n"
"	movups %xmm0, -64(%r9)\n"
"	movups %xmm1, -48(%r9)\n"
"	movups %xmm2, -32(%r9)\n"
"	movups %xmm3, -16(%r9)\n"
"	mov %rax, (%r9)\n"
"	xor %eax, %eax\n"
"	ret\n"
"\n"
"	.p2align 4\n"
".Lusercopy_rep:\n"
"	lea -1(%rdi), %rax\n"
"	sub %rsi, %rax\n"
"	test $0xfc0, %eax\n"
"	jz .Lusercopy_loop\n"
"	mov %rdx, %rcx\n"
"	rep movsb\n"
"	mov (%r8), %rax\n"
"	mov %rax, (%r9)\n"
"	xor %eax, %eax\n"
"	ret\n"
"\n"
"	.p2align 4\n"
".Lusercopy_64:\n"
"	movups (%rsi), %xmm0\n"
"	movups 16(%rsi), %xmm1\n"
"	movups -32(%rsi,%rdx), %xmm2\n"
"	movups -16(%rsi,%rdx), %xmm3\n"
"	mov (%rsi,%rdx), %rax\n"
"	movups %xmm0, (%rdi)\n"
"	movups %xmm1, 16(%rdi)\n"
"	movups %xmm2, -32(%rdi,%rdx)\n"
"	movups %xmm3, -16(%rdi,%rdx)\n"
"	mov %rax, (%rdi,%rdx)\n"
"	xor %eax, %eax\n"
"	ret\n"
"\n"
".Lusercopy_short:\n"
"	add $8, %rdx\n"
"	usercopy_below_8 .Lusercopy_done\n"
".Lusercopy_done:\n"
"	xor %eax, %eax\n"
"	ret\n"
"	.cfi_endproc\n"
"	.size usercopy_asm, . - usercopy_asm\n"
"\n"
	/* In: rdi word, rsi compare, rdx swap, rcx where the old value goes. */
"	.p2align 4\n"
"	.type usercopy_asm_cas64, @function\n"
"usercopy_asm_cas64:\n"
"	.cfi_startproc\n"
"	mov %rsi, %rax\n"
"	lock cmpxchg %rdx, (%rdi)\n"
"	mov %rax, (%rcx)\n"
"	xor %eax, %eax\n"
"	ret\n"
"	.cfi_endproc\n"
"	.size usercopy_asm_cas64, . - usercopy_asm_cas64\n"
"\n"
	/* In: rdi word, rsi what is added, rdx where the old value goes. */
"	.p2align 4\n"
"	.type usercopy_asm_fadd64, @function\n"
"usercopy_asm_fadd64:\n"
"	.cfi_startproc\n"
"	lock xadd %rsi, (%rdi)\n"
"	mov %rsi, (%rdx)\n"
"	xor %eax, %eax\n"
"	ret\n"
"	.cfi_endproc\n"
"	.size usercopy_asm_fadd64, . - usercopy_asm_fadd64\n"
"usercopy_text_end:\n"
"\n"
	/* Where a fault goes on: -EFAULT is -14. */
"	.type usercopy_fault, @function\n"
"usercopy_fault:\n"
"	.cfi_startproc\n"
"	mov $-14, %eax\n"
"	ret\n"
"	.cfi_endproc\n"
"	.size usercopy_fault, . - usercopy_fault\n"
"	.popsection\n"
);
/* clang-format on */
_Static_assert(EFAULT == 14, "the number in usercopy_fault");

static __attribute__((constructor)) void choose_copy(void)
{
	unsigned int a, b, c, d;

	/* Leaf 7, EDX bit 4: fast short rep movsb. */
	if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & 1u << 4))
		usercopy_rep_min = REP_MIN - 8;
}

static atomic_bool use_syscalls;

static bool by_syscall(void)
{
	return unlikely(atomic_load_explicit(&use_syscalls, memory_order_relaxed));
}

bool usercopy_fixup(void *ucontext)
{
	greg_t *regs = ((ucontext_t *)ucontext)->uc_mcontext.gregs;
	uintptr_t rip = regs[REG_RIP];

	if (rip < (uintptr_t)usercopy_text || rip >= (uintptr_t)usercopy_text_end)
		return false;
	regs[REG_RIP] = (greg_t)(uintptr_t)usercopy_fault;
	return true;
}

#else

static atomic_bool use_syscalls = true;

static bool by_syscall(void)
{
	return true;
}

static int usercopy_asm(void *dst, const void *src, size_t n)
{
	return -EFAULT;
}

static int usercopy_asm_cas64(uint64_t *p, uint64_t compare, uint64_t swap, uint64_t *old)
{
	return -EFAULT;
}

static int usercopy_asm_fadd64(uint64_t *p, uint64_t add, uint64_t *old)
{
	return -EFAULT;
}

bool usercopy_fixup(void *ucontext)
{
	return false;
}

#endif

/* Both sides are checked: the kernel reads @src as foreign memory and writes @dst as ours. */
static int syscall_copy(void *dst, const void *src, size_t n)
{
	/* Two pieces, so that the last bytes are stored last. */
	size_t body = n > 8 ? n - 8 : 0;
	struct iovec to[2] = {{dst, body}, {(uint8_t *)dst + body, n - body}};
	struct iovec from = {(void *)src, n};
	ssize_t got;

	if (!n)
		return 0;
	got = syscall(SYS_process_vm_readv, getpid(), to, 2ul, &from, 1ul, 0ul);
	return got == (ssize_t)n ? 0 : -EFAULT;
}

/* Whether the aligned word at @p can be changed: adds 0 to half of it, waking nobody that matters.
 */
static int syscall_touch(uint64_t *p)
{
	uint32_t nobody = 0;

	if (syscall(SYS_futex, &nobody, FUTEX_WAKE_OP_PRIVATE, 0, 0ul, p,
		    FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_LT, -2048)) < 0)
		return -EFAULT;
	return 0;
}

int usercopy(void *dst, const void *src, size_t n)
{
	return by_syscall() ? syscall_copy(dst, src, n) : usercopy_asm(dst, src, n);
}

int usercopy_cas64(uint64_t *p, uint64_t compare, uint64_t swap, uint64_t *old)
{
	if (!by_syscall())
		return usercopy_asm_cas64(p, compare, swap, old);
	if (syscall_touch(p))
		return -EFAULT;
	__atomic_compare_exchange_n(p, &compare, swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	*old = compare;
	return 0;
}

int usercopy_fadd64(uint64_t *p, uint64_t add, uint64_t *old)
{
	if (!by_syscall())
		return usercopy_asm_fadd64(p, add, old);
	if (syscall_touch(p))
		return -EFAULT;
	*old = __atomic_fetch_add(p, add, __ATOMIC_SEQ_CST);
	return 0;
}

void usercopy_use_syscalls(bool on)
{
	uint8_t from = 1, to = 0;

	/* A seccomp filter may refuse process_vm_readv(); then each copy would fail. */
	if (on && (syscall_copy(&to, &from, 1) || to != from)) {
		log_warn("process_vm_readv() does not work here, RXE_SAFE_COPY is ignored");
		return;
	}
	atomic_store(&use_syscalls, on);
}
