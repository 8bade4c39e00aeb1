# SPDX-License-Identifier: Apache-2.0
"""Lies of queues: more or less room than the plan says."""

from __future__ import annotations

from tests.liars.breaking import options
from tests.liars.liar import check
from tests.liars.path_breaks import buffer
from tests.liars.paths import path_liar

BUFFERS = [
    path_liar(
        "buffer-two-frames-short",
        "The bottleneck's buffer is two frames smaller than the plan says.",
        check("before", "buffer", "too low"),
        buffer(-2),
    ),
    path_liar(
        "buffer-of-half-the-size",
        "The bottleneck's buffer is half as large as the plan says: none of the packets that are timed fits in.",
        check("before", "buffer", "too low"),
        buffer(-16),
    ),
    path_liar(
        "buffer-one-frame-long",
        "The bottleneck's buffer is one frame larger than the plan says.",
        check("after", "buffer", "too high"),
        buffer(1),
    ),
    path_liar(
        "deep-buffer-short-of-its-part",
        "Of a buffer that takes half a minute to fill, less is there than the part that is filled.",
        check("before", "buffer", "it is too low"),
        buffer(-1000),
        honest="deep",
    ),
    path_liar(
        "deep-buffer-beyond-its-part",
        "A buffer that is filled only in part is one frame larger than the plan says.",
        check("engine", "queues", "the plan says"),
        buffer(1),
        honest="deep",
    ),
    path_liar(
        "queue-of-the-way-back",
        "The queue of the way back holds a hundred packets, and the plan says fifty.",
        check("engine", "queues", "has limit 100 packets, the plan says 50"),
        options("qdisc", {"limit_packets": 100}, node="right", interface="right-eth0", kind="pfifo"),
        honest="way-back",
    ),
    path_liar(
        "buffer-fills-beyond-its-limit",
        "The bottleneck holds more than the plan's limit while the flows run.",
        check("during", "peak backlog", "larger than configured"),
        buffer(30),
    ),
]
