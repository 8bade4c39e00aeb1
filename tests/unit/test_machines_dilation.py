# SPDX-License-Identifier: Apache-2.0
"""A process whose clock is dilated: what it reads, and how long it waits. The interpreter stands for QEMU."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from howdah.build.cache import Cache
from howdah.engine.machines.clock import Ours
from howdah.errors import HowdahError, ProfileError
from howdah.machines.machine_set import load_machine_set
from howdah.machines.qemu import chosen_dilation, dilating

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
    assert Ours(4).now_ns() == 250_000_001
    assert Ours(4).real_s(10.0) == 40.0
    assert Ours().now_ns() == 1_000_000_007
