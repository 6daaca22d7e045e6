/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets from capture files and interfaces, by libpcap, one at a time: memory does not grow with the file.
 *
 * The user's filter is applied here and not by libpcap, so that a packet keeps its number in the file. On an
 * interface the kernel filters, for it must not copy what nobody wants: UDP port 4791, also behind a VLAN
 * tag, and the user's filter.
 */
#include "pcap-dissect/dis_read.h"

#include "base/macros.h"
#include "pcap-dissect/dis_link.h"

#include <errno.h>
#include <inttypes.h>
#include <pcap/pcap.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define NS		1000000000
#define READ_BUFFER	(1 << 18)
#define PROGRESS_SIZE	(UINT64_C(64) << 20) /* below this a file is read before one looks */
#define RECORD_HEADER	16
#define LIVE_SNAPLEN	262144
#define LIVE_BUFFER	(16 << 20)
#define LIVE_TIMEOUT_MS 100
#define LIVE_FILTER	"(udp port 4791 or (vlan and udp port 4791))"
#define LIVE_FILTER_IP	"(udp port 4791)"

struct source {
	struct dis_job *job;
	const char *name;
	pcap_t *pcap;
	struct bpf_program filter;
	bool filtered;
	struct dis_packet p;

	uint64_t size; /* of the file; 0: unknown, no progress */
	uint64_t at;   /* bytes of it that were read, nearly */
	uint64_t next; /* when to show progress again */
};

static pcap_t *live; /* what a signal stops */
static bool quiet;   /* of the job that is being done */

static int complain(const char *name, const char *why)
{
	if (!quiet)
		dis_warn("%s: %s", name, why);
	return -EINVAL;
}

/* Also right for the nonsense in a damaged file: between 0 and the year 2262. */
static int64_t timestamp(const struct timeval *tv)
{
	int64_t s = tv->tv_sec;
	int64_t ns = tv->tv_usec; /* nanoseconds were asked for */

	if (s < 0 || s > INT64_MAX / NS - 1)
		s = 0;
	if (ns < 0 || ns >= NS)
		ns = 0;
	return s * NS + ns;
}

/* A terminal shows one line that changes; a log gets a line now and then. */
static void show_progress(struct source *s)
{
	bool terminal = isatty(STDERR_FILENO);
	unsigned int percent = s->at * 100 / s->size;
	unsigned int step = terminal ? 1 : 10;

	dis_warn_between(terminal ? "\rrxe-dissect: " : "rxe-dissect: ", terminal ? "" : "\n",
			 "%s: %u %%, %" PRIu64 " packets", s->name, percent, s->p.number);
	s->next = (percent / step + 1) * step * (s->size / 100);
}

static void end_progress(const struct source *s)
{
	if (s->next && isatty(STDERR_FILENO))
		fputc('\n', stderr);
}

/* A later part of a UDP packet may well be of port 4791; its header is in the first part. */
static bool wanted(const struct dis_job *job, const struct dis_packet *p)
{
	return p->layer == DIS_LAYER_ROCE || job->all ||
	       (p->notes & DIS_NOTE(FRAGMENT) && p->frag_off && p->proto == DIS_PROTO_UDP);
}

static void take(u_char *user, const struct pcap_pkthdr *h, const u_char *frame)
{
	struct source *s = (struct source *)user;
	struct dis_job *job = s->job;
	struct dis_packet *p = &s->p;

	p->number++;
	s->at += RECORD_HEADER + h->caplen;
	if (unlikely(s->size && s->at >= s->next))
		show_progress(s);
	if (s->filtered && !pcap_offline_filter(&s->filter, h, frame))
		return;
	p->frame = frame;
	p->ts = timestamp(&h->ts);
	p->len = h->len;
	p->caplen = h->caplen;
	dis_decode(p);
	if (wanted(job, p)) {
		if (job->pick && !job->pick(p))
			return;
		job->packet(job->out, &job->style, p);
		job->shown++;
	} else {
		job->other++;
	}
	if (unlikely((job->limit && job->shown >= job->limit) || job->out->error)) {
		job->stop = true;
		pcap_breakloop(s->pcap);
	}
}

static int compile(struct source *s, const char *text, struct bpf_program *to)
{
	return pcap_compile(s->pcap, to, text, 1, PCAP_NETMASK_UNKNOWN);
}

static int open_source(struct source *s)
{
	char text[128];
	int link = pcap_datalink(s->pcap);
	const char *link_name = pcap_datalink_val_to_name(link);

	if (!dis_link_known(link)) {
		snprintf(text, sizeof(text), "link type %d (%s) is none that carries RoCEv2 here",
			 link, link_name ? link_name : "unknown");
		return complain(s->name, text);
	}
	s->p.link = link;
	s->p.file = s->job->tell_file ? s->name : NULL;
	return 0;
}

int dis_read_stream(struct dis_job *job, const char *name, FILE *file, uint64_t size)
{
	struct source s = {.job = job, .name = name};
	/* Standard input stays open, so its buffer could not be freed. */
	char *buffer = file == stdin ? NULL : malloc(READ_BUFFER);
	char err[PCAP_ERRBUF_SIZE];
	int ret;

	if (buffer)
		setvbuf(file, buffer, _IOFBF, READ_BUFFER);
	s.size = job->progress && size >= PROGRESS_SIZE ? size : 0;
	s.pcap = pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, err);
	if (!s.pcap) {
		fclose(file);
		ret = complain(name, err);
		goto out_buffer;
	}
	ret = open_source(&s);
	if (ret)
		goto out_close;
	if (job->filter) {
		if (compile(&s, job->filter, &s.filter)) {
			ret = complain(job->filter, pcap_geterr(s.pcap));
			goto out_close;
		}
		s.filtered = true;
	}
	s.next = s.size / 100;
	ret = pcap_loop(s.pcap, -1, take, (u_char *)&s);
	end_progress(&s);
	if (ret == PCAP_ERROR) {
		dis_out_flush(job->out);
		ret = complain(name, pcap_geterr(s.pcap));
	} else {
		ret = 0; /* the end, or a stop */
	}
	if (s.filtered)
		pcap_freecode(&s.filter);
out_close:
	pcap_close(s.pcap);
out_buffer:
	free(buffer);
	return ret;
}

int dis_read_file(struct dis_job *job, const char *name)
{
	FILE *file;
	struct stat st;

	quiet = job->quiet;
	if (!strcmp(name, "-"))
		return dis_read_stream(job, "standard input", stdin, 0);
	file = fopen(name, "rb");
	if (!file)
		return complain(name, strerror(errno));
	return dis_read_stream(job, name, file, fstat(fileno(file), &st) ? 0 : st.st_size);
}

static void on_signal(int sig)
{
	pcap_breakloop(live);
}

/* Ours and the user's; some link types know no VLANs. */
static int set_live_filter(struct source *s)
{
	static const char *const ours[] = {LIVE_FILTER, LIVE_FILTER_IP};
	const char *users = s->job->filter;
	struct bpf_program program;
	char text[4096];
	int ret;

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++) {
		/* The user's first: "vlan" moves the offsets of all that follows. */
		if (users)
			ret = snprintf(text, sizeof(text), "(%s) and %s", users, ours[i]);
		else
			ret = snprintf(text, sizeof(text), "%s", ours[i]);
		if (ret >= (int)sizeof(text))
			return complain("filter", "too long");
		if (compile(s, text, &program))
			continue;
		ret = pcap_setfilter(s->pcap, &program);
		pcap_freecode(&program);
		if (!ret)
			return 0;
	}
	return complain(users ? users : s->name, pcap_geterr(s->pcap));
}

static int activate(struct source *s)
{
	char text[PCAP_ERRBUF_SIZE + 64];
	const char *what, *why;
	int ret;

	pcap_set_snaplen(s->pcap, s->job->snaplen ? s->job->snaplen : LIVE_SNAPLEN);
	pcap_set_promisc(s->pcap, !s->job->no_promisc);
	pcap_set_timeout(s->pcap, LIVE_TIMEOUT_MS);
	pcap_set_buffer_size(s->pcap, LIVE_BUFFER);
	/* Not every interface has it; the packet's time says then only microseconds. */
	pcap_set_tstamp_precision(s->pcap, PCAP_TSTAMP_PRECISION_NANO);
	ret = pcap_activate(s->pcap);
	if (ret >= 0)
		return 0;
	/* The first is a word for the number, the second the reason: often one of them says nothing new. */
	what = pcap_statustostr(ret);
	why = pcap_geterr(s->pcap);
	if (!*why || !strcmp(why, what))
		return complain(s->name, what);
	if (ret == PCAP_ERROR)
		return complain(s->name, why);
	snprintf(text, sizeof(text), "%s: %s", what, why);
	return complain(s->name, text);
}

int dis_read_live(struct dis_job *job, const char *interface)
{
	struct source s = {.job = job, .name = interface};
	struct sigaction sa = {.sa_handler = on_signal};
	struct pcap_stat stat;
	char err[PCAP_ERRBUF_SIZE];
	int ret;

	s.pcap = pcap_create(interface, err);
	if (!s.pcap)
		return complain(interface, err);
	ret = activate(&s);
	if (ret)
		goto out_close;
	ret = open_source(&s);
	if (ret)
		goto out_close;
	ret = set_live_filter(&s);
	if (ret)
		goto out_close;
	live = s.pcap;
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	dis_warn("listening on %s", interface);
	while (!job->stop) {
		int n = pcap_dispatch(s.pcap, -1, take, (u_char *)&s);

		dis_out_flush(job->out);
		if (n == PCAP_ERROR)
			ret = complain(interface, pcap_geterr(s.pcap));
		if (n < 0)
			break;
	}
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	if (!pcap_stats(s.pcap, &stat))
		dis_warn("%llu packets shown, %u received, %u dropped by the kernel",
			 (unsigned long long)job->shown, stat.ps_recv, stat.ps_drop);
out_close:
	pcap_close(s.pcap);
	return ret;
}
