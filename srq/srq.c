/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The shared receive queue's limit: one event when the program should post more receives.
 *
 * The program arms a limit; the taker that brings the count below it fires and disarms. Takers run
 * in several lanes and the program arms meanwhile, so whoever sees the count below the limit claims
 * the event with a compare-and-swap of the limit to 0: exactly one succeeds.
 *
 * Nobody may miss it either. The taker changes the word of its request's slot, and of slots it
 * passes on the way, and then reads the limit; srq_arm() stores the limit and then counts, which
 * reads the slots' words. All of these are sequentially consistent, so at least one of the two sees
 * the other, and an armed limit above the count never stays without an event. Posts that run
 * meanwhile count as if they had been before the take.
 */
#include "srq/srq.h"

#include "srq/atomics.h"

#include <errno.h>

int srq_init(struct srq *srq, uint32_t max_wr, uint32_t max_sge)
{
	atomic_init(&srq->limit, 0);
	atomic_init(&srq->refs, 0);
	return rq_create(max_wr, max_sge, &srq->rq);
}

void srq_fini(struct srq *srq)
{
	rq_destroy(srq->rq);
	srq->rq = NULL;
}

/* Whether the count is below @limit and the caller is the one who reports it. */
static bool claim_event(struct srq *srq, unsigned int limit)
{
	return rq_count(srq->rq) < limit && swap_word(&srq->limit, &limit, 0, seq_cst);
}

enum srq_take srq_take(struct srq *srq, struct rqe *out)
{
	unsigned int limit;

	if (!rq_take(srq->rq, out))
		return SRQ_EMPTY;
	limit = load_word(&srq->limit, seq_cst);
	return limit && claim_event(srq, limit) ? SRQ_TAKEN_LIMIT : SRQ_TAKEN;
}

int srq_arm(struct srq *srq, uint32_t limit)
{
	if (limit > rq_max_wr(srq->rq))
		return -EINVAL;
	store_word(&srq->limit, limit, seq_cst);
	return claim_event(srq, limit);
}
