# SPDX-License-Identifier: Apache-2.0
"""What a profile says of the virtual machine reaches the plan; what cannot be is refused or told once."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from howdah.build.cache import Cache
from howdah.engine.vm import needs
from howdah.engine.vm.engine import VmEngine, recorded_bytes
from howdah.errors import HowdahError, ProfileError
from howdah.linux import progress_port
from howdah.plan.compile import compile_plan
from howdah.plan.kernel import OwnKernel
from howdah.plan.plan import Plan, RealTime
from howdah.profile import load
from howdah.trait import traits
from tests.unit.profile_factory import make_plans

TEXT = """\
howdah: 1
name: small
path: {rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
duration: 2 s
engine: vm
"""


def plan_of(tmp_path: Path, *overrides: str) -> Plan:
    file = tmp_path / "small.yaml"
    file.write_text(TEXT)
    (cell,) = load(file, list(overrides)).cells()
    return compile_plan(cell)


def test_virtual_time_is_the_default_and_says_nothing_new(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    assert (plan.processor_shift, plan.real_time, plan.own_kernel) == (0, None, None)
    for name in ("real_time", "own_kernel"):
        assert name not in json.loads(plan.to_json())
    assert traits("vm").virtual_clock


def test_captures_have_room_until_the_end_of_the_run(tmp_path: Path) -> None:
    """In the machine's memory and on the disk that delivers them: 144 bytes of each of 1651 packets and of its ACK."""
    plain = recorded_bytes(plan_of(tmp_path))
    captured = recorded_bytes(plan_of(tmp_path, "collect.pcap=['s1:s1-eth0', 'r1:r1-eth0']"))
    assert captured - plain == 2 * 2 * 1651 * 144


def test_a_slower_processor_has_more_time_to_put_records_away(tmp_path: Path) -> None:
    """Between the flows and the second calibration; the path and its first measurement stay as they are."""
    plans = [plan_of(tmp_path, f"machine.shift={shift}") for shift in (0, 1, 2)]
    first, second, third = (plan.calibration.after_us for plan in plans)
    assert (second - first, third - first) == (1_000_000, 3_000_000)
    assert len({(plan.epoch_us, plan.duration_us, plan.calibration.before_us) for plan in plans}) == 1


def test_real_time_has_no_declared_speed_and_buckets_of_real_time(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "machine.time=real", "machine.accelerator=tcg")
    assert (plan.processor_shift, plan.real_time) == (None, RealTime("tcg"))
    assert Plan.from_json(plan.to_json()).real_time == RealTime("tcg")
    assert not traits("vm", real_time=True).virtual_clock
    exact = plan_of(tmp_path)
    bursts = [max(map(int, re.findall(r'"burst_bytes": (\d+)', one.to_json()))) for one in (exact, plan)]
    assert bursts[0] < bursts[1]
    assert [flow.traffic for flow in plan.flows] == ["kernel"], "the kernel is ours to load modules into"


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["machine.accelerator=kvm"], "KVM has no virtual time"),
        (["machine.time=real", "machine.shift=1"], "no declared speed"),
    ],
)
def test_contradictions_are_refused(tmp_path: Path, overrides: list[str], words: str) -> None:
    with pytest.raises(ProfileError, match=words):
        plan_of(tmp_path, *overrides)


def test_what_belongs_to_a_kernel_of_ones_own(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, f"machine.modules={tmp_path}/lib/modules/6.12.3", f"machine.headers={tmp_path}/h.deb")
    assert plan.own_kernel == OwnKernel(f"{tmp_path}/lib/modules/6.12.3", f"{tmp_path}/h.deb")
    assert Plan.from_json(plan.to_json()).own_kernel == plan.own_kernel


def test_other_engines_have_none_of_it(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "engine=uml", "machine.time=real")
    assert (plan.processor_shift, plan.real_time) == (None, None)


@pytest.mark.parametrize("phase", [*progress_port.PHASES, progress_port.END])
def test_what_the_progress_port_tells_is_understood(phase: str) -> None:
    assert progress_port.parse(progress_port.line(phase, 12_340_000_000).rstrip(b"\n")) == (phase, 12_300_000)


@pytest.mark.parametrize("noise", [b"", b"c", b"\xff12", b"z1", b"c-1", b"SeaBIOS"])
def test_noise_on_the_port_is_none(noise: bytes) -> None:
    assert progress_port.parse(noise) is None


NO_ROOM = HowdahError("the disk is full (60 MiB free)", hint="Free some space.")


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VmEngine:
    """One that builds nothing, and has no room for what reno's runs need."""

    def build(_self: VmEngine, plan: Plan, _progress: Any) -> Any:
        if plan.algorithm == "reno":
            raise NO_ROOM
        return SimpleNamespace(module_set=SimpleNamespace(unused=lambda *_: []))

    monkeypatch.setattr(VmEngine, "_build", build)
    monkeypatch.setattr(VmEngine, "_identity", lambda *_: {})
    monkeypatch.setattr(VmEngine, "lacks", lambda _self: [])
    monkeypatch.setattr(needs, "qemu_version", lambda: "10")
    return VmEngine(Cache(tmp_path / "cache"))


def test_what_all_runs_lack_is_said_once(tmp_path: Path, engine: VmEngine) -> None:
    told: list[str] = []
    plans = make_plans(tmp_path, overrides=["algorithm=reno", "repetitions=2"])
    with pytest.raises(HowdahError) as failed:
        engine.prepare(plans, lambda what, _done, _total: told.append(what))
    assert (failed.value.what, failed.value.hint) == (NO_ROOM.what, NO_ROOM.hint)
    assert told == []


def test_what_some_runs_lack_is_told(tmp_path: Path, engine: VmEngine) -> None:
    told: list[str] = []
    plans = make_plans(tmp_path, overrides=["algorithm=[cubic, reno]", "repetitions=2"])
    assert engine.prepare(plans, lambda what, _done, _total: told.append(what))["engine"] == "vm"
    assert told == [f"not built: {NO_ROOM.what}"]
