// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The link over UDP sockets: RoCEv2 on port 4791. Here: the sockets. udp_tx.c sends, udp_rx.c
 * receives.
 *
 * Theory. One socket for each address (GID index) in use, bound to the address and port 4791 and
 * not connected, because the ICRC covers the IPv4 header and only an unconnected socket with
 * IP_PMTUDISC_PROBE (or DO) sends what is known beforehand: identification 0 and DF; with
 * UDP_SEGMENT i for segment i (Linux 6.18, captured on lo and veth). PROBE rather than DO, so that
 * a forged "fragmentation needed" cannot stop a flow. The UDP source port is 4791 for all flows:
 * link_dest.sport is not used.
 *
 * One lane: no SO_REUSEADDR or SO_REUSEPORT. Two sockets on one address would steal each other's
 * packets, so the second open fails with -EADDRINUSE.
 *
 * Several lanes: a link and a socket for each, all bound to the address with SO_REUSEPORT. The kernel
 * gives a datagram to the socket whose place in the group the steering program says: the low bits
 * of the destination QP, the same as engine/lane.h: lane_of(). It runs on the first packet of what
 * UDP_SEGMENT or GRO has merged; the rest may be for other lanes, and the engine hands it over.
 * A socket's place is the order of binding, and closing one moves the last into the hole: so lanes
 * open an address in order and close it together. SO_REUSEPORT alone would let any process of the
 * user join the group, so lane 0 holds a guard as well: an abstract Unix socket named after user and
 * address, which the kernel keeps unique in the network namespace and takes away with the process.
 * (A process with one lane and one with several keep each other out by the port itself, and so do
 * two users.)
 *
 * The kernel does the UDP checksums; a peer that sends none
 * (Linux' rdma_rxe on IPv6) needs UDP_NO_CHECK6_RX here.
 *
 * ICMP errors do not reach an unconnected socket that does not set IP_RECVERR.
 *
 *	  lane                udp_tx.c                         udp_rx.c             lane
 *	reserve,commit -> [pkt|icrc][pkt|icrc].. -sendmsg--> [pkt|icrc][pkt|icrc].. -> check, burst
 *	                   one UDP_SEGMENT send               one UDP_GRO receive
 *
 * link->fd is an epoll descriptor that holds the sockets, so it does not change when one is added.
 */
#include "net/udp_int.h"

#include "base/log.h"
#include "base/macros.h"
#include "wire/hdr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/un.h>
#include <unistd.h>

/* What we ask for; an ordinary user gets net.core.rmem_max and wmem_max, 212992 on Debian. */
#define RCVBUF_ASK (4 << 20)
#define SNDBUF_ASK (1 << 20)
/* Accounted bytes when 212992 was given: the kernel doubles it. */
#define RCVBUF_DEFAULT (2 * 212992)

socklen_t udp_to_sockaddr(union udp_sockaddr *sa, const uint8_t ip[16], uint32_t scope_id)
{
	if (wire_ip_is_v4(ip)) {
		sa->in = (struct sockaddr_in){.sin_family = AF_INET,
					      .sin_port = htons(WIRE_UDP_PORT)};
		memcpy(&sa->in.sin_addr, ip + 12, 4);
		return sizeof(sa->in);
	}
	sa->in6 = (struct sockaddr_in6){.sin6_family = AF_INET6,
					.sin6_port = htons(WIRE_UDP_PORT),
					.sin6_scope_id = scope_id};
	memcpy(&sa->in6.sin6_addr, ip, 16);
	return sizeof(sa->in6);
}

struct option_row {
	int level, name, value;
	bool required; /* without it packets would be wrong; the others only cost speed or a field
			*/
	const char *text;
};

#define V4(name, value, required)                                                                  \
	{                                                                                          \
		IPPROTO_IP, name, value, required, #name                                           \
	}
#define V6(name, value, required)                                                                  \
	{                                                                                          \
		IPPROTO_IPV6, name, value, required, #name                                         \
	}
#define UDP(name, value, required)                                                                 \
	{                                                                                          \
		IPPROTO_UDP, name, value, required, #name                                          \
	}

static const struct option_row options_v4[] = {
	V4(IP_MTU_DISCOVER, IP_PMTUDISC_PROBE, true),
	V4(IP_RECVTOS, 1, false), /* ECN */
	UDP(UDP_GRO, 1, false),
};

static const struct option_row options_v6[] = {
	V6(IPV6_V6ONLY, 1, true),      V6(IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE, true),
	V6(IPV6_DONTFRAG, 1, true), /* IPv6 would fragment where IPv4 says EMSGSIZE */
	V6(IPV6_RECVTCLASS, 1, false), UDP(UDP_NO_CHECK6_RX, 1, true),
	UDP(UDP_GRO, 1, false),
};

static int set_options(int fd, const struct option_row *row, size_t n)
{
	for (; n--; row++) {
		if (!setsockopt(fd, row->level, row->name, &row->value, sizeof(row->value)))
			continue;
		if (row->required)
			return -errno;
		log_info("no %s: %s", row->text, strerror(errno));
	}
	return 0;
}

/* Return: bytes that the buffer really has, as the kernel accounts them. */
static int set_buffer(int fd, int force, int plain, int ask)
{
	int got = 0;
	socklen_t len = sizeof(got);

	/* FORCE goes beyond rmem_max and needs CAP_NET_ADMIN; plain cuts to the limit and succeeds.
	 */
	if (setsockopt(fd, SOL_SOCKET, force, &ask, sizeof(ask)))
		setsockopt(fd, SOL_SOCKET, plain, &ask, sizeof(ask));
	getsockopt(fd, SOL_SOCKET, plain, &got, &len);
	return got;
}

/* Return: a descriptor that nobody else gets while it is open, or -EADDRINUSE, or another -errno. */
static int open_guard(const struct udp_sock *s)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char text[INET6_ADDRSTRLEN];
	int fd, len, err;

	inet_ntop(AF_INET6, s->ip, text, sizeof(text));
	/* A first byte of 0 makes it abstract. */
	len = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "rxe-xrc/port/%u/%s%%%u",
		       (unsigned int)geteuid(), text, (unsigned int)s->scope_id);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&a, offsetof(struct sockaddr_un, sun_path) + 1 + len)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* Bytes 4 to 7 of the UDP payload are a reserved byte and the destination QP. */
static void attach_steering(int fd, unsigned int nlanes)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, nlanes - 1),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_fprog prog;

	/* The padding, too: the kernel is given whole structures, and valgrind looks at what it is given. */
	memset(&prog, 0, sizeof(prog));
	prog.len = ARRAY_SIZE(code);
	prog.filter = code;
	/* Without it the kernel spreads by address and port, and the engine hands packets over. */
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &prog, sizeof(prog)))
		log_warn("packets cannot be steered to lanes: %s", strerror(errno));
}

/* Return: the descriptor, bound, or -errno. */
static int open_socket(const struct udp_link *u, const struct udp_sock *s, int *rcvbuf)
{
	union udp_sockaddr sa;
	socklen_t len = udp_to_sockaddr(&sa, s->ip, s->scope_id);
	int fd, err, one = 1;

	fd = socket(sa.sa.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (s->v4)
		err = set_options(fd, options_v4, ARRAY_SIZE(options_v4));
	else
		err = set_options(fd, options_v6, ARRAY_SIZE(options_v6));
	if (err)
		goto err_close;
	*rcvbuf = set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, RCVBUF_ASK);
	set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, SNDBUF_ASK);
	if ((u->nlanes > 1 && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one))) ||
	    bind(fd, &sa.sa, len)) {
		err = -errno;
		goto err_close;
	}
	if (u->nlanes > 1 && !u->lane)
		attach_steering(fd, u->nlanes);
	return fd;

err_close:
	close(fd);
	return err;
}

static void drop_guard(struct udp_sock *s)
{
	if (s->guard >= 0)
		close(s->guard);
	s->guard = -1;
}

static int udp_open_gid(struct link *l, unsigned int gid)
{
	static const uint8_t unused[16];
	struct udp_link *u = udp_link(l);
	struct epoll_event ev = {.events = EPOLLIN};
	struct udp_sock *s;
	int fd, rcvbuf = 0, err;

	if (gid >= u->naddrs || !memcmp(u->socks[gid].ip, unused, 16))
		return -EINVAL;
	s = &u->socks[gid];
	if (s->fd >= 0)
		return 0;
	if (u->nlanes > 1 && !u->lane) {
		s->guard = open_guard(s);
		if (s->guard < 0)
			return s->guard;
	}
	fd = open_socket(u, s, &rcvbuf);
	if (fd < 0) {
		err = fd;
		goto err_guard;
	}
	ev.data.ptr = s;
	if (epoll_ctl(l->fd, EPOLL_CTL_ADD, fd, &ev)) {
		err = -errno;
		goto err_close;
	}
	s->fd = fd;
	if (!u->nopen || rcvbuf < u->rcvbuf)
		u->rcvbuf = rcvbuf;
	u->only = u->nopen++ ? NULL : s;
	return 0;

err_close:
	close(fd);
err_guard:
	drop_guard(s);
	return err;
}

/*
 * Memory that the kernel charges for one datagram on lo: the sk_buff (256) and its data, which is
 * rounded up to a power of two and holds the headers and 320 bytes of bookkeeping. Exact for 84,
 * 276, 1044 and 4116 bytes on Linux 6.18; GSO with GRO takes about half of it. A NIC's driver may
 * charge more or less.
 */
static unsigned int truesize(size_t len)
{
	size_t data = 512;

	while (data < len + 20 + 8 + 16 + 320)
		data *= 2;
	return data == 512 ? 832 : 256 + data;
}

static unsigned int udp_rx_capacity(struct link *l, size_t len)
{
	return udp_link(l)->rcvbuf / truesize(len + WIRE_ICRC_LEN);
}

static void udp_destroy(struct link *l)
{
	struct udp_link *u = udp_link(l);

	for (unsigned int i = 0; i < u->naddrs; i++) {
		if (u->socks[i].fd >= 0)
			close(u->socks[i].fd);
		drop_guard(&u->socks[i]);
	}
	close(l->fd);
	udp_rx_fini(&u->rx);
	udp_tx_fini(&u->tx);
	free(u->socks);
	free(u);
}

static const struct link_ops udp_ops = {
	.open_gid = udp_open_gid,
	.tx_reserve = udp_tx_reserve,
	.tx_commit = udp_tx_commit,
	.tx_flush = udp_tx_flush,
	.rx_burst = udp_rx_burst,
	.next_deadline = udp_tx_next_deadline,
	.rx_capacity = udp_rx_capacity,
	.destroy = udp_destroy,
};

int udp_create(const struct udp_config *config, struct stats *stats, struct link **out)
{
	struct udp_link *u = calloc(1, sizeof(*u));
	int err = -ENOMEM;

	if (!u)
		return err;
	u->link = (struct link){.ops = &udp_ops, .stats = stats};
	u->rcvbuf = RCVBUF_DEFAULT;
	u->naddrs = config->naddrs;
	u->lane = config->lane;
	u->nlanes = config->nlanes;
	u->socks = calloc(config->naddrs ? config->naddrs : 1, sizeof(*u->socks));
	if (!u->socks)
		goto err_free;
	for (unsigned int i = 0; i < u->naddrs; i++) {
		memcpy(u->socks[i].ip, config->addrs[i].ip, 16);
		u->socks[i].scope_id = config->addrs[i].scope_id;
		u->socks[i].v4 = wire_ip_is_v4(u->socks[i].ip);
		u->socks[i].fd = u->socks[i].guard = -1;
	}
	err = udp_tx_init(&u->tx, config->gso);
	if (err)
		goto err_socks;
	err = udp_rx_init(&u->rx);
	if (err)
		goto err_tx;
	u->link.fd = epoll_create1(EPOLL_CLOEXEC);
	if (u->link.fd < 0) {
		err = -errno;
		goto err_rx;
	}
	*out = &u->link;
	return 0;

err_rx:
	udp_rx_fini(&u->rx);
err_tx:
	udp_tx_fini(&u->tx);
err_socks:
	free(u->socks);
err_free:
	free(u);
	return err;
}
