/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Damaged captures: any byte flipped or cut, 100,000 random cases, in every way of showing them.
 *
 * Each frame ends where readable memory ends, so that one byte too many is a fault also without a
 * sanitizer. A case is a function of its number alone: to see one again, set DIS_CASE=n. DIS_CASES=n
 * runs another number of them.
 */
#include "pcap-dissect/dis_flow.h"
#include "pcap-dissect/dis_read.h"

#include "base/macros.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define CASES	   100000
#define FILE_CASES 3000
#define FRAMES_MAX 6000
#define FRAME_MAX  65536
#define FILES_MAX  256

static uint64_t rng;

static uint64_t rnd(void)
{
	/* splitmix64 */
	uint64_t z = rng += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* What is damaged: the frames of all captures, and the captures themselves. */
static struct {
	uint8_t *b;
	uint32_t len;
	int link;
} frames[FRAMES_MAX];
static unsigned int n_frames;

static struct {
	uint8_t *b;
	size_t len;
} files[FILES_MAX];
static unsigned int n_files;

static void read_frames(const char *path)
{
	char err[PCAP_ERRBUF_SIZE];
	pcap_t *capture = pcap_open_offline(path, err);
	struct pcap_pkthdr *h;
	const u_char *b;

	if (!capture) /* some are broken on purpose */
		return;
	while (n_frames < FRAMES_MAX && pcap_next_ex(capture, &h, &b) == 1) {
		frames[n_frames].b = malloc(h->caplen + 1);
		cr_assert(frames[n_frames].b);
		memcpy(frames[n_frames].b, b, h->caplen);
		frames[n_frames].len = h->caplen;
		frames[n_frames++].link = pcap_datalink(capture);
	}
	pcap_close(capture);
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	FILE *file;

	if (type != FTW_F || (!strstr(path, ".pcap")) || !st->st_size || n_files == FILES_MAX)
		return 0;
	read_frames(path);
	file = fopen(path, "rb");
	files[n_files].b = malloc(st->st_size);
	cr_assert(file && files[n_files].b);
	files[n_files].len = fread(files[n_files].b, 1, st->st_size, file);
	cr_assert_eq(files[n_files].len, (size_t)st->st_size);
	n_files++;
	fclose(file);
	return 0;
}

static void setup(void)
{
	dis_init();
	cr_assert_eq(nftw(TESTS_DIR "/golden/captures", visit, 16, FTW_PHYS), 0);
	cr_assert_eq(nftw(TESTS_DIR "/data", visit, 16, FTW_PHYS), 0);
	cr_assert_gt(n_frames, 1500);
	cr_assert_gt(n_files, 60);
}

TestSuite(dis_damage, .init = setup);

/* One to four damages: a byte with another value, a bit, a run of bytes, an end. Returns the length. */
static size_t damage(uint8_t *b, size_t len)
{
	for (unsigned int n = 1 + rnd() % 4; n && len; n--) {
		/* Headers are where it hurts. */
		size_t at = rnd() % (rnd() & 1 || len < 120 ? len : 120);

		switch (rnd() % 4) {
		case 0:
			b[at] = rnd();
			break;
		case 1:
			b[at] ^= 1 << rnd() % 8;
			break;
		case 2:
			for (unsigned int i = 0; i < 4 && at + i < len; i++)
				b[at + i] = rnd() & 1 ? 0xff : rnd();
			break;
		default:
			len = at;
		}
	}
	return len;
}

/* @room bytes whose end is the end of readable memory. */
static uint8_t *fenced(size_t room)
{
	size_t page = sysconf(_SC_PAGESIZE);
	size_t size = (room + page - 1) / page * page;
	uint8_t *b =
		mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(b, MAP_FAILED);
	cr_assert_eq(mprotect(b + size, page, PROT_NONE), 0);
	return b + size;
}

static void check_text(struct dis_out *o, unsigned int lines, uint64_t number)
{
	cr_assert_eq(o->p[-1], '\n', "case %lu", number);
	for (const char *c = o->buf; c < o->p; c++) {
		cr_assert(*c == '\n' || (*c >= ' ' && *c <= '~'), "case %lu: byte %#x", number, *c);
		lines -= *c == '\n' && lines;
	}
	cr_assert_eq(lines, 0, "case %lu", number);
	o->p = o->buf;
}

static void check_packet(const struct dis_packet *p, uint64_t number)
{
	struct dis_section s[DIS_SECTIONS_MAX];
	unsigned int n = dis_sections(p, s);

	cr_assert_leq(n, DIS_SECTIONS_MAX);
	for (unsigned int i = 0; i < n; i++) {
		cr_assert_leq(s[i].have, s[i].len, "case %lu", number);
		cr_assert(s[i].b >= p->frame && s[i].b + s[i].have <= p->frame + p->caplen,
			  "case %lu", number);
	}
	if (p->layer < DIS_LAYER_ROCE)
		return;
	cr_assert_leq(p->have, p->bth_len, "case %lu", number);
	cr_assert_leq(p->bth + p->have, p->frame + p->caplen, "case %lu", number);
	cr_assert_leq(p->pkt.payload + dis_payload_have(p), p->frame + p->caplen, "case %lu",
		      number);
}

static void run_case(uint64_t number, uint8_t *fence)
{
	static struct dis_out out;
	static struct dis_style style = {.link = true, .last = -1};
	static uint8_t copy[FRAME_MAX];
	struct dis_packet p = {.number = number};
	unsigned int which;
	size_t len;

	rng = number;
	which = rnd() % n_frames;
	len = min_t(size_t, frames[which].len, FRAME_MAX);
	memcpy(copy, frames[which].b, len);
	p.len = len;
	len = damage(copy, len);
	memcpy(fence - len, copy, len);
	p.frame = fence - len;
	p.caplen = len;
	p.ts = rnd() & INT64_MAX;
	/* Snapped, truncated, or nonsense. */
	if (rnd() & 1)
		p.len = rnd() & 3 ? len : rnd() & 0xffff;
	p.link = rnd() % 16 ? frames[which].link : frames[rnd() % n_frames].link;
	dis_decode(&p);
	check_packet(&p, number);
	dis_out_init(&out, -1);
	dis_line(&out, &style, &p);
	check_text(&out, 1, number);
	dis_tree(&out, &style, &p);
	check_text(&out, 2, number);
	dis_json(&out, &style, &p);
	check_text(&out, 1, number);
}

Test(dis_damage, frames)
{
	uint8_t *fence = fenced(FRAME_MAX);
	uint64_t cases = getenv("DIS_CASES") ? strtoull(getenv("DIS_CASES"), NULL, 0) : CASES;

	if (getenv("DIS_CASE")) {
		run_case(strtoull(getenv("DIS_CASE"), NULL, 0), fence);
		return;
	}
	for (uint64_t i = 0; i < cases; i++)
		run_case(i, fence);
}

/* Whatever the packets are, what is known of their conversations stays in its tables, and in text. */
static void run_together(uint8_t *fence, void (*packet)(struct dis_out *o, struct dis_style *style,
							const struct dis_packet *p))
{
	static struct dis_out out;
	static struct dis_style style = {.last = -1};

	dis_out_init(&out, -1);
	for (unsigned int i = 0; i < 4 * n_frames; i++) {
		struct dis_packet p = {.number = i + 1, .ts = (int64_t)i * 100000};
		size_t len = min_t(size_t, frames[i % n_frames].len, FRAME_MAX);

		p.len = len;
		memcpy(fence - len, frames[i % n_frames].b, len);
		rng = i;
		/* Where the last byte is not captured, the ICRC is not verified and damage counts. */
		if (i >= n_frames && len) {
			for (unsigned int n = rnd() % 3; n && len > 42; n--)
				fence[-(int)len + 30 + rnd() % (len - 30)] = rnd();
			memmove(fence - len + 1, fence - len, len - 1);
			len--;
		}
		p.frame = fence - len;
		p.caplen = len;
		p.link = frames[i % n_frames].link;
		dis_decode(&p);
		packet(&out, &style, &p);
		for (const char *c = out.buf; c < out.p; c++)
			cr_assert(*c == '\n' || (*c >= ' ' && *c <= '~'), "packet %u", i);
		out.p = out.buf;
	}
}

Test(dis_damage, conversations)
{
	static struct dis_out out;
	uint8_t *fence = fenced(FRAME_MAX);

	dis_out_init(&out, -1);
	cr_assert_eq(dis_check_begin("damaged"), 0);
	run_together(fence, dis_check_packet);
	cr_assert_gt(dis_check_end(&out, true), 100);
	cr_assert_eq(dis_flow_begin(false), 0);
	run_together(fence, dis_flow_packet);
	dis_flow_end(&out);
	cr_assert_eq(dis_follow_begin(0x13), 0);
	run_together(fence, dis_follow_learn);
	cr_assert_gt(dis_follow_learnt(), 0);
	dis_follow_end();
}

/* libpcap reads what is left of a file; all that it finds is shown, and the end is told as it is. */
Test(dis_damage, files)
{
	static struct dis_out out;
	int null = open("/dev/null", O_WRONLY);
	unsigned int refused = 0;

	cr_assert_geq(null, 0);
	cr_assert_eq(dup2(null, STDERR_FILENO), STDERR_FILENO);
	dis_out_init(&out, -1);
	for (unsigned int i = 0; i < FILE_CASES; i++) {
		struct dis_job job = {
			.packet = dis_json, .out = &out, .all = true, .style = {.last = -1}};
		unsigned int which;
		uint8_t *copy;
		size_t len;
		FILE *file;

		rng = i;
		which = rnd() % n_files;
		len = files[which].len;
		copy = malloc(len);
		cr_assert(copy);
		memcpy(copy, files[which].b, len);
		len = damage(copy, len);
		file = len ? fmemopen(copy, len, "rb") : fopen("/dev/null", "rb");
		cr_assert(file);
		refused += dis_read_stream(&job, "damaged", file, 0) != 0;
		free(copy);
	}
	/* Neither all nor none. */
	cr_assert(refused > FILE_CASES / 20 && refused < FILE_CASES, "%u", refused);
}
