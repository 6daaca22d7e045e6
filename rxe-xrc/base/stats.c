/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names and output of the counters. */
#include "base/stats.h"

#include <stdbool.h>

static const struct {
	const char *name;
	const char *text;
	bool drop;
} rows[STAT_COUNT] = {
#define STAT(token, text) [STAT_##token] = {#token, text, false},
#define DROP(token, text) [DROP_##token] = {#token, text, true},
#include "base/stats.def"
#undef STAT
#undef DROP
};

const char *stats_name(enum stat_id which)
{
	return rows[which].name;
}

const char *stats_text(enum stat_id which)
{
	return rows[which].text;
}

_Bool stats_is_drop(enum stat_id which)
{
	return rows[which].drop;
}

void stats_print(const struct stats *s, FILE *out)
{
	for (unsigned int i = 0; i < STAT_COUNT; i++) {
		uint64_t v = stats_get(s, i);

		if (v)
			fprintf(out, "%s%s %llu\n", rows[i].drop ? "drop." : "", rows[i].name,
				(unsigned long long)v);
	}
}
