/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rxe-run: starts a program with the device in it.
 *
 * Options become RXE_* variables, the preload library goes to the front of LD_PRELOAD, and the
 * program takes this process's place. What can be checked is checked here, by the library's own
 * parser and interface list, so that a wrong value is told by the command that was typed and not by
 * some program that finds no device. Nothing stays behind: no process, no file.
 *
 * The library lies beside the launcher in the build tree, or where it was installed. Both are found
 * from the place of the launcher itself, so that an installation can be moved.
 *
 * Exit status: 2 for wrong usage, 127 when the program is not found, 126 when it cannot be
 * executed, else the program's own.
 */
#include "base/log.h"
#include "verbs/config.h"
#include "verbs/netdev.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY "librxe-verbs.so"

enum { EXIT_USAGE = 2, EXIT_NO_EXEC = 126, EXIT_NOT_FOUND = 127 };

/* Options that carry a setting. --stats may come without a value. */
static const struct setting {
	const char *option, *variable;
	int has_arg;
} settings[] = {
	{"netdev", "RXE_NETDEV", required_argument}, {"addr", "RXE_ADDR", required_argument},
	{"pcap", "RXE_PCAP", required_argument},     {"fault", "RXE_FAULT", required_argument},
	{"stats", "RXE_STATS", optional_argument},   {"gso", "RXE_GSO", required_argument},
	{"lanes", "RXE_LANES", required_argument},   {"log", "RXE_LOG", required_argument},
};

static bool given[ARRAY_SIZE(settings)]; /* by option, and not by the environment */

/* Variables without an option; checked all the same. */
static const char *const other_variables[] = {"RXE_SAFE_COPY"};

static const char help[] =
	"Usage: rxe-run [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
	"Run PROGRAM with a software RoCEv2 device that has XRC.\n"
	"\n"
	"  --netdev IF      offer the device of this interface only (xrc_IF)\n"
	"  --addr IP        address that the device uses: GID index 0. On lo any 127.x.x.x\n"
	"  --pcap FILE      write the packets of the device to FILE; %p is the process id\n"
	"  --fault SPEC     spoil packets that are sent: drop=1%,dup=0.5%,reorder=2%,\n"
	"                   corrupt=0.1%,delay=5%,delay-us=200,seed=7\n"
	"  --stats[=FILE]   print the device's counters at exit, to FILE or standard error\n"
	"  --gso auto|off   hand bursts to the kernel in one piece (auto), or packet by packet\n"
	"  --lanes N        N lanes (1, 2, 4, 8, 16), which threads of PROGRAM run in parallel\n"
	"  --log LEVEL      error, warn, info or debug\n"
	"  --help           this text\n"
	"  --version        the version\n"
	"\n"
	"The same settings are taken from RXE_NETDEV, RXE_ADDR, RXE_PCAP, RXE_FAULT, RXE_STATS,\n"
	"RXE_GSO, RXE_LANES and RXE_LOG; options win.\n"
	"\n"
	"Examples:\n"
	"  rxe-run -- ibv_devinfo -v\n"
	"  rxe-run --addr 127.0.0.1 -- ib_send_lat -c XRC                 the server\n"
	"  rxe-run --addr 127.0.0.2 -- ib_send_lat -c XRC localhost       the client\n"
	"  rxe-run --netdev eth0 --pcap trace.pcap -- ibv_xsrq_pingpong -g 0\n"
	"  rxe-run --fault drop=1% --stats -- ./my_test                   with lost packets\n";

static void say(const char *fmt, ...) PRINTF_LIKE(1, 2);

static void say(const char *fmt, ...)
{
	va_list ap;

	fputs("rxe-run: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

static int usage(void)
{
	fputs("Try 'rxe-run --help'.\n", stderr);
	return EXIT_USAGE;
}

static int check_setting(struct config *c, const char *variable, const char *option)
{
	const char *value = getenv(variable);
	char why[128];

	if (!value || !config_set(c, variable, value, why, sizeof(why)))
		return 0;
	say("bad value of %s%s, \"%s\": %s", option ? "--" : "", option ? option : variable, value,
	    why);
	return EXIT_USAGE;
}

/* All of them are in the environment by now. */
static int check_settings(struct config *c)
{
	int rc = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(settings); i++)
		rc |= check_setting(c, settings[i].variable, given[i] ? settings[i].option : NULL);
	for (unsigned int i = 0; i < ARRAY_SIZE(other_variables); i++)
		rc |= check_setting(c, other_variables[i], NULL);
	return rc;
}

/* The interface and the address must exist, so that the program will find a device. */
static int check_devices(const struct config *c)
{
	struct netdev *v = calloc(NETDEV_MAX, sizeof(*v));
	char why[128];
	int n;

	if (!v)
		return 0;
	n = netdev_find(c, v, NETDEV_MAX, why, sizeof(why));
	free(v);
	if (n > 0)
		return 0;
	if (!n) {
		say("warning: no interface is up and has an address: there will be no device");
		return 0;
	}
	say("%s", why);
	return EXIT_USAGE;
}

/*
 * The relative way from one directory below the prefix to another one, or @to itself when it is
 * absolute: "bin", "lib/x86_64-linux-gnu" -> "../lib/x86_64-linux-gnu".
 */
static void installed_dir(char *out, size_t size)
{
	size_t n = 0;

	if (*RXE_LIBDIR == '/' || *RXE_BINDIR == '/') {
		snprintf(out, size, "%s%s%s/rxe-xrc", *RXE_LIBDIR == '/' ? "" : RXE_PREFIX,
			 *RXE_LIBDIR == '/' ? "" : "/", RXE_LIBDIR);
		return;
	}
	out[0] = 0;
	for (const char *p = RXE_BINDIR; p; p = strchr(p, '/'), p += p != NULL)
		n += snprintf(out + n, size - n, "../");
	snprintf(out + n, size - n, "%s/rxe-xrc", RXE_LIBDIR);
}

/* Return: 0 or -ENOENT. @out: PATH_MAX bytes. */
static int find_library(char *out)
{
	char self[PATH_MAX], installed[PATH_MAX], path[PATH_MAX];
	const char *const dirs[] = {"verbs", "../verbs", installed};
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n < 0)
		return -ENOENT;
	self[n] = 0;
	slash = strrchr(self, '/');
	slash[1] = 0;
	installed_dir(installed, sizeof(installed));
	for (unsigned int i = 0; i < ARRAY_SIZE(dirs); i++) {
		if (snprintf(path, sizeof(path), "%s%s/" LIBRARY, *dirs[i] == '/' ? "" : self,
			     dirs[i]) < (int)sizeof(path) &&
		    realpath(path, out) && !access(out, R_OK))
			return 0;
	}
	say("cannot find " LIBRARY " beside %s or in %s", self, installed);
	return -ENOENT;
}

/* Puts the library before whatever is preloaded already. */
static int set_preload(const char *library)
{
	const char *old = getenv("LD_PRELOAD");
	char *value;
	int rc;

	if (strpbrk(library, " :")) {
		say("%s: the dynamic linker cannot preload a file with a space or colon in its "
		    "path",
		    library);
		return -EINVAL;
	}
	if (asprintf(&value, "%s%s%s", library, old && *old ? ":" : "", old ? old : "") < 0)
		return -ENOMEM;
	rc = setenv("LD_PRELOAD", value, 1);
	free(value);
	return rc;
}

/* Where execvp() will find the program. Return: 0, or the errno that it will give. */
static int find_program(const char *name, char *out, size_t size)
{
	const char *path = getenv("PATH");
	int err = ENOENT;

	if (strchr(name, '/')) {
		snprintf(out, size, "%s", name);
		return access(out, X_OK) ? errno : 0;
	}
	for (const char *p = path ? path : "/bin:/usr/bin"; p;) {
		int len = strcspn(p, ":");
		struct stat st;

		snprintf(out, size, "%.*s%s%s", len, p, len ? "/" : "./", name);
		if (!stat(out, &st) && S_ISREG(st.st_mode)) {
			if (!access(out, X_OK))
				return 0;
			err = EACCES;
		}
		p = p[len] ? p + len + 1 : NULL;
	}
	return err;
}

/* Does the ELF file ask for a dynamic linker? True as well for what is no 64-bit ELF file, a script
 * say. */
static bool is_dynamic(int fd)
{
	Elf64_Ehdr eh;

	if (pread(fd, &eh, sizeof(eh), 0) != sizeof(eh) || memcmp(eh.e_ident, ELFMAG, SELFMAG) ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64)
		return true;
	for (unsigned int i = 0; i < eh.e_phnum; i++) {
		Elf64_Phdr ph;

		if (pread(fd, &ph, sizeof(ph), eh.e_phoff + (off_t)i * eh.e_phentsize) !=
		    sizeof(ph))
			return true;
		if (ph.p_type == PT_INTERP)
			return true;
	}
	return false;
}

/* Programs that the dynamic linker will not preload anything into. */
static void warn_if_closed(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return;
	if (!is_dynamic(fd))
		say("warning: %s is linked statically: it will not see the device", path);
	else if (!fstat(fd, &st) && (((st.st_mode & S_ISUID) && st.st_uid != getuid()) ||
				     ((st.st_mode & S_ISGID) && st.st_gid != getgid())))
		say("warning: %s changes its user or group: the dynamic linker will not load the "
		    "device "
		    "into it",
		    path);
	close(fd);
}

static int run(char **argv)
{
	char library[PATH_MAX], program[PATH_MAX];
	int err = find_program(argv[0], program, sizeof(program));

	if (!err) {
		if (find_library(library) || set_preload(library))
			return EXIT_NO_EXEC;
		warn_if_closed(program);
		fflush(stderr);
		execvp(argv[0], argv);
		err = errno;
	}
	say("%s: %s", argv[0], strerror(err));
	return err == ENOENT ? EXIT_NOT_FOUND : EXIT_NO_EXEC;
}

/* Return: 0, an exit status, or -1 when nothing is left to do. */
static int parse_options(int argc, char **argv)
{
	struct option options[ARRAY_SIZE(settings) + 3] = {0};
	int opt, which;

	for (unsigned int i = 0; i < ARRAY_SIZE(settings); i++)
		options[i] = (struct option){settings[i].option, settings[i].has_arg, NULL, 's'};
	options[ARRAY_SIZE(settings)] = (struct option){"help", no_argument, NULL, 'h'};
	options[ARRAY_SIZE(settings) + 1] = (struct option){"version", no_argument, NULL, 'v'};
	/* '+': what follows the program's name is the program's. */
	while ((opt = getopt_long(argc, argv, "+h", options, &which)) != -1) {
		switch (opt) {
		case 's':
			if (setenv(settings[which].variable, optarg ? optarg : "", 1))
				return EXIT_NO_EXEC;
			given[which] = true;
			break;
		case 'h':
			fputs(help, stdout);
			return -1;
		case 'v':
			puts("rxe-run " RXE_VERSION);
			return -1;
		default:
			/* getopt_long() has named the option. */
			return usage();
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct config config;
	int rc = parse_options(argc, argv);

	if (rc)
		return rc < 0 ? 0 : rc;
	config_init(&config);
	rc = check_settings(&config);
	if (!rc)
		rc = check_devices(&config);
	if (rc)
		return rc;
	if (optind >= argc) {
		say("which program?");
		return usage();
	}
	return run(argv + optind);
}
