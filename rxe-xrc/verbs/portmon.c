/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Link and address changes, read from an rtnetlink socket.
 *
 * The socket belongs to the network namespace that it was opened in, like the device's own sockets.
 * It is read until it is empty. When the kernel had to drop messages (ENOBUFS) nobody knows what
 * they said, and the caller is told to look at everything.
 */
#include "verbs/portmon.h"

#include "base/macros.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

int portmon_open(void)
{
	struct sockaddr_nl addr = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	int rc;

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

/* One message. Return: whether it was told. */
static bool tell(const struct nlmsghdr *h, portmon_cb *cb, void *arg)
{
	const unsigned int running = IFF_UP | IFF_RUNNING;
	const struct ifinfomsg *link = NLMSG_DATA(h);
	const struct ifaddrmsg *addr = NLMSG_DATA(h);
	bool is_link = h->nlmsg_type == RTM_NEWLINK || h->nlmsg_type == RTM_DELLINK;

	if (is_link && h->nlmsg_len >= NLMSG_LENGTH(sizeof(*link))) {
		bool up = h->nlmsg_type == RTM_NEWLINK && (link->ifi_flags & running) == running;

		cb(arg, link->ifi_index, up ? PORT_UP : PORT_DOWN);
		return true;
	}
	if ((h->nlmsg_type == RTM_NEWADDR || h->nlmsg_type == RTM_DELADDR) &&
	    h->nlmsg_len >= NLMSG_LENGTH(sizeof(*addr))) {
		cb(arg, addr->ifa_index, ADDR_CHANGE);
		return true;
	}
	return false;
}

static int tell_all(const void *b, ssize_t len, portmon_cb *cb, void *arg)
{
	const struct nlmsghdr *h = b;
	unsigned int left = len;
	int told = 0;

	for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left))
		told += tell(h, cb, arg);
	return told;
}

int portmon_read(int fd, portmon_cb *cb, void *arg)
{
	int told = 0;

	for (;;) {
		uint8_t b[16384] __attribute__((aligned(NLMSG_ALIGNTO)));
		struct sockaddr_nl from = {0};
		socklen_t from_len = sizeof(from);
		ssize_t n = recvfrom(fd, b, sizeof(b), 0, (struct sockaddr *)&from, &from_len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == ENOBUFS) {
			cb(arg, 0, ADDR_CHANGE);
			told++;
			continue;
		}
		if (n < 0)
			return errno == EAGAIN ? told : -errno;
		if (!n)
			return told;
		/* Other processes can send to the socket; only the kernel is believed. */
		if (!from.nl_pid)
			told += tell_all(b, n, cb, arg);
	}
}
