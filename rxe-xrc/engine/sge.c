/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Scatter and gather.
 *
 * A packet covers a part of its message, and that part some pieces of SGEs. Each piece is checked
 * for itself when it is touched, so an SGE that reaches beyond its region only matters to a message
 * that goes that far, as it is in hardware.
 */
#include "engine/sge.h"

#include "base/macros.h"
#include "engine/usercopy.h"

/* The direction of a copy between the program's memory @p and a packet's payload @buf. */
typedef int copy_piece(uint8_t *p, uint8_t *buf, uint32_t n);

static int copy_in(uint8_t *p, uint8_t *buf, uint32_t n)
{
	return usercopy(buf, p, n);
}

static int copy_out(uint8_t *p, uint8_t *buf, uint32_t n)
{
	return usercopy(p, buf, n);
}

static inline __attribute__((always_inline)) enum ibv_wc_status
walk(struct engine *e, struct pd *pd, const struct ibv_sge *sge, uint32_t num_sge, uint32_t offset,
     uint8_t *buf, uint32_t n, int access, copy_piece *copy)
{
	for (; n && num_sge; sge++, num_sge--) {
		uint32_t piece;
		uint8_t *p;

		if (offset >= sge->length) {
			offset -= sge->length;
			continue;
		}
		piece = min_t(uint32_t, sge->length - offset, n);
		if (sge->addr > UINT64_MAX - offset)
			return IBV_WC_LOC_PROT_ERR;
		p = mr_local(e, pd, sge->lkey, sge->addr + offset, piece, access);
		if (!p || copy(p, buf, piece))
			return IBV_WC_LOC_PROT_ERR;
		buf += piece;
		n -= piece;
		offset = 0;
	}
	return n ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
}

enum ibv_wc_status sge_gather(struct engine *e, struct pd *pd, const struct ibv_sge *sge,
			      uint32_t num_sge, uint32_t offset, uint8_t *dst, uint32_t n)
{
	return walk(e, pd, sge, num_sge, offset, dst, n, 0, copy_in);
}

enum ibv_wc_status sge_scatter(struct engine *e, struct pd *pd, const struct ibv_sge *sge,
			       uint32_t num_sge, uint32_t offset, const uint8_t *src, uint32_t n)
{
	/* copy_out() only reads from its buffer. */
	return walk(e, pd, sge, num_sge, offset, (uint8_t *)src, n, IBV_ACCESS_LOCAL_WRITE,
		    copy_out);
}
