// SPDX-License-Identifier: Apache-2.0
/*
 * First process of a virtual machine. The first file system holds it, the
 * modules that a disk and its file system need (/modules/list names them in order),
 * and below /put the files that this very machine gets: its name, keys and network.
 * It loads the modules, mounts /dev/vda, copies /put over it, and goes on as that
 * system's own /sbin/init. Whatever goes wrong is written to the console and ends
 * the machine by a kernel panic.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DISK		"/dev/vda"
#define DISK_WAIT_MS	10000
#define ROOT		"/root"
#define PUT		"/put"

static void fail(const char *what, const char *where)
{
	fprintf(stderr, "howdah-first: %s %s: %s\n", what, where,
		strerror(errno));
	exit(1);
}

static void load(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);

	if (file < 0)
		fail("open", path);
	/* A later kernel may have built in what an earlier one loads. */
	if (syscall(SYS_finit_module, file, "", 0) < 0 && errno != EEXIST)
		fail("load", path);
	close(file);
}

static void load_all(void)
{
	FILE *list = fopen("/modules/list", "re");
	char line[256];

	if (!list)
		fail("open", "/modules/list");
	while (fgets(line, sizeof(line), list)) {
		line[strcspn(line, "\n")] = 0;
		load(line);
	}
	fclose(list);
}

static void mount_disk(void)
{
	int waited_ms;

	for (waited_ms = 0; access(DISK, F_OK) < 0; waited_ms += 10) {
		if (waited_ms >= DISK_WAIT_MS)
			fail("find the disk", DISK);
		usleep(10000);
	}
	if (mkdir(ROOT, 0755) < 0 && errno != EEXIST)
		fail("mkdir", ROOT);
	if (mount(DISK, ROOT, "ext4", 0, NULL) < 0)
		fail("mount", DISK);
}

static void copy(const char *source, const char *target, const struct stat *status)
{
	int from = open(source, O_RDONLY | O_CLOEXEC);
	int to = open(target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	off_t left = status->st_size;

	if (from < 0 || to < 0)
		fail("open", from < 0 ? source : target);
	while (left > 0) {
		ssize_t moved = sendfile(to, from, NULL, left);

		if (moved <= 0)
			fail("copy", source);
		left -= moved;
	}
	if (fchmod(to, status->st_mode & 07777) < 0)
		fail("chmod", target);
	close(from);
	close(to);
}

static int put(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	char target[4096];

	(void)place;
	snprintf(target, sizeof(target), ROOT "%s", path + strlen(PUT));
	if (kind == FTW_D) {
		if (mkdir(target, status->st_mode & 07777) < 0 && errno != EEXIST)
			fail("mkdir", target);
	} else if (kind == FTW_F) {
		copy(path, target, status);
	}
	return 0;
}

int main(void)
{
	if (mkdir("/dev", 0755) < 0 && errno != EEXIST)
		fail("mkdir", "/dev");
	if (mount("devtmpfs", "/dev", "devtmpfs", 0, NULL) < 0)
		fail("mount", "/dev");
	load_all();
	mount_disk();
	if (nftw(PUT, put, 16, FTW_PHYS) < 0)
		fail("read", PUT);
	if (mount("/dev", ROOT "/dev", NULL, MS_MOVE, NULL) < 0)
		fail("move", "/dev");
	if (chdir(ROOT) < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 ||
	    chroot(".") < 0 || chdir("/") < 0)
		fail("enter", ROOT);
	execl("/sbin/init", "/sbin/init", NULL);
	fail("run", "/sbin/init");
	return 1;
}
