/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An eventfd as a counting semaphore. */
#include "verbs/tokens.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

int tokens_open(void)
{
	int fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

void tokens_give(int fd)
{
	int saved = errno;
	uint64_t one = 1;

	/* Only 2^64 - 1 tokens could make it fail. */
	if (write(fd, &one, sizeof(one)) < 0)
		errno = saved;
}

int tokens_take(int fd)
{
	uint64_t one;

	return read(fd, &one, sizeof(one)) == sizeof(one) ? 0 : -1;
}

/* One token if there is one now; a reader may be faster, and O_NONBLOCK is the program's to set. */
static int take_now(int fd)
{
	uint64_t one;
	struct iovec iov = {&one, sizeof(one)};
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (preadv2(fd, &iov, 1, -1, RWF_NOWAIT) == sizeof(one))
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL)
		return -1;
	/* Linux before 5.8: not safe against a reader between the two calls, but as good as it gets. */
	return poll(&p, 1, 0) == 1 && read(fd, &one, sizeof(one)) == sizeof(one) ? 0 : -1;
}

void tokens_drop(int fd, unsigned int n)
{
	int saved = errno;

	while (n-- && !take_now(fd))
		;
	errno = saved;
}
