/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A bare UDP ping-pong: what the kernel's path costs by itself, for the latency of a message.
 *
 * Two processes on CPU 0 and 1, connected sockets, receiving by polling. The difference to
 * ib_send_lat is the transport: headers, checks, ICRC and completions. An XRC SEND adds 20 bytes to
 * its message, so that many are added here.
 *
 * udp_pp [BYTES]: prints the median half round trip in microseconds.
 */
#include "udp.h"

#define ROUNDS	 50000
#define OVERHEAD 20 /* BTH, XRCETH, ICRC */

static void echo(int fd, char *buf, size_t size)
{
	for (int i = 0; i < ROUNDS; i++) {
		size_t n = spin_recv(fd, buf, size);

		if (send(fd, buf, n, 0) < 0)
			die("send");
	}
}

/* The median of single rounds, as perftest's typical latency is. */
static double ping(int fd, char *buf, size_t size)
{
	static double half[ROUNDS];
	uint64_t start = now_ns(), end;

	for (int k = 0; k < ROUNDS; k++) {
		if (send(fd, buf, size, 0) < 0)
			die("send");
		spin_recv(fd, buf, size);
		end = now_ns();
		half[k] = (double)(end - start) / 2 / 1000;
		start = end;
	}
	return median(half, ROUNDS);
}

int main(int argc, char **argv)
{
	static char buf[65536];
	size_t size = (argc > 1 ? strtoul(argv[1], NULL, 10) : 64) + OVERHEAD;
	int fd[2];
	pid_t peer;

	if (size > 60000) {
		fprintf(stderr, "udp_pp: at most 59980 bytes\n");
		return 2;
	}
	udp_pair(fd);
	peer = fork_peer();
	if (!peer) {
		echo(fd[1], buf, sizeof(buf));
		_exit(0);
	}
	printf("%.3f\n", ping(fd[0], buf, size));
	return join_peer(peer);
}
