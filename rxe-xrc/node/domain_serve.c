/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The owner's side: one thread that executes what other processes ask. Theory in domain.h.
 *
 * Listeners (one for each block) and connections (one for each runner and block) wait in one epoll set. An
 * event names its source by an id that is never used again, because the source may have gone while the thread
 * was on its way to the lock. The lock is held for one event at a time. A listener reports each new connection
 * once: a process without descriptors for it must not spin on the one that it cannot accept.
 */
#include "node/domain.h"

#include "node/domain_addr.h"

#include "base/log.h"
#include "base/macros.h"
#include "base/thread.h"
#include "engine/limits.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <urcu-bp.h>
#include <urcu/list.h>

/* Whole ones: the last, to which 0xffffff would belong, is none. */
#define BLOCKS ((RXE_SRQN_LAST + 1 - RXE_SRQN_FIRST) / FOREIGN_BLOCK)
/* Random tries for a free one. With a thousand processes each succeeds with seven eighths. */
#define CLAIM_TRIES 64
/* Runners that may be waiting to be accepted. */
#define BACKLOG 64

struct source {
	uint64_t id;
	int fd;
	struct engine *engine;
	struct foreign_peer *peer; /* NULL: a listener */
	struct cds_list_head node;
};

static struct {
	pthread_mutex_t control; /* claim and detach, round lock: whether the thread runs */
	pthread_mutex_t lock;
	struct cds_list_head sources;
	uint64_t id; /* the last that was given */
	pthread_t thread;
	bool running;
	atomic_bool stop;
	int epoll_fd, wake_fd;
} service = {
	.control = PTHREAD_MUTEX_INITIALIZER,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.sources = CDS_LIST_HEAD_INIT(service.sources),
	.epoll_fd = -1,
	.wake_fd = -1,
};

/* --- sources; the lock is held --- */

/* Takes @fd, also when it fails. */
static int source_add(int fd, struct engine *e, struct foreign_peer *peer)
{
	struct source *s = malloc(sizeof(*s));
	struct epoll_event ev = {.events = peer ? EPOLLIN : EPOLLIN | EPOLLET};

	if (!s)
		goto err_close;
	*s = (struct source){.id = ++service.id, .fd = fd, .engine = e, .peer = peer};
	ev.data.u64 = s->id;
	if (epoll_ctl(service.epoll_fd, EPOLL_CTL_ADD, fd, &ev))
		goto err_free;
	cds_list_add(&s->node, &service.sources);
	return 0;

err_free:
	free(s);
err_close:
	close(fd);
	return -ENOMEM;
}

static void source_close(struct source *s)
{
	cds_list_del(&s->node);
	/* Before the socket: a runner that sees it closed may rely on all being over. */
	if (s->peer)
		foreign_peer_destroy(s->peer, domain_now());
	close(s->fd);
	free(s);
}

static struct source *source_find(uint64_t id)
{
	struct source *s;

	cds_list_for_each_entry (s, &service.sources, node)
		if (s->id == id)
			return s;
	return NULL;
}

/* A new connection. Return: false when there is none, or no descriptor for it. */
static bool accept_runner(struct source *s)
{
	int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct foreign_peer *peer;

	if (fd < 0)
		return errno == EINTR || errno == ECONNABORTED;
	peer = domain_peer_is_us(fd) ? foreign_peer_create(s->engine) : NULL;
	if (!peer)
		close(fd);
	else if (source_add(fd, s->engine, peer))
		foreign_peer_destroy(peer, domain_now());
	return true;
}

static void answer(struct source *s, struct foreign_reply *reply, uint8_t *data)
{
	struct iovec iov[2] = {{reply, sizeof(*reply)}, {data, reply->data_len}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = reply->data_len ? 2 : 1};

	/* A runner that does not read has stopped waiting; it will ask again. */
	sendmsg(s->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* One request of a runner, or its end. */
static void serve(struct source *s)
{
	static uint8_t payload[FOREIGN_MAX_DATA], data[FOREIGN_MAX_DATA];
	struct foreign_request req;
	struct foreign_reply reply;
	struct iovec iov[2] = {{&req, sizeof(req)}, {payload, sizeof(payload)}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	ssize_t n = recvmsg(s->fd, &msg, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < (ssize_t)sizeof(req) || (size_t)n != sizeof(req) + req.payload_len) {
		source_close(s);
		return;
	}
	if (foreign_serve(s->peer, &req, payload, &reply, data, domain_now()))
		answer(s, &reply, data);
}

static void handle(uint64_t id)
{
	struct source *s;

	pthread_mutex_lock(&service.lock);
	s = source_find(id);
	if (s && s->peer)
		serve(s);
	else if (s)
		while (accept_runner(s))
			;
	pthread_mutex_unlock(&service.lock);
}

/* --- the thread --- */

static void *service_main(void *arg)
{
	struct epoll_event v[16];
	int n;

	pthread_setname_np(pthread_self(), "rxe-domain");
	/* Not later, under the lock: a fork holds liburcu's registry when it comes for the lock. */
	urcu_bp_register_thread();
	while (!atomic_load(&service.stop)) {
		n = epoll_wait(service.epoll_fd, v, ARRAY_SIZE(v), -1);
		for (int i = 0; i < n; i++)
			handle(v[i].data.u64);
	}
	return NULL;
}

static void close_fds(void)
{
	if (service.epoll_fd >= 0)
		close(service.epoll_fd);
	if (service.wake_fd >= 0)
		close(service.wake_fd);
	service.epoll_fd = service.wake_fd = -1;
}

static int start(void)
{
	struct epoll_event ev = {.events = EPOLLIN}; /* id 0: no source has it */
	int err;

	service.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	service.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (service.epoll_fd < 0 || service.wake_fd < 0 ||
	    epoll_ctl(service.epoll_fd, EPOLL_CTL_ADD, service.wake_fd, &ev)) {
		err = -errno;
		goto err_close;
	}
	atomic_store(&service.stop, false);
	err = thread_start(&service.thread, service_main);
	if (err)
		goto err_close;
	service.running = true;
	return 0;

err_close:
	close_fds();
	return err;
}

/* --- blocks --- */

static uint32_t random_block(void)
{
	uint32_t v;

	if (getrandom(&v, sizeof(v), GRND_NONBLOCK) != sizeof(v))
		v = (uint32_t)(domain_now() / 64) ^ (uint32_t)getpid() << 7;
	return RXE_SRQN_FIRST + v % BLOCKS * FOREIGN_BLOCK;
}

/* A listening socket and, in @first, the block that it stands for; or -errno. */
static int listen_somewhere(unsigned int ifindex, uint32_t *first)
{
	struct sockaddr_un addr;
	socklen_t len;
	int fd, err;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	for (int i = 0; i < CLAIM_TRIES; i++) {
		*first = random_block();
		len = domain_addr(&addr, ifindex, *first);
		if (!bind(fd, (struct sockaddr *)&addr, len))
			break;
		if (errno != EADDRINUSE || i + 1 == CLAIM_TRIES)
			goto err_close;
	}
	if (!listen(fd, BACKLOG))
		return fd;

err_close:
	err = -errno;
	close(fd);
	return err;
}

static int claim_locked(struct engine *e, unsigned int ifindex, uint32_t *first)
{
	int fd, err = service.running ? 0 : start();

	if (err)
		return err;
	fd = listen_somewhere(ifindex, first);
	if (fd < 0)
		return fd;
	pthread_mutex_lock(&service.lock);
	err = source_add(fd, e, NULL);
	pthread_mutex_unlock(&service.lock);
	return err;
}

uint32_t domain_claim(struct engine *e, unsigned int ifindex)
{
	uint32_t first = 0;
	int err;

	pthread_mutex_lock(&service.control);
	err = claim_locked(e, ifindex, &first);
	pthread_mutex_unlock(&service.control);
	if (!err)
		return first;
	log_warn("XRC SRQs cannot be offered to other processes: %s", strerror(-err));
	return 0;
}

/* Return: whether there is nothing left to serve. */
static bool close_sources(const struct engine *e)
{
	struct source *s, *tmp;
	bool empty;

	pthread_mutex_lock(&service.lock);
	cds_list_for_each_entry_safe (s, tmp, &service.sources, node)
		if (s->engine == e)
			source_close(s);
	empty = cds_list_empty(&service.sources);
	pthread_mutex_unlock(&service.lock);
	return empty;
}

void domain_detach(struct engine *e)
{
	uint64_t one = 1;

	domain_ask_detach(e);
	urcu_bp_register_thread();
	pthread_mutex_lock(&service.control);
	if (close_sources(e) && service.running) {
		atomic_store(&service.stop, true);
		if (write(service.wake_fd, &one, sizeof(one)) != sizeof(one))
			log_error("the service thread cannot be woken: %s", strerror(errno));
		pthread_join(service.thread, NULL);
		close_fds();
		service.running = false;
	}
	pthread_mutex_unlock(&service.control);
}

/* --- fork --- */

void domain_fork_prepare(void)
{
	domain_ask_fork_prepare();
	pthread_mutex_lock(&service.control);
	pthread_mutex_lock(&service.lock);
}

void domain_fork_parent(void)
{
	pthread_mutex_unlock(&service.lock);
	pthread_mutex_unlock(&service.control);
	domain_ask_fork_parent();
}

void domain_fork_child(void)
{
	struct source *s, *tmp;

	/* Peers stay as they are: their engine is the parent's, and its receives complete there. */
	cds_list_for_each_entry_safe (s, tmp, &service.sources, node) {
		cds_list_del(&s->node);
		close(s->fd);
		free(s);
	}
	service.running = false;
	close_fds();
	pthread_mutex_unlock(&service.lock);
	pthread_mutex_unlock(&service.control);
	domain_ask_fork_child();
}
