/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions that only pass on to the real libibverbs, and how it is found.
 *
 * The library is usually next after ours in the order of lookup. It is not when a program loaded it with
 * RTLD_LOCAL (Python's extension modules, plug-ins of MPI and UCX): then dlopen() gives a handle to
 * the copy that is loaded already. A process without libibverbs can still call us through dlsym();
 * dlopen() then loads it.
 *
 * Strings and rates come from the real library too, so that they are always those of the release that
 * the program was built for.
 */
#include "verbs/forward.h"

#include <dlfcn.h>
#include <errno.h>

#define LIBIBVERBS "libibverbs.so.1"

static void *open_real(void)
{
	static _Atomic(void *) handle;
	void *h = atomic_load(&handle), *expected = NULL;

	if (h)
		return h;
	h = dlopen(LIBIBVERBS, RTLD_LAZY | RTLD_LOCAL);
	if (h && !atomic_compare_exchange_strong(&handle, &expected, h)) {
		dlclose(h);
		h = expected;
	}
	return h;
}

void *forward_symbol(const char *name)
{
	int saved = errno;
	void *p = dlsym(RTLD_NEXT, name), *h;

	if (!p) {
		h = open_real();
		if (h)
			p = dlsym(h, name);
	}
	errno = saved;
	return p;
}

/* FORWARD(result, name, parameters, arguments, what is returned without the real library) */
#define FORWARD(type, name, params, args, without)                                                 \
	EXPORT type name params                                                                    \
	{                                                                                          \
		__typeof__(&(name)) real = REAL(name);                                             \
                                                                                                   \
		return real ? real args : (without);                                               \
	}
#define FORWARD_VOID(name, params, args)                                                           \
	EXPORT void name params                                                                    \
	{                                                                                          \
		__typeof__(&(name)) real = REAL(name);                                             \
                                                                                                   \
		if (real)                                                                          \
			real args;                                                                 \
	}

FORWARD(const char *, ibv_wc_status_str, (enum ibv_wc_status status), (status), "unknown")
FORWARD(const char *, ibv_node_type_str, (enum ibv_node_type type), (type), "unknown")
FORWARD(const char *, ibv_port_state_str, (enum ibv_port_state state), (state), "unknown")
FORWARD(const char *, ibv_event_type_str, (enum ibv_event_type event), (event), "unknown")
FORWARD(const char *, ibv_get_sysfs_path, (void), (), "/sys")
FORWARD(int, ibv_read_sysfs_file, (const char *dir, const char *file, char *buf, size_t size),
	(dir, file, buf, size), -1)

FORWARD(int, ibv_rate_to_mult, (enum ibv_rate rate), (rate), -1)
FORWARD(enum ibv_rate, mult_to_ibv_rate, (int mult), (mult), IBV_RATE_MAX)
FORWARD(int, ibv_rate_to_mbps, (enum ibv_rate rate), (rate), -1)
FORWARD(enum ibv_rate, mbps_to_ibv_rate, (int mbps), (mbps), IBV_RATE_MAX)

/*
 * Our regions are plain memory that no hardware reads behind the program's back, so a fork needs no
 * preparation on our account.
 */
FORWARD(int, ibv_fork_init, (void), (), 0)
FORWARD(enum ibv_fork_status, ibv_is_fork_initialized, (void), (), IBV_FORK_UNNEEDED)
FORWARD(int, ibv_dontfork_range, (void *base, size_t size), (base, size), 0)
FORWARD(int, ibv_dofork_range, (void *base, size_t size), (base, size), 0)

FORWARD_VOID(ibv_copy_ah_attr_from_kern, (void *dst, void *src), (dst, src))
FORWARD_VOID(ibv_copy_qp_attr_from_kern, (void *dst, void *src), (dst, src))
FORWARD_VOID(ibv_copy_path_rec_from_kern, (void *dst, void *src), (dst, src))
FORWARD_VOID(ibv_copy_path_rec_to_kern, (void *dst, void *src), (dst, src))
