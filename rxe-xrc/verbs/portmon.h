/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tells when interfaces go up or down and when their addresses change, from rtnetlink. */
#ifndef RXE_VERBS_PORTMON_H
#define RXE_VERBS_PORTMON_H

enum portmon_what {
	PORT_UP,     /* up and with a carrier */
	PORT_DOWN,   /* down, without carrier, or gone */
	ADDR_CHANGE, /* an address came or went */
};

/*
 * The kernel repeats a link's state whenever anything about the link changes, so PORT_UP and
 * PORT_DOWN are states and not edges: compare with what is known. @ifindex 0: messages were lost,
 * look at everything.
 */
typedef void portmon_cb(void *arg, unsigned int ifindex, enum portmon_what what);

/** portmon_open() - a non-blocking, close-on-exec descriptor that is readable when something
 * changed, or -errno. */
int portmon_open(void);

/** portmon_read() - calls @cb for all that has happened; never blocks. Return: number of calls, or
 * -errno. */
int portmon_read(int fd, portmon_cb *cb, void *arg);

#endif
