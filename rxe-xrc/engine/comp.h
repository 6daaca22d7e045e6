/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The completer: responses retire work requests, or make the requester try again. Theory in comp.c. */
#ifndef RXE_ENGINE_COMP_H
#define RXE_ENGINE_COMP_H

#include "engine/qp.h"

/** comp_packet() - takes a response; lane held. */
void comp_packet(struct qp *qp, const struct wire_pkt *pkt);

/** comp_timer() - a deadline of @qp has passed: acknowledge timeout or end of an RNR wait. Lane held. */
void comp_timer(struct qp *qp);

/** comp_local() - retires requests at the head that were executed here. Lane held. */
void comp_local(struct qp *qp);

#endif
