// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls of a congestion control, each followed by a look at what it did. Rules:
 *  - cwnd is at least 1 and at most the clamp, a threshold at least 2;
 *  - outside congestion and idleness cwnd shrinks only to the clamp, or in a call that
 *    told an event, or where the algorithm is such that it must (may_shrink[]);
 *  - a congestion control changes cwnd, ssthresh and pacing, and nothing else of TCP's;
 *  - nothing is written beside its private area.
 */
#include "sender.h"

#define CANARY	0x5ca1ab1e0ddba11ULL

#define OPS	(sender->tcp.inet_conn.icsk_ca_ops)

enum shrinking {
	ANNOUNCED,	/* in the call that told it */
	JUMPS,		/* between SLOW_START_JUMP and _JUMP_END: to what there is to send */
	DRAINS,		/* from SLOW_START_PHASE to the next event */
	LIMITS,		/* at any ACK */
};

static const struct { const char *plug_in; enum shrinking how; } may_shrink[] = {
	{ "jump", JUMPS },
	{ "inflight", LIMITS },		/* cwnd follows an estimate of what fits */
	{ "search", DRAINS },		/* the drain of version 4 */
};

static struct tcp_sock before_call;
static u64 told_before;

/*
 * The socket is copied and compared at every call. The sanitizers' memcpy() and memcmp() look at all their bytes first,
 * which took a fifth of a long life. Both sides are whole here. Lengths are whole words.
 */
typedef u64 word __attribute__((may_alias));

_Static_assert(sizeof(struct tcp_sock) % sizeof(word) == 0 && ICSK_CA_PRIV_SIZE % sizeof(word) == 0, "whole words");

__attribute__((no_sanitize("address", "undefined")))
static inline void copy(void *to, const void *from, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes / sizeof(word); i++)
		((word *)to)[i] = ((const word *)from)[i];
}

__attribute__((no_sanitize("address", "undefined")))
static inline bool equal(const void *a, const void *b, size_t bytes)
{
	word differs = 0;
	size_t i;

	for (i = 0; i < bytes / sizeof(word); i++)
		differs |= ((const word *)a)[i] ^ ((const word *)b)[i];
	return !differs;
}

static const char *plug_in(const struct sender *sender)
{
	return container_of(sender->tcp.inet_conn.icsk_ca_ops,
			    const struct slow_start_algorithm, tcp)->ops->name;
}

static enum shrinking shrinking_of(const struct sender *sender)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(may_shrink); i++)
		if (!strcmp(may_shrink[i].plug_in, plug_in(sender)))
			return may_shrink[i].how;
	return ANNOUNCED;
}

static void breach(const struct sender *sender, const char *hook, const char *what, u64 a, u64 b)
{
	char text[256];

	snprintf(text, sizeof(text), "%s %s: %s (%llu, %llu) at %llu us",
		 sender->tcp.inet_conn.icsk_ca_ops->name, hook, what,
		 (unsigned long long)a, (unsigned long long)b,
		 (unsigned long long)shim_now_us);
	record_breach(text);
}

static void begin(struct sender *sender)
{
	struct inet_connection_sock *icsk = &sender->tcp.inet_conn;

	icsk->canary_before = CANARY;
	icsk->canary_behind = CANARY;
	copy(&before_call, &sender->tcp, sizeof(before_call));
	told_before = record.told_ever;
	sender->hooks++;
}

/* What a congestion control may change is copied, so that the rest must be equal. */
static void only_its_own_changed(struct sender *sender, const char *hook)
{
	const struct tcp_sock *tp = &sender->tcp;
	const struct sock *sk = sender_sock(sender);
	struct sock *before_sk = (struct sock *)&before_call;
	size_t offset = 0;

	before_call.snd_cwnd = tp->snd_cwnd;
	before_call.snd_cwnd_cnt = tp->snd_cwnd_cnt;
	before_call.snd_ssthresh = tp->snd_ssthresh;
	/* One that controls recovery cuts the window after idleness as well, as TCP would. */
	if (OPS->cong_control) {
		before_call.prr_delivered = tp->prr_delivered;
		before_call.snd_cwnd_stamp = tp->snd_cwnd_stamp;
		before_call.snd_cwnd_used = tp->snd_cwnd_used;
	}
	before_sk->sk_pacing_rate = sk->sk_pacing_rate;
	before_sk->sk_max_pacing_rate = sk->sk_max_pacing_rate;
	before_sk->sk_pacing_status = sk->sk_pacing_status;
	/* The DSCP, not the bits of ECN below it. */
	inet_sk(before_sk)->tos = (inet_sk(before_sk)->tos & INET_ECN_MASK) | (inet_sk(sk)->tos & ~INET_ECN_MASK);
	/* slow_start_pace_first(): by exactly so much, and back. */
	if (slow_start(sk)->first_paced != slow_start(before_sk)->first_paced) {
		before_call.data_segs_out += slow_start(sk)->first_paced ? SLOW_START_UNPACED : -SLOW_START_UNPACED;
		before_call.tcp_wstamp_ns = tp->tcp_wstamp_ns;
	}
	copy(before_call.inet_conn.icsk_ca_priv, tp->inet_conn.icsk_ca_priv, ICSK_CA_PRIV_SIZE);
	if (equal(&before_call, tp, sizeof(before_call)))
		return;
	while (((u8 *)&before_call)[offset] == ((u8 *)tp)[offset])
		offset++;
	breach(sender, hook, "a field of the socket that is TCP's was changed, at this offset", offset, 0);
}

static bool may_have_shrunk(struct sender *sender, bool told)
{
	/* TCP itself sets windows above the clamp, where that is tiny. */
	if (told || sender->tcp.snd_cwnd == sender->tcp.snd_cwnd_clamp)
		return true;
	switch (shrinking_of(sender)) {
	case JUMPS:
		return sender->last_event == SLOW_START_JUMP;
	case DRAINS:
		return sender->last_event == SLOW_START_PHASE;
	case LIMITS:
		return true;
	default:
		return false;
	}
}

static void end(struct sender *sender, const char *hook, bool congestion)
{
	const struct tcp_sock *tp = &sender->tcp;
	bool told = record.told_ever != told_before;
	u32 cwnd_before = before_call.snd_cwnd;

	if (tp->inet_conn.canary_before != CANARY || tp->inet_conn.canary_behind != CANARY)
		breach(sender, hook, "memory beside icsk_ca_priv was written", 0, 0);
	if (told && record.tolds)
		sender->last_event = record.told[record.tolds - 1].event;
	if ((s32)tp->snd_cwnd < 1)
		breach(sender, hook, "cwnd is not at least 1", tp->snd_cwnd, cwnd_before);
	if (tp->snd_cwnd != cwnd_before && tp->snd_cwnd > tp->snd_cwnd_clamp)
		breach(sender, hook, "cwnd above the clamp", tp->snd_cwnd, tp->snd_cwnd_clamp);
	if (tp->snd_ssthresh != before_call.snd_ssthresh && !tp->snd_ssthresh)
		breach(sender, hook, "ssthresh is 0", tp->snd_ssthresh, before_call.snd_ssthresh);
	if (tp->snd_cwnd < cwnd_before && !congestion &&
	    tp->inet_conn.icsk_ca_state < TCP_CA_CWR && !may_have_shrunk(sender, told))
		breach(sender, hook, "cwnd shrank without congestion or an event", tp->snd_cwnd,
		       cwnd_before);
	if (!sender_sock(sender)->sk_max_pacing_rate)
		breach(sender, hook, "a pacing rate of 0 sends nothing", 0, 0);
	only_its_own_changed(sender, hook);
}

void hook_init(struct sender *sender)
{
	begin(sender);
	sender->last_event = U32_MAX;
	if (OPS->init)
		OPS->init(sender_sock(sender));
	end(sender, "init", true);
}

void hook_release(struct sender *sender)
{
	begin(sender);
	if (OPS->release)
		OPS->release(sender_sock(sender));
	end(sender, "release", false);
}

u32 hook_ssthresh(struct sender *sender)
{
	u32 threshold;

	begin(sender);
	threshold = OPS->ssthresh(sender_sock(sender));
	if (threshold < 2)
		breach(sender, "ssthresh", "a threshold below 2", threshold, 0);
	end(sender, "ssthresh", false);
	return threshold;
}

u32 hook_undo_cwnd(struct sender *sender)
{
	u32 cwnd;

	begin(sender);
	cwnd = OPS->undo_cwnd(sender_sock(sender));
	if ((s32)cwnd < 1)
		breach(sender, "undo_cwnd", "cwnd is not at least 1", cwnd, 0);
	end(sender, "undo_cwnd", true);
	return cwnd;
}

void hook_set_state(struct sender *sender, u8 state)
{
	begin(sender);
	if (OPS->set_state)
		OPS->set_state(sender_sock(sender), state);
	end(sender, "set_state", state >= TCP_CA_CWR);
	sender->tcp.inet_conn.icsk_ca_state = state;
}

void hook_event(struct sender *sender, enum tcp_ca_event event)
{
	bool idle = (s32)(tcp_jiffies32 - sender->tcp.lsndtime) > (s32)sender->tcp.inet_conn.icsk_rto;

	begin(sender);
	if (OPS->cwnd_event)
		OPS->cwnd_event(sender_sock(sender), event);
	end(sender, "cwnd_event", event == CA_EVENT_COMPLETE_CWR || event == CA_EVENT_CWND_RESTART ||
	    (event == CA_EVENT_TX_START && idle));
}

void hook_ack_event(struct sender *sender, u32 flags)
{
	if (!OPS->in_ack_event)
		return;
	begin(sender);
	OPS->in_ack_event(sender_sock(sender), flags);
	end(sender, "in_ack_event", false);
}

void hook_min_tso_segs(struct sender *sender)
{
	if (!OPS->min_tso_segs)
		return;
	begin(sender);
	if (!OPS->min_tso_segs(sender_sock(sender)))
		breach(sender, "min_tso_segs", "a packet of no segments", 0, 0);
	end(sender, "min_tso_segs", false);
}

void hook_pkts_acked(struct sender *sender, const struct ack_sample *sample)
{
	if (!OPS->pkts_acked)
		return;
	begin(sender);
	OPS->pkts_acked(sender_sock(sender), sample);
	end(sender, "pkts_acked", false);
}

void hook_cong_avoid(struct sender *sender, u32 acked)
{
	begin(sender);
	OPS->cong_avoid(sender_sock(sender), sender->tcp.snd_una, acked);
	end(sender, "cong_avoid", false);
}

void hook_cong_control(struct sender *sender, int flag, const struct rate_sample *rate)
{
	begin(sender);
	OPS->cong_control(sender_sock(sender), sender->tcp.snd_una, flag, rate);
	end(sender, "cong_control", false);
}
