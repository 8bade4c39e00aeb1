# SPDX-License-Identifier: Apache-2.0
"""What ends a start-up is known by what socket, window and pacing do, under whatever name; else nothing is said.

The kernel's own tcp_bbr.c, taken from its source for the time of the test, is built again under other names: as it is,
without its answer about itself, and without the ssthresh that it sets in Drain. Its start-up is the same each time, and
the run of the kernel's own ``bbr`` on the same path says where it ends.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from howdah.build.cache import Cache, content_key
from howdah.build.kernel_source import find_source
from howdah.default import DEFAULT_KERNEL
from howdah.engine.uml.engine import UmlEngine
from howdah.plan.plan import Plan
from tests.guest.guest_run import ROOT, failures, plan_of
from tests.guest.shared_run import shared_run
from tests.guest.test_own_module import MODULE

pytestmark = pytest.mark.guest

PATH = "path: {rate: 20 Mbit/s, rtt: 60 ms, buffer: 3 bdp}\nduration: 3 s\n"
BDP_PACKETS = 20e6 * 0.060 / 8 / 1514
TELLS = ".get_info\t= bbr_get_info,"
SETS = "tcp_sk(sk)->snd_ssthresh =\n\t\t\t\tbbr_inflight(sk, bbr_max_bw(sk), BBR_UNIT);"
EXIT = ("exit_time_s", "exit_cwnd_packets", "exit_cause")


@pytest.fixture(scope="module")
def source(engine: UmlEngine) -> str:
    """tcp_bbr.c of the kernel that runs. It is kept: to look for it in the archive takes as long as all these runs."""
    assert engine.lacks() == []
    found = find_source(DEFAULT_KERNEL)
    if found.tree is not None:
        return (found.tree / "net/ipv4/tcp_bbr.c").read_text()

    def take_out(entry: Path, _log: Path) -> None:
        command = ["tar", "-xJOf", str(found.archive), "--wildcards", "--occurrence=1", "*/net/ipv4/tcp_bbr.c"]
        said = subprocess.run(command, capture_output=True, check=True).stdout
        (entry / "tcp_bbr.c").write_bytes(said)

    return (Cache().build("kernel-file", content_key(found.key, "tcp_bbr.c"), take_out) / "tcp_bbr.c").read_text()


def _plan(place: Path, text: str, **files: str) -> Plan:
    place.mkdir(exist_ok=True)
    for name, content in files.items():
        (place / f"{name}.c").write_text(content)
    listed = f"modules: [{', '.join(f'{name}.c' for name in files)}]\n" if files else ""
    (place / "own.yaml").write_text(f"howdah: 1\nname: own\n{PATH}{listed}{text}")
    return plan_of(profile=place / "own.yaml")


def _measured(engine: UmlEngine, plan: Plan) -> dict[str, Any]:
    directory, verdict = shared_run(engine, plan)
    assert failures(verdict) == {}
    rows = json.loads(directory.metrics.read_text())["rows"]
    return {row["metric"]: row for row in rows if row["flow"] == 1}


def _values(rows: dict[str, Any], *names: str) -> list[Any]:
    return [rows[name]["value"] for name in names]


@pytest.fixture(scope="module")
def original(engine: UmlEngine, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Where the kernel's own leaves."""
    place = tmp_path_factory.mktemp("bbr")
    rows = _measured(engine, _plan(place, "algorithm: bbr\n"))
    assert rows["startup_gain"]["value"] == pytest.approx(739 / 256), "bbr_high_gain of tcp_bbr.c"
    found = _values(rows, *EXIT)
    assert found[2] == "bbr-drain"
    # bbr_check_drain() comes after three rounds at the capacity, with a window of 2/ln(2) BDP and what
    # bbr_quantization_budget() and bbr_ack_aggregation_cwnd() add.
    assert 1 <= found[1] / (2.885 * BDP_PACKETS) <= 1.1
    return found


@pytest.mark.parametrize(
    ("name", "like", "without"),
    [
        ("mybbr", "", ()),
        ("bbrx", "", ()),
        ("silent", "", (TELLS,)),
        ("silent", ", like: bbr", (TELLS,)),
    ],
    ids=["another name", "three letters", "by its pacing", "by its profile"],
)
def test_bbr_is_bbr_under_any_name(
    engine: UmlEngine, source: str, original: list[Any], tmp_path: Path, name: str, like: str, without: tuple[str, ...]
) -> None:
    text = source.replace('.name\t\t= "bbr"', f'.name\t\t= "{name}"')
    for words in without:
        assert words in text
        text = text.replace(words, "")
    entry = f"algorithms: {{x: {{kernel: {name}, module: tcp_{name}{like}}}}}\nalgorithm: x\n"
    rows = _measured(engine, _plan(tmp_path, entry, **{f"tcp_{name}": text}))
    assert _values(rows, *EXIT) == original


@pytest.mark.parametrize(("without", "doubt_s"), [((SETS,), 0.0), ((SETS, TELLS), 0.1)], ids=["told", "by its pacing"])
def test_a_bbr_that_never_sets_ssthresh_leaves_when_its_pacing_falls(
    engine: UmlEngine, source: str, original: list[Any], tmp_path: Path, without: tuple[str, ...], doubt_s: float
) -> None:
    """Without its edge the exit lies between two readings of tcp_info, 100 ms apart."""
    text = source.replace('.name\t\t= "bbr"', '.name\t\t= "never"')
    for words in without:
        assert words in text
        text = text.replace(words, "")
    rows = _measured(engine, _plan(tmp_path, "algorithm: never\n", tcp_never=text))
    assert rows["startup_left"]["value"] == 1
    assert rows["exit_cause"]["value"] == "bbr-drain"
    assert 0 <= rows["exit_time_s"]["value"] - original[0] <= 0.1 + doubt_s


def test_bbr_leaves_its_start_up_through_probe_rtt(engine: UmlEngine, tmp_path: Path) -> None:
    """Random losses slow its growth, so that the start-up outlasts the ten seconds after which BBR measures its RTT.

    The window is then cut to four packets, and Drain, where ssthresh would be set, is never entered.
    """
    text = "algorithm: bbr\nhost: {tcp_rmem: 4096 33554432 268435456}\n"
    plan = _plan(tmp_path, text)
    profile = tmp_path / "own.yaml"
    changed = profile.read_text().replace(PATH, "path: {rate: 12 Mbit/s, rtt: 600 ms, buffer: 1 bdp, loss: 1 %}\n")
    profile.write_text(f"{changed}duration: 16 s\n")
    plan = plan_of(profile=profile)
    rows = _measured(engine, plan)
    assert rows["startup_left"]["value"] == 1
    assert rows["exit_cause"]["value"] in ("probe-rtt", "bbr-drain")
    # BBR_MIN_RTT_WIN_SEC after the handshake gave it its first RTT.
    assert 10 < rows["exit_time_s"]["value"] < 12
    assert rows["exit_cwnd_bdp"]["value"] == pytest.approx(2.885, rel=0.05)
    assert rows["least_cwnd_packets"]["value"] == 4


def test_of_a_fixed_window_no_exit_is_said(engine: UmlEngine, tmp_path: Path) -> None:
    rows = _measured(engine, _plan(tmp_path, "algorithm: still\n", tcp_still=MODULE.replace("NAME", "still")))
    assert _values(rows, "startup_left", *EXIT) == [None] * 4
    assert rows["exit_time_s"]["why"].startswith("end of start-up unknown: ssthresh stayed infinite")
    assert "startup_gain" not in rows
    assert rows["growth_end_bdp"]["value"] == pytest.approx(10 / BDP_PACKETS, rel=0.01)


def test_of_a_control_that_keeps_to_a_rate_no_exit_is_said(engine: UmlEngine, tmp_path: Path) -> None:
    """8 Mbit/s of data: what a round trip carries of it is in flight, and its first ten packets leave unpaced."""
    text = (ROOT / "tests/guest/tcp_rated.c").read_text()
    rows = _measured(engine, _plan(tmp_path, "algorithm: rated\n", tcp_rated=text))
    assert _values(rows, "startup_left", *EXIT) == [None] * 4
    assert "slow start" not in rows["exit_time_s"]["why"]
    assert "startup_gain" not in rows
    assert 0 <= rows["growth_end_bdp"]["value"] * BDP_PACKETS - 8e6 * 0.060 / 8 / 1448 <= 10


@pytest.mark.parametrize("algorithm", ["cubic", "reno", "vegas", "westwood"])
def test_the_kernels_others_leave_by_their_threshold(engine: UmlEngine, tmp_path: Path, algorithm: str) -> None:
    """tcp_info has the same threshold as the trace: finite after the exit and infinite before it."""
    rows = _measured(engine, _plan(tmp_path, f"algorithm: {algorithm}\n"))
    assert rows["startup_left"]["value"] == 1
    assert "startup_gain" not in rows
    assert rows["exit_cause"]["value"] in ("ack-train", "delay", "loss", "queue-estimate")
    assert (rows["exit_cause"]["value"] == "queue-estimate") == (algorithm == "vegas")


def test_a_slow_start_that_its_receive_window_holds_is_still_one(engine: UmlEngine, tmp_path: Path) -> None:
    text = "algorithm: cubic\nhost: {tcp_rmem: 4096 65536 65536}\n"
    directory, _ = shared_run(engine, _plan(tmp_path, text))
    rows = {row["metric"]: row for row in json.loads(directory.metrics.read_text())["rows"] if row["flow"] == 1}
    assert rows["startup_left"]["value"] == 0
    assert "did not leave slow start" in rows["exit_time_s"]["why"]
    assert "receive window" in rows["exit_time_s"]["why"]
