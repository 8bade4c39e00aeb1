// SPDX-License-Identifier: GPL-2.0
/*
 * The clocks of several kernels, kept together without a master.
 *
 * What one part sends at time t reaches another no sooner than t + lookahead. So a part may go on from T to T + window
 * once every other part that sends to it has come to T + window - lookahead: all that can arrive until then is in its
 * rings. At each multiple of the window a part tells how far it is and waits for the others. The window is no longer
 * than the least lookahead, so the slowest part never waits for another one that is at the same multiple.
 *
 * While a part waits, its process sleeps in a futex of the machine and its virtual clock stands still: that leaves no
 * trace in it. The window is a multiple of the tick, so that its timer expires in an interrupt that the tick causes
 * anyway (howdah/agent/loop.py says why this matters).
 */
#include <linux/hrtimer.h>
#include <linux/version.h>

#include "wire.h"

#define HOST_FUTEX	202
#define FUTEX_WAIT_OP	0
#define FUTEX_WAKE_OP	1
#define SPINS		2000

static struct hrtimer barrier;

static void tell(u64 progress_ns)
{
	struct wire_part *me = wire_part(wire_memory.part);
	bool asleep = false;
	int part;

	/* Pairs with wait_for(): what was sent before is in the rings. */
	smp_store_release(&me->progress_ns, progress_ns);
	WRITE_ONCE(me->moves, me->moves + 1);
	/*
	 * Pairs with that of wait_for(). The others are processes on other processors, whatever this kernel was
	 * built for: smp_mb() would not do.
	 */
	mb();
	for (part = 0; part < wire_memory.header->parts; part++)
		asleep |= READ_ONCE(me->waiting[part]);
	if (asleep)
		wire_host(HOST_FUTEX, (long)&me->moves, FUTEX_WAKE_OP, INT_MAX, 0, 0, 0);
}

/* In real time and in no virtual time; a loop of cpu_relax() would let the virtual clock go on. */
static void wait_for(int part, u64 needed_ns)
{
	struct wire_part *other = wire_part(part);
	int spin;
	u32 moves;

	for (spin = 0; spin < SPINS; spin++) {
		/* Pairs with tell(). */
		if (smp_load_acquire(&other->progress_ns) >= needed_ns)
			return;
		asm volatile("pause" ::: "memory");
	}
	WRITE_ONCE(other->waiting[wire_memory.part], 1);
	for (;;) {
		moves = READ_ONCE(other->moves);
		/* Pairs with that of tell(): it sees that we wait, or we see how far it is. */
		mb();
		/* Pairs with tell(). */
		if (smp_load_acquire(&other->progress_ns) >= needed_ns)
			break;
		wire_host(HOST_FUTEX, (long)&other->moves, FUTEX_WAIT_OP, moves, 0, 0, 0);
	}
	WRITE_ONCE(other->waiting[wire_memory.part], 0);
}

static enum hrtimer_restart come_to(struct hrtimer *timer)
{
	const struct wire_header *header = wire_memory.header;
	u64 now = ktime_to_ns(hrtimer_get_expires(timer)), until = now + header->window_ns;
	int part;

	tell(now);
	wire_release_held();
	for (part = 0; part < header->parts; part++) {
		u64 lookahead = header->lookahead_ns[part][wire_memory.part];

		if (part == wire_memory.part || !lookahead)
			continue;
		if (until > lookahead)
			wait_for(part, until - lookahead);
		wire_take(part, until > lookahead ? until - lookahead : 0);
	}
	hrtimer_set_expires(timer, ns_to_ktime(until));
	return HRTIMER_RESTART;
}

void wire_barrier_start(void)
{
	u64 window = wire_memory.header->window_ns;
	u64 first = (div64_u64(ktime_get_ns(), window) + 1) * window;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
	hrtimer_setup(&barrier, come_to, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
#else
	hrtimer_init(&barrier, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	barrier.function = come_to;
#endif
	hrtimer_start(&barrier, ns_to_ktime(first), HRTIMER_MODE_ABS_SOFT);
}

/* Nothing more comes from here, and the others need not wait. */
void wire_barrier_stop(void)
{
	hrtimer_cancel(&barrier);
	tell(WIRE_NEVER);
}
