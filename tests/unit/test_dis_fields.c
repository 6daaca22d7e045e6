/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of fields: what must hold for every row, and that it reads what the wire layer reads.
 */
#include "pcap-dissect/dis.h"

#include "base/macros.h"
#include "wire/icrc.h"

#include <criterion/criterion.h>
#include <pcap/pcap.h>
#include <string.h>

#define CM_LEN 232

static uint64_t rng;

static uint64_t rnd(void)
{
	/* splitmix64 */
	uint64_t z = rng += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

TestSuite(dis_fields, .init = dis_init);

static unsigned int end_bit(const struct dis_field_info *f)
{
	return f->byte * 8 + f->bit + f->bits;
}

Test(dis_fields, table__names_say_one_thing)
{
	for (unsigned int i = 0; i < DIS_F_COUNT; i++) {
		const struct dis_field_info *a = &dis_field_table[i];

		cr_assert(a->name && *a->name && a->label && *a->label);
		for (unsigned int j = 0; j < i; j++) {
			const struct dis_field_info *b = &dis_field_table[j];

			/* The two versions of the cooked header share names, and never meet. */
			if (!strncmp(a->name, "sll.", 4) && a->hdr != b->hdr)
				continue;
			cr_assert_str_neq(a->name, b->name);
		}
	}
}

Test(dis_fields, table__fields_follow_each_other)
{
	for (unsigned int i = 1; i < DIS_F_COUNT; i++) {
		const struct dis_field_info *f = &dis_field_table[i];

		cr_assert_lt(f->bit, 8, "%s", f->name);
		if (f->hdr != f[-1].hdr) {
			cr_assert_gt(f->hdr, f[-1].hdr, "%s", f->name);
			continue;
		}
		if (f->base != DIS_CALC && f->base != DIS_TIME)
			cr_assert_geq(f->byte * 8 + f->bit, end_bit(f - 1), "%s begins inside %s",
				      f->name, f[-1].name);
	}
}

Test(dis_fields, table__widths_fit_their_base)
{
	for (unsigned int i = 0; i < DIS_F_COUNT; i++) {
		const struct dis_field_info *f = &dis_field_table[i];
		static const uint16_t fixed[] = {[DIS_BOOL] = 1,
						 [DIS_MAC] = 48,
						 [DIS_IP4] = 32,
						 [DIS_IP] = 128,
						 [DIS_IP_LAST] = 128};

		if (f->base < ARRAY_SIZE(fixed) && fixed[f->base])
			cr_assert_eq(f->bits, fixed[f->base], "%s", f->name);
		if (f->base == DIS_DEC || f->base == DIS_HEX)
			cr_assert(f->bits >= 1 && f->bits <= 64, "%s", f->name);
		/* A number is put together from whole bytes. */
		if (f->bits <= 64 && f->bits)
			cr_assert_leq(f->bit + f->bits, 64, "%s", f->name);
		if (f->base == DIS_BYTES || f->base == DIS_DATA)
			cr_assert(f->bit == 0 && f->bits % 8 == 0, "%s", f->name);
	}
}

Test(dis_fields, hdr_info__each_header_has_fields)
{
	unsigned int sum = 0;

	for (unsigned int h = 1; h < DIS_H_COUNT; h++) {
		const struct dis_hdr_info *info = dis_hdr_info(h);

		cr_assert(info->title && info->count, "header %u", h);
		cr_assert_eq(dis_field_table[info->first].hdr, h);
		cr_assert_eq(dis_field_table[info->first + info->count - 1].hdr, h);
		sum += info->count;
	}
	cr_assert_eq(sum, DIS_F_COUNT);
}

/* Private data fill every message to its end, so a wrong length shows. */
Test(dis_fields, hdr_info__cm_messages_are_full)
{
	for (unsigned int h = DIS_H_CM_REQ; h <= DIS_H_CM_APR; h++) {
		const struct dis_hdr_info *info = dis_hdr_info(h);
		const struct dis_field_info *last = &dis_field_table[info->first + info->count - 1];

		cr_assert(strstr(last->name, ".private"), "%s", last->name);
		cr_assert_eq(end_bit(last), CM_LEN * 8, "%s", last->name);
		/* The line's name of a message is what stands before the dash. */
		cr_assert(strstr(info->title, " - "), "%s", info->title);
	}
}

/* IPv4, UDP, a transport packet of @op with random bytes in all its fields. */
static size_t random_packet(uint8_t *b, const struct wire_opcode *op)
{
	struct wire_ip ip = {.src = {[10] = 0xff, 0xff, 10, 0, 0, 1},
			     .dst = {[10] = 0xff, 0xff, 10, 0, 0, 2},
			     .id = rnd(),
			     .sport = rnd()};
	size_t len = op->hdr_len + (op->payload ? 4 : 0);
	size_t n = wire_ip_udp(b, &ip, len + WIRE_ICRC_LEN);

	for (size_t i = 0; i < len + WIRE_ICRC_LEN; i++)
		b[n + i] = rnd();
	b[n] = op->code;
	b[n + 1] &= op->payload ? 0xf0 : 0xc0;
	return n + len + WIRE_ICRC_LEN;
}

static uint64_t field(const struct dis_packet *p, enum dis_field f)
{
	struct dis_section s[DIS_SECTIONS_MAX];
	unsigned int n = dis_sections(p, s);

	for (unsigned int i = 0; i < n; i++)
		if (s[i].hdr == dis_field_table[f].hdr)
			return dis_field_value(p, f, &s[i]);
	cr_assert_fail("%s: no such header in %s", dis_field_table[f].name, p->pkt.op->name);
	return 0;
}

static void check_bth(const struct dis_packet *p)
{
	const struct wire_pkt *pkt = &p->pkt;

	cr_assert_eq(field(p, DIS_F_BTH_OPCODE), pkt->op->code);
	cr_assert_eq(field(p, DIS_F_BTH_SE), pkt->se);
	cr_assert_eq(field(p, DIS_F_BTH_MIG), pkt->mig);
	cr_assert_eq(field(p, DIS_F_BTH_PAD), pkt->pad);
	cr_assert_eq(field(p, DIS_F_BTH_TVER), 0);
	cr_assert_eq(field(p, DIS_F_BTH_PKEY), pkt->pkey);
	cr_assert_eq(field(p, DIS_F_BTH_FECN), pkt->fecn);
	cr_assert_eq(field(p, DIS_F_BTH_BECN), pkt->becn);
	cr_assert_eq(field(p, DIS_F_BTH_DESTQP), pkt->dest_qpn);
	cr_assert_eq(field(p, DIS_F_BTH_ACKREQ), pkt->ackreq);
	cr_assert_eq(field(p, DIS_F_BTH_PSN), pkt->psn);
}

static void check_extensions(const struct dis_packet *p)
{
	const struct wire_pkt *pkt = &p->pkt;
	unsigned int headers = pkt->op->headers;

	if (headers & WIRE_H_DETH) {
		cr_assert_eq(field(p, DIS_F_DETH_QKEY), pkt->qkey);
		cr_assert_eq(field(p, DIS_F_DETH_SRCQP), pkt->src_qpn);
	}
	if (headers & WIRE_H_XRCETH)
		cr_assert_eq(field(p, DIS_F_XRCETH_SRQN), pkt->srqn);
	if (headers & WIRE_H_RETH) {
		cr_assert_eq(field(p, DIS_F_RETH_VA), pkt->va);
		cr_assert_eq(field(p, DIS_F_RETH_RKEY), pkt->rkey);
		cr_assert_eq(field(p, DIS_F_RETH_DMALEN), pkt->dma_len);
	}
	if (headers & WIRE_H_ATOMICETH) {
		cr_assert_eq(field(p, DIS_F_ATOMICETH_VA), pkt->va);
		cr_assert_eq(field(p, DIS_F_ATOMICETH_RKEY), pkt->rkey);
		cr_assert_eq(field(p, DIS_F_ATOMICETH_SWAPADD), pkt->swap_add);
		cr_assert_eq(field(p, DIS_F_ATOMICETH_COMPARE), pkt->compare);
	}
	if (headers & WIRE_H_AETH) {
		cr_assert_eq(field(p, DIS_F_AETH_SYNDROME), pkt->syndrome);
		cr_assert_eq(field(p, DIS_F_AETH_MSN), pkt->msn);
	}
	if (headers & WIRE_H_ATOMICACKETH)
		cr_assert_eq(field(p, DIS_F_ATOMICACKETH_ORIG), pkt->orig);
	if (headers & WIRE_H_IMMDT)
		cr_assert_eq(field(p, DIS_F_IMMDT_DATA), be32toh(pkt->imm_be));
	if (headers & WIRE_H_IETH)
		cr_assert_eq(field(p, DIS_F_IETH_RKEY), pkt->inv_rkey);
}

Test(dis_fields, value__as_the_wire_layer_decodes_it)
{
	uint8_t b[256];
	struct dis_packet p = {.frame = b, .link = DLT_RAW};

	for (unsigned int round = 0; round < 20; round++) {
		for (unsigned int code = 0; code < 256; code++) {
			const struct wire_opcode *op = wire_opcode(code);

			if (!op)
				continue;
			p.len = p.caplen = random_packet(b, op);
			dis_decode(&p);
			cr_assert_eq(p.layer, DIS_LAYER_ROCE);
			cr_assert_eq(p.pkt.op, op);
			check_bth(&p);
			check_extensions(&p);
		}
	}
}

Test(dis_fields, cm_get__only_of_the_message_that_is_there)
{
	uint8_t mad[256] = {1, 7, 2, 3, [16] = 0, 0x16, [24] = 0x11, 0x22, 0x33, 0x44};
	struct dis_packet p = {.mad = mad, .mad_have = sizeof(mad), .cm_hdr = DIS_H_CM_DREP};
	uint64_t v;

	cr_assert(dis_cm_get(&p, DIS_F_CM_DREP_LOCAL_COMM_ID, &v));
	cr_assert_eq(v, 0x11223344);
	cr_assert_not(dis_cm_get(&p, DIS_F_CM_DREQ_LOCAL_COMM_ID, &v));
	cr_assert_not(dis_cm_get(&p, DIS_F_IP_CM_SRC_PORT, &v));
	p.mad_have = 27;
	cr_assert_not(dis_cm_get(&p, DIS_F_CM_DREP_LOCAL_COMM_ID, &v));
}
