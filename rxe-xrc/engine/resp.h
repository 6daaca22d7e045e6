/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The responder: requests are checked, executed and answered. Theory in resp.c. */
#ifndef RXE_ENGINE_RESP_H
#define RXE_ENGINE_RESP_H

#include "engine/qp.h"

/* What a check, or the execution, says of a request. */
enum verdict {
	RESP_OK,
	RESP_RNR,    /* no receive is posted */
	RESP_FULL,   /* too many READs and atomics outstanding: drop, it will come again */
	RESP_SILENT, /* the SRQ's owner is another process, which gives no answer: drop, likewise */
	RESP_BAD_SEQUENCE, /* opcode does not fit the message in progress */
	RESP_BAD_TARGET,   /* XRC: no such SRQ in the domain */
	RESP_NO_RIGHT,	   /* the QP does not allow the operation */
	RESP_BAD_LENGTH,
	RESP_MISALIGNED, /* atomic on an address that is no multiple of 8 */
	RESP_BAD_KEY,
	RESP_TOO_LONG, /* longer than the receive */
	RESP_BAD_INVALIDATE,
	RESP_LOCAL_FAULT, /* the receive's own buffer cannot be written */
	RESP_VERDICTS,
};

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

/**
 * resp_serve() - the owner's part of a packet that another process's QP received: SEND, WRITE or atomic.
 * @qp: stands for that QP (foreign.c)
 * @orig: an atomic's value before
 *
 * A verdict above RESP_SILENT ends the message in progress; its receive has been completed then.
 */
enum verdict resp_serve(struct qp *qp, const struct wire_pkt *pkt, uint64_t *orig);

#endif
