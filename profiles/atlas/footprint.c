// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a connection takes in memory, in bytes, of the kernel this is built for, as
 * read-only parameters: the table of the SEARCH slides (search-memory.yaml).
 *
 * The states of CUBIC and BBR are private to their files, so these are compiled in
 * here, for their declarations alone: nothing of them is registered or called. It
 * takes the kernel's sources, not only its headers.
 */
#include <linux/module.h>
#include <net/tcp.h>

#undef module_init
#undef module_exit
#define module_init(start)
#define module_exit(stop)
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-const-variable"
#include "../net/ipv4/tcp_cubic.c"
#undef beta
#undef MODULE_AUTHOR
#undef MODULE_LICENSE
#undef MODULE_DESCRIPTION
#define MODULE_AUTHOR(text)
#define MODULE_LICENSE(text)
#define MODULE_DESCRIPTION(text)
#undef MODULE_VERSION
#define MODULE_VERSION(text)
#include "../net/ipv4/tcp_bbr.c"

#define size_of(name, bytes)						\
static unsigned int name##_bytes = (bytes);				\
module_param(name##_bytes, uint, 0444)

#define field(name)	sizeof_field(struct bictcp, name)

size_of(sock, sizeof(struct sock));
size_of(tcp_sock, sizeof(struct tcp_sock));
size_of(cubic_state, sizeof(struct bictcp));
size_of(hystart_state, field(sample_cnt) + field(found) + field(round_start) +
	field(end_seq) + field(last_ack) + field(curr_rtt));
size_of(bbr_state, sizeof(struct bbr));
size_of(ack_sample, sizeof(struct ack_sample));
size_of(rate_sample, sizeof(struct rate_sample));
