/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The output buffer: formats at their edges, whole lines through a pipe, a broken output.
 */
#include "pcap-dissect/dis_out.h"

#include "base/macros.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static struct dis_out out;

/* What was written since the buffer was empty. */
static const char *text(void)
{
	*out.p = '\0';
	out.p = out.buf;
	return out.buf;
}

static void setup(void)
{
	dis_out_init(&out, -1);
}

TestSuite(dis_out, .init = setup);

Test(dis_out, flush__keeps_the_first_error)
{
	int fd = open("/dev/full", O_WRONLY);

	cr_assert_geq(fd, 0);
	dis_out_init(&out, fd);
	out_str(&out, "lost");
	dis_out_flush(&out);
	cr_assert_eq(out.error, ENOSPC);
	close(fd);
	out_str(&out, "not tried");
	dis_out_flush(&out);
	cr_assert_eq(out.error, ENOSPC);
	cr_assert_eq(out.p, out.buf);
}

Test(dis_out, room__loses_nothing_at_the_end_of_the_buffer)
{
	enum { LINES = 20000 };
	FILE *file = tmpfile();
	char line[64];
	unsigned int n = 0;

	cr_assert(file);
	dis_out_init(&out, fileno(file));
	for (unsigned int i = 0; i < LINES; i++) {
		dis_out_room(&out);
		out_str(&out, "line ");
		out_dec(&out, i);
		out_char(&out, '\n');
	}
	dis_out_flush(&out);
	cr_assert_eq(out.error, 0);
	rewind(file);
	for (; fgets(line, sizeof(line), file); n++) {
		char want[64];

		snprintf(want, sizeof(want), "line %u\n", n);
		cr_assert_str_eq(line, want);
	}
	cr_assert_eq(n, LINES);
	fclose(file);
}

Test(dis_out, dec__as_printf)
{
	static const uint64_t values[] = {
		0,	   1,	9,    10,   11,	   99,	       100,
		101,	   999, 1000, 9999, 10000, UINT32_MAX, UINT64_MAX - 1,
		UINT64_MAX};
	char want[32];

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		snprintf(want, sizeof(want), "%" PRIu64, values[i]);
		out_dec(&out, values[i]);
		cr_assert_str_eq(text(), want);
	}
}

Test(dis_out, dec_width__pads_with_zeros)
{
	out_dec_width(&out, 7, 6);
	cr_assert_str_eq(text(), "000007");
	out_dec_width(&out, 123456, 6);
	cr_assert_str_eq(text(), "123456");
}

Test(dis_out, hex__all_digits)
{
	out_hex(&out, 0xab, 6);
	cr_assert_str_eq(text(), "0x0000ab");
	out_hex(&out, UINT64_MAX, 16);
	cr_assert_str_eq(text(), "0xffffffffffffffff");
}

Test(dis_out, bytes__and_mac)
{
	static const uint8_t b[] = {0x00, 0x1f, 0xa0, 0xff, 0x10, 0x02};

	out_bytes(&out, b, sizeof(b));
	cr_assert_str_eq(text(), "001fa0ff1002");
	out_mac(&out, b);
	cr_assert_str_eq(text(), "00:1f:a0:ff:10:02");
}

Test(dis_out, ip__both_versions)
{
	static const uint8_t v4[16] = {[10] = 0xff, 0xff, 10, 0, 255, 1};
	static const uint8_t v6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};

	out_ip(&out, v4);
	cr_assert_str_eq(text(), "10.0.255.1");
	/* The second time from the kept texts. */
	for (unsigned int i = 0; i < 2; i++) {
		out_ip(&out, v6);
		cr_assert_str_eq(text(), "2001:db8::1");
	}
}

Test(dis_out, ip__more_addresses_than_are_kept)
{
	uint8_t ip[16] = {0xfe, 0x80};
	char want[64];

	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int i = 1; i < 2000; i++) {
			ip[14] = i >> 8;
			ip[15] = i;
			snprintf(want, sizeof(want), "fe80::%x", i);
			out_ip(&out, ip);
			cr_assert_str_eq(text(), want);
		}
	}
}

Test(dis_out, ip_last__ipv4_behind_zeros)
{
	static const uint8_t v4[16] = {[12] = 192, 0, 2, 1};
	static const uint8_t loopback[16] = {[15] = 1};

	out_ip_last(&out, v4);
	cr_assert_str_eq(text(), "192.0.2.1");
	out_ip_last(&out, loopback);
	cr_assert_str_eq(text(), "::1");
}
