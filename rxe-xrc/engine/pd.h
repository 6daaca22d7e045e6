/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Protection domains and XRC domains: little more than reference counts. */
#ifndef RXE_ENGINE_PD_H
#define RXE_ENGINE_PD_H

#include "engine/engine.h"

#include <urcu/list.h>

struct pd {
	struct engine *engine;
	atomic_uint
		refs; /* MRs, MWs, QPs, SRQs and AHs in it; dealloc is EBUSY while there are any */
};

struct xrcd {
	struct engine *engine;
	bool shared; /* named by a file: found again by dev and ino */
	uint64_t dev, ino;
	unsigned int opens;	   /* under ctl */
	atomic_uint refs;	   /* SRQs and TGT QPs in it */
	struct cds_list_head list; /* in the engine's list of shared domains, under ctl */
	/* Under ctl: its SRQs, and how many TGT QPs it has in each lane */
	struct cds_list_head srqs;
	uint32_t tgts[RXE_MAX_LANES];
};

int pd_create(struct engine *e, struct pd **out);
/** pd_destroy() - 0 or -EBUSY. */
int pd_destroy(struct pd *pd);

/**
 * xrcd_open() - the domain of a file, or a private one.
 * @shared: false for a private domain (fd -1); @dev and @ino are then ignored
 * @oflags: O_CREAT, O_EXCL
 *
 * Return: 0; -EAGAIN when the file has no domain and O_CREAT is not given; -EINVAL for O_EXCL on an
 * existing one (kernel uverbs_cmd.c: ib_uverbs_open_xrcd).
 */
int xrcd_open(struct engine *e, bool shared, uint64_t dev, uint64_t ino, int oflags,
	      struct xrcd **out);
/*
 * Which lanes push to the completion queues of its SRQs (cq_lanes()); ctl held.
 * xrcd_reserve_lane(), xrcd_reserve_srq() - room for it, before a TGT QP or an SRQ comes. 0 or -ENOMEM
 * xrcd_count_lane() - @n more TGT QPs (fewer, if negative) in lane @lane
 * xrcd_add_srq(), xrcd_del_srq() - an SRQ comes and goes
 */
int xrcd_reserve_lane(struct xrcd *x, unsigned int lane);
int xrcd_reserve_srq(struct xrcd *x, struct srq *srq);
void xrcd_count_lane(struct xrcd *x, unsigned int lane, int n);
void xrcd_add_srq(struct xrcd *x, struct srq *srq);
void xrcd_del_srq(struct xrcd *x, struct srq *srq);

/**
 * xrcd_close() - 0, or -EBUSY when this is the last of the opens and SRQs or TGT QPs are left. By which of them
 * these were made is the face's to know (verbs/srq.c).
 */
int xrcd_close(struct xrcd *x);

#endif
