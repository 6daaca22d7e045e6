/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The few macros that every room uses. */
#ifndef RXE_BASE_MACROS_H
#define RXE_BASE_MACROS_H

#include <stddef.h>

#define ARRAY_SIZE(a)	       (sizeof(a) / sizeof((a)[0]))
#define CACHE_LINE	       64
#define CACHE_ALIGNED	       __attribute__((aligned(CACHE_LINE)))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* In a loop that looks at memory until another CPU has changed it. */
static inline void cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}

#ifndef container_of
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#endif

#define min_t(type, a, b)                                                                          \
	({                                                                                         \
		type min_a_ = (a);                                                                 \
		type min_b_ = (b);                                                                 \
		min_a_ < min_b_ ? min_a_ : min_b_;                                                 \
	})
#define max_t(type, a, b)                                                                          \
	({                                                                                         \
		type max_a_ = (a);                                                                 \
		type max_b_ = (b);                                                                 \
		max_a_ > max_b_ ? max_a_ : max_b_;                                                 \
	})

#endif
