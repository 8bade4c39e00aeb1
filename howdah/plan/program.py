# SPDX-License-Identifier: Apache-2.0
"""A flow made by two programs, from a profile or a QUIC stack, resolved for the plan."""

from __future__ import annotations

import hashlib

from howdah.errors import ProfileError, nearest
from howdah.plan.named import MOST_PROGRAM_BYTES
from howdah.plan.plan import Flow
from howdah.plan.quic import STACKS, quic_programs
from howdah.plan.traffic import ProgramEnd, ProgramFile, Programs
from howdah.profile import Cell
from howdah.profile.model import FlowSection
from howdah.profile.traffic import ProgramSection, TrafficSection
from howdah.profile.written import PATHS_START, written_path

Place = tuple[str | int, ...]


def traffic_of(cell: Cell, flow: FlowSection) -> TrafficSection:
    """Return the flow's own traffic, else the profile's."""
    return flow.traffic or cell.scenario.traffic


def traffic_place(cell: Cell, index: int) -> Place:
    """Return the place in the profile where the flow's traffic is written."""
    flow = cell.scenario.flow_at(index)
    return (*cell.scenario.place_of(index), "traffic") if flow.traffic is not None else ("traffic",)


def program_places(cell: Cell, flows: list[Flow]) -> dict[str, str]:
    """Map ``flow 2`` to the place of its traffic in the profile, for every flow that programs make."""
    return {
        f"flow {flow.id}": cell.place(*traffic_place(cell, index))
        for index, flow in enumerate(flows)
        if flow.program is not None
    }


def program_of(cell: Cell, index: int, *, stop_us: int, start_us: int, exact_uptime: bool) -> Programs:
    """Return the field ``program`` of a flow. Raise ProfileError."""
    flow = cell.scenario.flow_at(index)
    traffic = traffic_of(cell, flow)
    place = traffic_place(cell, index)
    if not exact_uptime:
        field = "client" if traffic.has_programs else "quic"
        raise ProfileError(
            "programs as traffic need howdah's own guest, in virtual time",
            where=cell.place(*place, field),
            hint="run it with the uml engine",
        )
    if flow.opener != "sender":
        what = "opener is said by sends where programs make the flow"
        raise ProfileError(what, where=cell.place(*cell.scenario.place_of(index), "opener"), hint="leave it out")
    if traffic.quic != "off":
        most = flow.size or cell.scenario.path.rate * (stop_us - start_us) // 8_000_000 * 2
        client, server = quic_programs(STACKS[traffic.quic], most)
        return Programs(
            "server", "udp", list(traffic.ports), traffic.wire_bytes, "server", traffic.quic, client, server
        )
    assert traffic.client is not None
    assert traffic.server is not None
    return Programs(
        sends=traffic.sends,
        protocol=traffic.protocol,
        ports=list(traffic.ports),
        wire_bytes=traffic.wire_bytes,
        stopped_by="client",
        quic=None,
        client=_end(cell, traffic.client, (*place, "client"), flow),
        server=_end(cell, traffic.server, (*place, "server"), flow),
    )


def stack_algorithm(cell: Cell, index: int, algorithm: str) -> str | None:
    """Return the QUIC stack's name for a flow's algorithm, None for a flow without a QUIC stack. Raise ProfileError."""
    flow = cell.scenario.flow_at(index)
    traffic = traffic_of(cell, flow)
    if traffic.quic == "off":
        return None
    stack = STACKS[traffic.quic]
    if algorithm in stack.algorithms:
        return stack.algorithms[algorithm]
    close = nearest(algorithm, stack.algorithms)
    hint = f"did you mean {close}? " if close else ""
    place: Place = (*cell.scenario.place_of(index), "algorithm") if flow.algorithm else ("algorithm",)
    raise ProfileError(
        f"howdah does not run the QUIC stack {stack.name} with {algorithm!r}",
        where=cell.place(*place),
        hint=f"{hint}it runs it with {', '.join(stack.algorithms)}, whose start-up its log shows",
    )


def _end(cell: Cell, section: ProgramSection, place: Place, flow: FlowSection) -> ProgramEnd:
    for text, where in section.texts:
        if "{bytes}" in text and flow.size is None:
            what = "{bytes} is the size of the flow, which has none"
            raise ProfileError(what, where=cell.place(*place, *where), hint="give the flow a size")
    files = []
    names: set[str] = set()
    for text, where in section.own_files:
        at = cell.place(*place, *where)
        source = written_path(cell.directory, text, at)
        if not source.is_file():
            raise ProfileError(f"there is no file {source}", where=at, hint=PATHS_START)
        if source.name in names:
            raise ProfileError(f"two files of this program are called {source.name}", where=at)
        if source.stat().st_size > MOST_PROGRAM_BYTES:
            what = f"{source.name} has more than {MOST_PROGRAM_BYTES // 2**20} MiB"
            raise ProfileError(what, where=at, hint="let the program make it in its directory")
        names.add(source.name)
        with source.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        files.append(ProgramFile(str(source.resolve()), source.name, digest))
    own = bool(section.own_files) and section.own_files[0][1] == ("command", 0)
    return ProgramEnd(list(section.command), dict(section.environment), files, own, "TERM")
