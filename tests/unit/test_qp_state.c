/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of transitions, walked completely, and the masks of single transitions against the man pages. */
#include "engine/qp_state.h"

#include <criterion/criterion.h>
#include <errno.h>

static const enum ibv_qp_type types[] = {
	IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV,
};

#define INIT_MASK    (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define UD_INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define PATH_MASK    (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RC_RTR_MASK  (PATH_MASK | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RC_RTS_MASK                                                                                \
	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |     \
	 IBV_QP_MAX_QP_RD_ATOMIC)

/* One row for each way up: type, from, to, the attributes that must all be there. */
static const struct {
	enum ibv_qp_type type;
	enum ibv_qp_state from, to;
	int mask;
} ways[] = {
	{IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, INIT_MASK},
	{IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT, INIT_MASK},
	{IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, UD_INIT_MASK},
	{IBV_QPT_XRC_SEND, IBV_QPS_RESET, IBV_QPS_INIT, INIT_MASK},
	{IBV_QPT_XRC_RECV, IBV_QPS_RESET, IBV_QPS_INIT, INIT_MASK},
	{IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, RC_RTR_MASK},
	{IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, PATH_MASK},
	{IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_STATE},
	{IBV_QPT_XRC_SEND, IBV_QPS_INIT, IBV_QPS_RTR, PATH_MASK},
	{IBV_QPT_XRC_RECV, IBV_QPS_INIT, IBV_QPS_RTR, RC_RTR_MASK},
	{IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, RC_RTS_MASK},
	{IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN},
	{IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN},
	{IBV_QPT_XRC_SEND, IBV_QPS_RTR, IBV_QPS_RTS, RC_RTS_MASK},
	{IBV_QPT_XRC_RECV, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN},
};

Test(qp_state_check, each_way_needs_all_its_attributes)
{
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		cr_assert_eq(qp_state_check(ways[i].type, ways[i].from, ways[i].to, ways[i].mask),
			     0, "row %zu", i);
		for (int bit = 0; bit < 26; bit++) {
			int mask = 1 << bit;

			if (mask == IBV_QP_STATE || !(ways[i].mask & mask))
				continue;
			cr_assert_eq(qp_state_check(ways[i].type, ways[i].from, ways[i].to,
						    ways[i].mask & ~mask),
				     -EINVAL, "row %zu without bit %d", i, bit);
		}
	}
}

Test(qp_state_check, superfluous_attributes_are_refused)
{
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		/* The capabilities cannot be modified anywhere. */
		cr_assert_eq(qp_state_check(ways[i].type, ways[i].from, ways[i].to,
					    ways[i].mask | IBV_QP_CAP),
			     -EINVAL, "row %zu", i);
	}
	cr_assert_eq(qp_state_check(IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS,
				    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT),
		     -EINVAL);
}

/* Which states may follow which, whatever the attributes. */
Test(qp_state_check, the_whole_matrix)
{
	static const char *const follows[IBV_QPS_ERR + 1] = {
		/* to: RESET INIT RTR RTS SQD SQE ERR */
		[IBV_QPS_RESET] = "11.....", [IBV_QPS_INIT] = "111...1", [IBV_QPS_RTR] = "1..1..1",
		[IBV_QPS_RTS] = "1..11.1",   [IBV_QPS_SQD] = "1..11.1",	 [IBV_QPS_SQE] = "1..1..1",
		[IBV_QPS_ERR] = "1.....1",
	};

	for (int from = IBV_QPS_RESET; from <= IBV_QPS_ERR; from++) {
		for (int to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++) {
			for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
				bool ok = false;

				ok |= !qp_state_check(types[t], from, to, IBV_QP_STATE);
				for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
					ok |= !qp_state_check(types[t], from, to, ways[i].mask);
				cr_assert_eq(ok, follows[from][to] == '1', "type %d: %d to %d",
					     types[t], from, to);
			}
		}
	}
	cr_assert_eq(qp_state_check(IBV_QPT_RC, IBV_QPS_UNKNOWN, IBV_QPS_RTS, IBV_QP_STATE),
		     -EINVAL);
	cr_assert_eq(qp_state_check(IBV_QPT_RC, IBV_QPS_RTS, (enum ibv_qp_state)99, IBV_QP_STATE),
		     -EINVAL);
}

/* Case A5: RC masks on XRC QPs from user space, of which exactly the other half's attributes are ignored. */
Test(qp_state_strip, rc_masks_pass_on_xrc)
{
	int mask;

	mask = qp_state_strip(IBV_QPT_XRC_SEND, RC_RTR_MASK);
	cr_assert_eq(mask, PATH_MASK);
	cr_assert_eq(qp_state_check(IBV_QPT_XRC_SEND, IBV_QPS_INIT, IBV_QPS_RTR, mask), 0);
	mask = qp_state_strip(IBV_QPT_XRC_RECV, RC_RTS_MASK);
	cr_assert_eq(mask, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN);
	cr_assert_eq(qp_state_check(IBV_QPT_XRC_RECV, IBV_QPS_RTR, IBV_QPS_RTS, mask), 0);
	cr_assert_eq(qp_state_strip(IBV_QPT_RC, RC_RTR_MASK), RC_RTR_MASK);
	/* Others stay superfluous. */
	mask = qp_state_strip(IBV_QPT_XRC_SEND, RC_RTR_MASK | IBV_QP_QKEY);
	cr_assert_eq(qp_state_check(IBV_QPT_XRC_SEND, IBV_QPS_INIT, IBV_QPS_RTR, mask), -EINVAL);
}

/* libfabric changes the RNR timer of a running QP, alone and without IBV_QP_STATE. */
Test(qp_state_check, rnr_timer_alone_in_rts)
{
	cr_assert_eq(qp_state_check(IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_MIN_RNR_TIMER), 0);
	cr_assert_eq(
		qp_state_check(IBV_QPT_XRC_RECV, IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_MIN_RNR_TIMER),
		0);
	cr_assert_eq(qp_state_check(IBV_QPT_XRC_SEND, IBV_QPS_RTS, IBV_QPS_RTS,
				    qp_state_strip(IBV_QPT_XRC_SEND, IBV_QP_MIN_RNR_TIMER)),
		     0);
}
