// SPDX-License-Identifier: Apache-2.0
/*
 * First process of a guest; its arguments are the program to run there. The
 * kernel's root is the directory this program lies in (hostfs), beside the empty
 * directory "mount". Three more directories of the host are named on the host side:
 *
 *   tree      the guest tree, the lower layer of the root file system, read-only
 *   in, out   what the guest may read and write, /howdah/in and /howdah/out
 *
 * It mounts an overlay of the tree and a tmpfs, or the tree alone, moves there,
 * runs the program, writes /howdah/out/guest-exit.json and switches the machine
 * off. Whatever goes wrong here is written to the console and ends the guest by a
 * kernel panic.
 *
 * HOWDAH_CLOCK_LIMIT_S (from the kernel's command line) is how many seconds of
 * virtual time the program may take. An idle guest's clock races: one that waits
 * for what never happens is at its limit after a moment.
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

#define ROOT		"/mount/root"
#define CLOCK_LIMIT_S	(30 * 24 * 3600)

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

static void attach(const char *kind, const char *where, unsigned long flags,
		   const char *options)
{
	if (mount(kind, where, kind, flags, options) < 0)
		fail(kind, where);
}

static void directory(const char *where)
{
	if (mkdir(where, 0755) < 0 && errno != EEXIST)
		fail("mkdir", where);
}

/*
 * In old kernels (5.10), hostfs opens a file of an overlay by a wrong name
 * (fs/hostfs, hostfs_open). There the root is the tree itself, read-only.
 */
static void attach_tree(void)
{
	int file;

	attach("overlay", ROOT, 0,
	       "lowerdir=/mount/lower,upperdir=/mount/upper,workdir=/mount/work");
	file = open(ROOT "/etc/passwd", O_RDONLY | O_CLOEXEC);
	if (file >= 0) {
		close(file);
		return;
	}
	printf("howdah-init: no overlay over hostfs here (%s): / is read-only\n",
	       strerror(errno));
	fflush(stdout);
	if (umount(ROOT) < 0)
		fail("unmount", ROOT);
	attach("hostfs", ROOT, MS_RDONLY, "/tree");
}

static void build_root(void)
{
	attach("tmpfs", "/mount", 0, "mode=755");
	directory("/mount/lower");
	directory("/mount/upper");
	directory("/mount/work");
	directory(ROOT);
	attach("hostfs", "/mount/lower", MS_RDONLY, "/tree");
	attach_tree();
	directory(ROOT "/howdah");
	directory(ROOT "/howdah/in");
	directory(ROOT "/howdah/out");
	attach("hostfs", ROOT "/howdah/in", MS_RDONLY, "/in");
	attach("hostfs", ROOT "/howdah/out", 0, "/out");
	attach("proc", ROOT "/proc", 0, NULL);
	attach("sysfs", ROOT "/sys", 0, NULL);
	attach("tracefs", ROOT "/sys/kernel/tracing", 0, NULL);
	attach("devtmpfs", ROOT "/dev", 0, "mode=755");
	directory(ROOT "/dev/pts");
	directory(ROOT "/dev/shm");
	attach("devpts", ROOT "/dev/pts", 0, "ptmxmode=666");
	attach("tmpfs", ROOT "/dev/shm", 0, "mode=1777");
	attach("tmpfs", ROOT "/tmp", 0, "mode=1777");
	attach("tmpfs", ROOT "/run", 0, "mode=755");
	directory(ROOT "/run/netns");
}

static void enter_root(void)
{
	if (chdir(ROOT) < 0)
		fail("enter", ROOT);
	if (mount(".", "/", NULL, MS_MOVE, NULL) < 0)
		fail("move", ROOT);
	if (chroot(".") < 0 || chdir("/") < 0)
		fail("change root to", ROOT);
}

/*
 * User-mode Linux does not carry the registers of AVX-512 over a signal (6.12,
 * arch/x86/um/signal.c), so the C library is told to copy strings without them.
 */
static pid_t start(char **arguments)
{
	static char *const environment[] = {
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin",
		"HOME=/root", "LANG=C.UTF-8", "TERM=dumb", "SHELL=/bin/sh",
		"PYTHONPATH=/howdah/in", "PYTHONHASHSEED=0",
		"PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1",
		"GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW",
		NULL
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

static struct ending await(pid_t child)
{
	const char *text = getenv("HOWDAH_CLOCK_LIMIT_S");
	struct timespec end, now, left = { 0 };
	struct ending ending = { 0 };
	pid_t ended;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += text && *text ? atol(text) : CLOCK_LIMIT_S;
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
	FILE *file = fopen("/howdah/out/guest-exit.json", "w");

	if (!file)
		fail("write", "/howdah/out/guest-exit.json");
	if (ending.too_late)
		fputs("{\"exit\": null, \"signal\": null}\n", file);
	else if (WIFSIGNALED(ending.status))
		fprintf(file, "{\"exit\": null, \"signal\": %d}\n",
			WTERMSIG(ending.status));
	else
		fprintf(file, "{\"exit\": %d, \"signal\": null}\n",
			WEXITSTATUS(ending.status));
	if (fclose(file))
		fail("write", "/howdah/out/guest-exit.json");
}

int main(int count, char **arguments)
{
	if (count < 2) {
		errno = EINVAL;
		fail("find", "the program to run");
	}
	umask(022);
	sigemptyset(&child_signal);
	sigaddset(&child_signal, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child_signal, NULL);
	build_root();
	enter_root();
	report(await(start(arguments + 1)));
	sync();
	reboot(RB_POWER_OFF);
	fail("switch off", "the guest");
	return 1;
}
