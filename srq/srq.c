/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The shared receive queue's limit: one event when the program should post more receives.
 *
 * The program arms a limit; the taker that brings the count below it fires and disarms. Takers run
 * in several lanes and the program arms meanwhile, so whoever sees the count below the limit claims
 * the event with a compare-and-swap of the limit to 0: exactly one succeeds. The word that is swapped
 * also numbers the armings. So a taker that was stopped before its swap cannot claim the event of a
 * later arming, made when there were enough again.
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

/* The word of arming @number: it and the limit. */
static uint64_t arming(uint64_t number, uint32_t limit)
{
	return number << 32 | limit;
}

static uint64_t number_in(uint64_t armed)
{
	return armed >> 32;
}

static uint32_t limit_in(uint64_t armed)
{
	return (uint32_t)armed;
}

int srq_init(struct srq *srq, uint32_t max_wr, uint32_t max_sge)
{
	atomic_init(&srq->armed, 0);
	atomic_init(&srq->refs, 0);
	return rq_create(max_wr, max_sge, &srq->rq);
}

void srq_fini(struct srq *srq)
{
	rq_destroy(srq->rq);
	srq->rq = NULL;
}

/* Whether the count is below the limit of @armed and the caller is the one who reports it. */
static bool claim_event(struct srq *srq, uint64_t armed)
{
	return rq_count(srq->rq) < limit_in(armed) &&
	       swap_word(&srq->armed, &armed, arming(number_in(armed), 0), seq_cst);
}

enum srq_take srq_take(struct srq *srq, struct rqe *out)
{
	uint64_t armed;

	if (!rq_take(srq->rq, out))
		return SRQ_EMPTY;
	armed = load_word(&srq->armed, seq_cst);
	return limit_in(armed) && claim_event(srq, armed) ? SRQ_TAKEN_LIMIT : SRQ_TAKEN;
}

int srq_arm(struct srq *srq, uint32_t limit)
{
	uint64_t was = load_word(&srq->armed, relaxed), armed;

	if (limit > rq_max_wr(srq->rq))
		return -EINVAL;
	do
		armed = arming(number_in(was) + 1, limit);
	while (!swap_word(&srq->armed, &was, armed, seq_cst));
	return claim_event(srq, armed);
}

uint32_t srq_limit(const struct srq *srq)
{
	return limit_in(load_word(&srq->armed, relaxed));
}
