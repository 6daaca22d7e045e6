/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Protection domains, memory regions and memory windows.
 *
 * Registering pins nothing: the engine reaches the memory through the process's own mappings. What
 * registering promises all the same is checked, as the kernel does when it pins: the range is mapped with
 * the rights that are asked for, or EFAULT. MADV_POPULATE_* faults every page in with just these rights and has
 * the same side effect as pinning, memory that is there from now on.
 */
#include "verbs/objects.h"

#include "verbs/forward.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	struct vpd *v;
	int err;

	if (!is_ours(ctx))
		return REAL(ibv_alloc_pd)(ctx);
	if (is_dead(ctx))
		return fail(EIO);
	v = calloc(1, sizeof(*v));
	if (!v)
		return fail(ENOMEM);
	err = pd_create(engine_of(ctx), &v->pd);
	if (err) {
		free(v);
		return fail(err);
	}
	v->ibv.context = ctx;
	v->ibv.handle = device_handle();
	object_add(ctx, OBJECT_PD, &v->obj);
	return &v->ibv;
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *ibpd)
{
	struct vpd *v;
	int err;

	if (!is_ours(ibpd->context))
		return REAL(ibv_dealloc_pd)(ibpd);
	if (is_dead(ibpd->context))
		return 0;
	v = vpd_of(ibpd);
	err = pd_destroy(v->pd);
	if (err)
		return -err;
	object_del(&v->obj);
	free(v);
	return 0;
}

void pd_object_destroy(struct object *obj)
{
	struct vpd *v = container_of(obj, struct vpd, obj);

	pd_destroy(v->pd);
	object_del(obj);
	free(v);
}

/* --- regions ---------------------------------------------------------------------------------- */

/* A kernel that knows the advice takes it for an empty range. */
static bool can_populate(void)
{
	static atomic_int known = -1;
	int k = atomic_load_explicit(&known, memory_order_relaxed);

	if (k < 0) {
		k = !madvise(NULL, 0, MADV_POPULATE_READ);
		atomic_store_explicit(&known, k, memory_order_relaxed);
	}
	return k;
}

/* Before Linux 5.14: that the pages are mapped is all that can be found out without touching them. */
static int check_mapped(uintptr_t start, size_t length, size_t page)
{
	unsigned char resident[256];
	size_t chunk;

	for (; length; start += chunk, length -= chunk) {
		chunk = min_t(size_t, length, sizeof(resident) * page);
		if (mincore((void *)start, chunk, resident))
			return -EFAULT;
	}
	return 0;
}

static int check_pages(const void *addr, size_t length, unsigned int access)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)addr & ~(page - 1);
	uintptr_t end = (uintptr_t)addr + length;
	int saved = errno, err = 0;

	if (!length)
		return 0;
	if (end < (uintptr_t)addr || end > UINTPTR_MAX - page)
		return -EINVAL;
	end = (end + page - 1) & ~(page - 1);
	if (!can_populate())
		err = check_mapped(start, end - start, page);
	else
		while (madvise((void *)start, end - start,
			       access & IBV_ACCESS_LOCAL_WRITE ? MADV_POPULATE_WRITE
							       : MADV_POPULATE_READ))
			if (errno != EINTR && errno != EAGAIN) {
				err = -EFAULT;
				break;
			}
	errno = saved;
	return err;
}

static struct ibv_mr *reg_mr(struct ibv_pd *ibpd, void *addr, size_t length, uint64_t iova,
			     unsigned int access)
{
	struct vmr *v;
	int err;

	if (is_dead(ibpd->context))
		return fail(EIO);
	v = calloc(1, sizeof(*v));
	if (!v)
		return fail(ENOMEM);
	/* First the rights: a nonsensical region must not fault memory in. */
	err = mr_create(vpd_of(ibpd)->pd, addr, length, iova, (int)access, &v->mr);
	if (err)
		goto err_free;
	err = check_pages(addr, length, access);
	if (err)
		goto err_mr;
	v->ibv.context = ibpd->context;
	v->ibv.pd = ibpd;
	v->ibv.addr = addr;
	v->ibv.length = length;
	v->ibv.handle = device_handle();
	v->ibv.lkey = v->ibv.rkey = v->mr->key;
	object_add(ibpd->context, OBJECT_MR, &v->obj);
	return &v->ibv;

err_mr:
	mr_destroy(v->mr);
err_free:
	free(v);
	return fail(err);
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	if (!is_ours(pd->context))
		return REAL(ibv_reg_mr)(pd, addr, length, access);
	return reg_mr(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				      int access)
{
	if (!is_ours(pd->context))
		return REAL(ibv_reg_mr_iova)(pd, addr, length, iova, access);
	return reg_mr(pd, addr, length, iova, (unsigned int)access);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				       unsigned int access)
{
	if (!is_ours(pd->context))
		return REAL(ibv_reg_mr_iova2)(pd, addr, length, iova, access);
	return reg_mr(pd, addr, length, iova, access);
}

EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
					uint64_t iova, int fd, int access)
{
	if (!is_ours(pd->context))
		return REAL(ibv_reg_dmabuf_mr)(pd, offset, length, iova, fd, access);
	return fail(EOPNOTSUPP);
}

EXPORT int ibv_rereg_mr(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd, void *addr,
			size_t length, int access)
{
	struct vmr *v = container_of(ibmr, struct vmr, ibv);
	int err = 0, rights;

	if (!is_ours(ibmr->context))
		return REAL(ibv_rereg_mr)(ibmr, flags, pd, addr, length, access);
	if (is_dead(ibmr->context)) {
		errno = EIO;
		return IBV_REREG_MR_ERR_CMD;
	}
	if (!flags || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED)
		err = -EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!addr || !length))
		err = -EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_PD && (!pd || pd->context != ibmr->context))
		err = -EINVAL;
	rights = flags & IBV_REREG_MR_CHANGE_ACCESS ? access : v->mr->access;
	if (!(flags & IBV_REREG_MR_CHANGE_TRANSLATION)) {
		addr = ibmr->addr;
		length = ibmr->length;
	}
	if (!err)
		err = check_pages(addr, length, (unsigned int)rights);
	if (!err)
		err = mr_rereg(v->mr, flags, flags & IBV_REREG_MR_CHANGE_PD ? vpd_of(pd)->pd : NULL,
			       addr, length, access);
	if (err) {
		/* Nothing has changed: the region is as good as before. */
		errno = -err;
		return IBV_REREG_MR_ERR_INPUT;
	}
	ibmr->addr = addr;
	ibmr->length = length;
	if (flags & IBV_REREG_MR_CHANGE_PD)
		ibmr->pd = pd;
	ibmr->lkey = ibmr->rkey = v->mr->key;
	return 0;
}

EXPORT int ibv_dereg_mr(struct ibv_mr *ibmr)
{
	struct vmr *v = container_of(ibmr, struct vmr, ibv);
	int err;

	if (!is_ours(ibmr->context))
		return REAL(ibv_dereg_mr)(ibmr);
	if (is_dead(ibmr->context))
		return 0;
	err = mr_destroy(v->mr);
	if (err)
		return -err;
	object_del(&v->obj);
	free(v);
	return 0;
}

void mr_object_destroy(struct object *obj)
{
	struct vmr *v = container_of(obj, struct vmr, obj);

	mr_destroy(v->mr);
	object_del(obj);
	free(v);
}

/* --- windows ---------------------------------------------------------------------------------- */

struct ibv_mw *mw_face_alloc(struct ibv_pd *ibpd, enum ibv_mw_type type)
{
	struct vmw *v;
	int err;

	if (is_dead(ibpd->context))
		return fail(EIO);
	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return fail(EINVAL);
	v = calloc(1, sizeof(*v));
	if (!v)
		return fail(ENOMEM);
	err = mw_create(vpd_of(ibpd)->pd, type, &v->mw);
	if (err) {
		free(v);
		return fail(err);
	}
	v->ibv.context = ibpd->context;
	v->ibv.pd = ibpd;
	v->ibv.rkey = v->mw->key;
	v->ibv.handle = device_handle();
	v->ibv.type = type;
	object_add(ibpd->context, OBJECT_MW, &v->obj);
	return &v->ibv;
}

int mw_face_dealloc(struct ibv_mw *ibmw)
{
	if (!is_dead(ibmw->context))
		mw_object_destroy(&container_of(ibmw, struct vmw, ibv)->obj);
	return 0;
}

void mw_object_destroy(struct object *obj)
{
	struct vmw *v = container_of(obj, struct vmw, obj);

	mw_destroy(v->mw);
	object_del(obj);
	free(v);
}

/*
 * A type 1 window: a request of the send queue whose key the device chooses. It is in ibv_mw.rkey when the
 * call returns, before the bind is executed; two binds in a row count on from there.
 */
int mw_face_bind(struct ibv_qp *qp, struct ibv_mw *ibmw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = bind->wr_id,
			.opcode = IBV_WR_BIND_MW,
			.send_flags = bind->send_flags & ~(unsigned int)IBV_SEND_INLINE,
			.bind_mw =
				{
					.mw = ibmw,
					.rkey = ibv_inc_rkey(ibmw->rkey),
					.bind_info = bind->bind_info,
				},
		};
	int err;

	if (is_dead(qp->context))
		return EIO;
	err = -qp_post_send(vqp_of(qp)->qp, &wr, &bad, now_ns());
	if (!err)
		ibmw->rkey = wr.bind_mw.rkey;
	return err;
}

/* --- of later releases: buffers and hints of providers ------------------------------------------- */

#define LATER(type, name, params, args, ctx, without)                                              \
	EXPORT type name params                                                                    \
	{                                                                                          \
		__typeof__(&(name)) real;                                                          \
                                                                                                   \
		if (is_ours(ctx))                                                                  \
			return without;                                                            \
		real = REAL(name);                                                                 \
		return real ? real args : (without);                                               \
	}

LATER(struct ibv_dmah *, ibv_alloc_dmah,
      (struct ibv_context * ctx, struct ibv_dmah_init_attr *attr), (ctx, attr), ctx,
      fail(EOPNOTSUPP))
LATER(struct ibv_mr *, ibv_reg_mr_ex, (struct ibv_pd * pd, struct ibv_mr_init_attr *attr),
      (pd, attr), pd->context, fail(EOPNOTSUPP))
LATER(int, ibv_dm_export_dmabuf_fd, (struct ibv_dm * dm), (dm), dm->context,
      (errno = EOPNOTSUPP, -1))
LATER(void *, ibv_alloc_buf, (struct ibv_pd * pd, size_t size, struct ibv_buf **buf),
      (pd, size, buf), pd->context, fail(EOPNOTSUPP))
LATER(struct ibv_mr *, ibv_reg_buf_mr,
      (struct ibv_pd * pd, struct ibv_buf *buf, void *addr, size_t length, int access),
      (pd, buf, addr, length, access), pd->context, fail(EOPNOTSUPP))

/* Ours never made one of these, so they are the real library's. */
EXPORT int ibv_dealloc_dmah(struct ibv_dmah *dmah)
{
	__typeof__(&ibv_dealloc_dmah) real = REAL(ibv_dealloc_dmah);

	return real ? real(dmah) : EOPNOTSUPP;
}

EXPORT void ibv_free_buf(struct ibv_buf *buf)
{
	__typeof__(&ibv_free_buf) real = REAL(ibv_free_buf);

	if (real)
		real(buf);
}
