# SPDX-License-Identifier: Apache-2.0
"""The traffic module in a guest: what it accepts, what it moves, and that it acknowledges as a process would."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from howdah.default import DEFAULT_KERNEL
from howdah.engine.uml.build import build
from howdah.engine.uml.engine import UmlEngine
from howdah.engine.uml.guest import Guest, boot
from howdah.ingest.run import ingest
from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan
from howdah.profile import load
from howdah.record.directory import RunDirectory

pytestmark = pytest.mark.guest

ROOT = Path(__file__).parents[2]
PROBE = Path(__file__).with_name("traffic_probe.py")


def _silent(_phase: str, _done: int, _of: int) -> None:
    pass


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What traffic_probe.py saw in one guest."""
    directory = tmp_path_factory.mktemp("traffic")
    share, raw = directory / "share", directory / "raw"
    (share / "modules").mkdir(parents=True)
    raw.mkdir()
    built = build(DEFAULT_KERNEL, (), _silent)
    for module in built.modules:
        shutil.copy(module.file, share / "modules" / f"{module.name}.ko")
    shutil.copy(PROBE, share)
    guest = Guest(
        kernel=built.kernel.image,
        tree=built.tree.root,
        tools=built.tools,
        share=share,
        raw=raw,
        console=raw / "console.log",
        command=("/usr/bin/python3", "-S", f"/howdah/in/{PROBE.name}"),
        memory_bytes=512 * 2**20,
        wall_clock_limit_s=300,
    )
    ending = boot(guest, _silent)
    assert ending.exit_status == 0, guest.console.read_text()
    yield json.loads((raw / "traffic.json").read_text())


def test_it_loads(seen: dict[str, Any]) -> None:
    assert seen["loaded"] == 0


@pytest.mark.parametrize(
    ("what", "answer"),
    [
        ("unconnected", "ENOTCONN"),
        ("listening", "ENOTCONN"),
        ("datagram", "ENOTCONN"),
        ("stream of datagrams", "EINVAL"),
        ("datagrams of a stream", "EINVAL"),
        ("too often", "EINVAL"),
        ("too large", "EINVAL"),
        ("no interval", "EINVAL"),
        ("local", "EINVAL"),
        ("file", "ENOTSOCK"),
        ("closed", "EBADF"),
        ("detached", "ENOENT"),
        ("word", "EINVAL"),
        ("no size", "EINVAL"),
        ("no block", "EINVAL"),
        ("huge block", "EINVAL"),
        ("extra", "EINVAL"),
        ("long", "EINVAL"),
        ("first", "ok"),
        ("twice", "EBUSY"),
        ("other role", "EBUSY"),
    ],
)
def test_it_refuses_what_it_cannot_do(seen: dict[str, Any], what: str, answer: str) -> None:
    assert seen["refusals"][what] == answer


def test_a_fixed_size_is_moved_exactly_and_ends_with_a_fin(seen: dict[str, Any]) -> None:
    result = seen["fixed_size"]
    for role in ("source", "sink"):
        end = result[role]
        assert (end["role"], end["state"], end["bytes"]) == (role, "done", result["size"])
        assert result["before"] <= end["first"] <= end["last"] <= result["after"]
    assert result["source"]["first"] + 1_000_000 <= result["sink"]["first"]  # the path's delay is 1 ms


def test_either_end_works_with_a_process_at_the_other(seen: dict[str, Any]) -> None:
    result = seen["one_end_each"]
    assert result["read"] == result["size"]
    assert (result["eaten"]["state"], result["eaten"]["bytes"]) == ("done", result["size"])


def test_what_arrived_before_the_sink_is_consumed(seen: dict[str, Any]) -> None:
    assert (seen["queued_before"]["state"], seen["queued_before"]["bytes"]) == ("done", 5000)


def test_detaching_gives_ordinary_sockets_back(seen: dict[str, Any]) -> None:
    result = seen["detached"]
    assert result["moved"] > 1_000_000
    assert result["answers"] == ["ok", "ok"]
    assert result["left"] == 0
    assert result["tail"] == "the end"


def test_a_reset_is_told_from_an_end(seen: dict[str, Any]) -> None:
    assert seen["reset"]["sink"]["state"] == "closed"
    assert seen["reset"]["source"]["state"] == "closed"


def test_killing_the_owner_of_a_hundred_sockets_frees_the_module(seen: dict[str, Any]) -> None:
    result = seen["crowd"]
    assert (result["attached"], result["moving"]) == (100, 100)
    assert result["rmmod while attached"] != 0
    assert result["left"] == ""
    assert (result["rmmod afterwards"], result["gone"], result["loaded again"]) == (0, True, 0)


def test_the_kernel_has_nothing_to_complain_about(seen: dict[str, Any]) -> None:
    complaints = ("WARNING", "BUG", "Call Trace", "INFO: ", "possible", "inconsistent", "leak")
    assert [line for line in seen["log"] if any(word in line for word in complaints)] == []
    assert any("howdah_traffic" in line for line in seen["log"])  # the log is the kernel's


def _plan(source: str, sink: str) -> Plan:
    """The quick path with one flow, without calibration, driven by the given ends."""
    profile = load(ROOT / "profiles" / "quick.yaml", ["algorithm=cubic"])
    plan = compile_plan(next(iter(profile.cells())))
    flows = [dataclasses.replace(flow, traffic=source, sink=sink) for flow in plan.flows]
    return dataclasses.replace(plan, flows=flows, run=f"{source}-{sink}")


@pytest.fixture(scope="module")
def acks(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, np.ndarray[Any, Any]]]:
    """The per-ACK trace for every pairing of kernel and user-space ends."""
    found = {}
    engine = UmlEngine()
    for source in ("kernel", "python"):
        for sink in ("kernel", "python"):
            directory = RunDirectory(tmp_path_factory.mktemp(f"{source}-{sink}"))
            plan = _plan(source, sink)
            directory.plan.write_text(plan.to_json())
            engine.run(directory, plan, _silent)
            ingest(directory)
            table = pq.read_table(directory.table("tcp_probe"))
            found[source, sink] = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    return found


@pytest.mark.parametrize("ends", [("kernel", "python"), ("python", "kernel"), ("python", "python")])
def test_acks_are_those_of_a_process_that_waits(
    acks: dict[tuple[str, str], dict[str, np.ndarray[Any, Any]]], ends: tuple[str, str]
) -> None:
    """Same acknowledgements, in the same order, with the same window; times differ by what clocks cost a process."""
    expected, found = acks["kernel", "kernel"], acks[ends]
    assert len(expected["time_ns"]) > 3000
    for name in ("snd_una_bytes", "snd_nxt_bytes", "cwnd_packets", "ssthresh_packets", "snd_wnd_bytes"):
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
    elapsed = [trace["time_ns"] - trace["time_ns"][0] for trace in (expected, found)]
    assert np.abs(elapsed[0] - elapsed[1]).max() < 100_000
