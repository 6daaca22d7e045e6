/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Copies to memory that is there, that is not, and that ends in the middle. */
#include "engine/usercopy.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE 4096

static volatile sig_atomic_t faults;

static void on_fault(int sig, siginfo_t *info, void *ucontext)
{
	static const char text[] = "a fault outside of usercopy\n";

	faults++;
	if (usercopy_fixup(ucontext))
		return;
	if (write(2, text, sizeof(text) - 1) < 0)
		_exit(2);
	_exit(1);
}

static void setup(void)
{
	struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};

	cr_assert_eq(sigaction(SIGSEGV, &sa, NULL), 0);
	cr_assert_eq(sigaction(SIGBUS, &sa, NULL), 0);
}

TestSuite(usercopy, .init = setup);

/* Two pages; the second one becomes @prot. */
static uint8_t *two_pages(int prot)
{
	uint8_t *p =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	memset(p, 0x11, 2 * PAGE);
	cr_assert_eq(mprotect(p + PAGE, PAGE, prot), 0);
	return p;
}

static void check_sizes(size_t to)
{
	static uint8_t src[600], dst[600], want[600];

	for (size_t i = 0; i < sizeof(src); i++)
		src[i] = i * 7 + 1;
	for (size_t n = 0; n <= to; n++)
		for (size_t s = 0; s < 9; s += 1 + (n > 140))
			for (size_t d = 16; d < 25; d += 3) {
				memset(dst, 0xee, sizeof(dst));
				memset(want, 0xee, sizeof(want));
				memcpy(want + d, src + s, n);
				cr_assert_eq(usercopy(dst + d, src + s, n), 0);
				cr_assert_arr_eq(dst, want, sizeof(dst), "%zu bytes", n);
			}
}

Test(usercopy, usercopy__each_size_and_alignment)
{
	check_sizes(520);
	cr_assert_eq(usercopy(NULL, NULL, 0), 0);
	cr_assert_eq(faults, 0);
}

/* Both ways of copying a lot, and the alignments that choose between them. */
Test(usercopy, usercopy__large)
{
	static const size_t sizes[] = {3071, 3072, 3073, 4096, 4104, (1 << 20) + 13};
	static uint8_t a[(1 << 20) + PAGE], b[(1 << 20) + PAGE];

	for (size_t i = 0; i < sizeof(a); i++)
		a[i] = i * 31 >> 3;
	for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++)
		for (size_t off = 0; off < 130; off += 1 + 12 * (k > 4)) {
			size_t n = sizes[k];

			memset(b, 0xee, n + 300);
			cr_assert_eq(usercopy(b + 64, a + off, n), 0);
			cr_assert_eq(memcmp(b + 64, a + off, n), 0);
			cr_assert(b[63] == 0xee && b[64 + n] == 0xee);
		}
}

/* Neither side is touched outside of [p, p + n): both end, then begin, at a page that is not there.
 */
Test(usercopy, usercopy__stays_inside)
{
	uint8_t *a = two_pages(PROT_NONE), *b = two_pages(PROT_NONE);
	uint8_t *low_a = two_pages(PROT_READ | PROT_WRITE);
	uint8_t *low_b = two_pages(PROT_READ | PROT_WRITE);

	cr_assert_eq(mprotect(low_a, PAGE, PROT_NONE), 0);
	cr_assert_eq(mprotect(low_b, PAGE, PROT_NONE), 0);
	for (size_t n = 0; n <= 300; n++) {
		cr_assert_eq(usercopy(a + PAGE - n, b + PAGE - n, n), 0);
		cr_assert_eq(usercopy(low_a + PAGE, low_b + PAGE, n), 0);
	}
	cr_assert_eq(faults, 0);
}

static void check_absent(void)
{
	uint8_t *none = two_pages(PROT_NONE), *ro = two_pages(PROT_READ), *gone;
	uint8_t buf[600] = {0};

	gone = two_pages(PROT_READ);
	cr_assert_eq(munmap(gone, 2 * PAGE), 0);
	for (size_t n = 1; n <= sizeof(buf); n++) {
		cr_assert_eq(usercopy(buf, none + PAGE, n), -EFAULT, "%zu bytes", n);
		cr_assert_eq(usercopy(none + PAGE, buf, n), -EFAULT);
		cr_assert_eq(usercopy(buf, gone, n), -EFAULT);
		cr_assert_eq(usercopy(gone, buf, n), -EFAULT);
		cr_assert_eq(usercopy(ro + PAGE, buf, n), -EFAULT);
		cr_assert_eq(usercopy(buf, ro + PAGE, n), 0);
		cr_assert_eq(usercopy(buf, NULL, n), -EFAULT);
		/* Not canonical: general protection, a SIGSEGV without an address. */
		cr_assert_eq(usercopy(buf, (void *)0xdeadbeefdeadbeeful, n), -EFAULT);
	}
	cr_assert_eq(ro[PAGE], 0x11);
}

static void check_edges(void)
{
	uint8_t *none = two_pages(PROT_NONE), *ro = two_pages(PROT_READ);
	uint8_t buf[600];

	memset(buf, 0x22, sizeof(buf));
	for (size_t n = 2; n < sizeof(buf); n++)
		for (size_t over = 1; over < n; over += 1 + n / 16) {
			cr_assert_eq(usercopy(buf, none + PAGE - n + over, n), -EFAULT);
			cr_assert_eq(usercopy(none + PAGE - n + over, buf, n), -EFAULT);
			cr_assert_eq(usercopy(ro + PAGE - n + over, buf, n), -EFAULT);
		}
	cr_assert_eq(ro[PAGE], 0x11);
}

static void check_long_edge(void)
{
	static uint8_t buf[2 * PAGE];
	uint8_t *none = two_pages(PROT_NONE), *ro = two_pages(PROT_READ);

	for (size_t n = PAGE - 8; n <= PAGE; n++)
		for (size_t over = 1; over < n; over += 97) {
			cr_assert_eq(usercopy(buf, none + PAGE - n + over, n), -EFAULT);
			cr_assert_eq(usercopy(none + PAGE - n + over, buf, n), -EFAULT);
			cr_assert_eq(usercopy(ro + PAGE - n + over, buf, n), -EFAULT);
		}
	cr_assert_eq(ro[PAGE], 0x11);
}

static void check_truncated_file(void)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	uint8_t buf[100] = {0}, *p;

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, 2 * PAGE), 0);
	p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(p, MAP_FAILED);
	cr_assert_eq(usercopy(p + PAGE, buf, sizeof(buf)), 0);
	cr_assert_eq(ftruncate(fd, PAGE), 0);
	cr_assert_eq(usercopy(p + PAGE, buf, sizeof(buf)), -EFAULT);
	cr_assert_eq(usercopy(buf, p + PAGE - 50, sizeof(buf)), -EFAULT);
	cr_assert_eq(usercopy(buf, p, sizeof(buf)), 0);
	munmap(p, 2 * PAGE);
	close(fd);
}

Test(usercopy, usercopy__absent_memory)
{
	check_absent();
	cr_assert_gt(faults, 0);
}

Test(usercopy, usercopy__across_the_edge)
{
	check_edges();
	check_long_edge();
}

Test(usercopy, usercopy__truncated_file)
{
	check_truncated_file();
}

/*
 * One word is copied over and over by another thread, as the last one of copies of each size, and
 * changed back by this one whenever it shows. A second store of it would bring it back once more.
 */
struct bouncer {
	uint8_t *p;
	size_t n;
	atomic_uint go, done;
};

static void *copy_when_told(void *arg)
{
	struct bouncer *b = arg;
	uint8_t src[300];

	memset(src, 0xab, sizeof(src));
	for (unsigned int seen = 0;;) {
		unsigned int go = atomic_load(&b->go);

		if (go == -1u)
			return NULL;
		if (go == seen) {
			sched_yield();
			continue;
		}
		seen = go;
		usercopy(b->p, src, b->n);
		atomic_store(&b->done, go);
	}
}

Test(usercopy, usercopy__last_byte_is_stored_once_and_last)
{
	uint8_t buf[320] __attribute__((aligned(64)));
	struct bouncer b = {.p = buf};
	pthread_t t;

	cr_assert_eq(pthread_create(&t, NULL, copy_when_told, &b), 0);
	for (unsigned int round = 1; round <= 6000; round++) {
		volatile uint8_t *last;

		b.n = 1 + round % 300;
		last = &buf[b.n - 1];
		memset(buf, 0, sizeof(buf));
		atomic_store(&b.go, round);
		while (*last != 0xab)
			sched_yield();
		for (size_t i = 0; i < b.n; i++)
			cr_assert_eq(((volatile uint8_t *)buf)[i], 0xab, "byte %zu of %zu", i, b.n);
		*last = 0;
		while (atomic_load(&b.done) != round)
			sched_yield();
		cr_assert_eq(*last, 0);
	}
	atomic_store(&b.go, -1u);
	pthread_join(t, NULL);
}

static void check_atomics(void)
{
	uint64_t *none = (uint64_t *)(two_pages(PROT_NONE) + PAGE);
	uint64_t *ro = (uint64_t *)(two_pages(PROT_READ) + PAGE);
	uint64_t word = 5, old = 0;

	cr_assert_eq(usercopy_cas64(&word, 5, 9, &old), 0);
	cr_assert(old == 5 && word == 9);
	cr_assert_eq(usercopy_cas64(&word, 5, 1, &old), 0);
	cr_assert(old == 9 && word == 9);
	cr_assert_eq(usercopy_fadd64(&word, -10ull, &old), 0);
	cr_assert(old == 9 && word == UINT64_MAX);

	old = 77;
	cr_assert_eq(usercopy_cas64(none, 0, 1, &old), -EFAULT);
	cr_assert_eq(usercopy_fadd64(none, 1, &old), -EFAULT);
	cr_assert_eq(usercopy_cas64(ro, 0, 1, &old), -EFAULT);
	cr_assert_eq(usercopy_fadd64(ro, 1, &old), -EFAULT);
	cr_assert_eq(usercopy_fadd64(NULL, 1, &old), -EFAULT);
	cr_assert_eq(old, 77u);
	cr_assert_eq(*ro, 0x1111111111111111u);
}

Test(usercopy, usercopy_cas64__and_fadd64)
{
	check_atomics();
}

static uint64_t counter;

/* Adds 1 both ways. */
static void *count(void *arg)
{
	uint64_t old, was;

	for (int i = 0; i < 50000; i++) {
		usercopy_fadd64(&counter, 1, &old);
		do
			was = __atomic_load_n(&counter, __ATOMIC_RELAXED);
		while (!usercopy_cas64(&counter, was, was + 1, &old) && old != was);
	}
	return NULL;
}

Test(usercopy, usercopy_fadd64__is_atomic)
{
	pthread_t t[2];

	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&t[i], NULL, count, NULL), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	cr_assert_eq(counter, 200000u);
}

Test(usercopy, usercopy_fixup__leaves_other_faults_alone)
{
	ucontext_t *uc = calloc(1, sizeof(*uc));

	cr_assert_not(usercopy_fixup(uc));
	free(uc);
}

/* The same without a handler that helps: no signal may come at all. */
Test(usercopy, usercopy_use_syscalls__the_same)
{
	uint8_t from = 1, to = 0;

	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	usercopy_use_syscalls(true);
	if (usercopy(&to, &from, 1) || to != 1)
		cr_skip_test("no process_vm_readv() here");
	check_sizes(80);
	check_absent();
	check_edges();
	check_long_edge();
	check_truncated_file();
	check_atomics();
	cr_assert_eq(faults, 0);
	usercopy_use_syscalls(false);
}
