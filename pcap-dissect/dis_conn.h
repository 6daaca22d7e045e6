/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Conversations: what a capture tells about the queue pairs behind its packets.
 *
 * A packet names the QP that it is sent to and not the one that it comes from. So what can be followed is a
 * half: (source address, destination address, destination QPN). A connection is two of them:
 *
 *	A                                           B
 *	QP a  -- half A -> B, b:  requests of a --> QP b
 *	      <- half B -> A, a:  answers of b ----         (RC: and requests of b; XRC: a is INI, b is TGT)
 *
 * Which half answers which is known from the CM's REQ and REP, or found: an answer carries the PSN of a
 * request. When exactly one half of the other direction has an open request with that PSN, the two belong
 * together; when several have, nothing is guessed and the next answer is waited for. A pair that was
 * found and then meets an answer that fits nothing near is given up again, until it has been right
 * DIS_CONN_SURE (or _AMONG) times. Where several halves could have asked, two answers in a row must name the same.
 *
 * A QP number is used again, often without a message of the CM: a program is started once more, or a file is
 * several traces, one behind the other. So a half is of another connection than before, and what was known of
 * the old one is forgotten, when
 *
 *   - the CM connects it;
 *   - a request's PSN lies far from the log, ahead and behind (DIS_GAP_MAX, FAR);
 *   - the connection was silent, in both directions, for DIS_SAME_QP_NS, or the time went back as far, or a DREQ
 *     or a NAK has ended it, and the packet does not go on with it; or both. A request goes on when it has the next PSN, or when it
 *     is a copy of one that is not answered or belongs to the last message: an ACK timeout may be seconds. An
 *     answer goes on when its request is open, and no other half has one that is;
 *   - a request is another one than under the same PSN before, which was answered: nobody sends that again. For
 *     UC, which never sends again, or when the other one is older than DIS_SAME_QP_NS, the answer is not needed.
 *
 * An answer far from all requests, and then a second one, end a pair however sure it was. What all this does not
 * tell apart: a program that is started again within DIS_SAME_QP_NS and sends the very same from the same PSN.
 *
 * Of each half's requests the last ones are kept in a log, in the order of their PSNs, with holes where the
 * capture has none. A READ request is one entry that spans the PSNs of its responses.
 *
 * Memory is bounded: DIS_CONN_HALVES halves, of which the one that was silent for the longest time goes
 * first, with a log of DIS_LOG_MAX entries each. Single thread.
 */
#ifndef RXE_DIS_CONN_H
#define RXE_DIS_CONN_H

#include "pcap-dissect/dis.h"

#define DIS_CONN_HALVES	 4096
#define DIS_CONN_BUCKETS 4096
#define DIS_CONN_SURE	 5 /* answers that fitted before a found pair may be held against someone */
#define DIS_CONN_AMONG	 64		     /* the same where there were others to choose from */
#define DIS_LOG_MAX	 256		     /* requests kept for a half */
#define DIS_SAME_QP_NS	 INT64_C(1000000000) /* no QP number is used anew within it, unless shown */
#define DIS_GAP_MAX	 4096 /* PSNs; what jumps farther is another connection on the same QPN */
#define DIS_HIST	 320  /* buckets: 40 powers of two of nanoseconds, 8 steps each */

enum dis_req_flags {
	DIS_REQ_HOLE = 1,     /* not in the capture */
	DIS_REQ_ANSWERED = 2, /* an answer with a PSN inside was seen */
	DIS_REQ_VALUE = 4,    /* value is set */
	DIS_REQ_GUESSED = 16, /* a READ whose span is only where the next request was */
	DIS_REQ_CLASHED = 8,  /* a READ among whose PSNs another request was */
};

/* A request packet, or a hole of span PSNs. */
struct dis_req {
	int64_t ts;	   /* of its last copy */
	uint64_t number;   /* packet number of its first copy */
	uint64_t value;	   /* atomics: the original value that was answered */
	uint32_t psn;	   /* its first PSN */
	uint32_t span;	   /* PSNs that it takes; 0: not known, a READ without a known path MTU */
	uint32_t dma_len;  /* WRITE FIRST and ONLY, READ */
	uint32_t srqn;	   /* XRC */
	uint32_t payload;  /* bytes */
	uint32_t answered; /* READ: responses that were seen, in order */
	uint16_t ip_id;	   /* of its last copy */
	uint8_t opcode;
	uint8_t flags;	/* enum dis_req_flags */
	uint8_t copies; /* that were seen; stays at 255 */
};

struct dis_log {
	struct dis_req e[DIS_LOG_MAX];
	uint32_t n;
	uint32_t hist[DIS_HIST]; /* ACK delays */
	uint64_t hist_n;
};

enum dis_pairing { DIS_UNPAIRED, DIS_PAIRED_FOUND, DIS_PAIRED_CM };

enum dis_msg_kind { DIS_MSG_SEND, DIS_MSG_WRITE, DIS_MSG_READ, DIS_MSG_ATOMIC, DIS_MSG_KINDS };

/* What --flows tells of a half: all counted from its packets in the capture. */
struct dis_counts {
	uint64_t packets;
	uint64_t bytes;	  /* of payload, copies counted once: what goodput is made of */
	uint64_t on_wire; /* bytes of IP packets */
	uint64_t messages[DIS_MSG_KINDS]; /* that ended here; a READ counts when it is requested */
	uint64_t again;			  /* request packets that were seen before */
	uint64_t late;	     /* that filled a hole: out of order, or lost before they came here */
	uint64_t responses;  /* READ responses */
	uint64_t read_again; /* of these, seen before */
	uint64_t acks;	     /* with a positive syndrome, without READ and atomic responses */
	uint64_t atomics;    /* atomic responses */
	uint64_t rnr;	     /* RNR NAKs */
	uint64_t naks_seq;   /* NAKs for a PSN out of sequence */
	uint64_t naks;	     /* others */
	uint64_t cnps;
	int64_t first;
	int64_t last;
};

/* What --check remembers of a half's requests and of the answers to them. */
struct dis_checks {
	uint32_t base_psn, base_msn; /* a PSN, and the MSN once it was answered */
	uint32_t nak_psn, nak_new;   /* go back to here; new packets that came since */
	uint32_t rnr_psn;	     /* wait before this one; how often that was done, and not */
	uint32_t rnr_kept, rnr_early;
	uint32_t fatal_psn, fatal_msn; /* of a NAK that ends the connection */
	uint32_t gap_psn, gap_new;     /* first PSN of a hole, packets seen behind it */
	uint32_t gap_missed;	       /* holes that were never NAKed */
	uint32_t seq_naks;
	uint32_t susp_psn, susp_msn; /* an answer for what was not seen to be sent */
	uint32_t susp_base_psn, susp_base_msn;
	uint32_t head, head_next; /* where resending went back to, and where it goes on */
	uint32_t acked;		  /* the highest PSN with a plain ACK */
	uint32_t back, heads, heads_all;
	uint32_t no_ackreq; /* packets since the last that asked for an ACK */
	uint32_t mtu;	    /* of FIRST and MIDDLE packets */
	uint32_t start_psn; /* that the CM agreed on */
	int64_t nak_ts, rnr_ts;
	uint64_t rnr_ns;
	uint64_t susp_number, nak_number, fatal_number;
	bool base_ok, base_sure, base_exact, nak_ok, rnr_ok, fatal_ok, gap_ok, gap_filled, susp_ok,
		susp_exact, head_ok, acked_ok, start_ok;
	bool reordered; /* packets of this half are doubled, reordered or missing */
	bool pkey_told, role_told, mix_told;
};

struct dis_half {
	struct dis_half *next_hash, *next_pair; /* hash chains: by all of the key, by addresses */
	struct dis_half *older, *newer;		/* least recently used */
	struct dis_half *peer;			/* that answers this half's requests, or NULL */
	struct dis_log *log;			/* NULL before the first request */
	uint8_t src[16];
	uint8_t dst[16];
	uint32_t qpn;
	uint32_t src_qpn;  /* UD: of the last packet */
	uint32_t pmtu;	   /* 0: not known */
	uint32_t fitted;   /* answers that fitted the pair */
	uint32_t unfitted; /* answers without a pair */
	uint32_t candidate_psn;
	uint64_t candidate;	/* 1 + order of the half that the last of these fitted, 0: none */
	uint8_t transport;	/* enum wire_transport of the first packet */
	uint8_t pairing;	/* enum dis_pairing */
	bool alone;		/* when it was paired, there was no other half to choose */
	bool requests, answers; /* were seen */
	bool ended;		/* a DREQ or a NAK said so */
	bool acked_ok;
	uint32_t acked; /* the highest PSN that was answered */
	uint32_t far;	/* answers in a row that are far from all requests of a sure pair */
	int64_t requests_ts, answers_ts; /* the last ones */
	int64_t seen_ts;		 /* the last of both */
	uint64_t order;			 /* in which they were first seen */
	struct dis_counts counts;
	struct dis_checks checks;
};

/* The cells of an XRC fabric: messages of a TGT QP that went to an SRQ. */
#define DIS_CELLS 4096
struct dis_cell {
	uint8_t src[16];
	uint8_t dst[16];
	uint32_t tgt, srqn;
	uint32_t ini; /* 0: not known */
	bool used;
	uint64_t messages, bytes;
};

/* How a packet fits into what was known. */
enum dis_event_kind {
	DIS_EV_NONE,	 /* not followed: damaged, or none of a connection */
	DIS_EV_DATAGRAM, /* UD, CNP */
	DIS_EV_START,	 /* the first request of a half, or after a jump to another connection */
	DIS_EV_NEW,	 /* a request with the next PSN, or behind a new hole */
	DIS_EV_LATE,	 /* a request that fills a hole */
	DIS_EV_AGAIN,	 /* a request that was seen before */
	DIS_EV_OLD,	 /* a request from before the log */
	DIS_EV_CLASH,	 /* a request with a PSN inside of a READ's */
	DIS_EV_ANSWER,
};

struct dis_event {
	enum dis_event_kind kind;
	struct dis_conns *conns;
	const struct dis_packet *p;
	struct dis_half *half; /* of the packet */
	struct dis_half
		*peer; /* an answer's: with the requests, or NULL; a request's: with the answers */
	struct dis_req *req;   /* the request, or the one that is answered; NULL: not in the log */
	uint32_t gap;	       /* NEW: PSNs that were skipped */
	bool same_ip;	       /* AGAIN: perhaps a copy that the network made, not the sender */
	bool backwards;	       /* the capture is known to change the order of packets */
	struct dis_req before; /* AGAIN, ANSWER: the request as it was */
};

struct dis_conns {
	struct dis_half *by_key[DIS_CONN_BUCKETS];
	struct dis_half *by_pair[DIS_CONN_BUCKETS];
	struct dis_half *oldest, *newest;
	uint32_t n;
	uint64_t made;
	uint64_t evicted;
	/* Called before a half goes; its peer forgets it afterwards. */
	void (*evict)(struct dis_conns *c, struct dis_half *h);
	/* Called when a half is of another connection than before, while its peer is still the old one. */
	void (*renew)(struct dis_conns *c, struct dis_half *h);
	struct dis_cell *cells;
	uint64_t cells_lost; /* messages without a cell */
	int64_t first, last; /* timestamps */
	bool backwards;	     /* they went back: the capture changes the order */
	uint64_t packets;
};

/** dis_conns_init() - an empty table; the memory of one that was used is given back by _exit(). */
int dis_conns_init(struct dis_conns *c);
void dis_conns_exit(struct dis_conns *c);

/** dis_conns_packet() - take note of a packet; what it is goes to @ev. */
void dis_conns_packet(struct dis_conns *c, const struct dis_packet *p, struct dis_event *ev);

/** dis_conns_find() - a half that was seen, or NULL. */
struct dis_half *dis_conns_find(struct dis_conns *c, const uint8_t src[16], const uint8_t dst[16],
				uint32_t qpn);

/** dis_conns_pair() - the CM says that QP @qa of @a and QP @qb of @b are connected, now. @mtu: bytes or 0. */
void dis_conns_pair(struct dis_conns *c, const uint8_t a[16], uint32_t qa, const uint8_t b[16],
		    uint32_t qb, uint32_t mtu);

/** dis_conns_end() - the CM says that they are so no more; packets that were on their way may follow. */
void dis_conns_end(struct dis_conns *c, const uint8_t a[16], uint32_t qa, const uint8_t b[16],
		   uint32_t qb);

/** dis_conns_other() - whether an answer may be to a request of another half than the one that it is paired with. */
bool dis_conns_other(const struct dis_event *ev);

/** dis_conns_apart() - whether two times are too far apart to be sure of one connection. */
static inline bool dis_conns_apart(int64_t a, int64_t b)
{
	return a - b > DIS_SAME_QP_NS || b - a > DIS_SAME_QP_NS;
}

/** dis_conns_sure() - whether a pair is certain enough for a reproach. */
static inline bool dis_conns_sure(const struct dis_half *h)
{
	return h->pairing == DIS_PAIRED_CM ||
	       (h->pairing == DIS_PAIRED_FOUND &&
		h->fitted >= (h->alone ? DIS_CONN_SURE : DIS_CONN_AMONG));
}

/** dis_log_find() - the entry that spans @psn, or NULL. */
struct dis_req *dis_log_find(struct dis_log *l, uint32_t psn);

/** dis_req_part() - whether a READ may be the rest of another one, which the capture does not have. */
static inline bool dis_req_part(const struct dis_log *l, const struct dis_req *r)
{
	return wire_opcode_table[r->opcode].kind == WIRE_KIND_READ &&
	       (r == l->e || r[-1].flags & (DIS_REQ_HOLE | DIS_REQ_GUESSED));
}

/** dis_log_next() - the PSN behind the last entry; false when it is not known. */
bool dis_log_next(const struct dis_log *l, uint32_t *psn);

/** dis_log_delay() - the ACK delay in ns that a share of answers, in thousandths, does not exceed. */
uint64_t dis_log_delay(const struct dis_log *l, uint32_t share);

/** dis_req_ends() - whether a message ends with the request packet. */
static inline bool dis_req_ends(const struct dis_req *r)
{
	return wire_opcode_table[r->opcode].pos & WIRE_POS_LAST;
}

static inline bool dis_req_begins(const struct dis_req *r)
{
	return wire_opcode_table[r->opcode].pos & WIRE_POS_FIRST;
}

#endif
