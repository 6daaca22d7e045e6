/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Big-endian fields: the order of the bytes, any alignment, and no byte beside the field. */
#include "base/bytes.h"

#include <criterion/criterion.h>

static const uint8_t bytes[9] = {0x00, 0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8};

Test(bytes, get__order)
{
	cr_assert_eq(get_be16(bytes + 1), 0x8192);
	cr_assert_eq(get_be24(bytes + 1), 0x8192a3u);
	cr_assert_eq(get_be32(bytes + 1), 0x8192a3b4u);
	cr_assert_eq(get_be64(bytes + 1), 0x8192a3b4c5d6e7f8u);
}

/* A field of @width bytes at each of four alignments, its neighbours left alone. */
static void check_put(unsigned int width)
{
	for (unsigned int at = 1; at <= 4; at++) {
		uint8_t b[16], expected[16];

		memset(b, 0x55, sizeof(b));
		memset(expected, 0x55, sizeof(expected));
		memcpy(expected + at, bytes + 1, width);
		switch (width) {
		case 2:
			put_be16(b + at, 0x8192);
			break;
		case 3:
			put_be24(b + at, 0xff8192a3); /* the top byte is not sent */
			break;
		case 4:
			put_be32(b + at, 0x8192a3b4);
			break;
		case 8:
			put_be64(b + at, 0x8192a3b4c5d6e7f8);
			break;
		}
		cr_assert_arr_eq(b, expected, sizeof(b), "width %u at %u", width, at);
	}
}

Test(bytes, put__order)
{
	check_put(2);
	check_put(3);
	check_put(4);
	check_put(8);
}

Test(bytes, get__what_was_put)
{
	for (uint32_t v = 0; v <= 0xffffff; v += 4099) {
		uint8_t b[8];

		put_be24(b, v);
		cr_assert_eq(get_be24(b), v);
		put_be16(b, v);
		cr_assert_eq(get_be16(b), (uint16_t)v);
		put_be32(b, v * 257);
		cr_assert_eq(get_be32(b), v * 257);
		put_be64(b, v * UINT64_C(0x100000101));
		cr_assert_eq(get_be64(b), v * UINT64_C(0x100000101));
	}
}
