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
 * the machine's time the program may take; HOWDAH_SETTLE_S is how many it waits
 * before, for what a kernel puts off while it boots. Idle virtual time is free.
 */
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>

#include "first.h"

#define DELIVERY_LIMIT_S	3600
#define UP			"the system is up" /* machine.py waits for it */

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

/*
 * The kernel asks for dozens of optional modules while it boots, each by a
 * program that is found missing at once as long as it is not there.
 */
static void provide_modprobe(void)
{
	if (symlink("../bin/kmod", "/usr/sbin/modprobe") < 0 && errno != EEXIST)
		fail("link", "/usr/sbin/modprobe");
}

static void settle(void)
{
	const char *text = getenv("HOWDAH_SETTLE_S");

	if (text && *text)
		sleep(atoi(text));
}

static char *const environment[] = { COMMON_ENVIRONMENT, NULL };

int main(int count, char **arguments)
{
	static char *const deliver[] = {
		"/usr/bin/python3", "-S", "/howdah/in/deliver.py",
		"/howdah/out", "/dev/vda", NULL
	};
	struct ending ending;

	/* Words of the command line that the kernel did not know come first. */
	for (arguments++; count > 1 && **arguments != '/'; count--)
		arguments++;
	if (count < 2) {
		errno = EINVAL;
		fail("find", "the program to run");
	}
	umask(022);
	block_child_signal();
	attach_all();
	provide_modprobe();
	fputs("howdah-init: " UP "\n", stderr);
	settle();
	report(await(start(arguments, environment), clock_limit_s()));
	ending = await(start(deliver, environment), DELIVERY_LIMIT_S);
	if (ending.too_late || ending.status) {
		errno = EIO;
		fail("deliver", "/howdah/out");
	}
	sync();
	reboot(RB_POWER_OFF);
	fail("switch off", "the guest");
	return 1;
}
