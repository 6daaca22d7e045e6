/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What udp.c (sockets), udp_tx.c (sending) and udp_rx.c (receiving) share; nobody else includes it.
 */
#ifndef RXE_NET_UDP_INT_H
#define RXE_NET_UDP_INT_H

#include "net/ipid.h"
#include "net/udp.h"

#include <netinet/in.h>
#include <sys/socket.h>

/* UDP payload that fits both an IPv4 and an IPv6 datagram. */
#define UDP_PAYLOAD_MAX (65535 - 40 - 8)

union udp_sockaddr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* One address of the device. */
struct udp_sock {
	uint8_t ip[16];
	uint32_t scope_id;
	int fd;	   /* -1 while it is not open */
	int guard; /* lane 0 of several: keeps other processes off the address; -1: none */
	bool v4;
};

/* Messages of one flush at most; a full table is only an early flush. */
#define UDP_TX_MSGS 64
/* Four of the largest GSO sends, each from its own page offset. */
#define UDP_TX_STAGE (4 * (65536 + 4096))
/* Largest number of segments in one send, and what kernels before 6.9 took. */
#define UDP_TX_SEGS	127
#define UDP_TX_SEGS_OLD 64

/* One message for the kernel: a packet, or a run of packets to one destination for UDP_SEGMENT. */
struct udp_msg {
	struct wire_ip ip; /* id is that of the last segment */
	uint32_t scope_id;
	uint32_t off; /* into the staging area */
	uint32_t len; /* bytes, ICRCs included; 0 until its first packet is committed */
	uint16_t seg; /* bytes of each segment but the last */
	uint8_t nsegs;
	uint8_t gid;
	uint8_t flow; /* of its first packet */
	bool closed;  /* its last segment is short: nothing may follow */
};

struct udp_tx {
	uint8_t *stage;
	/* msgs[head..count) are waiting; msgs[count] is being built between reserve and commit. */
	struct udp_msg msgs[UDP_TX_MSGS + 1];
	unsigned int head, count;
	uint32_t used;	       /* bytes of the staging area that are taken */
	uint32_t off, len;     /* the reserved packet, without ICRC */
	struct udp_msg *into;  /* the message that it will belong to */
	unsigned int max_segs; /* 1: no UDP_SEGMENT */
	uint64_t retry_at;  /* when to flush what the kernel had no room for; UINT64_MAX: never */
	uint32_t corrupted; /* packets damaged on purpose: chooses the bit */
	struct mmsghdr hdr[UDP_TX_MSGS];
	struct iovec iov[UDP_TX_MSGS];
	union udp_sockaddr name[UDP_TX_MSGS];
	/* Room for UDP_SEGMENT, TOS and TTL. */
	_Alignas(struct cmsghdr) char control[UDP_TX_MSGS][3 * CMSG_SPACE(sizeof(int))];
};

/* Datagrams that one system call reads at most. */
#define UDP_RX_BUFS 16

struct udp_rx {
	uint8_t *bufs;
	const struct udp_sock *sock; /* that the datagrams below came from */
	unsigned int have, next;     /* datagrams read, and the next one to be cut up */
	/* The datagram that is being cut up. */
	struct wire_ip ip;
	const uint8_t *at;
	uint32_t left, seg;
	unsigned int index; /* of the next segment */
	/* How many datagrams to ask for; while it is 1, for how many reads in a row one came. */
	unsigned int depth, full;
	struct ipid_table ids;
	struct mmsghdr hdr[UDP_RX_BUFS];
	struct iovec iov[UDP_RX_BUFS];
	union udp_sockaddr name[UDP_RX_BUFS];
	/* Room for UDP_GRO and TOS. */
	_Alignas(struct cmsghdr) char control[UDP_RX_BUFS][2 * CMSG_SPACE(sizeof(int))];
};

struct udp_link {
	struct link link;
	struct udp_sock *socks; /* by GID index */
	unsigned int naddrs;
	unsigned int nopen;
	unsigned int lane, nlanes;
	const struct udp_sock *only; /* the open one, while it is the only one */
	int rcvbuf;   /* bytes of the smallest receive buffer, as the kernel accounts them */
	uint64_t now; /* of the last call that said */
	struct udp_tx tx;
	struct udp_rx rx;
};

static inline struct udp_link *udp_link(struct link *l)
{
	return (struct udp_link *)l; /* its first member */
}

/** udp_to_sockaddr() - port 4791 at @ip. Return: the length of the address. */
socklen_t udp_to_sockaddr(union udp_sockaddr *sa, const uint8_t ip[16], uint32_t scope_id);

int udp_tx_init(struct udp_tx *tx, bool gso);
void udp_tx_fini(struct udp_tx *tx);
uint8_t *udp_tx_reserve(struct link *l, const struct link_dest *to, size_t len);
void udp_tx_commit(struct link *l, unsigned int flags);
void udp_tx_flush(struct link *l, uint64_t now);
uint64_t udp_tx_next_deadline(struct link *l);

int udp_rx_init(struct udp_rx *rx);
void udp_rx_fini(struct udp_rx *rx);
unsigned int udp_rx_burst(struct link *l, struct link_rx *v, unsigned int max, uint64_t now);

#endif
