/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cases whose answer is what a program sees: errno, pointers, numbers. A stock verbs program that is run
 * under rxe-run; TAP, one line a case.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static bool good;

#define check(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			printf("# line %d: %s (errno %d)\n", __LINE__, #cond, errno);              \
			good = false;                                                              \
		}                                                                                  \
	} while (0)

static struct ibv_xrcd *open_xrcd(int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};

	errno = 0;
	return ibv_open_xrcd(ctx, &attr);
}

/* The device says that it does XRC, and domains open by file and without one. */
static void a1_open_xrcd(void)
{
	char path[] = "xrcd-XXXXXX";
	struct ibv_device_attr attr;
	struct ibv_xrcd *x, *y;
	int fd = mkstemp(path);

	check(!ibv_query_device(ctx, &attr) && (attr.device_cap_flags & IBV_DEVICE_XRC));
	check(fd >= 0);
	check((x = open_xrcd(-1, O_CREAT)) != NULL && !ibv_close_xrcd(x));
	check(!open_xrcd(fd, 0) && errno == EAGAIN);
	x = open_xrcd(fd, O_CREAT);
	check(x != NULL);
	check(!open_xrcd(fd, O_CREAT | O_EXCL) && errno == EINVAL);
	y = open_xrcd(fd, 0);
	check(y != NULL);
	check(!open_xrcd(9999, O_CREAT) && errno == EBADF);
	check(!y || !ibv_close_xrcd(y));
	check(!x || !ibv_close_xrcd(x));
	close(fd);
	unlink(path);
}

/* On many file systems the next file gets the inode's number of one that is gone. */
static void domain_of_a_deleted_file(void)
{
	char gone[] = "xrcd-XXXXXX", next[] = "xrcd-XXXXXX";
	int fd = mkstemp(gone);
	struct ibv_xrcd *x = open_xrcd(fd, O_CREAT), *y;

	unlink(gone);
	close(fd);
	fd = mkstemp(next);
	unlink(next);
	y = open_xrcd(fd, O_CREAT | O_EXCL);
	close(fd);
	check(x && y);
	check(!y || !ibv_close_xrcd(y));
	check(!x || !ibv_close_xrcd(x));
	/* Neither handle has left a descriptor behind. */
	check(open("/dev/null", O_RDONLY) == fd && !close(fd));
}

static struct ibv_qp *create_qp(enum ibv_qp_type type, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = type,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {4, 4, 1, 1, 64},
		.comp_mask = xrcd ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD,
		.pd = xrcd ? NULL : pd,
		.xrcd = xrcd,
	};

	errno = 0;
	return ibv_create_qp_ex(ctx, &attr);
}

static struct ibv_srq *create_xrc_srq(struct ibv_xrcd *xrcd)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = xrcd,
		.cq = cq,
	};

	return ibv_create_srq_ex(ctx, &attr);
}

static struct ibv_qp *open_qp(struct ibv_xrcd *xrcd, uint32_t qpn)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = qpn,
		.xrcd = xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return ibv_open_qp(ctx, &attr);
}

/* Two handles of one domain: each is busy by what was made through it, and by nothing else. */
static void a15_handles_of_a_domain(void)
{
	char path[] = "xrcd-XXXXXX";
	int fd = mkstemp(path);
	struct ibv_xrcd *x = open_xrcd(fd, O_CREAT), *y = open_xrcd(fd, O_CREAT);
	struct ibv_srq *srq = x ? create_xrc_srq(x) : NULL;
	struct ibv_qp *qp = y ? create_qp(IBV_QPT_XRC_RECV, y) : NULL, *opened = NULL;
	struct ibv_xrcd *z = open_xrcd(fd, O_CREAT);

	unlink(path);
	check(z && !ibv_close_xrcd(z));
	check(srq && ibv_close_xrcd(x) == EBUSY);
	/* One that is closed in spite of its users must not be used any more. */
	if (!good)
		return;
	check(qp && ibv_close_xrcd(y) == EBUSY);
	if (!good)
		return;
	/* The other's QP by a handle of its own, which keeps x busy and outlives y. */
	check(!ibv_destroy_srq(srq));
	opened = open_qp(x, qp->qp_num);
	check(opened && ibv_close_xrcd(x) == EBUSY);
	if (!good)
		return;
	check(!ibv_destroy_qp(qp));
	check(!ibv_close_xrcd(y));
	check(ibv_close_xrcd(x) == EBUSY);
	check(!ibv_destroy_qp(opened));
	/* What failed is no user, and the domain has ended with its last handle. */
	check(!open_qp(x, 1) && errno == EINVAL);
	check(!ibv_close_xrcd(x));
	check(!open_xrcd(fd, 0) && errno == EAGAIN);
	close(fd);
}

/* What is not supported says EOPNOTSUPP. */
static void a16_not_supported(void)
{
	struct ibv_srq_init_attr_ex srq = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_TM,
		.pd = pd,
	};

	errno = 0;
	check(!ibv_create_srq_ex(ctx, &srq) && errno == EOPNOTSUPP);
	check(!create_qp(IBV_QPT_RAW_PACKET, NULL) && errno == EOPNOTSUPP);
	check(!create_qp(IBV_QPT_DRIVER, NULL) && errno == EOPNOTSUPP);
}

static void a17_receives_on_xrc(void)
{
	struct ibv_xrcd *x = open_xrcd(-1, O_CREAT);
	struct ibv_qp *ini = create_qp(IBV_QPT_XRC_SEND, NULL),
		      *tgt = create_qp(IBV_QPT_XRC_RECV, x);
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad_recv = NULL;
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send = NULL;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	check(x && ini && tgt);
	if (!x || !ini || !tgt)
		return;
	check(ibv_post_recv(ini, &recv, &bad_recv) == EINVAL && bad_recv == &recv);
	check(ibv_post_recv(tgt, &recv, &bad_recv) == EINVAL);
	check(ibv_post_send(tgt, &send, &bad_send) == EINVAL && bad_send == &send);
	check(!ibv_query_qp(ini, &attr, IBV_QP_CAP, &init) && !attr.cap.max_recv_wr);
	check(!ibv_query_qp(tgt, &attr, IBV_QP_CAP, &init) && !attr.cap.max_recv_wr &&
	      !attr.cap.max_send_wr);
	check(ibv_close_xrcd(x) == EBUSY);
	check(!ibv_destroy_qp(ini) && !ibv_destroy_qp(tgt));
	check(!ibv_close_xrcd(x));
}

/* errno values are positive, and the request that was refused is named. */
static void c9_post_recv_in_reset(void)
{
	struct ibv_qp *qp = create_qp(IBV_QPT_RC, NULL);
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad = NULL;

	check(qp != NULL);
	if (!qp)
		return;
	check(ibv_post_recv(qp, &wr, &bad) == EINVAL);
	check(bad == &wr);
	check(!ibv_destroy_qp(qp));
}

static int to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp->qp_num,
		.min_rnr_timer = 12,
		.max_dest_rd_atomic = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh.hop_limit = 1},
	};
	int ret = ibv_query_gid(ctx, 1, 0, &attr.ah_attr.grh.dgid);

	ret = ret ? ret
		  : ibv_modify_qp(qp, &attr,
				  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					  IBV_QP_ACCESS_FLAGS);
	attr.qp_state = IBV_QPS_RTR;
	ret = ret ? ret
		  : ibv_modify_qp(qp, &attr,
				  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					  IBV_QP_MIN_RNR_TIMER);
	attr.qp_state = IBV_QPS_RTS;
	return ret ? ret
		   : ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					   IBV_QP_MAX_QP_RD_ATOMIC);
}

/* One completion more; gives up after five seconds. */
static bool poll_one(struct ibv_wc *wc)
{
	for (unsigned int i = 0; i < 5000; i++) {
		int n = ibv_poll_cq(cq, 1, wc);

		if (n)
			return n == 1;
		usleep(1000);
	}
	return false;
}

/* Inline data of several SGEs without keys, from a buffer that is overwritten at once; too much is refused. */
static void d4_inline(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = {4, 4, 2, 1, 64}};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	char text[] = "inline data", got[64] = "", big[2048];
	struct ibv_sge sge[2] = {{(uintptr_t)text, 6, 0xbad}, {(uintptr_t)text + 6, 6, 0xbad}};
	struct ibv_mr *mr = ibv_reg_mr(pd, got, sizeof(got), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_send_wr wr = {.sg_list = sge,
				 .num_sge = 2,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED},
			   *bad = NULL;
	struct ibv_sge into = {(uintptr_t)got, sizeof(got), mr ? mr->lkey : 0};
	struct ibv_recv_wr recv = {.sg_list = &into, .num_sge = 1}, *bad_recv;
	struct ibv_wc wc;
	int ret;

	check(qp && mr);
	if (!qp || !mr)
		return;
	check(!to_rts(qp));
	check(init.cap.max_inline_data >= 64 && init.cap.max_inline_data < sizeof(big));
	check(!ibv_post_send(qp, &wr, &bad));
	memset(text, 'x', sizeof(text) - 1);
	check(!ibv_post_recv(qp, &recv, &bad_recv));
	check(poll_one(&wc) && wc.status == IBV_WC_SUCCESS);
	check(poll_one(&wc) && wc.status == IBV_WC_SUCCESS);
	check(!strcmp(got, "inline data"));
	sge[0] = (struct ibv_sge){(uintptr_t)big, init.cap.max_inline_data + 1, 0};
	wr.num_sge = 1;
	ret = ibv_post_send(qp, &wr, &bad);
	check((ret == EINVAL || ret == ENOMEM) && bad == &wr);
	check(!ibv_destroy_qp(qp) && !ibv_dereg_mr(mr));
}

/* A WRITE of nothing to itself, which needs no memory. Return: the status that it completes with. */
static int write_nothing(struct ibv_qp *qp)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_wc wc;

	return ibv_post_send(qp, &wr, &bad) || !poll_one(&wc) ? -1 : (int)wc.status;
}

/* One SEND or READ by the builders. Return: what ibv_wr_complete() says. */
static int build_one(struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	struct ibv_data_buf buf[8];

	for (int i = 0; i < wr->num_sge; i++)
		buf[i] = (struct ibv_data_buf){(void *)(uintptr_t)wr->sg_list[i].addr,
					       wr->sg_list[i].length};
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = 0;
	if (wr->opcode == IBV_WR_RDMA_READ)
		ibv_wr_rdma_read(ex, 0, 0);
	else
		ibv_wr_send(ex);
	if (wr->send_flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data_list(ex, wr->num_sge, buf);
	else
		ibv_wr_set_sge_list(ex, wr->num_sge, wr->sg_list);
	return ibv_wr_complete(ex);
}

/* The builders refuse what ibv_post_send() refuses, for the same reason, and nothing is left of it. */
static void both_ways_to_post(void)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {4, 4, 2, 1, 64},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(ctx, &init);
	static char data[2048];
	struct ibv_sge ok = {(uintptr_t)data, 8, 0}, none = {8, 8, 0},
		       big = {(uintptr_t)data, sizeof(data), 0},
		       huge = {(uintptr_t)data, 1u << 31, 0};
	const struct {
		struct ibv_sge sge[8];
		int num_sge, opcode;
		unsigned int flags;
		int error;
	} rows[] = {
		{{ok, ok, ok, ok, ok, ok, ok, ok}, 8, IBV_WR_SEND, 0, EINVAL},
		{{huge, ok}, 2, IBV_WR_SEND, 0, EINVAL},
		{{big}, 1, IBV_WR_SEND, IBV_SEND_INLINE, EINVAL},
		{{ok, none}, 2, IBV_WR_SEND, IBV_SEND_INLINE, EFAULT},
		{{huge, huge}, 2, IBV_WR_RDMA_READ, 0, EINVAL},
	};

	check(qp && !to_rts(qp));
	if (!good)
		return;
	check(init.cap.max_send_sge >= 2 && init.cap.max_send_sge < 8);
	check(init.cap.max_inline_data < sizeof(data));
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_sge sge[8];
		struct ibv_send_wr wr = {.sg_list = sge,
					 .num_sge = rows[i].num_sge,
					 .opcode = rows[i].opcode,
					 .send_flags = rows[i].flags},
				   *bad = NULL;

		memcpy(sge, rows[i].sge, sizeof(sge));
		check(ibv_post_send(qp, &wr, &bad) == rows[i].error && bad == &wr);
		check(build_one(qp, &wr) == rows[i].error);
	}
	check(write_nothing(qp) == IBV_WC_SUCCESS);
	check(!ibv_destroy_qp(qp));
}

static atomic_bool cancelled;

static void *poll_for_ever(void *arg)
{
	struct ibv_wc wc;

	while (!atomic_load(&cancelled))
		ibv_poll_cq(cq, 1, &wc);
	pthread_testcancel();
	return NULL;
}

/* A thread that polls is cancelled: the device goes on, whatever the thread was doing. */
static void cancel_while_polling(void)
{
	struct ibv_qp *qp = create_qp(IBV_QPT_RC, NULL);
	void *result;

	check(qp && !to_rts(qp));
	for (int i = 0; qp && good && i < 20; i++) {
		pthread_t thread;

		atomic_store(&cancelled, false);
		check(!pthread_create(&thread, NULL, poll_for_ever, NULL));
		usleep(500);
		check(!pthread_cancel(thread));
		atomic_store(&cancelled, true);
		check(!pthread_join(thread, &result) && result == PTHREAD_CANCELED);
		check(write_nothing(qp) == IBV_WC_SUCCESS);
	}
	check(!qp || !ibv_destroy_qp(qp));
}

/* A region that was unmapped is an error of the request, in a thread that blocks all signals, too. */
static void unmapped_with_signals_blocked(void)
{
	struct ibv_qp *qp = create_qp(IBV_QPT_RC, NULL);
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(pd, page, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = {(uintptr_t)page, 8, mr ? mr->lkey : 0};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_wc wc;
	sigset_t all, old;

	check(qp && mr && !to_rts(qp));
	check(!munmap(page, 4096));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	check(!ibv_post_send(qp, &wr, &bad));
	check(poll_one(&wc) && wc.status == IBV_WC_LOC_PROT_ERR);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	check(!ibv_destroy_qp(qp) && !ibv_dereg_mr(mr));
}

/* As Linux: PSNs of more than 24 bits are cut off. */
static void psns_are_masked(void)
{
	struct ibv_qp *qp = create_qp(IBV_QPT_UD, NULL);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1};
	struct ibv_qp_init_attr init;

	check(qp && !ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = 0x5000123;
	check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
	check(!ibv_query_qp(qp, &attr, IBV_QP_SQ_PSN, &init) && attr.sq_psn == 0x123);
	check(!ibv_destroy_qp(qp));
}

/* ibv_create_qp(3): of the types with a receive queue, RC and UD may share one. */
static void uc_has_no_srq(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &attr);
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_UC,
					.send_cq = cq,
					.recv_cq = cq,
					.srq = srq,
					.cap = {4, 4, 1, 1, 0}};
	uint32_t num;

	check(srq && !ibv_create_qp(pd, &init) && errno == EINVAL);
	check(ibv_get_srq_num(srq, &num) == EOPNOTSUPP);
	check(!ibv_destroy_srq(srq));
}

/* pyverbs binds windows with LOCAL_WRITE among their rights. */
static void window_with_local_write(void)
{
	static char buf[64];
	struct ibv_qp *qp = create_qp(IBV_QPT_RC, NULL);
	struct ibv_mr *mr =
		ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {mr, (uintptr_t)buf, sizeof(buf),
			      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE},
	};
	struct ibv_wc wc;

	check(qp && mr && mw && !to_rts(qp));
	check(!ibv_bind_mw(qp, mw, &bind));
	check(poll_one(&wc) && wc.status == IBV_WC_SUCCESS);
	check(!ibv_dealloc_mw(mw) && !ibv_destroy_qp(qp) && !ibv_dereg_mr(mr));
}

/* --- few descriptors: a program of its own, since the device must not have a link yet --- */

#define NO_QP 3

/* The device is open; a QP with @left descriptors more. Return: the exit status. */
static int with_few_descriptors(int left)
{
	int lowest = dup(STDIN_FILENO);
	struct rlimit limit = {(rlim_t)(lowest + left), (rlim_t)(lowest + left)};
	struct ibv_qp *qp;

	if (lowest < 0 || close(lowest) || setrlimit(RLIMIT_NOFILE, &limit))
		return 1;
	qp = create_qp(IBV_QPT_RC, NULL);
	if (!qp)
		return errno == EMFILE ? NO_QP : 1;
	return ibv_destroy_qp(qp) ? 1 : 0;
}

static unsigned int count(const char *text, const char *what)
{
	unsigned int n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

/* Runs this program again. Return: its status; @errors: lines that say "error". */
static int run_with_few_descriptors(int left, unsigned int *errors)
{
	char text[4096], number[16];
	ssize_t n, len = 0;
	int fds[2], status = -1;
	pid_t pid;

	*errors = 0;
	if (pipe(fds))
		return -1;
	snprintf(number, sizeof(number), "%d", left);
	pid = fork();
	if (!pid) {
		dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		close(fds[1]);
		/* The other address is this process's. */
		setenv("RXE_ADDR", "127.0.146.8", 1);
		setenv("RXE_LANES", "4", 1);
		execl("/proc/self/exe", "cases-verbs", number, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	while ((n = read(fds[0], text + len, sizeof(text) - 1 - (size_t)len)) > 0)
		len += n;
	close(fds[0]);
	text[len] = '\0';
	*errors = count(text, "rxe-xrc: error: ");
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* Whatever there are too few for: no QP, EMFILE, and one line that says why. */
static void few_descriptors(void)
{
	unsigned int errors, refused = 0;
	int left, status = NO_QP;

	for (left = 0; left < 100 && status == NO_QP; left++) {
		status = run_with_few_descriptors(left, &errors);
		if (status == NO_QP) {
			refused++;
			check(errors == 1);
		}
	}
	check(status == 0 && errors == 0);
	/* Sockets of four lanes, the helper's: it was refused at each of them. */
	check(refused > 8);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"A1::open_xrcd", a1_open_xrcd},
	{"A15::handles_of_a_domain", a15_handles_of_a_domain},
	{"A16::not_supported", a16_not_supported},
	{"A17::receives_on_xrc", a17_receives_on_xrc},
	{"C9::post_recv_in_reset", c9_post_recv_in_reset},
	{"D4::inline_data", d4_inline},
	{"trial::both_ways_to_post", both_ways_to_post},
	{"trial::domain_of_a_deleted_file", domain_of_a_deleted_file},
	{"trial::cancel_while_polling", cancel_while_polling},
	{"trial::unmapped_with_signals_blocked", unmapped_with_signals_blocked},
	{"trial::psns_are_masked", psns_are_masked},
	{"trial::uc_has_no_srq", uc_has_no_srq},
	{"trial::window_with_local_write", window_with_local_write},
	{"trial::few_descriptors", few_descriptors},
};

int main(int argc, char **argv)
{
	unsigned int n = sizeof(cases) / sizeof(cases[0]), failed = 0;
	struct ibv_device **list = ibv_get_device_list(NULL);

	/* A hang is a failure, too. */
	alarm(30);
	ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	cq = pd ? ibv_create_cq(ctx, 16, NULL, NULL, 0) : NULL;
	if (argc > 1)
		return cq ? with_few_descriptors(atoi(argv[1])) : 1;
	printf("1..%u\n", n);
	if (!cq) {
		printf("Bail out! no device, PD or CQ (errno %d)\n", errno);
		return 1;
	}
	for (unsigned int i = 0; i < n; i++) {
		good = true;
		cases[i].run();
		failed += !good;
		printf("%sok %u - %s\n", good ? "" : "not ", i + 1, cases[i].name);
	}
	if (ibv_destroy_cq(cq) || ibv_dealloc_pd(pd) || ibv_close_device(ctx)) {
		printf("# something is still in use\n");
		failed++;
	}
	ibv_free_device_list(list);
	return failed ? 1 : 0;
}
