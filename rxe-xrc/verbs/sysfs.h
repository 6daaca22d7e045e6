/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The private tree that stands for /sys/class/infiniband* and /dev/infiniband. Theory in sysfs.c;
 * used by fs.c. */
#ifndef RXE_VERBS_SYSFS_H
#define RXE_VERBS_SYSFS_H

#include "verbs/netdev.h"

/**
 * sysfs_root() - directory below which the tree lies ("<root>/sys/class/infiniband/..."), no slash
 * at its end.
 *
 * Built at the first call, and again after sysfs_invalidate(). The string stays valid for ever. Any
 * thread. Return: NULL when it cannot be had (logged once): the real paths are used then.
 */
const char *sysfs_root(void);

/** sysfs_invalidate() - addresses or link states changed: build the tree anew at the next access.
 */
void sysfs_invalidate(void);

/**
 * sysfs_build() - the tree of @n devices in a directory of its own below @dir.
 * @dir: exists, belongs to the user
 * @root: where the tree is now
 *
 * Trees of equal content share one directory, between processes too. Return: 0 or -errno.
 */
int sysfs_build(const char *dir, const struct netdev *v, int n, char *root, size_t size);

/** sysfs_uverbs_rdev() - device number that /dev/infiniband/uverbs@n reports. */
unsigned long sysfs_uverbs_rdev(unsigned int n);

#endif
