/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The soak: a seed makes a network, QPs, SRQs and traffic, and a model that says what must come of
 * it.
 *
 * A **flow** is one direction of a connection: requests go from @qp to @peer. An RC pair is two
 * flows, a pair of XRC INI and TGT one. Its requests are drawn one at a time when they are posted.
 * A flow knows of each request what the peer's memory holds before and after it (the shadow), so it
 * can say what a READ or an atomic will return, and which receive completion it will cause.
 *
 * A **target** is where a flow's requests go: a receive queue, and memory under a key that goes
 * with it. An XRC flow has one for each SRQ of its peer's domain.
 *
 * A **queue** is a receive queue of the model: the RQ of an RC QP, or an SRQ. It posts late on
 * purpose.
 *
 *     soak.c         options, processes, TAP, the main loop
 *     soak_setup.c   seed -> objects; and their destruction
 *     soak_flow.c    requests and their completions
 *     soak_queue.c   receives and their completions
 *     soak_oracle.c  was RETRY_EXC deserved?
 */
#ifndef RXE_TESTS_SOAK_H
#define RXE_TESTS_SOAK_H

#include "world.h"

#define SOAK_MAX_CQS	 3
#define SOAK_MAX_FLOWS	 16
#define SOAK_MAX_QUEUES	 32
#define SOAK_MAX_TARGETS 6
#define SOAK_MAX_SGE	 4
#define SOAK_MAX_LEN	 65536u
#define SOAK_WINDOW	 16 /* requests that a flow has outstanding, at most */
#define SOAK_RECVS	 16 /* receives of a queue, at most */
#define SOAK_POISON	 0xee

/* The bytes of a slot: SGEs lie in it with gaps, so that a write beside them is noticed. */
#define SOAK_GAP  16
#define SOAK_SLOT (SOAK_MAX_LEN + (SOAK_MAX_SGE + 1) * SOAK_GAP)

/* A flow's memory at the peer: written, only read, and words for atomics. */
#define REGION_WRITE	 0
#define REGION_WRITE_LEN 81920u
#define REGION_READ	 (REGION_WRITE + REGION_WRITE_LEN)
#define REGION_READ_LEN	 67584u
#define REGION_WORDS	 (REGION_READ + REGION_READ_LEN)
#define REGION_NWORDS	 8u
#define REGION_LEN	 (REGION_WORDS + REGION_NWORDS * 8)

struct region {
	struct pd *pd;
	struct mr *mr;
	uint8_t *mem;	 /* what the engine changes */
	uint8_t *shadow; /* what it must be once everything posted has been executed */
};

/* A receive or send buffer cut into SGEs. */
struct pieces {
	unsigned int n;
	struct ibv_sge sge[SOAK_MAX_SGE];
};

struct recv_slot {
	bool posted;
	uint64_t order; /* of posting */
	uint32_t dirty; /* bytes of the slot that are no longer poison */
	struct pieces pieces;
};

struct queue {
	unsigned int index;
	struct soak_node *node;
	struct pd *pd;
	struct srq *srq; /* or */
	struct qp *qp;	 /* an RC QP's own */
	struct cq *cq;	 /* XRC SRQ: its own; RC: the QP's; basic SRQ: NULL, each QP has its own */
	unsigned int room;  /* receives it keeps posted at most */
	uint64_t next_post; /* ns */
	uint64_t delay;	    /* between posts, at most, ns */
	uint64_t orders;    /* receives posted so far */
	uint64_t taken;	    /* RC: the next order to complete */
	struct mr *mr;
	uint8_t *mem;
	struct recv_slot slots[SOAK_RECVS];
};

struct target {
	struct queue *queue;
	struct region *region;
	uint32_t srqn;
};

/* A request as the model sees it. */
struct request {
	enum ibv_wr_opcode opcode;
	unsigned int flags;
	uint32_t length;
	struct target *target;
	uint32_t at;	 /* offset in the region: WRITE, READ, atomics */
	uint32_t imm_be; /* or the key that is invalidated */
	uint64_t orig;	 /* atomic: what it must return */
	uint64_t key;	 /* of the data's pattern */
	uint8_t *expect; /* READ: what it must return */
	struct pieces pieces;
	bool done;
	bool received; /* the receive that it takes has completed */
};

/* A type 2 window on a flow's region, bound by the other flow of the RC pair. */
enum window_state { WINDOW_FREE, WINDOW_BINDING, WINDOW_BOUND, WINDOW_DYING };

struct window {
	enum window_state state;
	struct mr *mw;
	uint32_t rkey;
	uint32_t at, length;
	bool local; /* its own side invalidates it; the flow is not told of it */
};

/* What the oracle sees of a flow. */
struct attempt {
	uint32_t psn, n;
};

struct oracle {
	struct attempt *sent; /* every request packet put on the wire */
	size_t nsent, room;
	size_t progress;    /* of these, sent before una moved last */
	uint32_t una, next; /* oldest PSN that no response covers; first never sent */
	unsigned int since; /* times that una was sent since then */
	unsigned int
		lost;	  /* of its packets and their answers the network lost so many since then */
	unsigned int rnr; /* RNR NAKs for una since then */
	struct attempt *reads; /* READs and atomics not fully answered, oldest first */
	size_t nreads, reads_room;
};

struct flow {
	struct soak *soak;
	unsigned int index;
	bool xrc;
	struct soak_node *src, *dst;
	struct qp_handle *handle, *peer_handle;
	struct qp *qp, *peer;
	struct cq *cq;	    /* of send completions */
	struct cq *peer_cq; /* of RC receive completions */
	struct pd *pd;
	struct flow *back; /* RC: the other direction */
	struct world_path path;
	uint32_t mtu;
	unsigned int window;
	unsigned int total, posted, done;
	struct request *requests; /* total */
	struct rng rng;
	unsigned int silent; /* unsignalled requests since the last signalled one */
	struct target targets[SOAK_MAX_TARGETS];
	unsigned int ntargets;
	struct region regions[2]; /* one for each PD that targets use */
	struct window mw;
	uint8_t *mem; /* window slots */
	struct mr *mr;
	bool flushed;		   /* a receive of the peer was */
	enum ibv_wc_status failed; /* of the first request that failed */
	unsigned int good;	   /* requests before it */
	struct oracle oracle;
};

struct soak_node {
	struct world_node *world;
	struct pd *pds[2];
	struct xrcd *xrcds[2];
	struct cq *cqs[SOAK_MAX_CQS];
	unsigned int ncqs;
};

struct soak {
	uint64_t seed;
	unsigned int faults; /* percent of the packets that each kind of fault hits */
	unsigned int lanes;  /* of each node; with several, as many packets go to a wrong one */
	struct rng rng;
	struct world *world;
	struct soak_node nodes[WORLD_MAX_NODES];
	struct flow flows[SOAK_MAX_FLOWS];
	unsigned int nflows;
	struct queue queues[SOAK_MAX_QUEUES];
	unsigned int nqueues;
	struct sim_config net;
	bool ending; /* QPs are being moved to the error state: flushes are right */
	uint64_t requests;
};

/** soak_fail() - reports and ends the process with 1. */
void soak_fail(const struct soak *s, const char *fmt, ...) PRINTF_LIKE(2, 3)
	__attribute__((noreturn));

void soak_setup(struct soak *s, const char *pcap, bool trace);
void soak_teardown(struct soak *s);

/* Work requests are named by whom they belong to, so that a completion finds its way: see
 * wr_name(). */
enum soak_owner { OWNER_FLOW = 1, OWNER_QUEUE = 2 };
static inline uint64_t wr_name(enum soak_owner owner, unsigned int index, unsigned int n)
{
	return (uint64_t)owner << 48 | (uint64_t)index << 32 | n;
}

/** flow_post() - posts a few requests if there is room. */
void flow_post(struct flow *f);
bool flow_finished(const struct flow *f);
void flow_completion(struct flow *f, const struct cq *cq, const struct ibv_wc *wc);
/** flow_verify() - when all is over: receives came, memory is as the shadow. */
void flow_verify(struct flow *f);
/** flow_consumes() - whether @r takes a receive. */
bool flow_consumes(const struct request *r);

void queue_post(struct queue *q);
void queue_completion(struct queue *q, const struct cq *cq, const struct ibv_wc *wc);

void oracle_init(struct flow *f);
void oracle_fini(struct flow *f);
world_watch oracle_watch;
sim_observer oracle_observe;
/** oracle_judge() - fails the soak unless the flow's RETRY_EXC or RNR_RETRY_EXC was deserved. */
void oracle_judge(const struct flow *f);

/* Patterns: @len bytes that only @key gives. */
void pattern_fill(uint8_t *b, uint32_t len, uint64_t key);
/** pieces_cut() - cuts @len bytes at @slot into at most @max SGEs with gaps. */
void pieces_cut(struct pieces *p, struct rng *rng, uint8_t *slot, uint32_t len, uint32_t lkey,
		unsigned int max);
void pieces_store(const struct pieces *p, const uint8_t *b, uint32_t len);
void pieces_load(const struct pieces *p, uint8_t *b, uint32_t len);
/** pieces_clean() - whether gaps, and what lies behind @len bytes, still hold poison. */
bool pieces_clean(const struct pieces *p, uint32_t len);

#endif
