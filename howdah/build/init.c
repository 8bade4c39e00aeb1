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
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>

#include "first.h"

#define ROOT		"/mount/root"
#define POPULATE	"/howdah/in/populate.so"

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
 * The place that is left is for populate.so, where the agent comes with it.
 */
static char *environment[] = {
	COMMON_ENVIRONMENT,
	"GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW",
	NULL,
	NULL
};

static void preload(void)
{
	char **last = environment;

	if (access(POPULATE, R_OK) < 0)
		return;
	while (*last)
		last++;
	*last = "LD_PRELOAD=" POPULATE;
}

int main(int count, char **arguments)
{
	if (count < 2) {
		errno = EINVAL;
		fail("find", "the program to run");
	}
	umask(022);
	block_child_signal();
	build_root();
	enter_root();
	preload();
	report(await(start(arguments + 1, environment), clock_limit_s()));
	sync();
	reboot(RB_POWER_OFF);
	fail("switch off", "the guest");
	return 1;
}
