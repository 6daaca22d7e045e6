/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory regions and windows: who may touch which bytes (IBTA 10.6 and 10.6.7).
 *
 * A lookup runs for each packet: one hash lookup, then comparisons. A region never changes while it
 * can be found: mr_rereg() takes it out of the table, waits until no lane looks at it, changes it
 * and puts it back. Its bounds do not wrap, so "is [va, va + length) inside" is two comparisons of
 * offsets:
 *
 *     offset = va - iova (wraps far beyond the length when va lies below)
 *     offset <= mr->length && length <= mr->length - offset
 *
 * A window is a view of a region that lanes bind and unbind while other lanes look. Changes take
 * the engine's mw_lock, and the window's own lock round the fields that mr_remote() compares under
 * it. A bound window counts in its region, which cannot be destroyed then; a region that is about
 * to go is marked MR_DYING in the same counter, so that a bind and a destroy cannot both succeed.
 *
 * Type 1 is bound by ibv_bind_mw(), any number of times; each bind changes the tag; any QP of the
 * PD may use it. Type 2 is bound by a work request, which chooses the tag; only the QP that bound
 * it may use it, and it must be invalidated, by its owner or by the peer, before it is bound again.
 *
 * Unbinding takes effect for lookups that begin later. A lane that has looked up already finishes
 * its burst; the memory stays in place until then, because destroying the region waits for it.
 */
#include "engine/mr.h"

#include "base/macros.h"
#include "engine/qp.h"

#include <errno.h>
#include <stdlib.h>

#define KEY_INDEX(key) ((key) >> 8)
#define KEY_TAG_MASK   0xffu
#define MAX_INDEX      0xffffffu

#define MR_RIGHTS                                                                                  \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED)
#define MR_UNSUPPORTED (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB)
/* LOCAL_WRITE means nothing for a window, but pyverbs asks for it and Linux lets it pass. */
#define MW_RIGHTS                                                                                  \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED)
/* Rights that let a peer change memory, which the owner must be allowed to do himself. */
#define REMOTE_CHANGES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

static uint32_t key_of(const struct mr *mr)
{
	return atomic_load_explicit(&mr->key, memory_order_relaxed);
}

static int match_index(struct cds_lfht_node *node, const void *index)
{
	return KEY_INDEX(key_of(caa_container_of(node, struct mr, node))) ==
	       *(const uint32_t *)index;
}

struct mr *mr_find_index(struct engine *e, uint32_t key)
{
	struct cds_lfht_node *node = engine_table_find(e->keys, match_index, KEY_INDEX(key));

	return node ? caa_container_of(node, struct mr, node) : NULL;
}

struct mr *mr_find(struct engine *e, uint32_t key)
{
	struct mr *mr = mr_find_index(e, key);

	return mr && key_of(mr) == key ? mr : NULL;
}

/* Makes @mr visible to lookups; ctl held. */
static void publish(struct mr *mr)
{
	rcu_read_lock();
	cds_lfht_node_init(&mr->node);
	cds_lfht_add(mr->engine->keys, engine_hash(KEY_INDEX(key_of(mr))), &mr->node);
	rcu_read_unlock();
}

/* Makes @mr invisible to lookups that begin after this; ctl held. */
static void unpublish(struct mr *mr)
{
	rcu_read_lock();
	cds_lfht_del(mr->engine->keys, &mr->node);
	rcu_read_unlock();
}

static uint32_t free_key(struct engine *e)
{
	uint32_t key;

	rcu_read_lock();
	/* Ends: regions and windows together take up at most an eighth of the indices. 0 is no
	 * index. */
	do
		key = engine_random(e);
	while (!KEY_INDEX(key) || mr_find_index(e, key));
	rcu_read_unlock();
	return key;
}

/* Gives @mr a key and files it. @count: where its kind is counted. Return: 0 or -ENOMEM. */
static int add_key(struct mr *mr, atomic_uint *count, unsigned int max)
{
	struct engine *e = mr->engine;
	int ret = -ENOMEM;

	engine_lock(e);
	if (atomic_load(count) < max) {
		atomic_init(&mr->key, free_key(e));
		publish(mr);
		atomic_fetch_add(&mr->pd->refs, 1);
		atomic_fetch_add(count, 1);
		engine_table_grow(e->keys, atomic_load(&e->nmrs) + atomic_load(&e->nmws));
		ret = 0;
	}
	engine_unlock(e);
	return ret;
}

/* The way back; waits until no lane looks at @mr any more. */
static void remove_key(struct mr *mr, atomic_uint *count)
{
	struct engine *e = mr->engine;

	engine_lock(e);
	unpublish(mr);
	engine_unlock(e);
	engine_wait_readers();
	atomic_fetch_sub(count, 1);
	atomic_fetch_sub(&mr->pd->refs, 1);
}

static int check_access(int access)
{
	access &= ~IBV_ACCESS_OPTIONAL_RANGE;
	if (access & ~(MR_RIGHTS | MR_UNSUPPORTED))
		return -EINVAL;
	if ((access & REMOTE_CHANGES) && !(access & IBV_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	return access & MR_UNSUPPORTED ? -EOPNOTSUPP : 0;
}

static bool range_wraps(uint64_t start, uint64_t length)
{
	return length && start > UINT64_MAX - (length - 1);
}

static int check_region(uint64_t addr, uint64_t length, uint64_t iova, int access)
{
	if (range_wraps(addr, length) || range_wraps(iova, length))
		return -EINVAL;
	return check_access(access);
}

int mr_create(struct pd *pd, void *addr, uint64_t length, uint64_t iova, int access,
	      struct mr **out)
{
	struct mr *mr;
	int ret;

	if (access & IBV_ACCESS_ZERO_BASED)
		iova = 0;
	ret = check_region((uintptr_t)addr, length, iova, access);
	if (ret)
		return ret;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	*mr = (struct mr){.engine = pd->engine,
			  .pd = pd,
			  .kind = MR_REGION,
			  .access = access,
			  .iova = iova,
			  .addr = addr,
			  .length = length,
			  .valid = true};
	ret = add_key(mr, &pd->engine->nmrs, RXE_MAX_MR);
	if (ret) {
		free(mr);
		return ret;
	}
	*out = mr;
	return 0;
}

/* From now on no window can be bound to @mr. Return: false when there is one. */
static bool close_to_windows(struct mr *mr)
{
	unsigned int none = 0;

	return atomic_compare_exchange_strong(&mr->windows, &none, MR_DYING);
}

int mr_rereg(struct mr *mr, int flags, struct pd *pd, void *addr, uint64_t length, int access)
{
	struct engine *e = mr->engine;
	struct mr to = {.pd = mr->pd,
			.access = mr->access,
			.iova = mr->iova,
			.addr = mr->addr,
			.length = mr->length};
	int ret;

	if (!flags || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED))
		return -EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_PD)
		to.pd = pd;
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		to.access = access;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		to.addr = addr;
		to.length = length;
	}
	if (to.access & IBV_ACCESS_ZERO_BASED)
		to.iova = 0;
	else if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) || (mr->access & IBV_ACCESS_ZERO_BASED))
		to.iova = (uintptr_t)to.addr;
	ret = check_region((uintptr_t)to.addr, to.length, to.iova, to.access);
	if (ret)
		return ret;
	if (!close_to_windows(mr))
		return -EBUSY;

	engine_lock(e);
	unpublish(mr);
	engine_unlock(e);
	engine_wait_readers();
	engine_lock(e);
	atomic_fetch_add(&to.pd->refs, 1);
	atomic_fetch_sub(&mr->pd->refs, 1);
	mr->pd = to.pd;
	mr->access = to.access;
	mr->iova = to.iova;
	mr->addr = to.addr;
	mr->length = to.length;
	atomic_store(&mr->windows, 0);
	publish(mr);
	engine_unlock(e);
	return 0;
}

int mr_destroy(struct mr *mr)
{
	if (!close_to_windows(mr))
		return -EBUSY;
	remove_key(mr, &mr->engine->nmrs);
	free(mr);
	return 0;
}

int mw_create(struct pd *pd, enum ibv_mw_type type, struct mr **out)
{
	struct mr *mw;
	int ret;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return -EINVAL;
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return -ENOMEM;
	*mw = (struct mr){.engine = pd->engine,
			  .pd = pd,
			  .kind = type == IBV_MW_TYPE_1 ? MR_WINDOW_1 : MR_WINDOW_2};
	lock_init(&mw->lock);
	CDS_INIT_LIST_HEAD(&mw->bound);
	ret = add_key(mw, &pd->engine->nmws, RXE_MAX_MW);
	if (ret) {
		free(mw);
		return ret;
	}
	*out = mw;
	return 0;
}

/* Unbinds if it is bound; mw_lock held. */
static void unbind_locked(struct mr *mw)
{
	struct mr *parent = mw->parent;

	if (!mw->valid)
		return;
	lock_take(&mw->lock);
	mw->valid = false;
	mw->parent = NULL;
	mw->qp = NULL;
	lock_give(&mw->lock);
	if (mw->kind == MR_WINDOW_2)
		cds_list_del_init(&mw->bound);
	atomic_fetch_sub(&parent->windows, 1);
}

void mw_destroy(struct mr *mw)
{
	struct engine *e = mw->engine;

	/* Unbind when no lane can find it: a bind that was under way would bind it again. */
	remove_key(mw, &e->nmws);
	lock_take(&e->mw_lock);
	unbind_locked(mw);
	lock_give(&e->mw_lock);
	free(mw);
}

uint32_t mw_next_key(const struct mr *mw)
{
	uint32_t key = key_of(mw);

	return (key & ~KEY_TAG_MASK) | ((key + 1) & KEY_TAG_MASK);
}

/* Counts a window in @mr. Return: false when the region is going. */
static bool get_region(struct mr *mr)
{
	unsigned int n = atomic_load(&mr->windows);

	do
		if (n & MR_DYING)
			return false;
	while (!atomic_compare_exchange_weak(&mr->windows, &n, n + 1));
	return true;
}

static bool is_inside(const struct mr *mr, uint64_t va, uint64_t length)
{
	uint64_t offset = va - mr->iova;

	return offset <= mr->length && length <= mr->length - offset;
}

/* IBTA 10.6.7.2: what a region must be for a window to be bound to it. */
static bool parent_allows(const struct mr *parent, const struct mr *mw, uint64_t addr,
			  uint64_t length, int access)
{
	return parent->pd == mw->pd && (parent->access & IBV_ACCESS_MW_BIND) &&
	       !(parent->access & IBV_ACCESS_ZERO_BASED) &&
	       (!(access & REMOTE_CHANGES) || (parent->access & IBV_ACCESS_LOCAL_WRITE)) &&
	       is_inside(parent, addr, length);
}

/* Binds @mw to @parent, which counts it already; mw_lock held. */
static void bind_locked(struct qp *qp, struct mr *mw, struct mr *parent, uint32_t rkey,
			uint64_t addr, uint64_t length, int access)
{
	lock_take(&mw->lock);
	atomic_store_explicit(&mw->key, rkey, memory_order_relaxed);
	mw->parent = parent;
	mw->qp = mw->kind == MR_WINDOW_2 ? qp : NULL;
	mw->access = access;
	mw->iova = access & IBV_ACCESS_ZERO_BASED ? 0 : addr;
	mw->addr = parent->addr + (addr - parent->iova);
	mw->length = length;
	mw->valid = true;
	lock_give(&mw->lock);
	if (mw->kind == MR_WINDOW_2)
		cds_list_add(&mw->bound, &mw->engine->mw_bound);
}

static enum ibv_wc_status try_bind_locked(struct qp *qp, struct mr *mw, struct mr *parent,
					  uint32_t rkey, uint64_t addr, uint64_t length, int access)
{
	if (KEY_INDEX(rkey) != KEY_INDEX(key_of(mw)) || mw->pd != qp->pd)
		return IBV_WC_MW_BIND_ERR;
	if (!length && mw->kind == MR_WINDOW_1) {
		unbind_locked(mw);
		atomic_store_explicit(&mw->key, rkey, memory_order_relaxed);
		return IBV_WC_SUCCESS;
	}
	if (!length || (mw->kind == MR_WINDOW_2 && mw->valid) || (access & ~MW_RIGHTS))
		return IBV_WC_MW_BIND_ERR;
	if (!parent || parent->kind != MR_REGION || !get_region(parent))
		return IBV_WC_MW_BIND_ERR;
	/* Only now: a region that counts a window does not change. */
	if (!parent_allows(parent, mw, addr, length, access)) {
		atomic_fetch_sub(&parent->windows, 1);
		return IBV_WC_MW_BIND_ERR;
	}
	unbind_locked(mw);
	bind_locked(qp, mw, parent, rkey, addr, length, access);
	return IBV_WC_SUCCESS;
}

enum ibv_wc_status mw_bind(struct qp *qp, struct mr *mw, struct mr *parent, uint32_t rkey,
			   uint64_t addr, uint64_t length, int access)
{
	struct engine *e = mw->engine;
	enum ibv_wc_status status;

	if (mw->kind == MR_REGION)
		return IBV_WC_MW_BIND_ERR;
	lock_take(&e->mw_lock);
	status = try_bind_locked(qp, mw, parent, rkey, addr, length, access);
	lock_give(&e->mw_lock);
	return status;
}

/* The address of @va if @mr has the bytes and the rights. */
static uint8_t *resolve(const struct mr *mr, uint64_t va, uint64_t length, int access)
{
	if (unlikely(!is_inside(mr, va, length) || (mr->access & access) != access))
		return NULL;
	return mr->addr + (va - mr->iova);
}

uint8_t *mr_local(struct engine *e, struct pd *pd, uint32_t lkey, uint64_t addr, uint32_t length,
		  int access)
{
	struct mr *mr = mr_find(e, lkey);

	if (unlikely(!mr || mr->kind != MR_REGION || mr->pd != pd))
		return NULL;
	return resolve(mr, addr, length, access);
}

static uint8_t *window_remote(struct mr *mw, struct pd *pd, struct qp *qp, uint32_t rkey,
			      uint64_t va, uint64_t length, int access)
{
	uint8_t *p = NULL;

	lock_take(&mw->lock);
	/* The key once more: a bind may have changed it since the lookup. */
	if (mw->valid && key_of(mw) == rkey && mw->pd == pd &&
	    (mw->kind == MR_WINDOW_1 || mw->qp == qp))
		p = resolve(mw, va, length, access);
	lock_give(&mw->lock);
	return p;
}

uint8_t *mr_remote(struct engine *e, struct pd *pd, struct qp *qp, uint32_t rkey, uint64_t va,
		   uint64_t length, int access)
{
	struct mr *mr = mr_find(e, rkey);

	if (unlikely(!mr))
		return NULL;
	if (unlikely(mr->kind != MR_REGION))
		return window_remote(mr, pd, qp, rkey, va, length, access);
	return mr->pd == pd ? resolve(mr, va, length, access) : NULL;
}

int mr_invalidate(struct engine *e, struct pd *pd, struct qp *qp, uint32_t rkey, bool local)
{
	int ret = -EACCES;
	struct mr *mw;

	rcu_read_lock();
	mw = mr_find(e, rkey);
	if (mw && mw->kind == MR_WINDOW_2) {
		lock_take(&e->mw_lock);
		/* One that was never bound has no QP to compare with: not valid comes first. */
		if (mw->valid && key_of(mw) == rkey && mw->pd == pd && mw->qp == qp) {
			unbind_locked(mw);
			ret = 0;
		}
		lock_give(&e->mw_lock);
	}
	rcu_read_unlock();
	return ret;
}

void mw_unbind_qp(struct engine *e, struct qp *qp)
{
	struct mr *mw, *next;

	lock_take(&e->mw_lock);
	cds_list_for_each_entry_safe (mw, next, &e->mw_bound, bound) {
		if (mw->qp == qp)
			unbind_locked(mw);
	}
	lock_give(&e->mw_lock);
}
