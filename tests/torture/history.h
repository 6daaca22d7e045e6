/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether a recorded history of a bounded FIFO is linearizable.
 *
 * Each call carries two ticks of one clock, before its first and after its last instruction; no two
 * ticks are the same. Every value is posted once. For such histories there is no need to search for
 * an order. A queue's history is linearizable exactly when it shows none of four patterns
 * (Henzinger, Sezgin, Vafeiadis: Aspect-Oriented Linearizability Proofs, CONCUR 2013):
 *
 *     fresh     a value is taken that was not posted, or before its post began
 *     repeat    a value is taken twice
 *     order     a was posted before b (its call ended before b's began), and b taken before a
 *     empty     a call finds nothing, though at each moment of it some value was certainly in the
 *               queue: its post had ended and its take had not begun
 *
 * A bounded one has two more: more than the bound are certainly in it; and a post fails, though at
 * each moment of it the values that could be in the queue and the other posts under way were fewer
 * than the bound.
 */
#ifndef TESTS_TORTURE_HISTORY_H
#define TESTS_TORTURE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum event_kind { EVENT_POST, EVENT_TAKE };

struct event {
	uint64_t begin, end; /* ticks, below nticks */
	uint32_t value;	     /* below nids; of a take only when it found something */
	uint16_t chain;	     /* a post: place in its chain, whose ticks it has */
	uint8_t kind;
	bool ok;
};

/**
 * history_check() - looks for the patterns in @n events; all posted values must have been taken by
 * the end. A chain's events follow each other. Return: NULL, or what is wrong.
 */
const char *history_check(struct event *events, size_t n, size_t nids, uint64_t nticks,
			  uint32_t bound);

#endif
