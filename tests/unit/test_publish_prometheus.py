# SPDX-License-Identifier: Apache-2.0
"""Where the programs are looked for, and how they are fetched."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.errors import HowdahError
from howdah.publish.blocks import build_text
from howdah.publish.prometheus import PrometheusUnavailableError, failure_reason, fetch, find


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An environment in which nothing can be found by chance."""
    monkeypatch.delenv("HOWDAH_PROMETHEUS", raising=False)
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def test_nothing_found_is_none(nowhere: Path) -> None:
    assert nowhere.exists()
    assert find() is None


def test_the_order_is_variable_cache_path(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for directory in (nowhere / "bin", nowhere / "cache/prometheus/usr/bin", nowhere / "chosen"):
        program(directory / "prometheus")
        program(directory / "promtool")
        if directory.name == "chosen":
            monkeypatch.setenv("HOWDAH_PROMETHEUS", str(directory))
        found = find()
        assert found is not None
        assert found.server == directory / "prometheus"


def test_a_wrong_variable_is_an_error_and_not_passed_over(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(nowhere / "bin" / "prometheus")
    program(nowhere / "bin" / "promtool")
    monkeypatch.setenv("HOWDAH_PROMETHEUS", str(nowhere))
    with pytest.raises(PrometheusUnavailableError, match="HOWDAH_PROMETHEUS"):
        find()


def test_fetch_unpacks_the_package_into_the_cache(nowhere: Path) -> None:
    program(nowhere / "bin" / "apt-get", '#!/bin/sh\nwhile [ "$1" != download ]; do shift; done; : > "$2_1.deb"\n')
    script = 'd="$3/usr/bin"; /bin/mkdir -p "$d"\n'
    script += 'for p in prometheus promtool; do : > "$d/$p"; /bin/chmod 755 "$d/$p"; done\n'
    program(nowhere / "bin" / "dpkg-deb", f"#!/bin/sh\n{script}")
    found = fetch()
    assert found.promtool == nowhere / "cache/prometheus/usr/bin/promtool"
    assert sorted(entry.name for entry in (nowhere / "cache").iterdir()) == [".lock-prometheus", "prometheus"]


def test_a_failed_download_says_so_and_leaves_nothing(nowhere: Path) -> None:
    program(nowhere / "bin" / "apt-get", "#!/bin/sh\necho 'E: Unable to locate package' >&2\nexit 100\n")
    program(nowhere / "bin" / "dpkg-deb")
    with pytest.raises(PrometheusUnavailableError, match=r"Unable to locate package[\s\S]*apt-get update"):
        fetch()
    assert [entry.name for entry in (nowhere / "cache").iterdir()] == [".lock-prometheus"]


def test_without_apt_the_variable_is_suggested(nowhere: Path) -> None:
    assert nowhere.exists()
    with pytest.raises(PrometheusUnavailableError, match=r"apt-get[\s\S]*HOWDAH_PROMETHEUS"):
        fetch()


_CRASHED = """\
runtime: pipe failed with 24
fatal error: runtime: pipe failed

goroutine 1 [running, locked to thread]:
runtime.throw({0x1fd744d?, 0x7fff4ad72860?})
\t/usr/lib/go/src/runtime/panic.go:1023 +0x5c fp=0x7fff4ad72840
"""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (_CRASHED, "it crashed: pipe failed with 24 (a limit of this shell may be too low: ulimit -a)"),
        ("panic: no space\n\ngoroutine 7 [running]:\nmain.main()\n", "it crashed: no space (a limit"),
        ("error: no sample in line 3\n", "error: no sample in line 3"),
        ("", "it said nothing"),
    ],
)
def test_a_crash_of_a_program_in_go_is_one_line(said: str, told: str) -> None:
    found = failure_reason(said)
    assert found.startswith(told) and "\n" not in found


def test_a_promtool_that_crashes_is_told_in_one_line(tmp_path: Path) -> None:
    promtool = tmp_path / "promtool"
    promtool.write_text(f"#!/bin/sh\n/bin/cat >&2 <<'E'\n{_CRASHED}E\nexit 2\n")
    promtool.chmod(0o755)
    with pytest.raises(HowdahError) as caught:
        build_text(["# EOF\n"], promtool, tmp_path / "blocks", of=tmp_path)
    assert caught.value.what.startswith("promtool cannot import this: it crashed: pipe failed")
    assert "goroutine" not in str(caught.value)
