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
#include <stdlib.h>
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

static const struct {
	const char *name, *text, *json;
} names[] = {
	{"trace.pcap", "trace.pcap", "\"trace.pcap\""},
	{"a \"b\" \\c", "a \"b\" \\c", "\"a \\\"b\\\" \\\\c\""},
	{"\x1b[2J\n\x7f", "\\x1b[2J\\x0a\\x7f", "\"\\u001b[2J\\u000a\\u007f\""},
	/* Characters of two, three and four bytes, the first and the last of each. */
	{"\xc2\xa0\xdf\xbf", "\xc2\xa0\xdf\xbf", "\"\xc2\xa0\xdf\xbf\""},
	{"\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf",
	 "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf",
	 "\"\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\""},
	{"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf",
	 "\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\""},
	/* A control of the C1 set, which is UTF-8. */
	{"\xc2\x9b", "\\xc2\\x9b", "\"\\u009b\""},
	/* Longer than needed, a surrogate, beyond the last, a byte alone, cut by the end. */
	{"\xc0\xaf", "\\xc0\\xaf", "\"\\ufffd\\ufffd\""},
	{"\xe0\x9f\xbf", "\\xe0\\x9f\\xbf", "\"\\ufffd\\ufffd\\ufffd\""},
	{"\xf0\x8f\xbf\xbf", "\\xf0\\x8f\\xbf\\xbf", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
	{"\xed\xa0\x80", "\\xed\\xa0\\x80", "\"\\ufffd\\ufffd\\ufffd\""},
	{"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
	{"\xff"
	 "a",
	 "\\xff"
	 "a",
	 "\"\\ufffda\""},
	{"a\xe2\x82", "a\\xe2\\x82", "\"a\\ufffd\\ufffd\""},
	{"", "", "\"\""},
};

Test(dis_out, name__for_a_terminal)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		out_name(&out, names[i].name);
		cr_assert_str_eq(text(), names[i].text);
	}
}

Test(dis_out, json_name__is_utf8)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		out_json_name(&out, names[i].name);
		cr_assert_str_eq(text(), names[i].json);
	}
}

/* Longer than a piece, and longer than the buffer. */
Test(dis_out, name__of_any_length)
{
	enum { LENGTH = 200000 };
	char *name = malloc(LENGTH + 1);
	FILE *file = tmpfile();

	cr_assert(name);
	cr_assert(file);
	memset(name, 1, LENGTH);
	name[LENGTH] = 0;
	dis_out_init(&out, fileno(file));
	out_json_name(&out, name);
	out_name(&out, name);
	dis_out_flush(&out);
	cr_assert_eq(lseek(fileno(file), 0, SEEK_END), 6 * LENGTH + 2 + 4 * LENGTH);
	fclose(file);
	free(name);
}
