/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Forks, and the end of the process.
 *
 * A child has copies of the objects but no helper thread, and it must not receive or send in its
 * parent's name. So in the child all that was open becomes inert: descriptors are closed, calls on inherited
 * objects answer EIO and destroying them does nothing (their memory stays: a thread of the parent may
 * have been at work in it). The child can open the device anew and gets an engine of its own.
 *
 * Before the fork every lock of the face is taken, in their order, so that the child finds each in a known
 * state. liburcu's hook comes before the leaves: it waits for a grace period that may be under way, and a
 * reader in it may be on its way to a leaf; for this the locks of domains (node/domain.h) count as leaves.
 * The engine's locks need no care, since the child forgets the engine.
 *
 * At exit the process says what it counted, and what the helper would still have sent goes out. A
 * forked child that ends by exit() finds nothing open and is silent. The destructor of a preloaded library
 * runs after the program's own exit handlers.
 */
#include "verbs/fork.h"

#include "base/log.h"
#include "node/domain.h"
#include "verbs/capture.h"
#include "verbs/config.h"
#include "verbs/device.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void prepare(void)
{
	pthread_mutex_lock(&device_lock);
	progress_fork_prepare();
	urcu_bp_before_fork();
	capture_fork_prepare();
	domain_fork_prepare();
	pthread_mutex_lock(&object_lock);
}

static void parent(void)
{
	pthread_mutex_unlock(&object_lock);
	domain_fork_parent();
	capture_fork_parent();
	urcu_bp_after_fork_parent();
	progress_fork_parent();
	pthread_mutex_unlock(&device_lock);
}

static void child(void)
{
	urcu_bp_after_fork_child();
	progress_fork_child();
	device_fork_child();
	pthread_mutex_unlock(&object_lock);
	domain_fork_child();
	capture_fork_child();
	pthread_mutex_unlock(&device_lock);
}

static void watch(void)
{
	int err = pthread_atfork(prepare, parent, child);

	if (err)
		log_error("pthread_atfork: %s", strerror(err));
}

void fork_watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
}

static FILE *open_stats(const char *pattern)
{
	char path[PATH_MAX];
	FILE *out = NULL;
	int fd, err;

	if (!*pattern) {
		/* The stream may be closed already. */
		fd = dup(STDERR_FILENO);
		return fd < 0 ? NULL : fdopen(fd, "w");
	}
	err = config_path(pattern, path, sizeof(path));
	if (!err) {
		out = fopen(path, "we");
		err = out ? 0 : -errno;
	}
	if (err)
		log_error("cannot write %s: %s", pattern, strerror(-err));
	return out;
}

static __attribute__((destructor)) void last_words(void)
{
	struct stats sum;
	const char *where;
	FILE *out;

	device_last_words();
	capture_flush();
	/* A process that never had a link has nothing to say, nor does it read the settings. */
	if (!device_stats(&sum))
		return;
	where = config_get()->stats;
	if (!where)
		return;
	out = open_stats(where);
	if (!out)
		return;
	fprintf(out, "rxe-xrc statistics of process %d\n", (int)getpid());
	stats_print(&sum, out);
	fclose(out);
}
