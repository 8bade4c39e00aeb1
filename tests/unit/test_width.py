# SPDX-License-Identifier: Apache-2.0
"""What commands print fits a terminal of 80 columns."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from howdah.atlas import command as atlas_command
from howdah.command import nightly as nightly_command
from howdah.command.commands import COMMANDS
from howdah.command.main import main
from howdah.layout import fitted, headed, write_stderr
from howdah.nightly.power import power_of
from howdah.nightly.sheet import Baseline
from tests.experiment_factory import Scenario, make_experiment
from tests.nightly_factory import sheet, usual, write_suite
from tests.unit.test_machine_set import GOOD as MACHINES
from tests.unit.test_nightly_significance import NAME
from tests.unit.test_work_reading import Bench, bench
from tests.wheel import ROOT

__all__ = ["bench"]  # the fixture


WIDTH = 80
SUITE = (
    "suite: test\nprimary: [exit_cwnd_packets]\ncells: [{profile: made.yaml, algorithms: [cubic], repetitions: 5}]\n"
)
# What they print is another program's (completion), a path or nothing, or they serve and print when they end.
NOT_HERE = {
    "completion",
    "schema",
    "serve",
    "exporter",
    "cluster",
    "attach",
    "build",
    "bisect",
    "bundle",
    "explain",
    "search",
    "sign",
}
# Lines to copy stay whole; a word or a path is never broken.
_TO_COPY = re.compile(r"^\s*(?:again: |next: |\d+  (?:ip|tc|sysctl|ethtool) )")


def _too_wide(text: str) -> list[str]:
    return [
        line for line in text.splitlines() if len(line) > WIDTH and " " in line.strip() and not _TO_COPY.match(line)
    ]


def test_every_command_fits_80_columns(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines and searches have stand-ins, as in test_json.py."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    real = make_experiment(
        bench.runs, Scenario(repetitions=2, duration_s=3.0, second_flow_s=1.0, invalid=(("reno", 1),))
    )
    fits: set[str] = set()

    def howdah(*words: str, codes: tuple[int, ...] = (0,), runs: bool = True) -> str:
        bench.capsys.readouterr()
        code = main([*words, *(["--runs", "runs"] if runs else [])])
        said = bench.capsys.readouterr()
        assert code in codes, (words, code, said)
        assert not _too_wide(said.out + said.err), words
        fits.add(words[0])
        return said.out

    howdah("run", "made.yaml", "--no-report")
    howdah("rerun", "made/cubic-r0")
    howdah("claims", "made")
    howdah("report", real.name, "--without-prometheus")
    howdah("compare", real.name, "--without-prometheus", "--output", "page.html")
    howdah("verify", "made", codes=(6,))
    assert "howdah-verify-" not in howdah("verify", real.name, codes=(6,)), "where it computed is nobody's concern"
    for kind in ("results", "differences"):
        howdah("table", real.name, "--of", kind)
    howdah("export", real.name, "--output", "exported")
    howdah("plan", "quick", runs=False)
    howdah("doctor", runs=False)
    for what in ("profiles", "algorithms", "kernels", "receivers", "metrics", "runs"):
        howdah("list", what)
    howdah("score", "made", codes=(0, 5, 6))
    howdah("score", real.name, codes=(0, 5, 6))
    howdah("figure", real.name, "--list")
    howdah("table", real.name, "--output", "results.tex", "--format", "latex")
    new = ("new", "mine", "--rate", "10 Mbit/s", "--rtt", "20 ms", "--output", "mine.yaml")
    howdah(*new, runs=False)
    howdah("pack", "made", "--output", "made.tar.zst")
    howdah("unpack", "made.tar.zst", "unpacked", runs=False)
    write_suite(tmp_path / "suite", SUITE)
    howdah("nightly", "suite/suite.yaml", "--list")
    howdah("nightly", "suite/suite.yaml", "--accept", "--baseline", "base")
    howdah("nightly", "suite/suite.yaml", "--baseline", "base", codes=(0, 6))
    howdah("nightly", "suite/suite.yaml", "--baseline", "base2", codes=(0, 7))
    Baseline(tmp_path / "drawn").accept(
        sheet(NAME, lambda slug, n: {**usual(slug, n), "retransmitted_packets@1": 100.0 + n})
    )
    write_suite(tmp_path / "drawn-suite", "suite: test\ncells:\n- {profile: made.yaml}\n")
    monkeypatch.setattr(nightly_command, "power_of", partial(power_of, trials=2))
    power = howdah("nightly", "drawn-suite/suite.yaml", "--power", "--baseline", "drawn")
    assert "another, scattered\n  nothing " in power
    howdah("atlas", "--list")
    monkeypatch.setattr(atlas_command, "views", lambda *_a, **_n: [])
    howdah("atlas", "--no-run", "--quick", "--only", "Astart_tab1", "--site", "site")
    assert "exit cwnd, packets  4 321  4 321           0\n" in howdah("validate", "made.yaml", codes=(0, 5, 6))
    with monkeypatch.context() as patch:
        patch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))
        howdah("clean", "--compress")
    (tmp_path / "machines.yaml").write_text(MACHINES)
    howdah("machines", "inventory", "machines.yaml", "--machine-sets", "sets", runs=False)
    assert set(COMMANDS) - fits == NOT_HERE


def test_a_wide_line_goes_on_below_and_words_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    path = "runs/a-path-that-is-longer-than-the-terminal"
    said = f"short\n  - one two three four five six seven\nagain: howdah run one two three four\n  {path}"
    assert fitted(said, whole="again: ").splitlines() == [
        "short",
        "  - one two three four five",
        "    six seven",
        "again: howdah run one two three four",
        f"  {path}",
    ]
    monkeypatch.delenv("COLUMNS")
    assert fitted(said) == said, "what goes to a file has the lines that it has"


def test_labels_of_a_wide_table_stand_above_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [["path", "flow", "what", "n"], ["10 Mbit/s, 40 ms", "1", "exit", "75"], ["", "", "loss", "7"]]
    rows.append(["", "2", "exit", "80"])
    monkeypatch.setenv("COLUMNS", "40")
    assert headed(rows, 2, right=[3])[1:3] == [
        "10 Mbit/s, 40 ms  1     exit  75",
        "                        loss   7",
    ]
    monkeypatch.setenv("COLUMNS", "30")
    assert headed(rows, 2, right=[3]) == [
        "path  flow",
        "  what   n",
        "10 Mbit/s, 40 ms  1",
        "  exit  75",
        "  loss   7",
        "10 Mbit/s, 40 ms  2",
        "  exit  80",
    ]


def test_what_goes_to_standard_error_fits_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    write_stderr(
        "howdah: passed over runs/one: it has no table of acknowledgements\n  howdah run one --a-long-option x y\n"
    )
    assert capsys.readouterr().err.splitlines() == [
        "howdah: passed over runs/one: it has no",
        "  table of acknowledgements",
        "  howdah run one --a-long-option x y",
    ]


def test_no_command_writes_to_standard_error_by_itself() -> None:
    in_guests = ("agent", "linux", "machines/receiver.py", "publish/exporter.py")  # they have no howdah.layout
    writing = [
        file.relative_to(ROOT / "howdah").as_posix()
        for file in sorted((ROOT / "howdah").rglob("*.py"))
        if "sys.stderr.write(" in file.read_text()
    ]
    assert [name for name in writing if not name.startswith(in_guests)] == ["layout.py"]
