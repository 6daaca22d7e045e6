/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages to the person who runs the program: stderr, one line each, behind "rxe-xrc: ".
 *
 * RXE_LOG (or rxe-run --log) chooses error, warn, info or debug; the default is warn. Never called on
 * the data path but for debug.
 */
#ifndef RXE_BASE_LOG_H
#define RXE_BASE_LOG_H

#include "base/macros.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

extern enum log_level log_level;

/** log_set_level() - by name; -EINVAL for a name that is none of the four. */
int log_set_level(const char *name);

void log_msg(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);

#define log_error(...) log_msg(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_msg(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_msg(LOG_INFO, __VA_ARGS__)
#define log_debug(...)                                                                             \
	do {                                                                                       \
		if (unlikely(log_level >= LOG_DEBUG))                                              \
			log_msg(LOG_DEBUG, __VA_ARGS__);                                           \
	} while (0)

#endif
