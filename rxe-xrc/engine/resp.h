/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The responder: requests are checked, executed and answered. Theory in resp.c. */
#ifndef RXE_ENGINE_RESP_H
#define RXE_ENGINE_RESP_H

#include "engine/qp.h"

/** resp_create() - the rings of outstanding READs and atomics, for @rd_atomic of them. 0 or -ENOMEM. */
int resp_create(struct qp *qp, unsigned int rd_atomic);
void resp_destroy(struct qp *qp);

/** resp_reset() - a fresh responder that expects @psn. */
void resp_reset(struct qp *qp, uint32_t psn);

/** resp_packet() - takes a request; lane held. */
void resp_packet(struct qp *qp, const struct wire_pkt *pkt, const struct link_rx *rx);

/**
 * resp_output() - sends READ and atomic responses that are owed, in order, and then the acknowledge; at most @budget
 * packets. Lane held.
 *
 * Return: whether nothing is owed any more.
 */
bool resp_output(struct qp *qp, unsigned int budget);

#endif
