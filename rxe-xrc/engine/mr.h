/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory regions and memory windows: key -> range of the program's memory, with rights.
 *
 * Both live in the engine's table of keys. A key is 24 bits of index and 8 bits of tag; the index starts
 * random. lkey and rkey of a region are equal. The table files them by index. Lookups run in the lane's RCU section, and the range stays
 * usable until that section ends: mr_destroy() waits for it.
 */
#ifndef RXE_ENGINE_MR_H
#define RXE_ENGINE_MR_H

#include "engine/pd.h"

struct qp;

/* A region that is being destroyed or changed takes no more windows. */
#define MR_DYING 0x80000000u

enum mr_kind { MR_REGION, MR_WINDOW_1, MR_WINDOW_2 };

struct mr {
	struct engine *engine;
	struct pd *pd;
	enum mr_kind kind;
	_Atomic uint32_t key; /* a window's tag changes with each bind */
	int access;	      /* IBV_ACCESS_* */
	uint64_t iova;	      /* what the peer calls the first byte; 0 for IBV_ACCESS_ZERO_BASED */
	uint8_t *addr;	      /* where it is */
	uint64_t length;      /* bytes; a range of 0 is legal and matches nothing but length 0 */
	bool valid;	      /* windows: bound */
	atomic_uint windows;  /* regions: windows bound to it, or MR_DYING */
	/*
	 * Windows: what they are bound to. A lane may bind what another lane looks up, so a window's
	 * access to valid is written under this lock and the engine's mw_lock, and read under either.
	 */
	struct lock lock;
	struct mr *parent;
	struct qp *qp;		    /* type 2: the only QP that may use it */
	struct cds_list_head bound; /* type 2: in the engine's mw_bound while valid */
	struct cds_lfht_node node;
};

/**
 * mr_create() - registers [@addr, @addr + @length).
 * @iova: address under which keys' users name it
 *
 * The pages must be mapped with the rights that @access asks for (the caller checks that, it needs system
 * calls: verbs/reg.c). Return: 0; -EINVAL for rights that need IBV_ACCESS_LOCAL_WRITE without it, unknown rights, a
 * range that wraps; -ENOMEM.
 */
int mr_create(struct pd *pd, void *addr, uint64_t length, uint64_t iova, int access,
	      struct mr **out);

/**
 * mr_rereg() - IBV_REREG_MR_CHANGE_* in @flags; the key stays, the iova is then @addr.
 *
 * Waits for a grace period; packets that come meanwhile find no region. Return: 0 or as mr_create(), with
 * nothing changed then; -EBUSY while windows are bound.
 */
int mr_rereg(struct mr *mr, int flags, struct pd *pd, void *addr, uint64_t length, int access);

/** mr_destroy() - after the return no lane touches the range any more. 0 or -EBUSY (windows bound). */
int mr_destroy(struct mr *mr);

/** mw_create() - a window that is not bound. 0, -EINVAL (type), -ENOMEM. */
int mw_create(struct pd *pd, enum ibv_mw_type type, struct mr **out);
/** mw_destroy() - unbinds it first if need be; waits for a grace period. */
void mw_destroy(struct mr *mw);

/**
 * mw_bind() - executes a bind of @mw; lane held.
 * @rkey: the new key: for type 2 same index, tag chosen by the program; for type 1 chosen by mw_next_key()
 *
 * IBTA 10.6.7.2; a length of 0 unbinds a type 1 window. Return: an ibv_wc_status: IBV_WC_SUCCESS or IBV_WC_MW_BIND_ERR.
 */
enum ibv_wc_status mw_bind(struct qp *qp, struct mr *mw, struct mr *parent, uint32_t rkey,
			   uint64_t addr, uint64_t length, int access);
/** mw_next_key() - the key that the next type 1 bind will give: same index, tag + 1. */
uint32_t mw_next_key(const struct mr *mw);

/**
 * mr_find() - by key, in the caller's RCU section. NULL when there is none.
 * mr_find_index() - by the index part only: a window whose tag has moved on is found too.
 */
struct mr *mr_find(struct engine *e, uint32_t key);
struct mr *mr_find_index(struct engine *e, uint32_t key);

/**
 * mr_local() - the memory behind an SGE.
 * @access: 0 to read it, IBV_ACCESS_LOCAL_WRITE to write it
 *
 * Return: where it is, or NULL: wrong key, PD, bounds or rights. Only regions have an lkey.
 */
uint8_t *mr_local(struct engine *e, struct pd *pd, uint32_t lkey, uint64_t addr, uint32_t length,
		  int access);

/**
 * mr_remote() - the memory behind an RETH or AtomicETH.
 * @qp: for type 2 windows
 * @access: the IBV_ACCESS_REMOTE_* right that is needed
 *
 * Return: where it is, or NULL: wrong key, PD, bounds or rights (NAK remote access error).
 */
uint8_t *mr_remote(struct engine *e, struct pd *pd, struct qp *qp, uint32_t rkey, uint64_t va,
		   uint64_t length, int access);

/**
 * mr_invalidate() - SEND with invalidate, or a local invalidate.
 * @local: work request of the owner (may be a region only if it allows it: ours never does)
 *
 * Return: 0, or -EACCES: not a bound type 2 window of this PD and QP.
 */
int mr_invalidate(struct engine *e, struct pd *pd, struct qp *qp, uint32_t rkey, bool local);

/** mw_unbind_qp() - a type 2 window dies with its QP: unbinds all that are bound to @qp. */
void mw_unbind_qp(struct engine *e, struct qp *qp);

#endif
