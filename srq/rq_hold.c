/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests that stay in the queue while they are worked with, so that the queue's owner can have
 * back what a dead process had.
 *
 * rq_take() copies a request and forgets it. That is enough inside one process, which does not
 * outlive its threads' work. In memory that several processes share, a taker holds the request
 * instead: the slot stays TAKEN, marked with the process' epoch, until the taker says that the
 * request has completed. Epochs are numbers that the owner gives to the processes it shares the
 * queue with, no number twice while something of the process that had it may be in the queue.
 *
 * Told of a death, the owner looks through all slots for that epoch:
 *
 *     WRITING, LEFT   the post did not return; the slot is freed and nothing was posted
 *     TAKEN           the request did not complete; it goes to the end of the queue
 *
 * For the second, a new position is claimed and filled, then the old slot is freed, then the new
 * one is published: two that do this at once cannot both succeed in the second step, and the
 * request is never in the queue twice. Takers may pass the new slot while it is WRITING. Then it
 * becomes TAKEN by the dead process, as if that had taken it from there, and the search starts
 * again.
 */
#include "srq/rq_int.h"

#include <errno.h>

/* The position of slot @index in the lap that its word @seen names. */
static uint64_t position_of(struct rq *rq, uint32_t index, uint64_t seen)
{
	uint64_t near = (load_word(&rq->head, acquire) & ~(uint64_t)rq->mask) | index;

	return near + ((uint64_t)laps_past(seen, lap_of(rq, near)) << rq->shift);
}

/* Frees slot @index if it still is @state of @epoch; posters that come round change its lap meanwhile. */
static bool free_slot(struct rq *rq, uint32_t index, enum slot_state state, uint32_t epoch)
{
	word *slot = slot_at(rq, index);
	uint64_t seen = load_word(slot, acquire);

	while (state_in(seen) == state && epoch_in(seen) == epoch)
		if (swap_word(slot, &seen, freed(seen), acq_rel))
			return true;
	return false;
}

bool rq_release(struct rq *rq, uint32_t epoch, uint64_t ticket)
{
	return free_slot(rq, ticket & rq->mask, SLOT_TAKEN, epoch);
}

/*
 * Posts what is in slot @index, TAKEN by @dead, once more. Return: 1, 0 (somebody else did), or
 * -EAGAIN.
 */
static int post_back(struct rq *rq, uint32_t index, uint32_t dead, uint32_t me)
{
	word *from = slot_at(rq, index), *to;
	uint64_t pos = load_word(&rq->tail, acquire);
	uint64_t seen;

	/* It was counted once; it may exceed max_wr when others were posted in its place. */
	if (rq_claim(rq, me, (uint64_t)rq->mask + 1, &pos))
		return -EAGAIN;
	to = slot_at(rq, pos);
	for (size_t i = SLOT_WR_ID; i < SLOT_WORDS(rq->max_sge); i++)
		store_data(&to[i], load_data(&from[i]));
	if (!free_slot(rq, index, SLOT_TAKEN, dead)) {
		rq_unclaim(rq, me, pos);
		return 0;
	}
	if (rq_publish(rq, me, pos)) {
		store_word(&rq->tail, pos + 1, release);
		return 1;
	}
	/* Passed. */
	seen = load_word(to, acquire);
	while (!swap_word(to, &seen, state_word(seen & LAP_MASK, SLOT_TAKEN, dead), acq_rel))
		;
	return post_back(rq, pos & rq->mask, dead, me);
}

/* Does what is to be done about slot @index. Return: requests posted again, or -EAGAIN. */
static int recover_slot(struct rq *rq, uint32_t index, uint32_t dead, uint32_t me)
{
	uint64_t seen = load_word(slot_at(rq, index), acquire);

	if (epoch_in(seen) != dead)
		return 0;
	if (state_in(seen) == SLOT_TAKEN)
		return post_back(rq, index, dead, me);
	if (state_in(seen) == SLOT_WRITING) {
		rq_note_skip(rq, position_of(rq, index, seen));
		if (free_slot(rq, index, SLOT_WRITING, dead))
			return 0;
		/* Takers have passed it just now. */
	}
	free_slot(rq, index, SLOT_LEFT, dead);
	return 0;
}

int rq_recover(struct rq *rq, uint32_t dead, uint32_t me)
{
	int again = 0, posted = 0;

	for (uint32_t i = 0; i <= rq->mask; i++) {
		int ret = recover_slot(rq, i, dead, me);

		if (ret < 0)
			again = ret;
		else
			posted += ret;
	}
	return again ? again : posted;
}
