// SPDX-License-Identifier: Apache-2.0
/*
 * Loaded into QEMU by LD_PRELOAD: CLOCK_MONOTONIC runs HOWDAH_DILATION times
 * slower for it, and what it waits for by that clock takes that many times
 * longer. All timers of a machine that is emulated are made of this clock, so
 * a second of the machine lasts that many seconds here, and to the machine its
 * processor and its wires are that many times faster ("time dilation": Gupta et
 * al., To Infinity and Beyond: Time-Warped Network Emulation, NSDI 2006).
 *
 * The clock is divided, not started anew: machines that are started at different
 * times agree on it. The time stamp counter stays the host's; a kernel measures
 * its frequency against a timer when it boots, and finds it higher.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>

#include "preload.h"

#define NS_PER_S 1000000000ll

static int64_t dilation = 1;
static int (*real_clock_gettime)(clockid_t, struct timespec *);
static int (*real_ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
static int (*real_poll)(struct pollfd *, nfds_t, int);
static int (*real_epoll_wait)(int, struct epoll_event *, int, int);
static int (*real_clock_nanosleep)(clockid_t, int, const struct timespec *, struct timespec *);
static int (*real_cond_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

static int64_t to_ns(const struct timespec *time)
{
	return time->tv_sec * NS_PER_S + time->tv_nsec;
}

static struct timespec to_timespec(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };
}

/* No longer than 68 years, by which some programs mean for ever. */
static struct timespec longer(const struct timespec *limit)
{
	if (limit->tv_sec >= INT32_MAX / dilation)
		return (struct timespec){ .tv_sec = INT32_MAX };
	return to_timespec(to_ns(limit) * dilation);
}

static bool is_dilated(clockid_t id)
{
	return id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_RAW || id == CLOCK_MONOTONIC_COARSE || id == CLOCK_BOOTTIME;
}

__attribute__((constructor)) static void begin(void)
{
	const char *written = getenv("HOWDAH_DILATION");

	real_clock_gettime = next("clock_gettime");
	real_ppoll = next("ppoll");
	real_poll = next("poll");
	real_epoll_wait = next("epoll_wait");
	real_clock_nanosleep = next("clock_nanosleep");
	real_cond_timedwait = next("pthread_cond_timedwait");
	if (written)
		dilation = atoll(written);
	if (dilation < 1) {
		fprintf(stderr, "howdah: HOWDAH_DILATION is %s\n", written);
		abort();
	}
}

int clock_gettime(clockid_t id, struct timespec *time)
{
	int status;

	if (!real_clock_gettime) /* another constructor asks before ours has run */
		begin();
	status = real_clock_gettime(id, time);
	if (status == 0 && is_dilated(id))
		*time = to_timespec(to_ns(time) / dilation);
	return status;
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *limit, const sigset_t *mask)
{
	struct timespec own;

	if (limit) {
		own = longer(limit);
		limit = &own;
	}
	return real_ppoll(fds, count, limit, mask);
}

/* What programs that were compiled with FORTIFY_SOURCE call instead. */
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *limit, const sigset_t *mask, size_t size)
{
	if (size / sizeof(*fds) < count)
		abort();
	return ppoll(fds, count, limit, mask);
}

static int longer_ms(int limit_ms)
{
	int64_t found = limit_ms * dilation;

	return limit_ms < 0 ? limit_ms : found > INT32_MAX ? INT32_MAX : (int)found;
}

int poll(struct pollfd *fds, nfds_t count, int limit_ms)
{
	return real_poll(fds, count, longer_ms(limit_ms));
}

int epoll_wait(int descriptor, struct epoll_event *events, int most, int limit_ms)
{
	return real_epoll_wait(descriptor, events, most, longer_ms(limit_ms));
}

int clock_nanosleep(clockid_t id, int flags, const struct timespec *limit, struct timespec *rest)
{
	struct timespec own = is_dilated(id) ? longer(limit) : *limit;
	int status = real_clock_nanosleep(id, flags, &own, rest);

	if (status == EINTR && rest && is_dilated(id) && !(flags & TIMER_ABSTIME))
		*rest = to_timespec(to_ns(rest) / dilation);
	return status;
}

int nanosleep(const struct timespec *limit, struct timespec *rest)
{
	int status = clock_nanosleep(CLOCK_MONOTONIC, 0, limit, rest);

	if (status == 0)
		return 0;
	errno = status;
	return -1;
}

/*
 * A condition's clock cannot be asked for. The end of the wait tells: by
 * CLOCK_REALTIME it is some 1.7e9 s, which no machine has been up for.
 */
int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *end)
{
	struct timespec own;

	if (end->tv_sec < 1000000000) {
		own = longer(end);
		end = &own;
	}
	return real_cond_timedwait(condition, mutex, end);
}
