/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Protection domains and XRC domains.
 *
 * An XRC domain that is opened with a file is found again by the file's device and inode, as the
 * kernel does it; without a file each open makes a new one. The number of opens is guarded by the
 * engine's ctl, as are the reference counts that decide whether the last close succeeds.
 */
#include "engine/pd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

int pd_create(struct engine *e, struct pd **out)
{
	struct pd *pd;

	if (atomic_fetch_add(&e->npds, 1) >= RXE_MAX_PD)
		goto err_count;
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		goto err_count;
	pd->engine = e;
	*out = pd;
	return 0;

err_count:
	atomic_fetch_sub(&e->npds, 1);
	return -ENOMEM;
}

int pd_destroy(struct pd *pd)
{
	struct engine *e = pd->engine;
	bool busy;

	engine_lock(e);
	busy = atomic_load(&pd->refs);
	engine_unlock(e);
	if (busy)
		return -EBUSY;
	atomic_fetch_sub(&e->npds, 1);
	free(pd);
	return 0;
}

static struct xrcd *find_shared(struct engine *e, uint64_t dev, uint64_t ino)
{
	struct xrcd *x;

	cds_list_for_each_entry (x, &e->xrcds, list) {
		if (x->dev == dev && x->ino == ino)
			return x;
	}
	return NULL;
}

static int open_locked(struct engine *e, bool shared, uint64_t dev, uint64_t ino, int oflags,
		       struct xrcd **out)
{
	struct xrcd *x = shared ? find_shared(e, dev, ino) : NULL;

	if (x && (oflags & O_EXCL))
		return -EINVAL;
	if (!x) {
		if (shared && !(oflags & O_CREAT))
			return -EAGAIN;
		x = calloc(1, sizeof(*x));
		if (!x)
			return -ENOMEM;
		*x = (struct xrcd){.engine = e, .shared = shared, .dev = dev, .ino = ino};
		CDS_INIT_LIST_HEAD(&x->list);
		if (shared)
			cds_list_add(&x->list, &e->xrcds);
	}
	x->opens++;
	*out = x;
	return 0;
}

int xrcd_open(struct engine *e, bool shared, uint64_t dev, uint64_t ino, int oflags,
	      struct xrcd **out)
{
	int ret;

	engine_lock(e);
	ret = open_locked(e, shared, dev, ino, oflags, out);
	engine_unlock(e);
	return ret;
}

int xrcd_close(struct xrcd *x)
{
	struct engine *e = x->engine;
	int ret = 0;

	engine_lock(e);
	if (x->opens > 1) {
		x->opens--;
	} else if (atomic_load(&x->refs)) {
		ret = -EBUSY;
	} else {
		cds_list_del(&x->list);
		free(x);
	}
	engine_unlock(e);
	return ret;
}
