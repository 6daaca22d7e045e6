/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Protection domains, XRC domains, and the SRQs that live in them. */
#include "engine/qp.h"

#include "engine_stub.h"

#include <fcntl.h>

static struct engine *e;
static struct pd *pd;
static int user;

static void setup(void)
{
	e = stub_engine();
	cr_assert_eq(pd_create(e, &pd), 0);
}

static void teardown(void)
{
	cr_assert_eq(pd_destroy(pd), 0);
	engine_destroy(e);
}

TestSuite(pd, .init = setup, .fini = teardown);

Test(pd, pd_create__device_full)
{
	struct pd *more;

	atomic_store(&e->npds, RXE_MAX_PD);
	cr_assert_eq(pd_create(e, &more), -ENOMEM);
	atomic_store(&e->npds, 1);
}

Test(pd, pd_destroy__busy)
{
	atomic_fetch_add(&pd->refs, 1);
	cr_assert_eq(pd_destroy(pd), -EBUSY);
	atomic_fetch_sub(&pd->refs, 1);
}

Test(pd, xrcd_open__by_file)
{
	struct xrcd *a, *b, *c;

	cr_assert_eq(xrcd_open(e, true, 1, 2, 0, &a), -EAGAIN);
	cr_assert_eq(xrcd_open(e, true, 1, 2, O_CREAT | O_EXCL, &a), 0);
	cr_assert_eq(xrcd_open(e, true, 1, 2, 0, &b), 0);
	cr_assert_eq(a, b);
	cr_assert_eq(xrcd_open(e, true, 1, 2, O_CREAT | O_EXCL, &c), -EINVAL);
	cr_assert_eq(xrcd_open(e, true, 1, 2, O_EXCL, &c), -EINVAL);
	/* Both numbers count. */
	cr_assert_eq(xrcd_open(e, true, 1, 3, 0, &c), -EAGAIN);
	cr_assert_eq(xrcd_open(e, true, 2, 2, 0, &c), -EAGAIN);
	cr_assert_eq(xrcd_open(e, true, 2, 2, O_CREAT, &c), 0);
	cr_assert_neq(a, c);
	cr_assert_eq(xrcd_close(a), 0);
	cr_assert_eq(xrcd_open(e, true, 1, 2, 0, &a), 0);
	cr_assert_eq(xrcd_close(a), 0);
	cr_assert_eq(xrcd_close(b), 0);
	cr_assert_eq(xrcd_open(e, true, 1, 2, 0, &a), -EAGAIN);
	cr_assert_eq(xrcd_close(c), 0);
}

Test(pd, xrcd_open__private_ones_are_never_shared)
{
	struct xrcd *a, *b;

	cr_assert_eq(xrcd_open(e, false, 0, 0, 0, &a), 0);
	cr_assert_eq(xrcd_open(e, false, 0, 0, O_CREAT | O_EXCL, &b), 0);
	cr_assert_neq(a, b);
	cr_assert_eq(xrcd_open(e, true, 0, 0, 0, &b), -EAGAIN);
	cr_assert_eq(xrcd_close(a), 0);
	cr_assert_eq(xrcd_close(b), 0);
}

/* A15: the last close is refused while something lives in the domain; others are not. */
Test(pd, xrcd_close__A15_busy)
{
	struct xrcd *a, *b;

	cr_assert_eq(xrcd_open(e, true, 1, 2, O_CREAT, &a), 0);
	cr_assert_eq(xrcd_open(e, true, 1, 2, 0, &b), 0);
	atomic_fetch_add(&a->refs, 1);
	cr_assert_eq(xrcd_close(a), 0);
	cr_assert_eq(xrcd_close(b), -EBUSY);
	cr_assert_eq(xrcd_close(b), -EBUSY);
	atomic_fetch_sub(&b->refs, 1);
	cr_assert_eq(xrcd_close(b), 0);
}

Test(pd, engine_srq_create__what_is_refused)
{
	struct ibv_srq_attr attr = {.max_wr = 4, .max_sge = 1};
	struct xrcd *x;
	struct srq *srq;
	struct cq *cq;

	cr_assert_eq(cq_create(e, 4, NULL, &cq), 0);
	cr_assert_eq(xrcd_open(e, false, 0, 0, 0, &x), 0);
	cr_assert_eq(engine_srq_create(pd, IBV_SRQT_TM, NULL, cq, &attr, NULL, &srq), -EOPNOTSUPP);
	cr_assert_eq(engine_srq_create(pd, IBV_SRQT_XRC, NULL, cq, &attr, NULL, &srq), -EINVAL);
	cr_assert_eq(engine_srq_create(pd, IBV_SRQT_XRC, x, NULL, &attr, NULL, &srq), -EINVAL);
	attr.max_wr = 0;
	cr_assert_eq(engine_srq_create(pd, IBV_SRQT_XRC, x, cq, &attr, NULL, &srq), -EINVAL);
	attr.max_wr = RXE_MAX_SRQ_WR + 1;
	cr_assert_eq(engine_srq_create(pd, IBV_SRQT_XRC, x, cq, &attr, NULL, &srq), -EINVAL);
	attr.max_wr = 1;
	attr.max_sge = RXE_MAX_SGE + 1;
	cr_assert_eq(engine_srq_create(pd, IBV_SRQT_XRC, x, cq, &attr, NULL, &srq), -EINVAL);
	attr.max_sge = 1;
	atomic_store(&e->nsrqs, RXE_MAX_SRQ);
	cr_assert_eq(engine_srq_create(pd, IBV_SRQT_XRC, x, cq, &attr, NULL, &srq), -ENOMEM);
	atomic_store(&e->nsrqs, 0);
	/* None of them left a reference. */
	cr_assert_eq(xrcd_close(x), 0);
	cr_assert_eq(cq_destroy(cq), 0);
}

Test(pd, engine_srq_create__number_and_references)
{
	struct ibv_srq_attr attr = {.max_wr = 4, .max_sge = 1};
	struct srq *xrc, *basic;
	struct xrcd *x;
	struct cq *cq;
	uint32_t srqn;

	cr_assert_eq(cq_create(e, 4, NULL, &cq), 0);
	cr_assert_eq(xrcd_open(e, false, 0, 0, 0, &x), 0);
	cr_assert_eq(engine_srq_create(pd, IBV_SRQT_XRC, x, cq, &attr, &user, &xrc), 0);
	cr_assert_eq(engine_srq_create(pd, IBV_SRQT_BASIC, NULL, NULL, &attr, &user, &basic), 0);
	srqn = xrc->srqn;
	cr_assert(srqn >= RXE_SRQN_FIRST && srqn <= RXE_SRQN_LAST);
	cr_assert_eq(basic->srqn, 0u);
	rcu_read_lock();
	cr_assert_eq(engine_srq_find(e, srqn), xrc);
	cr_assert_null(engine_srq_find(e, 0));
	cr_assert_null(engine_srq_find(e, srqn ^ 1));
	rcu_read_unlock();
	cr_assert_eq(xrcd_close(x), -EBUSY);
	cr_assert_eq(cq_destroy(cq), -EBUSY);
	cr_assert_eq(pd_destroy(pd), -EBUSY);

	/* B2: not while a QP uses it. */
	atomic_fetch_add(&xrc->refs, 1);
	cr_assert_eq(engine_srq_destroy(xrc), -EBUSY);
	atomic_fetch_sub(&xrc->refs, 1);
	cr_assert_eq(engine_srq_destroy(xrc), 0);
	cr_assert_eq(engine_srq_destroy(basic), 0);
	rcu_read_lock();
	cr_assert_null(engine_srq_find(e, srqn));
	rcu_read_unlock();
	cr_assert_eq(atomic_load(&e->nsrqs), 0u);
	cr_assert_eq(xrcd_close(x), 0);
	cr_assert_eq(cq_destroy(cq), 0);
}

Test(pd, engine_srq_create__many_have_numbers_of_their_own)
{
	static struct srq *srq[300];
	struct ibv_srq_attr attr = {.max_wr = 1};
	struct xrcd *x;
	struct cq *cq;

	cr_assert_eq(cq_create(e, 4, NULL, &cq), 0);
	cr_assert_eq(xrcd_open(e, false, 0, 0, 0, &x), 0);
	for (int i = 0; i < 300; i++)
		cr_assert_eq(engine_srq_create(pd, IBV_SRQT_XRC, x, cq, &attr, NULL, &srq[i]), 0);
	rcu_read_lock();
	for (int i = 0; i < 300; i++)
		cr_assert_eq(engine_srq_find(e, srq[i]->srqn), srq[i]);
	rcu_read_unlock();
	for (int i = 0; i < 300; i++)
		cr_assert_eq(engine_srq_destroy(srq[i]), 0);
	cr_assert_eq(xrcd_close(x), 0);
	cr_assert_eq(cq_destroy(cq), 0);
}

Test(pd, engine_srq_modify__limit)
{
	struct ibv_srq_attr attr = {.max_wr = 4, .max_sge = 1}, got;
	struct ibv_recv_wr wr = {.num_sge = 0};
	struct srq *srq;

	cr_assert_eq(engine_srq_create(pd, IBV_SRQT_BASIC, NULL, NULL, &attr, &user, &srq), 0);
	cr_assert_eq(engine_srq_modify(srq, &attr, IBV_SRQ_MAX_WR), -EOPNOTSUPP);
	cr_assert_eq(engine_srq_modify(srq, &attr, 1 << 7), -EINVAL);
	attr.srq_limit = 5;
	cr_assert_eq(engine_srq_modify(srq, &attr, IBV_SRQ_LIMIT), -EINVAL);
	cr_assert_eq(rq_post(srq->rq, &wr), 0);
	attr.srq_limit = 1;
	cr_assert_eq(engine_srq_modify(srq, &attr, IBV_SRQ_LIMIT), 0);
	cr_assert_eq(atomic_load(&stub_async_events), 0u);
	engine_srq_query(srq, &got);
	cr_assert_eq(got.max_wr, 4u);
	cr_assert_eq(got.max_sge, 1u);
	cr_assert_eq(got.srq_limit, 1u); /* B12 */
	attr.srq_limit = 2;
	cr_assert_eq(engine_srq_modify(srq, &attr, IBV_SRQ_LIMIT), 0);
	cr_assert_eq(atomic_load(&stub_async_events), 1u);
	cr_assert_eq(stub_last_async, IBV_EVENT_SRQ_LIMIT_REACHED);
	cr_assert_eq(stub_last_user, &user);
	engine_srq_query(srq, &got);
	cr_assert_eq(got.srq_limit, 0u);
	cr_assert_eq(engine_srq_destroy(srq), 0);
}
