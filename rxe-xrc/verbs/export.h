/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the preload library shows to the world: libibverbs' public functions, and nothing else.
 *
 * All is compiled with hidden visibility; EXPORT marks the few symbols that take the place of
 * libibverbs'. They carry no version: an unversioned definition satisfies a reference to any version
 * of a symbol, IBVERBS_PRIVATE_* among them, whose number changes with each rdma-core release.
 */
#ifndef RXE_VERBS_EXPORT_H
#define RXE_VERBS_EXPORT_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* verbs.h puts macros before these functions. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* Functions that libibverbs exports and verbs.h does not declare. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       int *type);
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);
/* Their headers need not be installed; both arguments are pointers to plain structures. */
void ibv_copy_ah_attr_from_kern(void *dst, void *src);
void ibv_copy_qp_attr_from_kern(void *dst, void *src);
void ibv_copy_path_rec_from_kern(void *dst, void *src);
void ibv_copy_path_rec_to_kern(void *dst, void *src);

/* Of releases after 44; structures are opaque here. */
struct ibv_buf;
struct ibv_dmah;
struct ibv_dmah_init_attr;
struct ibv_mr_init_attr;
struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *context, struct ibv_dmah_init_attr *attr);
int ibv_dealloc_dmah(struct ibv_dmah *dmah);
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr);
int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm);
int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed);
void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
void ibv_free_buf(struct ibv_buf *buf);
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length,
			      int access);

#endif
