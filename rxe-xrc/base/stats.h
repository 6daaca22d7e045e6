/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counters. stats_drop() is the only function that discards a packet: whoever decides to discard
 * one returns right after calling it, with the reason's name.
 *
 * Each struct stats has one writer at a time (the holder of a lane); readers may look at any time.
 */
#ifndef RXE_BASE_STATS_H
#define RXE_BASE_STATS_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

enum stat_id {
#define STAT(token, text) STAT_##token,
#define DROP(token, text) DROP_##token,
#include "base/stats.def"
#undef STAT
#undef DROP
	STAT_COUNT
};

struct stats {
	_Atomic uint64_t value[STAT_COUNT];
};

static inline void stats_add(struct stats *s, enum stat_id which, uint64_t n)
{
	/* One writer: a plain add on an atomic word, without the locked instruction. */
	atomic_store_explicit(&s->value[which],
			      atomic_load_explicit(&s->value[which], memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static inline void stats_inc(struct stats *s, enum stat_id which)
{
	stats_add(s, which, 1);
}

static inline uint64_t stats_get(const struct stats *s, enum stat_id which)
{
	return atomic_load_explicit(&s->value[which], memory_order_relaxed);
}

/** stats_drop() - discard a packet for @reason, a DROP_* token. */
static inline void stats_drop(struct stats *s, enum stat_id reason)
{
	stats_inc(s, reason);
}

/** stats_name() - the counter's token, "icrc" for DROP_icrc. */
const char *stats_name(enum stat_id which);
const char *stats_text(enum stat_id which);

/** stats_is_drop() - whether the counter is a reason for discarding. */
_Bool stats_is_drop(enum stat_id which);

/** stats_print() - one "name value" line for every counter that is not zero, drops with "drop."
 * before. */
void stats_print(const struct stats *s, FILE *out);

#endif
