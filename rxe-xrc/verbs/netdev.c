/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which network interfaces become devices, and what their GID tables hold.
 *
 * Without settings every interface that is up and has an address gives one device, the loopback
 * interface first, so that programs that take the first device stay on the host. Left out are the
 * interfaces of RDMA-capable NICs (and those below a kernel soft-RoCE device): port 4791 is taken
 * there. RXE_NETDEV names the only one to offer, whatever it is; RXE_ADDR alone names the interface
 * that has the address.
 *
 * GID table: RoCEv2 entries only. Index 0 is RXE_ADDR if given, else the interface's first IPv4
 * address, else its first IPv6 address; the other addresses follow, link-local ones last. Many
 * programs choose an index by themselves. perftest (4.5, read and tried 2026-11) walks the table
 * and keeps the first entry of the best RoCE version, but leaves an IPv6 entry for any later IPv4
 * one (with --ipv6 the reverse). So that they all end at the address that was asked for:
 *
 *   RXE_ADDR on loopback   the table holds that address alone. 127.0.0.1 and 127.0.0.2 are two
 * hosts in tests, and another process may well own the rest of the interface; RXE_ADDR is IPv6 the
 * interface's IPv4 addresses are left out; RXE_ADDR is IPv4       all others follow.
 *
 * The GUID names a port to the peers' connection managers, so it must not repeat: it is a hash over
 * the machine, the interface, its MAC address and GID 0, marked as locally administered. Two
 * addresses of lo are two devices and have two GUIDs.
 */
#include "verbs/netdev.h"

#include "base/bytes.h"
#include "base/log.h"
#include "verbs/rawfs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

/* ibv_get_device_index() of our devices; the kernel counts its own from 0. */
#define INDEX_BASE 0x10000

/* IPv6 and UDP headers, BTH, the longest extension headers (XRCETH and AtomicETH), ICRC. */
#define HEADERS (40 + 8 + 12 + 32 + 4)

/* What getifaddrs() says about one interface. */
struct iface {
	char name[IF_NAMESIZE];
	unsigned int ifindex, flags;
	uint8_t mac[8];
	struct engine_gid gids[RXE_MAX_GIDS];
	unsigned int ngids;
};

struct ifaces {
	struct iface v[NETDEV_MAX];
	int n;
};

/* The order in which addresses enter a GID table. */
enum addr_class { ADDR_V4, ADDR_V6, ADDR_LINK_LOCAL, ADDR_CLASSES };

static bool is_v4(const uint8_t ip[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(ip, mapped, sizeof(mapped));
}

static bool is_loopback_net(const uint8_t ip[16])
{
	return is_v4(ip) && ip[12] == 127;
}

static struct iface *iface_get(struct ifaces *ifs, const char *label)
{
	/* An IPv4 label, "eth0:1", belongs to eth0. */
	int len = strcspn(label, ":");
	struct iface *f;

	for (int i = 0; i < ifs->n; i++)
		if ((int)strlen(ifs->v[i].name) == len && !memcmp(ifs->v[i].name, label, len))
			return &ifs->v[i];
	if (ifs->n == NETDEV_MAX || len >= IF_NAMESIZE)
		return NULL;
	f = &ifs->v[ifs->n];
	memcpy(f->name, label, len);
	f->ifindex = if_nametoindex(f->name);
	if (!f->ifindex)
		return memset(f, 0, sizeof(*f)), NULL;
	ifs->n++;
	return f;
}

/* Return: the class of the address, or -1 when it is none that a device can use. */
static int gid_from_sockaddr(const struct sockaddr *sa, unsigned int ifindex,
			     struct engine_gid *gid)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;

	memset(gid, 0, sizeof(*gid));
	gid->ifindex = ifindex;
	if (sa->sa_family == AF_INET) {
		gid->ip[10] = gid->ip[11] = 0xff;
		memcpy(gid->ip + 12, &in->sin_addr, 4);
		return ADDR_V4;
	}
	if (sa->sa_family != AF_INET6)
		return -1;
	memcpy(gid->ip, &in6->sin6_addr, 16);
	if (!IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
		return ADDR_V6;
	gid->scope_id = in6->sin6_scope_id ? in6->sin6_scope_id : ifindex;
	return ADDR_LINK_LOCAL;
}

static void ifaces_add_class(struct ifaces *ifs, const struct ifaddrs *list, int class)
{
	for (const struct ifaddrs *a = list; a; a = a->ifa_next) {
		struct engine_gid gid;
		struct iface *f = iface_get(ifs, a->ifa_name);

		if (f && a->ifa_addr && f->ngids < RXE_MAX_GIDS &&
		    gid_from_sockaddr(a->ifa_addr, f->ifindex, &gid) == class)
			f->gids[f->ngids++] = gid;
	}
}

static int by_listing_order(const void *a, const void *b)
{
	const struct iface *x = a, *y = b;
	bool xlo = x->flags & IFF_LOOPBACK, ylo = y->flags & IFF_LOOPBACK;

	if (xlo != ylo)
		return xlo ? -1 : 1;
	return x->ifindex < y->ifindex ? -1 : x->ifindex > y->ifindex;
}

static int ifaces_read(struct ifaces *ifs)
{
	struct ifaddrs *list;

	ifs->n = 0;
	if (getifaddrs(&list))
		return -errno;
	for (const struct ifaddrs *a = list; a; a = a->ifa_next) {
		struct iface *f = iface_get(ifs, a->ifa_name);

		if (!f)
			continue;
		f->flags = a->ifa_flags;
		if (a->ifa_addr && a->ifa_addr->sa_family == AF_PACKET)
			memcpy(f->mac, ((const struct sockaddr_ll *)a->ifa_addr)->sll_addr,
			       sizeof(f->mac));
	}
	for (int class = 0; class < ADDR_CLASSES; class ++)
		ifaces_add_class(ifs, list, class);
	freeifaddrs(list);
	qsort(ifs->v, ifs->n, sizeof(ifs->v[0]), by_listing_order);
	return 0;
}

static const struct engine_gid *iface_find_addr(const struct iface *f, const uint8_t ip[16])
{
	for (unsigned int i = 0; i < f->ngids; i++)
		if (!memcmp(f->gids[i].ip, ip, 16))
			return &f->gids[i];
	return NULL;
}

static bool iface_has_addr(const struct iface *f, const uint8_t ip[16])
{
	if ((f->flags & IFF_LOOPBACK) && is_loopback_net(ip)) {
		/* The whole of 127/8 is local once one of its addresses is configured. */
		for (unsigned int i = 0; i < f->ngids; i++)
			if (is_loopback_net(f->gids[i].ip))
				return true;
	}
	return iface_find_addr(f, ip) != NULL;
}

/* The GID table of the file's head comment, from the interface's addresses and RXE_ADDR. */
static void fill_gids(struct netdev *d, const struct iface *f, const struct config *c)
{
	const struct engine_gid *known;

	d->ngids = 0;
	if (c->has_addr) {
		known = iface_find_addr(f, c->addr);
		if (known) {
			d->gids[0] = *known;
		} else {
			memcpy(d->gids[0].ip, c->addr, 16);
			d->gids[0].ifindex = f->ifindex;
		}
		d->ngids = 1;
		if (f->flags & IFF_LOOPBACK)
			return;
	}
	for (unsigned int i = 0; i < f->ngids && d->ngids < RXE_MAX_GIDS; i++) {
		const struct engine_gid *g = &f->gids[i];

		if (c->has_addr &&
		    (!memcmp(g->ip, c->addr, 16) || (is_v4(g->ip) && !is_v4(c->addr))))
			continue;
		d->gids[d->ngids++] = *g;
	}
}

/* FNV-1a, 64 bit, with a last mix since near inputs must give far results. */
static uint64_t hash_bytes(uint64_t h, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len--)
		h = (h ^ *p++) * 0x100000001b3ull;
	return h;
}

static __be64 make_guid(const struct netdev *d, const struct iface *f)
{
	uint64_t h = 0xcbf29ce484222325ull;
	char machine[64] = "";

	if (raw_read_line("/etc/machine-id", machine, sizeof(machine)) <= 0)
		gethostname(machine, sizeof(machine) - 1);
	h = hash_bytes(h, machine, strlen(machine));
	h = hash_bytes(h, f->name, sizeof(f->name));
	h = hash_bytes(h, f->mac, sizeof(f->mac));
	h = hash_bytes(h, d->gids[0].ip, sizeof(d->gids[0].ip));
	h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9ull;
	h ^= h >> 32;
	/* First byte 02: locally administered. */
	return htobe64(0x0200000000000000ull | h >> 8);
}

static unsigned int iface_mtu(const char *name)
{
	struct ifreq ifr = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsigned int mtu = 0;

	if (fd < 0)
		fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	if (!ioctl(fd, SIOCGIFMTU, &ifr))
		mtu = ifr.ifr_mtu;
	close(fd);
	return mtu;
}

enum ibv_mtu netdev_mtu(unsigned int mtu)
{
	enum ibv_mtu best = 0;

	for (unsigned int i = IBV_MTU_256; i <= IBV_MTU_4096; i++)
		if (mtu >= (128u << i) + HEADERS)
			best = i;
	return best;
}

/* Does a device of the kernel stand on this interface? */
static bool iface_is_rdma(const char *name)
{
	DIR *dir = raw_opendir("/sys/class/infiniband");
	bool found = false;
	struct dirent *e;

	while (dir && !found && (e = readdir(dir))) {
		char path[512], parent[IF_NAMESIZE + 1];

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/net/%s", e->d_name,
			 name);
		found = raw_exists(path);
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/parent", e->d_name);
		if (raw_read_line(path, parent, sizeof(parent)) > 0 && !strcmp(parent, name))
			found = true;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* One more than the highest N of a uverbsN in @path. */
static unsigned int uverbs_end(const char *path)
{
	DIR *dir = raw_opendir(path);
	unsigned int n, end = 0;
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (sscanf(e->d_name, "uverbs%u", &n) == 1 && n < INDEX_BASE)
			end = max_t(unsigned int, end, n + 1);
	if (dir)
		closedir(dir);
	return end;
}

/* Does /sys show this interface, and not one of the same name in another network namespace? */
static bool sysfs_knows(const char *name, unsigned int ifindex)
{
	char path[64], text[16];

	snprintf(path, sizeof(path), "/sys/class/net/%s/ifindex", name);
	return raw_read_line(path, text, sizeof(text)) > 0 && strtoul(text, NULL, 10) == ifindex;
}

/* A device of its own, or an interface below (VLAN, bridge, bond) that has one, @depth levels down.
 */
static bool sysfs_shows_hardware(const char *name, int depth)
{
	char path[64];
	struct dirent *e;
	bool hard;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/class/net/%s/device", name);
	hard = raw_exists(path);
	snprintf(path, sizeof(path), "/sys/class/net/%s", name);
	dir = hard || !depth ? NULL : raw_opendir(path);
	while (dir && !hard && (e = readdir(dir)))
		if (!strncmp(e->d_name, "lower_", 6) && strlen(e->d_name + 6) < IF_NAMESIZE)
			hard = sysfs_shows_hardware(e->d_name + 6, depth - 1);
	if (dir)
		closedir(dir);
	return hard;
}

/* For interfaces that /sys does not show: hardware sits on a bus. */
static bool driver_has_bus(const char *name)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq ifr = {.ifr_data = (void *)&info};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool bus;

	if (fd < 0)
		return true;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	bus = ioctl(fd, SIOCETHTOOL, &ifr) || info.bus_info[0];
	close(fd);
	return bus;
}

static bool iface_is_soft(const struct iface *f)
{
	if (f->flags & IFF_LOOPBACK)
		return true;
	if (sysfs_knows(f->name, f->ifindex))
		return !sysfs_shows_hardware(f->name, 3);
	return !driver_has_bus(f->name);
}

static int fill_device(struct netdev *d, const struct iface *f, const struct config *c)
{
	memset(d, 0, sizeof(*d));
	d->active_mtu = netdev_mtu(iface_mtu(f->name));
	if (!d->active_mtu)
		return -EMSGSIZE;
	memcpy(d->ifname, f->name, sizeof(d->ifname));
	snprintf(d->ibname, sizeof(d->ibname), "xrc_%s", f->name);
	d->ifindex = f->ifindex;
	d->index = INDEX_BASE + f->ifindex;
	d->up = (f->flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
	d->soft = iface_is_soft(f);
	fill_gids(d, f, c);
	d->guid = make_guid(d, f);
	return 0;
}

static const struct iface *ifaces_by_name(const struct ifaces *ifs, const char *name)
{
	for (int i = 0; i < ifs->n; i++)
		if (!strcmp(ifs->v[i].name, name))
			return &ifs->v[i];
	return NULL;
}

/*
 * The one interface that the settings name. *@only stays NULL when they name none. An interface
 * that is named is offered even while it is down: its port is DOWN then.
 */
static int find_only(const struct ifaces *ifs, const struct config *c, const struct iface **only,
		     char *why, size_t size)
{
	char text[INET6_ADDRSTRLEN];

	if (c->netdev) {
		*only = ifaces_by_name(ifs, c->netdev);
		if (!*only) {
			snprintf(why, size, "no interface %s", c->netdev);
			return -ENODEV;
		}
		if (!(*only)->ngids) {
			snprintf(why, size, "interface %s has no address%s", c->netdev,
				 (*only)->flags & IFF_UP ? "" : " (it is down)");
			return -EADDRNOTAVAIL;
		}
	}
	if (!c->has_addr)
		return 0;
	for (int i = 0; !c->netdev && !*only && i < ifs->n; i++)
		if (iface_has_addr(&ifs->v[i], c->addr))
			*only = &ifs->v[i];
	if (*only && iface_has_addr(*only, c->addr))
		return 0;
	if (is_v4(c->addr))
		inet_ntop(AF_INET, c->addr + 12, text, sizeof(text));
	else
		inet_ntop(AF_INET6, c->addr, text, sizeof(text));
	if (c->netdev)
		snprintf(why, size, "%s is no address of interface %s", text, c->netdev);
	else
		snprintf(why, size, "%s is no address of any interface", text);
	return -EADDRNOTAVAIL;
}

static int list_devices(const struct ifaces *ifs, const struct iface *only, const struct config *c,
			struct netdev *v, int max)
{
	unsigned int uverbs;
	int n = 0;

	uverbs = max_t(unsigned int, uverbs_end("/sys/class/infiniband_verbs"),
		       uverbs_end("/dev/infiniband"));
	for (int i = 0; i < ifs->n && n < max; i++) {
		const struct iface *f = &ifs->v[i];

		if (only ? f != only : !(f->flags & IFF_UP) || !f->ngids || iface_is_rdma(f->name))
			continue;
		if (fill_device(&v[n], f, c)) {
			log_debug("interface %s: MTU too small, no device", f->name);
			continue;
		}
		v[n].uverbs = uverbs + n;
		n++;
	}
	return n;
}

int netdev_find(const struct config *c, struct netdev *v, int max, char *why, size_t size)
{
	struct ifaces *ifs = calloc(1, sizeof(*ifs));
	const struct iface *only = NULL;
	int rc;

	if (!ifs) {
		snprintf(why, size, "out of memory");
		return -ENOMEM;
	}
	rc = ifaces_read(ifs);
	if (rc)
		snprintf(why, size, "cannot list the interfaces: %s", strerror(-rc));
	else
		rc = find_only(ifs, c, &only, why, size);
	if (!rc)
		rc = list_devices(ifs, only, c, v, max);
	if (!rc && only && max > 0) {
		snprintf(why, size, "the MTU of interface %s is too small (%u bytes are needed)",
			 only->name, 256 + HEADERS);
		rc = -EMSGSIZE;
	}
	free(ifs);
	return rc;
}

int netdev_list(struct netdev *v, int max)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	const struct config *c = config_get();
	char why[128];
	int n;

	if (c->bad)
		return 0;
	n = netdev_find(c, v, max, why, sizeof(why));
	if (n >= 0)
		return n;
	if (!atomic_flag_test_and_set(&said))
		log_error("%s; no device is offered", why);
	return 0;
}
