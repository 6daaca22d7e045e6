// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Captures, read back with libpcap. */
#include "net/pcap.h"
#include "base/bytes.h"
#include "wire/hdr.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct wire_ip ip_v4 = {
	.src = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1},
	.dst = {[10] = 0xff, [11] = 0xff, 10, 0, 3, 2},
	.id = 0x1234,
	.sport = 50000,
	.tos = 0x68,
	.ttl = 9,
};
static const struct wire_ip ip_v6 = {
	.src = {0xfd, [15] = 1},
	.dst = {0xfd, [15] = 2},
	.sport = 4791,
};

static char path[] = "/tmp/test_pcap.XXXXXX";
static struct link_tap *tap;

static void setup(void)
{
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, "an older file", 13), 13);
	close(fd);
}

static void teardown(void)
{
	unlink(path);
}

static void packet(const struct wire_ip *ip, size_t len)
{
	uint8_t b[9000];
	uint32_t icrc;

	for (size_t i = 0; i < len; i++)
		b[i] = i + len;
	icrc = htole32(wire_icrc(ip, b, len));
	memcpy(b + len, &icrc, sizeof(icrc));
	tap->packet(tap, LINK_SENT, ip, b, len + WIRE_ICRC_LEN);
}

static pcap_t *read_open(void)
{
	char err[PCAP_ERRBUF_SIZE];
	pcap_t *p = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, err);

	cr_assert_not_null(p, "%s", err);
	cr_assert_eq(pcap_datalink(p), DLT_EN10MB);
	return p;
}

static unsigned int records(void)
{
	pcap_t *p = read_open();
	struct pcap_pkthdr *h;
	const u_char *b;
	unsigned int n = 0;
	int ret;

	while ((ret = pcap_next_ex(p, &h, &b)) == 1)
		n++;
	cr_assert_eq(ret, PCAP_ERROR_BREAK, "%s", pcap_geterr(p));
	pcap_close(p);
	return n;
}

/* The ICRC from the bytes of the file alone. */
static void check_icrc(const u_char *b, size_t caplen)
{
	bool v4 = get_be16(b + 12) == 0x0800;
	const uint8_t *n = b + 14, *udp = n + (v4 ? 20 : 40), *bth = udp + 8;
	struct wire_ip ip = {.sport = get_be16(udp)};
	size_t len = b + caplen - bth - WIRE_ICRC_LEN;
	uint32_t icrc;

	if (v4) {
		ip.src[10] = ip.src[11] = ip.dst[10] = ip.dst[11] = 0xff;
		memcpy(ip.src + 12, n + 12, 4);
		memcpy(ip.dst + 12, n + 16, 4);
		ip.id = get_be16(n + 4);
		cr_assert_eq(get_be16(n + 2), caplen - 14);
	} else {
		memcpy(ip.src, n + 8, 16);
		memcpy(ip.dst, n + 24, 16);
		cr_assert_eq(get_be16(n + 4), caplen - 14 - 40);
	}
	cr_assert_eq(get_be16(udp + 2), WIRE_UDP_PORT);
	cr_assert_eq(get_be16(udp + 4), 8 + len + WIRE_ICRC_LEN);
	icrc = htole32(wire_icrc(&ip, bth, len));
	cr_assert_arr_eq(bth + len, (uint8_t *)&icrc, WIRE_ICRC_LEN);
}

TestSuite(pcap, .init = setup, .fini = teardown, .timeout = 20);

Test(pcap, pcap_tap_create__writes_and_truncates)
{
	static const uint8_t macs[14] = {2, 0, 10, 0, 3, 2, 2, 0, 10, 0, 0, 1, 8, 0};
	struct pcap_pkthdr *h;
	const u_char *b;
	pcap_t *p;

	cr_assert_eq(pcap_tap_create(path, &tap), 0);
	packet(&ip_v4, 12);
	packet(&ip_v6, 4140);
	packet(&ip_v4, 8000);
	pcap_tap_destroy(tap);

	p = read_open();
	cr_assert_eq(pcap_next_ex(p, &h, &b), 1);
	cr_assert_eq(h->caplen, 14 + 28 + 12 + 4);
	cr_assert_eq(h->len, h->caplen);
	cr_assert_arr_eq(b, macs, sizeof(macs));
	cr_assert_eq(get_be16(b + 14 + 4), 0x1234);
	cr_assert_eq(b[14 + 1], 0x68);
	cr_assert_eq(b[14 + 8], 9);
	check_icrc(b, h->caplen);
	cr_assert_eq(pcap_next_ex(p, &h, &b), 1);
	cr_assert_eq(h->caplen, 14 + 48 + 4140 + 4);
	cr_assert_eq(get_be16(b + 12), 0x86dd);
	cr_assert_eq(b[14 + 7], 64, "an unknown hop limit is shown as 64");
	check_icrc(b, h->caplen);
	cr_assert_eq(pcap_next_ex(p, &h, &b), 1);
	cr_assert_eq(h->caplen, 14 + 28 + 8000 + 4);
	check_icrc(b, h->caplen);
	cr_assert_eq(pcap_next_ex(p, &h, &b), PCAP_ERROR_BREAK);
	pcap_close(p);
}

Test(pcap, pcap_tap_create__no_such_folder)
{
	cr_assert_eq(pcap_tap_create("/nonexistent/x.pcap", &tap), -ENOENT);
}

Test(pcap, pcap_tap_create__closes_on_exec)
{
	unsigned int open_fds = 0;

	cr_assert_eq(pcap_tap_create(path, &tap), 0);
	for (int fd = 3; fd < 256; fd++) {
		char link[32], to[64] = "";

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		if (readlink(link, to, sizeof(to) - 1) < 0 || strcmp(to, path))
			continue;
		open_fds++;
		cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	}
	cr_assert_eq(open_fds, 1);
	pcap_tap_destroy(tap);
}

Test(pcap, pcap_tap_create_clocked__virtual_time)
{
	uint64_t now = 3000000000 + 7;
	struct pcap_pkthdr *h;
	const u_char *b;
	pcap_t *p;

	cr_assert_eq(pcap_tap_create_clocked(path, &now, &tap), 0);
	packet(&ip_v4, 12);
	now++;
	packet(&ip_v4, 12);
	pcap_tap_destroy(tap);
	p = read_open();
	for (unsigned int i = 0; i < 2; i++) {
		cr_assert_eq(pcap_next_ex(p, &h, &b), 1);
		cr_assert_eq(h->ts.tv_sec, 3);
		cr_assert_eq(h->ts.tv_usec, 7 + i);
	}
	pcap_close(p);
}

Test(pcap, pcap_tap_flush__makes_it_readable)
{
	cr_assert_eq(pcap_tap_create(path, &tap), 0);
	packet(&ip_v4, 64);
	pcap_tap_flush(tap);
	cr_assert_eq(records(), 1);
	pcap_tap_destroy(tap);
}

/* Runs @story in a process that ends by exit(). */
static void exits(int (*story)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid)
		exit(story());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && !WEXITSTATUS(status));
}

static int write_and_exit(void)
{
	if (pcap_tap_create(path, &tap))
		return 1;
	for (unsigned int i = 0; i < 100; i++)
		packet(&ip_v4, 64);
	return 0;
}

Test(pcap, exit__loses_nothing)
{
	exits(write_and_exit);
	cr_assert_eq(records(), 100);
}

static int write_fork_and_exit(void)
{
	pid_t pid;

	if (write_and_exit())
		return 1;
	pid = fork();
	if (!pid) {
		packet(&ip_v4, 64);
		pcap_tap_flush(tap);
		exit(0);
	}
	waitpid(pid, NULL, 0);
	packet(&ip_v4, 64);
	return 0;
}

Test(pcap, fork__child_writes_nothing)
{
	exits(write_fork_and_exit);
	cr_assert_eq(records(), 101);
}

static int write_to_stdout(void)
{
	int fd = open(path, O_WRONLY | O_TRUNC);

	if (fd < 0 || dup2(fd, 1) < 0 || pcap_tap_create("-", &tap))
		return 1;
	packet(&ip_v4, 64);
	pcap_tap_destroy(tap);
	return fcntl(1, F_GETFD) < 0; /* stdout itself stays open */
}

Test(pcap, pcap_tap_create__stdout)
{
	exits(write_to_stdout);
	cr_assert_eq(records(), 1);
}
