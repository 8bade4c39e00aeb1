// SPDX-License-Identifier: Apache-2.0
/*
 * What a search of a retransmission queue costs that is a list: walk NODES ROUNDS [scattered].
 *
 * A node has the size and the order of what is read of a packet in Linux 2.6: the next one, the ends of its data, its
 * tags. The loop does what tcp_sacktag_write_queue() does with a packet that the block does not hold.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MSS = 1448, NODE_BYTES = 192 };

struct node {
	struct node *next;
	struct node *previous;
	char before[24];
	uint32_t start, end, when;
	uint8_t flags, tags;
	uint16_t segments;
	uint32_t acknowledged;
	char behind[NODE_BYTES - 60];
};

_Static_assert(sizeof(struct node) == NODE_BYTES, "a node is three lines of a cache");

static int is_before(uint32_t one, uint32_t other)
{
	return (int32_t)(one - other) < 0;
}

__attribute__((noinline)) static uint32_t walk(struct node *node, const struct node *stop, uint32_t block_start,
					       uint32_t block_end, uint32_t una, uint32_t *reordering)
{
	uint32_t passed = 0;

	for (; node != stop; node = node->next) {
		int inside;

		__builtin_prefetch(node->next);
		if (!is_before(node->start, block_end))
			break;
		inside = !is_before(node->start, block_start) && !is_before(block_end, node->end);
		passed += node->segments;
		if (!is_before(una, node->end)) {
			if (passed < *reordering)
				*reordering = passed;
			continue;
		}
		if (inside)
			node->tags |= 1;
	}
	return passed;
}

static double now_s(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int count, char **words)
{
	size_t nodes = strtoul(words[1], NULL, 10), rounds = strtoul(words[2], NULL, 10), index, other, kept;
	struct node *memory = aligned_alloc(64, (nodes + 1) * sizeof(*memory)), *stop = memory + nodes;
	size_t *place = malloc(nodes * sizeof(*place));
	uint32_t reordering = UINT32_MAX;
	volatile uint32_t passed = 0;
	double begin_s;

	memset(memory, 0, (nodes + 1) * sizeof(*memory));
	for (index = 0; index < nodes; index++)
		place[index] = index;
	for (index = nodes - 1; count > 3 && index; index--) {
		other = (size_t)rand() % (index + 1);
		kept = place[index];
		place[index] = place[other];
		place[other] = kept;
	}
	for (index = 0; index < nodes; index++) {
		struct node *node = memory + place[index];

		node->next = index + 1 < nodes ? memory + place[index + 1] : stop;
		node->start = (uint32_t)index * MSS;
		node->end = node->start + MSS;
		node->segments = 1;
	}
	begin_s = now_s();
	for (index = 0; index < rounds; index++)
		passed = walk(memory + place[0], stop, (uint32_t)(nodes - 1) * MSS, (uint32_t)nodes * MSS, 0,
			      &reordering);
	printf("%.3f\n", (now_s() - begin_s) * 1e9 / (double)nodes / (double)rounds);
	free(place);
	free(memory);
	return passed != nodes;
}
