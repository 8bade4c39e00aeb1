# SPDX-License-Identifier: Apache-2.0
"""A profile whose claim is searched for paths on which it fails; BOUND is what is claimed."""

from __future__ import annotations

PROFILE = """\
howdah: 1
name: sought
path: {rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
algorithm: cubic
duration: 8 s
repetitions: 2
background: [{algorithm: reno}]
claims:
  - id: high
    says: start-up ends above half the BDP
    value: {metric: exit_cwnd_bdp, flow: 1}
    expect: {at_least: BOUND}
search:
  space:
    path.rate: {from: 1 Mbit/s, to: 20 Mbit/s, step: 500 kbit/s}
    path.rtt: {from: 10 ms, to: 300 ms, step: 1 ms}
    path.buffer: [1 bdp, 2 bdp, 4 bdp]
  falsify: high
  budget: {candidates: 16}
  seed: 3
"""
