# SPDX-License-Identifier: Apache-2.0
"""Parameters of a run's modules: set, compared and recorded; a wrong one costs the runs that set it, and no other."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.errors import HowdahError, RunFailedError
from tests.guest.guest_run import howdah, ignore, plan_of, run
from tests.guest.signature import SIGNATURE, slow_start

pytestmark = pytest.mark.guest

_ALGORITHMS = """\
algorithm: [bent, wrong, refused, odd]
algorithms:
  bent: {like: limited, parameters: {max_ssthresh: 0xc8}}
  wrong: {like: limited, parameters: {max_sstresh: 200}}
  refused: {like: limited, parameters: {max_ssthresh: 1}}
  odd: {like: cubic, parameters: {hystrat: 0}}
"""


def test_a_parameter_reaches_the_module(engine: UmlEngine, tmp_path: Path) -> None:
    """Limited slow start bends at its max_ssthresh; the module reports that window."""
    found = slow_start(engine, tmp_path / "run", "limited", parameters={"max_ssthresh": "200"})
    agent = json.loads((found.directory.raw / "agent.json").read_text())
    assert agent["modules"]["ss_limited"]["parameters"]["max_ssthresh"] == "200"
    phase = next(row for row in found.events if row["event"] == "phase")
    assert phase["threshold"] == 200


def test_a_wrong_name_is_refused_before_the_kernel_ignores_it(engine: UmlEngine, tmp_path: Path) -> None:
    with pytest.raises(HowdahError, match="ss_limited has no parameter 'max_sstresh'") as caught:
        slow_start(engine, tmp_path / "run", "limited", parameters={"max_sstresh": "200"})
    assert "did you mean max_ssthresh?" in str(caught.value)
    assert not (tmp_path / "run" / "raw").exists()


def test_a_value_the_module_refuses_is_named_with_the_kernels_words(engine: UmlEngine, tmp_path: Path) -> None:
    plan = plan_of("algorithm=limited", profile=SIGNATURE)
    plan = dataclasses.replace(plan, module_parameters={"ss_limited": {"max_ssthresh": "many"}})
    engine.prepare([plan], ignore)
    with pytest.raises(RunFailedError) as caught:
        run(engine, plan, tmp_path / "run")
    for words in ("ss_limited", "max_ssthresh=many", "`many' invalid for parameter `max_ssthresh'"):
        assert words in str(caught.value)


def test_the_other_algorithms_of_a_profile_run(engine: UmlEngine, tmp_path: Path) -> None:
    assert engine.lacks() == []
    profile = tmp_path / "parameters.yaml"
    text = (
        SIGNATURE.read_text().replace("name: signature", "name: parameters").replace("duration: 5 s", "duration: 2 s")
    )
    profile.write_text(text.replace("algorithm: standard\n", _ALGORITHMS))
    first = profile.read_text().splitlines().index("algorithms:") + 1  # bent is on the line after it
    answer = howdah("run", profile, "--no-report", "--runs", tmp_path / "runs")
    assert answer.returncode == 4, answer.stdout + answer.stderr
    records = {
        path.parent.name.split("-")[0]: json.loads(path.read_text())
        for path in (tmp_path / "runs/parameters").glob("*-r0-*/run.json")
    }
    assert {name: record["status"] for name, record in records.items()} == {
        "bent": "finished",
        "wrong": "failed",
        "refused": "failed",
        "odd": "failed",
    }
    assert records["bent"]["modules"]["ss_limited"]["parameters"]["max_ssthresh"] == "200"
    assert records["bent"]["parameter_places"] == {"ss_limited.max_ssthresh": f"{profile.name}:{first + 1}"}
    assert (
        f"{profile.name}:{first + 2}: the module ss_limited has no parameter 'max_sstresh'" in records["wrong"]["error"]
    )
    assert "did you mean max_ssthresh?" in records["wrong"]["error"]
    assert "the parameters max_ssthresh=1" in records["refused"]["error"]
    assert "the kernel's log: ss_limited" in records["refused"]["error"]
    console = records["refused"]["error"].partition(": ")[0]
    assert Path(console).is_file(), "the console is named as it is called in the end"
    assert f"{profile.name}:{first + 4}: the module tcp_cubic has no parameter 'hystrat'" in records["odd"]["error"]
