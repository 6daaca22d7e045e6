/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scatter and gather over lists of every shape, against a flat copy. */
#include "engine/sge.h"

#include "engine_stub.h"

static struct engine *e;
static struct pd *pd;
static struct mr *mr, *ro;
static uint8_t mem[256];

static void setup(void)
{
	e = stub_engine();
	cr_assert_eq(pd_create(e, &pd), 0);
	cr_assert_eq(mr_create(pd, mem, sizeof(mem), (uintptr_t)mem, IBV_ACCESS_LOCAL_WRITE, &mr),
		     0);
	cr_assert_eq(mr_create(pd, mem, sizeof(mem), (uintptr_t)mem, 0, &ro), 0);
	for (unsigned int i = 0; i < sizeof(mem); i++)
		mem[i] = i;
	rcu_read_lock();
}

static void teardown(void)
{
	rcu_read_unlock();
	cr_assert_eq(mr_destroy(mr), 0);
	cr_assert_eq(mr_destroy(ro), 0);
	cr_assert_eq(pd_destroy(pd), 0);
	engine_destroy(e);
}

TestSuite(sge, .init = setup, .fini = teardown);

static struct ibv_sge at(unsigned int offset, uint32_t length)
{
	return (struct ibv_sge){(uintptr_t)mem + offset, length, mr->key};
}

/* The bytes of the lists below, in their order. */
#define LISTED 61

static void make_list(struct ibv_sge sge[5])
{
	sge[0] = at(100, 7);
	sge[1] = (struct ibv_sge){0xdead, 0, 0xbeef}; /* length 0: not looked at */
	sge[2] = at(0, 1);
	sge[3] = at(40, 33);
	sge[4] = at(200, 20);
}

static void flat(uint8_t *out)
{
	memcpy(out, mem + 100, 7);
	memcpy(out + 7, mem, 1);
	memcpy(out + 8, mem + 40, 33);
	memcpy(out + 41, mem + 200, 20);
}

Test(sge, sge_gather__each_offset_and_length)
{
	uint8_t want[LISTED], got[LISTED + 1];
	struct ibv_sge sge[5];

	make_list(sge);
	flat(want);
	for (uint32_t off = 0; off <= LISTED; off++)
		for (uint32_t n = 0; n <= LISTED - off; n++) {
			memset(got, 0xee, sizeof(got));
			cr_assert_eq(sge_gather(e, pd, sge, 5, off, got, n), IBV_WC_SUCCESS);
			cr_assert_arr_eq(got, want + off, n);
			cr_assert_eq(got[n], 0xee);
		}
}

Test(sge, sge_gather__errors)
{
	struct ibv_sge sge[5], bad;
	uint8_t buf[LISTED + 1];

	make_list(sge);
	cr_assert_eq(sge_gather(e, pd, sge, 5, 0, buf, LISTED + 1), IBV_WC_LOC_LEN_ERR);
	cr_assert_eq(sge_gather(e, pd, sge, 5, LISTED, buf, 1), IBV_WC_LOC_LEN_ERR);
	cr_assert_eq(sge_gather(e, pd, sge, 0, 0, buf, 1), IBV_WC_LOC_LEN_ERR);
	cr_assert_eq(sge_gather(e, pd, sge, 0, 0, buf, 0), IBV_WC_SUCCESS);
	sge[2].lkey ^= 1;
	cr_assert_eq(sge_gather(e, pd, sge, 5, 0, buf, 7), IBV_WC_SUCCESS);
	cr_assert_eq(sge_gather(e, pd, sge, 5, 0, buf, 8), IBV_WC_LOC_PROT_ERR);
	/* Only what is touched matters. */
	bad = at(250, 10);
	cr_assert_eq(sge_gather(e, pd, &bad, 1, 0, buf, 6), IBV_WC_SUCCESS);
	cr_assert_eq(sge_gather(e, pd, &bad, 1, 0, buf, 7), IBV_WC_LOC_PROT_ERR);
	/* An SGE round the end of the address space does not come out at its beginning. */
	bad = (struct ibv_sge){UINT64_MAX - 3, UINT32_MAX, mr->key};
	cr_assert_eq(sge_gather(e, pd, &bad, 1, 4, buf, 1), IBV_WC_LOC_PROT_ERR);
}

Test(sge, sge_scatter__each_offset)
{
	uint8_t in[LISTED], want[sizeof(mem)];
	struct ibv_sge sge[5];

	make_list(sge);
	for (uint32_t off = 0; off <= LISTED; off++) {
		uint8_t all[LISTED];
		uint32_t n = LISTED - off;

		flat(all);
		for (uint32_t i = 0; i < n; i++)
			in[i] = all[off + i] = ~(i + off);
		memcpy(want, mem, sizeof(mem));
		memcpy(want + 100, all, 7);
		memcpy(want, all + 7, 1);
		memcpy(want + 40, all + 8, 33);
		memcpy(want + 200, all + 41, 20);
		cr_assert_eq(sge_scatter(e, pd, sge, 5, off, in, n), IBV_WC_SUCCESS);
		cr_assert_arr_eq(mem, want, sizeof(mem));
	}
}

Test(sge, sge_scatter__needs_the_right)
{
	struct ibv_sge sge = at(0, 8);
	uint8_t buf[9] = {0};

	sge.lkey = ro->key;
	cr_assert_eq(sge_scatter(e, pd, &sge, 1, 0, buf, 8), IBV_WC_LOC_PROT_ERR);
	cr_assert_eq(sge_gather(e, pd, &sge, 1, 0, buf, 8), IBV_WC_SUCCESS);
	cr_assert_eq(mem[7], 7);
	sge.lkey = mr->key;
	cr_assert_eq(sge_scatter(e, pd, &sge, 1, 0, buf, 9), IBV_WC_LOC_LEN_ERR);
}
