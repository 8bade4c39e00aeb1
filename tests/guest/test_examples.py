# SPDX-License-Identifier: Apache-2.0
"""The examples in the documentation, run as written."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.guest.guest_run import howdah, ignore, plan_of, require_engine, run
from tests.guest.signature import SIGNATURE, read

pytestmark = pytest.mark.guest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "bring-your-own.md"


def _commands() -> list[list[str]]:
    lines = re.findall(r"^\$ (howdah .*)$", PAGE.read_text(), re.MULTILINE)
    return [shlex.split(line, comments=True)[1:] for line in lines if "--kernel" not in line]


def test_the_page_shows_the_shipped_profile() -> None:
    shown = re.search(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert shown is not None
    assert (ROOT / "docs/examples/mine.yaml").read_text().endswith(shown.group(1))


def test_a_module_of_ones_own_against_cubic(tmp_path: Path) -> None:
    commands = _commands()
    assert [command[0] for command in commands] == ["plan", "run", "compare"]
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    outputs = []
    for command in commands:
        answer = howdah(*command, cwd=tmp_path)
        assert answer.returncode == 0, answer.stderr
        outputs.append(answer.stdout)
    assert "mine" in outputs[2]
    assert "cubic" in outputs[2]
    records = [json.loads(file.read_text()) for file in tmp_path.glob("runs/*/*/run.json")]
    assert records
    for record in records:
        stages = {stage["stage"]: stage["core_s"] for stage in record["stages"]}
        assert stages["engine"] > stages["judge"] > 0, "the guest's processor time is the engine's"


def test_the_plug_in_of_the_modules_readme_does_what_it_says(tmp_path: Path) -> None:
    """Half of standard slow start: 1.5 times a round, until the RTT of a round has risen by a quarter."""
    code = re.search(r"```c\n(.*?)```", (ROOT / "modules/README.md").read_text(), re.DOTALL)
    assert code is not None
    (tmp_path / "ss_half.c").write_text(code.group(1))
    profile = tmp_path / "half.yaml"
    profile.write_text(SIGNATURE.read_text().replace("algorithm: standard", "modules: [./ss_half.c]\nalgorithm: half"))
    engine = require_engine()
    plan = plan_of("path.buffer=4 bdp", profile=profile)  # a round sees the queue of the one before it
    engine.prepare([plan], ignore)
    found = read(*run(engine, plan, tmp_path / "run"))
    windows = found.round_windows()
    np.testing.assert_allclose(found.growth()[(windows[:-1] > 20) & (windows[:-1] < 561)], 1.5, rtol=0.05)
    assert [row["reason"] for row in found.exits] == ["delay"]
    told = found.exits[0]
    assert told["quantity"] > told["threshold"] == told["min_rtt_us"] + told["min_rtt_us"] // 4


def test_a_module_that_does_not_compile_is_named_with_its_line(tmp_path: Path) -> None:
    source = (ROOT / "docs/examples/tcp_mine.c").read_text().replace("credit / 2", "kredit / 2")
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "kredit" in text)
    (tmp_path / "tcp_mine.c").write_text(source)
    (tmp_path / "mine.yaml").write_text((ROOT / "docs/examples/mine.yaml").read_text())
    answer = howdah("run", "mine.yaml", cwd=tmp_path)
    assert answer.returncode == 4
    for said in (answer.stdout, answer.stderr):  # with the results, and before the other runs start
        assert f"tcp_mine.c:{line}" in said.replace("\n", "")  # long lines are folded
        assert "kredit" in said
    files = tmp_path.glob("runs/mine/*/verdict.json")
    verdicts = {file.parent.name.split("-")[0]: json.loads(file.read_text())["verdict"] for file in files}
    assert verdicts == {"cubic": "pass", "mine": "invalid"}
