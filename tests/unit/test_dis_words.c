/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Words: each opcode has its own, syndromes say what the tables of the specification say.
 */
#include "pcap-dissect/dis.h"

#include <criterion/criterion.h>
#include <string.h>

static char buf[DIS_WORDS_MAX];

TestSuite(dis_words, .init = dis_init);

Test(dis_words, opcode__all_different)
{
	for (unsigned int i = 0; i < 256; i++)
		for (unsigned int j = 0; j < i; j++)
			cr_assert_str_neq(dis_opcode_words(i), dis_opcode_words(j));
}

Test(dis_words, opcode__each_sort)
{
	cr_assert_str_eq(dis_opcode_words(WIRE_XRC_SEND_ONLY), "XRC SEND Only");
	cr_assert_str_eq(dis_opcode_words(WIRE_XRC_WRITE_LAST_IMM), "XRC RDMA WRITE Last Imm");
	cr_assert_str_eq(dis_opcode_words(WIRE_RC_SEND_LAST_INV), "RC SEND Last Inv");
	cr_assert_str_eq(dis_opcode_words(WIRE_RC_READ_REQUEST), "RC RDMA READ Request");
	cr_assert_str_eq(dis_opcode_words(WIRE_RC_READ_RESP_MIDDLE),
			 "RC RDMA READ Response Middle");
	cr_assert_str_eq(dis_opcode_words(WIRE_XRC_ACK), "XRC Acknowledge");
	cr_assert_str_eq(dis_opcode_words(WIRE_UC_WRITE_FIRST), "UC RDMA WRITE First");
	cr_assert_str_eq(dis_opcode_words(WIRE_UD_SEND_ONLY_IMM), "UD SEND Only Imm");
	cr_assert_str_eq(dis_opcode_words(WIRE_CNP), "CNP");
	cr_assert_str_eq(dis_opcode_words(0xb5), "opcode 0xb5");
}

Test(dis_words, syndrome__acks)
{
	cr_assert_str_eq(dis_syndrome_words(0x1f), "ack");
	cr_assert_str_eq(dis_syndrome_words(0x00), "ack credits 0");
	cr_assert_str_eq(dis_syndrome_words(0x1e), "ack credits 32768");
}

Test(dis_words, syndrome__rnr_naks)
{
	cr_assert_str_eq(dis_syndrome_words(0x20), "rnr-nak 655.36 ms");
	cr_assert_str_eq(dis_syndrome_words(0x21), "rnr-nak 0.01 ms");
	cr_assert_str_eq(dis_syndrome_words(0x2c), "rnr-nak 0.64 ms");
	cr_assert_str_eq(dis_syndrome_words(0x3f), "rnr-nak 491.52 ms");
}

Test(dis_words, syndrome__naks)
{
	cr_assert_str_eq(dis_syndrome_words(0x60), "nak psn-sequence-error");
	cr_assert_str_eq(dis_syndrome_words(0x64), "nak invalid-rd-request");
	cr_assert_str_eq(dis_syndrome_words(0x65), "nak reserved-code 5");
	cr_assert_str_eq(dis_syndrome_words(0x40), "reserved-syndrome 0x40");
	cr_assert_str_eq(dis_syndrome_words(0x9f), "reserved-syndrome 0x9f");
}

Test(dis_words, note__each_has_words)
{
	for (unsigned int i = 0; i < DIS_NOTE_COUNT; i++)
		cr_assert(*dis_note_words(i));
}

Test(dis_words, value__service_ids)
{
	cr_assert_str_eq(dis_value_words(DIS_V_SERVICE, 0x0000000001061c06, buf),
			 "RDMA IP CM, TCP port 7174");
	cr_assert_str_eq(dis_value_words(DIS_V_SERVICE, 0x00000000013f0001, buf),
			 "RDMA IP CM, IB port 1");
	cr_assert_str_eq(dis_value_words(DIS_V_SERVICE, 0x0000000001840001, buf),
			 "RDMA IP CM, protocol 132 port 1");
	cr_assert_null(dis_value_words(DIS_V_SERVICE, 0x1000000001061c06, buf));
}

Test(dis_words, value__timeouts)
{
	cr_assert_str_eq(dis_value_words(DIS_V_TIMEOUT, 0, buf), "4.1 us");
	cr_assert_str_eq(dis_value_words(DIS_V_TIMEOUT, 14, buf), "67.1 ms");
	cr_assert_str_eq(dis_value_words(DIS_V_TIMEOUT, 31, buf), "8796 s");
}

Test(dis_words, value__sets)
{
	cr_assert_str_eq(dis_value_words(DIS_V_REJ_REASON, 8, buf), "invalid service id");
	cr_assert_null(dis_value_words(DIS_V_REJ_REASON, 34, buf));
	cr_assert_null(dis_value_words(DIS_V_REJ_REASON, UINT64_MAX, buf));
	cr_assert_null(dis_value_words(DIS_V_NONE, 0, buf));
}
