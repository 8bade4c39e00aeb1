/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded into the guest's Python (LD_PRELOAD). Each first touch of a page costs a
 * user-mode kernel five changes between its processes, a quarter of what a short
 * run costs in all. So memory that Python will need is there at once: the first
 * megabytes of the heap, and whole arenas of its small objects.
 *
 * Simulated time does not pass meanwhile, so no result depends on it.
 */
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE	23
#endif

#define HEAP_BYTES	(4UL << 20)	/* what the agent has after its imports */
#define ARENA_BYTES	(1UL << 20)	/* ARENA_SIZE, Objects/obmalloc.c */
#define TOP_BYTES	(128UL << 10)	/* the C library's own step */
#define LARGE_BYTES	(32UL << 20)	/* the most that it takes for a limit */
#define PAGE_BYTES	4096UL

/*
 * Python's calls, not those of the C library itself. A file, and what is larger
 * than an arena, is filled as it is used.
 */
void *mmap64(void *address, size_t bytes, int protection, int flags, int file,
	     off_t offset)
{
	const int wanted = MAP_PRIVATE | MAP_ANONYMOUS;

	if ((flags & wanted) == wanted && (protection & PROT_WRITE) &&
	    bytes <= ARENA_BYTES)
		flags |= MAP_POPULATE;
	return (void *)syscall(SYS_mmap, address, bytes, protection, flags,
			       file, offset);
}

void *mmap(void *address, size_t bytes, int protection, int flags, int file,
	   off_t offset)
{
	return mmap64(address, bytes, protection, flags, file, offset);
}

/*
 * The heap grows by as much at its first use. What is freed at its end stays, or
 * the C library would give all of it back. Before Linux 5.14 madvise(2) refuses,
 * and the pages come one by one.
 */
__attribute__((constructor)) static void populate_heap(void)
{
	void *volatile first;
	uintptr_t end, begin;

	unsetenv("LD_PRELOAD");	/* not for what Python starts */
	mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
	mallopt(M_TRIM_THRESHOLD, 2 * LARGE_BYTES);
	mallopt(M_TOP_PAD, HEAP_BYTES);
	first = malloc(1);
	free(first);
	mallopt(M_TOP_PAD, TOP_BYTES);
	end = (uintptr_t)sbrk(0) & -PAGE_BYTES;
	begin = ((uintptr_t)first + PAGE_BYTES) & -PAGE_BYTES;
	if (begin < end && end - begin <= 2 * HEAP_BYTES)
		madvise((void *)begin, end - begin, MADV_POPULATE_WRITE);
}
