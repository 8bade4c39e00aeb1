// SPDX-License-Identifier: GPL-2.0
/*
 * Of a user-mode kernel that panics at a signal of its host: the instruction and the calls that led there.
 *
 * The kernel names neither. It knows the registers of a page fault (thread.segv_regs) and prints the calls alone; of
 * any other signal, such as that of a division by zero, it has no registers at hand and gives up ("Received SIGSEGV in
 * SIGSEGV handler"). The host has put them on the stack of the handler in which the kernel panics.
 */

#include <linux/kernel.h>
#include <linux/notifier.h>
#ifdef HAVE_PANIC_NOTIFIER
#include <linux/panic_notifier.h>
#endif
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/thread_info.h>

#include "traffic.h"

/*
 * What the host puts there (struct rt_sigframe of x86-64), in words: the registers are those of struct sigcontext, and
 * struct siginfo begins 33 words behind the first of them: 32 of struct sigcontext and one of blocked signals.
 */
#define REGISTERS_TO_INFO 33
#define INFO_WORDS 3		/* signal and errno, code, address */
#define CONTEXT_BP 10
#define CONTEXT_SP 15
#define CONTEXT_IP 16

static struct pt_regs interrupted;

/* Registers of the latest signal that tells the address of its instruction, which is therefore there twice. */
static struct pt_regs *signal_regs(void)
{
	unsigned long here = (unsigned long)&here;
	unsigned long *word = (unsigned long *)here + REGISTERS_TO_INFO;
	unsigned long *end = (unsigned long *)ALIGN(here, THREAD_SIZE) - INFO_WORDS;

	for (; word <= end; word++) {
		const unsigned long *context = word - REGISTERS_TO_INFO;

		if (word[0] != SIGFPE && word[0] != SIGILL)
			continue;
		if (!word[2] || word[2] != context[CONTEXT_IP])
			continue;
		PT_REGS_IP(&interrupted) = context[CONTEXT_IP];
		PT_REGS_SP(&interrupted) = context[CONTEXT_SP];
		PT_REGS_BP(&interrupted) = context[CONTEXT_BP];
		return &interrupted;
	}
	return NULL;
}

static int traffic_crash_panics(struct notifier_block *block, unsigned long event, void *text)
{
	bool told = current->thread.segv_regs;

	if (!told)
		current->thread.segv_regs = signal_regs();
	if (!current->thread.segv_regs)
		return NOTIFY_DONE;
	pr_emerg("RIP: %pS\n", (void *)PT_REGS_IP(current->thread.segv_regs));
	if (!told)
		dump_stack();
	return NOTIFY_DONE;
}

/* Before the kernel's own, which ends it. */
static struct notifier_block panics = {
	.notifier_call = traffic_crash_panics,
	.priority = INT_MAX,
};

void traffic_crash_init(void)
{
	atomic_notifier_chain_register(&panic_notifier_list, &panics);
}

void traffic_crash_exit(void)
{
	atomic_notifier_chain_unregister(&panic_notifier_list, &panics);
}
