/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the files of the queue share: its layout, and how a slot's state word is read. The theory is
 * in rq.c.
 */
#ifndef RXE_SRQ_RQ_INT_H
#define RXE_SRQ_RQ_INT_H

#include "srq/atomics.h"
#include "srq/rq.h"

#include "base/macros.h"

#include <stddef.h>

/*
 * Two lines, since the processors fetch them in pairs: what takers write, what posters write and
 * what nobody writes stay apart.
 */
#define APART __attribute__((aligned(2 * CACHE_LINE)))

struct rq {
	uint64_t magic; /* RQ_MAGIC: there is a queue of this layout */
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t mask;	 /* slots - 1 */
	uint32_t shift;	 /* log2(slots) */
	uint32_t stride; /* bytes from slot to slot */
	bool one_taker;	 /* takers never run at the same time */

	word tail APART; /* positions below are claimed; some above may be */
	word head_seen;	 /* a value that head had: spares posters a look at the takers' line */

	word head APART; /* positions below are over; some above may be */

	word last_skip
		APART; /* 1 + the last position that was given up before its turn; 0: none was */

	APART char slots[];
};

#define RQ_MAGIC 0x3271722d65787201u

/* A slot: its state; the wr_id; num_sge and length; two words for each SGE. */
enum { SLOT_STATE, SLOT_WR_ID, SLOT_SIZES, SLOT_SGES };
#define SLOT_WORDS(sges) (SLOT_SGES + 2 * (size_t)(sges))

/*
 * A state word: the lap (45 bits), what the slot is in it (3 bits), the epoch of whoever has it (16
 * bits).
 */
enum slot_state {
	SLOT_FREE,    /* the position is not claimed */
	SLOT_WRITING, /* claimed, being filled */
	SLOT_POSTED,
	SLOT_LEFT, /* was WRITING when the takers went past it: its poster starts again elsewhere */
	SLOT_TAKEN, /* held by a taker */
};
#define STATE_SHIFT 16
#define LAP_SHIFT   19
#define LAP_ONE	    (UINT64_C(1) << LAP_SHIFT)
#define LAP_MASK    (~(LAP_ONE - 1))

static inline uint64_t lap_of(const struct rq *rq, uint64_t pos)
{
	return pos >> rq->shift << LAP_SHIFT;
}

static inline uint64_t state_word(uint64_t lap, enum slot_state state, uint32_t epoch)
{
	return lap | (uint64_t)state << STATE_SHIFT | epoch;
}

static inline enum slot_state state_in(uint64_t w)
{
	return w >> STATE_SHIFT & 7;
}

static inline uint32_t epoch_in(uint64_t w)
{
	return w & RQ_MAX_EPOCH;
}

/*
 * Laps from @lap to the one in @w; negative when @w is older. Laps wrap, so they are only compared.
 */
static inline int64_t laps_past(uint64_t w, uint64_t lap)
{
	return (int64_t)((w & LAP_MASK) - lap) >> LAP_SHIFT;
}

/* The same state and owner one lap later, or free for the next lap. */
static inline uint64_t freed(uint64_t w)
{
	return (w & LAP_MASK) + LAP_ONE;
}

static inline word *slot_at(struct rq *rq, uint64_t pos)
{
	return (word *)(rq->slots + (size_t)(pos & rq->mask) * rq->stride);
}

/* What a look at a slot says about a position. */
enum position {
	POS_OPEN,     /* not claimed yet, so none above it is */
	POS_BEHIND,   /* not claimed yet: the slot still has a request of the lap before */
	POS_IN_WAY,   /* not claimed yet: a stopped poster or a holder still has the slot */
	POS_WRITING,  /* claimed */
	POS_POSTED,   /* claimed */
	POS_OVER,     /* will never be posted again */
	POS_LONG_OVER /* the slot is in a later lap: the caller's idea of head or tail may be old */
};

enum position rq_position(const struct rq *rq, uint64_t pos, uint64_t seen);

/*
 * The lowest position that may be neither claimed nor over, or not over, from a look at one in a
 * later lap.
 */
uint64_t rq_jump_claimed(const struct rq *rq, uint64_t pos, uint64_t seen);
uint64_t rq_jump_over(const struct rq *rq, uint64_t pos, uint64_t seen);

/*
 * Claims the first position from *@pos on, when less than @limit requests are queued. 0 or -ENOMEM.
 */
int rq_claim(struct rq *rq, uint32_t epoch, uint64_t limit, uint64_t *pos);
/*
 * Makes a claimed and filled position POSTED. Return: false: it is not; the slot is LEFT, or
 * recovered.
 */
bool rq_publish(struct rq *rq, uint32_t epoch, uint64_t pos);
/* Gives a claimed position up. */
void rq_unclaim(struct rq *rq, uint32_t epoch, uint64_t pos);
/* Remembers that @pos is about to be given up before the takers reached it. */
void rq_note_skip(struct rq *rq, uint64_t pos);
uint64_t rq_head_now(struct rq *rq);
uint64_t rq_tail_now(struct rq *rq);

#endif
