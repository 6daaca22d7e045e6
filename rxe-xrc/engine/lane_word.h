/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The word that says whether a lane is being run, and whether there is work for whoever runs it.
 *
 *              acquire                        acquire, by another thread
 *     FREE  ------------->  HELD  --------------------------------->  HELD|PENDING
 *           <-------------        <---------------------------------
 *              release              release: fails, and the holder makes another pass
 *
 * Who leaves work for a lane puts it where the holder will find it (a pile, base/pile.h), and then acquires.
 * Either he gets the lane, or PENDING is set when he leaves, by him or already.
 *
 * No work is stranded. All accesses to the word and to the piles are sequentially consistent, so they have one
 * order. A thread that was refused has looked at the word after it pushed. If it set PENDING, or found it set,
 * the holder's next release fails: it clears PENDING, which comes behind the look, and empties the piles
 * behind that, so behind the push. A release that succeeded saw no PENDING: it came before the look, or the
 * look would have found FREE. tests/model runs this code through every interleaving of up to three threads.
 */
#ifndef RXE_ENGINE_LANE_WORD_H
#define RXE_ENGINE_LANE_WORD_H

#include <stdatomic.h>
#include <stdbool.h>

#define LANE_FREE    0u
#define LANE_HELD    1u
#define LANE_PENDING 2u

/**
 * lane_word_acquire() - never waits.
 * @leave_work: the holder, if there is one, must make another pass
 *
 * Return: whether the caller holds the lane now.
 */
static inline bool lane_word_acquire(atomic_uint *word, bool leave_work)
{
	unsigned int w = atomic_load(word);

	for (;;) {
		if (!(w & LANE_HELD)) {
			if (atomic_compare_exchange_weak(word, &w, LANE_HELD))
				return true;
		} else if (!leave_work || (w & LANE_PENDING)) {
			return false;
		} else if (atomic_compare_exchange_weak(word, &w, LANE_HELD | LANE_PENDING)) {
			return false;
		}
	}
}

/** lane_word_release() - by the holder. Return: false when work was left: the caller still holds the lane. */
static inline bool lane_word_release(atomic_uint *word)
{
	unsigned int w = LANE_HELD;

	if (atomic_compare_exchange_strong(word, &w, LANE_FREE))
		return true;
	atomic_store(word, LANE_HELD);
	return false;
}

/** lane_word_abandon() - by the holder, whatever was left: somebody else has been told to see to it. */
static inline void lane_word_abandon(atomic_uint *word)
{
	atomic_store(word, LANE_FREE);
}

#endif
