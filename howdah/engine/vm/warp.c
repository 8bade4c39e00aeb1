// SPDX-License-Identifier: Apache-2.0
/*
 * Loaded into QEMU by LD_PRELOAD: the main loop looks at a machine in virtual
 * time only when the processor's instructions are counted.
 *
 * While the machine is idle QEMU's main loop moves its clock on to the next
 * timer (icount_start_warp_timer()). It takes the machine for idle as soon as
 * the processor's thread has met HLT; that thread counts what it executed only
 * then (icount_process_data()), without a lock. A main loop that wakes up in
 * between moves the clock by as much too far as is not counted yet, timers
 * are late by that, and reruns differ by nanoseconds. Here the main loop, when
 * it has waited and has the big lock again, goes on only once the thread of the
 * processor wants that lock, too, or sleeps: both come after counting.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.h"

static int (*real_lock)(pthread_mutex_t *);
static int (*real_wait)(pthread_cond_t *, pthread_mutex_t *);
static int (*real_ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);

static _Thread_local bool is_main;
static _Thread_local bool is_processor;
static _Thread_local bool has_polled;

/*
 * The big lock: the main loop's first wait for a condition is that for the
 * processor's thread to be there. It holds the lock from before that thread is
 * made, so the thread finds this set.
 */
static _Atomic(pthread_mutex_t *) big_lock;

/* The processor's thread sleeps or asks for the big lock; does neither; does neither, and the main loop waits for it. */
enum { RESTS, EXECUTES, IS_AWAITED };
static atomic_uint processor;

__attribute__((constructor)) static void begin(void)
{
	if (real_lock)
		return;
	real_wait = next("pthread_cond_wait");
	real_ppoll = next("ppoll");
	real_lock = next("pthread_mutex_lock");
	is_main = true;
}

static void rest(void)
{
	if (atomic_exchange(&processor, RESTS) == IS_AWAITED)
		syscall(SYS_futex, &processor, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void wait_for_rest(void)
{
	unsigned int found = EXECUTES;

	while (!atomic_compare_exchange_strong(&processor, &found, IS_AWAITED)) {
		if (found == RESTS)
			return;
		found = EXECUTES;
	}
	while (atomic_load(&processor) == IS_AWAITED)
		syscall(SYS_futex, &processor, FUTEX_WAIT_PRIVATE, IS_AWAITED, NULL, NULL, 0);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int status;

	if (!real_lock) /* another constructor locks before ours has run */
		begin();
	if (is_processor && mutex == atomic_load(&big_lock)) {
		rest();
		status = real_lock(mutex);
		atomic_store(&processor, EXECUTES);
		return status;
	}
	status = real_lock(mutex);
	if (has_polled && mutex == atomic_load(&big_lock)) {
		has_polled = false;
		wait_for_rest();
	}
	return status;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	int status;

	if (!real_wait)
		begin();
	if (is_main && !atomic_load(&big_lock))
		atomic_store(&big_lock, mutex);
	else if (!is_main && mutex == atomic_load(&big_lock))
		is_processor = true;
	if (!is_processor)
		return real_wait(condition, mutex);
	rest();
	status = real_wait(condition, mutex);
	atomic_store(&processor, EXECUTES);
	return status;
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *limit, const sigset_t *mask)
{
	int status = real_ppoll(fds, count, limit, mask);

	has_polled = is_main;
	return status;
}

/* What programs that were compiled with FORTIFY_SOURCE call instead. */
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *limit, const sigset_t *mask, size_t size)
{
	if (size / sizeof(*fds) < count)
		abort();
	return ppoll(fds, count, limit, mask);
}
