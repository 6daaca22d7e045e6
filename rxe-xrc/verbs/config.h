/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Settings of the process, from RXE_* environment variables, read once.
 *
 * rxe-run sets the variables from its options and checks them with the same parser before it starts
 * the program. A library must not end its host: with a bad value the reason is logged once, `bad`
 * is set and no device is offered.
 */
#ifndef RXE_VERBS_CONFIG_H
#define RXE_VERBS_CONFIG_H

#include "net/fault.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Strings point into the environment as it was at the first config_get(), or at what config_set()
 * was given. */
struct config {
	const char *netdev; /* RXE_NETDEV: the one interface to offer; NULL: all */
	bool has_addr;
	uint8_t addr[16]; /* RXE_ADDR: what GID index 0 shall be, IPv4 mapped */
	const char *pcap; /* RXE_PCAP: capture file, %p is the pid; NULL: none */
	bool has_fault;
	struct fault_spec fault; /* RXE_FAULT */
	const char *stats;	 /* RXE_STATS: NULL off, "" stderr, else a file, %p is the pid */
	bool gso;		 /* RXE_GSO: "auto" (true, the default) or "off" */
	unsigned int lanes;	 /* RXE_LANES: a power of two; 1 is the default */
	bool safe_copy;		 /* RXE_SAFE_COPY: process_vm calls instead of plain copies */
	bool bad;		 /* some value was not understood: offer no device */
};

/** config_get() - the process's settings. Parses at the first call; any thread. Never NULL. */
const struct config *config_get(void);

/** config_init() - the defaults. */
void config_init(struct config *c);

/**
 * config_set() - one setting.
 * @name: of the environment variable, "RXE_NETDEV" say
 * @value: not NULL; must live as long as @c
 * @why: on failure: what is wrong with the value, without the value itself
 *
 * RXE_LOG takes effect at once. Return: 0, -EINVAL for a bad value, -ENOENT for a name that is
 * none.
 */
int config_set(struct config *c, const char *name, const char *value, char *why, size_t size);

/** config_set_all() - every variable found by @get; logs each bad one and sets bad. For
 * config_get() and tests. */
void config_set_all(struct config *c, const char *(*get)(const char *name));

/**
 * config_path() - a file name of the settings with each %p replaced by the pid.
 * Return: 0 or -ENAMETOOLONG.
 */
int config_path(const char *pattern, char *out, size_t size);

#endif
