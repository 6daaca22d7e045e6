/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * XRC domains across processes: the carrier of engine/foreign.h, over local sockets.
 *
 * SRQ numbers of domains that a file names come in blocks. A process owns a block while it listens on an
 * abstract address made of user, interface and the block's first number. The kernel keeps such addresses unique
 * within a network namespace and takes them away with the process, so there is no registry and nothing to
 * clean up:
 *
 *     owner                                        runner
 *     domain_claim(): a random block that
 *     nobody listens on
 *     accept                <-------------------   first question for a number of the block: connect
 *     foreign_serve()       <-------------------   domain_ask(): request, payload
 *                           ------------------->   reply, data
 *
 * A connection (SOCK_SEQPACKET) keeps messages whole and in order, and its end tells either side that the other
 * is gone. Each checks at its beginning that the other has the same effective user (SO_PEERCRED).
 *
 * Who waits for whom: a runner waits for an owner, DOMAIN_PATIENCE at most. An owner waits for nobody: its
 * thread neither takes a lane nor blocks in a send. So there is no cycle, however processes own and run.
 *
 * A process that is stopped does not answer; one question lies in its socket, and what it was told. Once that is full
 * (net.unix.max_dgram_qlen, 10 messages), a FOREIGN_ABANDON cannot be sent. If it is about a message in
 * progress at this owner, the runner then ends its side of the connection, which the owner sees behind all that was
 * queued; and it asks nothing more until the owner has closed the other side: until then the owner may still
 * execute what is queued, and the same over a new connection would be executed twice. Other QPs that are in the
 * middle of a message to this owner lose it, too: their receives are flushed, and the next packet is out
 * of sequence.
 */
#ifndef RXE_NODE_DOMAIN_H
#define RXE_NODE_DOMAIN_H

#include "engine/foreign.h"

/* How long a runner waits for an answer, ns. */
#define DOMAIN_PATIENCE 10000000u

/**
 * domain_claim() - a block for @e, which is served from now on; starts the thread with the first.
 * @ifindex: of the device: processes meet if theirs are the same
 *
 * Return: its first number, or 0 (which has been logged).
 */
uint32_t domain_claim(struct engine *e, unsigned int ifindex);

/** domain_ask(), domain_tell() - see struct foreign_ops. Any thread; one question at a time. */
int domain_ask(struct engine *e, unsigned int ifindex, struct foreign_request *req,
	       const void *payload, struct foreign_reply *reply, void *data);
void domain_tell(struct engine *e, struct foreign_request *req);

/**
 * domain_detach() - @e goes: its blocks are free, nobody is served or asked for it any more.
 *
 * The last one ends the thread, and waits for it. No lane of @e may run, and no fork either.
 */
void domain_detach(struct engine *e);

/*
 * Round a fork; between them no lock of another part is taken but leaves. In the child everything is closed
 * and forgotten. prepare comes after liburcu's hook: both locks are taken inside read sections too.
 */
void domain_fork_prepare(void);
void domain_fork_parent(void);
void domain_fork_child(void);

#endif
