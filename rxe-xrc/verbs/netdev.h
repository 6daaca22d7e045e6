/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From network interfaces to devices: which are offered, their names, GIDs and MTU. Theory in
 * netdev.c.
 */
#ifndef RXE_VERBS_NETDEV_H
#define RXE_VERBS_NETDEV_H

#include "engine/engine.h"
#include "verbs/config.h"

#include <infiniband/verbs.h>
#include <net/if.h>

#define NETDEV_MAX 64

struct netdev {
	char ifname[IF_NAMESIZE];
	char ibname[IBV_SYSFS_NAME_MAX]; /* "xrc_lo" */
	unsigned int ifindex;
	int index;	     /* ibv_get_device_index(): above all of the kernel's */
	unsigned int uverbs; /* N of /dev/infiniband/uverbsN; no real device has it */
	__be64 guid;
	enum ibv_mtu active_mtu;
	bool up;   /* administratively and with a carrier: the port is ACTIVE */
	bool soft; /* no hardware below, as far as can be seen from here: GSO is safe */
	struct engine_gid gids[RXE_MAX_GIDS];
	unsigned int ngids; /* at least 1 */
};

/**
 * netdev_list() - the devices that the settings of this process ask for, in listing order.
 *
 * Reads the interfaces anew at each call. Errors (no such interface, no such address) are logged
 * once and give an empty list. Any thread; allocates. Return: how many were put into @v, at most
 * @max.
 */
int netdev_list(struct netdev *v, int max);

/**
 * netdev_find() - the same for given settings.
 * @why: on failure the reason, in words
 *
 * Return: count, or -ENODEV (no such interface), -EADDRNOTAVAIL (no such address, or none at all),
 * -EMSGSIZE (the named interface's MTU is too small), or another -errno.
 */
int netdev_find(const struct config *c, struct netdev *v, int max, char *why, size_t size);

/** netdev_mtu() - the largest IB MTU whose packets fit an interface MTU of @mtu bytes; 0 when none
 * does. */
enum ibv_mtu netdev_mtu(unsigned int mtu);

#endif
