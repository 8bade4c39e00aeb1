/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program of launch.c may do to this machine. A module of a guest runs inside
 * the process of the user-mode kernel, so whatever that process may do, a module may.
 *
 * Files: Landlock (Documentation/userspace-api/landlock.rst) allows to read what the
 * program was given, to write the places named as writable, and nothing else. It also
 * keeps the program from tracing and signalling processes outside, which its PID
 * namespace hides anyway. In a writable place it makes files and directories alone: a
 * link or a pipe there could mislead whoever reads it afterwards.
 *
 * Network: a network namespace with nothing in it, and Landlock where there is none.
 *
 * Privileges: none but that of reading and writing files whoever owns them, which
 * Landlock bounds; so root starts a guest with files of another user.
 */
#ifndef CONFINE_H
#define CONFINE_H

#include <linux/capability.h>
#include <stdint.h>
#include <sys/syscall.h>

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
#define OF_FILES	(MAY_EXECUTE | MAY_WRITE | MAY_READ | MAY_TRUNCATE)

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

	if (bounds->ruleset < 0)
		return true;
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
	return bounds->ruleset >= 0 &&
	       syscall(SYS_landlock_restrict_self, bounds->ruleset, 0) == 0;
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

#endif
