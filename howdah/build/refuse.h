/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a confined program cannot ask the kernel for, because neither Landlock nor a
 * network namespace bounds it: sockets that have a name in the file system, behind
 * which a service does what it is told (of a container manager, of the user's
 * session), rings that connect by themselves, and memory, messages and semaphores of
 * System V, which others of this user share.
 *
 * A guest's own calls do not come here: its kernel takes them before the host's does.
 */
#ifndef REFUSE_H
#define REFUSE_H

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup	425
#endif
#define OF_X32			0x40000000U	/* another table of calls, on the same processor */

static const unsigned int refused_calls[] = {
	SYS_connect, SYS_io_uring_setup,
	SYS_shmat, SYS_shmctl, SYS_msgsnd, SYS_msgrcv, SYS_msgctl, SYS_semctl, SYS_semop,
#ifdef SYS_semtimedop
	SYS_semtimedop,
#endif
};

#define REFUSED_CALLS		(sizeof(refused_calls) / sizeof(refused_calls[0]))
#define REFUSE			(SECCOMP_RET_ERRNO | EPERM)

/* Of this process and of what it starts, which has lost its privileges. */
static bool refuse_calls(void)
{
#ifdef __x86_64__
	struct sock_filter rules[REFUSED_CALLS + 7] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, REFUSE),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, OF_X32, REFUSED_CALLS + 1, 0),
	};
	struct sock_fprog filter = { .len = REFUSED_CALLS + 7, .filter = rules };
	unsigned int i;

	for (i = 0; i < REFUSED_CALLS; i++)
		rules[5 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							    refused_calls[i],
							    REFUSED_CALLS - i, 0);
	rules[5 + i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	rules[6 + i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, REFUSE);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
#else
	return false;
#endif
}

#endif
