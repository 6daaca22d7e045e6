/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scatter and gather: a message's bytes <-> the program's buffers, checked by lkey. */
#ifndef RXE_ENGINE_SGE_H
#define RXE_ENGINE_SGE_H

#include "engine/mr.h"

/**
 * sge_gather() - bytes [@offset, @offset + @n) of the message that @sge describes, into @dst.
 *
 * Return: IBV_WC_SUCCESS, or IBV_WC_LOC_PROT_ERR (key, bounds, rights, unmapped), or IBV_WC_LOC_LEN_ERR
 * (the list is shorter). Runs in the caller's RCU section. SGEs of length 0 are skipped unchecked.
 */
enum ibv_wc_status sge_gather(struct engine *e, struct pd *pd, const struct ibv_sge *sge,
			      uint32_t num_sge, uint32_t offset, uint8_t *dst, uint32_t n);

/** sge_scatter() - the same the other way; needs IBV_ACCESS_LOCAL_WRITE. */
enum ibv_wc_status sge_scatter(struct engine *e, struct pd *pd, const struct ibv_sge *sge,
			       uint32_t num_sge, uint32_t offset, const uint8_t *src, uint32_t n);

#endif
