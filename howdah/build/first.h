/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the first process of every guest does once its root is there: run one
 * program, wait for it within a limit of the guest's own time, and write how it
 * ended to /howdah/out/guest-exit.json. Whatever goes wrong is written to the
 * console and ends the guest by a kernel panic.
 *
 * HOWDAH_CLOCK_LIMIT_S (from the kernel's command line) is how many seconds of
 * the guest's time the program may take.
 */
#ifndef HOWDAH_FIRST_H
#define HOWDAH_FIRST_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CLOCK_LIMIT_S	(30 * 24 * 3600)
#define REPORT		"/howdah/out/guest-exit.json"

#define COMMON_ENVIRONMENT						\
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin",	\
	"HOME=/root", "LANG=C.UTF-8", "TERM=dumb", "SHELL=/bin/sh",	\
	"PYTHONPATH=/howdah/in", "PYTHONHASHSEED=0",			\
	"PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1"

/* The wait status of the program; without one if its time ran out. */
struct ending {
	int status;
	bool too_late;
};

static sigset_t child_signal;

static void fail(const char *what, const char *where)
{
	fprintf(stderr, "howdah-init: %s %s: %s\n", what, where,
		strerror(errno));
	exit(1);
}

/* Before the first start: the end of a child is waited for, not handled. */
static void block_child_signal(void)
{
	sigemptyset(&child_signal);
	sigaddset(&child_signal, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child_signal, NULL);
}

static pid_t start(char *const *arguments, char *const *environment)
{
	pid_t child = fork();

	if (child < 0)
		fail("fork for", arguments[0]);
	if (child)
		return child;
	setsid();
	sigprocmask(SIG_UNBLOCK, &child_signal, NULL);
	execve(arguments[0], arguments, environment);
	fail("run", arguments[0]);
	return 0;
}

static long clock_limit_s(void)
{
	const char *text = getenv("HOWDAH_CLOCK_LIMIT_S");

	return text && *text ? atol(text) : CLOCK_LIMIT_S;
}

static struct ending await(pid_t child, long limit_s)
{
	struct timespec end, now, left = { 0 };
	struct ending ending = { 0 };
	pid_t ended;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += limit_s;
	for (;;) {
		while ((ended = waitpid(-1, &ending.status, WNOHANG)) > 0) {
			if (ended == child)
				return ending;
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
		left.tv_sec = end.tv_sec - now.tv_sec;
		if (left.tv_sec <= 0)
			break;
		sigtimedwait(&child_signal, NULL, &left);
	}
	ending.too_late = true;
	kill(-1, SIGKILL);
	return ending;
}

static void report(struct ending ending)
{
	FILE *file = fopen(REPORT, "w");

	if (!file)
		fail("write", REPORT);
	if (ending.too_late)
		fputs("{\"exit\": null, \"signal\": null}\n", file);
	else if (WIFSIGNALED(ending.status))
		fprintf(file, "{\"exit\": null, \"signal\": %d}\n",
			WTERMSIG(ending.status));
	else
		fprintf(file, "{\"exit\": %d, \"signal\": null}\n",
			WEXITSTATUS(ending.status));
	if (fclose(file))
		fail("write", REPORT);
}

#endif
