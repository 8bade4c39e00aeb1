// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a connection takes in memory, in bytes, of the kernel this is built for, as
 * read-only parameters: the table of the SEARCH slides (search-memory.yaml).
 *
 * The states of CUBIC and BBR are private to their files; the room that a socket has
 * for its congestion control bounds them.
 */
#include <linux/module.h>
#include <net/tcp.h>

#define size_of(name, bytes)						\
static unsigned int name##_bytes = (bytes);				\
module_param(name##_bytes, uint, 0444)

size_of(sock, sizeof(struct sock));
size_of(tcp_sock, sizeof(struct tcp_sock));
size_of(ack_sample, sizeof(struct ack_sample));
size_of(rate_sample, sizeof(struct rate_sample));
size_of(congestion_control_room, ICSK_CA_PRIV_SIZE);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("howdah: sizes of what a connection takes in memory");
