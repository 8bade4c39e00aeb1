/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Included before a congestion control that is compiled once more, to no object: the
 * compiler then knows how long the private area of a socket is (ICSK_CA_PRIV_SIZE) and
 * refuses a struct that does not fit.
 */
#include <net/tcp.h>

void *howdah_private(const struct sock *sk, unsigned long size) __attribute__((alloc_size(2)));

#define inet_csk_ca(sk) howdah_private(sk, sizeof_field(struct inet_connection_sock, icsk_ca_priv))
