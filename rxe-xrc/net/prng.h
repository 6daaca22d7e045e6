/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random numbers that a seed repeats: splitmix64 (Steele, Lea, Flood, OOPSLA 2014). For faults and
 * the simulator; nothing secret comes from here.
 */
#ifndef RXE_NET_PRNG_H
#define RXE_NET_PRNG_H

#include <stdbool.h>
#include <stdint.h>

struct prng {
	uint64_t state;
};

static inline uint64_t prng_next(struct prng *p)
{
	uint64_t z = p->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/** prng_below() - 0 to @n - 1; @n is not 0. The bias is below @n / 2^64. */
static inline uint64_t prng_below(struct prng *p, uint64_t n)
{
	return (unsigned __int128)prng_next(p) * n >> 64;
}

/** prng_hit() - true with a probability of @part / 2^32; UINT32_MAX is always. Takes one number. */
static inline bool prng_hit(struct prng *p, uint32_t part)
{
	uint32_t draw = prng_next(p) >> 32;

	return part == UINT32_MAX || draw < part;
}

#endif
