// SPDX-License-Identifier: Apache-2.0
/*
 * A main loop and a processor's thread that take turns as QEMU's do in virtual
 * time, with the moment between HLT and the counting of instructions stretched.
 * Prints how often the main loop, with the big lock, saw an idle machine whose
 * instructions were not counted, and how often one whose were.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HALTS 200
#define EXECUTES_US 100
#define COUNTS_US 300

static pthread_mutex_t big_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t other_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_there = PTHREAD_COND_INITIALIZER;
static pthread_cond_t goes_on = PTHREAD_COND_INITIALIZER;
static bool there, stopped = true;
static atomic_bool halted, counted;
static int notice[2];

static void *processor(void *unused)
{
	pthread_mutex_lock(&big_lock);
	there = true;
	pthread_cond_signal(&is_there);
	while (stopped)
		pthread_cond_wait(&goes_on, &big_lock);
	for (;;) {
		pthread_mutex_unlock(&big_lock);
		usleep(EXECUTES_US);
		pthread_mutex_lock(&big_lock); /* a device */
		pthread_mutex_unlock(&big_lock);
		halted = true;
		pthread_mutex_lock(&other_lock); /* one that says nothing of where the thread is */
		usleep(COUNTS_US);
		pthread_mutex_unlock(&other_lock);
		counted = true;
		pthread_mutex_lock(&big_lock);
		if (write(notice[1], "", 1) != 1)
			abort();
		while (halted)
			pthread_cond_wait(&goes_on, &big_lock);
		counted = false;
	}
	return unused;
}

int main(void)
{
	struct timespec limit = { .tv_nsec = 50000 };
	struct pollfd awaited = { .events = POLLIN };
	int early = 0, right = 0;
	pthread_t thread;
	char byte;

	if (pipe(notice))
		return 1;
	awaited.fd = notice[0];
	pthread_mutex_lock(&big_lock);
	if (pthread_create(&thread, NULL, processor, NULL))
		return 1;
	while (!there)
		pthread_cond_wait(&is_there, &big_lock);
	stopped = false;
	pthread_cond_broadcast(&goes_on);
	while (right < HALTS) {
		pthread_mutex_unlock(&big_lock);
		if (ppoll(&awaited, 1, &limit, NULL) > 0 && read(notice[0], &byte, 1) != 1)
			return 1;
		pthread_mutex_lock(&big_lock);
		if (!halted)
			continue;
		if (!counted) {
			early++;
			continue;
		}
		right++;
		halted = false;
		pthread_cond_broadcast(&goes_on);
	}
	printf("%d %d\n", early, right);
	return 0;
}
