// SPDX-License-Identifier: GPL-2.0
/* The opportunities of a link, round after round. */

#include <linux/errno.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "link.h"

int link_trace_make(struct link_trace *trace, u32 opportunities, u64 round_ns)
{
	if (!opportunities)
		return 0;
	if (opportunities > LINK_MOST_OPPORTUNITIES || !round_ns)
		return -EINVAL;
	trace->gaps_us = kvcalloc(opportunities, sizeof(*trace->gaps_us), GFP_KERNEL);
	if (!trace->gaps_us)
		return -ENOMEM;
	trace->opportunities = opportunities;
	trace->round_ns = round_ns;
	return 0;
}

/* A round is never shorter than its opportunities: time would go back. */
int link_trace_add(struct link_trace *trace, const u32 *gaps_us, u32 count)
{
	u32 number;

	if (count > trace->opportunities - trace->known)
		return -EINVAL;
	for (number = 0; number < count; number++)
		trace->length_ns += (u64)gaps_us[number] * NSEC_PER_USEC;
	if (trace->length_ns > trace->round_ns)
		return -EINVAL;
	memcpy(trace->gaps_us + trace->known, gaps_us, count * sizeof(*gaps_us));
	trace->known += count;
	return 0;
}

void link_trace_free(struct link_trace *trace)
{
	kvfree(trace->gaps_us);
}

int link_trace_begin(struct link_trace *trace, u64 begin_ns)
{
	if (!trace->opportunities || trace->known != trace->opportunities)
		return -EINVAL;
	trace->begun_ns = begin_ns;
	trace->number = 0;
	trace->next_ns = begin_ns + (u64)trace->gaps_us[0] * NSEC_PER_USEC;
	return 0;
}

/* To the next opportunity. The one behind the last is the first of the next round. */
void link_trace_step(struct link_trace *trace)
{
	if (++trace->number == trace->opportunities) {
		trace->begun_ns += trace->round_ns;
		trace->number = 0;
		trace->next_ns = trace->begun_ns;
	}
	trace->next_ns += (u64)trace->gaps_us[trace->number] * NSEC_PER_USEC;
}
