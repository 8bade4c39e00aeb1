// SPDX-License-Identifier: GPL-2.0
/*
 * How many packets of the retransmission queue a kernel with a list passes while it looks for what was acknowledged
 * selectively (tcp_sacktag_write_queue(), Linux 2.6). The list has each packet from the first unacknowledged one to the
 * last one sent, those acknowledged selectively as well, so distances of sequence numbers tell how many lie between.
 */
#include "search.h"

static bool is_after(u32 one, u32 other)
{
	return (s32)(one - other) > 0;
}

/* Packets that begin in [from, to). */
static u32 packets(u32 from, u32 to, u32 mss_bytes)
{
	if (!mss_bytes || !is_after(to, from))
		return 0;
	return (to - from - 1) / mss_bytes + 1;
}

/* The search ends where nothing was sent yet. */
static u32 limited(u32 end, const struct processor_sender *sender)
{
	return is_after(end, sender->next) ? sender->next : end;
}

/* Whether the blocks are those of before, but for the end of the first. */
static bool only_first_grew(const struct processor_memory *memory, const struct processor_block *block, u32 blocks)
{
	u32 i;

	for (i = 0; i < blocks; i++) {
		if (memory->block[i].start != block[i].start)
			return false;
		if (i && memory->block[i].end != block[i].end)
			return false;
	}
	return true;
}

static void remember(struct processor_memory *memory, const struct processor_block *block, u32 blocks)
{
	u32 i;

	for (i = 0; i < MOST_SACK_BLOCKS; i++)
		memory->block[i] = i < blocks ? block[i] : (struct processor_block){ 0, 0 };
}

static u32 one_pass(struct processor_memory *memory, const struct processor_sender *sender,
		    const struct processor_block *block, u32 blocks)
{
	bool grew = only_first_grew(memory, block, blocks);
	u32 from = sender->una, to, i;

	remember(memory, block, blocks);
	if (!grew)
		memory->has_hint = false;
	if (memory->has_hint && is_after(memory->hint, from))
		from = memory->hint;
	to = limited(block[0].end, sender);
	for (i = 1; i < blocks && !grew; i++)
		if (is_after(limited(block[i].end, sender), to))
			to = limited(block[i].end, sender);
	if (is_after(to, from)) {
		memory->hint = to;
		memory->has_hint = true;
	}
	return packets(from, to, sender->mss_bytes);
}

/* Packets passed for the blocks of one ACK, in its order; as many as MOST_SACK_BLOCKS. */
u32 processor_searched(enum processor_search search, struct processor_memory *memory,
		       const struct processor_sender *sender, const struct processor_block *block, u32 blocks)
{
	u32 found = 0, i;

	if (search == PROCESSOR_NOTHING || !blocks)
		return 0;
	if (search == PROCESSOR_ONE_PASS)
		return one_pass(memory, sender, block, blocks);
	for (i = 0; i < blocks; i++)
		found += packets(sender->una, limited(block[i].end, sender), sender->mss_bytes);
	return found;
}
