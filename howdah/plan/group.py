# SPDX-License-Identifier: Apache-2.0
"""Expands the groups of a profile to flows. All draws depend only on the seed, the group's name and the repetition.

The algorithm and the sweep point have no influence, so all of them meet the same connections at the same instants.
"""

from __future__ import annotations

import dataclasses
import itertools
import random

from howdah.errors import ProfileError
from howdah.frame import STAMPED_TCP_BYTES
from howdah.plan.generated import GeneratedFlowSection
from howdah.plan.mix import LAWS, MOST_GENERATED, Connection, mix_connections, web_connections
from howdah.plan.perturbation import derived_seed
from howdah.plan.sizes import Sampler, sampler_of
from howdah.profile import Cell
from howdah.profile.group import DatagramSection, GroupSection
from howdah.profile.model import Scenario

MOST_BURSTS = 100_000
REQUEST_BYTES = 300  # request for a web page's object, unless the group gives a size
LEAST_ROUND_TRIPS = 4  # a connection with fewer round trips before the end of the run is left out


def expand(cell: Cell) -> Cell:
    """Return the cell with the connections of its groups as flows: measured ones after ``flows``, others after
    ``background``. A cell without groups is returned unchanged. Raise ProfileError."""
    scenario = cell.scenario
    if not scenario.groups:
        return cell
    measured, background = list(scenario.flows), list(scenario.background)
    slot = pairs_of_written(scenario)
    count = 0
    for origin, group in enumerate(scenario.groups):
        rtt_us = group.rtt or scenario.path.forward_delay_us + scenario.path.reverse_delay_us
        before_us = scenario.duration - LEAST_ROUND_TRIPS * rtt_us
        draw = generator(scenario.seed, group.name, cell.repetition)
        sampler = sampler_of(cell, origin)
        try:
            if group.web is not None:
                drawn = web_connections(group.web, group.start, before_us, scenario.path.mtu - STAMPED_TCP_BYTES, draw)
            elif group.mix is not None:
                drawn = mix_connections(group.mix, group.start, before_us, scenario.path.mtu, draw)
            else:
                drawn = connections(group, scenario.duration, before_us, draw, sampler)
        except ProfileError as error:
            what = f"the group {group.name}: {error.what}"
            raise ProfileError(what, where=cell.place("groups", origin), hint=error.hint) from None
        count += len(drawn)
        if count > MOST_GENERATED:
            what = f"the groups up to {group.name} make more than {MOST_GENERATED} connections"
            raise ProfileError(what, where=cell.place("groups", origin), hint="ask for fewer, or a shorter run")
        model = _model(group, origin)
        flows = [_flow(model, number, slot + number % group.pairs, each) for number, each in enumerate(drawn)]
        back = flows[1::2] if group.alternate else []
        flows = flows[::2] if group.alternate else flows
        (measured if group.role == "measured" else background).extend(flows)  # type: ignore[arg-type]
        background.extend(_turned(flow) for flow in back)  # type: ignore[misc]
        slot += group.pairs
    if not measured:
        raise ProfileError("nothing is measured: no connection starts before the run ends", where=cell.place("groups"))
    whole = scenario.model_copy(update={"flows": measured, "background": background})
    return dataclasses.replace(cell, scenario=whole)


def generator(seed: int, name: str, repetition: int) -> random.Random:
    """Return the random generator of a group."""
    return random.Random(derived_seed(seed, "group", name, repetition))


def pairs_of_written(scenario: Scenario) -> int:
    """Return the number of host pairs of written flows: one each, except for background that names its hosts."""
    flows = [flow for flow in scenario.flows if not isinstance(flow, GeneratedFlowSection)]
    background = [flow for flow in scenario.background if not isinstance(flow, GeneratedFlowSection)]
    return len(flows) + sum(flow.sender is None or flow.receiver is None for flow in background)


def pairs_of(scenario: Scenario) -> int:
    """Return the number of host pairs that the scenario's flows and groups need."""
    return pairs_of_written(scenario) + sum(group.pairs for group in scenario.groups)


def connections(
    group: GroupSection, duration_us: int, before_us: int, draw: random.Random, sampler: Sampler | None = None
) -> list[Connection]:
    """Return the connections of a group, ordered by start, without those that would start at ``before_us`` or later and
    have no time to connect. ``sampler`` draws their sizes, if the group draws them.
    """
    starts = _starts(group, draw)
    found = []
    switched = 0
    for start in starts:
        if start >= before_us:
            continue
        stop = None if group.lifetime is None else min(start + group.lifetime, duration_us)
        bursts = (
            _bursts(group.udp, start, stop or duration_us, draw, MOST_BURSTS - switched)
            if group.udp is not None
            else ()
        )
        switched += len(bursts)
        size = group.http.object * group.http.requests if group.http is not None else group.size
        if sampler is not None:
            size = sampler(draw)
        if size is not None and group.http is None:
            size *= group.requests
        found.append(Connection(start, stop, size, bursts))
    return found


def _bursts(
    udp: DatagramSection, start_us: int, stop_us: int, draw: random.Random, most: int
) -> tuple[tuple[int, int], ...]:
    """Return the times at which a source sends; the first burst begins at its start."""
    if udp.on_off is None:
        return ((start_us, stop_us),)
    law = LAWS[udp.on_off.distribution]
    bursts = []
    now = start_us
    while now < stop_us:
        end = now + max(round(law(draw, udp.on_off.on)), 1)
        bursts.append((now, min(end, stop_us)))
        now = end + max(round(law(draw, udp.on_off.off)), 1)
        if len(bursts) > most:
            hint = "make on and off longer, or the run shorter"
            raise ProfileError(f"its sources would be switched on more than {MOST_BURSTS} times", hint=hint)
    return tuple(bursts)


def _starts(group: GroupSection, draw: random.Random) -> list[int]:
    count = group.connections or 0
    if group.spread is not None:
        return sorted(group.start + int(draw.random() * group.spread) for _ in range(count))
    if group.arrivals != "regular":
        law = LAWS[{"poisson": "exponential", "pareto": "pareto"}[group.arrivals]]
        gaps = (law(draw, group.interval or 0) for _ in range(count))
        return [group.start + int(passed_us) for passed_us in itertools.accumulate(gaps)]
    return [group.start + number * (group.interval or 0) for number in range(count)]


def _turned(flow: GeneratedFlowSection) -> GeneratedFlowSection:
    """Return the same connection between the same hosts in the reverse direction."""
    return flow.model_copy(update={"direction": "reverse", "group": f"{flow.group}-back"})


def _model(group: GroupSection, origin: int) -> GeneratedFlowSection:
    """Return the settings that the group's connections share."""
    asks = group.web is not None and group.opener != "sender"
    request = group.request or (REQUEST_BYTES if asks else None)
    return GeneratedFlowSection.model_construct(
        start=group.start,
        algorithm=group.algorithm,
        rtt=group.rtt,
        initial_window=group.initial_window,
        initial_receive_window=group.initial_receive_window,
        opener="receiver" if request or group.http else group.opener or "sender",
        receiver_behaviour=group.receiver_behaviour,
        request=request,
        group=group.name,
        origin=origin,
        slot=0,
        direction=group.direction,
        udp=group.udp,
        http=group.http,
        requests=group.requests,
        think=group.think,
    )


def _flow(model: GeneratedFlowSection, number: int, slot: int, connection: Connection) -> GeneratedFlowSection:
    return model.model_copy(
        update={
            "name": f"{model.group}-{number + 1}",
            "start": connection.start_us,
            "stop": connection.stop_us,
            "size": connection.size_bytes,
            "answer": (connection.size_bytes or 0) // model.requests,
            "slot": slot,
            "bursts": connection.bursts,
        }
    )
