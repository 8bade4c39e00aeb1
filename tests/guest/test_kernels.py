# SPDX-License-Identifier: Apache-2.0
"""Several kernels in one virtual time: as one kernel to a step of its clock, the same again, and ended together."""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Thread

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from howdah.engine.ending import Ending, runtime_base
from howdah.engine.life import descendants
from howdah.engine.uml import divided
from howdah.engine.uml.divided import boot_together
from howdah.engine.uml.engine import UmlEngine
from howdah.engine.uml.guest import Guest, Progress
from howdah.errors import RunFailedError
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from tests.guest import guest_run
from tests.guest.shared_run import shared_run

pytestmark = pytest.mark.guest

Integers = npt.NDArray[np.int64]
SHORT = ("algorithm=cubic", "duration=1500 ms")
CLOCK_STEPS_NS = 2048  # eight steps of a user-mode kernel's clock
ROUNDED = {"time_ns", "srtt_us"}  # what a step of the clock changes


def _acks(run: RunDirectory, until: int | None = None) -> tuple[pa.Table, Integers]:
    """What each ACK found, apart from what a step of the clock changes, and when it came."""
    table = store.read(run, "tcp_probe").slice(0, until)
    same = [name for name in table.column_names if name not in ROUNDED]
    return table.select(same), np.asarray(table["time_ns"], dtype=np.int64)


def _first_cut(run: RunDirectory) -> int:
    """The row of the first ACK after slow start."""
    ssthresh = store.read(run, "tcp_probe")["ssthresh_packets"].to_pylist()
    return next(row for row, value in enumerate(ssthresh) if value != ssthresh[0])


def _two_ways(engine: UmlEngine, *path: str) -> tuple[RunDirectory, RunDirectory]:
    """In one kernel and in two, of which nothing is invalid."""
    split = guest_run.plan_of(*SHORT, *path, "split=true")
    engine.prepare([split], guest_run.ignore)
    one, _ = shared_run(engine, guest_run.plan_of(*SHORT, *path))
    two, verdict = shared_run(engine, split)
    assert guest_run.failures(verdict) == {}
    return one, two


def test_one_kernel_twice_is_one_kernel_once(engine: UmlEngine) -> None:
    one, two = _two_ways(engine)
    (first, times), (second, other_times) = _acks(one), _acks(two)
    assert first.num_rows > 100
    assert first.equals(second)
    assert int(np.abs(times - other_times).max()) <= CLOCK_STEPS_NS
    counted = ["flow", "bytes_sent_bytes", "bytes_received_bytes", "complete"]
    assert store.read(one, "flow").select(counted).equals(store.read(two, "flow").select(counted))
    for name, key in (("qdisc", "sent_packets"), ("interface", "tx_packets")):
        totals = [sum(store.read(run, name)[key].to_pylist()[-6:]) for run in (one, two)]
        assert totals[0] == pytest.approx(totals[1], rel=0.01), name


def test_a_schedule_and_a_slow_way_back_are_as_in_one_kernel(engine: UmlEngine) -> None:
    """To the first loss: a frame that comes to a full queue within a step of the clock may be lost, or the next one."""
    path = ("path.schedule=[{at: 700 ms, rtt: 60 ms}]", "path.reverse_rate=2 Mbit/s", "algorithm=reno")
    one, two = _two_ways(engine, *path)
    cut = _first_cut(one)
    assert cut > 100
    (first, times), (second, other_times) = _acks(one, cut), _acks(two, cut)
    assert first.equals(second)
    assert int(np.abs(times - other_times).max()) <= CLOCK_STEPS_NS


def test_loss_and_variation_stay_in_force(engine: UmlEngine) -> None:
    _one, two = _two_ways(engine, "path.loss=0.5 %", "perturbation.jitter=1 ms", "repetitions=2")
    drops = store.read(two, "qdisc")
    lost = max(row["drops_packets"] for row in drops.to_pylist() if row["handle"] == "1:")
    assert lost > 0


def test_the_same_plan_twice_gives_equal_tables(engine: UmlEngine, tmp_path: Path) -> None:
    plan = guest_run.plan_of(*SHORT, "split=true")
    engine.prepare([plan], guest_run.ignore)
    first, _verdict = shared_run(engine, plan)
    second, _verdict = guest_run.run(engine, plan, tmp_path / "second")
    assert store.equal(first, second) is None


Change = Callable[[Mapping[str, Guest]], Mapping[str, Guest]]


def _failure(engine: UmlEngine, path: Path, change: Change, meanwhile: Callable[[], None]) -> RunFailedError:
    """Of a run of two kernels whose guests are changed, while something happens."""

    def boot(guests: Mapping[str, Guest], progress: Progress) -> dict[str, Ending]:
        return boot_together(change(guests), progress)

    plan = guest_run.plan_of(*SHORT, "split=true")
    engine.prepare([plan], guest_run.ignore)
    doing = Thread(target=meanwhile)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(divided, "boot_together", boot)
        doing.start()
        with pytest.raises(RunFailedError) as caught:
            guest_run.boot(engine, plan, path)
    doing.join()
    return caught.value


def _left() -> list[object]:
    """Processes below this one that run a guest, and their directories."""
    guests = [pid for pid in descendants(os.getpid()) if _is_kernel(pid)]
    return [*guests, *runtime_base().glob(f"howdah-guest-{os.getpid()}-*")]


def _is_kernel(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"./linux")
    except OSError:
        return False


@pytest.mark.parametrize("name", ["senders", "receivers"])
def test_a_kernel_that_panics_ends_both_with_its_message(engine: UmlEngine, name: str, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()

    def without_tree(guests: Mapping[str, Guest]) -> Mapping[str, Guest]:
        return {**guests, name: dataclasses.replace(guests[name], tree=empty)}

    error = _failure(engine, tmp_path / "run", without_tree, lambda: None)
    assert error.what.startswith(f"{name}: the guest's kernel panicked")
    assert f"raw/{name}/console.log" in str(error.where)
    assert _left() == []


def test_a_kernel_that_is_killed_ends_the_other(engine: UmlEngine, tmp_path: Path) -> None:
    run = tmp_path / "run"

    def kill_one() -> None:
        """When both agents are at work."""
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            if all((run / "raw" / name / "progress.json").exists() for name in ("senders", "receivers")):
                break
            time.sleep(0.01)
        own = [pid for pid in descendants(os.getpid()) if _is_kernel(pid) and _runs_in(pid, run / "raw" / "receivers")]
        os.kill(own[0], signal.SIGKILL)

    error = _failure(engine, run, lambda guests: guests, kill_one)
    assert error.what.startswith("receivers: the guest's kernel died (signal 9)")
    assert _left() == []


def _runs_in(pid: int, raw: Path) -> bool:
    return (Path(f"/proc/{pid}/cwd") / "out").resolve() == raw.resolve()


def test_an_agent_that_fails_is_told_of_by_its_name(engine: UmlEngine, tmp_path: Path) -> None:
    def without_plan(guests: Mapping[str, Guest]) -> Mapping[str, Guest]:
        (guests["receivers"].share / "plan.json").write_text("{}")
        return guests

    error = _failure(engine, tmp_path / "run", without_plan, lambda: None)
    assert error.what.startswith("receivers: the agent ended")
    assert _left() == []
