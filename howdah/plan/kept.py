# SPDX-License-Identifier: Apache-2.0
"""What a plan keeps of its profile for those who read it: how a repetition differs, the sender of another time, and the
parameters of an engine whose TCP is a model. Standard library only."""

from __future__ import annotations

from dataclasses import field

from howdah.codec import OCCASIONAL, planned


@planned
class PerturbationRecord:
    """How this repetition differs from the others; not at all where there is one (``applied``)."""

    applied: bool = False
    rtt_factor: float = 1.0
    start_offset_us: list[int] = field(default_factory=list)
    jitter_us: int = 0


@planned
class SenderSetting:
    """A setting in force: the bundle's, or the profile's instead of the bundle's."""

    value: str | int | bool | list[int] | None
    instead_of: str | int | bool | list[int] | None = field(default=None, metadata=OCCASIONAL, kw_only=True)
    what: str
    source: str


@planned
class SenderRecord:
    """The profile's sender, if it is of another time (howdah/profile/end.py); settings by the profile's field."""

    name: str
    settings: dict[str, SenderSetting]


@planned
class ModelFlow:
    """What one flow is in ns-2: classes, congestion control of Agent/TCP/Linux, whether it jumps, own settings."""

    sender: str
    sink: str
    congestion_control: str | None
    jumps: bool
    handshake: bool
    settings: dict[str, str]
    sink_settings: dict[str, str]


@planned
class ModelRecord:
    """Declared parameters of an engine whose TCP is a model (howdah/plan/model.py), and what each flow is in it."""

    release: str
    parameters: str
    queue: str
    window_packets: int
    settings: dict[str, str]
    flows: dict[str, ModelFlow]
