/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages on stderr. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum log_level log_level = LOG_WARN;

static const char *const names[] = {
	[LOG_ERROR] = "error",
	[LOG_WARN] = "warn",
	[LOG_INFO] = "info",
	[LOG_DEBUG] = "debug",
};

int log_set_level(const char *name)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(name, names[i])) {
			log_level = i;
			return 0;
		}
	}
	return -EINVAL;
}

void log_msg(enum log_level level, const char *fmt, ...)
{
	int saved = errno;
	char line[512];
	va_list ap;
	int n, m;

	if (level > log_level)
		return;
	n = snprintf(line, sizeof(line), "rxe-xrc: %s%s", level == LOG_WARN ? "" : names[level],
		     level == LOG_WARN ? "" : ": ");
	va_start(ap, fmt);
	m = vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	if (m < 0)
		m = 0;
	n = min_t(int, n + m, sizeof(line) - 2);
	line[n++] = '\n';
	/* One write, so that lines of several processes do not mix. */
	if (write(STDERR_FILENO, line, n) < 0)
		(void)0;
	errno = saved;
}
