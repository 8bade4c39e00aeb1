# SPDX-License-Identifier: Apache-2.0
"""What the compiler says where the kernel has changed since a congestion control was written, and which kernel it is
for."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """``said``, a regular expression, is found in what the compiler says. ``kernel`` still has what the code asks for;
    None: no release has it."""

    said: str
    what: str
    kernel: str | None


_QUOTE = "[‘'`\"’]"
_GOOGLE = (
    "It is a field of Google's BBR trees (v2alpha, v3), whose modules need the kernel of that tree: --kernel TREE."
)
_CHANGES = (
    Change(
        r"\(\*\)\(struct sock \*, u32,\s+int,\s+const struct rate_sample \*\)",
        "cong_control takes (struct sock *sk, u32 ack, int flag, const struct rate_sample *rs) since Linux 6.10, "
        "and (sk, rs) before.",
        "debian-6.1",
    ),
    Change(
        r"\(\*\)\(struct sock \*, const struct rate_sample \*\)",
        "cong_control takes (struct sock *sk, const struct rate_sample *rs) before Linux 6.10, "
        "and (sk, ack, flag, rs) since.",
        "debian-6.12",
    ),
    Change(
        rf"has no member named {_QUOTE}tso_segs_goal{_QUOTE}",
        "tso_segs_goal is min_tso_segs since Linux 4.17: u32 (*min_tso_segs)(struct sock *sk).",
        None,
    ),
    Change(
        rf"tcp_congestion_ops{_QUOTE} has no member named {_QUOTE}tso_segs{_QUOTE}",
        f"Linux has min_tso_segs(sk) in its place. {_GOOGLE}",
        None,
    ),
    Change(
        rf"has no member named {_QUOTE}(?:skb_marked_lost|fast_ack_mode|tx_in_flight|is_ece|is_acking_tlp_retrans_seq"
        rf"|lost_ce|tlp_orig_data_app_limited){_QUOTE}",
        _GOOGLE,
        None,
    ),
    Change(
        rf"implicit declaration of function {_QUOTE}prandom_u32(?:_max)?{_QUOTE}",
        "prandom_u32() is get_random_u32() since Linux 6.1, prandom_u32_max() get_random_u32_below() since 6.2.",
        "debian-5.10",
    ),
    Change(
        rf"implicit declaration of function {_QUOTE}(?:setup_timer|init_timer){_QUOTE}",
        "Timers are set up by timer_setup() since Linux 4.15.",
        None,
    ),
    Change(
        rf"implicit declaration of function {_QUOTE}del_timer(?:_sync)?{_QUOTE}",
        "del_timer() is timer_delete() since Linux 6.15.",
        "debian-6.12",
    ),
    Change(
        r"SSE register (?:return|argument) with SSE disabled|with x87 disabled|80387",
        "Kernel code has no floating point (float, double): compute with integers, as with fractions of 1024.",
        None,
    ),
    Change(
        rf"{_QUOTE}tcp_time_stamp{_QUOTE} undeclared",
        "tcp_time_stamp is tcp_jiffies32 since Linux 4.13.",
        None,
    ),
)


def known_change(said: str) -> str | None:
    """What has changed, and what to do, of an error as the compiler tells it; None where it is another one."""
    for change in _CHANGES:
        if re.search(change.said, said):
            remedy = f" Change the module, or run it on an older kernel: --kernel {change.kernel}."
            if change.kernel == "debian-6.12":
                remedy = f" Change the module, or run it on another kernel: --kernel {change.kernel}."
            return change.what + (remedy if change.kernel else "")
    return None
