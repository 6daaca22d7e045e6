/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walks the device's files by every way that the C library has, and expects the same at the end of
 * each.
 *
 * Runs with the library preloaded and RXE_NETDEV=lo RXE_ADDR=127.0.0.2; knows nothing else of it.
 * Speaks TAP.
 */
#undef _FILE_OFFSET_BITS
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define IB   "/sys/class/infiniband"
#define DEV  IB "/xrc_lo"
#define GID  DEV "/ports/1/gids/0"
#define TEXT "0000:0000:0000:0000:0000:ffff:7f00:0002\n"

static int done, failed;

static void check(bool ok, const char *what)
{
	printf("%sok %d - %s\n", ok ? "" : "not ", ++done, what);
	failed += !ok;
}

static bool fd_has_text(int fd)
{
	char b[128];
	ssize_t n = fd < 0 ? -1 : read(fd, b, sizeof(b));

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)strlen(TEXT) && !memcmp(b, TEXT, n);
}

static bool stream_has_text(FILE *f)
{
	char b[128];
	bool ok = f && fgets(b, sizeof(b), f) && !strcmp(b, TEXT);

	if (f)
		fclose(f);
	return ok;
}

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);

static void walk_open(void)
{
	DIR *dir = opendir(DEV);
	int root = open("/", O_RDONLY | O_DIRECTORY);

	check(fd_has_text(open(GID, O_RDONLY)), "open");
	check(fd_has_text(open64(GID, O_RDONLY)), "open64");
	check(fd_has_text(openat(AT_FDCWD, GID, O_RDONLY)), "openat");
	check(fd_has_text(openat64(AT_FDCWD, GID, O_RDONLY)), "openat64");
	check(fd_has_text(__open_2(GID, O_RDONLY)), "__open_2");
	check(fd_has_text(__open64_2(GID, O_RDONLY)), "__open64_2");
	check(fd_has_text(__openat_2(AT_FDCWD, GID, O_RDONLY)), "__openat_2");
	check(fd_has_text(__openat64_2(AT_FDCWD, GID, O_RDONLY)), "__openat64_2");
	check(dir && fd_has_text(openat(dirfd(dir), "ports/1/gids/0", O_RDONLY)),
	      "openat below opendir");
	check(fd_has_text(openat(root, GID + 1, O_RDONLY)), "openat below /");
	check(fd_has_text(open("/sys//class/./infiniband/../infiniband/xrc_lo/ports/1/gids/0", 0)),
	      "open of a crooked path");
	check(stream_has_text(fopen(GID, "r")), "fopen");
	check(stream_has_text(fopen64(GID, "re")), "fopen64");
	check(stream_has_text(freopen(GID, "r", fopen("/dev/null", "r"))), "freopen");
	check(stream_has_text(freopen64(GID, "r", fopen("/dev/null", "r"))), "freopen64");
	if (dir)
		closedir(dir);
	close(root);
}

static void walk_writing(void)
{
	check(open(GID, O_WRONLY) < 0 && errno == EACCES, "open for writing");
	check(open(DEV "/new", O_CREAT | O_RDONLY, 0600) < 0 && errno == EACCES, "open to create");
	check(open64(GID, O_RDWR | O_TRUNC) < 0 && errno == EACCES, "open64 to truncate");
	check(creat(GID, 0600) < 0 && errno == EACCES, "creat");
	check(creat64(GID, 0600) < 0 && errno == EACCES, "creat64");
	check(!fopen(GID, "w") && errno == EACCES, "fopen to write");
	check(!fopen(GID, "r+") && errno == EACCES, "fopen to update");
	check(fd_has_text(open(GID, O_RDONLY)), "the file has stayed as it was");
}

static bool name_in(const char *const *names, const char *name)
{
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

static bool opendir_finds(const char *path, const char *name)
{
	DIR *dir = opendir(path);
	bool found = false;
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		found |= !strcmp(e->d_name, name);
	if (dir)
		closedir(dir);
	return found;
}

#define SCAN_FINDS(call, type)                                                                     \
	({                                                                                         \
		struct type **list = NULL;                                                         \
		int n_ = call;                                                                     \
		bool found_ = false;                                                               \
		for (int i_ = 0; i_ < n_; i_++) {                                                  \
			found_ |= !strcmp(list[i_]->d_name, "xrc_lo");                             \
			free(list[i_]);                                                            \
		}                                                                                  \
		free(list);                                                                        \
		found_;                                                                            \
	})

static void walk_directories(void)
{
	glob_t g = {0};
	glob64_t g64 = {0};

	check(opendir_finds(IB, "xrc_lo"), "opendir");
	check(opendir_finds(IB "/", "xrc_lo"), "opendir with a slash");
	check(opendir_finds("/sys/class/infiniband_verbs", "uverbs0"), "opendir infiniband_verbs");
	check(opendir_finds("/dev/infiniband", "uverbs0"), "opendir /dev/infiniband");
	check(!opendir_finds("/dev/infiniband", "rdma_cm") ||
		      !access("/dev/infiniband/rdma_cm", F_OK),
	      "no rdma_cm that cannot be opened");
	check(opendir_finds(IB "/..", "net"), "opendir of the parent");
	check(SCAN_FINDS(scandir(IB, &list, NULL, alphasort), dirent), "scandir");
	check(SCAN_FINDS(scandir64(IB, &list, NULL, alphasort64), dirent64), "scandir64");
	check(SCAN_FINDS(scandirat(AT_FDCWD, IB, &list, NULL, alphasort), dirent), "scandirat");
	check(!glob(IB "/*/ports/*/gids/0", 0, NULL, &g) &&
		      name_in((const char *const *)g.gl_pathv, GID),
	      "glob");
	check(!glob(GID, GLOB_APPEND, NULL, &g) && !strcmp(g.gl_pathv[g.gl_pathc - 1], GID),
	      "glob without a wildcard, appended");
	check(!glob64(IB "/xrc_l?", GLOB_MARK, NULL, &g64) &&
		      name_in((const char *const *)g64.gl_pathv, DEV "/"),
	      "glob64");
	globfree(&g);
	globfree64(&g64);
}

int __xstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
int __fxstatat(int version, int dirfd, const char *path, struct stat *st, int flags);

/* The old names are there to be found, not to be linked against. */
#define OLD(name) ((__typeof__(name) *)dlsym(RTLD_DEFAULT, #name))

static void walk_status(void)
{
	const off_t size = strlen(TEXT);
	struct stat64 st64;
	struct statx stx;
	struct stat st;

	check(!stat(GID, &st) && S_ISREG(st.st_mode) && st.st_size == size, "stat");
	check(!stat64(GID, &st64) && st64.st_size == size, "stat64");
	check(!lstat(GID, &st) && st.st_size == size, "lstat");
	check(!lstat64(GID, &st64) && st64.st_size == size, "lstat64");
	check(!fstatat(AT_FDCWD, GID, &st, 0) && st.st_size == size, "fstatat");
	check(!fstatat64(-1, GID, &st64, 0) && st64.st_size == size, "fstatat64");
	check(!statx(AT_FDCWD, GID, 0, STATX_SIZE, &stx) && (off_t)stx.stx_size == size, "statx");
	check(!OLD(__xstat)(1, GID, &st) && st.st_size == size, "__xstat");
	check(!OLD(__lxstat64)(1, GID, &st64) && st64.st_size == size, "__lxstat64");
	check(!OLD(__fxstatat)(1, AT_FDCWD, GID, &st, 0) && st.st_size == size, "__fxstatat");
	check(!stat(IB, &st) && S_ISDIR(st.st_mode), "stat of the directory");
	check(stat(DEV "x", &st) && errno == ENOENT, "stat of nothing");
	check(!access(GID, R_OK), "access");
	check(!faccessat(AT_FDCWD, GID, R_OK, 0), "faccessat");
	check(!euidaccess(GID, R_OK), "euidaccess");
	check(!eaccess(GID, R_OK), "eaccess");
	check(access(DEV "x", F_OK) && errno == ENOENT, "access to nothing");
	check(!listxattr(GID, NULL, 0) || errno != ENOENT, "listxattr");
	check(lgetxattr(GID, "user.none", NULL, 0) < 0 && errno != ENOENT, "lgetxattr");
	errno = 77;
	check(!stat(GID, &st) && !access(GID, R_OK) && errno == 77, "errno is left alone");
}

#define UVERBS "/dev/infiniband/uverbs0"

static bool is_uverbs(const struct stat *st)
{
	return st->st_mode == (S_IFCHR | 0666) && st->st_rdev == makedev(231, 192);
}

static void walk_uverbs(void)
{
	DIR *dir = opendir("/dev/infiniband");
	char b[PATH_MAX];
	struct statx stx;
	struct stat st;

	check(!stat(UVERBS, &st) && is_uverbs(&st), "uverbs: stat");
	check(!lstat(UVERBS, &st) && is_uverbs(&st), "uverbs: lstat");
	check(!fstatat(AT_FDCWD, UVERBS, &st, AT_SYMLINK_NOFOLLOW) && is_uverbs(&st),
	      "uverbs: fstatat");
	check(dir && !fstatat(dirfd(dir), "uverbs0", &st, AT_SYMLINK_NOFOLLOW) && is_uverbs(&st),
	      "uverbs: fstatat below opendir");
	check(!OLD(__xstat)(1, UVERBS, &st) && is_uverbs(&st), "uverbs: __xstat");
	check(!statx(AT_FDCWD, UVERBS, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &stx) &&
		      stx.stx_mode == (S_IFCHR | 0666) && stx.stx_rdev_major == 231 &&
		      stx.stx_rdev_minor == 192,
	      "uverbs: statx");
	check(!access(UVERBS, R_OK | W_OK), "uverbs: access");
	check(open(UVERBS, O_RDWR) < 0 && errno == EOPNOTSUPP, "uverbs: open");
	check(!fopen(UVERBS, "r+") && errno == EOPNOTSUPP, "uverbs: fopen");
	check(dir && openat(dirfd(dir), "uverbs0", O_RDWR) < 0 && errno == EOPNOTSUPP,
	      "uverbs: openat below opendir");
	check(readlink(UVERBS, b, sizeof(b)) < 0 && errno == EINVAL, "uverbs: readlink");
	check(realpath(UVERBS, b) && !strcmp(b, UVERBS), "uverbs: realpath");
	check(stat("/dev/infiniband/uverbs99", &st) && errno == ENOENT, "uverbs: no such one");
	check(open("/dev/infiniband/uverbs99", O_RDWR) < 0 && errno == ENOENT,
	      "uverbs: open no such one");
	if (dir)
		closedir(dir);
}

char *__realpath_chk(const char *path, char *resolved, size_t room);
ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t room);

static bool says(char *got, const char *expect)
{
	bool ok = got && !strcmp(got, expect);

	if (!ok)
		printf("# got %s, not %s\n", got ? got : "NULL", expect);
	return ok;
}

static bool link_says(const char *path, size_t size, const char *expect)
{
	char b[PATH_MAX];
	ssize_t n = readlink(path, b, size), m = readlinkat(AT_FDCWD, path, b, size);

	if (n < 0 || n != m)
		return false;
	b[n] = 0;
	return says(b, expect);
}

static void walk_names(void)
{
	static const char verbs_device[] = "/sys/class/infiniband_verbs/uverbs0/device";
	char b[PATH_MAX], link[64], *p;
	int fd = open(DEV, O_RDONLY | O_DIRECTORY);

	check(says(realpath(DEV "/ports/../fw_ver", b), DEV "/fw_ver"), "realpath");
	check(says(p = realpath(verbs_device, NULL), DEV "/device"), "realpath, allocated");
	free(p);
	check(says(__realpath_chk(verbs_device, b, sizeof(b)), DEV "/device"), "__realpath_chk");
	check(says(p = canonicalize_file_name(verbs_device), DEV "/device"),
	      "canonicalize_file_name");
	free(p);
	p = realpath("/sys/class/net/lo", NULL);
	check(p && says(realpath(DEV "/device/net/lo", b), p), "realpath of the interface");
	free(p);
	check(!realpath(DEV "/nothing", b) && errno == ENOENT, "realpath of nothing");
	check(link_says(verbs_device, PATH_MAX, "../../infiniband/xrc_lo/device"), "readlink");
	check(__readlink_chk(verbs_device, b, sizeof(b), sizeof(b)) == 30, "__readlink_chk");
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	check(link_says(link, PATH_MAX, DEV), "readlink of a descriptor");
	check(link_says(link, 12, "/sys/class/i"), "readlink, cut off");
	close(fd);
	check(!chdir(DEV) && says(getcwd(b, sizeof(b)), DEV), "getcwd");
	check(says(getcwd(b, sizeof(DEV)), DEV), "getcwd, just enough room");
	check(!getcwd(b, sizeof(DEV) - 1) && errno == ERANGE, "getcwd, one byte less");
	check(says(p = getcwd(NULL, 0), DEV), "getcwd, allocated");
	free(p);
	check(fd_has_text(open("ports/1/gids/0", O_RDONLY)), "open in the working directory");
	check(says(realpath("ports", b), DEV "/ports"), "realpath in the working directory");
	check(!chdir("/") && fd_has_text(open(GID + 1, O_RDONLY)), "open from /");
}

/* Old and unusual callers must not be disturbed by what is in front of the C library. */
static void walk_others(void)
{
	/* Not known to the compiler, which would warn. */
	const char *volatile none = NULL;
	char path[] = "/tmp/fs-walk-XXXXXX";
	int fd = mkstemp(path);
	struct stat st;

	close(fd);
	unlink(path);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0640);
	check(fd >= 0 && !fstat(fd, &st) && (st.st_mode & 0777 & ~0640) == 0 && (st.st_mode & 0400),
	      "the mode of a new file");
	close(fd);
	unlink(path);
	fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
	check(fd < 0 ? errno == EOPNOTSUPP : !fstat(fd, &st) && (st.st_mode & 0777) == 0600,
	      "the mode of a file without a name");
	if (fd >= 0)
		close(fd);
	check(open("/sys/class/infiniband_none/x", O_RDONLY) < 0 && errno == ENOENT,
	      "a name that only begins like one of ours");
	check(open(none, O_RDONLY) < 0 && errno == EFAULT, "no path at all");
}

static void *first_access(void *ok)
{
	*(bool *)ok = fd_has_text(open(GID, O_RDONLY));
	return NULL;
}

/* The tree is built by whoever comes first; the others wait for it. */
static void walk_threads(void)
{
	enum { N = 8 };
	pthread_t t[N];
	bool ok[N], all = true;

	for (int i = 0; i < N; i++)
		if (pthread_create(&t[i], NULL, first_access, &ok[i]))
			abort();
	for (int i = 0; i < N; i++) {
		pthread_join(t[i], NULL);
		all &= ok[i];
	}
	check(all, "first access from eight threads");
}

static void walk_child(void)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(!fd_has_text(open(GID, O_RDONLY)));
	waitpid(pid, &status, 0);
	check(!status, "a child sees the same");
}

int main(void)
{
	walk_threads();
	walk_open();
	walk_writing();
	walk_directories();
	walk_status();
	walk_uverbs();
	walk_names();
	walk_others();
	walk_child();
	printf("1..%d\n", done);
	return failed != 0;
}
