/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A counting semaphore that programs can poll: the descriptor of a queue of events.
 *
 * Completion channels and asynchronous events give programs a descriptor that they hand to poll, epoll
 * and fcntl(O_NONBLOCK). An eventfd in semaphore mode is one: each event gives a token, whoever gets
 * an event takes one first. The event is queued before its token is given, so a token promises an event,
 * but for one that was taken back in between (its object was destroyed).
 */
#ifndef RXE_VERBS_TOKENS_H
#define RXE_VERBS_TOKENS_H

#include <stdint.h>

/** tokens_open() - a descriptor without tokens, close-on-exec; or -errno. */
int tokens_open(void);

/** tokens_give() - one more. Never blocks, keeps errno. */
void tokens_give(int fd);

/**
 * tokens_take() - waits for one, or not, as the descriptor's O_NONBLOCK says. A cancellation point: call
 * it without a lock. Return: 0, or -1 with errno (EAGAIN, EINTR).
 */
int tokens_take(int fd);

/** tokens_drop() - takes back up to @n tokens, without waiting. Keeps errno. */
void tokens_drop(int fd, unsigned int n);

#endif
