/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An XRC domain that several processes share: a TGT QP of one feeds the SRQ of another.
 *
 * The process that runs the TGT QP is the runner, the one that has the SRQ is the owner. The runner keeps
 * everything that belongs to the connection: PSNs, the order of packets, rights, lengths, answers. The owner has
 * the receives, the keys and the memory. So the runner asks, for one packet at a time, and waits for the verdict:
 *
 *     runner (its lane)                     carrier              owner (a thread of the carrier)
 *     resp.c: checks of the connection
 *     foreign_execute() ------------------- ask() -------------> foreign_serve()
 *                                                                resp_serve(): checks of SRQ and key,
 *     the packet is acknowledged, NAKed <-- verdict -----------  execution, completion
 *     or dropped
 *
 * At the owner a struct qp that is in no table stands for the QP of each runner: the responder works on it as
 * on any other. It has the number of the runner's QP, which is what the completions show.
 *
 * No answer in time is no verdict. The runner drops the packet, the requester's timer repeats it, and the
 * runner asks again with the same sequence number, by which the owner knows what it has executed. A number
 * is used until there is a verdict, and never again by any QP of the runner.
 *
 * A message that ends in the middle has a receive at the owner. tell() says so, and a carrier that notices
 * a runner's death destroys its peer: either completes the receive with an error, exactly once, since it is
 * the shadow QP that has it. A message begins: what its QP left unfinished has ended before.
 */
#ifndef RXE_ENGINE_FOREIGN_H
#define RXE_ENGINE_FOREIGN_H

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct foreign_peer;

/* SRQs of shared domains have numbers from blocks of this size; a block has one owner. A power of two. */
#define FOREIGN_BLOCK 1024u
/* Blocks of one engine: enough for RXE_MAX_SRQ. */
#define FOREIGN_MAX_BLOCKS 128
/* Bytes of a payload at most: the largest MTU. */
#define FOREIGN_MAX_DATA 4096u

enum foreign_what {
	FOREIGN_EXECUTE, /* a packet of a SEND or WRITE with its payload, or an atomic */
	FOREIGN_CHECK,	 /* may the READ be done? */
	FOREIGN_FETCH,	 /* the same, and the data, for one response of a READ */
	FOREIGN_ABANDON, /* the QP has failed or is gone; has no answer */
};

/*
 * Between processes that run the same library; the carrier sees to that. Sent as they are, so their padding has
 * names: what has a name is initialised, and nothing of the runner's stack goes to another process.
 */
struct foreign_request {
	uint64_t id;	   /* the carrier's: of this question, repeated in its answer */
	uint64_t seq;	   /* FOREIGN_EXECUTE: of this packet */
	uint64_t dev, ino; /* the domain's file */
	uint64_t va, compare, swap_add;
	uint32_t qpn;
	uint32_t srqn; /* FOREIGN_ABANDON: of the message in progress, or 0 */
	uint32_t rkey, length;
	uint32_t imm_be, inv_rkey;
	uint32_t mtu;
	uint32_t payload_len;
	uint8_t what; /* enum foreign_what */
	uint8_t opcode;
	uint8_t se;
	uint8_t status; /* FOREIGN_ABANDON: enum ibv_wc_status for a receive that was taken */
	uint8_t padding[4];
};
_Static_assert(sizeof(struct foreign_request) == 7 * 8 + 8 * 4 + 4 + 4, "no other padding");

struct foreign_reply {
	uint64_t id;
	uint64_t orig;	   /* an atomic's value before */
	uint32_t data_len; /* FOREIGN_FETCH */
	uint8_t verdict;   /* enum verdict, engine/resp.h */
	uint8_t broken;	   /* the owner's CQ has overrun */
	uint8_t padding[2];
};
_Static_assert(sizeof(struct foreign_reply) == 2 * 8 + 4 + 2 + 2, "no other padding");

/* The carrier; called by the runner with the lane held. */
struct foreign_ops {
	/*
	 * The first of FOREIGN_BLOCK SRQ numbers that no other process of this device has; 0 when there are none
	 * to be had, and then the SRQ is for this process alone. Control path, ctl held.
	 */
	uint32_t (*claim)(struct engine *e);
	/*
	 * Asks the owner of @req->srqn and waits, some milliseconds at most.
	 * @payload: @req->payload_len bytes; @data: room for @req->length bytes with FOREIGN_FETCH, or NULL
	 *
	 * Return: 0; -ENOENT: nobody has the number; -ETIMEDOUT: no answer, and the packet may be executed yet.
	 */
	int (*ask)(struct engine *e, struct foreign_request *req, const void *payload,
		   struct foreign_reply *reply, void *data);
	/*
	 * FOREIGN_ABANDON, to every owner that was ever asked: at the owner of @req->srqn it arrives, or he finds the
	 * runner gone. The others have no receive of the QP.
	 */
	void (*tell)(struct engine *e, struct foreign_request *req);
};

/* --- owner --- */

/** foreign_peer_create() - a runner appears. NULL without memory. */
struct foreign_peer *foreign_peer_create(struct engine *e);

/** foreign_peer_destroy() - it is gone: receives that were taken for it complete with IBV_WC_WR_FLUSH_ERR. */
void foreign_peer_destroy(struct foreign_peer *p, uint64_t now);

/**
 * foreign_serve() - executes a request of @p. One thread for each engine's peers; allocates for new QPs.
 * @payload: @req->payload_len bytes, which the caller has counted
 * @data: room for FOREIGN_MAX_DATA bytes; @reply->data_len says how many are in it
 *
 * Return: whether there is a reply to send.
 */
bool foreign_serve(struct foreign_peer *p, const struct foreign_request *req,
		   const uint8_t *payload, struct foreign_reply *reply, uint8_t *data,
		   uint64_t now);

#endif
