/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the tests of UDP links share: addresses as links have them. */
#ifndef TESTS_UNIT_UDP_IP_H
#define TESTS_UNIT_UDP_IP_H

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

/* @text: IPv6, or IPv4, which is mapped. */
static inline void address(uint8_t ip[16], const char *text)
{
	memset(ip, 0, 16);
	if (inet_pton(AF_INET6, text, ip) == 1)
		return;
	ip[10] = ip[11] = 0xff;
	cr_assert_eq(inet_pton(AF_INET, text, ip + 12), 1);
}

#endif
