// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A tap that writes a capture: Ethernet link type, one packet a record, readable by Wireshark.
 *
 * Theory. A link hands each packet to its tap with the IPv4 identification and the ICRC that are on
 * the wire; a sniffer on the interface would see a GSO burst as one datagram that it cannot take
 * apart. Ethernet, IP and UDP headers are made here. Where the link does not know a packet's TTL,
 * 64 is written: the ICRC does not cover it, and Wireshark warns of 0.
 *
 * Records collect in a stdio stream, which exit() flushes; a process that is killed loses what was
 * written since the last pcap_tap_flush(). fork() would give the child a copy of the unwritten
 * records, to be written a second time at its exit: so all captures are flushed before a fork, and
 * the child writes none.
 *
 * Several lanes may share a tap: a lock keeps the records whole.
 */
#include "net/pcap.h"

#include "base/bytes.h"
#include "base/lock.h"
#include "base/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ETHER_LEN   14
#define SNAPLEN	    (ETHER_LEN + 65535 + 40)
#define UNKNOWN_TTL 64

struct pcap_tap {
	struct link_tap tap;
	struct lock lock;
	pcap_t *format;
	pcap_dumper_t *dumper;
	const uint64_t *now; /* ns of virtual time; NULL: the wall clock */
	bool foreign;	     /* this process is a child and the capture its parent's */
	struct pcap_tap *next;
};

/* All captures of the process, for fork(). */
static struct lock taps_lock;
static struct pcap_tap *taps;

static void before_fork(void)
{
	lock_take(&taps_lock);
	for (struct pcap_tap *t = taps; t; t = t->next) {
		lock_take(&t->lock);
		if (!t->foreign)
			pcap_dump_flush(t->dumper);
	}
}

static void after_fork(bool child)
{
	for (struct pcap_tap *t = taps; t; t = t->next) {
		t->foreign |= child;
		lock_give(&t->lock);
	}
	lock_give(&taps_lock);
}

static void after_fork_parent(void)
{
	after_fork(false);
}

static void after_fork_child(void)
{
	after_fork(true);
}

static void watch_fork(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

static void put_mac(uint8_t *mac, const uint8_t ip[16])
{
	mac[0] = 2; /* locally administered */
	mac[1] = 0;
	memcpy(mac + 2, ip + 12, 4);
}

static struct timeval timestamp(const struct pcap_tap *t)
{
	struct timespec ts;

	/* The format has nanosecond precision: tv_usec holds nanoseconds. */
	if (t->now)
		return (struct timeval){*t->now / 1000000000, *t->now % 1000000000};
	clock_gettime(CLOCK_REALTIME, &ts);
	return (struct timeval){ts.tv_sec, ts.tv_nsec};
}

static void write_packet(struct link_tap *tap, enum link_dir dir, const struct wire_ip *ip,
			 const uint8_t *b, size_t len)
{
	struct pcap_tap *t = container_of(tap, struct pcap_tap, tap);
	uint8_t frame[SNAPLEN];
	struct wire_ip shown = *ip;
	struct pcap_pkthdr h;
	size_t hdr;

	if (!shown.ttl)
		shown.ttl = UNKNOWN_TTL;
	put_mac(frame, ip->dst);
	put_mac(frame + 6, ip->src);
	put_be16(frame + 12, wire_ip_is_v4(ip->src) ? 0x0800 : 0x86dd);
	hdr = ETHER_LEN + wire_ip_udp(frame + ETHER_LEN, &shown, len);
	memcpy(frame + hdr, b, min_t(size_t, len, sizeof(frame) - hdr));
	h.len = hdr + len;
	h.caplen = min_t(size_t, h.len, sizeof(frame));

	lock_take(&t->lock);
	h.ts = timestamp(t); /* inside, so that the records are in order */
	if (!t->foreign)
		pcap_dump((u_char *)t->dumper, &h, frame);
	lock_give(&t->lock);
}

/* Return: a stream that exec() closes, or NULL with errno set. */
static FILE *open_stream(const char *path)
{
	FILE *f;
	int fd;

	if (!strcmp(path, "-"))
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	else
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return NULL;
	f = fdopen(fd, "wb");
	if (!f)
		close(fd);
	return f;
}

int pcap_tap_create_clocked(const char *path, const uint64_t *now, struct link_tap **out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct pcap_tap *t = calloc(1, sizeof(*t));
	FILE *stream;
	int err = -ENOMEM;

	if (!t)
		return err;
	t->tap.packet = write_packet;
	t->now = now;
	lock_init(&t->lock);
	t->format = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, SNAPLEN,
							 PCAP_TSTAMP_PRECISION_NANO);
	if (!t->format)
		goto err_free;
	stream = open_stream(path);
	if (!stream) {
		err = -errno;
		goto err_format;
	}
	t->dumper = pcap_dump_fopen(t->format, stream);
	if (!t->dumper) {
		/* The file's header could not be written; libpcap leaves the stream to us. */
		err = -EIO;
		fclose(stream);
		goto err_format;
	}
	pthread_once(&once, watch_fork);
	lock_take(&taps_lock);
	t->next = taps;
	taps = t;
	lock_give(&taps_lock);
	*out = &t->tap;
	return 0;

err_format:
	pcap_close(t->format);
err_free:
	free(t);
	return err;
}

int pcap_tap_create(const char *path, struct link_tap **out)
{
	return pcap_tap_create_clocked(path, NULL, out);
}

void pcap_tap_flush(struct link_tap *tap)
{
	struct pcap_tap *t = container_of(tap, struct pcap_tap, tap);

	lock_take(&t->lock);
	if (!t->foreign)
		pcap_dump_flush(t->dumper);
	lock_give(&t->lock);
}

void pcap_tap_destroy(struct link_tap *tap)
{
	struct pcap_tap *t = container_of(tap, struct pcap_tap, tap), **at = &taps;

	lock_take(&taps_lock);
	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	lock_give(&taps_lock);
	pcap_dump_close(t->dumper);
	pcap_close(t->format);
	free(t);
}
