/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Recognising the paths under which programs look for RDMA devices.
 *
 * Programs write them in many ways ("/sys/class/infiniband/", "/sys//class/./infiniband"), so a
 * path is first brought to one form. ".." stays in it as long as it does not lead out of the top
 * directory: the kernel then resolves it in the tree, whose links it knows and we do not. Where it
 * leads out
 * ("/sys/class/infiniband/../infiniband_verbs") it is resolved by its text.
 */
#include "verbs/pathmap.h"

#include "base/macros.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

const char *const path_tops[PATH_TOPS] = {
	[PATH_IB] = "/sys/class/infiniband",
	[PATH_IB_VERBS] = "/sys/class/infiniband_verbs",
	[PATH_IB_MAD] = "/sys/class/infiniband_mad",
	[PATH_DEV] = "/dev/infiniband",
};

static enum path_top find_top(const char *path, size_t len)
{
	for (unsigned int i = 0; i < PATH_TOPS; i++) {
		size_t n = strlen(path_tops[i]);

		if (len >= n && !memcmp(path, path_tops[i], n) && (len == n || path[n] == '/'))
			return i;
	}
	return PATH_OTHER;
}

/* The length without the last component. */
static size_t drop_last(const char *out, size_t n)
{
	while (n && out[n - 1] != '/')
		n--;
	return n ? n - 1 : 0;
}

/*
 * The path with "//" and "." taken out, and ".." resolved by text when @lexical. *@climbs tells
 * whether
 * ".." would lead out of the top directory. Return: length, or 0 when it does not fit.
 */
static size_t normalise(const char *path, char *out, size_t size, bool lexical, bool *climbs)
{
	size_t n = 0;
	int depth = 0; /* below the top directory, once there */

	*climbs = false;
	while (*path) {
		size_t len = strcspn(path, "/");
		bool dotdot = len == 2 && !memcmp(path, "..", 2);
		bool inside = find_top(out, n) != PATH_OTHER;

		if (len && !(len == 1 && *path == '.')) {
			depth = inside ? depth + (dotdot ? -1 : 1) : 0;
			*climbs |= inside && depth < 0;
			if (dotdot && (lexical || !inside)) {
				n = drop_last(out, n);
			} else {
				if (n + 1 + len + 1 > size)
					return 0;
				out[n++] = '/';
				memcpy(out + n, path, len);
				n += len;
			}
		}
		path += len;
		path += strspn(path, "/");
	}
	out[n] = 0;
	return n;
}

enum path_top path_classify(const char *path, char *out, size_t size)
{
	/* A directory that is asked for with a slash at its end must be one. */
	bool slash = *path && path[strlen(path) - 1] == '/';
	enum path_top top;
	bool climbs;
	size_t n;

	n = normalise(path, out, size, false, &climbs);
	top = find_top(out, n);
	if (n && climbs) {
		n = normalise(path, out, size, true, &climbs);
		top = find_top(out, n);
		if (top == PATH_OTHER)
			return PATH_LEFT;
	}
	if (!n || top == PATH_OTHER)
		return PATH_OTHER;
	if (slash && n + 2 <= size)
		strcpy(out + n, "/");
	return top;
}

bool path_entry(enum path_top top, const char *path, char *out, size_t size)
{
	const char *rest = path + strlen(path_tops[top]);
	size_t len;

	if (*rest != '/' || !rest[1])
		return false;
	len = rest + 1 - path + strcspn(rest + 1, "/");
	if (len >= size)
		return false;
	memcpy(out, path, len);
	out[len] = 0;
	return true;
}

int path_uverbs(enum path_top top, const char *path)
{
	const char *rest = path + strlen(path_tops[top]);
	unsigned long n;
	char *end;

	if (top != PATH_DEV || strncmp(rest, "/uverbs", 7) || rest[7] < '0' || rest[7] > '9')
		return -1;
	n = strtoul(rest + 7, &end, 10);
	return *end || n > INT_MAX ? -1 : (int)n;
}

/* How many of the @len bytes at @path are "sys-<16 hex digits>", 0 or all of it. */
static size_t tree_name(const char *path, size_t len)
{
	const size_t n = 4 + 16;

	if (len <= n || memcmp(path, "sys-", 4) || path[n] != '/')
		return 0;
	for (size_t i = 4; i < n; i++)
		if (!isxdigit((unsigned char)path[i]))
			return 0;
	return n;
}

size_t path_unmap(char *path, size_t len)
{
	static const char mark[] = "/rxe-xrc";
	const char *end = path + len, *p = path;
	size_t n = 0;

	/* Folders above the tree may have the name, too. */
	while (!n) {
		p = memmem(p, end - p, mark, sizeof(mark) - 1);
		p = p ? memchr(p + 1, '/', end - p - 1) : NULL;
		if (!p)
			return len;
		n = tree_name(p + 1, end - p - 1);
	}
	p += 1 + n;
	if (find_top(p, end - p) == PATH_OTHER)
		return len;
	memmove(path, p, end - p);
	return end - p;
}
