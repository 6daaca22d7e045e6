// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Faults on purpose: a link round another link that loses, doubles, delays, swaps and damages
 * packets on their way out.
 *
 * Theory. The caller builds its packet in the room that the link below reserved, so a packet
 * without a fault costs six random numbers and no copy. tx_commit() draws its fate:
 *
 *	drop	the reservation below is not committed
 *	corrupt	committed with LINK_TX_CORRUPT: the receiver's ICRC check will discard it
 *	delay	a copy is held until delay_ns after the next flush
 *	reorder	a copy is held until one to three other packets went out, at most REORDER_NS
 *	dup	committed, and a copy sent right behind it
 *
 * in this order; the first that hits wins. Held packets are bounded: with all slots taken a packet
 * is sent as if nothing had hit. The link learns the time from tx_flush() only, so a packet's
 * waiting time counts from the flush behind its commit. With the same seed and the same calls the
 * same packets are hit.
 */
#include "net/fault.h"

#include "base/log.h"
#include "base/macros.h"
#include "net/prng.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DELAY_NS_DEFAULT 1000000
#define REORDER_NS	 100000
#define HELD_MAX	 64
/* A packet of the largest MTU, 4096, with all headers and its pad. */
#define PACKET_MAX 4224

struct held {
	struct link_dest to;
	uint64_t order; /* when it was held, for those that are due together */
	uint64_t wait;	/* ns from the next flush on */
	uint64_t due;	/* UINT64_MAX until that flush */
	unsigned int
		behind; /* packets that have to pass before it goes; 0: none, it goes by time */
	uint32_t len;	/* 0: the slot is free */
	uint8_t b[PACKET_MAX];
};

struct fault_link {
	struct link link;
	struct link *below;
	struct fault_spec spec;
	struct prng prng;
	struct link_dest to; /* of the reserved packet */
	uint8_t *b;
	uint32_t len;
	unsigned int nheld;
	uint64_t order;
	struct held held[HELD_MAX];
};

static struct fault_link *fault_of(struct link *l)
{
	return (struct fault_link *)l; /* its first member */
}

/* A tap that was set on the wrapper belongs to the link that knows the ICRCs. */
static struct link *below_of(struct link *l)
{
	struct fault_link *f = fault_of(l);

	f->below->tap = l->tap;
	return f->below;
}

static bool hold(struct fault_link *f, uint64_t wait, unsigned int behind)
{
	struct held *h = f->held;

	if (f->nheld == HELD_MAX || f->len > PACKET_MAX)
		return false;
	while (h->len)
		h++;
	h->to = f->to;
	h->order = f->order++;
	h->wait = wait;
	h->due = UINT64_MAX;
	h->behind = behind;
	h->len = f->len;
	memcpy(h->b, f->b, f->len);
	f->nheld++;
	return true;
}

/* Return: false when the link below has no room. */
static bool send_copy(struct fault_link *f, const struct link_dest *to, const uint8_t *b,
		      uint32_t len)
{
	uint8_t *room = f->below->ops->tx_reserve(f->below, to, len);

	if (!room)
		return false;
	memcpy(room, b, len);
	f->below->ops->tx_commit(f->below, 0);
	return true;
}

static bool release(struct fault_link *f, struct held *h)
{
	if (!send_copy(f, &h->to, h->b, h->len))
		return false;
	h->len = 0;
	f->nheld--;
	return true;
}

/* A packet went out: those that wait for it come a step nearer. */
static void passed(struct fault_link *f)
{
	unsigned int left = f->nheld;

	for (struct held *h = f->held; left; h++) {
		if (!h->len)
			continue;
		left--;
		/* Without room below it stays, and goes by its time. */
		if (h->behind && !--h->behind)
			release(f, h);
	}
}

static struct held *first_due(struct fault_link *f)
{
	struct held *first = NULL;

	for (struct held *h = f->held; h < f->held + HELD_MAX; h++)
		if (h->len && (!first || h->due < first->due ||
			       (h->due == first->due && h->order < first->order)))
			first = h;
	return first;
}

static int fault_open_gid(struct link *l, unsigned int gid)
{
	struct link *below = below_of(l);

	return below->ops->open_gid(below, gid);
}

static uint8_t *fault_tx_reserve(struct link *l, const struct link_dest *to, size_t len)
{
	struct fault_link *f = fault_of(l);
	struct link *below = below_of(l);

	f->to = *to;
	f->len = len;
	f->b = below->ops->tx_reserve(below, to, len);
	return f->b;
}

static void commit_twice(struct fault_link *f)
{
	uint8_t copy[PACKET_MAX];
	uint32_t len = f->len <= PACKET_MAX ? f->len : 0;

	/* The room is the link's after the commit. */
	memcpy(copy, f->b, len);
	f->below->ops->tx_commit(f->below, 0);
	if (len)
		send_copy(f, &f->to, copy, len);
}

static void fault_tx_commit(struct link *l, unsigned int flags)
{
	struct fault_link *f = fault_of(l);
	const struct fault_spec *s = &f->spec;
	bool drop = prng_hit(&f->prng, s->drop);
	bool corrupt = prng_hit(&f->prng, s->corrupt);
	bool delay = prng_hit(&f->prng, s->delay);
	bool reorder = prng_hit(&f->prng, s->reorder);
	bool dup = prng_hit(&f->prng, s->dup);
	unsigned int behind = 1 + prng_below(&f->prng, 3);

	if (drop) {
		stats_drop(l->stats, DROP_fault);
		return;
	}
	if (!corrupt) {
		if (delay && hold(f, s->delay_ns, 0))
			return;
		if (reorder && hold(f, REORDER_NS, behind))
			return;
	}
	if (dup && !corrupt)
		commit_twice(f);
	else
		f->below->ops->tx_commit(f->below, flags | (corrupt ? LINK_TX_CORRUPT : 0));
	if (f->nheld)
		passed(f);
}

static void fault_tx_flush(struct link *l, uint64_t now)
{
	struct fault_link *f = fault_of(l);
	struct link *below = below_of(l);
	struct held *h;

	if (f->nheld) {
		for (h = f->held; h < f->held + HELD_MAX; h++)
			if (h->len && h->due == UINT64_MAX)
				h->due = now + h->wait;
		while ((h = first_due(f)) && h->due <= now)
			if (!release(f, h))
				break;
	}
	below->ops->tx_flush(below, now);
}

static unsigned int fault_rx_burst(struct link *l, struct link_rx *v, unsigned int max,
				   uint64_t now)
{
	struct link *below = below_of(l);

	return below->ops->rx_burst(below, v, max, now);
}

static uint64_t fault_next_deadline(struct link *l)
{
	struct fault_link *f = fault_of(l);
	struct link *below = below_of(l);
	uint64_t due = f->nheld ? first_due(f)->due : UINT64_MAX;

	return min_t(uint64_t, due, below->ops->next_deadline(below));
}

static unsigned int fault_rx_capacity(struct link *l, size_t len)
{
	struct link *below = below_of(l);

	return below->ops->rx_capacity(below, len);
}

static void fault_destroy(struct link *l)
{
	struct link *below = below_of(l);

	below->ops->destroy(below);
	free(l);
}

static const struct link_ops fault_ops = {
	.open_gid = fault_open_gid,
	.tx_reserve = fault_tx_reserve,
	.tx_commit = fault_tx_commit,
	.tx_flush = fault_tx_flush,
	.rx_burst = fault_rx_burst,
	.next_deadline = fault_next_deadline,
	.rx_capacity = fault_rx_capacity,
	.destroy = fault_destroy,
};

int fault_create(struct link *below, const struct fault_spec *spec, struct link **out)
{
	struct fault_link *f = calloc(1, sizeof(*f));
	uint64_t seed = spec->seed;
	struct timespec ts;

	if (!f)
		return -ENOMEM;
	if (!seed) {
		clock_gettime(CLOCK_REALTIME, &ts);
		seed = (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
		log_info("fault injection with seed=%" PRIu64, seed);
	}
	f->link = *below;
	f->link.ops = &fault_ops;
	f->below = below;
	f->spec = *spec;
	if (!f->spec.delay_ns)
		f->spec.delay_ns = DELAY_NS_DEFAULT;
	f->prng.state = seed;
	*out = &f->link;
	return 0;
}

/* The text of a fault specification */

/* Digits of a probability that are looked at; more than 2^-32 can show. */
#define DIGITS_MAX 15

/*
 * "12.5" and the like. strtod() would take the program's locale, signs, hexadecimal, exponents and
 * nan.
 * @end: behind the number. Return: whether there is one at @text.
 */
static bool parse_decimal(const char *text, const char **end, double *out)
{
	double n = 0, scale = 1;
	unsigned int digits = 0;
	bool point = false;

	for (; (*text >= '0' && *text <= '9') || (*text == '.' && !point); text++) {
		if (*text == '.') {
			point = true;
			continue;
		}
		if (digits++ >= DIGITS_MAX)
			return false;
		n = n * 10 + (*text - '0');
		scale *= point ? 10 : 1;
	}
	*end = text;
	*out = n / scale;
	return digits;
}

/* @end: behind the probability. Return: whether there is one at @text. */
static bool parse_part(const char *text, const char **end, uint32_t *out)
{
	double p;

	if (!parse_decimal(text, end, &p))
		return false;
	if (**end == '%') {
		p /= 100;
		++*end;
	}
	if (p > 1)
		return false;
	/* Always is UINT32_MAX: see prng_hit(). */
	p *= 4294967296.0;
	*out = p >= UINT32_MAX ? UINT32_MAX : (uint32_t)p;
	return true;
}

static bool parse_number(const char *text, const char **end, uint64_t unit, uint64_t *out)
{
	uint64_t n;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	n = strtoull(text, (char **)end, 10);
	return !errno && !__builtin_mul_overflow(n, unit, out);
}

/* One "name=value". Return: whether it was understood; *at is where reading stopped or failed. */
static bool parse_item(struct fault_spec *spec, const char **at)
{
	const struct {
		const char *name;
		uint32_t *part;
		uint64_t *number, unit;
	} rows[] = {
		{.name = "drop", .part = &spec->drop},
		{.name = "dup", .part = &spec->dup},
		{.name = "reorder", .part = &spec->reorder},
		{.name = "corrupt", .part = &spec->corrupt},
		{.name = "delay", .part = &spec->delay},
		{.name = "delay-us", .number = &spec->delay_ns, .unit = 1000},
		{.name = "seed", .number = &spec->seed, .unit = 1},
	};
	size_t len = strcspn(*at, "=,");
	const char *end;

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		if ((*at)[len] != '=' || strlen(rows[i].name) != len ||
		    strncmp(*at, rows[i].name, len))
			continue;
		*at += len + 1;
		if (rows[i].part ? !parse_part(*at, &end, rows[i].part)
				 : !parse_number(*at, &end, rows[i].unit, rows[i].number))
			return false;
		*at = end;
		return true;
	}
	return false;
}

int fault_parse(const char *text, struct fault_spec *out, const char **bad)
{
	struct fault_spec spec = {.delay_ns = DELAY_NS_DEFAULT};
	const char *at = text;

	for (;;) {
		if (!parse_item(&spec, &at) || (*at && *at != ',')) {
			*bad = at;
			return -EINVAL;
		}
		if (!*at)
			break;
		at++;
	}
	*out = spec;
	return 0;
}
