# SPDX-License-Identifier: Apache-2.0
"""Modules whose window leaves 31 bits: the run is measured, and so are those beside it."""

from __future__ import annotations

import pytest

from tests.field.answer import ask

pytestmark = pytest.mark.guest

# From 40 packets on the window is what THEN says.
MODULE = """\
#include <linux/module.h>
#include <net/tcp.h>
static void grow(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (tp->snd_cwnd < 40)
		tp->snd_cwnd += acked;
	else
		THEN;
}
static struct tcp_congestion_ops ops = {
	.ssthresh = tcp_reno_ssthresh, .undo_cwnd = tcp_reno_undo_cwnd, .cong_avoid = grow, .name = "NAME",
	.owner = THIS_MODULE,
};
static int __init start(void) { return tcp_register_congestion_control(&ops); }
static void __exit stop(void) { tcp_unregister_congestion_control(&ops); }
module_init(start);
module_exit(stop);
MODULE_LICENSE("GPL");
"""
THEN = {
    "takes": "tp->snd_cwnd -= 200",  # below zero
    "half": "tp->snd_cwnd = 0x80000000U",
    "most": "tp->snd_cwnd = 0x7fffffffU",
    "none": "tp->snd_cwnd = 0",
}
PROFILE = f"""\
howdah: 1
name: windows
path: {{rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}}
algorithm: [{", ".join(THEN)}, reno]
modules: [{", ".join(f"./tcp_{name}.c" for name in THEN)}]
duration: 3 s
"""


def test_a_window_above_31_bits_is_measured_and_ends_nothing() -> None:
    files = {f"tcp_{name}.c": MODULE.replace("NAME", name).replace("THEN", then) for name, then in THEN.items()}
    answer = ask(PROFILE, files)
    assert answer.complained.count("Arrow") == 0
    assert {run.axes["algorithm"] for run in answer.runs} == {*THEN, "reno"}
    assert answer.run(algorithm="reno").verdict["verdict"] == "pass"
    largest = {"half": 2**31, "most": 2**31 - 1}
    for name, window in largest.items():
        run = answer.run(algorithm=name)
        assert run.value("largest_cwnd_packets") == window
        assert max(row["cwnd_packets"] for row in run.info()) == window  # the socket's own word
    takes = answer.run(algorithm="takes")
    # 40 to 42 packets, less 200, in 32 bits.
    assert 2**32 - 160 <= takes.value("largest_cwnd_packets") < 2**32 - 150
    assert answer.run(algorithm="none").value("least_cwnd_packets") == 0
