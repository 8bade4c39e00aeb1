// SPDX-License-Identifier: GPL-2.0
/*
 * Frames through memory that the kernels share.
 *
 * A frame is made again as it was: the same linear part, the same size in a socket's account (truesize), the same
 * checksum still to be computed. TCP's receive window, the coalescing of segments and much else depend on these, and a
 * receiver shall not see whether its frames came from the same kernel.
 */
#include <linux/etherdevice.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "wire.h"

#define HOST_MMAP	9
#define HOST_READ_WRITE	3
#define HOST_SHARED	1
#define ALIGNMENT	16
#define WRAP		U32_MAX		/* a record's length: go on at the beginning of the ring */

struct record {
	u64 stamp_ns;
	u32 length;
	u32 wire;
	u32 linear;		/* bytes of the frame in the linear part */
	u32 end;		/* size of the linear part */
	u32 truesize;
	u32 headroom;
	u32 priority;
	u32 mark;
	u32 hash;
	u32 gso_type;
	u16 gso_size;
	u16 gso_segs;
	u16 csum_start;		/* from the frame's first byte */
	u16 csum_offset;
	u16 transport;		/* the same; 0: not known */
	u8 partial;		/* the checksum is still to be computed */
	u8 cloned;
	u8 hash_is_l4;
	u8 hash_is_sw;
	u8 unused[6];
	u8 data[];
};

struct wire_memory wire_memory;
static u8 *memory;
static struct sk_buff_head held;

struct wire_part *wire_part(int part)
{
	return (struct wire_part *)(memory + WIRE_PAGE * (1 + (size_t)part));
}

static struct wire_ring *ring_of(int from, int to)
{
	size_t parts = wire_memory.header->parts;
	size_t before = (from * parts + to) * (WIRE_PAGE + wire_memory.header->ring_bytes);

	return (struct wire_ring *)(memory + WIRE_PAGE * (1 + parts) + before);
}

static u8 *bytes_of(struct wire_ring *ring)
{
	return (u8 *)ring + WIRE_PAGE;
}

static long map(size_t bytes)
{
	return wire_host(HOST_MMAP, 0, bytes, HOST_READ_WRITE, HOST_SHARED, WIRE_DESCRIPTOR, 0);
}

/* -ENODEV where the kernel was started alone. */
int wire_attach(int part)
{
	const struct wire_header *header;
	long address = map(WIRE_PAGE);
	size_t parts;

	skb_queue_head_init(&held);
	if (address < 0 && address > -WIRE_PAGE)
		return -ENODEV;
	header = (const struct wire_header *)address;
	if (header->magic != WIRE_MAGIC || header->version != WIRE_VERSION || header->parts > WIRE_MOST_PARTS ||
	    part < 0 || part >= header->parts || header->ring_bytes % WIRE_PAGE)
		return -EINVAL;
	parts = header->parts;
	address = map(WIRE_PAGE * (1 + parts) + parts * parts * (WIRE_PAGE + header->ring_bytes));
	if (address < 0 && address > -WIRE_PAGE)
		return address;
	memory = (u8 *)address;
	wire_memory.header = (const struct wire_header *)memory;
	wire_memory.part = part;
	return 0;
}

/* False where the ring is full. The frame stays the caller's. */
bool wire_put(int to, u32 number, u64 stamp_ns, struct sk_buff *skb)
{
	struct wire_ring *ring = ring_of(wire_memory.part, to);
	size_t size = wire_memory.header->ring_bytes;
	size_t need = ALIGN(sizeof(struct record) + skb->len, ALIGNMENT);
	u64 head = ring->head;
	/* Pairs with wire_take(): what it has let go of can be written over. */
	u64 tail = smp_load_acquire(&ring->tail);
	size_t place = head % size;
	struct record *record;

	if (place + need > size) {
		if (head + (size - place) + need - tail > size)
			return false;
		if (place + sizeof(*record) <= size)
			((struct record *)(bytes_of(ring) + place))->length = WRAP;
		head += size - place;
		place = 0;
	} else if (head + need - tail > size) {
		return false;
	}
	record = (struct record *)(bytes_of(ring) + place);
	*record = (struct record){
		.stamp_ns = stamp_ns,
		.length = skb->len,
		.wire = number,
		.linear = skb_headlen(skb),
		.end = skb_end_offset(skb),
		.truesize = skb->truesize,
		.headroom = skb_headroom(skb),
		.priority = skb->priority,
		.mark = skb->mark,
		.hash = skb->hash,
		.hash_is_l4 = skb->l4_hash,
		.hash_is_sw = skb->sw_hash,
		.gso_type = skb_shinfo(skb)->gso_type,
		.gso_size = skb_shinfo(skb)->gso_size,
		.gso_segs = skb_shinfo(skb)->gso_segs,
		.cloned = skb_cloned(skb),
	};
	if (skb->ip_summed == CHECKSUM_PARTIAL) {
		record->partial = 1;
		record->csum_start = skb_checksum_start_offset(skb);
		record->csum_offset = skb->csum_offset;
	}
	if (skb_transport_header_was_set(skb) && skb_transport_offset(skb) > 0)
		record->transport = skb_transport_offset(skb);
	skb_copy_bits(skb, 0, record->data, skb->len);
	/* Pairs with wire_take(): the record is whole before it can be seen. */
	smp_store_release(&ring->head, head + need);
	return true;
}

static bool add_pages(struct sk_buff *skb, const u8 *data, u32 length)
{
	while (length) {
		u32 bytes = min_t(u32, length, PAGE_SIZE);
		struct page *page = alloc_page(GFP_ATOMIC | __GFP_NOWARN);

		if (!page || skb_shinfo(skb)->nr_frags == MAX_SKB_FRAGS) {
			if (page)
				__free_page(page);
			return false;
		}
		memcpy(page_address(page), data, bytes);
		skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, 0, bytes, PAGE_SIZE);
		data += bytes;
		length -= bytes;
	}
	return true;
}

static struct sk_buff *make(const struct record *record)
{
	struct sk_buff *skb = alloc_skb(record->end, GFP_ATOMIC | __GFP_NOWARN);

	if (!skb)
		return NULL;
	skb_reserve(skb, min_t(u32, record->headroom, record->end - record->linear));
	skb_put_data(skb, record->data, record->linear);
	if (!add_pages(skb, record->data + record->linear, record->length - record->linear)) {
		kfree_skb(skb);
		return NULL;
	}
	skb->truesize = record->truesize;
	skb->priority = record->priority;
	skb->mark = record->mark;
	skb->hash = record->hash;
	skb->l4_hash = record->hash_is_l4;
	skb->sw_hash = record->hash_is_sw;
	skb_shinfo(skb)->gso_type = record->gso_type;
	skb_shinfo(skb)->gso_size = record->gso_size;
	skb_shinfo(skb)->gso_segs = record->gso_segs;
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, ETH_HLEN);
	if (record->transport)
		skb_set_transport_header(skb, record->transport);
	skb->protocol = eth_hdr(skb)->h_proto;
	if (record->partial)
		skb_partial_csum_set(skb, record->csum_start, record->csum_offset);
	return skb;
}

/*
 * A segment that TCP keeps for a retransmission is shared with it until it is acknowledged, hence longer than the
 * receiver has it, and shared segments are not coalesced. A second reference stands for the sender's.
 */
static void share(struct sk_buff *skb)
{
	struct sk_buff *other = skb_clone(skb, GFP_ATOMIC | __GFP_NOWARN);

	if (other)
		__skb_queue_tail(&held, other);
}

/* Of frames that their receivers have done with. */
void wire_release_held(void)
{
	struct sk_buff *skb, *next;

	skb_queue_walk_safe(&held, skb, next) {
		if (skb_cloned(skb))
			continue;
		__skb_unlink(skb, &held);
		consume_skb(skb);
	}
}

/* Everything that a part sent before a time, in the order in which it sent it. */
void wire_take(int from, u64 before_ns)
{
	struct wire_ring *ring = ring_of(from, wire_memory.part);
	size_t size = wire_memory.header->ring_bytes;
	/* Pairs with wire_put(). */
	u64 head = smp_load_acquire(&ring->head);
	u64 tail = ring->tail;

	while (tail < head) {
		size_t place = tail % size;
		const struct record *record = (const struct record *)(bytes_of(ring) + place);
		struct Qdisc *sch;
		struct sk_buff *skb;

		if (place + sizeof(*record) > size || record->length == WRAP) {
			tail += size - place;
			continue;
		}
		if (record->stamp_ns >= before_ns)
			break;
		sch = record->wire < WIRE_MOST_WIRES ? wire_arriving[record->wire] : NULL;
		skb = sch ? make(record) : NULL;
		if (skb) {
			if (record->cloned)
				share(skb);
			wire_arrived(sch, skb, record->stamp_ns);
		} else if (sch) {
			((struct wire *)qdisc_priv(sch))->lost_frames++;
		} else {
			pr_err_ratelimited("howdah_wire: a frame for the wire %u, which ends nowhere\n", record->wire);
		}
		tail += ALIGN(sizeof(*record) + record->length, ALIGNMENT);
	}
	/* Pairs with wire_put(): nothing is read any more of what comes before. */
	smp_store_release(&ring->tail, tail);
}
