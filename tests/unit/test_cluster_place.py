# SPDX-License-Identifier: Apache-2.0
"""Where runs are made, as options say it; certificates; commands that left a cluster at work."""

from __future__ import annotations

import builtins
import json
import os
import signal
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from howdah.cluster.opened import attachable, attached, executor_at
from howdah.cluster.place import DetachedError, Place, read_place
from howdah.command.main import main
from howdah.errors import HowdahError


@pytest.fixture(autouse=True)
def _nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOWDAH_SCHEDULER", "HOWDAH_TLS"):
        monkeypatch.delenv(name, raising=False)


def test_places_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_place(None, None) == Place()
    assert read_place("tls://far:8786", None, Path("x")) == Place(scheduler="tls://far:8786", tls=Path("x"))
    assert read_place(None, "local") == Place(kind="local")
    assert read_place(None, "ssh:hosts.txt") == Place(kind="ssh", argument="hosts.txt")
    monkeypatch.setenv("HOWDAH_SCHEDULER", "tcp://far:8786")
    assert read_place(None, None).scheduler == "tcp://far:8786"
    assert read_place(None, "local:2") == Place(kind="local", argument="2"), "an option goes before the environment"


@pytest.mark.parametrize("cluster", ["cloud", "local:0", "local:x", "ssh", "slurm:"])
def test_what_is_no_cluster_is_told(cluster: str) -> None:
    with pytest.raises(HowdahError, match="no such kind of cluster"):
        read_place(None, cluster)


@pytest.mark.parametrize("address", ["far:8786", "tcp://far", "http://far:8786"])
def test_what_is_no_scheduler_is_told(address: str) -> None:
    with pytest.raises(HowdahError, match="not the address of a scheduler"):
        read_place(address, None)


def test_both_at_once_are_refused() -> None:
    with pytest.raises(HowdahError, match="give only one of them"):
        read_place("tcp://far:8786", "local")


def test_without_dask_the_command_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.__import__

    def without(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "howdah.cluster.connect":
            raise ModuleNotFoundError("No module named 'distributed'", name="distributed")
        return plain(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with (
        pytest.raises(HowdahError, match="Dask, which is not installed") as raised,
        executor_at(Place(kind="local"), print),
    ):
        pass
    assert "howdah[cluster]" in str(raised.value)
    with executor_at(Place(), print) as executor:
        assert executor is None, "this machine needs no Dask"


def test_part_is_gone_and_says_what_takes_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["atlas", "--part", "1/4"])
    assert "--scheduler" in capsys.readouterr().err


def test_certificates_are_made_once_and_serve_both_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    connect = pytest.importorskip("howdah.cluster.connect", reason="Dask is not installed")
    place = tmp_path / "place"
    assert main(["cluster", "certificates", str(place)]) == 0
    assert stat.S_IMODE((place / "cluster.key").stat().st_mode) == 0o600
    assert sorted(file.name for file in place.iterdir()) == ["ca.pem", "cluster.key", "cluster.pem"]
    security = connect.security_of(place)
    assert security.require_encryption
    for role in ("client", "scheduler", "worker"):
        assert security.get_connection_args(role)["ssl_context"] is not None
    before = (place / "cluster.key").read_bytes()
    assert main(["cluster", "certificates", str(place)]) == 1
    assert (place / "cluster.key").read_bytes() == before
    assert "there are certificates already" in capsys.readouterr().err


def test_certificates_that_are_not_there_are_told(tmp_path: Path) -> None:
    connect = pytest.importorskip("howdah.cluster.connect", reason="Dask is not installed")
    with pytest.raises(HowdahError, match=r"ca\.pem is missing"):
        connect.security_of(tmp_path)


def test_hosts_are_read(tmp_path: Path) -> None:
    remote = pytest.importorskip("howdah.cluster.connect", reason="Dask is not installed")
    file = tmp_path / "hosts.txt"
    file.write_text("# a group of machines\none\n two # with a comment\n\n")
    assert remote.read_hosts(file) == ["one", "two"]
    file.write_text("# nobody\n")
    with pytest.raises(HowdahError, match="empty"):
        remote.read_hosts(file)


def test_a_command_whose_terminal_closes_can_be_attached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["howdah", "run", "quick"])
    with pytest.raises(DetachedError), attachable(tmp_path, "tcp://far:8786"):
        os.kill(os.getpid(), signal.SIGHUP)
    assert attached(tmp_path) == (["run", "quick"], Path.cwd())
    with attachable(tmp_path, "tcp://far:8786"):
        pass
    with pytest.raises(HowdahError, match="no command that used a cluster was interrupted"):
        attached(tmp_path)


def test_one_that_is_at_work_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: 1)
        with pytest.raises(DetachedError), attachable(tmp_path, "tcp://far:8786"):
            raise DetachedError
    with pytest.raises(HowdahError, match="still running"):
        attached(tmp_path)


@pytest.mark.parametrize("change", ["arguments", "directory", "process", "no code", "another user's", "a list"])
def test_a_command_of_somebody_else_is_refused(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runs directory that came from elsewhere names any command, which would be run as one's own."""
    monkeypatch.setattr(sys, "argv", ["howdah", "run", "quick"])
    with pytest.raises(DetachedError), attachable(tmp_path, "tcp://far:8786"):
        raise DetachedError
    file = tmp_path / ".attach.json"
    kept = json.loads(file.read_text())
    others: dict[str, object] = {"arguments": ["run", "evil.yaml"], "directory": "/tmp", "process": 2**22 + 1}
    if change == "no code":
        del kept["code"]
    elif change == "another user's":
        monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "another"))
    elif change in others:
        kept[change] = others[change]
    file.write_text(json.dumps([kept] if change == "a list" else kept))
    given: list[object] = []
    monkeypatch.setattr(os, "execv", lambda *words: given.append(words))
    with pytest.raises(HowdahError, match="not stored by you") as caught:
        attached(tmp_path)
    assert caught.value.where == str(file)
    assert "Run the command again yourself" in str(caught.value.hint)
    assert main(["attach", "--runs", str(tmp_path)]) != 0
    assert not given
