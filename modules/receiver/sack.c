// SPDX-License-Identifier: GPL-2.0
/* Selective acknowledgements that are not reported: blocks of the option become padding, so that no length changes. */
#include <linux/ip.h>
#include <linux/tcp.h>
#include <net/tcp.h>

#include "receiver.h"

/* The option that has so many blocks or more is cut to that number. Returns whether anything was written. */
static bool cut(u8 *option, unsigned int length, unsigned int blocks)
{
	unsigned int kept = blocks ? TCPOLEN_SACK_BASE + blocks * TCPOLEN_SACK_PERBLOCK : 0;

	if (length <= kept)
		return false;
	memset(option + kept, TCPOPT_NOP, length - kept);
	if (kept)
		option[1] = kept;
	return true;
}

static bool edit(struct tcphdr *tcp, unsigned int blocks)
{
	u8 *option = (u8 *)(tcp + 1);
	u8 *end = (u8 *)tcp + tcp->doff * 4;

	while (option < end && *option != TCPOPT_EOL) {
		unsigned int length = 1;

		if (*option != TCPOPT_NOP) {
			if (end - option < 2 || option[1] < 2 || option[1] > end - option)
				return false;
			length = option[1];
			if (*option == TCPOPT_SACK)
				return cut(option, length, blocks);
		}
		option += length;
	}
	return false;
}

/**
 * receiver_limit_sack() - let a segment report no more than some blocks
 * @skb: an IPv4 TCP segment on its way out, data at its link-layer header
 * @blocks: the first ones, as many as this, stay
 *
 * Return: 0, or -ENOMEM when the header could not be made writable.
 */
int receiver_limit_sack(struct sk_buff *skb, unsigned int blocks)
{
	unsigned int offset = skb_transport_offset(skb);
	struct tcphdr *tcp = tcp_hdr(skb);
	unsigned int length = skb->len - offset;
	const struct iphdr *ip;

	if (tcp->doff * 4 <= sizeof(*tcp))
		return 0;
	if (skb_ensure_writable(skb, offset + tcp->doff * 4))
		return -ENOMEM;
	tcp = tcp_hdr(skb);
	if (!edit(tcp, blocks) || skb->ip_summed == CHECKSUM_PARTIAL)
		return 0;	/* a checksum still to be computed covers addresses and length only */
	ip = ip_hdr(skb);
	tcp->check = 0;
	tcp->check = tcp_v4_check(length, ip->saddr, ip->daddr, skb_checksum(skb, offset, length, 0));
	return 0;
}
