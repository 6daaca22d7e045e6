/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The helper thread: progress for programs that do not poll.
 *
 * A program that polls does all work in its own thread, and a second thread at the same socket would only
 * be in its way. A program that waits for an event, or spins on memory without any verbs call
 * (ib_write_lat), needs somebody who receives for it. One thread per process does that for all
 * devices, beside the program's threads, which look at lanes that they do not poll (look_after.c).
 * Each lane of a device is in one of two modes:
 *
 *	          the program has polled its queues without a break for `required`
 *	   SLEEP ------------------------------------------------------> APP
 *	   epoll: link->fd, the next    <------------------------------   only a look at the
 *	   deadline, the wake eventfd     no empty poll between two        poll counter, each 2 ms
 *	                                  looks, or a CQ was armed
 *
 * In SLEEP the thread blocks in the kernel, without a periodic wake-up, and never spins: beside a
 * program that spins on memory a blocking helper delivers in 35 us, a spinning one in 8 ms (measured on
 * two cores for two processes, 2026-11-29). ib_write_lat polls its CQ for some 20 us in each round,
 * so a stretch of polling must be ten times that before the socket is left to the program. If the
 * program stopped and packets lay waiting at the look, the stretch was no sign of a polling program:
 * the next one must be twice as long. Once APP has lasted a hundred times `required`, that is halved.
 *
 * Sleeping and waking. A lane publishes its next deadline when it is released. The helper stores
 * lane->sleep_until, then a full fence, then reads lane->deadline once more before it sleeps; the
 * releasing thread stores the deadline, then a full fence, then reads sleep_until and calls
 * engine_ops.wake() when it is later than the deadline: one of the two sees the other (Dekker). At work in
 * SLEEP sleep_until is LANE_AWAKE. In APP it is 0, since the program's polls keep the deadlines, and tells the
 * lane that acknowledges may wait for the program's next post.
 *
 * A lane may be held by a thread that is not running just now while its socket is readable, or its link may
 * have no room: then there is no reason to sleep and nothing that can be done. After three such rounds
 * the thread waits 10 us on the wake descriptor alone. A holder finds PENDING set, so nothing is lost.
 *
 * The lock is held during a pass over the devices and never while sleeping; attach and detach take
 * it. The thread takes no lock of the face that is held around progress_detach(), which joins it.
 */
#include "verbs/progress.h"

#include "base/log.h"
#include "base/thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Passes over one lane before the others get their turn. */
#define HELPER_MAX_PASSES    64
#define HELPER_FRUITLESS_MAX 3
#define HELPER_HOLD_OFF	     10000
/* A helper that had work sleeps no longer than this, ns: see serve(). */
#define HELPER_LINGER 10000000

static struct {
	pthread_mutex_t lock; /* ports, and whether a pass is under way */
	struct cds_list_head ports;
	pthread_t thread;
	bool running;
	atomic_bool stop;
	atomic_bool woken; /* a token is in wake_fd */
	int epoll_fd, wake_fd, portmon_fd;
} helper = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.ports = CDS_LIST_HEAD_INIT(helper.ports),
	.epoll_fd = -1,
	.wake_fd = -1,
	.portmon_fd = -1,
};

void progress_wake(void)
{
	int saved = errno;
	uint64_t one = 1;

	if (atomic_exchange(&helper.woken, true))
		return;
	if (write(helper.wake_fd, &one, sizeof(one)) < 0)
		errno = saved;
}

void progress_take_over(struct progress_lane *pl)
{
	enum progress_mode expected = PROGRESS_SLEEP;

	if (atomic_compare_exchange_strong(&pl->mode, &expected, PROGRESS_APP))
		progress_wake();
}

static void give_to_helper(struct progress_lane *pl)
{
	enum progress_mode expected = PROGRESS_APP;

	if (atomic_load_explicit(&pl->mode, memory_order_relaxed) == PROGRESS_SLEEP)
		return;
	if (atomic_compare_exchange_strong(&pl->mode, &expected, PROGRESS_SLEEP))
		progress_wake();
}

void progress_blocking(struct progress *p, uint32_t lanes)
{
	struct progress_lane *pl;
	uint32_t others;

	if (!atomic_load_explicit(&p->attached, memory_order_acquire))
		return;
	lanes = lanes ? lanes : p->all;
	others = atomic_load_explicit(&p->engine->lanes_used, memory_order_relaxed) & ~lanes;
	if (others)
		others = progress_unattended(p, &p->lanes[__builtin_ctz(lanes)], others, now_ns());
	for (; lanes; lanes &= lanes - 1) {
		pl = &p->lanes[__builtin_ctz(lanes)];
		atomic_store_explicit(&pl->polled, PROGRESS_WAITED, memory_order_relaxed);
		give_to_helper(pl);
	}
	for (; others; others &= others - 1) {
		pl = &p->lanes[__builtin_ctz(others)];
		if (atomic_load_explicit(&pl->last_by, memory_order_relaxed) == this_thread())
			give_to_helper(pl);
	}
}

static void watch(struct progress_lane *pl, bool on)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = pl};
	int fd = pl->lane->link->fd;

	if (pl->watched == on || fd < 0)
		return;
	if (epoll_ctl(helper.epoll_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, fd, &ev))
		log_error("cannot watch the socket: %s", strerror(errno));
	else
		pl->watched = on;
}

/* Runs a lane until it has nothing left to do. Return: whether it did anything. */
static bool drain(struct lane *lane)
{
	bool any = false;

	for (int i = 0; i < HELPER_MAX_PASSES && lane_run(lane, now_ns(), LANE_HELPER); i++)
		any = true;
	return any;
}

/*
 * SLEEP: work until there is none. Return: when to come back at the latest.
 *
 * A deadline that is nearer than sleep_until costs the thread that sets it a system call. In a ping-pong
 * every post sets one, 67 ms ahead, and every answer clears it: so while there is traffic the helper
 * promises to be back in HELPER_LINGER anyway, and without traffic it sleeps for good.
 */
static uint64_t serve(struct progress_lane *pl, bool *hold_off)
{
	struct lane *lane = pl->lane;
	uint64_t deadline, linger = TIMER_NEVER;
	bool any, held;

	atomic_store_explicit(&lane->sleep_until, LANE_AWAKE, memory_order_relaxed);
	any = drain(lane);
	if (any)
		linger = now_ns() + HELPER_LINGER;
	deadline = atomic_load_explicit(&lane->deadline, memory_order_relaxed);
	deadline = min_t(uint64_t, deadline, linger);
	atomic_store_explicit(&lane->sleep_until, deadline, memory_order_relaxed);
	/* Pairs with the fence between deadline and sleep_until when a lane is released. */
	atomic_thread_fence(memory_order_seq_cst);
	deadline = atomic_load_explicit(&lane->deadline, memory_order_relaxed);
	deadline = min_t(uint64_t, deadline, linger);
	held = atomic_load_explicit(&lane->word, memory_order_relaxed) != LANE_FREE;
	/* Nothing done, and no reason to sleep: the lane is another's, or the link has no room. */
	if (any || !((held && pl->fired) || deadline <= now_ns()))
		pl->fruitless = 0;
	else if (++pl->fruitless >= HELPER_FRUITLESS_MAX)
		*hold_off = true;
	pl->fired = false;
	return deadline;
}

static void enter_sleep(struct progress_lane *pl)
{
	atomic_store(&pl->mode, PROGRESS_SLEEP);
	/* The stretch that led here is over; a new one must begin from nothing. */
	atomic_store_explicit(&pl->stretch, now_ns(), memory_order_relaxed);
}

/* APP: does the program still poll? Return: when to look again. */
static uint64_t look(struct progress_lane *pl, bool woken)
{
	uint64_t now = now_ns(), polls, required;

	polls = atomic_load_explicit(&pl->polls, memory_order_relaxed);
	if (!pl->app_from) {
		pl->app_from = now;
		pl->look_at = now + PROGRESS_LOOK;
		pl->seen = polls;
		atomic_store(&pl->lane->sleep_until, 0);
	}
	/* A lane's holder asked for a successor. */
	if (woken)
		lane_run(pl->lane, now, LANE_HELPER);
	if ((int64_t)(now - pl->look_at) < 0)
		return pl->look_at;
	pl->look_at = now + PROGRESS_LOOK;
	required = atomic_load_explicit(&pl->required, memory_order_relaxed);
	if (polls != pl->seen) {
		pl->seen = polls;
		if (now - pl->app_from > 100 * required && required > PROGRESS_REQUIRED_MIN) {
			atomic_store_explicit(&pl->required, (uint32_t)required / 2,
					      memory_order_relaxed);
			pl->app_from = now;
		}
		return pl->look_at;
	}
	enter_sleep(pl);
	if (drain(pl->lane) && required < PROGRESS_REQUIRED_MAX)
		atomic_store_explicit(&pl->required, (uint32_t)required * 2, memory_order_relaxed);
	return now;
}

/* One lane's turn. Return: when it wants the next. */
static uint64_t turn(struct progress_lane *pl, bool woken, bool *hold_off)
{
	uint64_t next;

	if (atomic_load(&pl->mode) == PROGRESS_APP) {
		watch(pl, false);
		next = look(pl, woken);
		if (atomic_load(&pl->mode) == PROGRESS_APP)
			return next;
	}
	pl->app_from = 0;
	watch(pl, true);
	return serve(pl, hold_off);
}

static void on_port(void *arg, unsigned int ifindex, enum portmon_what what)
{
	struct progress *p;

	cds_list_for_each_entry (p, &helper.ports, node)
		if (!ifindex || ifindex == p->ifindex)
			p->port_changed(p, what);
}

static void note_events(const struct epoll_event *v, int n, bool *port)
{
	struct progress *p;

	for (int i = 0; i < n; i++) {
		if (v[i].data.ptr == &helper.portmon_fd)
			*port = true;
		/* It may have been detached since: only those in the list are touched. */
		cds_list_for_each_entry (p, &helper.ports, node)
			for (unsigned int k = 0; k < p->engine->nlanes; k++)
				if (v[i].data.ptr == &p->lanes[k])
					p->lanes[k].fired = true;
	}
}

static int sleep_all(struct epoll_event *v, int max, uint64_t next)
{
	uint64_t now = now_ns(), ns;
	struct timespec ts;
	int n;

	if (next == TIMER_NEVER)
		return epoll_wait(helper.epoll_fd, v, max, -1);
	ns = next > now ? next - now : 0;
	ts = (struct timespec){(time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC)};
	n = epoll_pwait2(helper.epoll_fd, v, max, &ts, NULL);
	if (n < 0 && errno == ENOSYS) /* before Linux 5.11 */
		n = epoll_wait(helper.epoll_fd, v, max,
			       (int)min_t(uint64_t, (ns + 999999) / 1000000, 1000000));
	return n;
}

/* Without the sockets: someone else holds the lane and will see to them. */
static void sleep_apart(void)
{
	struct pollfd p[2] = {{.fd = helper.wake_fd, .events = POLLIN},
			      {.fd = helper.portmon_fd, .events = POLLIN}};
	struct timespec ts = {0, HELPER_HOLD_OFF};

	ppoll(p, 2, &ts, NULL);
}

static void *helper_main(void *arg)
{
	struct epoll_event v[16];
	bool woken = true, port = false, hold_off;
	struct progress *p;
	uint64_t next, one;
	int n = 0;

	pthread_setname_np(pthread_self(), "rxe-helper");
	/* Deadlines are as short as 20 us; the default slack is 50. */
	prctl(PR_SET_TIMERSLACK, 1000);
	while (!atomic_load(&helper.stop)) {
		pthread_mutex_lock(&helper.lock);
		next = TIMER_NEVER;
		hold_off = false;
		note_events(v, n, &port);
		if (port)
			portmon_read(helper.portmon_fd, on_port, NULL);
		cds_list_for_each_entry (p, &helper.ports, node)
			for (unsigned int i = 0; i < p->engine->nlanes; i++)
				next = min_t(uint64_t, next, turn(&p->lanes[i], woken, &hold_off));
		pthread_mutex_unlock(&helper.lock);

		n = 0;
		if (hold_off)
			sleep_apart();
		else
			n = sleep_all(v, ARRAY_SIZE(v), next);
		n = n < 0 ? 0 : n;
		port = false;
		/* First the flag, then the look: whoever sets it again afterwards gives a new token. */
		woken = atomic_load(&helper.woken);
		if (woken) {
			if (read(helper.wake_fd, &one, sizeof(one)) < 0)
				woken = false; /* its token is still on the way */
			else
				atomic_store(&helper.woken, false);
		}
	}
	return NULL;
}

static int epoll_add(int fd, void *tag)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = tag};

	return epoll_ctl(helper.epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static void close_fds(void)
{
	int *fds[] = {&helper.epoll_fd, &helper.wake_fd, &helper.portmon_fd};

	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

static int open_fds(void)
{
	int err;

	helper.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	helper.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (helper.epoll_fd < 0 || helper.wake_fd < 0) {
		err = -errno;
		goto err_close;
	}
	err = epoll_add(helper.wake_fd, &helper.wake_fd);
	if (err)
		goto err_close;
	/* A device works without events of its port too. */
	helper.portmon_fd = portmon_open();
	if (helper.portmon_fd < 0 || epoll_add(helper.portmon_fd, &helper.portmon_fd))
		log_warn("interfaces cannot be watched: no port events");
	return 0;

err_close:
	close_fds();
	return err;
}

static int start(void)
{
	int err = open_fds();

	if (err)
		return err;
	atomic_store(&helper.stop, false);
	atomic_store(&helper.woken, false);
	err = thread_start(&helper.thread, helper_main);
	if (err) {
		close_fds();
		return err;
	}
	helper.running = true;
	return 0;
}

static void stop(void)
{
	atomic_store(&helper.stop, true);
	atomic_store(&helper.woken, false);
	progress_wake();
	pthread_join(helper.thread, NULL);
	helper.running = false;
	close_fds();
}

static void lane_init(struct progress_lane *pl, struct lane *lane)
{
	pl->lane = lane;
	pl->watched = pl->fired = false;
	pl->fruitless = 0;
	pl->app_from = 0;
	atomic_store(&pl->mode, PROGRESS_SLEEP);
	atomic_store(&pl->required, PROGRESS_REQUIRED_MIN);
	atomic_store(&pl->last, 0);
	atomic_store(&pl->polled, 0);
	atomic_store(&pl->fruit, 0);
	atomic_store(&pl->others_at, 0);
	atomic_store(&pl->foreign_until, 0);
	atomic_store(&lane->sleep_until, LANE_AWAKE);
}

int progress_attach(struct progress *p)
{
	int err;

	if (!helper.running) {
		err = start();
		if (err)
			return err;
	}
	p->all = 0;
	for (unsigned int i = 0; i < p->engine->nlanes; i++) {
		lane_init(&p->lanes[i], p->engine->lanes[i]);
		p->all |= 1u << i;
	}
	pthread_mutex_lock(&helper.lock);
	cds_list_add_tail(&p->node, &helper.ports);
	pthread_mutex_unlock(&helper.lock);
	atomic_store(&p->attached, true);
	progress_wake();
	return 0;
}

void progress_detach(struct progress *p)
{
	bool last;

	if (!atomic_exchange(&p->attached, false))
		return;
	pthread_mutex_lock(&helper.lock);
	cds_list_del(&p->node);
	for (unsigned int i = 0; i < p->engine->nlanes; i++)
		watch(&p->lanes[i], false);
	last = cds_list_empty(&helper.ports);
	pthread_mutex_unlock(&helper.lock);
	if (last)
		stop();
}

void progress_fork_prepare(void)
{
	pthread_mutex_lock(&helper.lock);
}

void progress_fork_parent(void)
{
	pthread_mutex_unlock(&helper.lock);
}

void progress_fork_child(void)
{
	struct progress *p;

	cds_list_for_each_entry (p, &helper.ports, node)
		atomic_store(&p->attached, false);
	CDS_INIT_LIST_HEAD(&helper.ports);
	helper.running = false;
	close_fds();
	pthread_mutex_unlock(&helper.lock);
}
