# SPDX-License-Identifier: Apache-2.0
"""The section ``traffic``: what sends and receives. Built-in generators, programs, and QUIC stacks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from howdah.profile.field import Bytes, FieldError, Section, Text, fixed
from howdah.traffic import PAIRED, PROGRAM, SELECTABLE

PLACEHOLDERS = (
    "server_address",
    "client_address",
    "port",
    "client_port",
    "bytes",
    "duration",
    "directory",
    "output",
    "algorithm",
    "flow",
)
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]*)\}")
_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
REAL_TIME = "iperf3"  # default in real time, in which howdah may load no modules into the kernel
_LITERAL: Any = Literal  # built at run time
if TYPE_CHECKING:
    Asked = str
else:
    Asked = _LITERAL[SELECTABLE]


class ProgramSection(Section):
    """A program at one end of a flow: from the guest tree (a name, or an absolute path), or your own file."""

    command: list[Text] = fixed(
        min_length=1,
        max_length=256,
        description="the program and its arguments; a relative path with `/` is relative to the profile. "
        f"Placeholders: {', '.join(f'`{{{name}}}`' for name in PLACEHOLDERS)}",
    )
    environment: dict[Annotated[str, Field(pattern=_VARIABLE)], Text] = fixed(
        default_factory=dict, description="environment variables; placeholders as in command"
    )
    files: list[Text] = fixed(
        default_factory=list,
        max_length=64,
        description="files beside the profile, copied into the program's directory under their own names",
    )

    @model_validator(mode="after")
    def _placeholders(self) -> ProgramSection:
        for text, place in self.texts:
            for name in _PLACEHOLDER.findall(text):
                if name and name not in PLACEHOLDERS:
                    raise FieldError(
                        f"there is no placeholder {{{name}}}; there are "
                        f"{', '.join(f'{{{each}}}' for each in PLACEHOLDERS)}",
                        *place,
                    )
        return self

    @property
    def texts(self) -> list[tuple[str, tuple[str | int, ...]]]:
        """Every text that may contain placeholders, with its path in the section."""
        found: list[tuple[str, tuple[str | int, ...]]] = [
            (text, ("command", index)) for index, text in enumerate(self.command)
        ]
        return [*found, *((text, ("environment", name)) for name, text in self.environment.items())]

    @property
    def own_files(self) -> list[tuple[str, tuple[str | int, ...]]]:
        """Files beside the profile, with their paths in the section; the program comes first."""
        program = self.command[0]
        beside = "/" in program and not program.startswith(("/", "{"))
        own: list[tuple[str, tuple[str | int, ...]]] = [(program, ("command", 0))] if beside else []
        return [*own, *((name, ("files", index)) for index, name in enumerate(self.files))]


class TrafficSection(Section):
    """What sends and what receives: the kernel, iperf3, a plain blocking Python program, any program, or QUIC.

    The default is the kernel in virtual time, in which a process costs wall time, and iperf3 in real time, in which
    howdah may load no modules into the kernel.
    """

    source: Asked | None = Field(
        default=None, description="what sends", json_schema_extra={"x-default": "kernel; iperf3 in real time"}
    )
    sink: Asked | None = Field(
        default=None, description="what receives", json_schema_extra={"x-default": "kernel; iperf3 in real time"}
    )
    client: ProgramSection | None = Field(
        default=None, description="a program that connects to server ([traffic.md](traffic.md#any-program))"
    )
    server: ProgramSection | None = Field(
        default=None, description="a program that is started first, and to which client connects"
    )
    sends: Literal["client", "server"] = fixed("client", description="which program sends the data")
    protocol: Literal["tcp", "udp"] = fixed(
        "tcp", description="protocol of the programs; only TCP has the kernel's per-ACK records"
    )
    ports: list[Annotated[int, Field(ge=1, le=65535)]] = fixed(
        default_factory=list,
        max_length=16,
        description="additional, unmeasured ports of the server",
    )
    wire_bytes: Bytes | None = Field(
        default=None,
        description="stop the client after the sending host's interface has sent this much since the flow's start",
    )
    quic: Literal["off", "ngtcp2", "aioquic"] = Field(
        default="off", description="a QUIC stack whose server sends to its client ([quic.md](quic.md))"
    )

    @model_validator(mode="after")
    def _compatible(self) -> TrafficSection:
        ends = {self.source, self.sink} - {None}
        for program in PAIRED:
            if program in ends and len(ends) > 1:
                what = f"{program} speaks a protocol of its own: source and sink must both be {program}"
                raise FieldError(what, "sink")
        if (self.client is None) != (self.server is None):
            given, missing = ("client", "server") if self.server is None else ("server", "client")
            raise FieldError(f"client and server belong together; {missing} is missing", given)
        if self.has_programs and self.quic != "off":
            raise FieldError("quic brings its own client and server", "client")
        for field in ("source", "sink"):
            if getattr(self, field) is not None and (self.has_programs or self.quic != "off"):
                what = f"{field} cannot be combined with {'client and server' if self.has_programs else 'quic'}"
                raise FieldError(what, field)
        if not self.has_programs:
            for field in ("sends", "protocol", "ports"):
                if field in self.model_fields_set:
                    raise FieldError(f"{field} needs client and server, which are not given", field)
            if self.wire_bytes is not None and self.quic == "off":
                raise FieldError("wire_bytes needs client and server, which are not given", "wire_bytes")
        return self

    @property
    def has_programs(self) -> bool:
        return self.client is not None and self.server is not None

    @property
    def is_program(self) -> bool:
        """Whether two programs make the flow, given by the profile or by a QUIC stack."""
        return self.has_programs or self.quic != "off"

    def ends(self, *, virtual_time: bool) -> tuple[str, str]:
        """Source and sink, with defaults filled in."""
        if self.is_program:
            return PROGRAM, PROGRAM
        paired = next((name for name in PAIRED if name in (self.source, self.sink)), None)
        if paired is None and not virtual_time and self.source is self.sink is None:
            paired = REAL_TIME
        if paired is not None:
            return paired, paired
        other = "kernel" if virtual_time else "python"
        return self.source or other, self.sink or other
