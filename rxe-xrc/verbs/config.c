/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RXE_* variables -> struct config.
 *
 * One table row for each setting: its variable and its parser. A parser checks what can be checked
 * from the text alone; whether an interface or an address exists is netdev.c's to say, since that
 * can change while the process runs.
 */
#include "verbs/config.h"

#include "base/log.h"
#include "engine/limits.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(char *why, size_t size, const char *text)
{
	snprintf(why, size, "%s", text);
	return -EINVAL;
}

static int parse_netdev(struct config *c, const char *value, char *why, size_t size)
{
	if (!*value || strlen(value) >= IF_NAMESIZE || strchr(value, '/'))
		return fail(why, size, "not an interface name");
	c->netdev = value;
	return 0;
}

static int parse_addr(struct config *c, const char *value, char *why, size_t size)
{
	static const uint8_t none[16], any4[16] = {[10] = 0xff, [11] = 0xff};
	uint8_t addr[16] = {[10] = 0xff, [11] = 0xff};

	if (inet_pton(AF_INET, value, addr + 12) != 1 && inet_pton(AF_INET6, value, addr) != 1)
		return fail(why, size, "not an IPv4 or IPv6 address");
	if (!memcmp(addr, none, 16) || !memcmp(addr, any4, 16))
		return fail(why, size, "an address of one interface is needed");
	memcpy(c->addr, addr, sizeof(c->addr));
	c->has_addr = true;
	return 0;
}

static int parse_pcap(struct config *c, const char *value, char *why, size_t size)
{
	if (!*value)
		return fail(why, size, "a file name is needed");
	c->pcap = value;
	return 0;
}

static int parse_fault(struct config *c, const char *value, char *why, size_t size)
{
	const char *bad = value;

	if (fault_parse(value, &c->fault, &bad)) {
		snprintf(why, size, "not understood from \"%.32s\" on (drop=1%%,dup=0.5%%,... is)",
			 bad);
		return -EINVAL;
	}
	c->has_fault = true;
	return 0;
}

static int parse_stats(struct config *c, const char *value, char *why, size_t size)
{
	c->stats = value;
	return 0;
}

static int parse_log(struct config *c, const char *value, char *why, size_t size)
{
	if (log_set_level(value))
		return fail(why, size, "error, warn, info or debug");
	return 0;
}

static int parse_gso(struct config *c, const char *value, char *why, size_t size)
{
	c->gso = !strcmp(value, "auto");
	if (!c->gso && strcmp(value, "off"))
		return fail(why, size, "auto or off");
	return 0;
}

static int parse_lanes(struct config *c, const char *value, char *why, size_t size)
{
	for (unsigned int n = 1; n <= RXE_MAX_LANES; n *= 2) {
		char text[16];

		snprintf(text, sizeof(text), "%u", n);
		if (strcmp(value, text))
			continue;
		c->lanes = n;
		return 0;
	}
	return fail(why, size, "1, 2, 4, 8 or 16");
}

static int parse_safe_copy(struct config *c, const char *value, char *why, size_t size)
{
	c->safe_copy = !strcmp(value, "1");
	if (!c->safe_copy && strcmp(value, "0"))
		return fail(why, size, "0 or 1");
	return 0;
}

/* RXE_LOG comes first, so that it holds for what is said about the others. */
static const struct setting {
	const char *name;
	int (*parse)(struct config *c, const char *value, char *why, size_t size);
} settings[] = {
	{"RXE_LOG", parse_log},	  {"RXE_NETDEV", parse_netdev}, {"RXE_ADDR", parse_addr},
	{"RXE_PCAP", parse_pcap}, {"RXE_FAULT", parse_fault},	{"RXE_STATS", parse_stats},
	{"RXE_GSO", parse_gso},	  {"RXE_LANES", parse_lanes},	{"RXE_SAFE_COPY", parse_safe_copy},
};

void config_init(struct config *c)
{
	memset(c, 0, sizeof(*c));
	c->gso = true;
	c->lanes = 1;
}

int config_set(struct config *c, const char *name, const char *value, char *why, size_t size)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(settings); i++)
		if (!strcmp(name, settings[i].name))
			return settings[i].parse(c, value, why, size);
	return -ENOENT;
}

void config_set_all(struct config *c, const char *(*get)(const char *name))
{
	char why[128];

	for (unsigned int i = 0; i < ARRAY_SIZE(settings); i++) {
		const char *value = get(settings[i].name);

		if (!value || !settings[i].parse(c, value, why, sizeof(why)))
			continue;
		log_error("%s=%s: %s; no device is offered", settings[i].name, value, why);
		c->bad = true;
	}
}

static struct config process_config;
static pthread_once_t process_once = PTHREAD_ONCE_INIT;

static const char *from_environment(const char *name)
{
	return getenv(name);
}

static void process_init(void)
{
	config_init(&process_config);
	config_set_all(&process_config, from_environment);
}

const struct config *config_get(void)
{
	pthread_once(&process_once, process_init);
	return &process_config;
}

int config_path(const char *pattern, char *out, size_t size)
{
	size_t n = 0;

	for (const char *p = pattern; *p; p++) {
		int len = 1;

		if (p[0] == '%' && p[1] == 'p') {
			len = snprintf(out + n, size - n, "%d", (int)getpid());
			p++;
		} else if (n + 1 < size) {
			out[n] = *p;
		}
		n += len;
		if (n >= size)
			return -ENAMETOOLONG;
	}
	out[n] = 0;
	return 0;
}
