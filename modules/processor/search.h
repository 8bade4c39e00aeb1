/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HOWDAH_PROCESSOR_SEARCH_H
#define HOWDAH_PROCESSOR_SEARCH_H

#include <linux/types.h>

#define MOST_SACK_BLOCKS 4

/* How the emulated kernel looks for the packets that a SACK names. */
enum processor_search {
	PROCESSOR_NOTHING,	/* it knows where they are */
	PROCESSOR_EACH_BLOCK,	/* from the first unacknowledged packet, for each block anew: before Linux 2.6.15 */
	PROCESSOR_ONE_PASS,	/* blocks in order, one pass; if only the first grew, from its old end: 2.6.15 to 23 */
	PROCESSOR_SEARCHES,
};

/* Sequence numbers in the host's byte order. */
struct processor_block {
	u32 start;
	u32 end;
};

/* What the search of before left behind: recv_sack_cache and fastpath_skb_hint of tcp_sacktag_write_queue(). */
struct processor_memory {
	struct processor_block block[MOST_SACK_BLOCKS];
	u32 hint;
	bool has_hint;
};

/* The sender when the ACK comes. */
struct processor_sender {
	u32 una;
	u32 next;
	u32 mss_bytes;
};

u32 processor_searched(enum processor_search search, struct processor_memory *memory,
		       const struct processor_sender *sender, const struct processor_block *block, u32 blocks);

#endif
