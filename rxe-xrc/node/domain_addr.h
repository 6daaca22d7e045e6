/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What both sides of a connection between processes must agree on: its address, and who may be there. */
#ifndef RXE_NODE_DOMAIN_ADDR_H
#define RXE_NODE_DOMAIN_ADDR_H

#include "engine/foreign.h"

#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/*
 * Changes with every change of struct foreign_request, struct foreign_reply and enum verdict: libraries of
 * different builds do not meet.
 */
#define DOMAIN_VERSION 1

/* The address of the block that begins with @first. Return: its length. */
static inline socklen_t domain_addr(struct sockaddr_un *a, unsigned int ifindex, uint32_t first)
{
	int n;

	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* A first byte of 0 makes it abstract. */
	n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "rxe-xrc/srq/%u/%u/%u/%06x",
		     DOMAIN_VERSION, (unsigned int)geteuid(), ifindex, (unsigned int)first);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static inline bool domain_peer_is_us(int fd)
{
	struct ucred cred = {};
	socklen_t len = sizeof(cred);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) && cred.uid == geteuid();
}

static inline uint64_t domain_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* One part of domain_fork_*() each. */
void domain_ask_fork_prepare(void);
void domain_ask_fork_parent(void);
void domain_ask_fork_child(void);
void domain_ask_detach(struct engine *e);

#endif
