/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Protection domains and XRC domains.
 *
 * An XRC domain that is opened with a file is found again by the file's device and inode, as the
 * kernel does it; without a file each open makes a new one. The number of opens is guarded by the
 * engine's ctl, as are the reference counts that decide whether the last close succeeds.
 */
#include "engine/pd.h"

#include "engine/cq.h"
#include "srq/srq.h"

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
		CDS_INIT_LIST_HEAD(&x->srqs);
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

int xrcd_reserve_lane(struct xrcd *x, unsigned int lane)
{
	struct srq *srq;
	int ret = 0;

	cds_list_for_each_entry (srq, &x->srqs, in_xrcd)
		if (!ret)
			ret = cq_reserve(srq->cq, lane);
	return ret;
}

int xrcd_reserve_srq(struct xrcd *x, struct srq *srq)
{
	int ret = x->shared ? cq_reserve(srq->cq, CQ_FOREIGN) : 0;

	for (unsigned int i = 0; i < x->engine->nlanes && !ret; i++)
		if (x->tgts[i])
			ret = cq_reserve(srq->cq, i);
	return ret;
}

void xrcd_count_lane(struct xrcd *x, unsigned int lane, int n)
{
	bool before = x->tgts[lane], after;
	struct srq *srq;

	x->tgts[lane] += n;
	after = x->tgts[lane];
	if (before == after)
		return;
	cds_list_for_each_entry (srq, &x->srqs, in_xrcd)
		cq_count_lane(srq->cq, lane, after ? 1 : -1);
}

static void count_srq(const struct xrcd *x, struct srq *srq, int n)
{
	for (unsigned int i = 0; i < x->engine->nlanes; i++)
		if (x->tgts[i])
			cq_count_lane(srq->cq, i, n);
}

void xrcd_add_srq(struct xrcd *x, struct srq *srq)
{
	cds_list_add(&srq->in_xrcd, &x->srqs);
	count_srq(x, srq, 1);
}

void xrcd_del_srq(struct xrcd *x, struct srq *srq)
{
	cds_list_del(&srq->in_xrcd);
	count_srq(x, srq, -1);
}
