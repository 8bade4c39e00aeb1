# SPDX-License-Identifier: Apache-2.0
"""Sections that only one engine uses: ``machine`` (vm), ``machines`` and ``ns2``.

ns2.yaml declares the TCPs and parameter sets of ns-2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from howdah.profile.field import FieldError, Section, Text, fixed, one_of
from howdah.profile.source import parse_yaml


class MachineSection(Section):
    """The virtual machine of the ``vm`` engine; other engines ignore it."""

    shift: int = Field(
        default=0, ge=0, le=10, description="its processor executes 2^-shift instructions per nanosecond"
    )
    time: Literal["virtual", "real"] = Field(
        default="virtual",
        description="virtual: a processor of declared speed, reproducible; real: as fast as this machine runs it",
    )
    accelerator: Literal["auto", "kvm", "tcg"] = Field(
        default="auto", description="in real time, auto: KVM if it runs a stock kernel, otherwise emulation (tcg)"
    )
    modules: Text | None = fixed(
        None, description="for a kernel given as an image: its lib/modules/RELEASE, relative to the profile"
    )
    headers: Text | None = fixed(
        None, description="for a kernel given as a file: its linux-headers package, or a tree to build modules against"
    )

    @model_validator(mode="after")
    def _one_clock(self) -> MachineSection:
        if self.time == "virtual" and self.accelerator == "kvm":
            raise FieldError("KVM has no virtual time; time: real has", "accelerator")
        if self.time == "real" and self.shift:
            raise FieldError("in real time the processor has no declared speed", "shift")
        return self


class MachineChoiceSection(Section):
    """Which machine to use for a role."""

    kernel: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.+~_-]{0,62}$")] | None = Field(
        default=None,
        description="use a machine with this kernel: `debian-6.1`, `6.1`, or the full release; default: any",
    )


class MachinesSection(Section):
    """Which machines the ``machines`` engine uses for roles that have several; other engines refuse it."""

    sender: MachineChoiceSection = Field(
        default_factory=MachineChoiceSection, description="machine of the senders' hosts"
    )
    emulator: MachineChoiceSection = Field(default_factory=MachineChoiceSection, description="machine of the routers")
    receiver: MachineChoiceSection = Field(
        default_factory=MachineChoiceSection, description="machine of the receivers' hosts"
    )

    def kernels(self) -> dict[str, str]:
        """The requested kernels, by role."""
        asked = {name: getattr(self, name).kernel for name in ("sender", "emulator", "receiver")}
        return {role: kernel for role, kernel in asked.items() if kernel is not None}


DEFAULT_SET = "defaults"
_FILE = "ns2.yaml"


@dataclass(frozen=True)
class Agent:
    """Names of ns-2 classes below ``Agent/`` that send and receive. ``handshake``: whether packet 0 is a SYN."""

    sender: str
    sink: str
    handshake: bool = True


@dataclass(frozen=True)
class ParameterSet:
    """A set of parameters that ns2.yaml declares. ``queue`` is the unit of the drop-tail queue's limit, ``window`` the
    advertised window in packets (None: more than the path holds), ``settings`` are instance variables of Agent/TCP.
    """

    what: str
    source: str
    agent: str
    queue: str
    window: int | None = None
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Declared:
    release: str
    agents: dict[str, Agent]
    linux: tuple[str, ...]
    sets: dict[str, ParameterSet]


@cache
def declared() -> Declared:
    """The contents of this package's ns2.yaml."""
    value: dict[str, Any]
    value, _places = parse_yaml(files("howdah.profile").joinpath(_FILE).read_text(encoding="utf-8"), _FILE)
    return Declared(
        release=value["release"],
        agents={name: Agent(**entry) for name, entry in value["agents"].items()},
        linux=tuple(value["linux"]),
        sets={name: ParameterSet(**entry) for name, entry in value["sets"].items()},
    )


SetName = Annotated[
    str,
    BeforeValidator(lambda value: one_of("set of parameters", tuple(declared().sets), value)),
    WithJsonSchema({"enum": list(declared().sets)}),
]
AgentName = Annotated[
    str,
    BeforeValidator(lambda value: one_of("TCP of ns-2", tuple(declared().agents), value)),
    WithJsonSchema({"enum": list(declared().agents)}),
]


def _written_value(value: object) -> object:
    """``true`` or ``false`` for a boolean that YAML has read: ns-2 spells them the same."""
    return str(value).lower() if isinstance(value, bool) else value


Setting = Annotated[
    Text,
    Field(pattern=r"^(true|false|[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,3})?)$"),
    BeforeValidator(_written_value),
    WithJsonSchema({"type": ["string", "number", "boolean"], "x-value": "number, `true` or `false`"}),
]


class Ns2Section(Section):
    """The model of the ``ns2`` engine; other engines ignore it."""

    parameters: SetName = Field(
        default=DEFAULT_SET, description="a declared set of parameters ([ns2.md](ns2.md#declared-parameter-sets))"
    )
    agent: AgentName | None = Field(
        default=None,
        description="TCP for algorithms that are a start-up over Reno; overrides the set's",
    )
    settings: dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,60}_$")], Setting] = Field(
        default_factory=dict,
        description="instance variables of Agent/TCP (`partial_ack_`, `tcpTick_` …); they override the set's",
    )
