# SPDX-License-Identifier: Apache-2.0
"""A plan as plan.json holds it: without what every plan had before there was a choice."""

from __future__ import annotations

import dataclasses
from functools import cache
from types import NoneType
from typing import Any

_OCCASIONAL = (
    "processor_shift",
    "real_time",
    "own_kernel",
    "machine_kernels",
    "measure_cwnd_packets",
    "sender",
    "model",
)


def written(plan: Any) -> dict[str, Any]:
    """The value of plan.json; ``plan`` is a ``Plan``."""
    value: dict[str, Any] = plain(plan)
    del value["parameter_places"]
    has_processors = bool(value["processors"])
    _leave_out_plain_receivers(value)
    for name in _OCCASIONAL:
        if value[name] is None:
            del value[name]
    for name in ("own_algorithms", "module_builds", "parts", "processors"):
        if not value[name]:
            del value[name]
    if not value["traits"]["model"]:
        del value["traits"]["model"]
    if not value["path"]["tick_us"]:
        del value["path"]["tick_us"]
    for place, names in (
        (value["path"], ("reverse_buffer_bytes", "reverse_buffer_packets", "loss_burst_packets")),
        (value["calibration"], ("part_bytes",)),
    ):
        for name in names:
            if place[name] is None:
                del place[name]
    for flow in value["flows"]:
        for name in ("http", "exchange", "program", "receiver_stack", "sender_stack", "like"):
            if flow[name] is None:
                del flow[name]
    if not value["collect"]["cpu"]:
        del value["collect"]["cpu"]
    if not has_processors:
        del value["collect"]["processor_us"]
    return value


def plain(value: Any) -> Any:
    """What ``dataclasses.asdict`` gives, without a deep copy of each number: plans of hundreds of flows are many."""
    if isinstance(value, (str, int, float, NoneType)):
        return value
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    kind: Any = type(value)
    return {name: plain(getattr(value, name)) for name in _names(kind)}


@cache
def _names(kind: type[Any]) -> list[str]:
    return [each.name for each in dataclasses.fields(kind)]


def _leave_out_plain_receivers(value: dict[str, Any]) -> None:
    """What every plan had before there were others is not said."""
    for name, places in (("receiver", [value]), ("receiver_behaviour", value["flows"])):
        for place in places:
            if place[name] == "linux":
                del place[name]
