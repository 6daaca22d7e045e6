/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two connected UDP sockets on two addresses of lo, for the bare programs that the device is
 * compared with. */
#ifndef BENCH_UDP_H
#define BENCH_UDP_H

#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Nothing arrives for so long: a packet was lost, or the other end is gone. */
#define GIVE_UP_NS 2000000000u

static inline void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

/* Binds sockets on 127.0.0.1 and 127.0.0.2 and connects each to the other. */
static inline void udp_pair(int fd[2])
{
	struct sockaddr_in addr[2];
	socklen_t len = sizeof(addr[0]);
	int size = 4 << 20;

	for (int i = 0; i < 2; i++) {
		addr[i] = (struct sockaddr_in){
			.sin_family = AF_INET,
			.sin_addr.s_addr = htonl(INADDR_LOOPBACK + i),
		};
		fd[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (fd[i] < 0 || bind(fd[i], (struct sockaddr *)&addr[i], len) ||
		    getsockname(fd[i], (struct sockaddr *)&addr[i], &len))
			die("socket");
		setsockopt(fd[i], SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
		setsockopt(fd[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	}
	for (int i = 0; i < 2; i++) {
		if (connect(fd[i], (struct sockaddr *)&addr[!i], len))
			die("connect");
	}
}

/* Receives by polling, as an engine does whose program polls. */
static inline size_t spin_recv(int fd, void *buf, size_t size)
{
	for (uint64_t start = 0;;) {
		for (int i = 0; i < 10000; i++) {
			ssize_t n = recv(fd, buf, size, MSG_DONTWAIT);

			if (n >= 0)
				return n;
			if (errno != EAGAIN && errno != EINTR)
				die("recv");
		}
		if (!start)
			start = now_ns();
		else if (now_ns() - start > GIVE_UP_NS) {
			errno = ETIMEDOUT;
			die("recv");
		}
	}
}

/* The other end, on CPU 1; gone when its parent is. */
static inline pid_t fork_peer(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin_cpu(pid ? 0 : 1);
	return pid;
}

/* Waits for the other end; its status is the program's. */
static inline int join_peer(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 1;
	return WEXITSTATUS(status);
}

#endif
