/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Faults on purpose: a link round another link that loses, doubles, delays, swaps and damages packets on
 * their way out. For rxe-run --fault and for tests.
 */
#ifndef RXE_NET_FAULT_H
#define RXE_NET_FAULT_H

#include "net/link.h"

struct fault_spec {
	/* Parts of 2^32: the probability times 2^32. */
	uint32_t drop, dup, reorder, corrupt, delay;
	uint64_t delay_ns; /* how long a delayed packet waits; default 1 ms */
	uint64_t seed;	   /* 0: from the clock */
};

/**
 * fault_parse() - "drop=1%,dup=0.5%,reorder=2%,corrupt=0.1%,delay=5%,delay-us=200,seed=7".
 * @bad: on failure points at the first character of @text that was not understood
 *
 * Probabilities are a percentage with '%' or a fraction from 0 to 1. Return: 0 or -EINVAL.
 */
int fault_parse(const char *text, struct fault_spec *out, const char **bad);

/** fault_create() - wraps @below, which is destroyed together with the wrapper. 0 or -errno. */
int fault_create(struct link *below, const struct fault_spec *spec, struct link **out);

#endif
