/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The runner's questions to the owner of an SRQ. Theory in foreign.h; the lane of @qp is held throughout. */
#ifndef RXE_ENGINE_FOREIGN_ASK_H
#define RXE_ENGINE_FOREIGN_ASK_H

#include "engine/resp.h"

/** foreign_possible() - may an SRQ that is not here be another process's? */
static inline bool foreign_possible(const struct qp *qp)
{
	return qp->xrcd && qp->xrcd->shared && !qp->stand_in && qp->engine->ops->foreign;
}

/** foreign_execute() - a packet of a SEND or WRITE, or an atomic, whose value before comes in @orig. */
enum verdict foreign_execute(struct qp *qp, const struct wire_pkt *pkt, uint64_t *orig);

/** foreign_check() - may the READ @pkt be done? */
enum verdict foreign_check(struct qp *qp, const struct wire_pkt *pkt);

/** foreign_fetch() - bytes [@offset, @offset + @n) of the READ @job; @n is at most FOREIGN_MAX_DATA. */
enum verdict foreign_fetch(struct qp *qp, const struct qp_resp_job *job, uint32_t offset,
			   uint8_t *dst, uint32_t n);

/** foreign_abandon() - @qp has failed or goes: owners complete a receive they took for it with @status. */
void foreign_abandon(struct qp *qp, enum ibv_wc_status status);

#endif
