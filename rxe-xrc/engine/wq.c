/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of the send queue. Slots are whole cache lines, so that the program's threads, which fill
 * one, and the lane, which works on another, do not meet in one line.
 */
#include "engine/wq.h"

#include <errno.h>
#include <stdlib.h>

int wq_init(struct wq *wq, uint32_t max_wr, uint32_t max_sge, uint32_t max_inline)
{
	size_t room = max_t(size_t, max_sge * sizeof(struct ibv_sge), max_inline);
	size_t stride = (sizeof(struct swqe) + room + CACHE_LINE - 1) & -(size_t)CACHE_LINE;
	size_t slots = 1;

	while (slots < max_wr)
		slots *= 2;
	*wq = (struct wq){.stride = stride,
			  .mask = slots - 1,
			  .capacity = max_wr,
			  .max_sge = max_sge,
			  .max_inline = max_inline};
	lock_init(&wq->lock);
	if (!max_wr)
		return 0;
	/* No zeroing: a queue of 32768 long slots costs pages only for those that are used. */
	wq->slots = aligned_alloc(CACHE_LINE, slots * stride);
	return wq->slots ? 0 : -ENOMEM;
}

void wq_fini(struct wq *wq)
{
	free(wq->slots);
	wq->slots = NULL;
	wq->capacity = 0;
}
