/* SPDX-License-Identifier: GPL-2.0-only */
/* Sockets, addresses and name spaces, as far as a congestion control sees them. */
#ifndef SHIM_NET_SOCK_H
#define SHIM_NET_SOCK_H

#include <linux/module.h>
#include <linux/hash.h>
#include <linux/list.h>
#include <linux/spinlock.h>

#define RCV_SHUTDOWN	1
#define SEND_SHUTDOWN	2
#define AF_INET		2
#define AF_INET6	10

/* The kernel has u8 and int here; plug-ins read them only. */
struct netns_ipv4 {
	u8 sysctl_tcp_slow_start_after_idle;
	u8 sysctl_tcp_no_metrics_save;
	int sysctl_tcp_pacing_ss_ratio;
	int sysctl_tcp_pacing_ca_ratio;
	int sysctl_tcp_reordering;
	int sysctl_tcp_min_tso_segs;
	int sysctl_tcp_wmem[3];
	int sysctl_tcp_rmem[3];
};

#define SHIM_MIBS	300

struct net {
	struct netns_ipv4 ipv4;
	u64 net_cookie;
	u64 mib[SHIM_MIBS];
	struct list_head exit_list;
};

typedef struct { struct net *net; } possible_net_t;


struct in6_addr {
	union {
		u8 u6_addr8[16];
		__be16 u6_addr16[8];
		__be32 u6_addr32[4];
	} in6_u;
#define s6_addr		in6_u.u6_addr8
#define s6_addr16	in6_u.u6_addr16
#define s6_addr32	in6_u.u6_addr32
};

enum sk_pacing {
	SK_PACING_NONE = 0,
	SK_PACING_NEEDED = 1,
	SK_PACING_FQ = 2,
};

struct dst_entry;

struct sock {
	possible_net_t sk_net;
	unsigned short sk_family;
	u8 sk_state;
	__be32 sk_daddr;
	__be32 sk_rcv_saddr;
	__be16 sk_dport;
	u16 sk_num;
	struct in6_addr sk_v6_daddr;
	struct in6_addr sk_v6_rcv_saddr;
	u32 sk_pacing_status;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u8 sk_pacing_shift;
	u32 sk_gso_max_size;
	u16 sk_gso_max_segs;
	u8 sk_shutdown;
	int sk_sndbuf;
	int sk_wmem_queued;
	int sk_bound_dev_if;
	u32 sk_mark;
	atomic64_t sk_cookie;
};

static inline struct net *sock_net(const struct sock *sk)
{
	return sk->sk_net.net;
}

static inline bool net_eq(const struct net *a, const struct net *b)
{
	return a == b;
}

static inline u32 net_hash_mix(const struct net *net)
{
	return shim_mix(net->net_cookie);
}

static inline u64 sock_gen_cookie(struct sock *sk)
{
	return sk->sk_cookie.counter;
}

static inline bool ipv6_addr_equal(const struct in6_addr *a, const struct in6_addr *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static inline void ipv6_addr_set_v4mapped(__be32 address, struct in6_addr *to)
{
	memset(to, 0, sizeof(*to));
	to->s6_addr16[5] = 0xffff;
	to->s6_addr32[3] = address;
}

static inline bool ipv6_addr_v4mapped(const struct in6_addr *a)
{
	return !a->s6_addr32[0] && !a->s6_addr32[1] &&
	       a->s6_addr16[4] == 0 && a->s6_addr16[5] == 0xffff;
}

static inline u32 ipv6_addr_hash(const struct in6_addr *a)
{
	return jhash(a, sizeof(*a), 0);
}


struct pernet_operations {
	struct list_head list;
	int (*init)(struct net *net);
	void (*pre_exit)(struct net *net);
	void (*exit)(struct net *net);
	unsigned int *id;
	size_t size;
};

/* There are two name spaces, shim_nets; both exist from the start to the end. */
extern struct net shim_nets[2];

int register_pernet_subsys(struct pernet_operations *operations);
void unregister_pernet_subsys(struct pernet_operations *operations);
void *net_generic(const struct net *net, unsigned int id);

#define NET_INC_STATS(net, field)	((void)(net)->mib[field]++)
#define __NET_INC_STATS			NET_INC_STATS
#define NET_ADD_STATS(net, field, n)	((void)((net)->mib[field] += (n)))
#define __NET_ADD_STATS			NET_ADD_STATS
#define LINUX_MIB_TCPHYSTARTTRAINDETECT	1
#define LINUX_MIB_TCPHYSTARTTRAINCWND	2
#define LINUX_MIB_TCPHYSTARTDELAYDETECT	3
#define LINUX_MIB_TCPHYSTARTDELAYCWND	4

#endif
