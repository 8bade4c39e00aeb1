// SPDX-License-Identifier: Apache-2.0
/*
 * Loaded into the user-mode kernel's own process by LD_PRELOAD. It replaces some
 * C library functions, and ends a kernel that starts itself again: that is how
 * user-mode Linux reboots, and a guest runs once.
 *
 * ptrace(): user-mode Linux keeps the floating point state of each guest process
 * in a buffer whose size was fixed when it was compiled (2696 bytes up to 6.12).
 * Where the machine's XSAVE area is larger (AMX: 11008 bytes), the host takes
 * PTRACE_SETREGSET only for the whole area and answers EFAULT. Here the area is
 * kept whole for each traced process and the kernel's buffer is its head. What
 * lies behind the head are the AMX tiles, which a guest cannot use: they need
 * arch_prctl(ARCH_REQ_XCOMP_PERM) from the host.
 *
 * The same record saves system calls: a stopped process keeps its registers until
 * it is resumed, so reading them twice, or writing back what was read, needs no
 * call. Any request that is not known to leave the process stopped and its
 * floating point registers alone ends the validity of the record.
 *
 * A descriptor that HOWDAH_WIRE names becomes number 250: the memory that the
 * kernels of a run share, where the module howdah_wire looks for it.
 *
 * The heap: the kernel takes the gap between its own end and its heap for more memory
 * (arch/um/kernel/um_arch.c, linux_main), and where a container forbids to switch
 * address randomisation off, that gap is random. Here the heap is put where it begins
 * without randomisation, before anything is in it.
 *
 * open(): with HOWDAH_MEMORY=memfd the guest's memory, which the kernel asks for as
 * an unnamed file in a directory, is memory of no file system: where every directory
 * is mounted noexec, nothing else could be executed.
 *
 * access(): a guest needs no terminal of the host and may open none (confine.h). Where
 * the kernel sees none, it does not complain that it cannot try one.
 *
 * getrandom(): the only entropy a user-mode kernel takes from its host (the other
 * source it mixes in is its own clock, which is virtual). With HOWDAH_SEED set the
 * bytes are a function of the seed, so that sequence numbers, hash seeds and
 * everything else the guest draws are the same in every rerun.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/prctl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef NT_X86_XSTATE
#define NT_X86_XSTATE	0x202
#endif

#define AREA_BYTES	(32 * 1024)
#define TRACEES		256
#define REBOOTED	124
#define NOT_STARTED	126
#define WIRE_DESCRIPTOR	250

/* pid 0 marks a free record; length 0 says that the area was never read. */
struct tracee {
	long pid;
	size_t length;
	bool valid;
	uint8_t area[AREA_BYTES];
};

static struct tracee tracees[TRACEES];

static struct tracee *tracee_of(long pid)
{
	struct tracee *tracee = &tracees[(unsigned long)pid % TRACEES];

	if (tracee->pid != pid) {
		tracee->pid = pid;
		tracee->length = 0;
		tracee->valid = false;
	}
	return tracee;
}

static long read_area(struct tracee *tracee)
{
	struct iovec whole = { tracee->area, sizeof(tracee->area) };
	long result;

	result = syscall(SYS_ptrace, PTRACE_GETREGSET, tracee->pid,
			 NT_X86_XSTATE, &whole);
	if (result < 0)
		return result;
	tracee->length = whole.iov_len;
	tracee->valid = true;
	return 0;
}

static long get_state(long pid, struct iovec *head)
{
	struct tracee *tracee = tracee_of(pid);

	if (!tracee->valid && read_area(tracee) < 0)
		return -1;
	if (head->iov_len > tracee->length)
		head->iov_len = tracee->length;
	memcpy(head->iov_base, tracee->area, head->iov_len);
	return 0;
}

static long set_state(long pid, const struct iovec *head)
{
	struct tracee *tracee = tracee_of(pid);
	size_t bytes = head->iov_len;
	struct iovec whole;
	long result;

	if (!tracee->length && read_area(tracee) < 0)
		return -1;
	if (bytes > tracee->length)
		bytes = tracee->length;
	if (tracee->valid && !memcmp(tracee->area, head->iov_base, bytes))
		return 0;
	memcpy(tracee->area, head->iov_base, bytes);
	whole.iov_base = tracee->area;
	whole.iov_len = tracee->length;
	result = syscall(SYS_ptrace, PTRACE_SETREGSET, pid, NT_X86_XSTATE,
			 &whole);
	tracee->valid = result == 0;
	return result;
}

/* Requests after which the process is still stopped, its FP registers as before. */
static bool leaves_state_alone(int request)
{
	switch (request) {
	case PTRACE_GETREGS:
	case PTRACE_SETREGS:
	case PTRACE_GETFPREGS:
	case PTRACE_GETREGSET:
	case PTRACE_PEEKDATA:
	case PTRACE_PEEKTEXT:
	case PTRACE_PEEKUSER:
	case PTRACE_POKEDATA:
	case PTRACE_POKETEXT:
	case PTRACE_GETSIGINFO:
		return true;
	default:
		return false;
	}
}

long ptrace(enum __ptrace_request request, ...)
{
	void *address, *data;
	long pid, result, word;
	va_list arguments;

	va_start(arguments, request);
	pid = va_arg(arguments, pid_t);
	address = va_arg(arguments, void *);
	data = va_arg(arguments, void *);
	va_end(arguments);

	if ((long)address == NT_X86_XSTATE) {
		if (request == PTRACE_GETREGSET)
			return get_state(pid, data);
		if (request == PTRACE_SETREGSET)
			return set_state(pid, data);
	}
	if (!leaves_state_alone(request))
		tracee_of(pid)->valid = false;

	/* The system call stores a peeked word; the C library returns it. */
	if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA ||
	    request == PTRACE_PEEKUSER) {
		result = syscall(SYS_ptrace, request, pid, address, &word);
		if (result < 0)
			return result;
		errno = 0;
		return word;
	}
	return syscall(SYS_ptrace, request, pid, address, data);
}

__attribute__((constructor)) static void start_once(void)
{
	if (getenv("HOWDAH_STARTED")) {
		dprintf(STDERR_FILENO, "howdah-shim: the guest rebooted\n");
		_exit(REBOOTED);
	}
	setenv("HOWDAH_STARTED", "1", 1);
}

__attribute__((constructor)) static void place_wire(void)
{
	const char *given = getenv("HOWDAH_WIRE");
	int descriptor;

	if (!given || !*given)
		return;
	descriptor = atoi(given);
	if (descriptor == WIRE_DESCRIPTOR)
		return;
	if (dup2(descriptor, WIRE_DESCRIPTOR) < 0) {
		dprintf(STDERR_FILENO, "howdah-shim: no descriptor %s\n", given);
		_exit(NOT_STARTED);
	}
	close(descriptor);
}

/* Where the program itself lies; the loader names it first. */
static int see_program(struct dl_phdr_info *program, size_t size, void *found)
{
	struct prctl_mm_map *map = found;
	int i;

	(void)size;
	for (i = 0; i < program->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &program->dlpi_phdr[i];
		uint64_t begin = program->dlpi_addr + part->p_vaddr;

		if (part->p_type != PT_LOAD)
			continue;
		if (part->p_flags & PF_X) {
			map->start_code = begin;
			map->end_code = begin + part->p_filesz;
		}
		if (part->p_flags & PF_W) {
			map->start_data = begin;
			map->end_data = begin + part->p_filesz;
		}
		if (begin + part->p_memsz > map->start_brk)
			map->start_brk = begin + part->p_memsz;
	}
	return 1;
}

__attribute__((constructor(101))) static void place_heap(int count, char **arguments, char **environment)
{
	uint64_t page = sysconf(_SC_PAGESIZE) - 1, heap = (uint64_t)sbrk(0);
	struct prctl_mm_map map = { .exe_fd = -1 };
	char **last = environment;

	dl_iterate_phdr(see_program, &map);
	map.start_brk = (map.start_brk + page) & ~page;
	map.brk = map.start_brk;
	if (((heap + page) & ~page) == map.start_brk || !count || !*environment)
		return;
	while (last[1])
		last++;
	map.start_stack = (uint64_t)arguments;
	map.arg_start = (uint64_t)arguments[0];
	map.arg_end = (uint64_t)(arguments[count - 1] + strlen(arguments[count - 1]) + 1);
	map.env_start = (uint64_t)environment[0];
	map.env_end = (uint64_t)(*last + strlen(*last) + 1);
	/* brk() tells the C library, which keeps the end of the heap in mind. */
	if (prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0) < 0 || brk((void *)map.brk) < 0)
		dprintf(STDERR_FILENO, "howdah-shim: the heap stays at a random address: %m\n");
}

int open64(const char *path, int flags, ...)
{
	bool unnamed = (flags & O_TMPFILE) == O_TMPFILE;
	const char *memory = getenv("HOWDAH_MEMORY");
	va_list arguments;
	int mode = 0;

	va_start(arguments, flags);
	if (unnamed || flags & O_CREAT)
		mode = va_arg(arguments, int);
	va_end(arguments);
	if (unnamed && memory && !strcmp(memory, "memfd"))
		return memfd_create("guest", MFD_CLOEXEC);
	return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int access(const char *path, int mode)
{
	if (!strncmp(path, "/dev/pt", strlen("/dev/pt"))) {
		errno = ENOENT;
		return -1;
	}
	return syscall(SYS_access, path, mode);
}

static uint64_t stream_state;
static int stream_seeded = -1;

/* SplitMix64 (Steele, Lea, Flood 2014): one 64-bit word of the stream. */
static uint64_t next_word(void)
{
	uint64_t word = stream_state += 0x9e3779b97f4a7c15ULL;

	word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
	word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
	return word ^ (word >> 31);
}

ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
	uint8_t *place = buffer;
	size_t left = length;

	if (stream_seeded < 0) {
		const char *seed = getenv("HOWDAH_SEED");

		stream_seeded = seed && *seed;
		if (stream_seeded)
			stream_state = strtoull(seed, NULL, 10);
	}
	if (!stream_seeded)
		return syscall(SYS_getrandom, buffer, length, flags);

	while (left) {
		uint64_t word = next_word();
		size_t bytes = left < sizeof(word) ? left : sizeof(word);

		memcpy(place, &word, bytes);
		place += bytes;
		left -= bytes;
	}
	return length;
}
