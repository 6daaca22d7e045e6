/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The capture of this process: one file for all its devices.
 *
 * Each device's lane is run by another thread perhaps, so the file has a lock. It is opened with the
 * first link and stays open until the process ends: a device that is closed and opened again goes on in
 * the same file. A forked child must not write to its parent's file, and would truncate it if it
 * opened it anew: it gets a capture only when the name has a %p in it.
 */
#include "verbs/capture.h"

#include "base/log.h"
#include "base/macros.h"
#include "net/pcap.h"
#include "verbs/config.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

static struct {
	struct link_tap tap;
	pthread_mutex_t lock;
	struct link_tap *file;
	bool tried;
	bool forked;
} capture = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void capture_packet(struct link_tap *tap, enum link_dir dir, const struct wire_ip *ip,
			   const uint8_t *b, size_t len)
{
	pthread_mutex_lock(&capture.lock);
	if (capture.file) {
		capture.file->packet(capture.file, dir, ip, b, len);
		/* A program that hangs is killed, and its capture is then what one wants to read. */
		pcap_tap_flush(capture.file);
	}
	pthread_mutex_unlock(&capture.lock);
}

static void open_locked(const char *pattern)
{
	char path[PATH_MAX];
	int err;

	if (capture.forked && !strstr(pattern, "%p")) {
		log_warn("no capture of a forked process: use %%p in the name %s", pattern);
		return;
	}
	err = config_path(pattern, path, sizeof(path));
	if (!err)
		err = pcap_tap_create(path, &capture.file);
	if (err) {
		log_error("cannot write the capture %s: %s", pattern, strerror(-err));
		capture.file = NULL;
	}
	capture.tap.packet = capture_packet;
}

struct link_tap *capture_tap(void)
{
	const char *pattern = config_get()->pcap;
	bool have;

	if (!pattern)
		return NULL;
	pthread_mutex_lock(&capture.lock);
	if (!capture.tried)
		open_locked(pattern);
	capture.tried = true;
	have = capture.file;
	pthread_mutex_unlock(&capture.lock);
	return have ? &capture.tap : NULL;
}

void capture_flush(void)
{
	/* At exit the lock may belong to a thread that is gone, or to one that this signal interrupted. */
	if (!capture.file || pthread_mutex_trylock(&capture.lock))
		return;
	pcap_tap_flush(capture.file);
	pthread_mutex_unlock(&capture.lock);
}

void capture_fork_prepare(void)
{
	pthread_mutex_lock(&capture.lock);
	/* Or the child would write what the parent has buffered once more. */
	if (capture.file)
		pcap_tap_flush(capture.file);
}

void capture_fork_parent(void)
{
	pthread_mutex_unlock(&capture.lock);
}

void capture_fork_child(void)
{
	capture.file = NULL;
	capture.tried = false;
	capture.forked = true;
	pthread_mutex_unlock(&capture.lock);
}
