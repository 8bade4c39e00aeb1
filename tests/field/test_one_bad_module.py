# SPDX-License-Identifier: Apache-2.0
"""A module that does not compile costs its own runs; the others are made, and the status says that one was not."""

from __future__ import annotations

import pytest

from tests.field.answer import ask

pytestmark = pytest.mark.guest

PROFILE = """
howdah: 1
name: one-bad
path: {rate: 10 Mbit/s, rtt: 20 ms, buffer: 1 bdp}
algorithm: [cubic, fine, stale]
algorithms:
  fine: {kernel: fine, module: tcp_fine}
  stale: {kernel: stale, module: tcp_stale}
modules: [./tcp_stale.c, ./tcp_fine.c]
duration: 2 s
"""
SOURCE = """
#include <linux/module.h>
#include <net/tcp.h>

static u32 own_ssthresh(struct sock *sk)
{
	return CALL(sk);
}

static void own_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

static struct tcp_congestion_ops ops __read_mostly = {
	.name = "NAME",
	.owner = THIS_MODULE,
	.ssthresh = own_ssthresh,
	.cong_avoid = own_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
};

static int __init own_register(void)
{
	return tcp_register_congestion_control(&ops);
}

static void __exit own_unregister(void)
{
	tcp_unregister_congestion_control(&ops);
}

module_init(own_register);
module_exit(own_unregister);
MODULE_LICENSE("GPL");
"""


def _source(name: str, call: str) -> str:
    return SOURCE.replace("NAME", name).replace("CALL", call)


def test_one_bad_module_costs_its_own_runs() -> None:
    files = {
        "tcp_fine.c": _source("fine", "tcp_reno_ssthresh"),
        "tcp_stale.c": _source("stale", "no_such_function"),
    }
    answer = ask(PROFILE, files)
    assert answer.status == 4
    for algorithm in ("cubic", "fine"):
        assert answer.run(algorithm=algorithm).verdict["verdict"] == "pass"
    (said,) = answer.run(algorithm="stale").failed.values()
    assert "tcp_stale.c:7" in said
    assert "no_such_function" in said
