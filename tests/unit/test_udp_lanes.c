/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The UDP link in several lanes: who gets which packet, bursts that keep flows apart, and who may have an address.
 *
 * On lo a datagram is in the receiver's queue when the send returns, so no test waits for anything. A packet
 * here is a BTH and bytes that depend on its number.
 */
#include "net/udp.h"
#include "wire/hdr.h"

#include "udp_ip.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_LANES 16

static struct node {
	unsigned int nlanes;
	struct link *link[MAX_LANES];
	struct stats stats[MAX_LANES];
	uint8_t ip[16];
} a, b;
static uint64_t now = 1000;

static struct link *lane_create(struct node *n, unsigned int lane)
{
	struct udp_addr addr = {.scope_id = 0};
	struct udp_config c = {
		.addrs = &addr, .naddrs = 1, .gso = true, .lane = lane, .nlanes = n->nlanes};
	struct link *link;

	memcpy(addr.ip, n->ip, 16);
	cr_assert_eq(udp_create(&c, &n->stats[lane], &link), 0);
	return link;
}

/* Return: what the first lane's open_gid() says. */
static int try_open(struct node *n, const char *text, unsigned int nlanes)
{
	int err = 0;

	memset(n, 0, sizeof(*n));
	n->nlanes = nlanes;
	address(n->ip, text);
	for (unsigned int i = 0; i < nlanes && !err; i++) {
		n->link[i] = lane_create(n, i);
		err = n->link[i]->ops->open_gid(n->link[i], 0);
	}
	return err;
}

static void close_node(struct node *n)
{
	for (unsigned int i = MAX_LANES; i--;) {
		if (n->link[i])
			n->link[i]->ops->destroy(n->link[i]);
		n->link[i] = NULL;
	}
}

static void close_both(void)
{
	close_node(&a);
	close_node(&b);
}

TestSuite(udp_lanes, .fini = close_both, .timeout = 20);

/* --- packets --- */

static void put(struct link *from, const struct node *to, uint32_t qpn, uint8_t flow, size_t len)
{
	struct link_dest d = {.ttl = 64, .flow = flow};
	struct wire_pkt pkt = {.op = wire_opcode(0x04), .pkey = WIRE_PKEY_DEFAULT, .dest_qpn = qpn};
	uint8_t *p;

	memcpy(d.dgid, to->ip, 16);
	p = from->ops->tx_reserve(from, &d, len);
	cr_assert_not_null(p);
	memset(p, 0x33, len);
	wire_encode_hdr(p, &pkt);
	from->ops->tx_commit(from, 0);
}

static uint32_t qpn_of(const struct link_rx *rx)
{
	return (uint32_t)rx->data[5] << 16 | rx->data[6] << 8 | rx->data[7];
}

/* All that waits in a lane. @qpns: of the first 1024. */
static unsigned int receive(struct link *link, uint32_t *qpns)
{
	struct link_rx v[LINK_RX_BURST];
	unsigned int n, total = 0;

	while ((n = link->ops->rx_burst(link, v, LINK_RX_BURST, now)) != 0)
		for (unsigned int i = 0; i < n; i++)
			if (total < 1024)
				qpns[total++] = qpn_of(&v[i]);
	return total;
}

/* --- steering --- */

static void steers(const char *ta, const char *tb, unsigned int nlanes)
{
	uint32_t qpns[1024];

	cr_assert_eq(try_open(&a, ta, 1), 0);
	cr_assert_eq(try_open(&b, tb, nlanes), 0);
	for (unsigned int i = 0; i < 64; i++) {
		put(a.link[0], &b, 0x7fa500 + i, link_flow(i), 80);
		a.link[0]->ops->tx_flush(a.link[0], now);
	}
	for (unsigned int lane = 0; lane < nlanes; lane++) {
		cr_assert_eq(receive(b.link[lane], qpns), 64 / nlanes, "lane %u", lane);
		for (unsigned int i = 0; i < 64 / nlanes; i++)
			cr_assert_eq(qpns[i], 0x7fa500 + lane + i * nlanes);
		cr_assert_eq(stats_get(&b.stats[lane], STAT_rx_packets), 64 / nlanes);
	}
	close_both();
}

Test(udp_lanes, open_gid__steers_by_the_low_bits_of_the_qp)
{
	steers("127.0.45.1", "127.0.45.2", 2);
	steers("127.0.45.1", "127.0.45.2", 4);
	steers("127.0.45.1", "127.0.45.2", 16);
}

Test(udp_lanes, open_gid__steers_ipv6)
{
	uint32_t qpns[1024];

	/* To itself: lo has one address of IPv6. */
	cr_assert_eq(try_open(&b, "::1", 4), 0);
	for (unsigned int i = 0; i < 16; i++) {
		put(b.link[i / 4], &b, 0x100 + i, link_flow(i), 80);
		b.link[i / 4]->ops->tx_flush(b.link[i / 4], now);
	}
	for (unsigned int lane = 0; lane < 4; lane++) {
		cr_assert_eq(receive(b.link[lane], qpns), 4);
		for (unsigned int i = 0; i < 4; i++)
			cr_assert_eq(qpns[i], 0x100 + lane + 4 * i);
	}
}

/* While lanes are missing the kernel spreads packets as it likes, but loses none. */
Test(udp_lanes, open_gid__loses_nothing_before_all_lanes_are_open)
{
	uint32_t qpns[1024];
	unsigned int total = 0;

	cr_assert_eq(try_open(&a, "127.0.45.3", 1), 0);
	cr_assert_eq(try_open(&b, "127.0.45.4", 4), 0);
	for (unsigned int lane = 3; lane >= 2; lane--) {
		b.link[lane]->ops->destroy(b.link[lane]);
		b.link[lane] = NULL;
	}
	for (unsigned int i = 0; i < 16; i++) {
		put(a.link[0], &b, i, link_flow(i), 80);
		a.link[0]->ops->tx_flush(a.link[0], now);
	}
	for (unsigned int lane = 0; lane < 2; lane++)
		total += receive(b.link[lane], qpns);
	cr_assert_eq(total, 16);
}

/* --- bursts --- */

/* Packets for two QPs in turn, of one size: each must be where its QP is. */
Test(udp_lanes, tx_reserve__keeps_flows_apart)
{
	uint32_t qpns[1024];

	cr_assert_eq(try_open(&a, "127.0.45.5", 2), 0);
	cr_assert_eq(try_open(&b, "127.0.45.6", 2), 0);
	for (unsigned int i = 0; i < 40; i++)
		put(a.link[0], &b, 6 + (i / 5) % 2, link_flow(6 + (i / 5) % 2), 1040);
	a.link[0]->ops->tx_flush(a.link[0], now);
	for (unsigned int lane = 0; lane < 2; lane++) {
		cr_assert_eq(receive(b.link[lane], qpns), 20);
		for (unsigned int i = 0; i < 20; i++)
			cr_assert_eq(qpns[i], 6 + lane);
	}
}

/* What carries no data is not worth a burst of its own. */
Test(udp_lanes, tx_reserve__lets_any_flow_ride_behind)
{
	uint32_t qpns[1024];

	cr_assert_eq(try_open(&a, "127.0.45.7", 2), 0);
	cr_assert_eq(try_open(&b, "127.0.45.8", 2), 0);
	put(a.link[0], &b, 6, link_flow(6), 1040);
	put(a.link[0], &b, 7, LINK_FLOW_ANY, 16);
	a.link[0]->ops->tx_flush(a.link[0], now);
	cr_assert_eq(receive(b.link[0], qpns), 2);
	cr_assert_eq(qpns[0], 6);
	cr_assert_eq(qpns[1], 7);
	/* But data does not ride behind it. */
	put(a.link[0], &b, 7, LINK_FLOW_ANY, 16);
	put(a.link[0], &b, 6, link_flow(6), 16);
	a.link[0]->ops->tx_flush(a.link[0], now);
	cr_assert_eq(receive(b.link[0], qpns), 1);
	cr_assert_eq(receive(b.link[1], qpns), 1);
}

/* --- whose address it is --- */

static void excludes(unsigned int first, unsigned int second)
{
	cr_assert_eq(try_open(&a, "127.0.45.9", first), 0);
	cr_assert_eq(try_open(&b, "127.0.45.9", second), -EADDRINUSE, "%u, then %u lanes", first,
		     second);
	/* Neither has the failure left anything behind, nor has the owner lost anything. */
	close_node(&b);
	cr_assert_eq(try_open(&b, "127.0.45.9", second), -EADDRINUSE);
	close_node(&b);
	close_node(&a);
	cr_assert_eq(try_open(&b, "127.0.45.9", second), 0);
	close_node(&b);
}

Test(udp_lanes, open_gid__holds_its_address_alone)
{
	excludes(2, 2);
	excludes(4, 2);
	excludes(1, 2);
	excludes(2, 1);
}

Test(udp_lanes, open_gid__holds_an_address_and_not_its_neighbour)
{
	cr_assert_eq(try_open(&a, "127.0.45.10", 2), 0);
	cr_assert_eq(try_open(&b, "127.0.45.11", 2), 0);
}

/* The guard of a process that was killed is gone with it. */
Test(udp_lanes, open_gid__after_the_death_of_the_owner)
{
	int fds[2], status;
	char c;
	pid_t pid;

	cr_assert_eq(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		c = !try_open(&a, "127.0.45.12", 2);
		if (write(fds[1], &c, 1) == 1)
			pause();
		_exit(1);
	}
	cr_assert_eq(read(fds[0], &c, 1), 1);
	cr_assert_eq(c, 1);
	cr_assert_eq(try_open(&b, "127.0.45.12", 2), -EADDRINUSE);
	close_node(&b);
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(try_open(&b, "127.0.45.12", 2), 0);
}

/* Another user: kept out by the port itself. */
Test(udp_lanes, open_gid__keeps_another_user_out)
{
	int status;
	pid_t pid;

	if (geteuid())
		cr_skip_test("needs root, to become another user");
	cr_assert_eq(try_open(&a, "127.0.45.13", 2), 0);
	pid = fork();
	if (!pid) {
		if (setuid(65534))
			_exit(2);
		_exit(try_open(&b, "127.0.45.13", 2) == -EADDRINUSE ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status));
	cr_assert_eq(WEXITSTATUS(status), 0);
}
