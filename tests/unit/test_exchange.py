# SPDX-License-Identifier: Apache-2.0
"""Several requests over one connection: the plan, and the two processes against each other over a socket pair."""

from __future__ import annotations

import dataclasses
import itertools
import json
import socket
import threading
import time
from pathlib import Path

import pytest

from howdah.agent.traffic.endpoint import Transferred
from howdah.agent.traffic.exchange import ExchangeEndpoint, answer_all, request_all
from howdah.errors import ProfileError
from howdah.plan.plan import Plan
from howdah.plan.text import render
from howdah.plan.traffic import Exchange
from tests.unit.profile_factory import make_one

LOOP = "groups:\n- {name: loop, connections: 1, request: 300 B, size: 50 kB, requests: 4, think: 250 ms}\n"


def test_a_closed_loop_is_planned(tmp_path: Path) -> None:
    plan = make_one(tmp_path, LOOP)
    (flow,) = plan.flows
    assert flow.exchange == Exchange(object_bytes=50_000, request_bytes=300, requests=4, think_us=250_000)
    assert (flow.traffic, flow.sink, flow.opener, flow.size_bytes) == ("python", "python", "receiver", 200_000)
    assert flow.request_bytes is None
    assert Plan.from_json(plan.to_json()) == plan
    assert "4 requests of 50 kB, 250 ms between" in render(plan)


def test_one_request_is_planned_as_ever(tmp_path: Path) -> None:
    plan = make_one(tmp_path, LOOP.replace(", requests: 4, think: 250 ms", ""))
    (flow,) = plan.flows
    assert (flow.traffic, flow.request_bytes, flow.size_bytes, flow.exchange) == ("kernel", 300, 50_000, None)
    assert '"exchange"' not in plan.to_json()


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ("requests: 2, size: 1 kB", "several requests need"),
        ("requests: 2, request: 300 B, lifetime: 1 s", "several requests need"),
        ("request: 300 B, size: 1 kB, think: 1 s", "there is one request"),
        ("requests: 2, http: {object: 1 kB}", "several requests need"),
    ],
)
def test_what_cannot_be_asked_for(tmp_path: Path, fields: str, what: str) -> None:
    with pytest.raises(ProfileError, match=what):
        make_one(tmp_path, f"groups:\n- {{name: loop, connections: 1, {fields}}}\n")


def _answer(connection: socket.socket, exchange: Exchange) -> tuple[threading.Thread, list[Transferred]]:
    states: list[Transferred] = []
    thread = threading.Thread(target=lambda: states.append(answer_all(connection, exchange)))
    thread.start()
    return thread, states


def test_every_request_is_answered_whole() -> None:
    exchange = Exchange(object_bytes=300_000, request_bytes=400, requests=3, think_us=20_000)
    server, client = socket.socketpair()
    with server, client:
        thread, states = _answer(server, exchange)
        state, made = request_all(client, exchange)
        thread.join(10)
    assert (state.bytes, state.done, state.error) == (900_000, True, None)
    assert [states[0].bytes, states[0].done, states[0].error] == [900_000, True, None]
    assert [size for *_times, size in made] == [300_000] * 3
    for before, after in itertools.pairwise(made):
        assert after[0] - before[2] >= 20_000_000, "it thinks after the answer"
    assert all(start <= first <= end for start, first, end, _size in made)
    assert state.last_ns == made[-1][2]


def test_a_loop_that_is_cut_off_ends_without_an_error() -> None:
    exchange = Exchange(object_bytes=1000, request_bytes=400, requests=5, think_us=0)
    server, client = socket.socketpair()
    with server, client:
        thread, states = _answer(server, dataclasses.replace(exchange, requests=2))
        state, made = request_all(client, exchange)
        server.close()
        thread.join(10)
    assert len(made) == 2
    assert (state.bytes, state.error) == (2000, None)
    assert states[0].bytes == 2000


def test_a_client_that_thinks_when_the_time_is_over_reports_what_it_has(tmp_path: Path) -> None:
    exchange = Exchange(object_bytes=1000, request_bytes=400, requests=5, think_us=600_000_000)
    sockets = socket.socketpair()
    ends = [ExchangeEndpoint(role, exchange, tmp_path / "1.json") for role in ("source", "sink")]
    for end, connection in zip(ends, sockets, strict=True):
        end.attach(connection)
    began = time.monotonic()
    states = [end.state() for end in ends]
    while not all(state.done for state in states) and time.monotonic() < began + 30:
        time.sleep(0.05)  # until both have begun to wait the signal is pending or does nothing
        for end in ends:
            end.end_wait()
        states = [end.state() for end in ends]
    for end in ends:
        end.close()
    assert [(state.bytes, state.done, state.error) for state in states] == [(1000, True, None)] * 2
    assert [size for *_times, size in json.loads((tmp_path / "1.json").read_text())] == [1000]
