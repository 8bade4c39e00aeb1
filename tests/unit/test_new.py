# SPDX-License-Identifier: Apache-2.0
"""``howdah new``: the profile is valid, commented, never written over, and nonsense is refused before anything is."""

from __future__ import annotations

import io
import json
import re
import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from howdah.command.main import main
from howdah.profile import load
from howdah.profile.schema import SCHEMA, json_schema


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _schema_of(text: str) -> Path:
    """The file that an editor finds: a path or an address, up to the first space."""
    found = re.match(r"# yaml-language-server: \$schema=(\S+)", text)
    assert found is not None
    return Path(unquote(urlsplit(found[1]).path) if found[1].startswith("file:") else found[1])


@pytest.mark.parametrize(
    ("options", "runs"),
    [
        ([], 6),
        (["--rate", "1 Gbit/s, 2 Gbit/s", "--rtt", "10ms", "--algorithm", "cubic", "--repetitions", "2"], 4),
        (["--flows", "3", "--duration", "10s", "--buffer", "0.5 bdp,500 kB"], 12),
        (["--flows", "40", "--duration", "50 ms", "--rate", "20 Mbit/s", "--rtt", "5 ms"], 6),
        (["--like", "geo"], 6),
        (["--like", "paths/leo", "--buffer", "1 bdp, 2 bdp", "--algorithm", "search, bbr"], 12),
        (["--like", "hystart-fig1", "--repetitions", "1"], 2),
        (["--path", "starlink", "--reverse-rate", "2 Mbit/s", "--loss", "0 %, 1 %", "--sizes", "15 kB, 1 MB"], 24),
        (["--flows", "2", "--outage", "100 ms at 3 s", "--sizes", "1 MB", "--background", "2"], 6),
    ],
)
def test_what_is_written_is_valid_here_and_in_an_editor(
    options: list[str], runs: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", "mine", *options]) == 0
    said = capsys.readouterr().out
    assert f"wrote mine.yaml: {runs} runs" in said
    assert "next: howdah run mine.yaml\n" in said
    assert len(load("mine.yaml").cells()) == runs
    text = Path("mine.yaml").read_text()
    found = YAML(typ="safe", pure=True).load(text)
    assert list(Draft202012Validator(json_schema()).iter_errors(found)) == []
    assert _schema_of(text) == SCHEMA
    assert max(map(len, text.splitlines()[1:])) <= 120
    # The claim that it proposes is one of its own runs.
    Path("claimed.yaml").write_text(re.sub(r"^# (?=claims:|  )", "", text, flags=re.MULTILINE))
    assert [claim.id for claim in load("claimed.yaml").claims] == ["leaves-early"]


def test_sizes_that_are_drawn_become_groups(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A published distribution for what is measured, a file for what is beside it; the claim is of the group."""
    (work / "my objects.csv").write_text("size,cdf\n1 kB,0.5\n1 MB,1\n")
    assert main(["new", "mine", "--sizes", "web-search", "--flows", "30", "--background", "my objects.csv"]) == 0
    assert "wrote mine.yaml: 6 runs" in capsys.readouterr().out
    Path("claimed.yaml").write_text(re.sub(r"^# (?=claims:|  )", "", Path("mine.yaml").read_text(), flags=re.MULTILINE))
    profile = load("claimed.yaml")
    assert [claim.id for claim in profile.claims] == ["fast-enough"]
    assert profile.description == "Transfers of many sizes of cubic, reno over 100 Mbit/s and 100 ms"
    transfers, others = profile.points[0].scenario.groups
    assert (transfers.name, transfers.connections, transfers.arrivals) == ("transfers", 30, "poisson")
    assert transfers.sizes is not None
    assert transfers.sizes.published == "web-search"
    assert (others.role, others.algorithm, others.connections) == ("background", "cubic", 200)
    assert others.sizes is not None
    assert others.sizes.file == "my objects.csv"
    assert not profile.points[0].scenario.flows


def test_what_is_beside_one_flow_may_be_drawn(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "mine", "--background", "data-mining"]) == 0
    assert "wrote mine.yaml: 6 runs" in capsys.readouterr().out
    scenario = load(work / "mine.yaml").points[0].scenario
    assert (len(scenario.flows), [group.name for group in scenario.groups]) == (1, ["others"])


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--sizes", "websearch"], "did you mean web-search?"),
        (["--sizes", "none.csv"], "cannot be read"),
        (["--background", "facebok-hadoop"], "did you mean facebook-hadoop?"),
        (["--background", "-1"], "or a .csv of sizes, or one of web-search, data-mining, facebook-hadoop"),
    ],
)
def test_sizes_that_nobody_knows_are_refused(options: list[str], what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "mine", "=".join(options)]) != 0
    assert what in capsys.readouterr().err


def test_a_file_of_sizes_is_refused_with_its_line(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "odd.csv").write_text("size,weight\n2 kilobytes,1\n", encoding="utf-8")
    assert main(["new", "mine", "--sizes", "odd.csv"]) != 0
    assert "--sizes odd.csv:2: expected a size" in capsys.readouterr().err


def test_a_draft_that_cannot_run_is_not_written_and_no_line_of_it_named(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside what is compared, the background has the other of two algorithms that cannot share a kernel."""
    algorithms = "--algorithm=cubic-no-hystart,cubic"
    assert main(["new", "mine", "--sizes", "web-search", "--background", "2", algorithms]) == 2
    said = capsys.readouterr().err
    assert "mine.yaml is not written: " in said and "cannot share a run" in said
    assert "mine.yaml:" not in said
    assert not list(work.iterdir())


def test_nothing_is_written_over(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "mine"]) == 0
    before = Path("mine.yaml").read_bytes()
    assert main(["new", "mine", "--rate", "1 Gbit/s"]) == 1
    assert "mine.yaml: this file exists already" in capsys.readouterr().err
    assert Path("mine.yaml").read_bytes() == before
    Path("dangling.yaml").symlink_to(work / "elsewhere.yaml")
    assert main(["new", "dangling"]) == 1
    assert not (work / "elsewhere.yaml").exists()
    assert sorted(file.name for file in work.iterdir()) == ["dangling.yaml", "mine.yaml"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["Mine!"], "cannot name an experiment"),
        ([], "the experiment needs a name"),
        (["x", "--rtt", "100"], "--rtt 100: expected a duration"),
        (["x", "--rate", "20 MB/s"], "--rate 20 MB/s: expected a rate"),
        (["x", "--buffer", "1 bpd"], "expected a buffer"),
        (["x", "--algorithm", "cubicc"], "did you mean cubic?"),
        (["x", "--algorithm", "cubic,cubic"], "cubic is given twice"),
        (["x", "--repetitions", "0"], "from 1 to 1000"),
        (["x", "--flows", "many"], "from 1 to 1000"),
        (["x", "--duration", "0 s"], "longer than 0"),
        (["x", "--duration", "two days"], "expected a duration"),
        (["x", "--like", "paths/goe"], "did you mean paths/geo?"),
        (["x", "--like", "geo", "--rate", "1 Gbit/s"], "--rate and --like are both given"),
        (["x", "--rate", "1 Gbit/s, 1 Gbit/s"], "lists 1 Gbit/s twice"),
        (["x", "--output", "no/such/place.yaml"], "cannot be written"),
    ],
)
def test_nonsense_is_refused_and_nothing_is_left(
    options: list[str], said: str, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", *options]) in (1, 2)
    assert said in capsys.readouterr().err
    assert list(work.iterdir()) == []


def test_programs_get_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "mine", "--output", "other.yaml", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["profile"], answer["name"], answer["runs"]) == ("other.yaml", "mine", 6)
    assert answer["core_s"] > 0
    assert stat.S_IMODE(Path("other.yaml").stat().st_mode) & 0o444


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _on_a_terminal(answers: str, monkeypatch: pytest.MonkeyPatch) -> _Terminal:
    shown = _Terminal()
    monkeypatch.setattr("sys.stdin", _Terminal(answers))
    monkeypatch.setattr("sys.stdout", shown)
    return shown


def test_on_a_terminal_it_asks_and_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = _on_a_terminal("asked\nfast\n50 Mbit/s\n80 ms\n\nbbr\n\n\n1\n", monkeypatch)
    assert main(["new"]) == 0
    assert "expected a rate" in shown.getvalue()
    assert "algorithms to compare [cubic, reno]: " in shown.getvalue()
    (cell,) = load("asked.yaml").cells()
    path = cell.scenario.path
    assert (path.rate, path.rtt, cell.scenario.algorithm) == (50_000_000, 80_000, "bbr")


@pytest.mark.parametrize("option", [["--like", "geo"], ["--rate", "50Mbit/s"], ["--repetitions", "2"]])
def test_with_an_option_nothing_is_asked(option: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    shown = _on_a_terminal("", monkeypatch)
    assert main(["new", "mine", *option]) == 0
    assert "]: " not in shown.getvalue()


def test_a_wrong_option_is_refused_without_a_question(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = _on_a_terminal("", monkeypatch)
    assert main(["new", "mine", "--algorithm", "cubicc"]) != 0
    assert shown.getvalue() == ""
    assert "cubicc" in capsys.readouterr().err


def test_the_end_of_the_answers_writes_nothing(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _on_a_terminal("mine\n1 Gbit/s\n", monkeypatch)
    assert main(["new"]) == 1
    assert "no profile was written" in capsys.readouterr().err
    assert list(work.iterdir()) == []


@pytest.mark.parametrize("directory", ["plain", "with a space", "100 %", "c#"])
def test_an_editor_finds_the_schema_wherever_howdah_is_installed(
    directory: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("howdah.profile.draft.SCHEMA", work / directory / "profile.schema.json")
    assert main(["new", "mine"]) == 0
    assert _schema_of(Path("mine.yaml").read_text()) == work / directory / "profile.schema.json"
