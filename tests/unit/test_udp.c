// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The UDP link: two links in one process on addresses of lo, 127.0.44.x and ::1.
 *
 * On lo a datagram is in the receiver's queue when the send returns, so no test waits for anything.
 */
#include "net/udp.h"
#include "wire/hdr.h"

#include "udp_ip.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_PACKET 4204

/* A kernel without room: so many more messages go through, then EAGAIN. Negative: all go through.
 */
static int room = -1;

static bool no_room(void)
{
	if (room < 0)
		return false;
	if (room)
		return room--, false;
	errno = EAGAIN;
	return true;
}

/* In the place of the C library's for the link's own calls. */
ssize_t sendto(int fd, const void *p, size_t len, int flags, const struct sockaddr *to,
	       socklen_t tolen)
{
	return no_room() ? -1 : syscall(SYS_sendto, fd, p, len, flags, to, tolen);
}

ssize_t sendmsg(int fd, const struct msghdr *h, int flags)
{
	return no_room() ? -1 : syscall(SYS_sendmsg, fd, h, flags);
}

int sendmmsg(int fd, struct mmsghdr *h, unsigned int n, int flags)
{
	unsigned int sent = 0;

	for (; sent < n && !no_room(); sent++)
		if (syscall(SYS_sendmmsg, fd, h + sent, 1, flags) != 1)
			break;
	return sent ? (int)sent : -1;
}

struct end {
	struct link *link;
	struct stats stats;
	uint8_t ip[16];
};

static struct end a, b;
static uint64_t now = 1000;

static void end_open(struct end *e, const char *text, bool gso)
{
	struct udp_addr addr = {.scope_id = 0};

	memset(e, 0, sizeof(*e));
	address(e->ip, text);
	memcpy(addr.ip, e->ip, 16);
	cr_assert_eq(udp_create(&(struct udp_config){.addrs = &addr, .naddrs = 1, .gso = gso},
				&e->stats, &e->link),
		     0);
	cr_assert_eq(e->link->ops->open_gid(e->link, 0), 0);
}

static void pair_open(const char *ta, const char *tb, bool gso)
{
	end_open(&a, ta, gso);
	end_open(&b, tb, gso);
}

static void end_close(struct end *e)
{
	if (e->link)
		e->link->ops->destroy(e->link);
	e->link = NULL;
}

static void pair_close(void)
{
	end_close(&a);
	end_close(&b);
}

/* Contents that depend on the number, so that a swap or a shift shows. */
static void fill(uint8_t *p, size_t len, unsigned int number)
{
	for (size_t i = 0; i < len; i++)
		p[i] = i * 7 + number * 13 + (i >> 8);
}

static void put(struct end *from, const struct link_dest *to, size_t len, unsigned int number,
		unsigned int flags)
{
	uint8_t *p = from->link->ops->tx_reserve(from->link, to, len);

	cr_assert_not_null(p);
	fill(p, len, number);
	from->link->ops->tx_commit(from->link, flags);
}

static struct link_dest dest(const struct end *to)
{
	struct link_dest d = {.ttl = 64};

	memcpy(d.dgid, to->ip, 16);
	return d;
}

static void flush(struct end *e)
{
	e->link->ops->tx_flush(e->link, now);
}

/* Receives everything that waits and compares it with packets number first, first + 1, ... */
static unsigned int expect(struct end *at, const struct end *from, const size_t *len,
			   unsigned int first)
{
	struct link_rx v[LINK_RX_BURST];
	uint8_t want[MAX_PACKET];
	unsigned int n, total = 0;

	while ((n = at->link->ops->rx_burst(at->link, v, LINK_RX_BURST, now)) != 0) {
		for (unsigned int i = 0; i < n; i++, total++) {
			cr_assert_eq(v[i].len, len[total], "packet %u: %u bytes, not %zu", total,
				     v[i].len, len[total]);
			fill(want, v[i].len, first + total);
			cr_assert_arr_eq(v[i].data, want, v[i].len);
			cr_assert_arr_eq(v[i].ip.src, from->ip, 16);
			cr_assert_arr_eq(v[i].ip.dst, at->ip, 16);
			cr_assert_eq(v[i].ip.sport, WIRE_UDP_PORT);
		}
	}
	return total;
}

TestSuite(udp, .fini = pair_close, .timeout = 20);

Test(udp, udp_create__refuses_an_unused_address)
{
	struct udp_addr none[2] = {0};

	cr_assert_eq(
		udp_create(&(struct udp_config){.addrs = none, .naddrs = 2}, &a.stats, &a.link), 0);
	cr_assert_eq(a.link->ops->open_gid(a.link, 1), -EINVAL);
	cr_assert_eq(a.link->ops->open_gid(a.link, 2), -EINVAL);
}

Test(udp, open_gid__holds_its_address_alone)
{
	struct udp_addr addr = {.scope_id = 0};

	end_open(&a, "127.0.44.1", true);
	cr_assert_eq(a.link->ops->open_gid(a.link, 0), 0, "idempotent");
	memcpy(addr.ip, a.ip, 16);
	cr_assert_eq(
		udp_create(&(struct udp_config){.addrs = &addr, .naddrs = 1}, &b.stats, &b.link),
		0);
	cr_assert_eq(b.link->ops->open_gid(b.link, 0), -EADDRINUSE);
	end_close(&a);
	cr_assert_eq(b.link->ops->open_gid(b.link, 0), 0);
}

static void single(const char *ta, const char *tb)
{
	struct pollfd pfd = {.events = POLLIN};
	struct link_dest d;
	size_t len;
	unsigned int number = 0;

	pair_open(ta, tb, true);
	d = dest(&b);
	pfd.fd = b.link->fd;
	cr_assert_eq(poll(&pfd, 1, 0), 0);
	for (len = 16; len <= 4200; len += 4, number++) {
		put(&a, &d, len, number, 0);
		flush(&a);
		cr_assert_eq(poll(&pfd, 1, 0), 1);
		cr_assert_eq(expect(&b, &a, &len, number), 1, "%zu bytes", len);
	}
	cr_assert_eq(stats_get(&a.stats, STAT_tx_packets), number);
	cr_assert_eq(stats_get(&a.stats, STAT_tx_sends), number);
	cr_assert_eq(stats_get(&b.stats, STAT_rx_packets), number);
	cr_assert_eq(stats_get(&a.stats, STAT_tx_bytes), stats_get(&b.stats, STAT_rx_bytes));
	cr_assert_eq(stats_get(&b.stats, STAT_icrc_solved), 0);
}

Test(udp, tx_flush__single_packets_ipv4)
{
	single("127.0.44.3", "127.0.44.4");
}

Test(udp, tx_flush__single_packets_ipv6)
{
	/* lo has one IPv6 address: the link sends to itself. */
	struct link_dest d;
	size_t len = 76;

	end_open(&a, "::1", true);
	d = dest(&a);
	put(&a, &d, len, 5, 0);
	flush(&a);
	cr_assert_eq(expect(&a, &a, &len, 5), 1);
}

static void stream(struct end *from, struct end *to, unsigned int sends)
{
	struct link_dest d = dest(to);
	size_t len[41];

	for (unsigned int i = 0; i < 40; i++)
		put(from, &d, len[i] = 4096 + 12, i, 0);
	put(from, &d, len[40] = 100, 40, 0);
	flush(from);
	cr_assert_eq(expect(to, from, len, 0), 41);
	cr_assert_eq(stats_get(&from->stats, STAT_tx_sends), sends);
	cr_assert_eq(stats_get(&from->stats, STAT_tx_errors), 0);
	cr_assert_eq(stats_get(&to->stats, DROP_icrc), 0);
	cr_assert_eq(stats_get(&to->stats, STAT_icrc_solved), 0, "ids are the segments' indices");
}

Test(udp, tx_flush__stream_in_one_call)
{
	pair_open("127.0.44.5", "127.0.44.6", true);
	stream(&a, &b, 1);
}

Test(udp, tx_flush__stream_without_gso)
{
	pair_open("127.0.44.7", "127.0.44.8", false);
	stream(&a, &b, 2); /* the staging area fills once on the way */
}

Test(udp, tx_flush__stream_ipv6)
{
	end_open(&a, "::1", true);
	stream(&a, &a, 1);
}

/* 127 segments fill a message; the staging area fills and empties itself. */
Test(udp, tx_reserve__flushes_by_itself)
{
	struct link_dest d;
	size_t len[1000];

	pair_open("127.0.44.9", "127.0.44.10", true);
	d = dest(&b);
	for (unsigned int i = 0; i < 1000; i++) {
		len[i] = 1036;
		put(&a, &d, 1036, i, 0);
	}
	flush(&a);
	cr_assert_gt(stats_get(&a.stats, STAT_tx_sends), 1);
	cr_assert_eq(expect(&b, &a, len, 0), 1000);
}

Test(udp, tx_reserve__small_packets_fill_a_message)
{
	struct link_dest d;
	size_t len[300];

	pair_open("127.0.44.11", "127.0.44.12", true);
	d = dest(&b);
	for (unsigned int i = 0; i < 300; i++)
		put(&a, &d, len[i] = 76, i, 0);
	flush(&a);
	cr_assert_eq(stats_get(&a.stats, STAT_tx_sends), 1);
	cr_assert_eq(expect(&b, &a, len, 0), 300);
	cr_assert_eq(stats_get(&a.stats, STAT_tx_errors), 0);
}

/* A reservation that is not committed leaves no trace, joined or not. */
Test(udp, tx_reserve__may_be_abandoned)
{
	struct link_dest d;
	size_t len[3] = {516, 516, 300};

	pair_open("127.0.44.13", "127.0.44.14", true);
	d = dest(&b);
	memset(a.link->ops->tx_reserve(a.link, &d, 4108), 0xee, 4108);
	put(&a, &d, 516, 0, 0);
	memset(a.link->ops->tx_reserve(a.link, &d, 516), 0xee, 516);
	memset(a.link->ops->tx_reserve(a.link, &d, 100), 0xee, 100);
	put(&a, &d, 516, 1, 0);
	memset(a.link->ops->tx_reserve(a.link, &d, 900), 0xee, 900);
	put(&a, &d, 300, 2, 0);
	flush(&a);
	cr_assert_eq(expect(&b, &a, len, 0), 3);
}

/* Sizes and destinations mixed: the order within a destination stays. */
static void mixed(bool gso)
{
	struct end c;
	struct link_dest db, dc;
	size_t lb[200], lc[200];
	unsigned int nb = 0, nc = 0, x = 12345;

	pair_open(gso ? "127.0.44.15" : "127.0.44.18", gso ? "127.0.44.16" : "127.0.44.19", gso);
	end_open(&c, gso ? "127.0.44.17" : "127.0.44.20", gso);
	db = dest(&b);
	dc = dest(&c);
	for (unsigned int i = 0; i < 200; i++) {
		size_t len;

		x = x * 1103515245 + 12345;
		len = x >> 16 & 1 ? 1036 : 16 + (x >> 17 & 0x3ff) * 4;
		if (x >> 30)
			put(&a, &db, lb[nb] = len, nb, 0), nb++;
		else
			put(&a, &dc, lc[nc] = len, 500 + nc, 0), nc++;
		if (x >> 28 == 3)
			flush(&a);
	}
	flush(&a);
	cr_assert_eq(expect(&b, &a, lb, 0), nb);
	cr_assert_eq(expect(&c, &a, lc, 500), nc);
	end_close(&c);
}

Test(udp, tx_flush__mixed)
{
	mixed(true);
}

Test(udp, tx_flush__mixed_without_gso)
{
	mixed(false);
}

/* TOS arrives, and packets of another TOS or TTL are another message. */
Test(udp, tx_flush__tos_and_ttl)
{
	struct link_rx v[LINK_RX_BURST];
	struct link_dest d;
	unsigned int n = 0, got;

	pair_open("127.0.44.21", "127.0.44.22", true);
	d = dest(&b);
	put(&a, &d, 64, 0, 0);
	d.tos = 0x6a; /* with ECT(0) */
	put(&a, &d, 64, 1, 0);
	d.ttl = 7;
	put(&a, &d, 64, 2, 0);
	put(&a, &d, 64, 3, 0);
	d.ttl = 0;
	put(&a, &d, 64, 4, 0);
	flush(&a);
	while ((got = b.link->ops->rx_burst(b.link, v + n, LINK_RX_BURST - n, now)) != 0)
		for (; got; got--, n++)
			cr_assert_eq(v[n].ip.tos, n ? 0x6a : 0, "packet %u", n);
	cr_assert_eq(n, 5);
}

/* Nobody listens: the ICMP error that comes back does not reach the next send. */
Test(udp, tx_flush__survives_icmp)
{
	struct link_dest d, nobody;
	size_t len = 64;

	pair_open("127.0.44.23", "127.0.44.24", true);
	d = dest(&b);
	nobody = d;
	nobody.dgid[15] = 25;
	for (unsigned int i = 0; i < 3; i++) {
		put(&a, &nobody, 64, 0, 0);
		flush(&a);
		cr_assert_eq(expect(&a, &b, &len, 0), 0);
		put(&a, &d, 64, i, 0);
		flush(&a);
		cr_assert_eq(expect(&b, &a, &len, i), 1);
	}
	cr_assert_eq(stats_get(&a.stats, STAT_tx_errors), 0);
}

/* A message that the kernel refuses is counted, and the ones behind it go out. */
Test(udp, tx_flush__drops_what_the_kernel_refuses)
{
	struct link_dest d, bad;
	size_t len[2] = {64, 64};

	pair_open("127.0.44.26", "127.0.44.27", true);
	d = dest(&b);
	bad = d;
	bad.dgid[12] = 0; /* 0.0.0.1: no route from a loopback address */
	bad.dgid[13] = bad.dgid[14] = 0;
	bad.dgid[15] = 1;
	put(&a, &d, 64, 0, 0);
	put(&a, &bad, 64, 9, 0);
	put(&a, &d, 64, 1, 0);
	flush(&a);
	cr_assert_eq(stats_get(&a.stats, STAT_tx_errors), 1);
	cr_assert_eq(a.link->ops->next_deadline(a.link), UINT64_MAX);
	cr_assert_eq(expect(&b, &a, len, 0), 2);
}

/* What the kernel has no room for waits, in order, and makes itself heard as a deadline. */
Test(udp, tx_flush__keeps_what_finds_no_room)
{
	struct link_dest d;
	size_t len[4] = {64, 516, 516, 2000};

	pair_open("127.0.44.50", "127.0.44.51", true);
	d = dest(&b);
	for (unsigned int i = 0; i < 4; i++)
		put(&a, &d, len[i], i, 0); /* three messages: the two of one size share one */
	room = 1;
	flush(&a);
	cr_assert_eq(expect(&b, &a, len, 0), 1);
	cr_assert_gt(a.link->ops->next_deadline(a.link), now);
	cr_assert_lt(a.link->ops->next_deadline(a.link), now + 1000000);
	flush(&a);
	cr_assert_eq(expect(&b, &a, len + 1, 1), 0);
	room = -1;
	flush(&a);
	cr_assert_eq(a.link->ops->next_deadline(a.link), UINT64_MAX);
	cr_assert_eq(expect(&b, &a, len + 1, 1), 3);
	cr_assert_eq(stats_get(&a.stats, STAT_tx_errors), 0);
}

Test(udp, tx_reserve__is_back_pressure)
{
	struct link_dest d;
	size_t len[400];
	unsigned int n = 0;

	pair_open("127.0.44.52", "127.0.44.53", true);
	d = dest(&b);
	room = 0;
	while (n < 400) {
		uint8_t *p = a.link->ops->tx_reserve(a.link, &d, 1036);

		if (!p)
			break;
		fill(p, len[n] = 1036, n);
		a.link->ops->tx_commit(a.link, 0);
		n++;
	}
	cr_assert(n > 100 && n < 400, "%u", n);
	cr_assert_null(a.link->ops->tx_reserve(a.link, &d, 1036), "and again");
	room = -1;
	put(&a, &d, len[n] = 1036, n, 0);
	flush(&a);
	cr_assert_eq(expect(&b, &a, len, 0), n + 1);
}

static int socket_of(const struct end *e)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
	} sa;

	for (int fd = 3; fd < 1024; fd++) {
		socklen_t len = sizeof(sa);

		if (!getsockname(fd, &sa.sa, &len) && sa.sa.sa_family == AF_INET &&
		    !memcmp(&sa.in.sin_addr, e->ip + 12, 4))
			return fd;
	}
	cr_assert_fail("no such socket");
	return -1;
}

/* A kernel that takes no UDP_SEGMENT (SO_NO_CHECK brings that about) costs no packet. */
Test(udp, tx_flush__goes_without_gso_when_refused)
{
	struct link_dest d;
	size_t len[5] = {1036, 1036, 1036, 1036, 200};
	int one = 1;

	pair_open("127.0.44.28", "127.0.44.29", true);
	d = dest(&b);
	cr_assert_eq(setsockopt(socket_of(&a), SOL_SOCKET, SO_NO_CHECK, &one, sizeof(one)), 0);
	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < 5; i++)
			put(&a, &d, len[i], i, 0);
		flush(&a);
		cr_assert_eq(expect(&b, &a, len, 0), 5);
	}
	cr_assert_eq(stats_get(&a.stats, STAT_tx_errors), 0);
	cr_assert_eq(stats_get(&b.stats, STAT_icrc_solved), 0, "each has identification 0");
	cr_assert_eq(stats_get(&a.stats, STAT_tx_sends), 1 + 5 + 1);
}

Test(udp, tx_commit__corrupt_is_dropped)
{
	struct link_dest d;
	size_t len[64];
	unsigned int good = 0;

	pair_open("127.0.44.30", "127.0.44.31", true);
	d = dest(&b);
	for (unsigned int round = 0; round < 20; round++) {
		good = 0;
		for (unsigned int i = 0; i < 60; i++) {
			bool bad = i % 3 == 1;

			put(&a, &d, 1036, bad ? 999 : good, bad ? LINK_TX_CORRUPT : 0);
			if (!bad)
				len[good++] = 1036;
		}
		flush(&a);
		cr_assert_eq(expect(&b, &a, len, 0), good);
	}
	cr_assert_eq(stats_get(&b.stats, DROP_icrc), 20 * 20);
}

struct counting_tap {
	struct link_tap tap;
	unsigned int sent, received, bad;
};

static void count_packet(struct link_tap *t, enum link_dir dir, const struct wire_ip *ip,
			 const uint8_t *p, size_t len)
{
	struct counting_tap *c = (struct counting_tap *)t;
	uint32_t icrc = wire_icrc(ip, p, len - 4);

	if (dir == LINK_SENT)
		c->sent++;
	else
		c->received++;
	c->bad += memcmp(p + len - 4, &(uint32_t){htole32(icrc)}, 4) != 0;
}

Test(udp, tap__sees_each_packet_with_its_icrc)
{
	struct counting_tap tap = {.tap.packet = count_packet};
	struct link_dest d;
	size_t len[20];

	pair_open("127.0.44.32", "127.0.44.33", true);
	d = dest(&b);
	a.link->tap = b.link->tap = &tap.tap;
	for (unsigned int i = 0; i < 20; i++)
		put(&a, &d, len[i] = 516, i, 0);
	flush(&a);
	cr_assert_eq(expect(&b, &a, len, 0), 20);
	cr_assert_eq(tap.sent, 20);
	cr_assert_eq(tap.received, 20);
	cr_assert_eq(tap.bad, 0);
}

static void send_raw(const struct end *from, const struct end *to, uint16_t id, const void *p,
		     size_t len)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(WIRE_UDP_PORT)};
	struct wire_ip ip = {.id = id, .sport = WIRE_UDP_PORT};
	uint8_t buf[MAX_PACKET];
	uint32_t icrc;

	memcpy(ip.src, from->ip, 16);
	memcpy(ip.dst, to->ip, 16);
	memcpy(buf, p, len);
	icrc = len >= 12 ? htole32(wire_icrc(&ip, buf, len)) : 0;
	memcpy(buf + len, &icrc, 4);
	memcpy(&sa.sin_addr, to->ip + 12, 4);
	cr_assert_eq(sendto(socket_of(from), buf, len + 4, 0, (struct sockaddr *)&sa, sizeof(sa)),
		     (ssize_t)len + 4);
}

Test(udp, rx_burst__short)
{
	struct link_rx v[4];

	pair_open("127.0.44.34", "127.0.44.35", true);
	for (size_t len = 0; len < 12; len++) {
		send_raw(&a, &b, 0, "............", len);
		cr_assert_eq(b.link->ops->rx_burst(b.link, v, 4, now), 0);
	}
	cr_assert_eq(stats_get(&b.stats, DROP_short), 12);
}

/* A peer that counts its identifications, as Linux' rdma_rxe does. */
Test(udp, rx_burst__solves_a_counter)
{
	struct link_rx v[4];
	uint8_t p[64];
	uint16_t id = 65000;

	pair_open("127.0.44.36", "127.0.44.37", true);
	for (unsigned int i = 0; i < 1000; i++, id += i % 10 ? 1 : 3) {
		fill(p, sizeof(p), i);
		send_raw(&a, &b, id, p, sizeof(p));
		cr_assert_eq(b.link->ops->rx_burst(b.link, v, 4, now), 1, "packet %u", i);
		cr_assert_eq(v[0].ip.id, id);
		cr_assert_arr_eq(v[0].data, p, sizeof(p));
	}
	cr_assert_eq(stats_get(&b.stats, DROP_icrc), 0);
	/* The first, and those behind a gap; the others were guessed. */
	cr_assert_lt(stats_get(&b.stats, STAT_icrc_solved), 110);
	cr_assert_geq(stats_get(&b.stats, STAT_icrc_solved), 100);
}

/* A burst smaller than what one datagram holds: the rest comes with the next calls, in order. */
Test(udp, rx_burst__hands_out_a_datagram_in_parts)
{
	struct link_rx v[7];
	struct link_dest d;
	unsigned int total = 0, n;
	uint8_t want[76];

	pair_open("127.0.44.38", "127.0.44.39", true);
	d = dest(&b);
	for (unsigned int i = 0; i < 100; i++)
		put(&a, &d, 76, i, 0);
	flush(&a);
	while ((n = b.link->ops->rx_burst(b.link, v, 7, now)) != 0) {
		for (unsigned int i = 0; i < n; i++) {
			fill(want, 76, total + i);
			cr_assert_arr_eq(v[i].data, want, 76);
		}
		total += n;
	}
	cr_assert_eq(total, 100);
}

/* Two addresses on one link: both are read, and the destination says which one it was. */
Test(udp, rx_burst__two_addresses)
{
	struct udp_addr addrs[3] = {0};
	struct link_rx v[4];
	struct link_dest d;
	uint8_t ip[2][16];
	unsigned int seen[2] = {0};

	end_open(&a, "127.0.44.40", true);
	address(ip[0], "127.0.44.41");
	address(ip[1], "127.0.44.42");
	memcpy(addrs[0].ip, ip[0], 16);
	memcpy(addrs[2].ip, ip[1], 16);
	cr_assert_eq(udp_create(&(struct udp_config){.addrs = addrs, .naddrs = 3, .gso = true},
				&b.stats, &b.link),
		     0);
	cr_assert_eq(b.link->ops->open_gid(b.link, 0), 0);
	cr_assert_eq(b.link->ops->open_gid(b.link, 2), 0);
	for (unsigned int i = 0; i < 10; i++) {
		d = (struct link_dest){.ttl = 64};
		memcpy(d.dgid, ip[i % 2], 16);
		put(&a, &d, 64, i, 0);
	}
	flush(&a);
	for (unsigned int i = 0; i < 10; i++) {
		cr_assert_eq(b.link->ops->rx_burst(b.link, v, 1, now), 1);
		seen[!memcmp(v[0].ip.dst, ip[1], 16)]++;
	}
	cr_assert_eq(b.link->ops->rx_burst(b.link, v, 4, now), 0);
	cr_assert_eq(seen[0], 5);
	cr_assert_eq(seen[1], 5);
	/* Backwards, from either address. */
	for (unsigned int gid = 0; gid <= 2; gid += 2) {
		d = dest(&a);
		d.sgid_index = gid;
		put(&b, &d, 64, gid, 0);
	}
	flush(&b);
	for (unsigned int i = 0; i < 2; i++) {
		cr_assert_eq(a.link->ops->rx_burst(a.link, v, 1, now), 1);
		cr_assert_arr_eq(v[0].ip.src, ip[i], 16);
	}
}

static unsigned int arrive(size_t len, unsigned int n)
{
	struct link_rx v[LINK_RX_BURST];
	struct link_dest d = dest(&b);
	unsigned int got, total = 0;

	for (unsigned int i = 0; i < n; i++)
		put(&a, &d, len, i, 0);
	flush(&a);
	while ((got = b.link->ops->rx_burst(b.link, v, LINK_RX_BURST, now)) != 0)
		total += got;
	return total;
}

/* What rx_capacity() promises fits, and it does not promise less than half of what fits. */
Test(udp, rx_capacity__holds)
{
	static const size_t sizes[] = {80, 272, 1040, 4112};

	for (unsigned int s = 0; s < 4; s++) {
		unsigned int promised;

		pair_open("127.0.44.43", "127.0.44.44", false);
		promised = b.link->ops->rx_capacity(b.link, sizes[s]);
		cr_assert_gt(promised, 0);
		cr_assert_eq(arrive(sizes[s], promised), promised, "%zu bytes", sizes[s]);
		cr_assert_lt(arrive(sizes[s], 2 * promised), 2 * promised, "%zu bytes", sizes[s]);
		pair_close();
	}
}
