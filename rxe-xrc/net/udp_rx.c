// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The UDP link's receiving side: reads datagrams, cuts GRO's up again, and checks each packet's
 * ICRC.
 *
 * Theory. A read costs 270 ns when nothing is there, so an idle link asks for one datagram with
 * recvmsg(); recvmmsg() costs more on an empty socket (400 ns) and pays when several wait. After a
 * few reads in a row that brought one, the depth of a read doubles with each that brings all it
 * asked for, and halves with each that does not: a ping-pong stays at one, a stream of single
 * datagrams soon gets 16 a call. It does not grow when the datagrams held more packets than the
 * caller takes anyway. With several sockets open one epoll_wait() (157 ns) names a ready one, in
 * turn.
 *
 * A datagram with UDP_GRO's cmsg is a run of packets of that size, the last perhaps shorter. What
 * does not fit the caller's burst waits for the next; nothing is read before all is handed out, so
 * a burst's packets stay readable until the next call.
 *
 * ICRC on IPv4: guess the identification and compute once; if the result is wrong, the difference
 * is solved for the difference of the identifications (the CRC is linear, so any guess will do as
 * the base), and ipid.c says whether the answer is plausible.
 */
#include "net/udp_int.h"

#include "base/macros.h"
#include "wire/hdr.h"

#include <errno.h>
#include <endian.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#define BUF_LEN 65536
/* Not a multiple of 64 KiB, or the buffers' first lines would all fall into one set of the caches.
 */
#define BUF_STRIDE (BUF_LEN + 4096 + 2 * CACHE_LINE)
/* Reads in a row that brought their one datagram before more are asked for. */
#define FULL_READS 4
/* Reads without one good packet before the caller gets its thread back. */
#define BAD_READS 8

static uint8_t *buf_of(const struct udp_rx *rx, unsigned int i)
{
	return rx->bufs + (size_t)i * BUF_STRIDE;
}

static const struct udp_sock *ready_socket(struct udp_link *u)
{
	struct epoll_event ev;

	if (likely(u->only != NULL) || !u->nopen)
		return u->only;
	/* Level-triggered: the one that is named goes to the end of the kernel's list. */
	return epoll_wait(u->link.fd, &ev, 1, 0) == 1 ? ev.data.ptr : NULL;
}

/* @plenty: they hold more packets than the caller takes at once. */
static void adapt_depth(struct udp_rx *rx, unsigned int got, bool plenty)
{
	if (got < rx->depth) {
		rx->depth = max_t(unsigned int, rx->depth / 2, 1);
		rx->full = 0;
	} else if (!plenty && (rx->depth > 1 || ++rx->full >= FULL_READS)) {
		rx->depth = min_t(unsigned int, 2 * rx->depth, UDP_RX_BUFS);
	}
}

/* Return: whether there is a datagram. */
static bool read_datagrams(struct udp_link *u)
{
	struct udp_rx *rx = &u->rx;
	const struct udp_sock *s = ready_socket(u);
	size_t bytes = 0;
	ssize_t ret;

	rx->have = rx->next = 0;
	if (!s)
		return false;
	for (unsigned int i = 0; i < rx->depth; i++) {
		rx->hdr[i].msg_hdr.msg_namelen = sizeof(rx->name[i]);
		rx->hdr[i].msg_hdr.msg_controllen = sizeof(rx->control[i]);
	}
	if (rx->depth == 1) {
		ret = recvmsg(s->fd, &rx->hdr[0].msg_hdr, MSG_DONTWAIT);
		if (ret >= 0) {
			rx->hdr[0].msg_len = ret;
			ret = 1;
		}
	} else {
		ret = recvmmsg(s->fd, rx->hdr, rx->depth, MSG_DONTWAIT, NULL);
	}
	rx->have = ret > 0 ? ret : 0;
	rx->sock = s;
	for (unsigned int i = 0; i < rx->have; i++)
		bytes += rx->hdr[i].msg_len;
	adapt_depth(rx, rx->have, bytes > 2 * BUF_LEN);
	return rx->have;
}

static void read_cmsgs(struct udp_rx *rx, struct msghdr *h)
{
	int seg;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
			memcpy(&seg, CMSG_DATA(c), sizeof(seg));
			if (seg > 0)
				rx->seg = seg;
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
			rx->ip.tos = *CMSG_DATA(c);
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
			int tclass;

			memcpy(&tclass, CMSG_DATA(c), sizeof(tclass));
			rx->ip.tos = tclass;
		}
	}
}

/* The next datagram becomes the one that is being cut up. */
static void open_datagram(struct udp_rx *rx)
{
	static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};
	unsigned int i = rx->next++;
	const union udp_sockaddr *from = &rx->name[i];

	rx->at = buf_of(rx, i);
	rx->left = rx->seg = rx->hdr[i].msg_len;
	rx->index = 0;
	rx->ip = (struct wire_ip){0};
	memcpy(rx->ip.dst, rx->sock->ip, 16);
	if (rx->sock->v4) {
		memcpy(rx->ip.src, v4_prefix, 12);
		memcpy(rx->ip.src + 12, &from->in.sin_addr, 4);
		rx->ip.sport = ntohs(from->in.sin_port);
	} else {
		memcpy(rx->ip.src, &from->in6.sin6_addr, 16);
		rx->ip.sport = ntohs(from->in6.sin6_port);
	}
	read_cmsgs(rx, &rx->hdr[i].msg_hdr);
}

/* Return: whether the ICRC is right; ip.id is then the packet's, and 0 otherwise. */
static bool check_icrc(struct udp_link *u, struct wire_ip *ip, const uint8_t *b, size_t len,
		       unsigned int index)
{
	struct ipid_source *source;
	uint32_t icrc;
	uint16_t off;

	memcpy(&icrc, b + len, sizeof(icrc));
	icrc = le32toh(icrc);
	ip->id = 0;
	if (!u->rx.sock->v4)
		return wire_icrc(ip, b, len) == icrc;

	source = ipid_source(&u->rx.ids, ip->src);
	ip->id = ipid_guess(source, index);
	icrc ^= wire_icrc(ip, b, len);
	if (likely(!icrc)) {
		ipid_seen(source, ip->id, index, u->now);
		return true;
	}
	if (!wire_icrc_solve(len, icrc, &off) ||
	    !ipid_accept(source, ip->id ^ off, index, u->now)) {
		ip->id = 0;
		return false;
	}
	ip->id ^= off;
	stats_inc(u->link.stats, STAT_icrc_solved);
	return true;
}

/* One packet from the datagram that is being cut up. Return: whether it is good. */
static bool take_packet(struct udp_link *u, struct link_rx *v)
{
	struct udp_rx *rx = &u->rx;
	struct link *l = &u->link;
	const uint8_t *b = rx->at;
	uint32_t size = min_t(uint32_t, rx->seg, rx->left);
	unsigned int index = rx->index++;
	bool good;

	rx->at += size;
	rx->left -= size;
	if (size < WIRE_BTH_LEN + WIRE_ICRC_LEN) {
		stats_drop(l->stats, DROP_short);
		return false;
	}
	v->data = b;
	v->len = size - WIRE_ICRC_LEN;
	v->ip = rx->ip;
	good = check_icrc(u, &v->ip, b, v->len, index);
	/* A capture shows damaged packets as well: that is what it is looked at for. */
	if (unlikely(l->tap != NULL))
		l->tap->packet(l->tap, LINK_RECEIVED, &v->ip, b, size);
	if (!good) {
		stats_drop(l->stats, DROP_icrc);
		return false;
	}
	stats_add(l->stats, STAT_rx_bytes, v->len);
	return true;
}

unsigned int udp_rx_burst(struct link *l, struct link_rx *v, unsigned int max, uint64_t now)
{
	struct udp_link *u = udp_link(l);
	struct udp_rx *rx = &u->rx;
	unsigned int n = 0;

	u->now = now;
	for (unsigned int reads = 0; !n && reads < BAD_READS; reads++) {
		if (!rx->left && rx->next == rx->have && !read_datagrams(u))
			break;
		while (n < max) {
			if (!rx->left) {
				if (rx->next == rx->have)
					break;
				open_datagram(rx);
			}
			n += take_packet(u, &v[n]);
		}
	}
	if (n)
		stats_add(l->stats, STAT_rx_packets, n);
	return n;
}

int udp_rx_init(struct udp_rx *rx)
{
	/* Pages that no datagram reaches are never touched. */
	rx->bufs = mmap(NULL, (size_t)UDP_RX_BUFS * BUF_STRIDE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (rx->bufs == MAP_FAILED)
		return -errno;
	rx->depth = 1;
	for (unsigned int i = 0; i < UDP_RX_BUFS; i++) {
		rx->iov[i] = (struct iovec){buf_of(rx, i), BUF_LEN};
		rx->hdr[i].msg_hdr = (struct msghdr){
			.msg_name = &rx->name[i],
			.msg_iov = &rx->iov[i],
			.msg_iovlen = 1,
			.msg_control = rx->control[i],
		};
	}
	return 0;
}

void udp_rx_fini(struct udp_rx *rx)
{
	munmap(rx->bufs, (size_t)UDP_RX_BUFS * BUF_STRIDE);
}
