/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * --flows: what went each way of each connection, to each SRQ, and between INI, TGT and SRQ.
 *
 * Numbers are of the packets in the capture. Bytes are of payload, what came again counted once, and of
 * READs in the direction of the data. The ACK delay is the time from a request that was sent once to the
 * answer with its PSN, at the place of the capture: beside the requester a round trip, beside the responder
 * the time that it took.
 */
#include "pcap-dissect/dis_flow.h"

#include "base/bytes.h"
#include "pcap-dissect/dis_log.h"
#include "pcap-dissect/dis_track.h"
#include "wire/psn.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define CELL_PROBES 64 /* so many places may be taken before a cell is left out */

static struct {
	struct dis_track track;
	struct dis_out *out;
	bool json;
	uint64_t unpaired;
} flow;

static const char *const kind_names[] = {"SEND", "WRITE", "READ", "ATOMIC"};
static const char *const kind_keys[] = {"sends", "writes", "reads", "atomics"};

static enum dis_msg_kind msg_kind(const struct wire_opcode *op)
{
	switch (op->kind) {
	case WIRE_KIND_SEND:
		return DIS_MSG_SEND;
	case WIRE_KIND_WRITE:
		return DIS_MSG_WRITE;
	case WIRE_KIND_READ:
		return DIS_MSG_READ;
	default:
		return DIS_MSG_ATOMIC;
	}
}

static struct dis_cell *cell_of(const struct dis_half *h, uint32_t srqn)
{
	uint32_t at = (h->qpn * 0x9e3779b1u ^ srqn * 0x85ebca6bu ^ h->src[15] * 31u) % DIS_CELLS;

	for (uint32_t i = 0; i < CELL_PROBES; i++) {
		struct dis_cell *c = &flow.track.conns.cells[(at + i) % DIS_CELLS];

		if (!c->used) {
			c->used = true;
			memcpy(c->src, h->src, 16);
			memcpy(c->dst, h->dst, 16);
			c->tgt = h->qpn;
			c->srqn = srqn;
			return c;
		}
		if (c->tgt == h->qpn && c->srqn == srqn && !memcmp(c->src, h->src, 16) &&
		    !memcmp(c->dst, h->dst, 16))
			return c;
	}
	flow.track.conns.cells_lost++;
	return NULL;
}

/* Of an XRC half, the requests' one. */
static void count_cell(const struct dis_half *h, uint32_t srqn, uint32_t messages, uint32_t bytes)
{
	struct dis_cell *c;

	if (h->transport != WIRE_TRANSPORT_XRC)
		return;
	c = cell_of(h, srqn);
	if (!c)
		return;
	c->messages += messages;
	c->bytes += bytes;
	if (h->peer)
		c->ini = h->peer->qpn;
}

static void count_request(const struct dis_event *ev)
{
	struct dis_counts *n = &ev->half->counts;
	const struct wire_pkt *pkt = &ev->p->pkt;
	bool ends = pkt->op->pos & WIRE_POS_LAST;

	if (ev->kind == DIS_EV_AGAIN || ev->kind == DIS_EV_OLD || ev->kind == DIS_EV_CLASH) {
		n->again++;
		return;
	}
	n->late += ev->kind == DIS_EV_LATE;
	n->bytes += pkt->payload_len;
	if (ends)
		n->messages[msg_kind(pkt->op)]++;
	count_cell(ev->half, pkt->srqn, ends, pkt->payload_len);
}

static void count_read(const struct dis_event *ev)
{
	struct dis_counts *n = &ev->half->counts;
	const struct wire_pkt *pkt = &ev->p->pkt;

	n->responses++;
	if (ev->req && (uint32_t)psn_sub(pkt->psn, ev->req->psn) < ev->before.answered) {
		n->read_again++;
		return;
	}
	n->bytes += pkt->payload_len;
	if (ev->req && ev->peer)
		count_cell(ev->peer, ev->req->srqn, 0, pkt->payload_len);
}

static void count_answer(const struct dis_event *ev)
{
	struct dis_counts *n = &ev->half->counts;
	const struct wire_pkt *pkt = &ev->p->pkt;
	uint8_t kind = WIRE_SYN_KIND(pkt->syndrome);

	if (pkt->op->kind == WIRE_KIND_READ_RESP)
		count_read(ev);
	else if (pkt->op->kind == WIRE_KIND_ATOMIC_ACK)
		n->atomics++;
	else if (kind == WIRE_SYN_ACK)
		n->acks++;
	else if (kind == WIRE_SYN_RNR)
		n->rnr++;
	else if (pkt->syndrome == WIRE_NAK_SEQUENCE)
		n->naks_seq++;
	else
		n->naks++;
	if (pkt->op->headers & WIRE_H_AETH && kind != WIRE_SYN_ACK)
		return;
	/* Karn: what was sent twice tells no delay. */
	if (ev->req && ev->peer && ev->before.copies == 1 && !(ev->before.flags & DIS_REQ_ANSWERED))
		dis_log_delay_add(ev->peer->log, ev->p->ts - ev->before.ts);
}

static void count(const struct dis_event *ev)
{
	struct dis_counts *n = &ev->half->counts;

	if (!n->packets++)
		n->first = ev->p->ts;
	n->last = max_t(int64_t, n->last, ev->p->ts);
	n->on_wire += ev->p->ip_len;
	switch (ev->kind) {
	case DIS_EV_NONE:
		break;
	case DIS_EV_DATAGRAM:
		n->cnps += ev->p->pkt.op->kind == WIRE_KIND_CNP;
		n->bytes += ev->p->pkt.payload_len;
		n->messages[DIS_MSG_SEND] += ev->p->pkt.op->kind == WIRE_KIND_SEND;
		break;
	case DIS_EV_ANSWER:
		count_answer(ev);
		break;
	default:
		count_request(ev);
	}
}

void dis_flow_packet(struct dis_out *o, struct dis_style *style, const struct dis_packet *p)
{
	struct dis_event ev;

	flow.out = o;
	dis_track_packet(&flow.track, p, &ev);
	if (ev.half)
		count(&ev);
	else if (p->layer == DIS_LAYER_ROCE)
		flow.unpaired++;
}

static void PRINTF_LIKE(1, 2) say(const char *fmt, ...)
{
	struct dis_out *o = flow.out;
	va_list ap;

	dis_out_room(o);
	va_start(ap, fmt);
	o->p += vsnprintf(o->p, DIS_OUT_PIECE, fmt, ap);
	va_end(ap);
}

/* At most two of them in one call of say(). */
static const char *ip(const uint8_t addr[16])
{
	static struct dis_out text[2];
	static unsigned int turn;
	struct dis_out *o = &text[turn++ & 1];

	dis_out_init(o, -1);
	out_ip(o, addr);
	*o->p = 0;
	return o->buf;
}

static const char *transport_name(const struct dis_half *h)
{
	static const char *const names[] = {
		[WIRE_TRANSPORT_RC] = "RC",
		[WIRE_TRANSPORT_UC] = "UC",
		[WIRE_TRANSPORT_UD] = "UD",
		[WIRE_TRANSPORT_XRC] = "XRC",
	};

	return h->transport < ARRAY_SIZE(names) && names[h->transport] ? names[h->transport]
								       : "CNP";
}

static const char *pairing_name(const struct dis_half *h)
{
	static const char *const names[] = {
		[DIS_UNPAIRED] = "unpaired",
		[DIS_PAIRED_FOUND] = "found",
		[DIS_PAIRED_CM] = "cm",
	};

	return names[h->pairing];
}

static double seconds(const struct dis_counts *n)
{
	return (n->last - n->first) / 1e9;
}

/* Bytes a second; 0 when there is no time between first and last. */
static double goodput(const struct dis_counts *n)
{
	return n->last > n->first ? n->bytes / seconds(n) : 0;
}

static void say_rate(const struct dis_counts *n)
{
	say("%llu packets, %llu bytes of payload (%llu with IP), %.6f s",
	    (unsigned long long)n->packets, (unsigned long long)n->bytes,
	    (unsigned long long)n->on_wire, seconds(n));
	if (goodput(n) > 0)
		say(", %.3f MB/s", goodput(n) / 1e6);
	say("\n");
}

static void say_requests(const struct dis_half *h)
{
	const struct dis_counts *n = &h->counts;
	const char *comma = "";

	say("      messages");
	for (unsigned int i = 0; i < DIS_MSG_KINDS; i++) {
		if (!n->messages[i])
			continue;
		say("%s %s %llu", comma, kind_names[i], (unsigned long long)n->messages[i]);
		comma = ",";
	}
	say("%s; retransmitted %llu, out of order %llu packets\n", *comma ? "" : " none",
	    (unsigned long long)n->again, (unsigned long long)n->late);
}

static void say_answers(const struct dis_half *h)
{
	const struct dis_counts *n = &h->counts;

	say("      ACKs %llu, atomic responses %llu, READ responses %llu (%llu again); "
	    "NAKs: RNR %llu, sequence %llu, other %llu\n",
	    (unsigned long long)n->acks, (unsigned long long)n->atomics,
	    (unsigned long long)n->responses, (unsigned long long)n->read_again,
	    (unsigned long long)n->rnr, (unsigned long long)n->naks_seq,
	    (unsigned long long)n->naks);
	if (h->peer && h->peer->log && h->peer->log->hist_n)
		say("      ACK delay of %llu: median %.3f us, 99 %% %.3f us\n",
		    (unsigned long long)h->peer->log->hist_n,
		    dis_log_delay(h->peer->log, 500) / 1e3, dis_log_delay(h->peer->log, 990) / 1e3);
}

static void say_half(const struct dis_half *h, const char *arrow)
{
	say("   %s ", arrow);
	say_rate(&h->counts);
	if (h->requests || h->transport == WIRE_TRANSPORT_UD)
		say_requests(h);
	if (h->answers)
		say_answers(h);
	if (h->counts.cnps)
		say("      congestion notifications %llu\n", (unsigned long long)h->counts.cnps);
}

static void say_connection(const struct dis_half *h)
{
	const struct dis_half *peer = h->peer;

	say("%s %s ", transport_name(h), ip(h->src));
	if (peer)
		say("qp 0x%06x ", peer->qpn);
	else if (h->transport == WIRE_TRANSPORT_UD)
		say("qp 0x%06x ", h->src_qpn);
	else
		say("qp ? ");
	say("%s %s qp 0x%06x", peer ? "<->" : "-->", ip(h->dst), h->qpn);
	say("%s\n", peer ? h->pairing == DIS_PAIRED_CM ? ", paired by the CM" : ", paired by PSNs"
		    : h->transport == WIRE_TRANSPORT_UD ? ""
							: ", unpaired");
	say_half(h, "->");
	if (peer && peer != h)
		say_half(peer, "<-");
}

static void json_half(const struct dis_half *h)
{
	const struct dis_counts *n = &h->counts;

	say("{\"type\":\"direction\",\"transport\":\"%s\",\"src\":\"%s\",\"dst\":\"%s\"",
	    transport_name(h), ip(h->src), ip(h->dst));
	say(",\"qpn\":%u", h->qpn);
	if (h->peer)
		say(",\"peer_qpn\":%u", h->peer->qpn);
	say(",\"pairing\":\"%s\",\"packets\":%llu,\"bytes\":%llu,\"ip_bytes\":%llu",
	    pairing_name(h), (unsigned long long)n->packets, (unsigned long long)n->bytes,
	    (unsigned long long)n->on_wire);
	say(",\"seconds\":%.9f,\"goodput\":%.0f", seconds(n), goodput(n));
	for (unsigned int i = 0; i < DIS_MSG_KINDS; i++)
		say(",\"%s\":%llu", kind_keys[i], (unsigned long long)n->messages[i]);
	say(",\"retransmitted\":%llu,\"out_of_order\":%llu,\"acks\":%llu,\"atomic_responses\":%llu",
	    (unsigned long long)n->again, (unsigned long long)n->late, (unsigned long long)n->acks,
	    (unsigned long long)n->atomics);
	say(",\"read_responses\":%llu,\"read_responses_again\":%llu,\"rnr_naks\":%llu",
	    (unsigned long long)n->responses, (unsigned long long)n->read_again,
	    (unsigned long long)n->rnr);
	say(",\"sequence_naks\":%llu,\"other_naks\":%llu,\"cnps\":%llu",
	    (unsigned long long)n->naks_seq, (unsigned long long)n->naks,
	    (unsigned long long)n->cnps);
	if (h->answers && h->peer && h->peer->log && h->peer->log->hist_n)
		say(",\"ack_delay_ns\":{\"count\":%llu,\"median\":%llu,\"p99\":%llu}",
		    (unsigned long long)h->peer->log->hist_n,
		    (unsigned long long)dis_log_delay(h->peer->log, 500),
		    (unsigned long long)dis_log_delay(h->peer->log, 990));
	say("}\n");
}

/* A connection once: from the half that was seen first, or that sends the requests of XRC. */
static bool leads(const struct dis_half *h)
{
	if (!h->peer || h->peer == h)
		return true;
	if (h->transport == WIRE_TRANSPORT_XRC && h->requests != h->peer->requests)
		return h->requests;
	return h->order < h->peer->order;
}

static void show_half(const struct dis_half *h)
{
	if (!h->counts.packets && !(h->peer && h->peer->counts.packets))
		return;
	if (flow.json)
		json_half(h);
	else if (leads(h))
		say_connection(h);
}

/* A half that has to go takes its connection with it: both are shown now. */
static void evicted(struct dis_conns *c, struct dis_half *h)
{
	struct dis_half *both[] = {h, h->peer};

	if (!flow.json) {
		say_connection(leads(h) ? h : h->peer);
	} else {
		json_half(h);
		if (h->peer && h->peer != h)
			json_half(h->peer);
	}
	for (size_t i = 0; i < ARRAY_SIZE(both); i++)
		if (both[i])
			memset(&both[i]->counts, 0, sizeof(both[i]->counts));
}

int dis_flow_begin(bool json)
{
	int ret = dis_track_begin(&flow.track);

	flow.json = json;
	flow.unpaired = 0;
	flow.track.conns.evict = evicted;
	return ret;
}

static int by_order(const void *a, const void *b)
{
	const struct dis_half *const *x = a, *const *y = b;

	return (*x)->order < (*y)->order ? -1 : (*x)->order > (*y)->order;
}

static int by_tgt(const void *a, const void *b)
{
	const struct dis_cell *x = a, *y = b;
	int d = memcmp(x->dst, y->dst, 16);

	if (!d)
		d = memcmp(x->src, y->src, 16);
	if (!d)
		d = (x->tgt > y->tgt) - (x->tgt < y->tgt);
	return d ? d : (x->srqn > y->srqn) - (x->srqn < y->srqn);
}

static int by_srq(const void *a, const void *b)
{
	const struct dis_cell *x = a, *y = b;
	int d = memcmp(x->dst, y->dst, 16);

	return d ? d : (x->srqn > y->srqn) - (x->srqn < y->srqn);
}

static void show_srq(const struct dis_cell *c, uint64_t messages, uint64_t bytes, uint32_t tgts)
{
	say(flow.json ? "{\"type\":\"srq\",\"addr\":\"%s\",\"srqn\":%u,\"tgts\":%u,"
			"\"messages\":%llu,\"bytes\":%llu}\n"
		      : "%-39s 0x%06x %6u %10llu %14llu\n",
	    ip(c->dst), c->srqn, tgts, (unsigned long long)messages, (unsigned long long)bytes);
}

static void show_srqs(struct dis_cell *cells, uint32_t n)
{
	uint64_t messages = 0, bytes = 0;
	uint32_t tgts = 0;

	qsort(cells, n, sizeof(*cells), by_srq);
	if (!flow.json)
		say("\n%-39s %8s %6s %10s %14s\n", "SRQs of", "srqn", "TGTs", "messages", "bytes");
	for (uint32_t i = 0; i < n; i++) {
		messages += cells[i].messages;
		bytes += cells[i].bytes;
		tgts++;
		if (i + 1 < n && !by_srq(&cells[i], &cells[i + 1]))
			continue;
		show_srq(&cells[i], messages, bytes, tgts);
		messages = bytes = tgts = 0;
	}
}

static void show_cell(const struct dis_cell *c)
{
	char ini[16] = "?";

	if (c->ini)
		snprintf(ini, sizeof(ini), flow.json ? "%u" : "0x%06x", c->ini);
	if (flow.json)
		say("{\"type\":\"fabric\",\"src\":\"%s\",\"ini\":%s,\"dst\":\"%s\",\"tgt\":%u,"
		    "\"srqn\":%u,\"messages\":%llu,\"bytes\":%llu}\n",
		    ip(c->src), c->ini ? ini : "null", ip(c->dst), c->tgt, c->srqn,
		    (unsigned long long)c->messages, (unsigned long long)c->bytes);
	else
		say("%-15s %8s -> %-15s 0x%06x -> 0x%06x %10llu %14llu\n", ip(c->src), ini,
		    ip(c->dst), c->tgt, c->srqn, (unsigned long long)c->messages,
		    (unsigned long long)c->bytes);
}

/* A TGT that was paired after its first messages. */
static void find_ini(struct dis_cell *c)
{
	const struct dis_half *h = dis_conns_find(&flow.track.conns, c->src, c->dst, c->tgt);

	if (!c->ini && h && h->peer)
		c->ini = h->peer->qpn;
}

static void show_fabric(void)
{
	struct dis_cell *cells = flow.track.conns.cells;
	uint32_t n = 0;

	for (uint32_t i = 0; i < DIS_CELLS; i++)
		if (cells[i].used)
			cells[n++] = cells[i];
	if (!n)
		return;
	for (uint32_t i = 0; i < n; i++)
		find_ini(&cells[i]);
	show_srqs(cells, n);
	qsort(cells, n, sizeof(*cells), by_tgt);
	if (!flow.json)
		say("\n%-15s %8s -> %-15s %8s -> %8s %10s %14s\n", "from", "INI", "to", "TGT",
		    "SRQ", "messages", "bytes");
	for (uint32_t i = 0; i < n; i++)
		show_cell(&cells[i]);
	if (flow.track.conns.cells_lost)
		dis_warn("%llu packets are not in the tables of SRQs, which have room for %d",
			 (unsigned long long)flow.track.conns.cells_lost, DIS_CELLS);
}

static void show_all(void)
{
	struct dis_half **all = calloc(flow.track.conns.n + 1, sizeof(struct dis_half *));
	uint32_t n = 0;

	if (!all)
		return;
	for (struct dis_half *h = flow.track.conns.oldest; h; h = h->newer)
		all[n++] = h;
	qsort(all, n, sizeof(struct dis_half *), by_order);
	for (uint32_t i = 0; i < n; i++)
		show_half(all[i]);
	free(all);
}

void dis_flow_end(struct dis_out *o)
{
	flow.out = o;
	show_all();
	show_fabric();
	if (!flow.json)
		say("\n%llu packets, %llu of them damaged or cut, %.6f s\n",
		    (unsigned long long)flow.track.conns.packets, (unsigned long long)flow.unpaired,
		    flow.track.conns.packets
			    ? (flow.track.conns.last - flow.track.conns.first) / 1e9
			    : 0.);
	if (flow.track.conns.evicted)
		dis_warn("%llu directions were shown early and forgotten, more than %d at a time",
			 (unsigned long long)flow.track.conns.evicted, DIS_CONN_HALVES);
	dis_track_end(&flow.track);
}
