/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * File access that goes round our own interposers.
 *
 * This library replaces open(), stat() and their kin in the process, itself included. What looks
 * for the host's real files, or builds the private tree, asks the kernel directly instead.
 * (fdopendir(), readdir() and what takes a descriptor are not replaced and may be used.)
 */
#ifndef RXE_VERBS_RAWFS_H
#define RXE_VERBS_RAWFS_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <unistd.h>

static inline int raw_openat(int dirfd, const char *path, int flags, unsigned int mode)
{
	return syscall(SYS_openat, dirfd, path, flags | O_CLOEXEC, mode);
}

static inline bool raw_exists(const char *path)
{
	return !syscall(SYS_faccessat, AT_FDCWD, path, F_OK);
}

/* raw_lstat() - type, mode, owner and times; links are not followed. 0 or -1 with errno. */
static inline int raw_lstat(int dirfd, const char *path, struct statx *st)
{
	return syscall(SYS_statx, dirfd, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
		       STATX_BASIC_STATS, st);
}

/* raw_readlink() - into @buf, terminated. Length or -errno; -ENAMETOOLONG when it does not fit. */
static inline int raw_readlink(const char *path, char *buf, size_t size)
{
	long n = syscall(SYS_readlinkat, AT_FDCWD, path, buf, size);

	if (n < 0)
		return -errno;
	if ((size_t)n >= size)
		return -ENAMETOOLONG;
	buf[n] = 0;
	return n;
}

/* raw_read_line() - the first line of a small file, without its newline. Length or -errno. */
static inline int raw_read_line(const char *path, char *buf, size_t size)
{
	int fd = raw_openat(AT_FDCWD, path, O_RDONLY, 0);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	if (n < 0)
		n = -errno;
	close(fd);
	if (n < 0)
		return n;
	buf[n] = 0;
	for (ssize_t i = 0; i < n; i++) {
		if (buf[i] == '\n') {
			buf[i] = 0;
			return i;
		}
	}
	return n;
}

/* raw_opendir() - closedir() closes it. NULL with errno. */
static inline DIR *raw_opendir(const char *path)
{
	int fd = raw_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	DIR *dir;

	if (fd < 0)
		return NULL;
	dir = fdopendir(fd);
	if (!dir)
		close(fd);
	return dir;
}

#endif
