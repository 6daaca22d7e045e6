/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the device can do, as ibv_query_device() reports it and as create calls enforce it. */
#ifndef RXE_ENGINE_LIMITS_H
#define RXE_ENGINE_LIMITS_H

#define RXE_MAX_QP     65536
#define RXE_MAX_QP_WR  32768
#define RXE_MAX_SGE    32
#define RXE_MAX_INLINE 512
#define RXE_MAX_CQ     65536
#define RXE_MAX_CQE    (1 << 20)
#define RXE_MAX_SRQ    65536
#define RXE_MAX_SRQ_WR 32768
#define RXE_MAX_MR     (1 << 20)
#define RXE_MAX_MW     (1 << 20)
#define RXE_MAX_PD     65536
#define RXE_MAX_AH     65536
#define RXE_MAX_GIDS   16
/* As LINK_MAX_LANES. */
#define RXE_MAX_LANES 16
/* Longest message, as the kernel's rdma_rxe. */
#define RXE_MAX_MSG 0x800000u
/* READs and atomics that one QP has outstanding, as requester and as responder. */
#define RXE_MAX_RD_ATOMIC 128
/*
 * Numbers of QPs and of SRQs come from disjoint ranges: an SRQN is never a QPN. 0 and 1 are QP0 and QP1. The first
 * and the one behind the last QPN are multiples of RXE_MAX_LANES: the low bits name the lane.
 */
#define RXE_QPN_FIRST  0x000100u
#define RXE_QPN_LAST   0x7fffffu
#define RXE_SRQN_FIRST 0x800000u
#define RXE_SRQN_LAST  0xfffffeu

#endif
