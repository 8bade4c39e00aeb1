# SPDX-License-Identifier: Apache-2.0
"""A run of the host engine, in a guest that has what it needs, as somebody sees it who looks while it is made.

Prometheus has no time there that goes on by itself, so what it would have scraped is copied out and read here.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path

import pytest

from howdah.engine.uml.guest import boot
from howdah.plan.plan import Plan
from howdah.profile import load
from howdah.publish.underway import Watch
from howdah.record.directory import PARTIAL, write_json
from howdah.work.compiled import compile_plans
from tests.guest.guest_kit import build_or_skip, host_guest

pytestmark = pytest.mark.guest

_PROJECT = Path(__file__).resolve().parents[2]
_FILES = ("tcp_info.bin", "qdisc.bin", "interface.bin", "progress.json")
_LOOK = """\
import shutil, sys, threading, time
from pathlib import Path
from types import SimpleNamespace
# A guest has no pydantic.
sys.modules["howdah.record.run"] = SimpleNamespace(EngineReport=dict, EngineOrigin=dict, KernelOrigin=dict)
from howdah.engine.host import HostEngine
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
directory = RunDirectory(Path("/tmp/a run"))
directory.path.mkdir()
directory.plan.write_text(Path("/howdah/in/plan.json").read_text())
ended = threading.Event()
def look():
    number = 0
    while not ended.wait(1.0):
        there = [directory.raw / name for name in %r]
        if all(file.exists() and file.stat().st_size for file in there):
            number += 1
            into = Path(f"/howdah/out/look-{number:02}")
            into.mkdir()
            for file in there:
                shutil.copyfile(file, into / file.name)
looking = threading.Thread(target=look)
looking.start()
try:
    HostEngine().run(directory, Plan.from_json(directory.plan.read_text()), lambda *_: None)
finally:
    ended.set()
    looking.join()
    print((directory.raw / "console.log").read_text())
"""


def test_a_run_of_the_host_engine_is_seen_as_it_goes_on(tmp_path: Path) -> None:
    built = build_or_skip()
    plan: Plan = compile_plans(load(_PROJECT / "profiles/quick.yaml"))[0]
    flows = [dataclasses.replace(flow, traffic="python", sink="python") for flow in plan.flows]
    guest = host_guest(built, tmp_path, dataclasses.replace(plan, flows=flows), _LOOK % (_FILES,))
    ending = boot(guest, lambda *_: None)
    assert ending.exit_status == 0, guest.console.read_text()

    run = tmp_path / "runs" / "live" / f"{PARTIAL}cubic-r0-{os.getpid()}"
    (run / "raw").mkdir(parents=True)
    shutil.copyfile(guest.share / "plan.json", run / "plan.json")
    write_json(run / "run.json", {"status": "running", "started": "2025-06-01T12:00:00+00:00"})
    watch, acked, progress, connections = Watch(tmp_path / "runs"), [], [], []
    for look in sorted(guest.raw.glob("look-*")):
        for file in look.iterdir():
            shutil.copyfile(file, run / "raw" / file.name)
        seen = {
            (metric.name, each.labels.get("role", "")): each.values[-1]
            for metric, samples in watch.families().items()
            for each in samples
        }
        acked.append(seen.get(("howdah_flow_acked_bytes_total", "sender"), 0.0))
        progress.append(seen["howdah_live_progress_ratio", ""])
        connections.append(seen["howdah_live_connections", "sender"])
        assert ("howdah_queue_backlog_bytes", "bottleneck") in seen
    assert max(connections) == 1
    assert progress == sorted(progress)
    assert progress[-1] > progress[0]
    # Four seconds of flow, looked at every second: the counter is seen to move on the way, not at the end alone.
    moving = sorted({value for value in acked if value})
    assert len(moving) >= 3, acked
    # 20 Mbit/s for four seconds, less the start.
    assert 5e6 < moving[-1] < 10e6
