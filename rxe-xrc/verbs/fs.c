/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sends paths below /sys/class/infiniband* and /dev/infiniband to the private tree (sysfs.c).
 *
 * There is no one place to do this: inside the C library fopen(), opendir(), scandir(), realpath()
 * and the like reach the kernel without going through the symbol open. So each function that takes
 * a path is replaced by one that maps the path and goes on to the original:
 *
 *   open openat creat, their 64 and fortified (__open_2) forms     fopen freopen
 *   opendir scandir scandirat glob                                 stat lstat fstatat statx
 *   access faccessat eaccess euidaccess                            __xstat and kin (before
 * glibc 2.33) readlink readlinkat realpath canonicalize_file_name            getxattr lgetxattr
 * listxattr llistxattr chdir getcwd
 *
 * Not replaced, because no RDMA program was seen to use them on these paths: ftw, nftw, fts,
 * statfs, inotify, name_to_handle_at, raw system calls. Paths relative to a descriptor of one of
 * our directories work by themselves. Patterns with a wildcard before "infiniband" and listings of
 * /sys/class itself show the host alone.
 *
 * What comes back is mapped too: realpath(), readlink() and getcwd() tell the path that the program
 * knows. Files of the tree can only be read. /dev/infiniband/uverbsN is reported as a character
 * device, readable and writable; opening it gives EOPNOTSUPP: there is no kernel driver behind it
 * that could understand a command, and success would only move the failure to a place where nobody
 * understands it.
 *
 * Where the host has a real entry of the same name, or a real device's directory, the path stays as
 * it is.
 *
 * Every other path costs a look at two characters, and those below /sys and /dev a strstr(). The
 * functions may be called before any constructor has run, from several threads and, but for the
 * first access to the tree, from signal handlers. While the tree is being built in a thread, that
 * thread's own calls go straight through.
 */
/* Headers that rename open to open64 or make it inline would get in the way of defining both. */
#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#include "verbs/fs.h"

#include "verbs/next.h"
#include "verbs/pathmap.h"
#include "verbs/rawfs.h"
#include "verbs/sysfs.h"

#include <alloca.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

_Static_assert(sizeof(struct stat) == sizeof(struct stat64) && sizeof(glob_t) == sizeof(glob64_t),
	       "the 64 forms are the same here");

/* Nonzero: this thread sees the host's files. */
static __thread int bypass __attribute__((tls_model("initial-exec")));

void fs_bypass(bool on)
{
	bypass += on ? 1 : -1;
}

/* A path on its way to the C library. */
struct mapped {
	const char *path; /* what to hand on */
	bool ours;	  /* it is in the tree */
	int uverbs;	  /* N of /dev/infiniband/uverbsN, else -1 */
};

/* Is @dirfd the root directory, so that "sys/class/..." is one of our paths? */
static bool is_root_dir(int dirfd)
{
	struct statx dir, root;

	return !syscall(SYS_statx, dirfd, dirfd == AT_FDCWD ? "." : "", AT_EMPTY_PATH,
			STATX_BASIC_STATS, &dir) &&
	       !raw_lstat(AT_FDCWD, "/", &root) && dir.stx_ino == root.stx_ino &&
	       dir.stx_dev_minor == root.stx_dev_minor && dir.stx_dev_major == root.stx_dev_major;
}

/* "uverbs0" relative to a descriptor of <root>/dev/infiniband. */
static void map_dev_entry(int dirfd, struct mapped *m)
{
	char fd[32], dir[PATH_MAX], path[64];
	int full, n;

	snprintf(fd, sizeof(fd), "/proc/self/fd/%d", dirfd);
	full = raw_readlink(fd, dir, sizeof(dir));
	if (full <= 0)
		return;
	n = path_unmap(dir, full);
	dir[n] = 0;
	if (n == full || strcmp(dir, path_tops[PATH_DEV]))
		return;
	snprintf(path, sizeof(path), "%s/%.40s", path_tops[PATH_DEV], m->path);
	m->uverbs = path_uverbs(PATH_DEV, path);
	m->ours = m->uverbs >= 0;
}

/* @buf: PATH_MAX bytes, for <root>/sys/class/... */
static void map_tree_path(struct mapped *m, char *buf)
{
	char virtual[PATH_MAX], entry[PATH_MAX], target[16];
	enum path_top top = path_classify(m->path, virtual, sizeof(virtual));
	const char *root;

	if (top == PATH_OTHER)
		return;
	if (top == PATH_LEFT) {
		/* Through a directory that the host has not: only its text tells where it leads. */
		if (!raw_exists(m->path))
			m->path = strcpy(buf, virtual);
		return;
	}
	if (path_entry(top, virtual, entry, sizeof(entry)) && raw_exists(entry))
		return;
	bypass++;
	root = sysfs_root();
	bypass--;
	if (!root || snprintf(buf, PATH_MAX, "%s%s", root, virtual) >= PATH_MAX)
		return;
	m->path = buf;
	m->ours = true;
	m->uverbs = path_uverbs(top, virtual);
	/* No device of ours has that number. */
	if (m->uverbs >= 0 && raw_readlink(buf, target, sizeof(target)) < 0)
		m->uverbs = -1;
}

static __attribute__((noinline)) void map_slow(int dirfd, struct mapped *m, char *buf)
{
	int saved = errno;

	if (!strncmp(m->path, "uverbs", 6))
		map_dev_entry(dirfd, m);
	else if (*m->path == '/' || is_root_dir(dirfd))
		map_tree_path(m, buf);
	errno = saved;
}

static inline bool map_needed(int dirfd, const char *path)
{
	return unlikely(path_candidate(path) ||
			(dirfd != AT_FDCWD && path && !strncmp(path, "uverbs", 6))) &&
	       !bypass;
}

/*
 * Fills in *@m and gives the path to go on with. A macro, since the buffer must live in the
 * caller's frame, and only when it is needed: a program may open files on a small signal stack.
 *
 * Headers declare that paths are not NULL, and the compiler believes it of our own arguments; the
 * empty asm makes it forget. A program that passes NULL shall get the kernel's EFAULT.
 */
#define MAP_AT(dirfd, given, m)                                                                    \
	({                                                                                         \
		const char *given_ = (given);                                                      \
		__asm__("" : "+r"(given_));                                                        \
		*(m) = (struct mapped){.path = given_, .uverbs = -1};                              \
		if (map_needed((dirfd), given_))                                                   \
			map_slow((dirfd), (m), alloca(PATH_MAX));                                  \
		(m)->path;                                                                         \
	})
#define MAP(given, m) MAP_AT(AT_FDCWD, given, m)

enum how { OPEN_READ, OPEN_WRITE, OPEN_CREATE };

/* Return: errno for opening a file of the tree, 0 when it may be opened. */
static int refuse_open(const struct mapped *m, enum how how)
{
	if (m->uverbs >= 0)
		return EOPNOTSUPP;
	if (!m->ours || how == OPEN_READ)
		return 0;
	return how == OPEN_CREATE || raw_exists(m->path) ? EACCES : ENOENT;
}

static inline enum how how_flags(int flags)
{
	if (flags & O_CREAT)
		return OPEN_CREATE;
	return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) ? OPEN_WRITE : OPEN_READ;
}

static inline enum how how_mode(const char *mode)
{
	if (!mode || *mode != 'r')
		return OPEN_CREATE;
	return strchr(mode, '+') ? OPEN_WRITE : OPEN_READ;
}

/* The third argument exists only with these flags. */
#define OPEN_MODE(flags, last)                                                                     \
	({                                                                                         \
		mode_t mode_ = 0;                                                                  \
		va_list ap_;                                                                       \
		if (((flags)&O_CREAT) || ((flags)&O_TMPFILE) == O_TMPFILE) {                       \
			va_start(ap_, last);                                                       \
			mode_ = va_arg(ap_, mode_t);                                               \
			va_end(ap_);                                                               \
		}                                                                                  \
		mode_;                                                                             \
	})

#define REFUSE(m, how, result)                                                                     \
	do {                                                                                       \
		int err_ = refuse_open((m), (how));                                                \
		if (unlikely(err_)) {                                                              \
			errno = err_;                                                              \
			return result;                                                             \
		}                                                                                  \
	} while (0)

#define OPEN(name)                                                                                 \
	INTERPOSE int name(const char *path, int flags, ...)                                       \
	{                                                                                          \
		mode_t mode = OPEN_MODE(flags, flags);                                             \
		struct mapped m;                                                                   \
                                                                                                   \
		MAP(path, &m);                                                                     \
		REFUSE(&m, how_flags(flags), -1);                                                  \
		return NEXT(name)(m.path, flags, mode);                                            \
	}

#define OPENAT(name)                                                                               \
	INTERPOSE int name(int dirfd, const char *path, int flags, ...)                            \
	{                                                                                          \
		mode_t mode = OPEN_MODE(flags, flags);                                             \
		struct mapped m;                                                                   \
                                                                                                   \
		MAP_AT(dirfd, path, &m);                                                           \
		REFUSE(&m, how_flags(flags), -1);                                                  \
		return NEXT(name)(dirfd, m.path, flags, mode);                                     \
	}

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

/* What _FORTIFY_SOURCE makes of open() without a mode. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);

#define OPEN_2(name)                                                                               \
	INTERPOSE int name(const char *path, int flags)                                            \
	{                                                                                          \
		struct mapped m;                                                                   \
                                                                                                   \
		MAP(path, &m);                                                                     \
		REFUSE(&m, how_flags(flags), -1);                                                  \
		return NEXT(name)(m.path, flags);                                                  \
	}

#define OPENAT_2(name)                                                                             \
	INTERPOSE int name(int dirfd, const char *path, int flags)                                 \
	{                                                                                          \
		struct mapped m;                                                                   \
                                                                                                   \
		MAP_AT(dirfd, path, &m);                                                           \
		REFUSE(&m, how_flags(flags), -1);                                                  \
		return NEXT(name)(dirfd, m.path, flags);                                           \
	}

OPEN_2(__open_2)
OPEN_2(__open64_2)
OPENAT_2(__openat_2)
OPENAT_2(__openat64_2)

#define CREAT(name)                                                                                \
	INTERPOSE int name(const char *path, mode_t mode)                                          \
	{                                                                                          \
		struct mapped m;                                                                   \
                                                                                                   \
		MAP(path, &m);                                                                     \
		REFUSE(&m, OPEN_CREATE, -1);                                                       \
		return NEXT(name)(m.path, mode);                                                   \
	}

CREAT(creat)
CREAT(creat64)

#define FOPEN(name)                                                                                \
	INTERPOSE FILE *name(const char *path, const char *mode)                                   \
	{                                                                                          \
		struct mapped m;                                                                   \
                                                                                                   \
		MAP(path, &m);                                                                     \
		REFUSE(&m, how_mode(mode), NULL);                                                  \
		return NEXT(name)(m.path, mode);                                                   \
	}

#define FREOPEN(name)                                                                              \
	INTERPOSE FILE *name(const char *path, const char *mode, FILE *stream)                     \
	{                                                                                          \
		struct mapped m;                                                                   \
                                                                                                   \
		MAP(path, &m);                                                                     \
		REFUSE(&m, how_mode(mode), NULL);                                                  \
		return NEXT(name)(m.path, mode, stream);                                           \
	}

FOPEN(fopen)
FOPEN(fopen64)
FREOPEN(freopen)
FREOPEN(freopen64)

/*
 * Directories.
 */
INTERPOSE DIR *opendir(const char *path)
{
	struct mapped m;

	return NEXT(opendir)(MAP(path, &m));
}

#define SCANDIR(name, type)                                                                        \
	INTERPOSE int name(const char *path, struct type ***list,                                  \
			   int (*filter)(const struct type *),                                     \
			   int (*compare)(const struct type **, const struct type **))             \
	{                                                                                          \
		struct mapped m;                                                                   \
                                                                                                   \
		return NEXT(name)(MAP(path, &m), list, filter, compare);                           \
	}

#define SCANDIRAT(name, type)                                                                      \
	INTERPOSE int name(int dirfd, const char *path, struct type ***list,                       \
			   int (*filter)(const struct type *),                                     \
			   int (*compare)(const struct type **, const struct type **))             \
	{                                                                                          \
		struct mapped m;                                                                   \
                                                                                                   \
		return NEXT(name)(dirfd, MAP_AT(dirfd, path, &m), list, filter, compare);          \
	}

SCANDIR(scandir, dirent)
SCANDIR(scandir64, dirent64)
SCANDIRAT(scandirat, dirent)
SCANDIRAT(scandirat64, dirent64)

static void *glob_opendir(const char *path)
{
	return opendir(path);
}

static void glob_closedir(void *dir)
{
	closedir(dir);
}

static struct dirent *glob_readdir(void *dir)
{
	return readdir(dir);
}

static struct dirent64 *glob_readdir64(void *dir)
{
	return readdir64(dir);
}

/* glob() opens directories itself, but can be given functions to use instead: ours. */
#define GLOB(name, type, readdir_fn)                                                               \
	INTERPOSE int name(const char *pattern, int flags, int (*error)(const char *, int),        \
			   type *g)                                                                \
	{                                                                                          \
		int rc;                                                                            \
                                                                                                   \
		if (!path_candidate(pattern) || (flags & GLOB_ALTDIRFUNC))                         \
			return NEXT(name)(pattern, flags, error, g);                               \
		g->gl_opendir = glob_opendir;                                                      \
		g->gl_closedir = glob_closedir;                                                    \
		g->gl_readdir = readdir_fn;                                                        \
		g->gl_stat = stat_of_##type;                                                       \
		g->gl_lstat = lstat_of_##type;                                                     \
		rc = NEXT(name)(pattern, flags | GLOB_ALTDIRFUNC, error, g);                       \
		g->gl_flags &= ~GLOB_ALTDIRFUNC;                                                   \
		return rc;                                                                         \
	}

#define stat_of_glob_t	  stat
#define lstat_of_glob_t	  lstat
#define stat_of_glob64_t  stat64
#define lstat_of_glob64_t lstat64

GLOB(glob, glob_t, glob_readdir)
GLOB(glob64, glob64_t, glob_readdir64)

INTERPOSE int chdir(const char *path)
{
	struct mapped m;

	return NEXT(chdir)(MAP(path, &m));
}

/*
 * File status.
 */
static void fix_stat(const struct mapped *m, struct stat *st)
{
	if (m->uverbs < 0)
		return;
	st->st_mode = S_IFCHR | 0666;
	st->st_rdev = sysfs_uverbs_rdev(m->uverbs);
	st->st_size = 0;
}

#define STAT(name, type)                                                                           \
	INTERPOSE int name(const char *path, struct type *st)                                      \
	{                                                                                          \
		struct mapped m;                                                                   \
		int rc = NEXT(name)(MAP(path, &m), st);                                            \
                                                                                                   \
		if (unlikely(m.ours) && !rc)                                                       \
			fix_stat(&m, (struct stat *)st);                                           \
		return rc;                                                                         \
	}

#define FSTATAT(name, type)                                                                        \
	INTERPOSE int name(int dirfd, const char *path, struct type *st, int flags)                \
	{                                                                                          \
		struct mapped m;                                                                   \
		int rc = NEXT(name)(dirfd, MAP_AT(dirfd, path, &m), st, flags);                    \
                                                                                                   \
		if (unlikely(m.ours) && !rc)                                                       \
			fix_stat(&m, (struct stat *)st);                                           \
		return rc;                                                                         \
	}

STAT(stat, stat)
STAT(stat64, stat64)
STAT(lstat, stat)
STAT(lstat64, stat64)
FSTATAT(fstatat, stat)
FSTATAT(fstatat64, stat64)

/* What these were called before glibc 2.33; @version says which struct stat, and there is only one.
 */
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
int __fxstatat(int version, int dirfd, const char *path, struct stat *st, int flags);
int __fxstatat64(int version, int dirfd, const char *path, struct stat64 *st, int flags);

#define XSTAT(name, type)                                                                          \
	INTERPOSE int name(int version, const char *path, struct type *st)                         \
	{                                                                                          \
		struct mapped m;                                                                   \
		int rc = NEXT(name)(version, MAP(path, &m), st);                                   \
                                                                                                   \
		if (unlikely(m.ours) && !rc)                                                       \
			fix_stat(&m, (struct stat *)st);                                           \
		return rc;                                                                         \
	}

#define FXSTATAT(name, type)                                                                       \
	INTERPOSE int name(int version, int dirfd, const char *path, struct type *st, int flags)   \
	{                                                                                          \
		struct mapped m;                                                                   \
		int rc = NEXT(name)(version, dirfd, MAP_AT(dirfd, path, &m), st, flags);           \
                                                                                                   \
		if (unlikely(m.ours) && !rc)                                                       \
			fix_stat(&m, (struct stat *)st);                                           \
		return rc;                                                                         \
	}

XSTAT(__xstat, stat)
XSTAT(__xstat64, stat64)
XSTAT(__lxstat, stat)
XSTAT(__lxstat64, stat64)
FXSTATAT(__fxstatat, stat)
FXSTATAT(__fxstatat64, stat64)

INTERPOSE int statx(int dirfd, const char *path, int flags, unsigned int mask, struct statx *st)
{
	struct mapped m;
	int rc = NEXT(statx)(dirfd, MAP_AT(dirfd, path, &m), flags, mask, st);

	if (unlikely(m.uverbs >= 0) && !rc) {
		unsigned long rdev = sysfs_uverbs_rdev(m.uverbs);

		st->stx_mode = S_IFCHR | 0666;
		st->stx_rdev_major = major(rdev);
		st->stx_rdev_minor = minor(rdev);
		st->stx_size = 0;
	}
	return rc;
}

#define ACCESS(name)                                                                               \
	INTERPOSE int name(const char *path, int how)                                              \
	{                                                                                          \
		struct mapped m;                                                                   \
                                                                                                   \
		return NEXT(name)(MAP(path, &m), how);                                             \
	}

ACCESS(access)
ACCESS(eaccess)
ACCESS(euidaccess)

INTERPOSE int faccessat(int dirfd, const char *path, int how, int flags)
{
	struct mapped m;

	return NEXT(faccessat)(dirfd, MAP_AT(dirfd, path, &m), how, flags);
}

/* ls -l asks for them and reports what it cannot get. */
#define GETXATTR(name)                                                                             \
	INTERPOSE ssize_t name(const char *path, const char *attr, void *value, size_t size)       \
	{                                                                                          \
		struct mapped m;                                                                   \
                                                                                                   \
		return NEXT(name)(MAP(path, &m), attr, value, size);                               \
	}

#define LISTXATTR(name)                                                                            \
	INTERPOSE ssize_t name(const char *path, char *list, size_t size)                          \
	{                                                                                          \
		struct mapped m;                                                                   \
                                                                                                   \
		return NEXT(name)(MAP(path, &m), list, size);                                      \
	}

GETXATTR(getxattr)
GETXATTR(lgetxattr)
LISTXATTR(listxattr)
LISTXATTR(llistxattr)

/*
 * Functions that give paths back.
 */

/*
 * @n bytes of a link's text are in @buf. Text of the tree is turned into what the program knows;
 * when it may have been cut off, all of it is read again first.
 */
static ssize_t unmap_link(int dirfd, const char *path, char *buf, size_t size, ssize_t n)
{
	char full[PATH_MAX];
	ssize_t len, known;

	if (n <= 0 || *buf != '/')
		return n;
	if ((size_t)n < size)
		return path_unmap(buf, n);
	len = syscall(SYS_readlinkat, dirfd, path, full, sizeof(full));
	known = len > 0 ? (ssize_t)path_unmap(full, len) : len;
	if (known == len)
		return n;
	known = min_t(size_t, known, size);
	memcpy(buf, full, known);
	return known;
}

#define READLINK_AT(call, dirfd)                                                                   \
	({                                                                                         \
		ssize_t n_;                                                                        \
		MAP_AT(dirfd, path, &m);                                                           \
		if (m.uverbs >= 0) {                                                               \
			errno = EINVAL;                                                            \
			n_ = -1;                                                                   \
		} else {                                                                           \
			n_ = unmap_link(dirfd, m.path, buf, size, call);                           \
		}                                                                                  \
		n_;                                                                                \
	})

INTERPOSE ssize_t readlink(const char *path, char *buf, size_t size)
{
	struct mapped m;

	return READLINK_AT(NEXT(readlink)(m.path, buf, size), AT_FDCWD);
}

INTERPOSE ssize_t readlinkat(int dirfd, const char *path, char *buf, size_t size)
{
	struct mapped m;

	return READLINK_AT(NEXT(readlinkat)(dirfd, m.path, buf, size), dirfd);
}

/* Their fortified forms; the check itself stays the C library's. */
ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t room);
ssize_t __readlinkat_chk(int dirfd, const char *path, char *buf, size_t size, size_t room);
char *__realpath_chk(const char *path, char *resolved, size_t room);
char *__getcwd_chk(char *buf, size_t size, size_t room);

INTERPOSE ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t room)
{
	struct mapped m;

	return READLINK_AT(NEXT(__readlink_chk)(m.path, buf, size, room), AT_FDCWD);
}

INTERPOSE ssize_t __readlinkat_chk(int dirfd, const char *path, char *buf, size_t size, size_t room)
{
	struct mapped m;

	return READLINK_AT(NEXT(__readlinkat_chk)(dirfd, m.path, buf, size, room), dirfd);
}

static char *unmap_string(char *path)
{
	if (path)
		path[path_unmap(path, strlen(path))] = 0;
	return path;
}

/* uverbsN is no link for the program: it resolves to itself. @resolved: NULL or PATH_MAX bytes. */
static char *resolve_uverbs(int n, char *resolved)
{
	char *out = resolved ? resolved : malloc(PATH_MAX);

	if (out)
		snprintf(out, PATH_MAX, "%s/uverbs%d", path_tops[PATH_DEV], n);
	return out;
}

INTERPOSE char *realpath(const char *path, char *resolved)
{
	struct mapped m;

	MAP(path, &m);
	if (unlikely(m.uverbs >= 0))
		return resolve_uverbs(m.uverbs, resolved);
	return unmap_string(NEXT(realpath)(m.path, resolved));
}

INTERPOSE char *__realpath_chk(const char *path, char *resolved, size_t room)
{
	struct mapped m;

	MAP(path, &m);
	if (unlikely(m.uverbs >= 0) && room >= PATH_MAX)
		return resolve_uverbs(m.uverbs, resolved);
	return unmap_string(NEXT(__realpath_chk)(m.path, resolved, room));
}

INTERPOSE char *canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}

/* The private path may not fit where the one that the program knows does. */
static char *getcwd_short(char *buf, size_t size)
{
	char full[PATH_MAX], *cwd = unmap_string(NEXT(getcwd)(full, sizeof(full)));

	if (!cwd)
		return NULL;
	if (strlen(cwd) < size)
		return strcpy(buf, cwd);
	errno = ERANGE;
	return NULL;
}

INTERPOSE char *getcwd(char *buf, size_t size)
{
	char *cwd = NEXT(getcwd)(buf, size);

	if (!cwd && errno == ERANGE && buf)
		return getcwd_short(buf, size);
	return unmap_string(cwd);
}

INTERPOSE char *__getcwd_chk(char *buf, size_t size, size_t room)
{
	return unmap_string(NEXT(__getcwd_chk)(buf, size, room));
}
