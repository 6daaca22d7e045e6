/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* PSN arithmetic at the places where a circle of 2^24 can go wrong. */
#include "wire/psn.h"

#include <criterion/criterion.h>

#define HALF 0x800000

static const uint32_t corners[] = {
	0, 1, 2, 0x7ffffe, 0x7fffff, 0x800000, 0x800001, 0xfffffe, 0xffffff,
};
#define CORNERS (sizeof(corners) / sizeof(corners[0]))

Test(psn, psn_add__wrap)
{
	cr_assert_eq(psn_add(0xffffff, 1), 0);
	cr_assert_eq(psn_add(0, -1), 0xffffff);
	cr_assert_eq(psn_add(0xfffff0, 0x20), 0x10);
	cr_assert_eq(psn_add(0x10, -0x20), 0xfffff0);
	cr_assert_eq(psn_add(5, 0), 5);
	cr_assert_eq(psn_add(5, 1 << 24), 5);
}

Test(psn, psn_sub__wrap)
{
	cr_assert_eq(psn_sub(0, 0xffffff), 1);
	cr_assert_eq(psn_sub(0xffffff, 0), -1);
	cr_assert_eq(psn_sub(0x10, 0xfffff0), 0x20);
	cr_assert_eq(psn_sub(0xfffff0, 0x10), -0x20);
	cr_assert_eq(psn_sub(7, 7), 0);
}

/* Exactly half way round neither is ahead: both distances are the negative one. */
Test(psn, psn_sub__half_way)
{
	for (unsigned int i = 0; i < CORNERS; i++) {
		uint32_t a = corners[i];

		cr_assert_eq(psn_sub(psn_add(a, HALF - 1), a), HALF - 1);
		cr_assert_eq(psn_sub(psn_add(a, HALF), a), -HALF);
		cr_assert_eq(psn_sub(a, psn_add(a, HALF)), -HALF);
		cr_assert_eq(psn_sub(psn_add(a, HALF + 1), a), -HALF + 1);
	}
}

Test(psn, psn_sub__undoes_add)
{
	for (unsigned int i = 0; i < CORNERS; i++) {
		for (int32_t n = -HALF; n < HALF; n += 0x3fff) {
			cr_assert_eq(psn_sub(psn_add(corners[i], n), corners[i]), n);
			cr_assert_eq(psn_add(psn_add(corners[i], n), -n), corners[i]);
		}
	}
}

/* Bits above the 24 do not count, so that a running 32-bit counter may be compared as it is. */
Test(psn, psn_sub__upper_bits)
{
	cr_assert_eq(psn_sub(0x01000001, 0xff000000), 1);
	cr_assert_not(psn_before(0x01000005, 0x00000005));
}

Test(psn, psn_before__circle)
{
	cr_assert(psn_before(0xffffff, 0));
	cr_assert_not(psn_before(0, 0xffffff));
	cr_assert_not(psn_before(3, 3));
	cr_assert(psn_before(0, HALF - 1));
	cr_assert_not(psn_before(HALF - 1, 0));
	cr_assert_not(psn_before(0, HALF + 1));
	cr_assert(psn_before(HALF + 1, 0));
}
