/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A world of engines in virtual time, for tests.
 *
 * Each node is an engine with one lane, or several, and a link of the simulated network for each (net/sim.h). Nothing
 * happens by itself: world_step() runs the lanes until none of them has anything to do, then moves
 * the clock to the next arrival or deadline. With one seed everything repeats, down to the order in
 * which lanes run and whether it was the program or the helper thread that ran them.
 *
 *     world_create() -> world_pd(), world_cq(), world_mr() ... -> world_connect() -> post,
 * world_run(), poll
 *
 * Set-up that cannot fail in a sound engine is wrapped in must(): it aborts with the expression,
 * which a test runner reports as a failed test.
 */
#ifndef RXE_TESTS_WORLD_H
#define RXE_TESTS_WORLD_H

#include "base/macros.h"
#include "engine/mr.h"
#include "engine/qp.h"
#include "net/pcap.h"
#include "net/sim.h"

#define WORLD_MAX_NODES	 4
#define WORLD_MAX_RAW	 4
#define WORLD_MAX_EVENTS 128
#define WORLD_PERCENT(n) ((uint32_t)((double)(n) / 100 * 4294967295.0))
#define WORLD_ALL_ACCESS                                                                           \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)

/** must() - a call that returns 0 or -errno and has to succeed. */
#define must(call) world_must((call), #call, __FILE__, __LINE__)
void world_must(int ret, const char *what, const char *file, int line);

/* splitmix64: each test draws from its own generator, never from the engine's. */
struct rng {
	uint64_t state;
};

uint64_t rng_next(struct rng *r);
uint32_t rng_below(struct rng *r, uint32_t n);		     /* 0 to n - 1 */
uint32_t rng_range(struct rng *r, uint32_t lo, uint32_t hi); /* lo to hi */
bool rng_percent(struct rng *r, uint32_t percent);

struct world_event {
	enum ibv_event_type type;
	void *user;
};

struct world_node {
	struct world *world;
	unsigned int index;
	uint8_t ip[16];
	struct engine *engine;
	struct lane *lane; /* the first, and its link */
	struct link *link;
	struct link_tap tap;
	struct world_event events[WORLD_MAX_EVENTS]; /* asynchronous ones, in order */
	unsigned int nevents;
};

struct world_config {
	uint64_t seed;
	unsigned int nodes;
	unsigned int lanes;	 /* of each node; 0: 1 */
	struct sim_config net;	 /* its seed is taken from the one above */
	enum ibv_mtu active_mtu; /* 0: IBV_MTU_4096 */
};

/* Sees every packet that a node sends or receives; @b without the ICRC, which was right. */
typedef void world_watch(void *arg, struct world_node *node, enum link_dir dir, const uint8_t *b,
			 size_t len);

struct world {
	uint64_t now; /* ns */
	struct rng rng;
	struct sim *sim;
	unsigned int n;
	struct world_node nodes[WORLD_MAX_NODES];
	uint64_t passes;		 /* lane_run() calls */
	uint64_t stalls;		 /* in a row: deadlines that were due and led to nothing */
	struct link *raw[WORLD_MAX_RAW]; /* links without an engine: a test sends by hand */
	struct stats raw_stats;
	unsigned int nraw;
	struct link_tap *pcap;
	bool trace; /* a line on stderr for each packet */
	world_watch *watch;
	void *watch_arg;
};

struct world *world_create(const struct world_config *config);
/** world_destroy() - every object must be gone. */
void world_destroy(struct world *w);

/** world_raw_link() - a link for packets made by hand; what it receives is thrown away. Lives as
 * the world. */
struct link *world_raw_link(struct world *w, const uint8_t ip[16]);

/** world_capture() - writes what is sent from now on, lost packets among it, to @path. 0 or -errno.
 */
int world_capture(struct world *w, const char *path);

/**
 * world_step() - runs the lanes until they are quiet, then moves the clock, to @limit at most.
 *
 * Return: false when nothing is left to happen before @limit; the clock then stands at @limit, or
 * where it was if that is UINT64_MAX.
 */
bool world_step(struct world *w, uint64_t limit);

/** world_next() - when the next thing happens by itself, UINT64_MAX if nothing will. */
uint64_t world_next(const struct world *w);

/** world_run() - steps until the world is idle or @ns have passed. Aborts on a livelock. */
void world_run(struct world *w, uint64_t ns);

/** world_events() - how many events of @type came for @user (NULL: anybody). */
unsigned int world_events(const struct world_node *node, enum ibv_event_type type,
			  const void *user);

/** world_stat() - sum of a counter over the node's lanes. */
uint64_t world_stat(const struct world_node *node, enum stat_id which);

/* Objects. A completion queue's user pointer is its event counter: *(unsigned int *), or NULL. */
struct pd *world_pd(struct world_node *node);
struct cq *world_cq(struct world_node *node, uint32_t cqe, unsigned int *events);
struct mr *world_mr(struct pd *pd, void *addr, uint64_t length, int access);
struct xrcd *world_xrcd(struct world_node *node);
struct srq *world_xrc_srq(struct pd *pd, struct xrcd *xrcd, struct cq *cq, uint32_t max_wr,
			  uint32_t max_sge);
struct srq *world_basic_srq(struct pd *pd, uint32_t max_wr, uint32_t max_sge);

/* Queue pairs in RESET; the handle's user pointer is @user. */
struct qp_handle *world_rc(struct pd *pd, struct cq *send_cq, struct cq *recv_cq, struct srq *srq,
			   void *user);
struct qp_handle *world_ini(struct pd *pd, struct cq *send_cq, void *user);
struct qp_handle *world_tgt(struct world_node *node, struct xrcd *xrcd, void *user);
struct qp_handle *world_ud(struct pd *pd, struct cq *send_cq, struct cq *recv_cq, void *user);

/* How two QPs are connected. */
struct world_path {
	enum ibv_mtu mtu;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t rd_atomic;     /* both as requester and as responder */
	uint32_t psn_a, psn_b; /* first PSN that a, b sends */
	int access;
};

/* 1024 bytes, 4.2 ms, 7 retries, RNR without end after 0.01 ms, 16 READs. */
extern const struct world_path world_path;

int world_to_init(struct qp *qp, const struct world_path *p);
int world_to_rtr(struct qp *qp, const uint8_t dgid[16], uint32_t dest_qpn,
		 const struct world_path *p, uint32_t rq_psn);
int world_to_rts(struct qp *qp, const struct world_path *p, uint32_t sq_psn);
int world_to_state(struct qp *qp, enum ibv_qp_state state);

/** world_connect() - both to RTS; they are RC, UC, or INI (@a) and TGT (@b). */
void world_connect(struct qp *a, struct qp *b, const struct world_path *p);
/** world_start_ud() - to RTS, which takes no peer. */
void world_start_ud(struct qp *qp, uint32_t qkey);

static inline struct world_node *world_node_of(const struct engine *e)
{
	return e->user;
}

/* Requests of one SGE, signalled; @length 0 posts no SGE. Return what the engine does. */
int world_send(struct qp *qp, uint64_t wr_id, const struct mr *mr, void *addr, uint32_t length,
	       uint32_t srqn);
int world_rdma(struct qp *qp, uint64_t wr_id, enum ibv_wr_opcode opcode, const struct mr *mr,
	       void *addr, uint32_t length, uint64_t remote_addr, uint32_t rkey, uint32_t srqn);
int world_post(struct qp *qp, struct ibv_send_wr *wr);
int world_recv(struct qp *qp, uint64_t wr_id, const struct mr *mr, void *addr, uint32_t length);
int world_srq_recv(struct srq *srq, uint64_t wr_id, const struct mr *mr, void *addr,
		   uint32_t length);

/** world_wait() - runs until @cq has a completion or @ns have passed. Return: whether it got one.
 */
bool world_wait(struct world *w, struct cq *cq, uint64_t ns, struct ibv_wc *wc);

/** world_poll() - takes one completion that is there already. */
bool world_poll(struct cq *cq, struct ibv_wc *wc);

#endif
