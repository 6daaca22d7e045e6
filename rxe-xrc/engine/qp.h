/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs: identity, attributes, and the state of requester, responder and completer.
 *
 * Everything behind "lane" below belongs to the holder of the QP's lane. A QP has one or more handles: an
 * XRC TGT QP may be opened again by number (ibv_open_qp) and lives until its last handle is closed; each open
 * handle gets the QP's asynchronous events.
 */
#ifndef RXE_ENGINE_QP_H
#define RXE_ENGINE_QP_H

#include "engine/cq.h"
#include "engine/lane.h"
#include "engine/pd.h"
#include "engine/wq.h"
#include "srq/srq.h"
#include "wire/hdr.h"

struct qp_handle {
	struct qp *qp;
	void *user; /* the face's object, for asynchronous events */
	struct cds_list_head list;
};

/* What a QP is created with. */
struct qp_init {
	enum ibv_qp_type type; /* RC, UC, UD, XRC_SEND, XRC_RECV */
	struct pd *pd;	       /* not for XRC_RECV */
	struct cq *send_cq;    /* not for XRC_RECV */
	struct cq *recv_cq;    /* not for XRC_SEND, XRC_RECV */
	struct srq *srq;       /* RC, UC, UD; or NULL */
	struct xrcd *xrcd;     /* XRC_RECV */
	struct ibv_qp_cap cap; /* in: wanted; out: given */
	bool sq_sig_all;
	void *user;
};

/*
 * Where the requester stands. PSNs: una <= psn <= next; what lies from una to next is unacknowledged.
 *
 *        una               psn               next
 *         |                 |                 |
 *    -----+-----------------+-----------------+-----
 *         | sent            | sent before     |
 *         |                 | going back      |
 *
 * For a READ una is the next response that is expected, so it never passes one that is incomplete.
 */
struct qp_req {
	uint32_t una;	     /* oldest PSN not acknowledged */
	uint32_t psn;	     /* PSN of the next packet to send */
	uint32_t next;	     /* first PSN never sent */
	uint32_t wqe;	     /* index in the send queue of the request that psn belongs to */
	uint32_t window;     /* PSNs that may be unacknowledged */
	uint32_t window_max; /* what a receive buffer like ours holds, at most REQ_WINDOW_MAX */
	uint32_t credit;     /* PSNs acknowledged since the window last grew */
	bool lossy;	     /* a packet was lost: the window grows slowly from now on */
	uint32_t since_ack;  /* packets since the last one with AckReq */
	uint8_t retries;     /* left of retry_cnt; full again on progress */
	uint8_t rnr_retries; /* left of rnr_retry; full again on progress */
	bool recovering; /* went back and una has not moved since: other signs of the same loss are ignored */
	bool rnr_wait; /* nothing is sent until rnr_until */
	uint64_t rnr_until;
	uint64_t deadline; /* of the oldest unacknowledged packet; TIMER_NEVER: none */
	/* Ring of the outstanding READ requests and atomics: the PSN behind the last response of each. */
	uint32_t rd_end[RXE_MAX_RD_ATOMIC];
	uint32_t rd_head, rd_tail;
	uint32_t
		rd_sent; /* ends known; behind rd_tail those of requests to be repeated as they were */
};

/* A READ that is being answered, or an atomic's answer. */
struct qp_resp_job {
	uint32_t psn; /* of its first response */
	uint32_t npsn;
	uint32_t done; /* responses already sent */
	uint32_t msn;
	uint64_t va;
	uint32_t rkey;
	uint32_t length;
	struct pd *pd; /* to check the key against; NULL with foreign */
	bool foreign;  /* the memory is that of another process's SRQ srqn */
	uint32_t srqn;
	uint64_t orig; /* atomic: the value before */
	uint8_t kind;  /* enum wire_kind */
};

/* The result of an atomic, kept to answer duplicates. */
struct qp_resp_atomic {
	uint32_t psn;
	uint64_t orig;
};

/* Where the responder stands. */
struct qp_resp {
	uint32_t psn; /* expected */
	uint32_t msn;
	bool nak_sent; /* a sequence or RNR NAK is out for psn: packets behind it are dropped */
	/* The message in progress */
	bool in_msg;
	uint8_t kind;  /* enum wire_kind */
	uint32_t srqn; /* XRC: must not change inside a message */
	uint64_t va;   /* WRITE: first byte of the message */
	uint32_t rkey;
	uint32_t length; /* WRITE: of the whole message */
	uint32_t offset; /* bytes so far */
	bool have_rqe;	 /* a receive was taken; it outlives a dropped datagram */
	struct rqe rqe;
	/* Where the packet under way belongs: the QP's own, or of the SRQ that an XRC packet names */
	struct pd *pd;
	struct cq *cq;
	struct srq *pkt_srq;
	bool foreign; /* it is an SRQ of another process: the three above are NULL (foreign.h) */
	/* Asking owners in other processes */
	bool foreign_used;    /* some owner may know this QP */
	bool foreign_open;    /* a packet was sent to an owner, and no verdict came */
	uint64_t foreign_seq; /* of that packet */
	/* What is owed to the requester */
	uint8_t failing; /* enum verdict: the QP fails for it when all before it is answered; 0: no */
	bool ack_owed;
	bool ack_urgent; /* NAK or answer to a duplicate: does not wait for a post */
	uint8_t ack_syndrome;
	uint32_t ack_psn;
	uint32_t ack_count; /* packets with AckReq since the last ACK */
	uint64_t ack_since; /* when it became owed, ns */
	/* Rings of max_dest_rd_atomic entries, rounded up; NULL below RTR */
	struct qp_resp_job *jobs;
	struct qp_resp_atomic *atomics;
	uint32_t ring_mask;
	uint32_t job_head, job_tail;
	uint32_t atomic_next;
};

struct qp {
	struct engine *engine;
	struct lane *lane;
	uint32_t qpn;
	enum ibv_qp_type type;
	uint8_t transport; /* enum wire_transport */
	struct pd *pd;
	struct cq *send_cq, *recv_cq;
	struct srq *srq;
	struct xrcd *xrcd;
	struct ibv_qp_cap cap;
	bool sq_sig_all;
	bool stand_in; /* for a TGT QP of another process: no lane runs it (foreign_serve.c) */
	struct rq *rq; /* NULL with an SRQ and for XRC */
	struct wq sq;  /* no slots for XRC_RECV */

	/* lane */
	_Atomic(enum ibv_qp_state) state; /* only qp_state.c assigns it; any thread may read it */
	bool sqd_notify;	 /* raise IBV_EVENT_SQ_DRAINED when the send queue has drained */
	bool comm_est;		 /* IBV_EVENT_COMM_EST was raised */
	bool last_wqe;		 /* IBV_EVENT_QP_LAST_WQE_REACHED was raised */
	bool broken;		 /* a completion could not be delivered: the CQ has overrun */
	struct ibv_qp_attr attr; /* as set by qp_modify(); query returns it */
	struct link_dest dest;
	uint32_t mtu; /* bytes */
	struct qp_req req;
	struct qp_resp resp;
	struct timer timer;
	bool on_ready, on_acks;
	struct cds_list_head ready, acks;
	struct pile_node kick;
	atomic_bool kicked; /* on the lane's pile */

	/* engine ctl */
	struct cds_list_head handles;
	struct cds_lfht_node node; /* in the engine's table of QPs */
};

/**
 * qp_create() - a QP in RESET, and its first handle.
 * @init: cap is updated to what was given
 *
 * Return: 0; -EINVAL (a cap above the limits, a missing or superfluous object); -EOPNOTSUPP (type);
 * -ENOMEM. The link's address 0 must be open already.
 */
int qp_create(struct engine *e, struct qp_init *init, struct qp_handle **out);

/** qp_open() - another handle to an XRC TGT QP of the domain. -EINVAL when there is none of that number. */
int qp_open(struct xrcd *xrcd, uint32_t qpn, void *user, struct qp_handle **out);

/** qp_close() - closes a handle; the last one destroys the QP. Waits for a grace period. */
int qp_close(struct qp_handle *h, uint64_t now);

/**
 * qp_modify() - as ibv_modify_qp(3).
 * Return: 0, or -EINVAL with nothing changed, or what the link's open_gid() says.
 */
int qp_modify(struct qp *qp, const struct ibv_qp_attr *attr, int mask, uint64_t now);
int qp_query(struct qp *qp, struct ibv_qp_attr *attr, struct qp_init *init);

/**
 * qp_post_send() - posts a chain; any thread.
 * @bad: the first request that was not posted
 *
 * Return: 0; -EINVAL (state, opcode, lengths, SGE count), -ENOMEM (queue full, or inline data too long).
 */
int qp_post_send(struct qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad, uint64_t now);

/** qp_post_recv() - -EINVAL in RESET, for XRC and for QPs with an SRQ; otherwise as rq_post_list(). */
int qp_post_recv(struct qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad, uint64_t now);

/*
 * Posting in pieces, for the ibv_wr_* builders: qp_sq_begin() locks the send queue; between it and
 * qp_sq_commit() or qp_sq_abort() each request is filled in and checked by qp_sq_check(), which says what
 * qp_post_send() would.
 */
void qp_sq_begin(struct qp *qp);
struct swqe *qp_sq_alloc(struct qp *qp); /* NULL: full */
/* The message: a list of SGEs, which are checked when it is sent; or inline data, copied piece by piece. */
int qp_sq_set_sges(const struct qp *qp, struct swqe *wqe, const struct ibv_sge *sge,
		   size_t num_sge); /* 0; -EINVAL (SGE count, length) */
int qp_sq_add_inline(const struct qp *qp, struct swqe *wqe, const void *p,
		     size_t n); /* 0; -EINVAL (no room), -EFAULT (not mapped) */
int qp_sq_check(const struct qp *qp, const struct swqe *wqe);
void qp_sq_commit(struct qp *qp, uint64_t now);
void qp_sq_abort(struct qp *qp);

/** qp_find() - by number, in the caller's RCU section. */
struct qp *qp_find(struct engine *e, uint32_t qpn);

/** qp_event() - an asynchronous event to every open handle. */
void qp_event(struct qp *qp, enum ibv_event_type type);

/* SRQs as engine objects: with a number, a domain and reference counts (engine/srq_obj.c). */
int engine_srq_create(struct pd *pd, enum ibv_srq_type type, struct xrcd *xrcd, struct cq *cq,
		      struct ibv_srq_attr *attr, void *user, struct srq **out);
int engine_srq_destroy(struct srq *srq); /* -EBUSY while QPs use it */
int engine_srq_modify(struct srq *srq, const struct ibv_srq_attr *attr, int mask);
void engine_srq_query(const struct srq *srq, struct ibv_srq_attr *attr);
struct srq *engine_srq_find(struct engine *e, uint32_t srqn);

#endif
