/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Settings: every variable, good and bad values, and what a bad one does to the whole. */
#include "verbs/config.h"

#include "base/log.h"
#include "base/macros.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name, *value;
	int rc;
} values[] = {
	{"RXE_NETDEV", "lo", 0},
	{"RXE_NETDEV", "enp129s0f1np1.4", 0},
	{"RXE_NETDEV", "", -EINVAL},
	{"RXE_NETDEV", "a-name-that-is-16", -EINVAL},
	{"RXE_NETDEV", "../lo", -EINVAL},
	{"RXE_ADDR", "127.0.0.2", 0},
	{"RXE_ADDR", "fe80::1", 0},
	{"RXE_ADDR", "0.0.0.0", -EINVAL},
	{"RXE_ADDR", "::", -EINVAL},
	{"RXE_ADDR", "127.0.0", -EINVAL},
	{"RXE_ADDR", "127.0.0.256", -EINVAL},
	{"RXE_ADDR", "localhost", -EINVAL},
	{"RXE_ADDR", "", -EINVAL},
	{"RXE_PCAP", "x.pcap", 0},
	{"RXE_PCAP", "", -EINVAL},
	{"RXE_FAULT", "drop=1%", 0},
	{"RXE_FAULT", "drop=1%,frop=2%", -EINVAL},
	{"RXE_STATS", "", 0},
	{"RXE_STATS", "file.%p", 0},
	{"RXE_LOG", "error", 0},
	{"RXE_LOG", "loud", -EINVAL},
	{"RXE_GSO", "auto", 0},
	{"RXE_GSO", "off", 0},
	{"RXE_GSO", "on", -EINVAL},
	{"RXE_LANES", "1", 0},
	{"RXE_LANES", "16", 0},
	{"RXE_LANES", "0", -EINVAL},
	{"RXE_LANES", "3", -EINVAL},
	{"RXE_LANES", "32", -EINVAL},
	{"RXE_LANES", "2x", -EINVAL},
	{"RXE_LANES", "", -EINVAL},
	{"RXE_SAFE_COPY", "0", 0},
	{"RXE_SAFE_COPY", "1", 0},
	{"RXE_SAFE_COPY", "yes", -EINVAL},
	{"RXE_NO_SUCH", "1", -ENOENT},
};

Test(config, config_set__good_and_bad_values)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(values); i++) {
		struct config c;
		char why[128] = "";
		int rc;

		config_init(&c);
		rc = config_set(&c, values[i].name, values[i].value, why, sizeof(why));
		cr_expect_eq(rc, values[i].rc, "%s=%s gave %d", values[i].name, values[i].value,
			     rc);
		cr_expect_eq(rc == -EINVAL, why[0] != 0, "%s=%s: \"%s\"", values[i].name,
			     values[i].value, why);
	}
}

Test(config, config_set__addresses_are_mapped)
{
	static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, 127, 0, 0, 2};
	static const uint8_t v6[16] = {0xfd, [15] = 2};
	struct config c;
	char why[128];

	config_init(&c);
	cr_assert(!c.has_addr);
	cr_assert(!config_set(&c, "RXE_ADDR", "127.0.0.2", why, sizeof(why)));
	cr_assert(c.has_addr);
	cr_assert_arr_eq(c.addr, v4, 16);
	cr_assert(!config_set(&c, "RXE_ADDR", "fd00::2", why, sizeof(why)));
	cr_assert_arr_eq(c.addr, v6, 16);
}

/* The part that was not understood is named. */
Test(config, config_set__fault_says_where)
{
	struct config c;
	char why[128];

	config_init(&c);
	cr_assert_eq(config_set(&c, "RXE_FAULT", "drop=1%,frop=2%", why, sizeof(why)), -EINVAL);
	cr_assert(strstr(why, "frop=2%"), "%s", why);
	cr_assert(!c.has_fault);
}

static const char *good_environment(const char *name)
{
	if (!strcmp(name, "RXE_LANES"))
		return "4";
	if (!strcmp(name, "RXE_NETDEV"))
		return "lo";
	if (!strcmp(name, "RXE_GSO"))
		return "off";
	if (!strcmp(name, "RXE_LOG"))
		return "debug";
	if (!strcmp(name, "RXE_STATS"))
		return "";
	return NULL;
}

Test(config, config_set_all__takes_what_is_there)
{
	struct config c;

	config_init(&c);
	cr_assert(c.gso);
	cr_assert_eq(c.lanes, 1);
	config_set_all(&c, good_environment);
	cr_assert_str_eq(c.netdev, "lo");
	cr_assert(!c.gso);
	cr_assert_eq(c.lanes, 4);
	cr_assert_str_eq(c.stats, "");
	cr_assert_null(c.pcap);
	cr_assert(!c.bad);
	cr_assert_eq(log_level, LOG_DEBUG);
}

static const char *bad_environment(const char *name)
{
	return !strcmp(name, "RXE_GSO") ? "perhaps" : good_environment(name);
}

Test(config, config_set_all__one_bad_value_spoils_it)
{
	struct config c;

	config_init(&c);
	config_set_all(&c, bad_environment);
	cr_assert(c.bad);
	cr_assert_str_eq(c.netdev, "lo");
}

Test(config, config_path__puts_in_the_pid)
{
	char out[64], expect[64];

	cr_assert(!config_path("a.%p.%d-%p", out, sizeof(out)));
	snprintf(expect, sizeof(expect), "a.%d.%%d-%d", getpid(), getpid());
	cr_assert_str_eq(out, expect);
	cr_assert(!config_path("", out, sizeof(out)));
	cr_assert_str_eq(out, "");
}

Test(config, config_path__refuses_what_does_not_fit)
{
	char out[4];

	cr_assert(!config_path("abc", out, sizeof(out)));
	cr_assert_eq(config_path("abcd", out, sizeof(out)), -ENAMETOOLONG);
	cr_assert_eq(config_path("abc%p", out, sizeof(out)), -ENAMETOOLONG);
	cr_assert_eq(config_path("a%p%p%p%p", out, sizeof(out)), -ENAMETOOLONG);
}
