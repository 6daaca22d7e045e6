/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The queue of receive requests: limits, order, and threads that post, take and change their lists.
 */
#include "srq/rq.h"
#include "srq/rq_int.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Epochs */
#define ALIVE 1
#define DEAD  7

static struct ibv_sge one = {.addr = 0x1000, .length = 64, .lkey = 7};

static int post_id(struct rq *rq, uint64_t id)
{
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &one, .num_sge = 1};

	return rq_post(rq, &wr);
}

Test(rq, rq_create__limits)
{
	struct rq *rq;

	cr_assert_eq(rq_create(1, RQ_MAX_SGE + 1, &rq), -EINVAL);
	cr_assert_eq(rq_create(UINT32_MAX, 1, &rq), -ENOMEM);
	cr_assert_eq(rq_create(5, RQ_MAX_SGE, &rq), 0);
	cr_assert_geq(rq_max_wr(rq), 5u);
	cr_assert_geq(rq_max_sge(rq), (uint32_t)RQ_MAX_SGE);
	cr_assert_eq(rq_count(rq), 0u);
	rq_destroy(rq);
}

Test(rq, rq_create__no_room_at_all)
{
	struct rq *rq;

	cr_assert_eq(rq_create(0, 1, &rq), 0);
	cr_assert_eq(post_id(rq, 1), -ENOMEM);
	rq_destroy(rq);
}

Test(rq, rq_create_private__is_the_same_queue)
{
	struct rqe rqe;
	struct rq *rq;

	cr_assert_eq(rq_create_private(1, RQ_MAX_SGE + 1, &rq), -EINVAL);
	cr_assert_eq(rq_create_private(UINT32_MAX, 1, &rq), -ENOMEM);
	cr_assert_eq(rq_create_private(4, 1, &rq), 0);
	for (uint64_t i = 0; i < 40; i++) {
		while (!post_id(rq, i + rq_count(rq)))
			;
		cr_assert_eq(rq_count(rq), 4u);
		cr_assert(rq_take(rq, &rqe));
		cr_assert_eq(rqe.wr_id, i);
	}
	rq_destroy(rq);
}

Test(rq, rq_attach__what_is_there_and_what_is_not)
{
	size_t size = rq_size(5, 2), pages = (size + 4095) / 4096 * 4096;
	int fd = memfd_create("rq", 0);
	void *here, *there;
	struct rqe rqe;
	struct rq *rq;

	cr_assert_eq(rq_size(1, RQ_MAX_SGE + 1), 0u);
	cr_assert_eq(rq_size(UINT32_MAX, 1), 0u);
	cr_assert_eq(ftruncate(fd, pages), 0);
	here = mmap(NULL, pages, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	there = mmap(NULL, pages, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert(here != MAP_FAILED && there != MAP_FAILED && here != there);
	cr_assert_null(rq_attach(there, size));
	rq = rq_init_at(here, 5, 2);
	cr_assert_null(rq_attach(there, 16));
	cr_assert_null(rq_attach(there, size - 1));
	rq->stride *= 2;
	cr_assert_null(rq_attach(there, size));
	rq->stride /= 2;
	rq->shift--;
	rq->mask /= 2;
	cr_assert_null(rq_attach(there, size));
	rq->shift++;
	cr_assert_null(rq_attach(there, size));
	rq->mask = rq->mask * 2 + 1;
	rq->magic++;
	cr_assert_null(rq_attach(there, size));
	rq->magic--;
	cr_assert_not_null(rq_attach(there, size));
	cr_assert_eq(rq_max_wr(rq_attach(there, size)), 5u);

	/* Posted at one address, taken at the other. */
	cr_assert_eq(post_id(rq, 77), 0);
	cr_assert(rq_take(rq_attach(there, size), &rqe));
	cr_assert_eq(rqe.wr_id, 77u);
	cr_assert_eq(rqe.sge[0].addr, 0x1000u);
	munmap(here, pages);
	munmap(there, pages);
	close(fd);
}

/* What is told about the size is more than there can be, though the rest goes with it. */
Test(rq, rq_attach__more_sges_than_there_can_be)
{
	static _Alignas(RQ_ALIGN) char mem[1 << 16];
	struct rq *rq = rq_init_at(mem, 5, RQ_MAX_SGE);

	cr_assert_eq(rq_attach(mem, sizeof(mem)), rq);
	rq->max_sge = RQ_MAX_SGE + 1;
	/* 3 + 2 x 33 words, in whole cache lines */
	rq->stride = 576;
	cr_assert_null(rq_attach(mem, sizeof(mem)));
}

/* With less than a queue's head nothing is read. */
Test(rq, rq_attach__does_not_read_beyond)
{
	char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(page, MAP_FAILED);
	cr_assert_null(rq_attach(page, sizeof(struct rq) - 1));
	munmap(page, 4096);
}

Test(rq, rq_init_at__whatever_was_in_the_memory)
{
	static _Alignas(RQ_ALIGN) char mem[1 << 14];
	struct rqe rqe;
	struct rq *rq;

	memset(mem, 0xa5, sizeof(mem));
	cr_assert_leq(rq_size(3, 1), sizeof(mem));
	rq = rq_init_at(mem, 3, 1);
	cr_assert_eq(rq_count(rq), 0u);
	for (uint64_t i = 0; i < 3; i++)
		cr_assert_eq(post_id(rq, i), 0);
	cr_assert_eq(post_id(rq, 3), -ENOMEM);
	for (uint64_t i = 0; i < 3; i++)
		cr_assert(rq_take(rq, &rqe) && rqe.wr_id == i);
	cr_assert_not(rq_take(rq, &rqe));
}

/* From a position @laps before the one that its slot is in: not one further than is known, and not less. */
Test(rq, rq_jump__from_any_number_of_laps)
{
	struct rq *rq;

	cr_assert_eq(rq_create_private(8, 1, &rq), 0);
	cr_assert_eq(rq->mask, 7u);
	for (uint64_t pos = 0; pos < 20; pos++) {
		for (uint64_t laps = 1; laps < 100; laps++) {
			uint64_t now = pos + laps * 8, seen = lap_of(rq, now);

			cr_assert_eq(rq_position(rq, pos, seen), POS_LONG_OVER);
			cr_assert_eq(rq_jump_claimed(rq, pos, seen), now - 8 + 1);
			cr_assert_eq(rq_jump_over(rq, pos, seen),
				     laps > 2 ? now - 2 * 8 + 1 : pos + 1);
		}
	}
	rq_destroy(rq);
}

/* A lap's number has 45 bits; positions go on when it begins again. */
Test(rq, rq_post__laps_wrap)
{
	uint64_t start = (UINT64_C(1) << 45) * 8 - 20, in = 0, out = 0;
	struct rqe rqe;
	struct rq *rq;

	cr_assert_eq(rq_create_private(8, 1, &rq), 0);
	for (uint64_t pos = start; pos < start + 8; pos++)
		atomic_store(slot_at(rq, pos), lap_of(rq, pos));
	atomic_store(&rq->head, start);
	atomic_store(&rq->tail, start);
	for (int i = 0; i < 20; i++) {
		while (!post_id(rq, in))
			in++;
		cr_assert_eq(rq_count(rq), 8u);
		/* Old hints across the change. */
		atomic_store(&rq->head, start + out / 2);
		atomic_store(&rq->tail, start + in / 2);
		for (int k = 0; k < 3; k++) {
			cr_assert(rq_take(rq, &rqe));
			cr_assert_eq(rqe.wr_id, out++);
		}
	}
	cr_assert_gt(in, 40u);
	rq_destroy(rq);
}

/* The gap that is given up last is not the last gap. */
Test(rq, rq_unclaim__the_higher_first)
{
	uint64_t low = 0, high = 0;
	struct rqe rqe;
	struct rq *rq;

	cr_assert_eq(rq_create(8, 1, &rq), 0);
	cr_assert_eq(post_id(rq, 0), 0);
	cr_assert_eq(rq_claim(rq, ALIVE, 8, &low), 0);
	cr_assert_eq(post_id(rq, 1), 0);
	cr_assert_eq(rq_claim(rq, ALIVE, 8, &high), 0);
	cr_assert_eq(post_id(rq, 2), 0);
	rq_unclaim(rq, ALIVE, high);
	rq_unclaim(rq, ALIVE, low);
	for (uint64_t i = 0; i < 3; i++) {
		cr_assert_eq(rq_count(rq), 3 - i);
		cr_assert(rq_take(rq, &rqe));
		cr_assert_eq(rqe.wr_id, i);
	}
	rq_destroy(rq);
}

/* Takers pass any number of posts that are being written or were given up, for one that is behind them. */
Test(rq, rq_take__passes_several)
{
	for (unsigned int n = 1; n < 8; n++) {
		for (unsigned int gap = 0; gap <= n; gap++) {
			uint64_t pos[8] = {0};
			struct rqe rqe;
			struct rq *rq;

			cr_assert_eq(rq_create_private(8, 1, &rq), 0);
			cr_assert_eq(rq->mask, 7u);
			for (unsigned int i = 0; i < n; i++)
				cr_assert_eq(rq_claim(rq, ALIVE, 8, &pos[i]), 0);
			cr_assert_eq(post_id(rq, 77), 0);
			if (gap < n)
				rq_unclaim(rq, ALIVE, pos[gap]);
			cr_assert_eq(rq_count(rq), n + 1 - (gap < n));
			cr_assert(rq_take(rq, &rqe));
			cr_assert_eq(rqe.wr_id, 77u);
			cr_assert_not(rq_take(rq, &rqe));
			for (unsigned int i = 0; i < n; i++)
				cr_assert_not(rq_publish(rq, ALIVE, pos[i]));
			rq_destroy(rq);
		}
	}
}

/* One that is being written takes room, also where the requests are counted one by one because of a gap. */
Test(rq, rq_claim__being_written_counts_beside_a_gap)
{
	uint64_t gap = 0, writing = 0;
	struct rq *rq;

	cr_assert_eq(rq_create(4, 1, &rq), 0);
	cr_assert_eq(post_id(rq, 0), 0);
	cr_assert_eq(rq_claim(rq, ALIVE, 4, &gap), 0);
	cr_assert_eq(rq_claim(rq, ALIVE, 4, &writing), 0);
	rq_unclaim(rq, ALIVE, gap);
	cr_assert_eq(rq_count(rq), 2u);
	cr_assert_eq(post_id(rq, 1), 0);
	cr_assert_eq(post_id(rq, 2), 0);
	cr_assert_eq(post_id(rq, 3), -ENOMEM);
	cr_assert(rq_publish(rq, ALIVE, writing));
	cr_assert_eq(rq_count(rq), 4u);
	rq_destroy(rq);
}

Test(rq, rq_post__num_sge)
{
	struct ibv_sge sge[3] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
	struct ibv_recv_wr wr = {.wr_id = 9, .sg_list = sge, .num_sge = -1};
	struct rqe rqe;
	struct rq *rq;

	cr_assert_eq(rq_create(4, 2, &rq), 0);
	cr_assert_eq(rq_post(rq, &wr), -EINVAL);
	wr.num_sge = 3;
	cr_assert_eq(rq_post(rq, &wr), -EINVAL);
	wr.num_sge = 2;
	cr_assert_eq(rq_post(rq, &wr), 0);
	wr.num_sge = 0;
	cr_assert_eq(rq_post(rq, &wr), 0);
	cr_assert_eq(rq_count(rq), 2u);

	cr_assert(rq_take(rq, &rqe));
	cr_assert_eq(rqe.wr_id, 9u);
	cr_assert_eq(rqe.num_sge, 2u);
	cr_assert_eq(rqe.length, 7u);
	cr_assert_eq(rqe.sge[1].addr, 4u);
	cr_assert_eq(rqe.sge[1].length, 5u);
	cr_assert_eq(rqe.sge[1].lkey, 6u);
	cr_assert(rq_take(rq, &rqe));
	cr_assert_eq(rqe.num_sge, 0u);
	cr_assert_eq(rqe.length, 0u);
	cr_assert_not(rq_take(rq, &rqe));
	rq_destroy(rq);
}

Test(rq, rq_post__length_is_capped)
{
	struct ibv_sge sge[2] = {{0, UINT32_MAX, 0}, {0, UINT32_MAX, 0}};
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = 2};
	struct rqe rqe;
	struct rq *rq;

	cr_assert_eq(rq_create(1, 2, &rq), 0);
	cr_assert_eq(rq_post(rq, &wr), 0);
	cr_assert(rq_take(rq, &rqe));
	cr_assert_eq(rqe.length, UINT32_MAX);
	rq_destroy(rq);
}

/* A full queue of requests with all SGEs that there can be: none lies in another's slot. */
Test(rq, rq_post__any_number_of_sges)
{
	for (uint32_t n = 1; n <= RQ_MAX_SGE; n++) {
		struct ibv_sge sge[RQ_MAX_SGE];
		struct rqe rqe;
		struct rq *rq;

		cr_assert_eq(rq_create_private(4, n, &rq), 0);
		for (uint32_t id = 0; id < 4; id++) {
			struct ibv_recv_wr wr = {.wr_id = id, .sg_list = sge, .num_sge = (int)n};

			for (uint32_t i = 0; i < n; i++)
				sge[i] = (struct ibv_sge){id * 100 + i, id + i, ~i};
			cr_assert_eq(rq_post(rq, &wr), 0);
		}
		for (uint32_t id = 0; id < 4; id++) {
			cr_assert(rq_take(rq, &rqe));
			cr_assert_eq(rqe.wr_id, id);
			cr_assert_eq(rqe.num_sge, n);
			cr_assert_eq(rqe.length, n * id + n * (n - 1) / 2);
			for (uint32_t i = 0; i < n; i++) {
				cr_assert_eq(rqe.sge[i].addr, id * 100 + i);
				cr_assert_eq(rqe.sge[i].length, id + i);
				cr_assert_eq(rqe.sge[i].lkey, ~i);
			}
		}
		rq_destroy(rq);
	}
}

Test(rq, rq_post__full_and_wrap)
{
	struct rqe rqe;
	struct rq *rq;
	uint64_t in = 0, out = 0;

	/* Not a power of two: what was promised counts, not the ring's size. */
	cr_assert_eq(rq_create(5, 1, &rq), 0);
	for (int round = 0; round < 20; round++) {
		while (!post_id(rq, in))
			in++;
		cr_assert_eq(rq_count(rq), rq_max_wr(rq));
		cr_assert_eq(post_id(rq, in), -ENOMEM);
		for (int i = 0; i < 3; i++) {
			cr_assert(rq_take(rq, &rqe));
			cr_assert_eq(rqe.wr_id, out++);
		}
	}
	cr_assert_eq(in - out, 2u);
	rq_destroy(rq);
}

Test(rq, rq_post_list__stops_at_the_bad_one)
{
	struct ibv_recv_wr wr[3] = {
		{.wr_id = 0, .next = &wr[1], .sg_list = &one, .num_sge = 1},
		{.wr_id = 1, .next = &wr[2], .sg_list = &one, .num_sge = 1},
		{.wr_id = 2, .sg_list = &one, .num_sge = -5},
	};
	struct ibv_recv_wr *bad = NULL;
	struct rqe rqe;
	struct rq *rq;

	cr_assert_eq(rq_create(4, 1, &rq), 0);
	cr_assert_eq(rq_post_list(rq, wr, &bad), -EINVAL);
	cr_assert_eq(bad, &wr[2]);
	cr_assert_eq(rq_count(rq), 2u);
	wr[2].num_sge = 0;
	cr_assert_eq(rq_post_list(rq, wr, &bad), -ENOMEM);
	cr_assert_eq(bad, &wr[2]);
	for (uint64_t i = 0; i < 4; i++) {
		cr_assert(rq_take(rq, &rqe));
		cr_assert_eq(rqe.wr_id, i % 2);
	}
	cr_assert_eq(rq_post_list(rq, wr, &bad), 0);
	cr_assert_eq(rq_count(rq), 3u);
	rq_destroy(rq);
}

Test(rq, rq_hold__is_not_posted_any_more)
{
	uint64_t ticket[3];
	struct rqe rqe;
	struct rq *rq;

	cr_assert_eq(rq_create(3, 1, &rq), 0);
	cr_assert_not(rq_hold(rq, ALIVE, &rqe, &ticket[0]));
	for (uint64_t i = 0; i < 3; i++)
		cr_assert_eq(post_id(rq, i), 0);
	for (uint64_t i = 0; i < 3; i++) {
		cr_assert(rq_hold(rq, ALIVE, &rqe, &ticket[i]));
		cr_assert_eq(rqe.wr_id, i);
	}
	cr_assert_eq(rq_count(rq), 0u);
	/* Many laps round the slots that are held, always with room for three. */
	for (uint64_t i = 0; i < 100; i++) {
		while (!post_id(rq, 100 + i + rq_count(rq)))
			;
		cr_assert_eq(rq_count(rq), 3u);
		cr_assert(rq_take(rq, &rqe));
		cr_assert_eq(rqe.wr_id, 100 + i);
	}
	for (uint64_t i = 0; i < 3; i++) {
		cr_assert_not(rq_release(rq, DEAD, ticket[i]));
		cr_assert(rq_release(rq, ALIVE, ticket[i]));
		cr_assert_not(rq_release(rq, ALIVE, ticket[i]));
	}
	rq_destroy(rq);
}

/* Epoch 0 is the creator's, and stands in every free slot. */
Test(rq, rq_release__of_the_creator_once)
{
	uint64_t ticket;
	struct rqe rqe;
	struct rq *rq;

	cr_assert_eq(rq_create(3, 1, &rq), 0);
	cr_assert_eq(post_id(rq, 0), 0);
	cr_assert(rq_hold(rq, 0, &rqe, &ticket));
	cr_assert(rq_release(rq, 0, ticket));
	cr_assert_not(rq_release(rq, 0, ticket));
	rq_destroy(rq);
}

Test(rq, rq_recover__what_was_held_is_posted_last)
{
	uint64_t ticket, mine;
	struct rqe rqe;
	struct rq *rq;

	cr_assert_eq(rq_create(3, 1, &rq), 0);
	for (uint64_t i = 0; i < 3; i++)
		cr_assert_eq(post_id(rq, i), 0);
	cr_assert(rq_hold(rq, DEAD, &rqe, &ticket));
	cr_assert(rq_hold(rq, ALIVE, &rqe, &mine));
	cr_assert_eq(rq_recover(rq, DEAD, ALIVE), 1);
	cr_assert_eq(rq_recover(rq, DEAD, ALIVE), 0);
	cr_assert_not(rq_release(rq, DEAD, ticket));
	cr_assert(rq_release(rq, ALIVE, mine));
	cr_assert(rq_take(rq, &rqe));
	cr_assert_eq(rqe.wr_id, 2u);
	cr_assert(rq_take(rq, &rqe));
	cr_assert_eq(rqe.wr_id, 0u);
	cr_assert_eq(rqe.sge[0].lkey, 7u);
	cr_assert_not(rq_take(rq, &rqe));
	rq_destroy(rq);
}

/* Others were posted in the place of what was held: it comes back all the same. */
Test(rq, rq_recover__into_a_full_queue)
{
	uint64_t ticket[8];
	struct rqe rqe;
	struct rq *rq;

	cr_assert_eq(rq_create(8, 1, &rq), 0);
	for (uint64_t i = 0; i < 8; i++) {
		cr_assert_eq(post_id(rq, i), 0);
		cr_assert(rq_hold(rq, DEAD, &rqe, &ticket[i]));
	}
	for (uint64_t i = 0; i < 8; i++)
		cr_assert_eq(post_id(rq, 100 + i), 0);
	cr_assert_eq(post_id(rq, 1), -ENOMEM);
	/* Sixteen slots: eight are posted, eight held, and none is free to carry one back. */
	cr_assert_eq(rq_recover(rq, DEAD, ALIVE), -EAGAIN);
	cr_assert_eq(rq_count(rq), 8u);
	for (uint64_t i = 0; i < 8; i++) {
		cr_assert(rq_take(rq, &rqe));
		cr_assert_eq(rqe.wr_id, 100 + i);
	}
	cr_assert_eq(rq_recover(rq, DEAD, ALIVE), 8);
	for (uint64_t seen = 0, i = 0; i < 8; i++) {
		cr_assert(rq_take(rq, &rqe));
		cr_assert_lt(rqe.wr_id, 8u);
		cr_assert_not(seen & 1u << rqe.wr_id);
		seen |= 1u << rqe.wr_id;
	}
	cr_assert_not(rq_take(rq, &rqe));
	rq_destroy(rq);
}

/* What comes back may exceed max_wr, as long as there are slots. */
Test(rq, rq_recover__beyond_max_wr)
{
	uint64_t ticket;
	struct rqe rqe;
	struct rq *rq;

	cr_assert_eq(rq_create(3, 1, &rq), 0);
	cr_assert_eq(post_id(rq, 0), 0);
	cr_assert(rq_hold(rq, DEAD, &rqe, &ticket));
	for (uint64_t i = 1; i <= 3; i++)
		cr_assert_eq(post_id(rq, i), 0);
	cr_assert_eq(rq_recover(rq, DEAD, ALIVE), 1);
	cr_assert_eq(rq_count(rq), 4u);
	cr_assert_eq(post_id(rq, 4), -ENOMEM);
	for (uint64_t i = 1; i <= 4; i++) {
		cr_assert(rq_take(rq, &rqe));
		cr_assert_eq(rqe.wr_id, i % 4);
	}
	rq_destroy(rq);
}

/* No slot is left but those that are held: a post ends all the same, and nothing of the living is recovered. */
Test(rq, rq_post__all_slots_are_held)
{
	uint64_t ticket[16];
	struct rqe rqe;
	struct rq *rq;

	cr_assert_eq(rq_create(8, 1, &rq), 0);
	cr_assert_eq(rq->mask, 15u);
	for (uint64_t i = 0; i < 16; i++) {
		cr_assert_eq(post_id(rq, i), 0);
		if (i == 15)
			cr_assert_eq(rq_recover(rq, DEAD, ALIVE), 0);
		cr_assert(rq_hold(rq, ALIVE, &rqe, &ticket[i]));
	}
	cr_assert_eq(post_id(rq, 16), -ENOMEM);
	cr_assert_eq(rq_recover(rq, DEAD, ALIVE), 0);
	cr_assert_eq(rq_count(rq), 0u);
	for (uint64_t i = 0; i < 16; i++)
		cr_assert(rq_release(rq, ALIVE, ticket[i]));
	for (uint64_t i = 0; i < 8; i++)
		cr_assert_eq(post_id(rq, i), 0);
	cr_assert_eq(post_id(rq, 8), -ENOMEM);
	rq_destroy(rq);
}

/*
 * A post that did not return is no request, and costs no room once it is recovered: not even with
 * others behind it.
 */
Test(rq, rq_recover__what_was_being_posted)
{
	struct rqe rqe;
	struct rq *rq;

	cr_assert_eq(rq_create(4, 1, &rq), 0);
	for (int lap = 0; lap < 20; lap++) {
		uint64_t pos = 0;

		cr_assert_eq(post_id(rq, 1), 0);
		cr_assert_eq(rq_claim(rq, DEAD, 4, &pos), 0);
		cr_assert_eq(post_id(rq, 2), 0);
		cr_assert_eq(rq_recover(rq, DEAD, ALIVE), 0);
		cr_assert_eq(rq_count(rq), 2u);
		cr_assert_eq(post_id(rq, 3), 0);
		cr_assert_eq(post_id(rq, 4), 0);
		cr_assert_eq(post_id(rq, 5), -ENOMEM);
		for (uint64_t i = 1; i <= 4; i++) {
			cr_assert(rq_take(rq, &rqe));
			cr_assert_eq(rqe.wr_id, i);
		}
		cr_assert_not(rq_take(rq, &rqe));
	}
	rq_destroy(rq);
}

/* The hints that a thread stopped long ago leaves are old by many laps, and nothing comes of it. */
Test(rq, rq_take__old_hints)
{
	uint64_t in = 0, out = 0;
	struct rqe rqe;
	struct rq *rq;

	cr_assert_eq(rq_create(5, 1, &rq), 0);
	for (int i = 0; i < 300; i++) {
		while (!post_id(rq, in))
			in++;
		cr_assert_eq(rq_count(rq), 5u);
		for (int k = 0; k < 3; k++) {
			cr_assert(rq_take(rq, &rqe));
			cr_assert_eq(rqe.wr_id, out++);
		}
		atomic_store(&rq->head, out / 2);
		atomic_store(&rq->tail, in / 3);
		atomic_store(&rq->head_seen, 0);
		cr_assert_eq(rq_count(rq), 2u);
	}
	rq_destroy(rq);
}

/* What a queue should hold, in the order of the positions. */
struct plan {
	struct rq *rq;
	struct {
		uint64_t id, pos;
		bool writing;
	} entry[16];
	unsigned int n;
	uint64_t random, next_id;
	uint64_t head, tail; /* the newest that the hints have been */
	uint64_t held[3];    /* tickets */
	unsigned int nheld;
	bool writes, was_passed; /* somebody has claimed write_pos and not published it yet */
	uint64_t write_pos;
};

static uint64_t draw(struct plan *p)
{
	p->random ^= p->random << 13;
	p->random ^= p->random >> 7;
	p->random ^= p->random << 17;
	return p->random >> 8;
}

/* A hint of any age: mostly of a few laps, sometimes as old as can be. */
static uint64_t older(struct plan *p, uint64_t hint)
{
	uint64_t by = draw(p) % (draw(p) % 4 ? 5 * (p->rq->mask + 1) : hint + 1);

	return by < hint ? hint - by : 0;
}

static void age_hints(struct plan *p)
{
	p->head = max_t(uint64_t, p->head, atomic_load(&p->rq->head));
	p->tail = max_t(uint64_t, p->tail, atomic_load(&p->rq->tail));
	atomic_store(&p->rq->head, older(p, p->head));
	atomic_store(&p->rq->tail, older(p, p->tail));
	atomic_store(&p->rq->head_seen, older(p, p->head));
}

static void planned_post(struct plan *p)
{
	bool room = p->n < rq_max_wr(p->rq);

	cr_assert_eq(post_id(p->rq, p->next_id), room ? 0 : -ENOMEM, "with %u posted", p->n);
	if (room)
		p->entry[p->n++].id = p->next_id++;
}

/* A post in two steps, so that takers may pass it in between. */
static void planned_write(struct plan *p)
{
	struct rq *rq = p->rq;

	if (!p->writes && p->n < rq_max_wr(rq)) {
		p->write_pos = atomic_load(&rq->tail);
		cr_assert_eq(rq_claim(rq, ALIVE, rq_max_wr(rq), &p->write_pos), 0);
		atomic_store(slot_at(rq, p->write_pos) + SLOT_WR_ID, p->next_id);
		atomic_store(slot_at(rq, p->write_pos) + SLOT_SIZES, 0);
		p->entry[p->n].writing = true;
		p->entry[p->n++].id = p->next_id++;
		p->writes = true;
		p->was_passed = false;
	} else if (p->writes) {
		cr_assert_eq(rq_publish(rq, ALIVE, p->write_pos), !p->was_passed);
		if (p->was_passed)
			rq_unclaim(rq, ALIVE, p->write_pos);
		for (unsigned int i = 0; i < p->n; i++)
			p->entry[i].writing = false;
		p->writes = false;
	}
}

static void planned_take(struct plan *p, bool hold)
{
	unsigned int i = 0;
	struct rqe rqe;
	bool ok;

	while (i < p->n && p->entry[i].writing)
		i++;
	ok = hold ? rq_hold(p->rq, ALIVE, &rqe, &p->held[p->nheld]) : rq_take(p->rq, &rqe);
	cr_assert_eq(ok, i < p->n);
	if (!ok)
		return;
	cr_assert_eq(rqe.wr_id, p->entry[i].id);
	p->nheld += hold;
	p->was_passed |= i > 0;
	p->n -= i + 1;
	memmove(p->entry, p->entry + i + 1, p->n * sizeof(p->entry[0]));
	memset(p->entry + p->n, 0, (i + 1) * sizeof(p->entry[0]));
}

static void planned_release(struct plan *p)
{
	if (p->nheld)
		cr_assert(rq_release(p->rq, ALIVE, p->held[--p->nheld]));
}

/* @spare: there are slots enough for some to be stuck */
static void follow_plan(struct rq *rq, uint64_t seed, bool spare)
{
	struct plan p = {.rq = rq, .random = seed};

	for (int i = 0; i < 6000; i++) {
		/* Times in which the queue is nearly full, and such in which it is nearly empty. */
		uint64_t what = draw(&p) % 10, fuller = i / 50 % 2;

		if (what < 4 + fuller)
			planned_post(&p);
		else if (what < 8 || !spare)
			planned_take(&p, spare && p.nheld < 3 && draw(&p) % 4 == 0);
		else if (what == 8)
			planned_write(&p);
		else if (draw(&p) % 8 == 0)
			planned_release(&p);
		age_hints(&p);
		cr_assert_eq(rq_count(rq), p.n);
		age_hints(&p);
	}
	rq_destroy(rq);
}

/* Whoever was stopped long ago sets the hints back by any number of laps, at any time. */
Test(rq, rq_take__hints_of_any_age)
{
	struct rq *rq;

	cr_assert_eq(rq_create(5, 1, &rq), 0);
	follow_plan(rq, 1, true);
	/* As many requests as slots. */
	cr_assert_eq(rq_create_private(8, 1, &rq), 0);
	follow_plan(rq, 2, false);
	cr_assert_eq(rq_create_private(4, 1, &rq), 0);
	follow_plan(rq, 3, false);
}

#define THREADS	   3
#define PER_THREAD 20000

struct hammer {
	struct rq *rq;
	unsigned int index;
	atomic_uchar *seen;
	atomic_uint *taken;
	bool ordered;
};

static void *poster(void *arg)
{
	struct hammer *h = arg;

	for (uint64_t i = 0; i < PER_THREAD; i++)
		while (post_id(h->rq, (uint64_t)h->index * PER_THREAD + i) == -ENOMEM)
			sched_yield();
	return NULL;
}

static void *taker(void *arg)
{
	struct hammer *h = arg;
	uint64_t last[THREADS] = {0};
	struct rqe rqe;

	h->ordered = true;
	while (atomic_load(h->taken) < THREADS * PER_THREAD) {
		if (!rq_take(h->rq, &rqe)) {
			sched_yield();
			continue;
		}
		/* One poster's requests come to one taker in their order. */
		if (rqe.wr_id + 1 < last[rqe.wr_id / PER_THREAD])
			h->ordered = false;
		last[rqe.wr_id / PER_THREAD] = rqe.wr_id + 1;
		if (rqe.num_sge != 1 || rqe.sge[0].addr != 0x1000 || rqe.length != 64)
			h->ordered = false;
		atomic_fetch_add(&h->seen[rqe.wr_id], 1);
		atomic_fetch_add(h->taken, 1);
	}
	return NULL;
}

Test(rq, rq_take__threads_take_each_once)
{
	static atomic_uchar seen[THREADS * PER_THREAD];
	struct hammer h[2 * THREADS];
	pthread_t t[2 * THREADS];
	atomic_uint taken = 0;
	struct rq *rq;

	cr_assert_eq(rq_create(100, 1, &rq), 0);
	for (unsigned int i = 0; i < 2 * THREADS; i++) {
		h[i] = (struct hammer){rq, i % THREADS, seen, &taken, true};
		cr_assert_eq(pthread_create(&t[i], NULL, i < THREADS ? poster : taker, &h[i]), 0);
	}
	for (unsigned int i = 0; i < 2 * THREADS; i++) {
		pthread_join(t[i], NULL);
		cr_assert(h[i].ordered);
	}
	for (unsigned int i = 0; i < THREADS * PER_THREAD; i++)
		cr_assert_eq(atomic_load(&seen[i]), 1);
	cr_assert_eq(rq_count(rq), 0u);
	rq_destroy(rq);
}

/*
 * B10: the program changes num_sge after it was read. The list lies in a page that is not there
 * yet, so the first SGE that is read faults, and the handler makes the change: whatever is read of
 * the count after that would be the new value.
 */
static struct ibv_recv_wr spoiled;
static void *spoiled_list;
static int spoil_to;

static void spoil(int sig)
{
	spoiled.num_sge = spoil_to;
	if (mprotect(spoiled_list, 4096, PROT_READ | PROT_WRITE))
		_exit(1);
}

Test(rq, rq_post__B10_list_changes_meanwhile)
{
	static const int to[] = {1, 3, 0, -1, 1 << 30};
	struct ibv_sge *sge =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rqe rqe;
	struct rq *rq;

	cr_assert_neq(sge, MAP_FAILED);
	sge[0] = (struct ibv_sge){1, 8, 1};
	sge[1] = (struct ibv_sge){2, 9, 2};
	spoiled_list = sge;
	cr_assert_neq(signal(SIGSEGV, spoil), SIG_ERR);
	cr_assert_eq(rq_create(4, 2, &rq), 0);
	for (unsigned int i = 0; i < sizeof(to) / sizeof(*to); i++) {
		spoil_to = to[i];
		spoiled = (struct ibv_recv_wr){.wr_id = i, .sg_list = sge, .num_sge = 2};
		cr_assert_eq(mprotect(sge, 4096, PROT_NONE), 0);
		cr_assert_eq(rq_post(rq, &spoiled), 0);
		cr_assert_eq(spoiled.num_sge, to[i]);
		cr_assert(rq_take(rq, &rqe));
		cr_assert_eq(rqe.wr_id, i);
		cr_assert_eq(rqe.num_sge, 2u);
		cr_assert_eq(rqe.length, 17u);
		cr_assert_eq(rqe.sge[1].addr, 2u);
	}
	rq_destroy(rq);
}

struct spoiler {
	struct ibv_recv_wr *wr;
	atomic_bool stop;
};

/*
 * Changes num_sge without end, between what fits, what does not and what is no count, and the length of the second
 * SGE.
 */
static void *keep_spoiling(void *arg)
{
	static const int counts[] = {2, 1 << 30, -1, 0, 33};
	struct spoiler *s = arg;

	for (unsigned int i = 0; !atomic_load(&s->stop); i++) {
		__atomic_store_n(&s->wr->num_sge, counts[i % 5], __ATOMIC_RELAXED);
		__atomic_store_n(&s->wr->sg_list[1].length, i % 7, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* The same by brute force, for the race checkers: EINVAL or a whole request, and no race. */
Test(rq, rq_post__B10_list_changes_in_another_thread)
{
	struct ibv_sge sge[2] = {{1, 8, 1}, {2, 8, 2}};
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = 2};
	struct spoiler s = {&wr, false};
	struct rqe rqe;
	pthread_t t;
	struct rq *rq;

	cr_assert_eq(rq_create(4, 2, &rq), 0);
	cr_assert_eq(pthread_create(&t, NULL, keep_spoiling, &s), 0);
	for (int i = 0; i < 50000; i++) {
		int ret = rq_post(rq, &wr);

		cr_assert(ret == 0 || ret == -EINVAL);
		if (ret)
			continue;
		cr_assert(rq_take(rq, &rqe));
		cr_assert(rqe.num_sge == 0 || rqe.num_sge == 2);
		/* What was summed up is what was stored. */
		cr_assert_eq(rqe.length, rqe.num_sge ? 8 + rqe.sge[1].length : 0);
	}
	atomic_store(&s.stop, true);
	pthread_join(t, NULL);
	rq_destroy(rq);
}
