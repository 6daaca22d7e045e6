/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Address vectors: what is refused, and what the link is told. */
#include "engine/ah.h"

#include <criterion/criterion.h>
#include <errno.h>

#define V4(a, b, c, d)                                                                             \
	{                                                                                          \
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d                               \
	}

/* 0: IPv4, 1: empty, 2: global IPv6, 3: link-local */
static const struct engine e = {
	.ngids = 4,
	.gids = {{.ip = V4(127, 0, 0, 1), .ifindex = 1},
		 {{0}},
		 {.ip = {0x20, 0x01, [15] = 1}, .ifindex = 5},
		 {.ip = {0xfe, 0x80, [15] = 1}, .ifindex = 5, .scope_id = 5}},
};

static const union ibv_gid v4 = {V4(127, 0, 0, 2)};
static const union ibv_gid v6 = {{0x20, 0x01, [15] = 2}};
static const union ibv_gid link_local = {{0xfe, 0x80, [15] = 2}};

static struct ibv_ah_attr attr_of(union ibv_gid dgid, uint8_t sgid_index)
{
	return (struct ibv_ah_attr){
		.is_global = 1, .port_num = 1, .grh = {.dgid = dgid, .sgid_index = sgid_index}};
}

static int try(union ibv_gid dgid, uint8_t sgid_index)
{
	struct ibv_ah_attr attr = attr_of(dgid, sgid_index);
	struct link_dest to;

	return ah_resolve(&e, &attr, 0, 0, &to);
}

Test(ah, ah_resolve__refused)
{
	struct ibv_ah_attr attr = attr_of(v4, 0);
	struct link_dest to;

	cr_assert_eq(ah_resolve(&e, &attr, 0, 0, &to), 0);
	attr.is_global = 0;
	cr_assert_eq(ah_resolve(&e, &attr, 0, 0, &to), -EINVAL);
	attr.is_global = 1;
	attr.port_num = 0;
	cr_assert_eq(ah_resolve(&e, &attr, 0, 0, &to), -EINVAL);
	attr.port_num = 2;
	cr_assert_eq(ah_resolve(&e, &attr, 0, 0, &to), -EINVAL);
}

Test(ah, ah_resolve__families)
{
	cr_assert_eq(try(v4, 0), 0);
	cr_assert_eq(try(v6, 2), 0);
	cr_assert_eq(try(v6, 0), -EINVAL);
	cr_assert_eq(try(v4, 2), -EINVAL);
	cr_assert_eq(try(v6, 1), -EINVAL); /* empty */
	cr_assert_eq(try(v6, 4), -EINVAL); /* behind the table */
	cr_assert_eq(try(v6, 255), -EINVAL);
}

Test(ah, ah_resolve__fields)
{
	struct ibv_ah_attr attr = attr_of(v6, 2);
	struct link_dest to;

	attr.grh.traffic_class = 0x6a;
	attr.grh.flow_label = 0xfff12345;
	cr_assert_eq(ah_resolve(&e, &attr, 0, 0, &to), 0);
	cr_assert_arr_eq(to.dgid, v6.raw, 16);
	cr_assert_eq(to.sgid_index, 2);
	cr_assert_eq(to.tos, 0x6a);
	cr_assert_eq(to.ttl, 64);
	cr_assert_eq(to.flow_label, 0x12345u);
	cr_assert_eq(to.scope_id, 0u);
	attr.grh.hop_limit = 3;
	cr_assert_eq(ah_resolve(&e, &attr, 0, 0, &to), 0);
	cr_assert_eq(to.ttl, 3);
}

Test(ah, ah_resolve__scope)
{
	struct ibv_ah_attr attr = attr_of(link_local, 3);
	struct link_dest to;

	cr_assert_eq(ah_resolve(&e, &attr, 0, 0, &to), 0);
	cr_assert_eq(to.scope_id, 5u);
	attr.grh.sgid_index = 2;
	cr_assert_eq(ah_resolve(&e, &attr, 0, 0, &to), 0);
	cr_assert_eq(to.scope_id, 5u);
}

static uint16_t sport(uint32_t flow_label, uint32_t lqpn, uint32_t rqpn)
{
	struct ibv_ah_attr attr = attr_of(v4, 0);
	struct link_dest to;

	attr.grh.flow_label = flow_label;
	cr_assert_eq(ah_resolve(&e, &attr, lqpn, rqpn, &to), 0);
	return to.sport;
}

Test(ah, ah_resolve__source_port)
{
	/* Seen from the kernel's rdma_cm: ports 47825 -> 7174 give label 0x6bb55 and source port
	 * 64335. */
	cr_assert_eq(sport(0x6bb55, 1, 2), 64335);
	cr_assert_eq(sport(0x6bb55, 0, 0), 64335);
	/* 0x11 * 0x12 = 0x132, nothing to fold. */
	cr_assert_eq(sport(0, 0x11, 0x12), 0xc132);
	/* 0xfffffd000002 folds to the label 0xfff2d, in both directions. */
	cr_assert_eq(sport(0, 0xffffff, 0xfffffe), 0xff12);
	cr_assert_eq(sport(0, 0xfffffe, 0xffffff), 0xff12);
	cr_assert_eq(sport(0, 0, 0), 0xc000);
}
