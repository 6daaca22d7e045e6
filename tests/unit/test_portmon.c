/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Port events: a cable that is pulled, an address that comes and goes, in a namespace of the test's
 * own. */
#include "verbs/portmon.h"

#include "own_netns.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <unistd.h>

static unsigned int ifindex;
static unsigned int ups, downs, changes;

static void note(void *arg, unsigned int index, enum portmon_what what)
{
	cr_assert_eq(arg, &ifindex);
	if (index != ifindex)
		return;
	ups += what == PORT_UP;
	downs += what == PORT_DOWN;
	changes += what == ADDR_CHANGE;
}

/* Reads until *@count has become one, for 5 s. */
static void expect(int fd, const char *command, const unsigned int *count)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	ups = downs = changes = 0;
	cr_assert_eq(system(command), 0, "%s", command);
	while (!*count) {
		cr_assert_eq(poll(&p, 1, 5000), 1, "nothing after: %s", command);
		cr_assert_gt(portmon_read(fd, note, &ifindex), 0);
	}
}

Test(portmon, portmon_open__descriptor_is_ours_alone)
{
	int fd = portmon_open();

	cr_assert_geq(fd, 0);
	cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	cr_assert_eq(portmon_read(fd, note, &ifindex), 0, "never blocks");
	close(fd);
}

Test(portmon, portmon_read__link_and_addresses)
{
	int fd;

	own_netns("ip link add ve0 type veth peer name ve1; ip link set ve1 up");
	ifindex = if_nametoindex("ve0");
	fd = portmon_open();
	cr_assert_geq(fd, 0);
	expect(fd, "ip link set ve0 up", &ups);
	expect(fd, "ip addr add 10.7.0.1/24 dev ve0", &changes);
	cr_expect_eq(downs, 0);
	expect(fd, "ip addr del 10.7.0.1/24 dev ve0", &changes);
	expect(fd, "ip link set ve1 down", &downs); /* no carrier */
	expect(fd, "ip link set ve1 up", &ups);
	expect(fd, "ip link del ve0", &downs);
	close(fd);
}

/* Lost messages: whatever happened, all is to be looked at. */
static bool told_all;

static void note_all(void *arg, unsigned int index, enum portmon_what what)
{
	told_all |= !index && what == ADDR_CHANGE;
}

Test(portmon, portmon_read__lost_messages)
{
	int fd, small = 1;

	own_netns("ip link set lo up");
	fd = portmon_open();
	cr_assert_geq(fd, 0);
	cr_assert(!setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)));
	cr_assert_eq(
		system("i=1; while [ $i -le 40 ]; do ip addr add 10.7.0.$i/24 dev lo || exit 1; "
		       "i=$((i+1)); done"),
		0);
	cr_assert_gt(portmon_read(fd, note_all, NULL), 0);
	cr_assert(told_all);
	close(fd);
}

Test(portmon, portmon_read__error)
{
	cr_assert_eq(portmon_read(-1, note, &ifindex), -EBADF);
}
