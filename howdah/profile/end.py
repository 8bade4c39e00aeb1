# SPDX-License-Identifier: Apache-2.0
"""The two ends of the path in a profile: senders, receivers, and the settings of every host's network stack.

``sender: of-2007`` is a bundle of settings that makes senders behave like those of an earlier time. It fills in fields
that the profile leaves open, before anything is checked, so each of them can still be overridden. Behaviour that no
setting controls, such as loss recovery, needs another kernel (``kernel: debian-6.12+of-2007``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from howdah.profile.field import KernelName, Section, ShortSection, Text, one_of
from howdah.profile.processor import ProcessorSection
from howdah.profile.queue import AnyHostQueue, host_queue_field
from howdah.profile.source import Document
from howdah.receiver import LINUX, MOST_BACKLOG_BLOCKS, RECEIVERS

TODAY: Final = "linux"  # the run's kernel as it is


@dataclass(frozen=True)
class Setting:
    """One setting of a bundle. ``field`` is dotted, as in overrides; ``flows`` means every flow, background flow and
    group.

    ``value`` is written as in a profile; ``source`` is the evidence for that value at that time.
    """

    field: str
    value: Any
    what: str
    source: str


_WAS = "Linux 2.6.24"
BUNDLES: dict[str, tuple[Setting, ...]] = {
    "of-2007": (
        Setting(
            "flows.initial_window",
            3,
            "initial window, packets",
            f"RFC 3390 for an MSS of 1096 to 1460 bytes; tcp_init_cwnd() of {_WAS}",
        ),
        Setting(
            "host.packets_per_ack",
            1,
            "what an ACK counts as, in every plug-in's slow start and in reno",
            f"tcp_slow_start() and tcp_reno_cong_avoid() of {_WAS} with its default net.ipv4.tcp_abc=0",
        ),
        Setting(
            "host.first_acks_per_packet",
            50,
            "packets acknowledged for one by which cubic grows before the first loss: 2 % a round",
            f"bictcp_update() of {_WAS}: cnt = 50 while loss_cwnd is 0",
        ),
        Setting("host.sysctls.net.ipv4.tcp_recovery", "0", "no RACK", "RACK came with Linux 4.4"),
        Setting(
            "host.sysctls.net.ipv4.tcp_early_retrans",
            "0",
            "no tail loss probe, no early retransmit",
            "they came with Linux 3.10 and 3.5",
        ),
        Setting(
            "host.sysctls.net.ipv4.tcp_comp_sack_nr",
            "0",
            "receivers compress no SACKs",
            "compressed SACKs came with Linux 4.18",
        ),
        Setting(
            "host.tcp_wmem",
            "fixed",
            "send buffer, as large as it may get from the beginning",
            "HyStart paper, section 5.1: senders and receivers have a very large buffer",
        ),
        Setting("host.tcp_rmem", "fixed", "receive buffer, likewise", "HyStart paper, section 5.1"),
        Setting(
            "receiver.behaviour",
            "delayed-ack",
            "an ACK for every other packet",
            "RFC 1122, section 4.2.3.2, and RFC 5681, section 4.2",
        ),
        Setting(
            "path.burst", "none", "every frame is spaced, as by an interface", "the papers' links are no token buckets"
        ),
    )
}


def apply_sender(document: Document) -> None:
    """Fill in the settings of the bundle that ``sender`` names, in place, for one point of the sweep.

    Any other name is left for the check of the field.
    """
    name = document.data.get("sender")
    if isinstance(name, dict):
        name = name.get("behaviour")
    for setting in BUNDLES.get(name, ()) if isinstance(name, str) else ():
        for section, field in _sections_of(document, setting.field):
            section.setdefault(field, setting.value)


def in_force(name: str, values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The bundle's settings as a run has them, by field. ``values`` are the run's. Each has ``value``, ``what``,
    ``source``, and ``instead_of``, the bundle's value, if the profile overrides it."""
    found = {}
    for setting in BUNDLES.get(name, ()):
        value = values[setting.field]
        other = {} if str(value) == str(setting.value) else {"instead_of": setting.value}
        found[setting.field] = {"value": value, **other, "what": setting.what, "source": setting.source}
    return found


def _sections_of(document: Document, field: str) -> Iterator[tuple[Any, str]]:
    """Every section that holds the field, created if missing, with the field's name in it."""
    data = document.data
    first, _, rest = field.partition(".")
    if first == "flows":
        if not data.get("flows") and not data.get("groups"):
            data["flows"] = [{}]
        for kind in ("flows", "background", "groups"):
            entries = data.get(kind)
            for entry in entries if isinstance(entries, list) else ():
                if isinstance(entry, dict) and "udp" not in entry:
                    yield entry, rest
        return
    if first == "receiver" and isinstance(data.get("receiver"), str):
        return  # a behaviour alone has no fields
    section = data
    *above, name = _parts_of(field)
    for step in above:
        section = section.setdefault(step, {})
        if not isinstance(section, dict):
            return
    yield section, name


def _parts_of(field: str) -> list[str]:
    """The parts of a dotted name. ``host.sysctls.net.ipv4.tcp_sack`` has three: a sysctl's name contains dots."""
    first, sysctls, name = field.partition(".sysctls.")
    return [*first.split("."), "sysctls", name] if sysctls else field.split(".")


ReceiverName = Annotated[
    str,
    BeforeValidator(lambda value: one_of("receiver behaviour", RECEIVERS, value)),
    WithJsonSchema({"enum": list(RECEIVERS), "x-shared": "ReceiverName"}),
]


FIXED = "fixed"
BUFFER_TRIPLE = rf"^(?:{FIXED}|\s*[0-9]{{1,10}}\s+[0-9]{{1,10}}\s+[0-9]{{1,10}}\s*)$"
_BufferTriple = Annotated[str, Field(pattern=BUFFER_TRIPLE)]


class HostSection(Section):
    """Settings of the kernel's network stack."""

    sysctls: dict[str, Text] = Field(
        default_factory=dict, description="name: value; set on every node, after all other settings"
    )
    tcp_rmem: _BufferTriple | None = Field(
        default=None,
        description="minimum, initial and maximum receive buffer in bytes; default: never a limit; `fixed`: the "
        "maximum from the start",
    )
    tcp_wmem: _BufferTriple | None = Field(
        default=None,
        description="minimum, initial and maximum send buffer in bytes; default: a limit only in recovery without "
        "SACK, since Linux lets it grow to two windows; `fixed`: the maximum from the start",
    )
    packets_per_ack: Annotated[int, Field(ge=0, le=1_000_000)] | None = Field(
        default=None,
        description="maximum packets an ACK counts as, in slow start of every plug-in and in their reno; 0 (default): "
        "as many as it acknowledges",
    )
    first_acks_per_packet: Annotated[int, Field(ge=0, le=1_000_000)] | None = Field(
        default=None,
        description="acknowledged packets per packet of growth of the plug-ins' cubic before the first congestion; "
        "0 (default): as in today's Linux",
    )
    ipv6: bool = Field(default=False, description="keep IPv6 enabled; its random timers shift runs by microseconds")


_KERNELS = "`debian-VERSION`, `debian-newest`, or the path of a source tree"


class SenderSection(ShortSection):
    """Behaviour and kernel of the senders. A name alone, such as `sender: of-2007`, is the behaviour."""

    short: ClassVar[str] = "behaviour"

    behaviour: Literal["linux", "of-2007"] = Field(
        default=TODAY,
        description="bundle of settings of an earlier time, which the profile can override "
        "([senders.md](senders.md)); linux: none",
    )
    stack: Text | None = Field(
        default=None,
        description="TCP stack that sends the measured flows (engine `uml`): a name of "
        "[stacks.md](stacks.md), or the path of a YAML file; linux: the kernel's",
    )
    kernel: KernelName | None = Field(
        default=None,
        description="kernel of senders and routers; overrides kernel (engine `uml`): " + _KERNELS,
    )
    processor: ProcessorSection = Field(
        default_factory=ProcessorSection, description="processor of each sender: a mapping, or the name of a model"
    )
    queue: AnyHostQueue = host_queue_field()


class ReceiverSection(ShortSection):
    """Behaviour and kernel of the receivers. A name alone, such as `receiver: no-sack`, is the behaviour."""

    short: ClassVar[str] = "behaviour"

    behaviour: ReceiverName = Field(
        default=LINUX,
        description="how receivers of measured flows acknowledge ([receivers.md](receivers.md)); linux: the kernel",
    )
    backlog_blocks: Annotated[int, Field(ge=1, le=MOST_BACKLOG_BLOCKS)] | None = Field(
        default=None,
        description="for `windows-xp` only: number of out-of-order blocks from which on it reports none and discards "
        "out-of-order data; default: the behaviour's own",
    )
    stack: Text | None = Field(
        default=None,
        description="TCP stack that receives the measured flows (engine `uml`): a name of "
        "[stacks.md](stacks.md), or the path of a YAML file; linux: the kernel's",
    )
    kernel: KernelName | None = Field(
        default=None, description=f"kernel of the receivers; overrides kernel (engine `uml`): {_KERNELS}"
    )
    processor: ProcessorSection = Field(
        default_factory=ProcessorSection, description="processor of each receiver: a mapping, or the name of a model"
    )
