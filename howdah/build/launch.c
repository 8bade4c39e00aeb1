// SPDX-License-Identifier: Apache-2.0
/*
 * launch MODE PARENT DIRECTORY [NAME=TARGET|NAME+=TARGET...] -- PROGRAM [ARGUMENT...]
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
 * MODE "isolate" also confines the program (confine.h): it reads each TARGET, writes
 * those with "+=", DIRECTORY and TMPDIR, and has no network and no privilege. So does
 * "build", which leaves it where it is and makes DIRECTORY its HOME.
 *
 * Exit status: that of PROGRAM, 128 + signal if a signal ended it, 125 if it was
 * told to end, 126 if it could not be started.
 *
 * If LAUNCH_MEMORY is a number of bytes and MODE is "isolate", PROGRAM gets a file
 * system in memory of that size as TMPDIR, made of huge pages where the machine has
 * them, which no other process sees; HOWDAH_MEMORY, which asks shim.c for memory of
 * no file system, is then taken back. Else it gets a directory of its own in TMPDIR.
 *
 * LAUNCH_PRELOAD is what the program has as LD_PRELOAD, LAUNCH_LIBRARIES as
 * LD_LIBRARY_PATH, LAUNCH_PROCESSOR the number of the one processor it runs on.
 *
 * If LAUNCH_PEAK names a file, the largest resident memory of one process that
 * PROGRAM was is written there in KiB once it has ended by itself (getrusage(2),
 * ru_maxrss): polling from outside misses a program that lives for an instant.
 *
 * If LAUNCH_BOUNDS names a file, one line there says once the program has ended what
 * it was kept from ("files network privileges", what could not be had left out) and,
 * if they are the same in every run, "addresses".
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

#include "confine.h"

#define TOLD_TO_END	125
#define NOT_STARTED	126
#define MEMORY		"memory"	/* in DIRECTORY */

struct order {
	bool isolate;
	pid_t parent;
	char **program;
	struct cell cell;
};

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

/* Leaves the directory open: the lock lasts as long as launcher or keeper. */
static int lock(const char *directory)
{
	int place = open(directory, O_DIRECTORY | O_CLOEXEC);

	if (place >= 0 && flock(place, LOCK_EX | LOCK_NB) < 0)
		complain("lock the directory");
	return place;
}

static bool make_link(int place, const char *link)
{
	size_t length = strcspn(link, "+=");
	const char *target = strchr(link, '=');
	char name[NAME_MAX + 1];

	if (!target || length > NAME_MAX) {
		errno = EINVAL;
		return false;
	}
	memcpy(name, link, length);
	name[length] = 0;
	return symlinkat(target + 1, place, name) == 0;
}

static bool make_links(const struct order *order)
{
	int place = lock(order->cell.directory), i = 0;

	while (place >= 0 && i < order->cell.links_count && make_link(place, order->cell.links[i]))
		i++;
	if (place < 0 || i < order->cell.links_count) {
		complain(order->cell.directory);
		return false;
	}
	return true;
}

static void remove_directory(const char *directory)
{
	if (nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS) < 0)
		complain(directory);
}

/*
 * What is mounted here ends with the keeper, whose mount namespace nobody else has. A
 * file system without an instance of its own cannot be told to use huge pages without
 * changing it for everybody (/dev/shm).
 */
static bool mount_memory(const char *directory)
{
	const char *bytes = getenv("LAUNCH_MEMORY");
	char place[PATH_MAX], options[64];

	if (!bytes || !strcmp(directory, "-"))
		return false;
	snprintf(place, sizeof(place), "%s/" MEMORY, directory);
	snprintf(options, sizeof(options), "huge=always,mode=0700,size=%s", bytes);
	return unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL) == 0 &&
	       mkdir(place, 0700) == 0 &&
	       mount("howdah", place, "tmpfs", MS_NOSUID | MS_NODEV, options) == 0 &&
	       setenv("TMPDIR", place, 1) == 0 && unsetenv("HOWDAH_MEMORY") == 0;
}

/*
 * A directory in TMPDIR that is named as DIRECTORY is, so that whoever sweeps up finds
 * it. TMPDIR itself may hold files of others, which the program must not see.
 */
static char *memory_place(const char *directory)
{
	const char *base = getenv("TMPDIR"), *name = strrchr(directory, '/');
	char *place;

	if (asprintf(&place, "%s/%s." MEMORY, base ? base : "/tmp",
		     name ? name + 1 : directory) < 0)
		return NULL;
	return place;
}

static void make_memory(const char *place)
{
	if (mkdir(place, 0700) < 0 || lock(place) < 0)
		complain(place);
	else
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

static void choose_processor(void)
{
	const char *number = getenv("LAUNCH_PROCESSOR");
	cpu_set_t only;

	if (!number)
		return;
	CPU_ZERO(&only);
	CPU_SET(atoi(number), &only);
	if (sched_setaffinity(0, sizeof(only), &only) < 0)
		complain("choose a processor");
}

/* The program does not see what was said to the launcher. */
static void prepare_environment(void)
{
	static const char *const orders[] = { "LAUNCH_MEMORY", "LAUNCH_PEAK", "LAUNCH_BOUNDS",
					      "LAUNCH_PRELOAD", "LAUNCH_LIBRARIES",
					      "LAUNCH_PROCESSOR", NULL };
	const char *preload = getenv("LAUNCH_PRELOAD"), *libraries = getenv("LAUNCH_LIBRARIES");
	int i;

	if (preload)
		setenv("LD_PRELOAD", preload, 1);
	if (libraries)
		setenv("LD_LIBRARY_PATH", libraries, 1);
	for (i = 0; orders[i]; i++)
		unsetenv(orders[i]);
}

static void start_program(const struct order *order, pid_t parent)
{
	static const struct rlimit none;
	const char *place = order->cell.directory;
	bool fixed_addresses;
	sigset_t empty;

	die_with_parent(SIGKILL, parent);
	setrlimit(RLIMIT_CORE, &none);
	choose_processor();
	/* The same addresses in every run: hash tables of pointers walk alike. */
	fixed_addresses = personality(ADDR_NO_RANDOMIZE) >= 0 || heap_can_be_placed();
	sigemptyset(&empty);
	sigprocmask(SIG_SETMASK, &empty, NULL);
	if (order->isolate && !confine(&order->cell, fixed_addresses)) {
		complain("confine the program");
		_exit(NOT_STARTED);
	}
	/* Dropping privileges clears it. */
	die_with_parent(SIGKILL, parent);
	prepare_environment();
	if (order->cell.builds ? setenv("HOME", place, 1) : strcmp(place, "-") && chdir(place))
		complain(place);
	else if (execv(order->program[0], order->program) < 0)
		complain(order->program[0]);
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

static void keep(struct order *order, pid_t parent, bool namespaced)
{
	int status = 0, signal_number;
	pid_t program, ended, self = getpid();

	die_with_parent(namespaced ? SIGKILL : SIGTERM, parent);
	if (!namespaced)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (!(namespaced && mount_memory(order->cell.directory)) && order->cell.memory)
		make_memory(order->cell.memory);
	program = fork();
	if (program < 0) {
		complain("fork");
		_exit(NOT_STARTED);
	}
	if (!program)
		start_program(order, self);

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

static void write_report(const char *name, const char *text)
{
	const char *path = getenv(name);
	FILE *file;

	if (!path)
		return;
	file = fopen(path, "we");
	if (!file || fputs(text, file) < 0)
		complain(path);
	if (file && fclose(file))
		complain(path);
}

static void report_peak(const struct rusage *usage)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld\n", usage->ru_maxrss);
	write_report("LAUNCH_PEAK", text);
}

/* What the program's process said of its bounds before it became the program. */
static void report_bounds(int told)
{
	char text[128];
	ssize_t length = read(told, text, sizeof(text) - 1);

	text[length > 0 ? length : 0] = 0;
	write_report("LAUNCH_BOUNDS", text);
}

/* Waits for the keeper, or for the order to end it. */
static int watch(pid_t keeper, bool namespaced, int told)
{
	int status, signal_number;
	struct rusage usage;

	for (;;) {
		/* Of the keeper and of what it waited for; neither inherits a peak. */
		if (wait4(keeper, &status, WNOHANG, &usage) == keeper) {
			report_peak(&usage);
			report_bounds(told);
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

static int launch(struct order *order)
{
	bool namespaced = order->isolate && new_namespaces(&order->cell);
	pid_t keeper, self = getpid();
	int told[2];

	if (order->isolate && !namespaced)
		complain("no PID namespace, the program is watched instead");
	/* After unshare(): a change of credentials clears the death signal. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != order->parent)
		return TOLD_TO_END;
	if (pipe2(told, O_CLOEXEC | O_NONBLOCK) < 0) {
		complain("pipe");
		return NOT_STARTED;
	}
	order->cell.report = told[1];

	/* What a killed keeper leaves comes to the launcher. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	keeper = fork();
	if (!keeper)
		keep(order, self, namespaced);
	if (keeper < 0) {
		complain("fork");
		return NOT_STARTED;
	}
	return watch(keeper, namespaced, told[0]);
}

int main(int count, char **arguments)
{
	int split = 4, result = NOT_STARTED;
	struct order order;
	bool has_directory;

	while (split < count && strcmp(arguments[split], "--"))
		split++;
	if (split >= count - 1) {
		fprintf(stderr,
			"usage: launch isolate|build|watch PARENT DIRECTORY|- [NAME=TARGET|NAME+=TARGET...] -- PROGRAM [ARGUMENT...]\n");
		return NOT_STARTED;
	}
	/* Blocked from here on, so that an order to end waits until it is looked for. */
	sigemptyset(&ours);
	sigaddset(&ours, SIGCHLD);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGHUP);
	sigprocmask(SIG_BLOCK, &ours, NULL);

	order = (struct order) {
		.isolate = !strcmp(arguments[1], "isolate") || !strcmp(arguments[1], "build"),
		.parent = atol(arguments[2]),
		.program = arguments + split + 1,
		.cell = {
			.directory = arguments[3],
			.links = arguments + 4,
			.links_count = split - 4,
			.builds = !strcmp(arguments[1], "build"),
			.has_network = true,
		},
	};
	has_directory = strcmp(order.cell.directory, "-");
	if (has_directory && mkdir(order.cell.directory, 0700) < 0) {
		complain(order.cell.directory);
		return NOT_STARTED;
	}
	if (has_directory && order.isolate)
		order.cell.memory = memory_place(order.cell.directory);
	if (!has_directory || make_links(&order))
		result = launch(&order);
	if (order.cell.memory && access(order.cell.memory, F_OK) == 0)
		remove_directory(order.cell.memory);
	if (has_directory)
		remove_directory(order.cell.directory);
	return result;
}
