/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Devices from interfaces: in network namespaces with interfaces made for the purpose. */
#include "verbs/netdev.h"

#include "base/macros.h"
#include "own_netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

/* lo, and two ends of one cable. */
#define CABLE                                                                                      \
	"ip link set lo up; ip link add ve0 type veth peer name ve1; "                             \
	"ip link set ve0 mtu 1500; ip link set ve1 mtu 9000; "                                     \
	"ip addr add 10.7.0.1/24 dev ve0; ip addr add 10.7.0.9/24 dev ve0; "                       \
	"ip addr add fd07::1/64 dev ve0 nodad; ip addr add 10.8.0.1/24 dev ve1; "                  \
	"ip link set ve0 up; ip link set ve1 up"

static struct netdev v[NETDEV_MAX];
static struct config c;
static char why[128];

static int find(const char *netdev, const char *addr)
{
	config_init(&c);
	if (netdev)
		cr_assert(!config_set(&c, "RXE_NETDEV", netdev, why, sizeof(why)));
	if (addr)
		cr_assert(!config_set(&c, "RXE_ADDR", addr, why, sizeof(why)));
	why[0] = 0;
	return netdev_find(&c, v, NETDEV_MAX, why, sizeof(why));
}

/* The same once all are up, for 5 s: a carrier is noticed a little after "ip link set up" has returned. */
static int find_up(const char *netdev, const char *addr)
{
	for (int tries = 0;; tries++) {
		int n = find(netdev, addr), up = 0;

		for (int i = 0; i < n; i++)
			up += v[i].up;
		if (up == n || tries == 1000)
			return n;
		usleep(5000);
	}
}

static bool gid_is(const struct netdev *d, unsigned int i, const char *addr)
{
	uint8_t ip[16] = {[10] = 0xff, [11] = 0xff};

	if (inet_pton(AF_INET, addr, ip + 12) != 1)
		cr_assert_eq(inet_pton(AF_INET6, addr, ip), 1);
	return i < d->ngids && !memcmp(d->gids[i].ip, ip, 16);
}

static bool has_gid(const struct netdev *d, const char *addr)
{
	for (unsigned int i = 0; i < d->ngids; i++)
		if (gid_is(d, i, addr))
			return true;
	return false;
}

Test(netdev, netdev_mtu__headers_fit_too)
{
	static const struct {
		unsigned int mtu, ib;
	} rows[] = {
		{0, 0},
		{351, 0},
		{352, IBV_MTU_256},
		{607, IBV_MTU_256},
		{608, IBV_MTU_512},
		{1119, IBV_MTU_512},
		{1120, IBV_MTU_1024},
		{1280, IBV_MTU_1024},
		{1500, IBV_MTU_1024},
		{2143, IBV_MTU_1024},
		{2144, IBV_MTU_2048},
		{4191, IBV_MTU_2048},
		{4192, IBV_MTU_4096},
		{9000, IBV_MTU_4096},
		{65536, IBV_MTU_4096},
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++)
		cr_expect_eq(netdev_mtu(rows[i].mtu), rows[i].ib, "%u", rows[i].mtu);
}

Test(netdev, netdev_find__loopback_first_then_the_others)
{
	own_netns(CABLE);
	cr_assert_eq(find_up(NULL, NULL), 3, "%s", why);
	cr_expect_str_eq(v[0].ibname, "xrc_lo");
	cr_expect_eq(v[0].active_mtu, IBV_MTU_4096);
	cr_expect(gid_is(&v[0], 0, "127.0.0.1"));
	cr_expect(gid_is(&v[0], 1, "::1"));
	for (int i = 1; i < 3; i++) {
		bool first = !strcmp(v[i].ifname, "ve0");

		cr_expect_eq(v[i].active_mtu, first ? IBV_MTU_1024 : IBV_MTU_4096);
		cr_expect(gid_is(&v[i], 0, first ? "10.7.0.1" : "10.8.0.1"));
		cr_expect_eq(v[i].gids[0].ifindex, v[i].ifindex);
		cr_expect_eq(v[i].gids[0].scope_id, 0);
		cr_expect(v[i].up && v[i].soft);
	}
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < i; k++) {
			cr_expect_neq(v[i].guid, v[k].guid);
			cr_expect_neq(v[i].index, v[k].index);
			cr_expect_neq(v[i].uverbs, v[k].uverbs);
		}
}

Test(netdev, netdev_find__order_of_gids)
{
	const struct netdev *d = v;

	own_netns(CABLE);
	cr_assert_eq(find("ve0", NULL), 1, "%s", why);
	cr_assert_geq(d->ngids, 3);
	cr_expect(gid_is(d, 0, "10.7.0.1"));
	cr_expect(gid_is(d, 1, "10.7.0.9"));
	cr_expect(gid_is(d, 2, "fd07::1"));
	for (unsigned int i = 3; i < d->ngids; i++) {
		cr_expect(d->gids[i].ip[0] == 0xfe && d->gids[i].ip[1] == 0x80);
		cr_expect_eq(d->gids[i].scope_id, d->ifindex);
	}
}

Test(netdev, netdev_find__an_address_comes_first_and_names_the_interface)
{
	own_netns(CABLE);
	cr_assert_eq(find(NULL, "10.7.0.9"), 1, "%s", why);
	cr_expect_str_eq(v[0].ifname, "ve0");
	cr_expect(gid_is(&v[0], 0, "10.7.0.9"));
	cr_expect(gid_is(&v[0], 1, "10.7.0.1"));
	cr_expect(has_gid(&v[0], "fd07::1"));
}

/* perftest would leave an IPv6 entry for any IPv4 one behind it. */
Test(netdev, netdev_find__an_ipv6_address_leaves_ipv4_out)
{
	own_netns(CABLE);
	cr_assert_eq(find("ve0", "fd07::1"), 1, "%s", why);
	cr_expect(gid_is(&v[0], 0, "fd07::1"));
	cr_expect(!has_gid(&v[0], "10.7.0.1"));
	cr_expect(!has_gid(&v[0], "10.7.0.9"));
}

Test(netdev, netdev_find__an_address_of_loopback_stands_alone)
{
	__be64 first, again;

	own_netns(CABLE);
	cr_assert_eq(find("lo", "127.0.0.2"), 1, "%s", why);
	cr_expect_eq(v[0].ngids, 1);
	cr_expect(gid_is(&v[0], 0, "127.0.0.2"));
	cr_expect_eq(v[0].gids[0].ifindex, v[0].ifindex);
	first = v[0].guid;
	cr_assert_eq(find(NULL, "127.0.0.3"), 1, "%s", why);
	cr_expect_str_eq(v[0].ifname, "lo");
	cr_expect_neq(v[0].guid, first);
	again = v[0].guid;
	cr_assert_eq(find("lo", "127.0.0.3"), 1);
	cr_expect_eq(v[0].guid, again, "the GUID is the same each time");
	cr_expect_eq(be64toh(v[0].guid) >> 56, 2, "locally administered");
	cr_assert_eq(find("lo", "::1"), 1);
	cr_expect_eq(v[0].ngids, 1);
}

Test(netdev, netdev_find__says_what_does_not_exist)
{
	own_netns(CABLE);
	cr_expect_eq(find("nope0", NULL), -ENODEV);
	cr_expect(strstr(why, "nope0"), "%s", why);
	cr_expect_eq(find("ve0", "10.99.0.1"), -EADDRNOTAVAIL);
	cr_expect(strstr(why, "10.99.0.1") && strstr(why, "ve0"), "%s", why);
	cr_expect_eq(find("ve0", "127.0.0.2"), -EADDRNOTAVAIL);
	cr_expect_eq(find("ve0", "10.8.0.1"), -EADDRNOTAVAIL, "it is the other interface's");
	cr_expect_eq(find(NULL, "fd99::1"), -EADDRNOTAVAIL);
	cr_expect(strstr(why, "fd99::1"), "%s", why);
}

Test(netdev, netdev_find__states_and_bare_interfaces)
{
	own_netns("ip link add ve0 type veth peer name ve1; ip addr add 10.7.0.1/24 dev ve0; "
		  "ip link set ve0 up; ip addr add 10.8.0.1/24 dev ve1");
	/* lo is down, ve1 too; ve0 is up without a carrier. */
	cr_assert_eq(find(NULL, NULL), 1, "%s", why);
	cr_expect_str_eq(v[0].ifname, "ve0");
	cr_expect(!v[0].up);
	cr_assert_eq(find("ve1", NULL), 1, "named, so offered although it is down");
	cr_expect(!v[0].up);
	cr_expect_eq(find("lo", NULL), -EADDRNOTAVAIL);
	cr_expect(strstr(why, "down"), "%s", why);
	cr_assert_eq(system("ip link set ve1 up"), 0);
	cr_assert_eq(find_up(NULL, NULL), 2);
	cr_expect(v[0].up && v[1].up);
}

Test(netdev, netdev_find__mtu_too_small)
{
	own_netns("ip link set lo up; ip link add ve0 type veth peer name ve1; "
		  "ip addr add 10.7.0.1/24 dev ve0; ip link set ve0 mtu 300 up");
	cr_assert_eq(find(NULL, NULL), 1);
	cr_expect_str_eq(v[0].ifname, "lo");
	cr_expect_eq(find("ve0", NULL), -EMSGSIZE);
	cr_expect(strstr(why, "ve0") && strstr(why, "352"), "%s", why);
}

/* Whether /sys shows this namespace or another. */
Test(netdev, netdev_find__soft_as_sysfs_shows_it)
{
	own_netns("ip link add ve0 type veth peer name ve1; ip addr add 10.7.0.1/24 dev ve0; "
		  "ip link set ve0 up; ip link set ve1 up");
	cr_assert_eq(find("ve0", NULL), 1);
	cr_expect(v[0].soft);
	if (unshare(CLONE_NEWNS) || system("mount --make-rprivate / && mount -t sysfs none /sys"))
		cr_skip("no right to mount /sys");
	cr_assert_eq(find("ve0", NULL), 1);
	cr_expect(v[0].soft);
}

/* The one interface of this machine, if any, that has a device of its own. */
Test(netdev, netdev_find__hardware_is_not_soft)
{
	int n = find(NULL, NULL), hard = 0;

	for (int i = 0; i < n; i++) {
		char path[64];

		snprintf(path, sizeof(path), "/sys/class/net/%.15s/device", v[i].ifname);
		if (access(path, F_OK))
			continue;
		hard++;
		cr_expect(!v[i].soft, "%s", v[i].ifname);
	}
	if (!hard)
		cr_skip("no interface here has hardware");
}

Test(netdev, netdev_find__full_tables)
{
	own_netns("ip link set lo up; i=1; while [ $i -le 40 ]; do "
		  "ip addr add 10.7.0.$i/24 dev lo || exit 1; i=$((i+1)); done");
	cr_assert_eq(find("lo", NULL), 1);
	cr_expect_eq(v[0].ngids, RXE_MAX_GIDS);
	cr_assert_eq(find("lo", "10.7.0.1"), 1);
	cr_expect(gid_is(&v[0], 0, "10.7.0.1"));
	/* Room for fewer devices than there are. */
	cr_expect_eq(netdev_find(&c, v, 0, why, sizeof(why)), 0);
}

Test(netdev, netdev_list__bad_settings_offer_nothing)
{
	setenv("RXE_GSO", "perhaps", 1);
	cr_assert_eq(netdev_list(v, NETDEV_MAX), 0);
}

Test(netdev, netdev_list__an_error_is_an_empty_list)
{
	setenv("RXE_NETDEV", "nope0", 1);
	cr_assert_eq(netdev_list(v, NETDEV_MAX), 0);
	cr_assert_eq(netdev_list(v, NETDEV_MAX), 0);
}
