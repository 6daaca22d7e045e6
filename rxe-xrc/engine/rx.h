/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A packet comes in: the checks that concern no message, and the way to responder or completer. */
#ifndef RXE_ENGINE_RX_H
#define RXE_ENGINE_RX_H

#include "engine/lane.h"

/** rx_packet() - takes one packet of a burst; lane held. Its bytes are not needed afterwards. */
void rx_packet(struct lane *lane, const struct link_rx *rx);

#endif
