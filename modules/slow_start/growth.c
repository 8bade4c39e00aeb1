// SPDX-License-Identifier: GPL-2.0-only
/*
 * How much an ACK is worth, in every plug-in: parameters of the core, because they belong
 * to the sender and not to one algorithm. Their values of old kernels are those of the
 * bundle "sender: of-2007" (howdah/profile/end.py).
 */
#include "core.h"
#include "slow_start_parameter.h"

slow_start_parameter(packets_per_ack, 0, 0, 1000000,
		     "most packets an ACK counts as, in slow start and in reno, 0: as many as it acknowledges (default 0)");

slow_start_parameter(first_acks_per_packet, 0, 0, 1000000,
		     "packets acknowledged for one by which cubic grows before the first congestion, 0: as tcp_cubic today, 20 or the curve's fewer (default 0)");

u32 slow_start_counted(u32 acked)
{
	u32 most = READ_ONCE(packets_per_ack);

	return most ? min(acked, most) : acked;
}

u32 slow_start_first_acks(void)
{
	return READ_ONCE(first_acks_per_packet);
}
