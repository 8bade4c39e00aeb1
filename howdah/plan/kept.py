# SPDX-License-Identifier: Apache-2.0
"""Parts of the profile that a plan keeps for its readers: how a repetition differs from the others, a sender of another
time, and the parameters of an engine whose TCP is a model. Standard library only.
"""

from __future__ import annotations

from dataclasses import field

from howdah.codec import OCCASIONAL, planned


@planned
class PerturbationRecord:
    """How this repetition differs from the others; ``applied`` is false if there is only one."""

    applied: bool = False
    rtt_factor: float = 1.0
    start_offset_us: list[int] = field(default_factory=list)
    jitter_us: int = 0


@planned
class SenderSetting:
    """A setting in force: the bundle's, or the profile's, which then replaces the bundle's value ``instead_of``."""

    value: str | int | bool | list[int] | None
    instead_of: str | int | bool | list[int] | None = field(default=None, metadata=OCCASIONAL, kw_only=True)
    what: str
    source: str


@planned
class SenderRecord:
    """The profile's sender, if it is of another time (howdah/profile/end.py); ``settings`` by profile field."""

    name: str
    settings: dict[str, SenderSetting]


@planned
class ModelFlow:
    """One flow in ns-2: its classes, the congestion control of Agent/TCP/Linux, whether it jumps, its own settings."""

    sender: str
    sink: str
    congestion_control: str | None
    jumps: bool
    handshake: bool
    settings: dict[str, str]
    sink_settings: dict[str, str]


@planned
class ModelRecord:
    """Parameters of an engine whose TCP is a model (howdah/plan/model.py), and each flow's counterpart, by number."""

    release: str
    parameters: str
    queue: str
    window_packets: int
    settings: dict[str, str]
    flows: dict[str, ModelFlow]
