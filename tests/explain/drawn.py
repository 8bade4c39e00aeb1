# SPDX-License-Identifier: Apache-2.0
"""Paths drawn from a seed, each as a profile that captures its packets at both ends and in the middle."""

from __future__ import annotations

import math
import random

KINDS = (
    "hystart",
    "loss",
    "receive-window",
    "size",
    "jitter",
    "random-loss",
    "reno",
    "bbr",
    "stretched",
    "super-segments",
)
POLICER = "policer"
_POLICERS = range(5000, 6000)  # seeds
PLACES = {"sender": "s1:s1-eth0", "middle": "left:left-eth0", "receiver": "r1:r1-eth0"}
_TUNED = "4096 131072"


def kind_of(seed: int) -> str:
    return POLICER if seed in _POLICERS else KINDS[seed % len(KINDS)]


def profile(seed: int) -> str:
    """The profile of one path: its kind is fixed by the seed, its numbers are drawn."""
    drawn = random.Random(seed)
    kind = kind_of(seed)
    rtt_ms = round(math.exp(drawn.uniform(math.log(12), math.log(160))), 1)
    rate_mbit = round(math.exp(drawn.uniform(math.log(6), math.log(60))), 1)
    packets = rate_mbit * rtt_ms * 1000 / 8 / 1514
    if packets < 40:
        rate_mbit = round(rate_mbit * 40 / packets, 1)
    buffer = round(drawn.uniform(0.4, 2.0), 2)
    path = {"rate": f"{rate_mbit} Mbit/s", "rtt": f"{rtt_ms} ms", "buffer": f"{buffer} bdp"}
    rest = {"algorithm": "cubic", "duration": f"{max(2.0, round(30 * rtt_ms / 1000, 1))} s"}
    flow: dict[str, str] = {}
    host: dict[str, str] = {}
    bdp_bytes = rate_mbit * rtt_ms * 125
    if kind == "loss":
        rest["algorithm"] = "cubic-no-hystart"
    elif kind == "receive-window":
        host["tcp_rmem"] = f"4096 131072 {int(bdp_bytes * drawn.uniform(0.5, 1.2))}"
    elif kind == "size":
        flow["size"] = f"{max(20, int(bdp_bytes * drawn.uniform(0.1, 0.6) / 1000))} kB"
    elif kind == "jitter":
        deviation = round(rtt_ms * drawn.uniform(0.04, 0.1), 2)
        path["delay_variation"] = (
            f"{{distribution: uniform, amplitude: {round(3 * deviation, 2)} ms, correlation_time: {rtt_ms} ms,"
            f" interval: 2 ms, direction: forward, source: choice}}"
        )
    elif kind == "random-loss":
        path["loss"] = f"{round(drawn.uniform(0.05, 0.5), 2)} %"
    elif kind == "reno":
        rest["algorithm"] = "reno"
    elif kind == "bbr":
        rest["algorithm"] = "bbr"
    elif kind == "stretched":
        rest["receiver"] = drawn.choice(["stretch-ack", "delayed-ack", "windows-10", "macos"])
    elif kind == "super-segments":
        path["gso_max_segs"] = "kernel"
    elif kind == POLICER:
        policed, burst = rate_mbit * drawn.uniform(0.25, 0.7), bdp_bytes * drawn.uniform(0.3, 1.5)
        path["policer"] = f"{{rate: {round(policed, 1)} Mbit/s, burst: {max(int(burst / 1000), 15)} kB}}"
        rest["algorithm"] = drawn.choice(["cubic", "reno", "cubic-no-hystart"])
    lines = ["howdah: 1", f"name: drawn-{seed}", "path:", *(f"  {name}: {value}" for name, value in path.items())]
    lines += [f"{name}: {value}" for name, value in rest.items()]
    if flow:
        lines.append("flows: [{" + ", ".join(f"{name}: {value}" for name, value in flow.items()) + "}]")
    if host:
        lines += ["host:", *(f"  {name}: {value}" for name, value in host.items())]
    lines += ["repetitions: 1", "collect:", "  tcp_info: 20 ms", f"  pcap: [{', '.join(PLACES.values())}]"]
    return "\n".join(lines) + "\n"
