/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The runner's side: questions to the processes that own SRQs. Theory in domain.h.
 *
 * There is one connection to each block that was ever asked. A question has a new id, and only the answer with
 * that id is taken.
 *
 * The lock makes questions of several lanes wait for each other; each waits DOMAIN_PATIENCE at most. An owner that
 * was silent once is not waited for again until it has answered that question: the lane that asks has other
 * connections to serve. The caller holds a lane, so a program's thread must not be cancelled in here.
 *
 * An answer that comes late is kept for the packet that it is about, which the requester repeats: under the same
 * sequence number, so that no other packet gets it. Were the question put again, the owner would have to be
 * quick once in each of the requester's few tries; on a busy machine, where it gets no processor for longer than
 * DOMAIN_PATIENCE now and then, connections failed though nobody had stopped.
 */
#include "node/domain.h"

#include "node/domain_addr.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <urcu/list.h>

struct connection {
	struct engine *engine;
	unsigned int ifindex;
	uint32_t first; /* of the block */
	int fd;
	bool ended;	  /* our side; it stays until the owner has closed his */
	bool silent;	  /* the last question was not answered in time, and has not been since */
	uint64_t id, seq; /* of that question; seq 0: it was no FOREIGN_EXECUTE */
	struct foreign_reply late;
	uint64_t late_seq; /* of the packet that @late is about; 0: of none */
	struct cds_list_head node;
};

static struct {
	pthread_mutex_t lock;
	struct cds_list_head connections;
	uint64_t id; /* of the last question */
} runner = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.connections = CDS_LIST_HEAD_INIT(runner.connections),
};

static void disconnect(struct connection *c)
{
	cds_list_del(&c->node);
	close(c->fd);
	free(c);
}

static int make_blocking(int fd)
{
	return fcntl(fd, F_SETFL, 0);
}

/* Return: a socket; -ENOENT: nobody listens, or another user does; -ETIMEDOUT: not now. */
static int open_socket(unsigned int ifindex, uint32_t first)
{
	struct timeval patience = {.tv_usec = DOMAIN_PATIENCE / 1000};
	struct sockaddr_un addr;
	socklen_t len = domain_addr(&addr, ifindex, first);
	int fd, flags = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;

	fd = socket(AF_UNIX, flags, 0);
	if (fd < 0) {
		log_warn("cannot ask the owner of SRQs 0x%06x: %s", first, strerror(errno));
		return -ETIMEDOUT;
	}
	if (connect(fd, (struct sockaddr *)&addr, len)) {
		/* EAGAIN: more are waiting to be accepted than the owner's backlog takes. */
		int err = errno == ECONNREFUSED ? -ENOENT : -ETIMEDOUT;

		close(fd);
		return err;
	}
	/* Sends say themselves that they do not block; an answer is worth waiting for. */
	if (!domain_peer_is_us(fd) || make_blocking(fd) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience))) {
		close(fd);
		return -ENOENT;
	}
	return fd;
}

/* The owner of an ended connection has read all there was, and closed it. */
static bool has_closed(const struct connection *c)
{
	char b[sizeof(struct foreign_reply)];
	ssize_t n;

	do
		n = recv(c->fd, b, sizeof(b), MSG_DONTWAIT);
	while (n > 0 || (n < 0 && errno == EINTR));
	return n == 0 || errno != EAGAIN;
}

static struct connection *find(const struct engine *e, uint32_t first)
{
	struct connection *c;

	cds_list_for_each_entry (c, &runner.connections, node)
		if (c->engine == e && c->first == first)
			return c;
	return NULL;
}

static int connection_get(struct engine *e, unsigned int ifindex, uint32_t first,
			  struct connection **out)
{
	struct connection *c = find(e, first);
	int fd;

	if (c && c->ended) {
		if (!has_closed(c))
			return -ETIMEDOUT;
		disconnect(c);
		c = NULL;
	}
	if (!c) {
		fd = open_socket(ifindex, first);
		if (fd < 0)
			return fd;
		c = malloc(sizeof(*c));
		if (!c) {
			close(fd);
			return -ETIMEDOUT;
		}
		*c = (struct connection){.engine = e, .ifindex = ifindex, .first = first, .fd = fd};
		cds_list_add(&c->node, &runner.connections);
	}
	*out = c;
	return 0;
}

/* 0, -ETIMEDOUT (no room), -ENOENT (the owner is gone) */
static int send_request(const struct connection *c, struct foreign_request *req,
			const void *payload)
{
	struct iovec iov[2] = {{req, sizeof(*req)}, {(void *)payload, req->payload_len}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = req->payload_len ? 2 : 1};
	ssize_t n;

	do
		n = sendmsg(c->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	return errno == EPIPE || errno == ECONNRESET ? -ENOENT : -ETIMEDOUT;
}

/* 0, -ETIMEDOUT, -ENOENT (the owner is gone) */
static int wait_reply(const struct connection *c, const struct foreign_request *req,
		      struct foreign_reply *reply, void *data)
{
	struct iovec iov[2] = {{reply, sizeof(*reply)}, {data, data ? req->length : 0}};
	uint64_t until = domain_now() + DOMAIN_PATIENCE;
	bool over = false;

	for (;;) {
		struct msghdr msg = {.msg_iov = iov, .msg_iovlen = data ? 2 : 1};
		ssize_t n = recvmsg(c->fd, &msg, over ? MSG_DONTWAIT : 0);

		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
			return -ENOENT;
		if (n >= (ssize_t)sizeof(*reply) && reply->id == req->id &&
		    (size_t)n == sizeof(*reply) + reply->data_len)
			return 0;
		if (over && n < 0 && errno == EAGAIN)
			return -ETIMEDOUT;
		/*
		 * A signal: the time that is left is not extended. If it was a stop the time may be over and
		 * the answer there.
		 */
		over = domain_now() >= until;
	}
}

/* A silent owner has answered, which is kept; or is gone. */
static bool speaks_again(struct connection *c)
{
	struct foreign_reply r;
	ssize_t n;

	do
		n = recv(c->fd, &r, sizeof(r), MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n == (ssize_t)sizeof(r) && r.id == c->id && c->seq) {
		c->late = r;
		c->late_seq = c->seq;
	}
	return true;
}

/* The answer to an earlier question about the same packet. */
static bool take_late(struct connection *c, const struct foreign_request *req,
		      struct foreign_reply *reply)
{
	if (req->what != FOREIGN_EXECUTE || !c->late_seq || c->late_seq != req->seq)
		return false;
	*reply = c->late;
	c->late_seq = 0;
	return true;
}

static int ask(struct connection *c, struct foreign_request *req, const void *payload,
	       struct foreign_reply *reply, void *data)
{
	int err;

	if (c->silent)
		c->silent = !speaks_again(c);
	if (take_late(c, req, reply))
		return 0;
	if (c->silent)
		return -ETIMEDOUT;
	req->id = ++runner.id;
	err = send_request(c, req, payload);
	if (err)
		return err;
	err = wait_reply(c, req, reply, data);
	c->silent = err == -ETIMEDOUT;
	c->id = req->id;
	c->seq = req->what == FOREIGN_EXECUTE ? req->seq : 0;
	return err;
}

int domain_ask(struct engine *e, unsigned int ifindex, struct foreign_request *req,
	       const void *payload, struct foreign_reply *reply, void *data)
{
	struct connection *c;
	int err, cancel, saved = errno;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&runner.lock);
	err = connection_get(e, ifindex, req->srqn & ~(FOREIGN_BLOCK - 1), &c);
	if (!err) {
		err = ask(c, req, payload, reply, data);
		if (err == -ENOENT)
			disconnect(c);
	}
	pthread_mutex_unlock(&runner.lock);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
	return err;
}

void domain_tell(struct engine *e, struct foreign_request *req)
{
	uint32_t first = req->srqn & ~(FOREIGN_BLOCK - 1);
	struct connection *c, *tmp;
	int err, cancel, saved = errno;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&runner.lock);
	cds_list_for_each_entry_safe (c, tmp, &runner.connections, node) {
		if (c->engine != e || c->ended)
			continue;
		err = send_request(c, req, NULL);
		if (err == -ENOENT) {
			disconnect(c);
		} else if (err && c->first == first) {
			shutdown(c->fd, SHUT_WR);
			c->ended = true;
		}
	}
	pthread_mutex_unlock(&runner.lock);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
}

void domain_ask_detach(struct engine *e)
{
	struct connection *c, *tmp;

	pthread_mutex_lock(&runner.lock);
	cds_list_for_each_entry_safe (c, tmp, &runner.connections, node)
		if (c->engine == e)
			disconnect(c);
	pthread_mutex_unlock(&runner.lock);
}

void domain_ask_fork_prepare(void)
{
	pthread_mutex_lock(&runner.lock);
}

void domain_ask_fork_parent(void)
{
	pthread_mutex_unlock(&runner.lock);
}

void domain_ask_fork_child(void)
{
	struct connection *c, *tmp;

	cds_list_for_each_entry_safe (c, tmp, &runner.connections, node)
		disconnect(c);
	pthread_mutex_unlock(&runner.lock);
}
