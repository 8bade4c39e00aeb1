# SPDX-License-Identifier: Apache-2.0
"""Clocks of several machines: a process whose clock is dilated, and times put right by questions and answers."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from howdah.build.cache import Cache
from howdah.codec import encoded
from howdah.engine.machines.clock import ClockSample, LocalClock, correction, described, estimate
from howdah.errors import HowdahError, ProfileError, RunFailedError
from howdah.machines.machine_set import load_machine_set
from howdah.machines.qemu import chosen_dilation, dilating
from howdah.record.clock import ClockRecord, Correction, Offset, read_clocks

ROOT = Path(__file__).resolve().parents[2]
DILATION = 5

# Times of the machine's own clock come by way of CLOCK_REALTIME, which is left alone.
PROGRAM = """
import ctypes, json, os, select, struct, time

C = ctypes.CDLL(None)
TIMEDOUT = 110


class Timespec(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]


def timed(wait):
    real, own = time.time_ns(), time.monotonic_ns()
    answer = wait()
    return {"real_ns": time.time_ns() - real, "own_ns": time.monotonic_ns() - own, "answer": answer}


def condition(clock, ns):
    attribute, lock, found = (ctypes.create_string_buffer(64) for _ in range(3))
    C.pthread_condattr_init(attribute)
    C.pthread_condattr_setclock(attribute, clock)
    C.pthread_cond_init(found, attribute)
    C.pthread_mutex_init(lock, None)
    C.pthread_mutex_lock(lock)
    end = time.clock_gettime_ns(clock) + ns
    return C.pthread_cond_timedwait(found, lock, ctypes.byref(Timespec(end // 10**9, end % 10**9)))


def ppoll(ns):
    return C.ppoll(None, 0, ctypes.byref(Timespec(ns // 10**9, ns % 10**9)), None)


def endless():
    ready, other = os.pipe()
    os.write(other, b".")
    one = struct.pack("ihh", ready, select.POLLIN, 0)
    return C.ppoll(ctypes.create_string_buffer(one, len(one)), 1, ctypes.byref(Timespec(2**31 - 1, 0)), None)


LIMIT = 20_000_000
print(json.dumps({
    "clocks": {name: time.clock_gettime_ns(getattr(time, name)) for name in
               ("CLOCK_MONOTONIC", "CLOCK_MONOTONIC_RAW", "CLOCK_BOOTTIME", "CLOCK_REALTIME")},
    "sleep": timed(lambda: time.sleep(LIMIT / 1e9)),
    "nanosleep": timed(lambda: C.nanosleep(ctypes.byref(Timespec(0, LIMIT)), None)),
    "poll": timed(lambda: select.poll().poll(LIMIT / 1e6)),
    "epoll": timed(lambda: select.epoll().poll(LIMIT / 1e9)),
    "ppoll": timed(lambda: ppoll(LIMIT)),
    "for ever": timed(endless),
    "condition": timed(lambda: condition(time.CLOCK_MONOTONIC, LIMIT)),
    "condition of real time": timed(lambda: condition(time.CLOCK_REALTIME, LIMIT)),
}))
"""
LIMIT_NS = 20_000_000


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return dilating(DILATION, Cache(tmp_path_factory.mktemp("cache")))


def _clocks_ns() -> dict[str, int]:
    names = ("CLOCK_MONOTONIC", "CLOCK_MONOTONIC_RAW", "CLOCK_BOOTTIME", "CLOCK_REALTIME")
    return {name: time.clock_gettime_ns(getattr(time, name)) for name in names}


@pytest.fixture(scope="module")
def told(variables: list[str]) -> dict[str, Any]:
    before = _clocks_ns()
    done = subprocess.run(
        ["env", *variables, sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    return {"before": before, "after": _clocks_ns(), **json.loads(done.stdout)}


@pytest.mark.parametrize("name", ["CLOCK_MONOTONIC", "CLOCK_MONOTONIC_RAW", "CLOCK_BOOTTIME"])
def test_the_clock_is_ours_divided(told: dict[str, Any], name: str) -> None:
    assert told["before"][name] // DILATION <= told["clocks"][name] <= told["after"][name] // DILATION


def test_the_time_of_day_is_left_alone(told: dict[str, Any]) -> None:
    assert told["before"]["CLOCK_REALTIME"] <= told["clocks"]["CLOCK_REALTIME"] <= told["after"]["CLOCK_REALTIME"]


@pytest.mark.parametrize(
    ("wait", "answer"),
    [("poll", []), ("epoll", []), ("ppoll", 0), ("condition", 110), ("sleep", None), ("nanosleep", 0)],
)
def test_a_wait_is_as_long_by_the_slower_clock(told: dict[str, Any], wait: str, answer: object) -> None:
    found = told[wait]
    assert found["answer"] == answer
    assert found["own_ns"] >= LIMIT_NS
    assert found["real_ns"] >= LIMIT_NS * DILATION * 0.99  # the two clocks are read one after the other


def test_a_wait_for_a_time_of_day_ends_then(told: dict[str, Any]) -> None:
    found = told["condition of real time"]
    assert found["answer"] == 110
    assert found["real_ns"] >= LIMIT_NS
    assert found["own_ns"] < found["real_ns"]


def test_a_wait_for_ever_is_no_error(told: dict[str, Any]) -> None:
    """QEMU waits for 2^31 - 1 s where it has no timer; five times as many nanoseconds are more than 64 bits hold."""
    assert told["for ever"]["answer"] == 1


def test_a_factor_that_is_none_ends_the_process(variables: list[str]) -> None:
    wrong = [variables[0], "HOWDAH_DILATION=slow"]
    done = subprocess.run(["env", *wrong, "true"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "HOWDAH_DILATION is slow" in done.stderr


def test_a_clock_like_ours_needs_nothing(tmp_path: Path) -> None:
    assert dilating(1, Cache(tmp_path)) == []


def test_what_does_not_compile_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "dilate.c"
    source.write_text("int clock_gettime(\n")
    monkeypatch.setattr("howdah.machines.qemu._DILATE", source)
    with pytest.raises(HowdahError, match="does not compile"):
        dilating(2, Cache(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("wanted", "accelerators", "cores", "found"),
    [
        ("auto", ["kvm", "kvm", "kvm"], 1, 1),
        ("auto", ["kvm", "tcg", "kvm"], 2, 8),
        ("auto", ["tcg"] * 3, 2, 8),
        ("auto", ["tcg"] * 3, 16, 8),
        ("auto", ["tcg"] * 4, 2, 11),
        ("auto", ["tcg"] * 6, 2, 16),
        (1, ["tcg"], 1, 1),
        (50, ["kvm"], 2, 50),
    ],
)
def test_machines_keep_our_time_where_kvm_runs_them_all(
    wanted: int | str, accelerators: list[str], cores: int, found: int
) -> None:
    assert chosen_dilation(wanted, accelerators, len(accelerators), cores) == found


@pytest.mark.parametrize("written", ["0", "-1", "fast", "1.5", "1001"])
def test_a_wrong_factor_is_refused_with_its_line(tmp_path: Path, written: str) -> None:
    text = (ROOT / "playbooks/machines/virtual.yaml").read_text()
    file = tmp_path / "machines.yaml"
    file.write_text(text.replace("memory: 512 MiB}", f"memory: 512 MiB, dilation: {written}}}"))
    with pytest.raises(ProfileError) as caught:
        load_machine_set(file)
    assert "virtual.dilation: expected auto or a whole number from 1 to 1000" in caught.value.what
    assert caught.value.where == f"{file}:6"


def test_the_engine_counts_by_the_machines_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic_ns", lambda: 1_000_000_007)
    assert LocalClock(4).now_ns() == 250_000_001
    assert LocalClock(4).real_s(10.0) == 40.0
    assert LocalClock().now_ns() == 1_000_000_007


MS = 1_000_000


def samples(offset_ns: int, seed: int, count: int = 60, gain: float = 0.0) -> list[ClockSample]:
    """Questions to a clock that is ``offset_ns`` ahead; the two ways take anything, and never the same."""
    chance = random.Random(seed)
    found, now = [], 1_000 * MS
    for _ in range(count):
        there, back = (round(chance.expovariate(1 / 0.8) * MS) for _ in range(2))
        told = now + there + offset_ns + round(gain * (now - 1_000 * MS))
        found.append(ClockSample(now, told, now + there + back))
        now += there + back + 50_000
    return found


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("offset_ns", [0, -3_000_000_000_000, 7 * MS])
def test_the_offset_lies_within_the_bounds(seed: int, offset_ns: int) -> None:
    found = estimate(samples(offset_ns, seed), "m")
    assert abs(found.offset_ns - offset_ns) <= found.uncertainty_ns
    assert found.uncertainty_ns <= found.round_trip_ns / 2 + 1_000 + 200e-6 * 200 * MS
    assert found.samples == 60


def test_one_lopsided_answer_is_no_better_than_its_round_trip() -> None:
    found = estimate([ClockSample(0, 9 * MS, 10 * MS)], "m")
    assert (found.offset_ns, found.uncertainty_ns) == (4 * MS, 5 * MS)


def test_a_clock_that_drifts_a_little_is_still_one_clock() -> None:
    found = estimate(samples(5 * MS, 3, gain=50e-6), "m")
    assert abs(found.offset_ns - 5 * MS) <= found.uncertainty_ns + 50e-6 * 200 * MS


def test_a_clock_that_was_set_is_refused() -> None:
    before, after = samples(0, 1, 30), samples(40 * MS, 2, 30)
    with pytest.raises(RunFailedError, match="the clock of m jumped by"):
        estimate([*before, *after], "m")


def test_a_gain_is_taken_out_and_the_instant_it_was_known_at_stays() -> None:
    before = Offset(1_000 * MS, 10, 50_000 * MS, 20, 60)
    after = Offset(1_003 * MS, 10, 80_000 * MS, 20, 60)
    found = correction(before, after, epoch_ns=51_000 * MS)
    assert found.gain == pytest.approx(1e-4)
    assert found.right_ns == -1_000 * MS
    assert found.apply(-1_000 * MS) == -1_000 * MS
    # 29 s after the epoch by itself it has gained 3 ms since it was right.
    assert found.apply(29_000 * MS) == 29_000 * MS - 3 * MS
    assert found.apply(np.array([-1_000 * MS, 29_000 * MS])).tolist() == [-1_000 * MS, 28_997 * MS]


def test_order_is_kept() -> None:
    times = np.arange(0, 1_000_000, 7, dtype=np.int64)
    assert (np.diff(Correction(5e-5, -3).apply(times)) > 0).all()


def test_the_record_of_clocks_says_what_is_needed_to_put_times_right(tmp_path: Path) -> None:
    before, after = Offset(0, 900, 1_000, 20, 60), Offset(100, 1_500, 1_001_000, 20, 60)
    entry = described(before, after, 5_000)
    assert entry.uncertainty_ns == 1_500
    (tmp_path / "clock.json").write_text(json.dumps(encoded(ClockRecord(1, machines={"m": entry}))))
    clocks = read_clocks(tmp_path)
    assert clocks is not None
    assert clocks.machines["m"].correction == correction(before, after, 5_000)


def test_a_run_on_one_machine_has_no_such_record(tmp_path: Path) -> None:
    assert read_clocks(tmp_path) is None
    (tmp_path / "clock.json").write_text('{"format": 9}')
    with pytest.raises(ValueError, match="not a record of clocks"):
        read_clocks(tmp_path)
