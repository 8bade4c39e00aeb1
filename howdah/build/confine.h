/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program of launch.c may do to this machine. A module of a guest runs inside
 * the process of the user-mode kernel, so whatever that process may do, a module may.
 *
 * Files: Landlock (Documentation/userspace-api/landlock.rst) allows to read what the
 * program was given, to write the places named as writable, and nothing else. It also
 * keeps the program from tracing and signalling processes outside, which its PID
 * namespace hides anyway. In a writable place it makes files and directories alone: a
 * link or a pipe there could mislead whoever reads it afterwards. A build makes links
 * and programs, too; who started it looks where they lead (sandbox.py).
 *
 * Network: a network namespace with nothing in it, and Landlock where there is none;
 * no connection to a socket in the file system either (refuse.h).
 *
 * Privileges: none but that of reading and writing files whoever owns them, which
 * Landlock bounds; so root starts a guest with files of another user.
 */
#ifndef CONFINE_H
#define CONFINE_H

#include <linux/capability.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "refuse.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset	444
#define SYS_landlock_add_rule		445
#define SYS_landlock_restrict_self	446
#endif

/* linux/landlock.h, which older C libraries have with fewer rights or not at all. */
#define MAY_EXECUTE	(1ULL << 0)
#define MAY_WRITE	(1ULL << 1)
#define MAY_READ	(1ULL << 2)
#define MAY_LIST	(1ULL << 3)
#define MAY_REMOVE	(1ULL << 4 | 1ULL << 5)	/* directories, files */
#define MAY_MAKE_DIR	(1ULL << 7)
#define MAY_MAKE_FILE	(1ULL << 8)
#define MAY_MAKE_SOCKET	(1ULL << 9)
#define MAY_MAKE_PIPE	(1ULL << 10)
#define MAY_MAKE_LINK	(1ULL << 12)
#define MAY_RENAME	(1ULL << 13)		/* to another directory: version 2 */
#define MAY_TRUNCATE	(1ULL << 14)		/* version 3 */
#define RIGHTS_1	((1ULL << 13) - 1)
#define TCP_RIGHTS	3ULL			/* version 4: bind, connect */
#define DEVICE_RIGHTS	(1ULL << 15)		/* version 5: ioctl */
#define SCOPES		3ULL			/* version 6: abstract sockets, signals */

#define ASK_VERSION	1U
#define BENEATH		1			/* LANDLOCK_RULE_PATH_BENEATH */

#define TO_READ		(MAY_READ | MAY_LIST)
#define TO_RUN		(TO_READ | MAY_EXECUTE)
#define TO_WRITE	(TO_READ | MAY_WRITE | MAY_TRUNCATE | MAY_REMOVE | MAY_MAKE_DIR | \
			 MAY_MAKE_FILE | MAY_RENAME)
#define TO_BUILD	(TO_WRITE | MAY_EXECUTE | MAY_MAKE_LINK)
#define OF_FILES	(MAY_EXECUTE | MAY_WRITE | MAY_READ | MAY_TRUNCATE)

/* Where the program lives, and what it is given. */
struct cell {
	const char *directory;	/* "-": none */
	char **links;		/* "NAME=TARGET", or "NAME+=TARGET" for a place to write */
	int links_count;
	char *memory;		/* a directory of its own in TMPDIR, or NULL */
	bool builds;		/* makes programs and links, and starts what it makes */
	bool has_network;
	int report;		/* a descriptor: where it says what the program is kept from */
};

/* What of the machine a program needs to start: its loader and libraries. */
static const char *const system_places[] = {
	"/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc/ld.so.cache",
	"/etc/ld.so.preload", "/proc/cpuinfo", "/proc/meminfo", NULL
};

/* What compilers and scripts ask for beside them. */
static const char *const build_devices[] = {
	"/dev/zero", "/dev/random", "/dev/urandom", NULL
};

struct ruleset {
	uint64_t files, network, scopes;
};

struct beneath {
	uint64_t allowed;
	int32_t parent;
} __attribute__((packed));

struct bounds {
	int ruleset;		/* -1: this machine has no Landlock */
	int version;
	uint64_t handled;
};

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

/* The user keeps his number within the new user namespace. */
static bool unshare_with_user(int flags)
{
	unsigned int user = geteuid(), group = getegid();
	char users[32], groups[32];

	snprintf(users, sizeof(users), "%u %u 1", user, user);
	snprintf(groups, sizeof(groups), "%u %u 1", group, group);
	if (unshare(CLONE_NEWUSER | CLONE_NEWPID | flags) < 0)
		return false;
	if (!write_line("/proc/self/setgroups", "deny") ||
	    !write_line("/proc/self/uid_map", users) ||
	    !write_line("/proc/self/gid_map", groups))
		fprintf(stderr, "howdah-launch: map the user: %m\n");
	return true;
}

/* With one of an empty network if that is to be had. */
static bool new_namespaces(struct cell *cell)
{
	cell->has_network = false;
	if (unshare(CLONE_NEWPID | CLONE_NEWNET) == 0 || unshare_with_user(CLONE_NEWNET))
		return true;
	cell->has_network = true;
	return unshare(CLONE_NEWPID) == 0 || unshare_with_user(0);
}

static void bounds_open(struct bounds *bounds)
{
	struct ruleset rules = { .files = RIGHTS_1 };
	size_t size = sizeof(rules.files);

	bounds->ruleset = -1;
	bounds->version = syscall(SYS_landlock_create_ruleset, NULL, 0, ASK_VERSION);
	if (bounds->version < 1)
		return;
	if (bounds->version >= 2)
		rules.files |= MAY_RENAME;
	if (bounds->version >= 3)
		rules.files |= MAY_TRUNCATE;
	if (bounds->version >= 4) {
		rules.network = TCP_RIGHTS;
		size += sizeof(rules.network);
	}
	if (bounds->version >= 5)
		rules.files |= DEVICE_RIGHTS;
	if (bounds->version >= 6) {
		rules.scopes = SCOPES;
		size += sizeof(rules.scopes);
	}
	bounds->handled = rules.files;
	bounds->ruleset = syscall(SYS_landlock_create_ruleset, &rules, size, 0);
}

/* False only where a place that exists cannot be allowed. */
static bool bounds_allow(const struct bounds *bounds, const char *path, uint64_t rights)
{
	struct beneath rule = { .parent = open(path, O_PATH | O_CLOEXEC) };
	struct stat status;
	bool done;

	if (rule.parent < 0)
		return errno == ENOENT;
	if (fstat(rule.parent, &status) == 0 && !S_ISDIR(status.st_mode))
		rights &= OF_FILES;
	rule.allowed = rights & bounds->handled;
	done = syscall(SYS_landlock_add_rule, bounds->ruleset, BENEATH, &rule, 0) == 0;
	close(rule.parent);
	return done;
}

static bool bounds_close(const struct bounds *bounds)
{
	return syscall(SYS_landlock_restrict_self, bounds->ruleset, 0) == 0;
}

/* Of this process and of what it starts. False if a privilege stays. */
static bool drop_privileges(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct held[2];
	uint32_t kept = 1U << CAP_DAC_OVERRIDE;
	int privilege;

	for (privilege = 0; privilege <= 63; privilege++) {
		if (privilege != CAP_DAC_OVERRIDE)
			prctl(PR_CAPBSET_DROP, privilege);	/* fails where it was dropped before */
	}
	if (syscall(SYS_capget, &header, held) < 0)
		return false;
	held[0].effective &= kept;
	held[0].permitted &= kept;
	held[0].inheritable = 0;
	memset(&held[1], 0, sizeof(held[1]));
	return syscall(SYS_capset, &header, held) == 0 &&
	       prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

/* What shim.c does where the personality cannot be changed, as in a container. */
static bool heap_can_be_placed(void)
{
	unsigned int size;

	return prctl(PR_SET_MM, PR_SET_MM_MAP_SIZE, &size, 0, 0) == 0;
}

/* What it may read and write; false if some of it could not be said. */
static bool bound_files(const struct cell *cell, const struct bounds *bounds)
{
	const uint64_t to_write = cell->builds ? TO_BUILD : TO_WRITE;
	const uint64_t within = to_write | (cell->builds ? MAY_MAKE_PIPE : 0);
	const char *link;
	bool whole = true;
	int i;

	for (i = 0; system_places[i]; i++)
		whole &= bounds_allow(bounds, system_places[i], TO_RUN);
	for (i = 0; cell->builds && build_devices[i]; i++)
		whole &= bounds_allow(bounds, build_devices[i], TO_READ);
	for (i = 0; i < cell->links_count; i++) {
		link = strchr(cell->links[i], '=');
		whole &= bounds_allow(bounds, link + 1, link[-1] == '+' ? to_write : TO_RUN);
	}
	whole &= bounds_allow(bounds, "/dev/null", TO_READ | MAY_WRITE);
	whole &= bounds_allow(bounds, cell->directory, within | MAY_MAKE_SOCKET);
	if (cell->memory)
		whole &= bounds_allow(bounds, cell->memory, within);
	return whole && bounds_close(bounds);
}

/*
 * Of this process, just before it becomes the program. False if the machine has
 * Landlock and refuses what is asked of it; a machine without it is told of.
 */
static bool confine(const struct cell *cell, bool fixed_addresses)
{
	bool privileges = drop_privileges(), files, calls;
	struct bounds bounds = { .ruleset = -1 };

	if (strcmp(cell->directory, "-"))
		bounds_open(&bounds);
	files = bounds.ruleset >= 0;
	if (files && !bound_files(cell, &bounds))
		return false;
	calls = refuse_calls();
	dprintf(cell->report, "%s%s%s%s\n", files ? "files " : "",
		cell->has_network || !calls ? "" : "network ", privileges ? "privileges " : "",
		fixed_addresses ? "addresses" : "");
	return true;
}

#endif
