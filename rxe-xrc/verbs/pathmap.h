/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which paths are answered from the private tree. Pure string functions; theory in pathmap.c. */
#ifndef RXE_VERBS_PATHMAP_H
#define RXE_VERBS_PATHMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The directories that the tree has. */
enum path_top {
	PATH_IB,
	PATH_IB_VERBS,
	PATH_IB_MAD,
	PATH_DEV,
	PATH_TOPS,
	PATH_OTHER = PATH_TOPS, /* not ours */
	PATH_LEFT, /* "/sys/class/infiniband/../net": goes through ours to somewhere else */
};

extern const char *const path_tops[PATH_TOPS];

/**
 * path_candidate() - could this be one of ours? A few instructions for nearly every path of a
 * program. Relative paths count too: they may start at "/".
 */
static inline bool path_candidate(const char *path)
{
	char c;

	if (!path)
		return false;
	c = path[0] == '/' ? path[1] : path[0];
	return (c == 's' || c == 'd' || c == '.' || c == '/') && strstr(path, "infiniband");
}

/**
 * path_classify() - look at one path.
 * @path: absolute, or relative to "/"
 * @out: the path as the tree knows it: "/sys/class/infiniband/...", without "//" and "/."
 * @size: of @out
 *
 * Return: the directory that it is below; PATH_LEFT, with the path that it comes to by its text in
 * @out; or PATH_OTHER, @out undefined.
 */
enum path_top path_classify(const char *path, char *out, size_t size);

/**
 * path_entry() - the entry of the top directory that a classified path goes through.
 * @out: "/sys/class/infiniband/xrc_lo" for all paths below that
 *
 * Return: false when the path is the top directory itself.
 */
bool path_entry(enum path_top top, const char *path, char *out, size_t size);

/** path_uverbs() - N when a classified path is /dev/infiniband/uverbsN, else -1. */
int path_uverbs(enum path_top top, const char *path);

/**
 * path_unmap() - turn a path of a private tree back into what the program knows, in place.
 * @len: its length; need not be terminated
 *
 * Knows a tree by its name, "rxe-xrc.../sys-<16 hex digits>/", since it may have come from another
 * process: by way of a working directory, say. Return: the new length; @len when the path is not in
 * a tree.
 */
size_t path_unmap(char *path, size_t len);

#endif
