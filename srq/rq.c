/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The queue of receive work requests: bounded, for many posters and many takers, without a lock.
 *
 * A ring of slots. Positions count up without end; position p is slot p mod size, in lap p / size.
 * All that is decided is decided in one word of the slot, which names the lap, what the slot is in
 * it, and the epoch of the process that has it (rq_int.h):
 *
 *            claim             publish             take
 *     FREE --------> WRITING ----------> POSTED ----------> FREE, next lap
 *                       | pass               | hold            ^
 *                       v                    v     release     |
 *                     LEFT                 TAKEN --------------+
 *                       | its poster, or rq_recover()          |
 *                       +--------------------------------------+
 *
 * Positions are claimed without a gap: a poster claims the first that is FREE in its own lap. So a
 * taker that finds its position not claimed has found the queue empty, and never looks at tail.
 * Head and tail are only where a search begins: everything below tail is claimed, everything below
 * head is over, and both stay so whatever happens; whoever comes walks on from there. They are
 * plain stores. One that a thread stopped long ago makes late sets a hint back and costs the next
 * one a walk of two laps at most, since a slot's lap shows how far the queue has been.
 *
 * Nobody waits for anybody. The cases in which a thread was stopped and the others go on:
 *  - a poster in WRITING: a taker that finds something posted behind it passes and leaves the slot
 *    LEFT to its poster, who sees that when publishing, and posts again at the end. It posts
 *    nothing else before that, so its order is kept; a request that was passed was not posted yet.
 *  - a slot still LEFT or TAKEN when the posters come round to it: they set its lap to the position
 *    that it would have had, which is over by that, and go on with the next one. Whoever frees it
 *    does so for the lap after that. The queue has one slot less meanwhile.
 *  - between a slot's word and the store of tail or head: the others walk one step.
 * Each retry means that the slot's word was changed by somebody who got on, so the queue is
 * lock-free.
 *
 * Room. A position may be claimed when fewer than max_wr lie between head and it, less those that
 * were given up before their turn (rq_note_skip() says whether there can be any, and only then they
 * are counted). So max_wr requests fit, never one more. A post that is stopped counts as one of
 * them, until takers pass it. A slot that is stuck takes the place of a spare one; only when there
 * are more of these than SPARE, each costs the room of one request. A private queue has no spare
 * slots: its posters are the threads of one program, seldom more than one, and none of them dies
 * alone.
 *
 * A taker copies a slot before it takes it with a compare-and-swap. Had the slot gone meanwhile,
 * the swap fails (no lap comes twice) and the copy is thrown away; a taker that is stopped has
 * nothing in its hands. So slots are arrays of atomic words, read and written relaxed, which costs
 * nothing. The number of SGEs shares a word with the length: even in a copy that mixes two requests
 * it is one that was checked.
 *
 *     store                          pairs with                     so that
 *     claim FREE->WRITING, acquire   take, release ->FREE           a poster writes to what was read
 *     publish ->POSTED, release      take: load of slot, acquire    the request is there
 *     pass ->LEFT, seq_cst           publish: failed swap, acquire  (the word alone; slot unchanged)
 *     tail, release (poster)         tail, acquire (poster)         what is below is seen as claimed
 *     head, release (taker)          head, acquire (all)            what is below is seen as over
 *     take, hold, pass, seq_cst      rq_count(): loads, seq_cst     no limit is missed, see srq.c
 *     last_skip, then slot, release  count: slot, acquire, then     a gap that is seen is known of
 *     (skip, unclaim, rq_recover())    last_skip
 *
 * Everything else follows from the order of changes of one word, the slot's, which all threads
 * agree on. tests/model runs this code on a memory as weak as C11's, nearly: it fails there with
 * the order of any row weakened but the first and the head's, and weak.h says why not with those.
 *
 * A program may change its list while it is being posted. Everything is read once: num_sge into a
 * local that is checked and then used, each SGE into a local that is stored and summed up.
 */
#include "srq/rq_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of a ring stay far from overflow. */
#define RQ_MAX_WR (1u << 24)
/*
 * Slots beyond max_wr: as many stuck ones cost no room. Room that a stuck slot has cost comes back
 * when head passes the position that was given up for it.
 */
#define SPARE 8
/* Looks at a request that is being written before takers pass it: as long as writing one takes. */
#define PASS_AFTER 100
/*
 * Pauses after losing a race: as few as these, and twice as many each time, since threads that lose
 * seldom should not wait long. Picked from a dozen variants on a busy machine; the measurements, which
 * do not agree with each other, are in ARCHITECTURE.md.
 */
#define BACK_OFF_MIN 16
#define BACK_OFF_MAX 400
/* Races that a call pauses for; what it loses beyond these are steps of a walk. */
#define BACK_OFF_RACES 4

/* --- positions -------------------------------------------------------------------------------- */

enum position rq_position(const struct rq *rq, uint64_t pos, uint64_t seen)
{
	static const enum position in_lap[] = {
		[SLOT_FREE] = POS_OPEN, [SLOT_WRITING] = POS_WRITING, [SLOT_POSTED] = POS_POSTED,
		[SLOT_LEFT] = POS_OVER, [SLOT_TAKEN] = POS_OVER,
	};
	int64_t past = laps_past(seen, lap_of(rq, pos));

	if (likely(past == 0))
		return in_lap[min_t(unsigned int, state_in(seen), SLOT_TAKEN)];
	if (past > 0)
		return POS_LONG_OVER;
	return state_in(seen) == SLOT_LEFT || state_in(seen) == SLOT_TAKEN ? POS_IN_WAY
									   : POS_BEHIND;
}

/* The slot is at a later position q: the one a lap before q was claimed, and with it all below. */
uint64_t rq_jump_claimed(const struct rq *rq, uint64_t pos, uint64_t seen)
{
	return pos + ((uint64_t)(laps_past(seen, lap_of(rq, pos)) - 1) << rq->shift) + 1;
}

/*
 * The slot is at a later position q. That the one a lap before q is over says nothing of those
 * before it, which may still be posted; but it was claimed, which needed all that are a lap or more
 * before it to be over.
 */
uint64_t rq_jump_over(const struct rq *rq, uint64_t pos, uint64_t seen)
{
	int64_t laps = laps_past(seen, lap_of(rq, pos)) - 2;

	return laps > 0 ? pos + ((uint64_t)laps << rq->shift) + 1 : pos + 1;
}

uint64_t rq_head_now(struct rq *rq)
{
	uint64_t start = load_word(&rq->head, acquire), head = start;

	for (;;) {
		uint64_t seen = load_word(slot_at(rq, head), seq_cst);
		enum position p = rq_position(rq, head, seen);

		if (p == POS_LONG_OVER)
			head = rq_jump_over(rq, head, seen);
		else if (p == POS_OVER)
			head++;
		else
			break;
	}
	if (head != start)
		store_word(&rq->head, head, release);
	return head;
}

uint64_t rq_tail_now(struct rq *rq)
{
	uint64_t tail = load_word(&rq->tail, acquire);

	for (;;) {
		uint64_t seen = load_word(slot_at(rq, tail), seq_cst);
		enum position p = rq_position(rq, tail, seen);

		if (p == POS_LONG_OVER)
			tail = rq_jump_claimed(rq, tail, seen);
		else if (p == POS_OPEN || p == POS_BEHIND || p == POS_IN_WAY)
			return tail;
		else
			tail++;
	}
}

/* Before the slot's word is changed: whoever acquires that sees this too. */
void rq_note_skip(struct rq *rq, uint64_t pos)
{
	uint64_t last = load_word(&rq->last_skip, relaxed);

	while ((int64_t)(pos + 1 - last) > 0 && !swap_word(&rq->last_skip, &last, pos + 1, release))
		;
}

/* How many requests are queued from @head up to, without, @end. Those being written count. */
static uint64_t queued(struct rq *rq, uint64_t head, uint64_t end)
{
	uint64_t n = 0;

	if ((int64_t)(load_word(&rq->last_skip, relaxed) - head) <= 0)
		return end - head;
	for (; (int64_t)(end - head) > 0; head++) {
		uint64_t seen = load_word(slot_at(rq, head), seq_cst);
		enum position p = rq_position(rq, head, seen);

		n += p == POS_WRITING || p == POS_POSTED;
	}
	return n;
}

/* --- the queue as an object ------------------------------------------------------------------- */

static uint32_t log2_slots(uint32_t max_wr, uint32_t spare)
{
	uint32_t n = max_wr + spare;

	return n <= 2 ? 1 : 32 - __builtin_clz(n - 1);
}

static size_t stride_of(uint32_t max_sge)
{
	size_t bytes = SLOT_WORDS(max_sge) * sizeof(word);

	return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

/* Bytes of a queue with 1 << @shift slots. */
static size_t bytes_of(uint32_t shift, uint32_t max_sge)
{
	size_t bytes = sizeof(struct rq) + (stride_of(max_sge) << shift);

	return (bytes + RQ_ALIGN - 1) / RQ_ALIGN * RQ_ALIGN;
}

/* A queue in memory that is all zero, as a free slot of lap 0 is. */
static struct rq *lay_out(void *mem, uint32_t max_wr, uint32_t max_sge, uint32_t shift)
{
	struct rq *rq = mem;

	rq->max_wr = max_wr;
	rq->max_sge = max_sge;
	rq->mask = (1u << shift) - 1;
	rq->shift = shift;
	rq->stride = stride_of(max_sge);
	/* Whoever attaches sees all of it, or nothing. */
	__atomic_store_n(&rq->magic, RQ_MAGIC, __ATOMIC_RELEASE);
	return rq;
}

size_t rq_size(uint32_t max_wr, uint32_t max_sge)
{
	if (max_sge > RQ_MAX_SGE || max_wr > RQ_MAX_WR)
		return 0;
	return bytes_of(log2_slots(max_wr, SPARE), max_sge);
}

struct rq *rq_init_at(void *mem, uint32_t max_wr, uint32_t max_sge)
{
	memset(mem, 0, rq_size(max_wr, max_sge));
	return lay_out(mem, max_wr, max_sge, log2_slots(max_wr, SPARE));
}

struct rq *rq_attach(void *mem, size_t size)
{
	struct rq *rq = mem;
	size_t need;

	if (size < sizeof(*rq) || __atomic_load_n(&rq->magic, __ATOMIC_ACQUIRE) != RQ_MAGIC)
		return NULL;
	need = rq_size(rq->max_wr, rq->max_sge);
	if (!need || size < need || rq->shift != log2_slots(rq->max_wr, SPARE) ||
	    rq->mask != (1u << rq->shift) - 1 || rq->stride != stride_of(rq->max_sge))
		return NULL;
	return rq;
}

static int create(uint32_t max_wr, uint32_t max_sge, uint32_t spare, struct rq **out)
{
	uint32_t shift;
	void *mem;

	if (max_sge > RQ_MAX_SGE)
		return -EINVAL;
	if (max_wr > RQ_MAX_WR)
		return -ENOMEM;
	shift = log2_slots(max_wr, spare);
	mem = aligned_alloc(RQ_ALIGN, bytes_of(shift, max_sge));
	if (!mem)
		return -ENOMEM;
	memset(mem, 0, bytes_of(shift, max_sge));
	*out = lay_out(mem, max_wr, max_sge, shift);
	return 0;
}

int rq_create(uint32_t max_wr, uint32_t max_sge, struct rq **out)
{
	return create(max_wr, max_sge, SPARE, out);
}

int rq_create_private(uint32_t max_wr, uint32_t max_sge, struct rq **out)
{
	int ret = create(max_wr, max_sge, 0, out);

	if (!ret)
		(*out)->one_taker = true;
	return ret;
}

void rq_destroy(struct rq *rq)
{
	free(rq);
}

uint32_t rq_count(const struct rq *rq)
{
	struct rq *q = (struct rq *)rq;
	uint64_t head, end, n;

	/* A gap was given up before its turn, or taken while posters may have gone beyond end. */
	do {
		head = rq_head_now(q);
		end = rq_tail_now(q);
		n = queued(q, head, end);
	} while (n != end - head && rq_head_now(q) != head);
	return min_t(uint64_t, n, rq->mask + 1);
}

uint32_t rq_max_wr(const struct rq *rq)
{
	return rq->max_wr;
}

uint32_t rq_max_sge(const struct rq *rq)
{
	return rq->max_sge;
}

#ifdef SRQ_PATIENT
/* Pauses of this thread's last lost race, one less for each call that lost none. */
static __thread unsigned int patience __attribute__((tls_model("initial-exec")));
#endif

static inline void no_race(void)
{
#ifdef SRQ_PATIENT
	if (unlikely(patience))
		patience--;
#endif
}

/*
 * Another thread was faster. Two that go on at once take the same cache lines from each other at
 * every step; when one lets the other run for a moment, that one has them for itself, and together
 * they get far more done.
 * @races: lost in this call
 * Return: where to go on, @pos or what @hint says by now.
 */
static uint64_t back_off(word *hint, uint64_t pos, unsigned int *races)
{
	uint64_t now;

#ifdef SRQ_PATIENT
	if (++*races <= BACK_OFF_RACES) {
		patience = min_t(unsigned int, max_t(unsigned int, patience * 2, BACK_OFF_MIN),
				 BACK_OFF_MAX);
		for (unsigned int i = 0; i < patience; i++)
			cpu_pause();
	}
#endif
	now = load_word(hint, acquire);
	return (int64_t)(now - pos) > 0 ? now : pos;
}

/* --- posting ---------------------------------------------------------------------------------- */

/* Whether there is room even if nothing was taken since somebody looked. */
static inline bool seems_room(struct rq *rq, uint64_t pos, uint64_t limit)
{
	return (int64_t)(pos - load_word(&rq->head_seen, relaxed)) < (int64_t)limit;
}

/* Whether @pos may be claimed with @limit requests in the queue. */
static bool has_room(struct rq *rq, uint64_t pos, uint64_t limit)
{
	uint64_t head = rq_head_now(rq);

	store_word(&rq->head_seen, head, relaxed);
	if ((int64_t)(pos - head) < (int64_t)limit)
		return true;
	return queued(rq, head, pos) < limit;
}

/*
 * Takes @pos out of the posters' way: its slot stays with whoever has it and is free a lap later.
 */
static void skip(struct rq *rq, uint64_t pos, uint64_t seen)
{
	rq_note_skip(rq, pos);
	swap_word(slot_at(rq, pos), &seen,
		  state_word(lap_of(rq, pos), state_in(seen), epoch_in(seen)), acq_rel);
}

int rq_claim(struct rq *rq, uint32_t epoch, uint64_t limit, uint64_t *at)
{
	uint64_t pos = *at;
	unsigned int races = 0;
	uint32_t in_way = 0;

	for (;;) {
		uint64_t lap = lap_of(rq, pos), seen = lap;

		if (!seems_room(rq, pos, limit) && !has_room(rq, pos, limit))
			return -ENOMEM;
		if (swap_word(slot_at(rq, pos), &seen, state_word(lap, SLOT_WRITING, epoch),
			      acquire)) {
			*at = pos;
			return 0;
		}
		switch (rq_position(rq, pos, seen)) {
		case POS_BEHIND:
			return -ENOMEM;
		case POS_IN_WAY:
			/* A whole ring of these would be walked round for ever. */
			if (in_way++ > rq->mask)
				return -ENOMEM;
			skip(rq, pos, seen);
			break;
		case POS_LONG_OVER:
			pos = back_off(&rq->tail, rq_jump_claimed(rq, pos, seen), &races);
			break;
		default:
			pos = back_off(&rq->tail, pos + 1, &races);
		}
	}
}

bool rq_publish(struct rq *rq, uint32_t epoch, uint64_t pos)
{
	uint64_t lap = lap_of(rq, pos), seen = state_word(lap, SLOT_WRITING, epoch);

	return swap_word(slot_at(rq, pos), &seen, state_word(lap, SLOT_POSTED, 0), release);
}

void rq_unclaim(struct rq *rq, uint32_t epoch, uint64_t pos)
{
	word *slot = slot_at(rq, pos);
	uint64_t seen = load_word(slot, acquire);

	if (state_in(seen) == SLOT_WRITING)
		rq_note_skip(rq, pos);
	/* Takers may pass it and posters may come round meanwhile. */
	while ((state_in(seen) == SLOT_WRITING || state_in(seen) == SLOT_LEFT) &&
	       epoch_in(seen) == epoch && !swap_word(slot, &seen, freed(seen), release))
		;
}

static uint64_t pack(uint32_t low, uint32_t high)
{
	return (uint64_t)high << 32 | low;
}

/* What another thread of the program may be writing to. */
#define read_once(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

/* Fills a claimed slot from what the program may be changing. */
static inline void fill_slot(word *slot, const struct ibv_recv_wr *wr, uint32_t num_sge)
{
	const struct ibv_sge *list = read_once(wr->sg_list);
	uint64_t length = 0;

	for (uint32_t i = 0; i < num_sge; i++) {
		uint32_t bytes = read_once(list[i].length);

		store_data(&slot[SLOT_SGES + 2 * i], read_once(list[i].addr));
		store_data(&slot[SLOT_SGES + 1 + 2 * i], pack(bytes, read_once(list[i].lkey)));
		length += bytes;
	}
	store_data(&slot[SLOT_WR_ID], wr->wr_id);
	store_data(&slot[SLOT_SIZES], pack(min_t(uint64_t, length, UINT32_MAX), num_sge));
}

/*
 * Takers passed @*pos while it was being written: the same request at the end of the queue. It is
 * carried there by hand, not from slot to slot, so that a thread stopped here has one slot and not
 * two.
 */
static int post_again(struct rq *rq, uint32_t epoch, uint64_t *pos)
{
	uint64_t copy[SLOT_WORDS(RQ_MAX_SGE)];
	size_t words = SLOT_WORDS(rq->max_sge);

	do {
		word *slot = slot_at(rq, *pos);
		int ret;

		for (size_t i = SLOT_WR_ID; i < words; i++)
			copy[i] = load_data(&slot[i]);
		rq_unclaim(rq, epoch, *pos);
		ret = rq_claim(rq, epoch, rq->max_wr, pos);
		if (ret)
			return ret;
		slot = slot_at(rq, *pos);
		for (size_t i = SLOT_WR_ID; i < words; i++)
			store_data(&slot[i], copy[i]);
	} while (!rq_publish(rq, epoch, *pos));
	return 0;
}

/*
 * Posts one request at the first free position from @*pos on; leaves there where it is. The way of
 * a queue with room and no other poster is here, one after the other; all else is rq_claim()'s.
 */
static inline int post_one(struct rq *rq, uint32_t epoch, const struct ibv_recv_wr *wr,
			   uint64_t *pos)
{
	int num_sge = read_once(wr->num_sge);
	uint64_t lap = lap_of(rq, *pos), seen = lap;
	word *slot = slot_at(rq, *pos);

	if (unlikely(num_sge < 0 || (uint32_t)num_sge > rq->max_sge))
		return -EINVAL;
	if (unlikely(!seems_room(rq, *pos, rq->max_wr) ||
		     !swap_word(slot, &seen, state_word(lap, SLOT_WRITING, epoch), acquire))) {
		int ret = rq_claim(rq, epoch, rq->max_wr, pos);

		if (ret)
			return ret;
		slot = slot_at(rq, *pos);
		lap = lap_of(rq, *pos);
	} else {
		no_race();
	}
	fill_slot(slot, wr, num_sge);
	seen = state_word(lap, SLOT_WRITING, epoch);
	if (unlikely(!swap_word(slot, &seen, state_word(lap, SLOT_POSTED, 0), release)))
		return post_again(rq, epoch, pos);
	return 0;
}

int rq_post_as(struct rq *rq, uint32_t epoch, const struct ibv_recv_wr *wr)
{
	uint64_t pos = load_word(&rq->tail, acquire);
	int ret = post_one(rq, epoch, wr, &pos);

	if (likely(!ret))
		store_word(&rq->tail, pos + 1, release);
	return ret;
}

int rq_post(struct rq *rq, const struct ibv_recv_wr *wr)
{
	return rq_post_as(rq, 0, wr);
}

int rq_post_list(struct rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	uint64_t start = load_word(&rq->tail, acquire), pos = start;
	int ret = 0;

	/*
	 * One look at tail and one store for the chain; a chain that runs in a circle ends when the
	 * queue is full.
	 */
	for (; wr; wr = wr->next) {
		ret = post_one(rq, 0, wr, &pos);
		if (ret) {
			*bad_wr = wr;
			break;
		}
		pos++;
	}
	if (pos != start)
		store_word(&rq->tail, pos, release);
	return ret;
}

/* --- taking ----------------------------------------------------------------------------------- */

static inline void copy_slot(word *slot, struct rqe *out)
{
	uint64_t sizes = load_data(&slot[SLOT_SIZES]);

	out->wr_id = load_data(&slot[SLOT_WR_ID]);
	out->length = (uint32_t)sizes;
	out->num_sge = sizes >> 32;
	for (uint32_t i = 0; i < out->num_sge; i++) {
		uint64_t w = load_data(&slot[SLOT_SGES + 1 + 2 * i]);

		out->sge[i] = (struct ibv_sge){
			.addr = load_data(&slot[SLOT_SGES + 2 * i]),
			.length = (uint32_t)w,
			.lkey = w >> 32,
		};
	}
}

/*
 * Whether the request at @pos, which was being written when its slot said @seen, is in the way of
 * others: something is posted above it, or it may no longer be what the taker knows.
 *
 * If not, the queue was empty for a moment of this call. When the walk ends at a position that is
 * not claimed: the last one it found taken had all below it over then, and those above it, found
 * being written later, were not posted yet; if none was taken, all that is true of the moment of
 * @seen. When it ends where the ring does, positions of the next lap may have been posted unseen,
 * but only if @pos is over by now.
 */
static bool in_way(struct rq *rq, uint64_t pos, uint64_t seen)
{
	for (uint32_t i = 1; i <= rq->mask; i++) {
		switch (rq_position(rq, pos + i, load_word(slot_at(rq, pos + i), acquire))) {
		case POS_POSTED:
			return true;
		case POS_OPEN:
		case POS_BEHIND:
		case POS_IN_WAY:
			return false;
		default:
			break;
		}
	}
	return load_word(slot_at(rq, pos), acquire) != seen;
}

/*
 * The request at @pos is being written and there are others behind it. Its poster is given a
 * moment, since it is most likely running; then it is passed. @seen: the slot's word, and a newer
 * one afterwards.
 */
static void pass(word *slot, uint64_t *seen)
{
	uint64_t writing = *seen;

#ifdef SRQ_PATIENT
	for (int i = 0; i < PASS_AFTER; i++) {
		*seen = load_word(slot, acquire);
		if (*seen != writing)
			return;
		cpu_pause();
	}
#endif
	swap_word(slot, seen, state_word(writing & LAP_MASK, SLOT_LEFT, epoch_in(writing)),
		  seq_cst);
}

/* Takes the slot at @pos out of the queue with its new word @next, when its word is still @seen. */
static inline bool take_slot(struct rq *rq, word *slot, uint64_t *seen, uint64_t next)
{
	/* Only takers change what is posted, so one alone needs no locked instruction. */
	if (rq->one_taker) {
		store_word(slot, next, release);
		return true;
	}
	return swap_word(slot, seen, next, seq_cst);
}

/* Takes the oldest request; its slot becomes FREE, or TAKEN by @holder. */
static inline bool take(struct rq *rq, struct rqe *out, bool hold, uint32_t holder, uint64_t *at)
{
	uint64_t start = load_word(&rq->head, acquire), pos = start;
	unsigned int races = 0;

	for (;;) {
		word *slot = slot_at(rq, pos);
		uint64_t seen = load_word(slot, acquire), lap = lap_of(rq, pos);

		if (likely(seen == state_word(lap, SLOT_POSTED, 0))) {
			copy_slot(slot, out);
			if (take_slot(rq, slot, &seen,
				      hold ? state_word(lap, SLOT_TAKEN, holder) : freed(lap))) {
				store_word(&rq->head, pos + 1, release);
				if (!races)
					no_race();
				*at = pos;
				return true;
			}
		}
		switch (rq_position(rq, pos, seen)) {
		case POS_WRITING:
			if (in_way(rq, pos, seen)) {
				pass(slot, &seen);
				break;
			}
			/* fall through */
		case POS_OPEN:
		case POS_BEHIND:
		case POS_IN_WAY:
			if (pos != start)
				store_word(&rq->head, pos, release);
			return false;
		case POS_LONG_OVER:
			pos = back_off(&rq->head, rq_jump_over(rq, pos, seen), &races);
			break;
		case POS_OVER:
			pos++;
			break;
		case POS_POSTED:
			break;
		}
	}
}

bool rq_take(struct rq *rq, struct rqe *out)
{
	uint64_t pos;

	return take(rq, out, false, 0, &pos);
}

bool rq_hold(struct rq *rq, uint32_t epoch, struct rqe *out, uint64_t *ticket)
{
	return take(rq, out, true, epoch, ticket);
}
