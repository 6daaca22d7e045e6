/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Cases of group D: the data path. UD is here too, for the cases that are about it. */
#include "pair.h"

#include "engine/ah.h"
#include "net/link.h"
#include "wire/psn.h"

#include <string.h>

#define GRH_LEN 40

/* SEND, WRITE and READ of @length bytes, by content. */
static void move(struct pair *p, uint32_t length)
{
	uint32_t srqn = pair_srqn(p);

	pair_fill(p->mem_a, length, length + 1);
	memset(p->mem_b, 0xee, length + 16);
	must(pair_recv(p, 2, length + 16));
	must(pair_send(p, 1, length));
	expect_wc(p, p->cq_a, 1, IBV_WC_SUCCESS);
	cr_assert_eq(expect_wc(p, p->cq_b, 2, IBV_WC_SUCCESS).byte_len, length);
	cr_assert_arr_eq(p->mem_b, p->mem_a, length);
	cr_assert_eq(p->mem_b[length], 0xee);

	memset(p->mem_b, 0xee, length + 16);
	must(world_rdma(p->qp_a, 3, IBV_WR_RDMA_WRITE, p->mr_a, p->mem_a, length,
			(uintptr_t)p->mem_b, p->mr_b->key, srqn));
	expect_wc(p, p->cq_a, 3, IBV_WC_SUCCESS);
	cr_assert_arr_eq(p->mem_b, p->mem_a, length);
	cr_assert_eq(p->mem_b[length], 0xee);

	pair_fill(p->mem_b, length, length + 2);
	p->mem_a[length] = 0xee;
	must(world_rdma(p->qp_a, 4, IBV_WR_RDMA_READ, p->mr_a, p->mem_a, length,
			(uintptr_t)p->mem_b, p->mr_b->key, srqn));
	cr_assert_eq(expect_wc(p, p->cq_a, 4, IBV_WC_SUCCESS).byte_len, length);
	cr_assert_arr_eq(p->mem_a, p->mem_b, length);
	cr_assert_eq(p->mem_a[length], 0xee);
}

Test(D1, sizes_round_the_mtu)
{
	for (int mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++)
		for (unsigned int xrc = 0; xrc < 2; xrc++) {
			struct world_path path = world_path;
			uint32_t m = 128u << mtu;
			struct pair *p;

			path.mtu = mtu;
			p = xrc ? pair_xrc(&path) : pair_rc(&path);
			for (uint32_t k = 1; k <= 3; k++)
				for (uint32_t d = 0; d < 3; d++)
					move(p, k * m + d - 1);
			pair_end(p);
		}
}

Test(D2, sizes_of_the_reports)
{
	static const uint32_t sizes[] = {1, 2000, 2047, 2048, 2049, 65536, 100000, PAIR_MEM - 64};
	struct pair *p = pair_xrc(&world_path);

	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++)
		move(p, sizes[i]);
	pair_end(p);
}

/* Address and key of a READ of nothing are not looked at. */
Test(D3, zero_length_read)
{
	struct pair *p = pair_rc(&world_path);

	must(world_rdma(p->qp_a, 1, IBV_WR_RDMA_READ, p->mr_a, p->mem_a, 0, ~0ull, 0xdeadbeef, 0));
	expect_wc(p, p->cq_a, 1, IBV_WC_SUCCESS);
	cr_assert_eq(p->qp_b->state, IBV_QPS_RTS);
	pair_end(p);
}

/* Inline: several SGEs, keys ignored, the buffer is free at once, too much is refused. */
Test(D4, inline_data)
{
	struct pair *p = pair_xrc(&world_path);
	uint8_t part[3][40], want[120];
	struct ibv_sge sge[3];
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = sge,
		.num_sge = 3,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
	};
	uint8_t big[300];
	int ret;

	for (unsigned int i = 0; i < 3; i++) {
		pair_fill(part[i], 40, i);
		memcpy(want + 40 * i, part[i], 40);
		sge[i] = (struct ibv_sge){(uintptr_t)part[i], 40, 0xdead0000 + i};
	}
	wr.qp_type.xrc.remote_srqn = p->srq->srqn;
	/* The receive comes later, so the data is sent again from what was kept. */
	must(world_post(p->qp_a, &wr));
	memset(part, 0x55, sizeof(part));
	world_run(p->w, 1000000);
	must(pair_recv(p, 2, 200));
	expect_wc(p, p->cq_a, 1, IBV_WC_SUCCESS);
	expect_wc(p, p->cq_b, 2, IBV_WC_SUCCESS);
	cr_assert_arr_eq(p->mem_b, want, 120);
	sge[0] = (struct ibv_sge){(uintptr_t)big, p->qp_a->cap.max_inline_data + 1, 0};
	cr_assert_leq(sge[0].length, sizeof(big));
	wr.num_sge = 1;
	ret = world_post(p->qp_a, &wr);
	cr_assert(ret == -EINVAL || ret == -ENOMEM);
	pair_end(p);
}

/* Packets get lost: everything completes, with the right data, or with RETRY_EXC. */
Test(D5, loss_never_hangs)
{
	static const uint32_t percent[] = {10, 30, 60, 100};

	for (unsigned int i = 0; i < ARRAY_SIZE(percent); i++) {
		struct sim_config net = {.latency_ns = 1000, .drop = WORLD_PERCENT(percent[i])};
		struct pair *p = pair_open(IBV_QPT_XRC_SEND, 2, &net);
		unsigned int good = 0;
		struct ibv_wc wc;

		world_connect(p->qp_a, p->qp_b, &world_path);
		for (uint64_t k = 0; k < 20; k++) {
			must(pair_recv(p, 100 + k, 4096));
			must(pair_send(p, k, 1000 + 100 * k));
		}
		world_run(p->w, 100 * PAIR_WAIT);
		for (uint64_t k = 0; k < 20; k++) {
			cr_assert(world_poll(p->cq_a, &wc), "request %llu at %u %%",
				  (unsigned long long)k, percent[i]);
			cr_assert_eq(wc.wr_id, k);
			if (wc.status == IBV_WC_SUCCESS)
				good++;
			else
				cr_assert_eq(wc.status, good == k ? IBV_WC_RETRY_EXC_ERR
								  : IBV_WC_WR_FLUSH_ERR);
		}
		if (percent[i] == 10)
			cr_assert_eq(good, 20);
		if (percent[i] == 100)
			cr_assert_eq(good, 0);
		pair_end(p);
	}
}

/* UD */

#define UD_QKEY 0x1234

/* A datagram from A to B; the entry is built as the face does it, the address handle being its business. */
static void ud_send(struct pair *p, uint64_t wr_id, uint32_t length)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh.hop_limit = 64};
	struct swqe *wqe;

	memcpy(attr.grh.dgid.raw, p->b->ip, 16);
	qp_sq_begin(p->qp_a);
	wqe = qp_sq_alloc(p->qp_a);
	cr_assert(wqe != NULL);
	wqe->wr_id = wr_id;
	wqe->opcode = IBV_WR_SEND;
	wqe->flags = IBV_SEND_SIGNALED;
	wqe->length = length;
	wqe->num_sge = !!length;
	wqe->sge[0] = (struct ibv_sge){(uintptr_t)p->mem_a, length, p->mr_a->key};
	must(ah_resolve(p->a->engine, &attr, 0, 0, &wqe->ud.to));
	wqe->ud.qpn = p->qp_b->qpn;
	wqe->ud.qkey = UD_QKEY;
	must(qp_sq_check(p->qp_a, wqe));
	qp_sq_commit(p->qp_a, p->w->now);
}

static struct pair *pair_ud(void)
{
	struct pair *p = pair_open(IBV_QPT_UD, 2, NULL);

	world_start_ud(p->qp_a, UD_QKEY);
	world_start_ud(p->qp_b, UD_QKEY);
	return p;
}

/* A datagram longer than the receive is dropped; the QP goes on, with the receive it had. */
Test(D7, ud_over_length)
{
	struct pair *p = pair_ud();

	must(pair_recv(p, 2, GRH_LEN + 100));
	ud_send(p, 1, 101);
	expect_wc(p, p->cq_a, 1, IBV_WC_SUCCESS);
	expect_no_wc(p, p->cq_b);
	cr_assert_eq(world_stat(p->b, DROP_ud_length), 1);
	cr_assert_eq(p->qp_b->state, IBV_QPS_RTS);
	ud_send(p, 3, 100);
	expect_wc(p, p->cq_a, 3, IBV_WC_SUCCESS);
	cr_assert_eq(expect_wc(p, p->cq_b, 2, IBV_WC_SUCCESS).byte_len, GRH_LEN + 100);
	pair_end(p);
}

/* Two public packets with their ICRC: a CNP that a ConnectX-4 Lx sent, and a UC SEND with 2 pad bytes. */
Test(D8, icrc_vectors)
{
	static const struct {
		struct wire_ip ip;
		uint8_t b[12 + 20];
		size_t len;
		uint32_t icrc; /* as it is on the wire */
	} v[] = {
		{.ip = {.src = {[10] = 0xff, 0xff, 10, 0, 17, 1},
			.dst = {[10] = 0xff, 0xff, 10, 0, 18, 1},
			.id = 0x718c,
			.tos = 0xc2,
			.ttl = 64},
		 .b = {0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x01, 0x18},
		 .len = 12 + 16,
		 .icrc = 0x82fd002a},
		{.ip = {.src = {[10] = 0xff, 0xff, 192, 168, 0, 7},
			.dst = {[10] = 0xff, 0xff, 192, 168, 0, 7},
			.id = 1144,
			.sport = 49152,
			.tos = 1,
			.ttl = 64},
		 .b = {0x24, 0x60, 0xff, 0xff, 0x00, 0x00, 0x00, 0xd3, 0x00, 0xcf, 0x17,
		       0x10, 0x46, 0x30, 0x81, 0x8b, 0xe2, 0x89, 0x35, 0xd9, 0x0e, 0x9a,
		       0x95, 0x50, 0x54, 0x01, 0xbe, 0x88, 0x5e, 0x50, 0x00, 0x00},
		 .len = 12 + 20,
		 .icrc = 0x78f353f3},
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(v); i++) {
		struct wire_ip ip = v[i].ip;
		uint32_t crc = wire_icrc(&ip, v[i].b, v[i].len);

		cr_assert_eq(__builtin_bswap32(crc), v[i].icrc, "vector %u: %08x", i, crc);
		/* Fields that routers change do not count. */
		ip.tos ^= 0xff;
		ip.ttl--;
		cr_assert_eq(wire_icrc(&ip, v[i].b, v[i].len), crc);
	}
}

/* MigReq is sent 1: every packet of a run; 0 is accepted (header::migreq of tests/sim). */
static void see_migreq(void *arg, struct world_node *node, enum link_dir dir, const uint8_t *b,
		       size_t len)
{
	struct wire_pkt pkt;
	unsigned int *seen = arg;

	cr_assert_eq(wire_decode(&pkt, b, len), WIRE_OK);
	cr_assert(pkt.mig);
	++*seen;
}

Test(D9, migreq_is_sent)
{
	struct pair *p = pair_xrc(&world_path);
	unsigned int seen = 0;

	p->w->watch = see_migreq;
	p->w->watch_arg = &seen;
	move(p, 3000);
	cr_assert_gt(seen, 10);
	pair_end(p);
}

/* Over the longest message, summed over all SGEs: refused when it is posted, 32 bits or not. */
Test(D10, longer_than_max_msg)
{
	static const uint32_t lengths[][2] = {{RXE_MAX_MSG, 1},
					      {0xffffffff, 0},
					      {0xffffffff, 0xffffffff},
					      {0x80000000, 0x80000000}};
	struct pair *p = pair_xrc(&world_path);

	for (unsigned int i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct ibv_sge sge[2] = {
			{(uintptr_t)p->mem_a, lengths[i][0], p->mr_a->key},
			{(uintptr_t)p->mem_a, lengths[i][1], p->mr_a->key},
		};
		struct ibv_send_wr wr = {.sg_list = sge, .num_sge = 2, .opcode = IBV_WR_SEND}, *bad;

		cr_assert_eq(qp_post_send(p->qp_a, &wr, &bad, p->w->now), -EINVAL, "case %u", i);
		cr_assert_eq(bad, &wr);
	}
	pair_end(p);
}

/* A READ scatters to as many SGEs as the QP has, and not to more. */
Test(D11, read_with_many_sges)
{
	struct pair *p = pair_xrc(&world_path);
	struct ibv_sge sge[5];
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = sge,
		.num_sge = 4,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
	};

	pair_fill(p->mem_b, 4000, 3);
	for (unsigned int i = 0; i < 5; i++)
		sge[i] = (struct ibv_sge){(uintptr_t)p->mem_a + 2000 * i, 1000, p->mr_a->key};
	wr.wr.rdma.remote_addr = (uintptr_t)p->mem_b;
	wr.wr.rdma.rkey = p->mr_b->key;
	wr.qp_type.xrc.remote_srqn = p->srq->srqn;
	must(world_post(p->qp_a, &wr));
	expect_wc(p, p->cq_a, 1, IBV_WC_SUCCESS);
	for (unsigned int i = 0; i < 4; i++)
		cr_assert_arr_eq(p->mem_a + 2000 * i, p->mem_b + 1000 * i, 1000);
	wr.num_sge = 5;
	cr_assert_eq(world_post(p->qp_a, &wr), -EINVAL);
	pair_end(p);
}

/* The 40 bytes before a datagram over IPv4: 20 that say nothing, then the IPv4 header. */
Test(D14, ud_grh_over_ipv4)
{
	struct pair *p = pair_ud();
	const uint8_t *ip = p->mem_b + 20;
	struct ibv_wc wc;

	must(pair_recv(p, 2, GRH_LEN + 8));
	pair_fill(p->mem_a, 8, 5);
	ud_send(p, 1, 8);
	wc = expect_wc(p, p->cq_b, 2, IBV_WC_SUCCESS);
	cr_assert(wc.wc_flags & IBV_WC_GRH);
	cr_assert_eq(wc.src_qp, p->qp_a->qpn);
	cr_assert_eq(ip[0], 0x45);
	cr_assert_eq(ip[9], 17);
	cr_assert_arr_eq(ip + 12, p->a->ip + 12, 4);
	cr_assert_arr_eq(ip + 16, p->b->ip + 12, 4);
	cr_assert_arr_eq(p->mem_b + GRH_LEN, p->mem_a, 8);
	pair_end(p);
}

/* A path MTU above what the port has is refused; below it everything fits. */
Test(D15, path_mtu_above_active_mtu)
{
	struct world_config config = {.seed = 3, .nodes = 1, .active_mtu = IBV_MTU_1024};
	struct world *w = world_create(&config);
	struct pd *pd = world_pd(&w->nodes[0]);
	struct cq *cq = world_cq(&w->nodes[0], 8, NULL);
	struct qp_handle *h = world_rc(pd, cq, cq, NULL, NULL);
	struct world_path path = world_path;

	must(world_to_init(h->qp, &path));
	path.mtu = IBV_MTU_2048;
	cr_assert_eq(world_to_rtr(h->qp, w->nodes[0].ip, h->qp->qpn, &path, 0), -EINVAL);
	cr_assert_eq(h->qp->state, IBV_QPS_INIT);
	path.mtu = IBV_MTU_1024;
	must(world_to_rtr(h->qp, w->nodes[0].ip, h->qp->qpn, &path, 0));
	must(qp_close(h, w->now));
	must(cq_destroy(cq));
	must(pd_destroy(pd));
	world_destroy(w);
}
