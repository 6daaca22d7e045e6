/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Regions and windows: rights, bounds, keys, and binds against destroys. */
#include "engine/mr.h"

#include "engine/qp.h"
#include "engine_stub.h"

#include <pthread.h>
#include <sched.h>

#define RW (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)
#define RD IBV_ACCESS_REMOTE_READ
#define WR IBV_ACCESS_REMOTE_WRITE
#define AT IBV_ACCESS_REMOTE_ATOMIC

static struct engine *e;
static struct pd *pd, *other_pd;
static struct qp qp, other_qp; /* identity and PD are all that this file's subject looks at */
static uint8_t mem[4096];

static void setup(void)
{
	e = stub_engine();
	cr_assert_eq(pd_create(e, &pd), 0);
	cr_assert_eq(pd_create(e, &other_pd), 0);
	qp.pd = other_qp.pd = pd;
}

static void teardown(void)
{
	/* Each test gives back what it made: references and keys are counted. */
	cr_assert_eq(pd_destroy(pd), 0);
	cr_assert_eq(pd_destroy(other_pd), 0);
	cr_assert_eq(atomic_load(&e->nmrs), 0u);
	cr_assert_eq(atomic_load(&e->nmws), 0u);
	engine_destroy(e);
}

TestSuite(mr, .init = setup, .fini = teardown);

static struct mr *region(int access)
{
	struct mr *mr;

	cr_assert_eq(mr_create(pd, mem, sizeof(mem), (uintptr_t)mem, access, &mr), 0);
	return mr;
}

static uint8_t *local(struct pd *p, uint32_t key, uint64_t addr, uint32_t n, int access)
{
	uint8_t *at;

	rcu_read_lock();
	at = mr_local(e, p, key, addr, n, access);
	rcu_read_unlock();
	return at;
}

static uint8_t *remote(struct qp *q, uint32_t key, uint64_t va, uint64_t n, int access)
{
	uint8_t *at;

	rcu_read_lock();
	at = mr_remote(e, pd, q, key, va, n, access);
	rcu_read_unlock();
	return at;
}

static int create_errno(uint64_t addr, uint64_t length, uint64_t iova, int access)
{
	struct mr *mr;
	int ret = mr_create(pd, (void *)(uintptr_t)addr, length, iova, access, &mr);

	if (!ret)
		cr_assert_eq(mr_destroy(mr), 0);
	return ret;
}

Test(mr, mr_create__rights)
{
	static const struct {
		int access, ret;
	} rows[] = {
		{0, 0},
		{RD, 0},
		{IBV_ACCESS_MW_BIND, 0},
		{WR, -EINVAL},
		{AT, -EINVAL},
		{WR | IBV_ACCESS_LOCAL_WRITE, 0},
		{AT | IBV_ACCESS_LOCAL_WRITE, 0},
		{IBV_ACCESS_ON_DEMAND, -EOPNOTSUPP},
		{IBV_ACCESS_HUGETLB, -EOPNOTSUPP},
		{IBV_ACCESS_RELAXED_ORDERING, 0},
		{IBV_ACCESS_OPTIONAL_RANGE, 0},
		{1 << 9, -EINVAL},
		{1 << 30, -EINVAL},
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++)
		cr_assert_eq(create_errno(0x1000, 16, 0x1000, rows[i].access), rows[i].ret,
			     "access %#x", rows[i].access);
}

Test(mr, mr_create__ranges)
{
	cr_assert_eq(create_errno(0, 0, 0, 0), 0);
	cr_assert_eq(create_errno(UINT64_MAX, 1, 0, 0), 0);
	cr_assert_eq(create_errno(UINT64_MAX, 2, 0, 0), -EINVAL);
	cr_assert_eq(create_errno(0, 2, UINT64_MAX, 0), -EINVAL);
	cr_assert_eq(create_errno(0, UINT64_MAX, 1, 0), 0);
	cr_assert_eq(create_errno(0, UINT64_MAX, 2, 0), -EINVAL);
}

Test(mr, mr_create__device_full)
{
	atomic_store(&e->nmrs, RXE_MAX_MR);
	cr_assert_eq(create_errno(0, 0, 0, 0), -ENOMEM);
	atomic_store(&e->nmrs, 0);
}

Test(mr, mr_create__many_keys)
{
	static struct mr *v[1000];

	for (int i = 0; i < 1000; i++)
		v[i] = region(0);
	rcu_read_lock();
	for (int i = 0; i < 1000; i++) {
		cr_assert_neq(v[i]->key >> 8, 0u);
		cr_assert_eq(mr_find(e, v[i]->key), v[i]);
		cr_assert_null(mr_find(e, v[i]->key ^ 1));
		cr_assert_eq(mr_find_index(e, v[i]->key ^ 1), v[i]);
	}
	rcu_read_unlock();
	for (int i = 0; i < 1000; i++)
		cr_assert_eq(mr_destroy(v[i]), 0);
}

Test(mr, mr_rereg__changes_and_keeps_the_key)
{
	struct mr *mr = region(RW);
	uint32_t key = mr->key;
	uint64_t at = (uintptr_t)mem;

	cr_assert_eq(mr_rereg(mr, 0, NULL, NULL, 0, 0), -EINVAL);
	cr_assert_eq(mr_rereg(mr, 8, NULL, NULL, 0, 0), -EINVAL);
	cr_assert_eq(mr_rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, WR), -EINVAL);
	cr_assert_eq(mr_rereg(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mem, -1ull, 0), -EINVAL);
	cr_assert_eq(local(pd, key, at, 1, IBV_ACCESS_LOCAL_WRITE), mem);

	cr_assert_eq(mr_rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), 0);
	cr_assert_null(local(pd, key, at, 1, IBV_ACCESS_LOCAL_WRITE));
	cr_assert_eq(local(pd, key, at, 1, 0), mem);
	cr_assert_eq(mr_rereg(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mem + 8, 8, 0), 0);
	cr_assert_null(local(pd, key, at, 1, 0));
	cr_assert_eq(local(pd, key, at + 8, 8, 0), mem + 8);
	cr_assert_null(local(pd, key, at + 8, 9, 0));
	cr_assert_eq(mr_rereg(mr, IBV_REREG_MR_CHANGE_PD, other_pd, NULL, 0, 0), 0);
	cr_assert_null(local(pd, key, at + 8, 8, 0));
	cr_assert_eq(local(other_pd, key, at + 8, 8, 0), mem + 8);
	cr_assert_eq(pd_destroy(other_pd), -EBUSY);
	cr_assert_eq(mr->key, key);
	cr_assert_eq(mr_destroy(mr), 0);
}

Test(mr, mr_destroy__key_is_gone)
{
	struct mr *mr = region(RW);
	uint32_t key = mr->key;

	cr_assert_eq(pd_destroy(pd), -EBUSY);
	cr_assert_eq(mr_destroy(mr), 0);
	cr_assert_null(local(pd, key, (uintptr_t)mem, 1, 0));
	cr_assert_null(remote(&qp, key, (uintptr_t)mem, 1, RD));
}

Test(mr, mr_local__bounds_and_rights)
{
	struct mr *mr = region(0);
	uint64_t at = (uintptr_t)mem;

	cr_assert_eq(local(pd, mr->key, at, sizeof(mem), 0), mem);
	cr_assert_eq(local(pd, mr->key, at + 4095, 1, 0), mem + 4095);
	cr_assert_null(local(pd, mr->key, at + 4095, 2, 0));
	cr_assert_null(local(pd, mr->key, at - 1, 1, 0));
	cr_assert_null(local(pd, mr->key, at + 4096, 1, 0));
	cr_assert_null(local(pd, mr->key, at, UINT32_MAX, 0));
	cr_assert_null(local(pd, mr->key, UINT64_MAX, UINT32_MAX, 0));
	cr_assert_null(local(pd, mr->key, at, 1, IBV_ACCESS_LOCAL_WRITE));
	cr_assert_null(local(other_pd, mr->key, at, 1, 0));
	cr_assert_null(local(pd, mr->key ^ 1, at, 1, 0));
	cr_assert_null(local(pd, 0, at, 1, 0));
	cr_assert_eq(mr_destroy(mr), 0);
}

Test(mr, mr_remote__rights)
{
	struct mr *mr = region(RW);
	uint64_t at = (uintptr_t)mem;

	cr_assert_eq(remote(&qp, mr->key, at, 4096, RD), mem);
	cr_assert_eq(remote(&qp, mr->key, at + 1, 1, WR), mem + 1);
	cr_assert_null(remote(&qp, mr->key, at, 8, AT));
	cr_assert_null(remote(&qp, mr->key, at + 1, UINT64_MAX, RD));
	cr_assert_null(remote(&qp, mr->key, at + 4096, UINT64_MAX - 4095, RD));
	cr_assert_null(mr_remote(e, other_pd, &qp, mr->key, at, 1, RD));
	cr_assert_eq(mr_destroy(mr), 0);
}

Test(mr, mr_remote__iova_and_zero_based)
{
	struct mr *mr;

	cr_assert_eq(mr_create(pd, mem, 100, UINT64_MAX - 99, RW, &mr), 0);
	cr_assert_eq(remote(&qp, mr->key, UINT64_MAX, 1, RD), mem + 99);
	cr_assert_null(remote(&qp, mr->key, UINT64_MAX, 2, RD));
	cr_assert_null(remote(&qp, mr->key, 0, 1, RD));
	cr_assert_eq(mr_destroy(mr), 0);

	cr_assert_eq(mr_create(pd, mem, 100, 1234, RW | IBV_ACCESS_ZERO_BASED, &mr), 0);
	cr_assert_eq(remote(&qp, mr->key, 0, 100, RD), mem);
	cr_assert_null(remote(&qp, mr->key, 1234, 1, RD));
	cr_assert_eq(mr_destroy(mr), 0);
}

Test(mr, mr_remote__length_0_is_safe)
{
	struct mr *mr = region(RW);

	cr_assert_null(remote(&qp, 0, 0, 0, RD));
	cr_assert_null(remote(&qp, mr->key, 0, 0, RD));
	cr_assert_eq(remote(&qp, mr->key, (uintptr_t)mem + 4096, 0, RD), mem + 4096);
	cr_assert_eq(mr_destroy(mr), 0);
}

static uint32_t tagged(const struct mr *mw, uint8_t tag)
{
	return (mw->key & ~0xffu) | tag;
}

Test(mr, mw_create__types)
{
	struct mr *mw;

	cr_assert_eq(mw_create(pd, 0, &mw), -EINVAL);
	cr_assert_eq(mw_create(pd, IBV_MW_TYPE_1, &mw), 0);
	cr_assert_null(remote(&qp, mw->key, 0, 0, 0)); /* not bound */
	cr_assert_null(local(pd, mw->key, 0, 0, 0));
	cr_assert_eq(mw_next_key(mw) >> 8, mw->key >> 8);
	cr_assert_eq((mw_next_key(mw) & 0xff), ((mw->key + 1) & 0xff));
	mw_destroy(mw);
}

Test(mr, mw_bind__type_1)
{
	struct mr *mr = region(RW | IBV_ACCESS_MW_BIND), *mw;
	uint64_t at = (uintptr_t)mem;
	uint32_t first, second;

	cr_assert_eq(mw_create(pd, IBV_MW_TYPE_1, &mw), 0);
	first = mw_next_key(mw);
	cr_assert_eq(mw_bind(&qp, mw, mr, first, at + 16, 16, RD), IBV_WC_SUCCESS);
	cr_assert_eq(mw->key, first);
	cr_assert_eq(remote(&qp, first, at + 16, 16, RD), mem + 16);
	cr_assert_eq(remote(&other_qp, first, at + 31, 1, RD), mem + 31);
	cr_assert_null(remote(&qp, first, at + 15, 1, RD));
	cr_assert_null(remote(&qp, first, at + 16, 17, RD));
	cr_assert_null(remote(&qp, first, at + 16, 16, WR));
	cr_assert_null(local(pd, first, at + 16, 16, 0));
	cr_assert_eq(mr_destroy(mr), -EBUSY);
	cr_assert_eq(mr_rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), -EBUSY);
	cr_assert_eq(mr_invalidate(e, pd, &qp, first, true), -EACCES);

	second = mw_next_key(mw);
	cr_assert_eq(mw_bind(&qp, mw, mr, second, at, 8, WR), IBV_WC_SUCCESS);
	cr_assert_null(remote(&qp, first, at + 16, 16, RD));
	cr_assert_eq(remote(&qp, second, at, 8, WR), mem);
	cr_assert_eq(mw_bind(&qp, mw, NULL, mw_next_key(mw), 0, 0, 0), IBV_WC_SUCCESS);
	cr_assert_null(remote(&qp, second, at, 8, WR));
	cr_assert_null(remote(&qp, mw->key, at, 8, WR));
	cr_assert_eq(mr_destroy(mr), 0);
	mw_destroy(mw);
}

Test(mr, mw_bind__type_2)
{
	struct mr *mr = region(RW | IBV_ACCESS_MW_BIND), *mw;
	uint64_t at = (uintptr_t)mem;
	uint32_t key;

	cr_assert_eq(mw_create(pd, IBV_MW_TYPE_2, &mw), 0);
	key = tagged(mw, 0x5a);
	cr_assert_eq(mw_bind(&qp, mw, mr, key, at, 64, RD | IBV_ACCESS_ZERO_BASED), IBV_WC_SUCCESS);
	cr_assert_eq(remote(&qp, key, 0, 64, RD), mem);
	cr_assert_null(remote(&qp, key, at, 64, RD));
	cr_assert_null(remote(&other_qp, key, 0, 64, RD));
	/* Not again before it is invalidated, and only by its QP. */
	cr_assert_eq(mw_bind(&qp, mw, mr, key, at, 64, RD), IBV_WC_MW_BIND_ERR);
	cr_assert_eq(mr_invalidate(e, pd, &other_qp, key, false), -EACCES);
	cr_assert_eq(mr_invalidate(e, other_pd, &qp, key, false), -EACCES);
	cr_assert_eq(mr_invalidate(e, pd, &qp, key ^ 1, false), -EACCES);
	cr_assert_eq(mr_invalidate(e, pd, &qp, key, false), 0);
	cr_assert_eq(mr_invalidate(e, pd, &qp, key, false), -EACCES);
	cr_assert_null(remote(&qp, key, 0, 64, RD));
	cr_assert_eq(mw_bind(&qp, mw, mr, tagged(mw, 1), at, 64, RD), IBV_WC_SUCCESS);
	mw_destroy(mw); /* bound */
	cr_assert_eq(mr_destroy(mr), 0);
}

Test(mr, mw_bind__refused)
{
	struct mr *mr = region(RW | IBV_ACCESS_MW_BIND), *no_bind = region(RW);
	struct mr *read_only = region(IBV_ACCESS_MW_BIND), *zero, *far, *mw, *mw1, *w;
	struct qp stranger = {.pd = other_pd};
	uint64_t at = (uintptr_t)mem;

	cr_assert_eq(mr_create(pd, mem, 64, 0, IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED, &zero),
		     0);
	cr_assert_eq(mr_create(other_pd, mem, 64, at, IBV_ACCESS_MW_BIND, &far), 0);
	cr_assert_eq(mw_create(pd, IBV_MW_TYPE_2, &mw), 0);
	cr_assert_eq(mw_create(pd, IBV_MW_TYPE_1, &mw1), 0);
	w = mw;
	for (int i = 0; i < 2; i++, w = mw1) {
		uint32_t key = tagged(w, 3);
		const struct {
			struct qp *qp;
			struct mr *parent;
			uint32_t key;
			uint64_t addr, length;
			int access;
		} rows[] = {
			{&stranger, mr, key, at, 64, RD},
			{&qp, NULL, key, at, 64, RD},
			{&qp, mw1, key, at, 64, RD},
			{&qp, no_bind, key, at, 64, RD},
			{&qp, read_only, key, at, 64, WR},
			{&qp, read_only, key, at, 64, AT},
			{&qp, zero, key, 0, 64, RD},
			{&qp, far, key, at, 64, RD},
			{&qp, mr, key ^ 0x100, at, 64, RD},
			{&qp, mr, key, at - 1, 64, RD},
			{&qp, mr, key, at + 4096, 1, RD},
			{&qp, mr, key, at + 1, UINT64_MAX, RD},
			{&qp, mr, key, at, 64, IBV_ACCESS_MW_BIND},
		};

		for (unsigned int r = 0; r < ARRAY_SIZE(rows); r++)
			cr_assert_eq(mw_bind(rows[r].qp, w, rows[r].parent, rows[r].key,
					     rows[r].addr, rows[r].length, rows[r].access),
				     IBV_WC_MW_BIND_ERR, "type %d row %u", 2 - i, r);
		cr_assert_not(w->valid);
	}
	cr_assert_eq(mw_bind(&qp, mw, mr, tagged(mw, 3), at, 0, RD), IBV_WC_MW_BIND_ERR);
	cr_assert_eq(mw_bind(&qp, mr, mr, mr->key, at, 64, RD), IBV_WC_MW_BIND_ERR);
	/* A region that is being destroyed: the bind loses. */
	atomic_store(&mr->windows, MR_DYING);
	cr_assert_eq(mw_bind(&qp, mw, mr, tagged(mw, 3), at, 64, RD), IBV_WC_MW_BIND_ERR);
	cr_assert_eq(atomic_load(&mr->windows), MR_DYING);
	atomic_store(&mr->windows, 0);
	/* Reading needs no right of the owner. */
	cr_assert_eq(mw_bind(&qp, mw, read_only, tagged(mw, 3), at, 64, RD), IBV_WC_SUCCESS);
	mw_destroy(mw);
	mw_destroy(mw1);
	cr_assert_eq(mr_destroy(mr), 0);
	cr_assert_eq(mr_destroy(no_bind), 0);
	cr_assert_eq(mr_destroy(read_only), 0);
	cr_assert_eq(mr_destroy(zero), 0);
	cr_assert_eq(mr_destroy(far), 0);
}

Test(mr, mr_invalidate__region_and_never_bound_window)
{
	struct mr *mr = region(RW), *mw;

	cr_assert_eq(mw_create(pd, IBV_MW_TYPE_2, &mw), 0);
	cr_assert_eq(mr_invalidate(e, pd, &qp, mw->key, false), -EACCES);
	cr_assert_eq(mr_invalidate(e, pd, NULL, mw->key, false), -EACCES);
	cr_assert_eq(mr_invalidate(e, pd, &qp, mr->key, true), -EACCES);
	cr_assert_eq(mr_invalidate(e, pd, &qp, 0, false), -EACCES);
	mw_destroy(mw);
	cr_assert_eq(mr_destroy(mr), 0);
}

Test(mr, mw_unbind_qp__only_that_qp)
{
	struct mr *mr = region(RW | IBV_ACCESS_MW_BIND), *mw[3];
	uint64_t at = (uintptr_t)mem;

	for (int i = 0; i < 3; i++) {
		cr_assert_eq(mw_create(pd, IBV_MW_TYPE_2, &mw[i]), 0);
		cr_assert_eq(mw_bind(i == 1 ? &other_qp : &qp, mw[i], mr, mw[i]->key, at, 8, RD),
			     IBV_WC_SUCCESS);
	}
	mw_unbind_qp(e, &qp);
	cr_assert_null(remote(&qp, mw[0]->key, at, 8, RD));
	cr_assert_eq(remote(&other_qp, mw[1]->key, at, 8, RD), mem);
	cr_assert_null(remote(&qp, mw[2]->key, at, 8, RD));
	cr_assert_eq(atomic_load(&mr->windows), 1u);
	mw_unbind_qp(e, &other_qp);
	cr_assert_eq(mr_destroy(mr), 0);
	for (int i = 0; i < 3; i++)
		mw_destroy(mw[i]);
}

struct binder {
	uint32_t mw_key;
	_Atomic uint32_t mr_key;
	atomic_bool stop;
	atomic_uint looked, bound;
};

/* A lane that binds, uses and invalidates, whatever happens to the region. */
static void *bind_and_use(void *arg)
{
	struct binder *b = arg;
	uint64_t at = (uintptr_t)mem;

	while (!atomic_load(&b->stop)) {
		struct mr *mw, *parent;
		uint8_t *p;

		rcu_read_lock();
		mw = mr_find_index(e, b->mw_key);
		parent = mr_find(e, b->mr_key);
		if (mw && parent &&
		    mw_bind(&qp, mw, parent, mw->key, at, 8, RD) == IBV_WC_SUCCESS) {
			p = mr_remote(e, pd, &qp, b->mw_key, at, 8, RD);
			b->looked += p == mem;
			b->bound++;
			mr_invalidate(e, pd, &qp, b->mw_key, true);
		}
		rcu_read_unlock();
		/* A reader that is never outside of a section makes each grace period take 13 ms.
		 */
		sched_yield();
	}
	return NULL;
}

Test(mr, mr_destroy__races_with_binds)
{
	struct binder b = {0};
	struct mr *mw, *mr;
	pthread_t t;
	unsigned int gone = 0;

	cr_assert_eq(mw_create(pd, IBV_MW_TYPE_2, &mw), 0);
	b.mw_key = mw->key;
	cr_assert_eq(pthread_create(&t, NULL, bind_and_use, &b), 0);
	while (gone < 30 || !b.bound) {
		mr = region(RW | IBV_ACCESS_MW_BIND);
		b.mr_key = mr->key;
		while (mr_destroy(mr) == -EBUSY)
			sched_yield();
		gone++;
	}
	atomic_store(&b.stop, true);
	pthread_join(t, NULL);
	cr_assert_eq(b.looked, b.bound);
	mw_destroy(mw);
}
