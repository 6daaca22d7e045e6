/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arithmetic on packet sequence numbers: 24 bits, compared as distances on a circle (IBTA C9-57).
 */
#ifndef RXE_WIRE_PSN_H
#define RXE_WIRE_PSN_H

#include <stdbool.h>
#include <stdint.h>

#define PSN_MASK 0xffffffu

static inline uint32_t psn_add(uint32_t psn, int32_t n)
{
	return (psn + (uint32_t)n) & PSN_MASK;
}

/** psn_sub() - signed distance from @b to @a, -2^23 to 2^23 - 1. */
static inline int32_t psn_sub(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline bool psn_before(uint32_t a, uint32_t b)
{
	return psn_sub(a, b) < 0;
}

#endif
