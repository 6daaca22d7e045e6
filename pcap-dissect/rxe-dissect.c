/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rxe-dissect: show what a capture of RoCEv2 says, XRC with it.
 *
 * This file is the command line; where packets come from is dis_read.c, what they mean dis_decode.c, how
 * they are shown dis_line.c, dis_tree.c and dis_json.c.
 */
#include "base/macros.h"
#include "pcap-dissect/dis_flow.h"
#include "pcap-dissect/dis_read.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXIT_BROKEN  1 /* --check reported something, --follow found nothing */
#define EXIT_TROUBLE 2

enum { OPT_JSON = 256, OPT_NANO, OPT_PROGRESS, OPT_FLOWS, OPT_FOLLOW, OPT_CHECK, OPT_VERSION };

static const struct option options[] = {
	{"json", no_argument, NULL, OPT_JSON},
	{"all", no_argument, NULL, 'a'},
	{"number", no_argument, NULL, '#'},
	{"nano", no_argument, NULL, OPT_NANO},
	{"progress", no_argument, NULL, OPT_PROGRESS},
	{"flows", no_argument, NULL, OPT_FLOWS},
	{"follow", required_argument, NULL, OPT_FOLLOW},
	{"check", no_argument, NULL, OPT_CHECK},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static const char usage[] =
	"Usage: rxe-dissect [OPTION]... FILE...\n"
	"       rxe-dissect [OPTION]... -i INTERFACE\n"
	"Show the RoCEv2 packets of captures, XRC among them, and verify their ICRCs.\n"
	"\n"
	"  -i INTERFACE   show the packets of an interface as they come\n"
	"  -r FILE        a capture, pcap or pcapng; like FILE alone. - is standard input\n"
	"  -f FILTER      only packets that match, in the language of pcap-filter(7)\n"
	"  -c COUNT       stop after so many packets\n"
	"  -V, -v         every field, header by header\n"
	"      --json     every field, one JSON object a line\n"
	"      --flows    not packets, but what each QP pair and each SRQ sent; also with --json\n"
	"      --follow QPN  only the packets of one conversation, both directions\n"
	"      --check    not packets, but the rules they break; exit status 1 if there are any\n"
	"  -a, --all      also what is not RoCEv2\n"
	"  -#, --number   the packet's number first\n"
	"  -t             no time; -tt seconds since 1970; -ttt time since the packet before;\n"
	"                 -tttt date and time\n"
	"  -e             the link-level header\n"
	"      --nano     nanoseconds\n"
	"      --progress tell on standard error how far a large file is\n"
	"  -p             not in promiscuous mode\n"
	"  -s SNAPLEN     of an interface, only so many bytes of each frame\n"
	"  -n, -l, -q     as always: no names, a line at once, a short one; for fingers used to "
	"tcpdump\n"
	"  -h, --help     this text\n"
	"      --version  the version\n";

/* What is printed: one of them, or lines without any; and some pairs. */
enum mode { MODE_TREE = 1, MODE_JSON = 2, MODE_FLOWS = 4, MODE_FOLLOW = 8, MODE_CHECK = 16 };

static const struct {
	enum mode mode;
	const char *option;
	unsigned int with; /* others that it may be given with */
} modes[] = {
	{MODE_TREE, "-V", MODE_FOLLOW},	    {MODE_JSON, "--json", MODE_FOLLOW | MODE_FLOWS},
	{MODE_FLOWS, "--flows", MODE_JSON}, {MODE_FOLLOW, "--follow", MODE_TREE | MODE_JSON},
	{MODE_CHECK, "--check", 0},
};

struct command {
	struct dis_job job;
	const char *interface;
	const char **files;
	int n_files;
	int clock;	    /* how many -t */
	unsigned int modes; /* enum mode */
	uint64_t qpn;	    /* to follow */
};

static int bad_usage(const char *what)
{
	dis_warn("%s", what);
	fputs("Try 'rxe-dissect --help'.\n", stderr);
	return EXIT_TROUBLE;
}

static bool is_stdin(const char *file)
{
	return !strcmp(file, "-");
}

static int bad_file(const char *file, const char *what)
{
	dis_warn("%s: %s", is_stdin(file) ? "standard input" : file, what);
	return EXIT_TROUBLE;
}

static bool parse_count(const char *text, uint64_t *count)
{
	char *end;

	errno = 0;
	*count = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *count;
}

static bool parse_snaplen(const char *text, uint32_t *snaplen)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	*snaplen = n;
	return *text >= '0' && *text <= '9' && !*end && !errno && n <= INT32_MAX;
}

/* What tcpdump does and this program does not. */
static int refuse(int opt)
{
	static const struct {
		char opt;
		const char *instead;
	} others[] = {
		{'w', "no captures are written; tcpdump -w FILE 'udp port 4791' does, or rxe-run "
		      "--pcap"},
		{'x', "payloads are not printed; tcpdump -x does"},
		{'X', "payloads are not printed; tcpdump -X does"},
		{'A', "payloads are not printed; tcpdump -A does"},
		{'D', "interfaces are not listed; tcpdump -D does, or ip link"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (others[i].opt == opt)
			dis_warn("-%c: %s", opt, others[i].instead);
	return EXIT_TROUBLE;
}

static bool parse_qpn(const char *text, uint64_t *qpn)
{
	char *end;

	errno = 0;
	*qpn = strtoull(text, &end, 0);
	return *text >= '0' && *text <= '9' && !*end && !errno && *qpn <= 0xffffff;
}

/* getopt's own messages would print an option as it is. @arg: the argument that it looked at last. */
static int bad_option(int opt, const char *arg)
{
	int fits = 0;

	if (optopt && optopt < OPT_JSON) {
		dis_warn(opt == ':' ? "option requires an argument -- '%c'"
				    : "invalid option -- '%c'",
			 optopt);
	} else if (optopt) {
		dis_warn(opt == ':' ? "option '%s' requires an argument"
				    : "option '%s' takes no argument",
			 arg);
	} else {
		for (const struct option *o = options; o->name; o++)
			fits += !strncmp(o->name, arg + 2, strlen(arg) - 2);
		dis_warn("%s option '%s'", fits > 1 ? "ambiguous" : "unrecognized", arg);
	}
	fputs("Try 'rxe-dissect --help'.\n", stderr);
	return EXIT_TROUBLE;
}

/* Returns -1 to go on, or the exit status. */
static int parse_option(struct command *c, int opt, const char *arg)
{
	switch (opt) {
	case 'i':
		if (c->interface)
			return bad_usage("-i is given twice");
		c->interface = optarg;
		return -1;
	case 'r':
		c->files[c->n_files++] = optarg;
		return -1;
	case 'f':
		c->job.filter = optarg;
		return -1;
	case 'c':
		return parse_count(optarg, &c->job.limit) ? -1
							  : bad_usage("-c wants a number above 0");
	case 'V':
	case 'v':
		c->modes |= MODE_TREE;
		return -1;
	case OPT_JSON:
		c->modes |= MODE_JSON;
		return -1;
	case 'a':
		c->job.all = true;
		return -1;
	case '#':
		c->job.style.number = true;
		return -1;
	case 't':
		c->clock++;
		return -1;
	case OPT_NANO:
		c->job.style.nano = true;
		return -1;
	case OPT_PROGRESS:
		c->job.progress = true;
		return -1;
	case OPT_FLOWS:
		c->modes |= MODE_FLOWS;
		return -1;
	case OPT_CHECK:
		c->modes |= MODE_CHECK;
		return -1;
	case OPT_FOLLOW:
		if (c->modes & MODE_FOLLOW)
			return bad_usage("--follow is given twice");
		c->modes |= MODE_FOLLOW;
		return parse_qpn(optarg, &c->qpn) ? -1 : bad_usage("--follow wants a QPN");
	case 'e':
		c->job.style.link = true;
		return -1;
	case 'p':
		c->job.no_promisc = true;
		return -1;
	case 's':
		return parse_snaplen(optarg, &c->job.snaplen)
			       ? -1
			       : bad_usage("-s wants a number of bytes");
	case 'n': /* no address or port is ever given a name */
	case 'l': /* what an interface brings is never kept back */
	case 'q': /* a line is short */
		return -1;
	case 'w':
	case 'x':
	case 'X':
	case 'A':
	case 'D':
		return refuse(opt);
	case 'h':
		fputs(usage, stdout);
		return 0;
	case OPT_VERSION:
		puts("rxe-dissect " DIS_VERSION);
		return 0;
	default:
		return bad_option(opt, arg);
	}
}

/* Of what can be read only once: whether the two names are of the same. */
static bool same_stream(const char *a, const char *b)
{
	struct stat sa, sb;

	if (is_stdin(a) && is_stdin(b))
		return true;
	if (is_stdin(a) ? fstat(STDIN_FILENO, &sa) : stat(a, &sa))
		return false;
	if (is_stdin(b) ? fstat(STDIN_FILENO, &sb) : stat(b, &sb))
		return false;
	return !S_ISREG(sa.st_mode) && !S_ISDIR(sa.st_mode) && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

/* A pipe gives what it has once. */
static int check_streams(const struct command *c)
{
	for (int i = 0; i < c->n_files; i++) {
		for (int k = 0; k < i; k++)
			if (same_stream(c->files[i], c->files[k]))
				return bad_file(c->files[i], "can be read only once");
	}
	return -1;
}

/* What goes with what. */
static int parse_together(struct command *c)
{
	char text[64];

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		if (!(c->modes & modes[i].mode))
			continue;
		for (size_t k = 0; k < i; k++) {
			if (!(c->modes & modes[k].mode & ~modes[i].with))
				continue;
			snprintf(text, sizeof(text), "%s and %s do not go together",
				 modes[k].option, modes[i].option);
			return bad_usage(text);
		}
	}
	if (c->modes & MODE_TREE)
		c->job.packet = dis_tree;
	if (c->modes & MODE_JSON)
		c->job.packet = dis_json;
	if (!(c->modes & MODE_FOLLOW))
		return -1;
	if (c->interface)
		return bad_usage("--follow reads twice, and an interface cannot be");
	for (int i = 0; i < c->n_files; i++)
		if (is_stdin(c->files[i]))
			return bad_usage("--follow reads twice, and standard input cannot be");
	return -1;
}

static int parse(struct command *c, int argc, char **argv)
{
	static const enum dis_clock clocks[] = {DIS_CLOCK_TIME, DIS_CLOCK_NONE, DIS_CLOCK_EPOCH,
						DIS_CLOCK_DELTA, DIS_CLOCK_DATE};
	int opt, status;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":i:r:f:c:Vva#tenlqps:w:xXADh", options, NULL)) !=
	       -1) {
		status = parse_option(c, opt, argv[optind - 1]);
		if (status >= 0)
			return status;
	}
	while (optind < argc)
		c->files[c->n_files++] = argv[optind++];
	if (c->clock > 4)
		return bad_usage("at most four -t");
	c->job.style.clock = clocks[c->clock];
	if (c->interface && c->n_files)
		return bad_usage("either files or an interface; a filter is given with -f");
	if (!c->interface && !c->n_files)
		return bad_usage("no file and no interface");
	c->job.tell_file = c->n_files > 1;
	status = parse_together(c);
	return status < 0 ? check_streams(c) : status;
}

/* As head and tail do it; JSON names the file in each object. */
static void print_heading(struct command *c, int i)
{
	struct dis_out *o = c->job.out;

	if (c->n_files < 2 || c->modes & (MODE_JSON | MODE_CHECK))
		return;
	dis_out_room(o);
	out_str(o, i ? "\n==> " : "==> ");
	out_name(o, c->files[i]);
	out_str(o, " <==\n");
	/* Before what standard error says of this file. */
	dis_out_flush(o);
}

/* To learn whom the QP talks to; the limit is for what is shown. Returns 0, or -EINVAL after a message. */
static int learn(struct command *c, const char *file)
{
	struct dis_job first = c->job;
	struct stat st;

	/* Not opened: that would wait for who writes to a pipe. What cannot be opened is told when it is read. */
	if (!stat(file, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		bad_file(file, "--follow reads twice, it needs a regular file");
		return -EINVAL;
	}
	first.packet = dis_follow_learn;
	first.quiet = true;
	first.limit = 0;
	dis_read_file(&first, file);
	c->job.pick = dis_follow_pick;
	dis_follow_learnt();
	return 0;
}

/* One capture, from a file or, when that is NULL, from the interface. Returns the exit status. */
static int run_one(struct command *c, const char *file)
{
	struct dis_job job = c->job;
	int status = 0, ret = 0;

	if (c->modes & MODE_FLOWS) {
		ret = dis_flow_begin(c->modes & MODE_JSON);
		c->job.packet = dis_flow_packet;
	} else if (c->modes & MODE_CHECK) {
		ret = dis_check_begin(file ? file : c->interface);
		c->job.packet = dis_check_packet;
	} else if (c->modes & MODE_FOLLOW) {
		ret = dis_follow_begin(c->qpn);
		if (!ret)
			ret = learn(c, file);
	}
	if (!ret)
		ret = file ? dis_read_file(&c->job, file) : dis_read_live(&c->job, c->interface);
	if (ret == -ENOMEM)
		return bad_usage("no memory");
	if (c->modes & MODE_FLOWS)
		dis_flow_end(c->job.out);
	else if (c->modes & MODE_CHECK && dis_check_end(c->job.out, !ret))
		status = EXIT_BROKEN;
	else if (c->modes & MODE_FOLLOW)
		dis_follow_end();
	if (c->modes & MODE_FOLLOW && !ret && c->job.shown == job.shown)
		dis_warn("%s: no packet of QP 0x%06llx%s", file, (unsigned long long)c->qpn,
			 job.filter ? " that matches the filter" : "");
	c->job.packet = job.packet;
	return ret ? EXIT_TROUBLE : status;
}

static int run(struct command *c)
{
	struct dis_job *job = &c->job;
	int status = 0;

	if (c->interface)
		status = run_one(c, NULL);
	for (int i = 0; i < c->n_files && !job->stop; i++) {
		int one;

		print_heading(c, i);
		job->style.last = -1;
		one = run_one(c, c->files[i]);
		if (one > status)
			status = one;
	}
	/* As grep does it: what none of the files has. */
	if (c->modes & MODE_FOLLOW && !status && !job->shown)
		status = EXIT_BROKEN;
	dis_out_flush(job->out);
	/* A reader that has seen enough, head for instance, is no trouble. */
	if (job->out->error && job->out->error != EPIPE) {
		dis_warn("standard output: %s", strerror(job->out->error));
		status = EXIT_TROUBLE;
	}
	if (job->other)
		dis_warn("%llu packets that are not RoCEv2%s", (unsigned long long)job->other,
			 c->modes & (MODE_FLOWS | MODE_CHECK | MODE_FOLLOW) ? ""
									    : " (-a shows them)");
	return status;
}

int main(int argc, char **argv)
{
	static struct dis_out out;
	struct command c = {.job = {.packet = dis_line, .out = &out, .style = {.last = -1}}};
	int status;

	/* Beside packets on the same terminal it would be in the way. */
	c.job.progress = isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO);
	c.files = calloc(argc, sizeof(*c.files));
	if (!c.files)
		return EXIT_TROUBLE;
	signal(SIGPIPE, SIG_IGN);
	dis_init();
	dis_out_init(&out, STDOUT_FILENO);
	status = parse(&c, argc, argv);
	if (status < 0)
		status = run(&c);
	free(c.files);
	return status;
}
