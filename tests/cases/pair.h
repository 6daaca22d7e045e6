/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two engines with a connection from A to B, and memory on both sides: what most public bug reports need.
 * See tests/sim/world.h for what it is made of; README for which case is tested where.
 */
#ifndef RXE_TESTS_PAIR_H
#define RXE_TESTS_PAIR_H

#include "../sim/world.h"

#include <criterion/criterion.h>

#define PAIR_MEM (1u << 20)
/* Nothing without faults takes longer in virtual time. */
#define PAIR_WAIT 2000000000ull

struct pair {
	struct world *w;
	struct world_node *a, *b;
	struct pd *pd_a, *pd_b;
	struct cq *cq_a, *cq_b;		 /* all completions of a side */
	unsigned int events_a, events_b; /* of those queues */
	uint8_t *mem_a, *mem_b;
	struct mr *mr_a, *mr_b;
	struct xrcd *xrcd; /* of B */
	struct srq *srq;   /* of B, XRC */
	struct qp_handle *handle_a, *handle_b;
	struct qp *qp_a, *qp_b;
	int tag_a, tag_b; /* their addresses are the handles' user pointers */
};

/* Connected, over a network that loses nothing. */
struct pair *pair_rc(const struct world_path *path);
struct pair *pair_xrc(const struct world_path *path);
/* RC whose B receives from a basic SRQ, in p->srq. */
struct pair *pair_srq(const struct world_path *path);
/* Not connected yet, any type: XRC_SEND stands for INI and TGT. */
struct pair *pair_open(enum ibv_qp_type type, unsigned int nodes, const struct sim_config *net);
void pair_end(struct pair *p);

/** pair_srqn() - what A's requests must name; 0 if it is not XRC. */
uint32_t pair_srqn(const struct pair *p);
/** pair_recv() - B posts a receive of @length bytes at mem_b, to whatever receives. */
int pair_recv(struct pair *p, uint64_t wr_id, uint32_t length);
int pair_send(struct pair *p, uint64_t wr_id, uint32_t length);

/** expect_wc() - the next completion of @cq, which comes within PAIR_WAIT. */
struct ibv_wc expect_wc(struct pair *p, struct cq *cq, uint64_t wr_id, enum ibv_wc_status status);
void expect_no_wc(struct pair *p, struct cq *cq);

/** pair_fill() - a pattern that differs with @seed. */
void pair_fill(uint8_t *b, size_t n, uint32_t seed);

#endif
