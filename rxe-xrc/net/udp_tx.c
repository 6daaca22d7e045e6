// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The UDP link's sending side: packets are built in a staging area and go out in few system calls.
 *
 * Theory. tx_reserve() decides where a packet goes. When it has the destination and the flow of the
 * packet before and at most its size, it is placed right behind it and joins its message; the kernel will
 * cut the message at each seg bytes (UDP_SEGMENT), so only the last may be shorter. Otherwise it
 * begins a message. tx_commit() therefore knows the segment's index, which is its IPv4
 * identification, and makes the ICRC.
 *
 *	stage  |....[BTH..pad|ICRC][BTH..pad|ICRC][BTH|ICRC]....[BTH..pad|ICRC]...
 *	            ^ msgs[0].off, 3 segments, closed            ^ msgs[1].off
 *
 * Sending costs about 2.6 us a call and 0.1 us a 4 KiB segment (measured on lo, Linux 6.18), so 15
 * segments in a call are four to eight times as fast as 15 calls; sendmmsg() saves another 10 to
 * 20 % over single calls.
 *
 * Messages of large packets begin at page offset 2048: the kernel's copy (rep movsb) falls from 280
 * to 1380 ns per 4 KiB when source and destination are a little more than a multiple of 4096 apart.
 *
 * When the kernel has no room (EAGAIN, ENOBUFS) what is left stays, in order, until the next flush;
 * the staging area is reused from its beginning only when all of it is gone. Any other error costs
 * that one message, which the transport will repeat. A kernel or device that refuses UDP_SEGMENT
 * gets the segments one by one, and no further request for it.
 */
#include "net/udp_int.h"

#include "base/log.h"
#include "base/macros.h"
#include "wire/hdr.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/mman.h>

#define DEFAULT_TTL  64
#define LARGE_PACKET 1024
#define RETRY_NS     50000

/* A hop limit of 0 would not leave the host, and programs leave the field 0 where they do not care.
 */
static uint8_t ttl_of(const struct link_dest *to)
{
	return to->ttl ? to->ttl : DEFAULT_TTL;
}

static bool same_dest(const struct udp_msg *m, const struct link_dest *to)
{
	return !memcmp(m->ip.dst, to->dgid, 16) && m->gid == to->sgid_index &&
	       (m->flow == to->flow || to->flow == LINK_FLOW_ANY) && m->ip.tos == to->tos &&
	       m->ip.ttl == ttl_of(to) && m->scope_id == to->scope_id;
}

/* Room at the end of the last message, if a datagram of @size bytes may join it. */
static bool place_behind(struct udp_tx *tx, const struct link_dest *to, uint32_t size)
{
	struct udp_msg *m;

	if (tx->head == tx->count)
		return false;
	m = &tx->msgs[tx->count - 1];
	if (m->closed || size > m->seg || m->nsegs >= tx->max_segs ||
	    m->len + size > UDP_PAYLOAD_MAX || m->off + m->len + size > UDP_TX_STAGE ||
	    !same_dest(m, to))
		return false;
	tx->off = m->off + m->len;
	tx->into = m;
	return true;
}

static uint32_t message_start(uint32_t used, uint32_t size)
{
	if (size < LARGE_PACKET)
		return (used + CACHE_LINE - 1) & -CACHE_LINE;
	return (used + 2047) / 4096 * 4096 + 2048;
}

static bool place_new(struct udp_link *u, const struct link_dest *to, uint32_t size)
{
	struct udp_tx *tx = &u->tx;
	struct udp_msg *m;
	uint32_t off;

	if (tx->head == tx->count)
		tx->head = tx->count = tx->used = 0;
	off = message_start(tx->used, size);
	if (tx->count == UDP_TX_MSGS || off + size > UDP_TX_STAGE)
		return false;
	m = &tx->msgs[tx->count];
	*m = (struct udp_msg){
		.ip = {.sport = WIRE_UDP_PORT, .tos = to->tos, .ttl = ttl_of(to)},
		.scope_id = to->scope_id,
		.off = off,
		.seg = size,
		.gid = to->sgid_index,
		.flow = to->flow,
	};
	memcpy(m->ip.src, u->socks[to->sgid_index].ip, 16);
	memcpy(m->ip.dst, to->dgid, 16);
	tx->off = off;
	tx->into = m;
	return true;
}

uint8_t *udp_tx_reserve(struct link *l, const struct link_dest *to, size_t len)
{
	struct udp_link *u = udp_link(l);
	struct udp_tx *tx = &u->tx;
	uint32_t size = len + WIRE_ICRC_LEN;

	assert(len >= WIRE_BTH_LEN && size <= UDP_PAYLOAD_MAX);
	assert(to->sgid_index < u->naddrs && u->socks[to->sgid_index].fd >= 0);

	tx->len = len;
	if (place_behind(tx, to, size) || place_new(u, to, size))
		return tx->stage + tx->off;
	udp_tx_flush(l, u->now);
	if (place_new(u, to, size))
		return tx->stage + tx->off;
	tx->into = NULL;
	return NULL;
}

/* BTH byte 4 is masked in the ICRC: a bit flipped there would not be damage. */
static void flip_bit(struct udp_tx *tx, uint8_t *b, size_t len)
{
	uint32_t bit = tx->corrupted++ * 2654435761u % (len * 8);

	if (bit / 8 == 4)
		bit += 8;
	b[bit / 8] ^= 1 << bit % 8;
}

static void put_icrc(struct udp_msg *m, uint16_t id, uint8_t *b, size_t len)
{
	uint32_t icrc;

	m->ip.id = id;
	icrc = htole32(wire_icrc(&m->ip, b, len));
	memcpy(b + len, &icrc, sizeof(icrc));
}

void udp_tx_commit(struct link *l, unsigned int flags)
{
	struct udp_link *u = udp_link(l);
	struct udp_tx *tx = &u->tx;
	struct udp_msg *m = tx->into;
	uint32_t size = tx->len + WIRE_ICRC_LEN;
	uint8_t *b = tx->stage + tx->off;

	assert(m);
	tx->into = NULL;
	put_icrc(m, u->socks[m->gid].v4 ? m->nsegs : 0, b, tx->len);
	if (unlikely(flags & LINK_TX_CORRUPT))
		flip_bit(tx, b, tx->len);
	if (!m->nsegs)
		tx->count++;
	m->nsegs++;
	m->len += size;
	m->closed = size < m->seg;
	tx->used = m->off + m->len;

	stats_inc(l->stats, STAT_tx_packets);
	stats_add(l->stats, STAT_tx_bytes, tx->len);
	if (unlikely(l->tap != NULL))
		l->tap->packet(l->tap, LINK_SENT, &m->ip, b, size);
}

static void add_cmsg(struct msghdr *h, int level, int type, const void *value, size_t len)
{
	struct cmsghdr *c = (struct cmsghdr *)((char *)h->msg_control + h->msg_controllen);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), value, len);
	h->msg_controllen += CMSG_SPACE(len);
}

static void prepare(struct udp_link *u, const struct udp_msg *m, unsigned int i)
{
	struct udp_tx *tx = &u->tx;
	struct msghdr *h = &tx->hdr[i].msg_hdr;
	bool v4 = u->socks[m->gid].v4;
	int value;

	tx->iov[i] = (struct iovec){tx->stage + m->off, m->len};
	*h = (struct msghdr){
		.msg_name = &tx->name[i],
		.msg_namelen = udp_to_sockaddr(&tx->name[i], m->ip.dst, m->scope_id),
		.msg_iov = &tx->iov[i],
		.msg_iovlen = 1,
		.msg_control = tx->control[i],
	};
	if (m->nsegs > 1)
		add_cmsg(h, IPPROTO_UDP, UDP_SEGMENT, &m->seg, sizeof(m->seg));
	if (m->ip.tos) {
		value = m->ip.tos;
		add_cmsg(h, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TOS : IPV6_TCLASS, &value,
			 sizeof(value));
	}
	if (m->ip.ttl != DEFAULT_TTL) {
		value = m->ip.ttl;
		add_cmsg(h, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TTL : IPV6_HOPLIMIT, &value,
			 sizeof(value));
	}
}

/* Return: how many of @n prepared messages were sent, at least one, or -errno of the first. */
static int send_prepared(struct udp_link *u, int fd, unsigned int n)
{
	struct msghdr *h = &u->tx.hdr[0].msg_hdr;
	ssize_t ret;

	stats_inc(u->link.stats, STAT_tx_sends);
	if (n > 1)
		ret = sendmmsg(fd, u->tx.hdr, n, 0);
	else if (h->msg_controllen)
		ret = sendmsg(fd, h, 0);
	else
		ret = sendto(fd, h->msg_iov->iov_base, h->msg_iov->iov_len, 0, h->msg_name,
			     h->msg_namelen);
	if (ret < 0)
		return -errno;
	return n > 1 ? ret : 1;
}

/*
 * The kernel refused a message with UDP_SEGMENT: too many segments for an old kernel (EINVAL), or a
 * device without checksum offload (EIO). Alone each segment has identification 0, so the ICRCs are
 * made again; a capture keeps the first ones.
 */
static void send_one_by_one(struct udp_link *u, struct udp_msg *m)
{
	struct udp_tx *tx = &u->tx;
	int fd = u->socks[m->gid].fd;

	tx->max_segs = m->nsegs > UDP_TX_SEGS_OLD ? UDP_TX_SEGS_OLD : 1;
	log_info("UDP_SEGMENT refused, from now on %u segments a send", tx->max_segs);
	for (uint32_t at = 0, size; at < m->len; at += size) {
		struct udp_msg one = *m;

		size = min_t(uint32_t, m->seg, m->len - at);
		one.off += at;
		one.len = size;
		one.nsegs = 1;
		put_icrc(&one, 0, tx->stage + one.off, size - WIRE_ICRC_LEN);
		prepare(u, &one, 0);
		if (send_prepared(u, fd, 1) < 0)
			stats_inc(u->link.stats, STAT_tx_errors);
	}
}

/* The first waiting message failed with @err. Return: whether to go on behind it. */
static bool send_failed(struct udp_link *u, int err)
{
	struct udp_tx *tx = &u->tx;
	struct udp_msg *m = &tx->msgs[tx->head];

	switch (err) {
	case -EAGAIN:
	case -ENOBUFS:
	case -ENOMEM:
		tx->retry_at = u->now + RETRY_NS;
		return false;
	case -EINTR:
		return true;
	case -EINVAL:
	case -EIO:
		if (m->nsegs > 1) {
			send_one_by_one(u, m);
			break;
		}
		/* fall through */
	default:
		stats_inc(u->link.stats, STAT_tx_errors);
	}
	tx->head++;
	return true;
}

void udp_tx_flush(struct link *l, uint64_t now)
{
	struct udp_link *u = udp_link(l);
	struct udp_tx *tx = &u->tx;

	u->now = now;
	tx->into = NULL; /* a reservation does not outlive a flush */
	tx->retry_at = UINT64_MAX;
	while (tx->head < tx->count) {
		const struct udp_msg *first = &tx->msgs[tx->head];
		unsigned int n = 0, left = tx->count - tx->head;
		int ret;

		do
			prepare(u, &first[n], n);
		while (++n < left && first[n].gid == first->gid);

		ret = send_prepared(u, u->socks[first->gid].fd, n);
		if (likely(ret > 0))
			tx->head += ret;
		else if (!send_failed(u, ret))
			break;
	}
}

uint64_t udp_tx_next_deadline(struct link *l)
{
	return udp_link(l)->tx.retry_at;
}

int udp_tx_init(struct udp_tx *tx, bool gso)
{
	tx->stage = mmap(NULL, UDP_TX_STAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	if (tx->stage == MAP_FAILED)
		return -errno;
	tx->max_segs = gso ? UDP_TX_SEGS : 1;
	tx->retry_at = UINT64_MAX;
	return 0;
}

void udp_tx_fini(struct udp_tx *tx)
{
	munmap(tx->stage, UDP_TX_STAGE);
}
