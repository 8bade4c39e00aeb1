// SPDX-License-Identifier: Apache-2.0
/*
 * Runs in a guest: checks that vector registers survive whatever stops a process.
 *
 * Several processes fill all vector registers (XMM, YMM where there are any, ZMM
 * and the upper sixteen likewise) with a pattern of their own, are interrupted by a
 * page fault, a system call, a switch to another process or a signal whose handler
 * fills them with zeros, and compare. Prints the number of rounds, or what differed.
 *
 * Over a signal only the first sixteen YMM registers are compared: user-mode Linux
 * (6.12, arch/x86/um/signal.c) puts no more of them on the signal's frame.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES	3
#define ROUNDS		4000
#define REGISTERS	32
#define WIDTH		64
#define SIGNAL_REGISTERS	16
#define SIGNAL_WIDTH	32

static uint8_t pattern[REGISTERS][WIDTH] __attribute__((aligned(64)));
static uint8_t seen[REGISTERS][WIDTH] __attribute__((aligned(64)));
static int width, registers;

#define EACH16(m) m(0) m(1) m(2) m(3) m(4) m(5) m(6) m(7) m(8) m(9) m(10) m(11) \
	m(12) m(13) m(14) m(15)
#define UPPER16(m) m(16) m(17) m(18) m(19) m(20) m(21) m(22) m(23) m(24) m(25) \
	m(26) m(27) m(28) m(29) m(30) m(31)
#define LOAD_X(n) "movdqa " #n "*64(%[in]), %%xmm" #n "\n\t"
#define SAVE_X(n) "movdqa %%xmm" #n ", " #n "*64(%[out])\n\t"
#define LOAD_Y(n) "vmovdqa " #n "*64(%[in]), %%ymm" #n "\n\t"
#define SAVE_Y(n) "vmovdqa %%ymm" #n ", " #n "*64(%[out])\n\t"
#define LOAD_Z(n) "vmovdqa64 " #n "*64(%[in]), %%zmm" #n "\n\t"
#define SAVE_Z(n) "vmovdqa64 %%zmm" #n ", " #n "*64(%[out])\n\t"

/* A store to a fresh page, then a system call, between loading and saving. */
#define DISTURBED(load, save)						\
	asm volatile(load						\
		     "movb $1, (%[page])\n\t"				\
		     "syscall\n\t"					\
		     save						\
		     : "+a" (number)					\
		     : [in] "r" (pattern), [out] "r" (seen),		\
		       [page] "r" (page), "D" (first), "S" (second)	\
		     : "rcx", "r11", "memory")

static void disturb(char *page, long number, long first, long second)
{
	if (width == 64)
		DISTURBED(EACH16(LOAD_Z) UPPER16(LOAD_Z), EACH16(SAVE_Z) UPPER16(SAVE_Z));
	else if (width == 32)
		DISTURBED(EACH16(LOAD_Y), EACH16(SAVE_Y));
	else
		DISTURBED(EACH16(LOAD_X), EACH16(SAVE_X));
}

static void clear_registers(int number)
{
	(void)number;
	if (width == 16)
		asm volatile("pxor %xmm0, %xmm0\n\tpxor %xmm15, %xmm15");
	else
		asm volatile("vzeroall");
}

static int smaller(int a, int b)
{
	return a < b ? a : b;
}

static int rounds(int process)
{
	long page_bytes = sysconf(_SC_PAGESIZE);
	int round, i, compared, bytes;
	char *area = NULL;

	signal(SIGUSR1, clear_registers);
	for (round = 0; round < ROUNDS; round++) {
		/* Every 64 rounds a fresh area, so that each store faults. */
		if (round % 64 == 0) {
			if (round)
				munmap(area, 64 * page_bytes);
			area = mmap(NULL, 64 * page_bytes, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		}
		for (i = 0; i < REGISTERS * WIDTH; i++)
			pattern[i / WIDTH][i % WIDTH] = i * 31 + round * 7 + process * 101;
		memset(seen, 0, sizeof(seen));
		compared = registers;
		bytes = width;
		switch (round % 3) {
		case 0:
			disturb(area + round % 64 * page_bytes, SYS_getppid, 0, 0);
			break;
		case 1:
			disturb(area + round % 64 * page_bytes, SYS_sched_yield, 0, 0);
			break;
		default:
			disturb(area + round % 64 * page_bytes, SYS_kill, getpid(), SIGUSR1);
			compared = smaller(registers, SIGNAL_REGISTERS);
			bytes = smaller(width, SIGNAL_WIDTH);
		}
		for (i = 0; i < compared; i++) {
			if (memcmp(pattern[i], seen[i], bytes)) {
				printf("process %d round %d: register %d changed\n",
				       process, round, i);
				return 1;
			}
		}
	}
	return 0;
}

int main(void)
{
	int process, status, failures = 0;

	__builtin_cpu_init();
	width = __builtin_cpu_supports("avx512f") ? 64 :
		__builtin_cpu_supports("avx") ? 32 : 16;
	registers = width == 64 ? 32 : 16;
	for (process = 0; process < PROCESSES; process++) {
		if (!fork())
			exit(rounds(process));
	}
	while (wait(&status) > 0)
		failures += status != 0;
	if (!failures)
		printf("%d processes, %d rounds, %d registers of %d bytes: unchanged\n",
		       PROCESSES, ROUNDS, registers, width);
	return failures;
}
