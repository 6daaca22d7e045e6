/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A bare UDP stream with the work that a RoCEv2 stream cannot avoid: what is left for the
 * transport.
 *
 * The sender copies 4096 bytes of its buffer a packet behind a header, computes a CRC over both,
 * and hands batches of 15 packets to the kernel with UDP_SEGMENT. The receiver takes them with
 * UDP_GRO, checks each CRC, copies the payload to its buffer and acknowledges the batch with a
 * datagram. Two batches are under way at a time. (More do not help, one costs a third; 15 packets
 * of 4112 bytes are what fits into one send.)
 *
 * Prints the median payload rate in MiB/s, the unit of ib_send_bw.
 */
#include "udp.h"

#include <isa-l/crc.h>
#include <netinet/udp.h>

#define HEADER	     12
#define PAYLOAD	     4096
#define CRC	     4
#define PACKET	     (HEADER + PAYLOAD + CRC)
#define BATCH	     15
#define WINDOW	     2
#define BUFFER	     (256 << 10) /* user memory that is walked through, both sides */
#define STAGE_OFFSET 2048 /* of a page: other offsets can hit a slow path of the kernel's copy */
#define ROUNDS	     250  /* batches a sample: 15 MiB */
#define SAMPLES	     41

static uint32_t packet_crc(const char *packet)
{
	return crc32_gzip_refl(0, (const unsigned char *)packet, HEADER + PAYLOAD);
}

/* Where the payload behind the one at @at goes: the user's buffer is walked through as a ring. */
static size_t next_place(size_t at)
{
	return at + 2 * PAYLOAD > BUFFER ? 0 : at + PAYLOAD;
}

static size_t stage_batch(char *stage, const char *user, size_t at)
{
	for (int i = 0; i < BATCH; i++) {
		char *packet = stage + i * PACKET;
		uint32_t crc;

		memset(packet, i, HEADER);
		memcpy(packet + HEADER, user + at, PAYLOAD);
		crc = packet_crc(packet);
		memcpy(packet + HEADER + PAYLOAD, &crc, CRC);
		at = next_place(at);
	}
	return at;
}

/* Returns the number of packets in the @n bytes. */
static size_t take_packets(const char *data, size_t n, char *user, size_t *at)
{
	size_t count = n / PACKET;

	if (n % PACKET) {
		fprintf(stderr, "udp_stream: %zu bytes are no whole packets\n", n);
		exit(1);
	}
	for (size_t i = 0; i < count; i++) {
		const char *packet = data + i * PACKET;
		uint32_t crc;

		memcpy(&crc, packet + HEADER + PAYLOAD, CRC);
		if (crc != packet_crc(packet)) {
			fprintf(stderr, "udp_stream: wrong CRC\n");
			exit(1);
		}
		memcpy(user + *at, packet + HEADER, PAYLOAD);
		*at = next_place(*at);
	}
	return count;
}

static void receiver(int fd, char *user)
{
	static char data[65536];
	size_t at = 0, packets = 0, acked = 0;
	int on = 1;

	if (setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)))
		die("UDP_GRO");
	if (send(fd, "r", 1, 0) < 0)
		die("send");
	while (acked < ROUNDS * SAMPLES) {
		packets += take_packets(data, spin_recv(fd, data, sizeof(data)), user, &at);
		for (; (acked + 1) * BATCH <= packets; acked++) {
			if (send(fd, "a", 1, 0) < 0)
				die("send");
		}
	}
}

static double sender(int fd, const char *user, char *stage)
{
	double rate[SAMPLES];
	size_t at = 0;
	int segment = PACKET, under_way = 0;
	char ack;

	if (setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment)))
		die("UDP_SEGMENT");
	spin_recv(fd, &ack, 1); /* the receiver is ready */
	for (int s = 0; s < SAMPLES; s++) {
		uint64_t start = now_ns();

		for (int k = 0; k < ROUNDS; k++) {
			at = stage_batch(stage, user, at);
			if (send(fd, stage, BATCH * PACKET, 0) != BATCH * PACKET)
				die("send");
			if (++under_way == WINDOW) {
				spin_recv(fd, &ack, 1);
				under_way--;
			}
		}
		rate[s] = (double)ROUNDS * BATCH * PAYLOAD / (1 << 20) /
			  ((double)(now_ns() - start) / 1e9);
	}
	for (; under_way; under_way--)
		spin_recv(fd, &ack, 1);
	return median(rate, SAMPLES);
}

int main(void)
{
	char *user = aligned_alloc(4096, BUFFER), *stage = aligned_alloc(4096, 128 << 10);
	int fd[2];
	pid_t peer;

	if (!user || !stage)
		die("memory");
	memset(user, 1, BUFFER);
	udp_pair(fd);
	peer = fork_peer();
	if (!peer) {
		receiver(fd[1], user);
		_exit(0);
	}
	printf("%.0f\n", sender(fd[0], user, stage + STAGE_OFFSET));
	return join_peer(peer);
}
