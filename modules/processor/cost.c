// SPDX-License-Identifier: GPL-2.0
/* What a segment costs: a part for each, one for each ACK, and one for each packet searched because of it. */
#include <linux/ip.h>
#include <linux/jhash.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <net/inet_hashtables.h>
#include <net/ip.h>
#include <net/tcp.h>

#include "processor.h"

#define MOST_OPTION_BYTES 40

/* The headers of a segment, wherever they lie. */
struct segment {
	struct processor_tuple tuple;
	u32 start;
	int payload_bytes;
	bool is_ack;
	u32 blocks;
	struct processor_block block[MOST_SACK_BLOCKS];
};

static u32 number_at(const u8 *byte)
{
	__be32 number;

	memcpy(&number, byte, sizeof(number));
	return ntohl(number);
}

static u32 read_sack(struct processor_block *block, const u8 *from, const u8 *to)
{
	u32 blocks;

	for (blocks = 0; blocks < MOST_SACK_BLOCKS && to - from >= 8; blocks++, from += 8)
		block[blocks] = (struct processor_block){ number_at(from), number_at(from + 4) };
	return blocks;
}

static void read_options(struct segment *segment, const u8 *option, const u8 *end)
{
	u32 blocks = 0;

	while (option < end && *option != TCPOPT_EOL) {
		if (*option == TCPOPT_NOP) {
			option++;
			continue;
		}
		if (end - option < 2 || option[1] < 2 || option[1] > end - option)
			break;
		if (*option == TCPOPT_SACK)
			blocks = read_sack(segment->block, option + 2, option + option[1]);
		option += option[1];
	}
	segment->blocks = blocks;
}

/* Whether @skb, at the start of its network header, is a whole segment of IPv4. */
static bool read_segment(const struct sk_buff *skb, struct segment *segment)
{
	u8 options_copy[MOST_OPTION_BYTES];
	const struct tcphdr *tcp;
	const struct iphdr *ip;
	struct tcphdr tcp_copy;
	struct iphdr ip_copy;
	const u8 *options;
	int length;

	ip = skb_header_pointer(skb, 0, sizeof(ip_copy), &ip_copy);
	if (!ip || ip->version != 4 || ip->protocol != IPPROTO_TCP || ip_is_fragment(ip))
		return false;
	tcp = skb_header_pointer(skb, ip->ihl * 4, sizeof(tcp_copy), &tcp_copy);
	if (!tcp || tcp->doff < sizeof(*tcp) / 4)
		return false;
	*segment = (struct segment){
		.tuple = { ip->daddr, ip->saddr, tcp->dest, tcp->source },
		.start = ntohl(tcp->seq),
		.payload_bytes = ntohs(ip->tot_len) - ip->ihl * 4 - tcp->doff * 4,
	};
	segment->is_ack = tcp->ack && !tcp->syn && !tcp->rst && segment->payload_bytes <= 0;
	length = tcp->doff * 4 - sizeof(*tcp);
	options = skb_header_pointer(skb, ip->ihl * 4 + sizeof(*tcp), length, options_copy);
	if (options && tcp->ack && !tcp->syn)
		read_options(segment, options, options + length);
	return true;
}

bool processor_wants(const struct sk_buff *skb)
{
	const struct iphdr *ip;
	struct iphdr copy;

	if (skb->protocol != htons(ETH_P_IP))
		return false;
	ip = skb_header_pointer(skb, 0, sizeof(copy), &copy);
	return ip && ip->version == 4 && ip->protocol == IPPROTO_TCP && !ip_is_fragment(ip);
}

static u32 hash(const struct processor_tuple *tuple)
{
	return jhash_3words((__force u32)tuple->near, (__force u32)tuple->far,
			    (__force u32)tuple->near_port << 16 | (__force u32)tuple->far_port, 0);
}

/* What is remembered of a connection; NULL where there is no memory, and every search is then one from the start. */
static struct processor_memory *memory_of(struct processor *processor, const struct processor_tuple *tuple)
{
	struct processor_flow *flow;

	hash_for_each_possible(processor->flows, flow, node, hash(tuple))
		if (!memcmp(&flow->tuple, tuple, sizeof(*tuple)))
			return &flow->memory;
	flow = kzalloc(sizeof(*flow), GFP_ATOMIC | __GFP_NOWARN);
	if (!flow)
		return NULL;
	flow->tuple = *tuple;
	hash_add(processor->flows, &flow->node, hash(tuple));
	return &flow->memory;
}

void processor_forget(struct processor *processor)
{
	struct processor_flow *flow;
	struct hlist_node *next;
	int bucket;

	hash_for_each_safe(processor->flows, bucket, next, flow, node) {
		hash_del(&flow->node);
		kfree(flow);
	}
}

static u32 search_retransmissions(struct processor *processor, const struct tcp_sock *tp, const struct segment *segment)
{
	struct processor_sender sender = { READ_ONCE(tp->snd_una), READ_ONCE(tp->snd_nxt), READ_ONCE(tp->mss_cache) };
	struct processor_memory *memory = memory_of(processor, &segment->tuple), none = {};

	return processor_searched(processor->options.search, memory ?: &none, &sender, segment->block, segment->blocks);
}

/*
 * tcp_data_queue() of Linux 2.6 goes back from the end of what waits out of order to where the segment belongs, and
 * looks at nothing if that is the end.
 */
static u32 search_out_of_order(struct sock *sk, const struct segment *segment)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct rb_node *node;
	u64 passed_bytes = 0;

	bh_lock_sock(sk);
	if (!sock_owned_by_user(sk) && after(segment->start, tp->rcv_nxt))
		for (node = rb_last(&tp->out_of_order_queue); node; node = rb_prev(node)) {
			const struct sk_buff *held = rb_entry(node, struct sk_buff, rbnode);

			if (!after(TCP_SKB_CB(held)->seq, segment->start))
				break;
			passed_bytes += TCP_SKB_CB(held)->end_seq - TCP_SKB_CB(held)->seq;
		}
	bh_unlock_sock(sk);
	return div_u64(passed_bytes + segment->payload_bytes - 1, segment->payload_bytes);
}

static struct sock *find_socket(struct net_device *dev, const struct processor_tuple *tuple)
{
	struct net *net = dev_net(dev);
	u16 port = ntohs(tuple->near_port);

#ifdef HAVE_LOOKUP_WITHOUT_TABLE
	return __inet_lookup_established(net, tuple->far, tuple->far_port, tuple->near, port, dev->ifindex, 0);
#else
	return __inet_lookup_established(net, net->ipv4.tcp_death_row.hashinfo, tuple->far, tuple->far_port,
					 tuple->near, port, dev->ifindex, 0);
#endif
}

static u32 searched_for(struct processor *processor, const struct segment *segment)
{
	struct sock *sk;
	u32 found = 0;

	if (processor->options.search == PROCESSOR_NOTHING || (!segment->blocks && segment->payload_bytes <= 0))
		return 0;
	sk = find_socket(qdisc_dev(processor->sch), &segment->tuple);
	if (!sk)
		return 0;
	if (sk_fullsock(sk) && sk->sk_protocol == IPPROTO_TCP) {
		if (segment->blocks)
			found += search_retransmissions(processor, tcp_sk(sk), segment);
		if (segment->payload_bytes > 0)
			found += search_out_of_order(sk, segment);
	}
	sock_gen_put(sk);
	return found;
}

/* Begins with a segment: returns its cost in nanoseconds, counted. Caller holds processor->lock. */
u64 processor_take(struct processor *processor, struct sk_buff *skb)
{
	const struct processor_options *options = &processor->options;
	struct processor_stats *stats = &processor->stats;
	struct segment segment;
	u64 cost_ns = options->packet_ns;

	stats->begun++;
	if (read_segment(skb, &segment)) {
		u32 searched = searched_for(processor, &segment);

		stats->acks += segment.is_ack;
		stats->searched += searched;
		cost_ns += (segment.is_ack ? options->ack_ns : 0) + (u64)searched * options->searched_ns;
	}
	stats->cost_ns += cost_ns;
	return cost_ns;
}
