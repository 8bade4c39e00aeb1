// SPDX-License-Identifier: Apache-2.0
/*
 * launch MODE PARENT DIRECTORY [NAME=TARGET...] -- PROGRAM [ARGUMENT...]
 *
 * Makes DIRECTORY ("-": none) with a symbolic link NAME to each TARGET and runs
 * PROGRAM there so that nothing of it survives: not itself, not a process it started,
 * not DIRECTORY, which stays locked (flock(2)) meanwhile: if the launcher itself is
 * killed, whoever finds the directory unlocked may remove it. Three processes do it:
 *
 *   the launcher  ends when PARENT (its parent's process id) ends or when it gets
 *                 SIGTERM; in any case it removes DIRECTORY last
 *   the keeper    ends everything the program started
 *   the program
 *
 * MODE "isolate" makes the keeper process 1 of a new PID namespace, so that all
 * within die with it. With MODE "watch", and where PID namespaces are forbidden
 * (which is said on standard error), it is a subreaper and kills what is left
 * below it: programs that set up namespaces of their own need that.
 *
 * Exit status: that of PROGRAM, 128 + signal if a signal ended it, 125 if it was
 * told to end, 126 if it could not be started.
 *
 * If LAUNCH_MEMORY is a number of bytes and MODE is "isolate", PROGRAM gets a file
 * system in memory of that size as TMPDIR, made of huge pages where the machine has
 * them, which no other process sees. Where it may not be mounted, TMPDIR stays.
 *
 * If LAUNCH_PEAK names a file, the largest resident memory of one process that
 * PROGRAM was is written there in KiB once it has ended by itself (getrusage(2),
 * ru_maxrss): polling from outside misses a program that lives for an instant.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOLD_TO_END	125
#define NOT_STARTED	126
#define MEMORY		"memory"	/* in DIRECTORY */

static sigset_t ours;

static void complain(const char *what)
{
	fprintf(stderr, "howdah-launch: %s: %s\n", what, strerror(errno));
}

static int remove_entry(const char *path, const struct stat *status, int kind,
			struct FTW *place)
{
	(void)status;
	(void)kind;
	(void)place;
	return remove(path);
}

static bool write_line(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t length = strlen(text);
	bool whole;

	if (file < 0)
		return false;
	whole = write(file, text, length) == length;
	close(file);
	return whole;
}

/* Leaves the directory open: the lock lasts as long as launcher or keeper. */
static bool make_links(const char *directory, char **links, int count)
{
	int place = open(directory, O_DIRECTORY | O_CLOEXEC), i;
	char *target;

	if (place >= 0 && flock(place, LOCK_EX | LOCK_NB) < 0)
		complain("lock the directory");
	for (i = 0; place >= 0 && i < count; i++) {
		target = strchr(links[i], '=');
		if (!target) {
			errno = EINVAL;
			break;
		}
		*target++ = 0;
		if (symlinkat(target, place, links[i]) < 0)
			break;
	}
	if (place < 0 || i < count) {
		complain(directory);
		return false;
	}
	return true;
}

static void remove_directory(const char *directory)
{
	if (nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS) < 0)
		complain(directory);
}

/* The user keeps his number within the new user namespace. */
static bool unshare_with_user(void)
{
	unsigned int user = geteuid(), group = getegid();
	char users[32], groups[32];

	snprintf(users, sizeof(users), "%u %u 1", user, user);
	snprintf(groups, sizeof(groups), "%u %u 1", group, group);
	if (unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
		return false;
	if (!write_line("/proc/self/setgroups", "deny") ||
	    !write_line("/proc/self/uid_map", users) ||
	    !write_line("/proc/self/gid_map", groups))
		complain("map the user");
	return true;
}

static bool new_pid_namespace(void)
{
	return unshare(CLONE_NEWPID) == 0 || unshare_with_user();
}

/*
 * What is mounted here ends with the keeper, whose mount namespace nobody else has. A
 * file system without an instance of its own cannot be told to use huge pages without
 * changing it for everybody (/dev/shm).
 */
static void mount_memory(const char *directory)
{
	const char *bytes = getenv("LAUNCH_MEMORY");
	char place[PATH_MAX], options[64];

	if (!bytes || !strcmp(directory, "-"))
		return;
	snprintf(place, sizeof(place), "%s/" MEMORY, directory);
	snprintf(options, sizeof(options), "huge=always,mode=0700,size=%s", bytes);
	if (unshare(CLONE_NEWNS) == 0 &&
	    mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL) == 0 &&
	    mkdir(place, 0700) == 0 &&
	    mount("howdah", place, "tmpfs", MS_NOSUID | MS_NODEV, options) == 0)
		setenv("TMPDIR", place, 1);
}

static void die_with_parent(int signal_number, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, signal_number);
	/* In a new PID namespace the parent is outside and reads as 0. */
	if (getppid() != parent && getppid() != 0)
		_exit(TOLD_TO_END);
}

static int exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
				     WEXITSTATUS(status);
}

static void start_program(const char *directory, char **arguments, pid_t parent)
{
	static const struct rlimit none;
	sigset_t empty;

	die_with_parent(SIGKILL, parent);
	setrlimit(RLIMIT_CORE, &none);
	/* The same addresses in every run: hash tables of pointers walk alike. */
	personality(ADDR_NO_RANDOMIZE);
	sigemptyset(&empty);
	sigprocmask(SIG_SETMASK, &empty, NULL);
	if (strcmp(directory, "-") && chdir(directory) < 0)
		complain(directory);
	else if (execv(arguments[0], arguments) < 0)
		complain(arguments[0]);
	_exit(NOT_STARTED);
}

/* Children of this process, orphans handed to a subreaper included. */
static void kill_children(void)
{
	char path[64];
	int child;
	FILE *list;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	do {
		list = fopen(path, "re");
		if (!list)
			return;
		while (fscanf(list, "%d", &child) == 1)
			kill(child, SIGKILL);
		fclose(list);
	} while (waitpid(-1, NULL, 0) > 0);
}

static void keep(const char *directory, char **arguments, pid_t parent,
		 bool namespaced)
{
	int status = 0, signal_number;
	pid_t program, ended, self = getpid();

	die_with_parent(namespaced ? SIGKILL : SIGTERM, parent);
	if (namespaced)
		mount_memory(directory);
	else
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	program = fork();
	if (program < 0) {
		complain("fork");
		_exit(NOT_STARTED);
	}
	if (!program)
		start_program(directory, arguments, self);

	for (;;) {
		while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
			if (ended != program)
				continue;
			if (!namespaced)
				kill_children();
			_exit(exit_status(status));
		}
		sigwait(&ours, &signal_number);
		if (signal_number == SIGCHLD)
			continue;
		kill(program, SIGKILL);
		if (!namespaced)
			kill_children();
		_exit(TOLD_TO_END);
	}
}

static void report_peak(const struct rusage *usage)
{
	const char *path = getenv("LAUNCH_PEAK");
	FILE *file;

	if (!path)
		return;
	file = fopen(path, "we");
	if (!file || fprintf(file, "%ld\n", usage->ru_maxrss) < 0)
		complain(path);
	if (file && fclose(file))
		complain(path);
}

/* Waits for the keeper, or for the order to end it. */
static int watch(pid_t keeper, bool namespaced)
{
	int status, signal_number;
	struct rusage usage;

	for (;;) {
		/* Of the keeper and of what it waited for; neither inherits a peak. */
		if (wait4(keeper, &status, WNOHANG, &usage) == keeper) {
			report_peak(&usage);
			/* Of a keeper that was killed itself; none otherwise. */
			kill_children();
			return exit_status(status);
		}
		sigwait(&ours, &signal_number);
		if (signal_number != SIGCHLD)
			break;
	}
	kill(keeper, namespaced ? SIGKILL : SIGTERM);
	waitpid(keeper, &status, 0);
	kill_children();
	return TOLD_TO_END;
}

static int launch(const char *mode, pid_t parent, const char *directory,
		  char **program)
{
	bool isolate = !strcmp(mode, "isolate");
	bool namespaced = isolate && new_pid_namespace();
	pid_t keeper, self = getpid();

	if (isolate && !namespaced)
		complain("no PID namespace, the guest is watched instead");
	/* After unshare(): a change of credentials clears the death signal. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		return TOLD_TO_END;

	/* What a killed keeper leaves comes to the launcher. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	keeper = fork();
	if (!keeper)
		keep(directory, program, self, namespaced);
	if (keeper < 0) {
		complain("fork");
		return NOT_STARTED;
	}
	return watch(keeper, namespaced);
}

int main(int count, char **arguments)
{
	int split = 4, result = NOT_STARTED;
	bool has_directory;

	while (split < count && strcmp(arguments[split], "--"))
		split++;
	if (split >= count - 1) {
		fprintf(stderr,
			"usage: launch isolate|watch PARENT DIRECTORY|- [NAME=TARGET...] -- PROGRAM [ARGUMENT...]\n");
		return NOT_STARTED;
	}
	/* Blocked from here on, so that an order to end waits until it is looked for. */
	sigemptyset(&ours);
	sigaddset(&ours, SIGCHLD);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGHUP);
	sigprocmask(SIG_BLOCK, &ours, NULL);

	has_directory = strcmp(arguments[3], "-");
	if (has_directory && mkdir(arguments[3], 0700) < 0) {
		complain(arguments[3]);
		return NOT_STARTED;
	}
	if (!has_directory || make_links(arguments[3], arguments + 4, split - 4))
		result = launch(arguments[1], atol(arguments[2]), arguments[3],
				arguments + split + 1);
	if (has_directory)
		remove_directory(arguments[3]);
	return result;
}
