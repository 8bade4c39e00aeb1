// SPDX-License-Identifier: Apache-2.0
/*
 * First process of a virtual machine whose first file system holds everything:
 * the guest tree, what the agent reads (/howdah/in) and where it writes
 * (/howdah/out). It mounts what a system has, runs the program that its arguments
 * name (behind "--" on the kernel's command line), writes
 * /howdah/out/guest-exit.json, has /howdah/in/deliver.py write /howdah/out to the
 * disk /dev/vda, and switches the machine off. Whatever goes wrong here
 * is written to the console and ends the guest by a kernel panic.
 *
 * HOWDAH_CLOCK_LIMIT_S (from the kernel's command line) is how many seconds of
 * the machine's time the program may take.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CLOCK_LIMIT_S	(30 * 24 * 3600)
#define DELIVERY_LIMIT_S	3600
#define REPORT		"/howdah/out/guest-exit.json"

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

static void attach(const char *kind, const char *where, const char *options)
{
	if (mkdir(where, 0755) < 0 && errno != EEXIST)
		fail("mkdir", where);
	if (mount(kind, where, kind, 0, options) < 0 && errno != EBUSY)
		fail(kind, where);
}

static void attach_all(void)
{
	attach("proc", "/proc", NULL);
	attach("sysfs", "/sys", NULL);
	attach("tracefs", "/sys/kernel/tracing", NULL);
	attach("devtmpfs", "/dev", "mode=755");
	attach("devpts", "/dev/pts", "ptmxmode=666");
	attach("tmpfs", "/dev/shm", "mode=1777");
	attach("tmpfs", "/tmp", "mode=1777");
	attach("tmpfs", "/run", "mode=755");
	if (mkdir("/run/netns", 0755) < 0)
		fail("mkdir", "/run/netns");
}

static pid_t start(char *const *arguments)
{
	static char *const environment[] = {
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin",
		"HOME=/root", "LANG=C.UTF-8", "TERM=dumb", "SHELL=/bin/sh",
		"PYTHONPATH=/howdah/in", "PYTHONHASHSEED=0",
		"PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", NULL
	};
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

int main(int count, char **arguments)
{
	static char *const deliver[] = {
		"/usr/bin/python3", "-S", "/howdah/in/deliver.py",
		"/howdah/out", "/dev/vda", NULL
	};
	const char *limit = getenv("HOWDAH_CLOCK_LIMIT_S");
	struct ending ending;

	/* Words of the command line that the kernel did not know come first. */
	for (arguments++; count > 1 && **arguments != '/'; count--)
		arguments++;
	if (count < 2) {
		errno = EINVAL;
		fail("find", "the program to run");
	}
	umask(022);
	sigemptyset(&child_signal);
	sigaddset(&child_signal, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child_signal, NULL);
	attach_all();
	report(await(start(arguments),
		     limit && *limit ? atol(limit) : CLOCK_LIMIT_S));
	ending = await(start(deliver), DELIVERY_LIMIT_S);
	if (ending.too_late || ending.status) {
		errno = EIO;
		fail("deliver", "/howdah/out");
	}
	sync();
	reboot(RB_POWER_OFF);
	fail("switch off", "the guest");
	return 1;
}
