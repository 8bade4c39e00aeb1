// SPDX-License-Identifier: GPL-2.0
/* What a hop does to one packet. Everything that is not IPv4 passes as it is. */
#include <linux/icmp.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/dsfield.h>
#ifdef HAVE_NET_GSO
#include <net/gso.h>
#endif
#include <net/icmp.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/route.h>
#include <net/tcp.h>

#include "hop.h"

/* Where the transport header begins, from skb->data; 0 where there is none. */
static u32 transport_offset(const struct sk_buff *skb)
{
	const struct iphdr *ip = ip_hdr(skb);

	return ip_is_fragment(ip) ? 0 : skb_network_offset(skb) + ip->ihl * 4;
}

bool hop_is_large(const struct sk_buff *skb, u32 mtu)
{
	return skb_is_gso(skb) ? !skb_gso_validate_network_len(skb, mtu) : skb->len - skb_network_offset(skb) > mtu;
}

/* Tells the sender by ICMP, as a router does. A copy is answered, because what is answered must look as IP left it. */
bool hop_answer(struct sk_buff *skb, const struct net_device *device, u32 mtu)
{
	struct flowi4 flow = { .daddr = ip_hdr(skb)->daddr };
	struct sk_buff *copy;
	struct rtable *route;

	if (!(ip_hdr(skb)->frag_off & htons(IP_DF)))
		return false;
	route = ip_route_output_key(dev_net(device), &flow);
	if (IS_ERR(route))
		return false;
	copy = skb_copy(skb, GFP_ATOMIC);
	if (!copy) {
		ip_rt_put(route);
		return false;
	}
	skb_pull(copy, skb_network_offset(copy));
	memset(copy->cb, 0, sizeof(copy->cb));
	copy->pkt_type = PACKET_HOST;
	skb_dst_drop(copy);
	skb_dst_set(copy, &route->dst);
	icmp_send(copy, ICMP_DEST_UNREACH, ICMP_FRAG_NEEDED, htonl(mtu));
	consume_skb(copy);
	return true;
}

bool hop_clear_ecn(struct sk_buff *skb)
{
	if (!(ip_hdr(skb)->tos & INET_ECN_MASK) ||
	    skb_ensure_writable(skb, skb_network_offset(skb) + sizeof(struct iphdr)))
		return false;
	ipv4_change_dsfield(ip_hdr(skb), (__u8)~INET_ECN_MASK, 0);
	return true;
}

/* Puts NOPs where the options were. */
static bool overwrite(u8 *option, const u8 *end, u32 kinds)
{
	bool found = false;

	while (option < end && *option != TCPOPT_EOL) {
		u8 length;

		if (*option == TCPOPT_NOP) {
			option++;
			continue;
		}
		if (end - option < 2)
			break;
		length = option[1];
		if (length < 2 || length > end - option)
			break;
		if (*option < 32 && kinds & BIT(*option)) {
			memset(option, TCPOPT_NOP, length);
			found = true;
		}
		option += length;
	}
	return found;
}

/* Of a SYN, with or without ACK: what is not agreed on there is not used. */
bool hop_strip(struct sk_buff *skb, u32 kinds)
{
	u32 at = transport_offset(skb), end;
	struct tcphdr *tcp;

	if (!at || ip_hdr(skb)->protocol != IPPROTO_TCP || !pskb_may_pull(skb, at + sizeof(*tcp)))
		return false;
	tcp = (struct tcphdr *)(skb->data + at);
	if (!tcp->syn || tcp->doff * 4 < sizeof(*tcp))
		return false;
	end = at + tcp->doff * 4;
	if (skb_ensure_writable(skb, end))
		return false;
	tcp = (struct tcphdr *)(skb->data + at);
	if (!overwrite((u8 *)(tcp + 1), skb->data + end, kinds))
		return false;
	if (skb->ip_summed != CHECKSUM_PARTIAL) {
		const struct iphdr *ip = ip_hdr(skb);
		u32 bytes = skb->len - at;

		tcp->check = 0;
		tcp->check = csum_tcpudp_magic(ip->saddr, ip->daddr, bytes, IPPROTO_TCP,
					       skb_checksum(skb, at, bytes, 0));
		skb->ip_summed = CHECKSUM_NONE;
	}
	return true;
}

/* Turns one bit over that a checksum covers: of the payload, or of the checksum where there is none. */
bool hop_corrupt(struct sk_buff *skb, u32 random)
{
	u32 at = transport_offset(skb), first;
	u8 protocol = ip_hdr(skb)->protocol;

	if (!at || skb_is_gso(skb) || (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP) || skb_linearize(skb))
		return false;
	if (skb->ip_summed == CHECKSUM_PARTIAL && skb_checksum_help(skb))
		return false;
	if (skb_ensure_writable(skb, skb->len))
		return false;
	if (protocol == IPPROTO_TCP) {
		const struct tcphdr *tcp = (const struct tcphdr *)(skb->data + at);

		first = at + tcp->doff * 4;
		if (first >= skb->len)
			first = at + offsetof(struct tcphdr, check);
		if (first >= skb->len)
			return false;
	} else {
		const struct udphdr *udp = (const struct udphdr *)(skb->data + at);

		first = at + sizeof(*udp);
		if (first >= skb->len || !udp->check)
			return false;
	}
	skb->data[first] ^= BIT(random & 7);
	skb->ip_summed = CHECKSUM_NONE;
	return true;
}
