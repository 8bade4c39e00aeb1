# SPDX-License-Identifier: Apache-2.0
"""Errors as data: whatever ends a command, ``--json`` among its words gives one object of the shape error/1."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from howdah.build.cache import Cache
from howdah.command import listing
from howdah.command import main as command
from howdah.command.main import main
from howdah.errors import HowdahError, explain, file_of_error
from howdah.place import PROFILES
from tests.json_shape import check_shape


def _error(text: str) -> dict[str, Any]:
    said = json.loads(text)
    check_shape(said)
    assert said["shape"] == "error/1"
    found: dict[str, Any] = said["error"]
    return found


@pytest.mark.parametrize(
    ("words", "where", "what", "hint"),
    [
        (["comparre", "quick", "--json"], "howdah", "there is no command 'comparre'", "did you mean compare?"),
        (
            ["list", "profiles", "--json", "--rnus=x"],
            "howdah list",
            "there is no option --rnus",
            "did you mean --runs?",
        ),
        (["run", "--json"], "howdah run", "profile", "'howdah run --help' lists its arguments"),
        (["list", "profilez", "--json"], "howdah list", "not 'profilez'", "did you mean profiles?"),
    ],
)
def test_wrong_usage_is_an_object(
    words: list[str], where: str, what: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    said = capsys.readouterr()
    error = _error(said.out)
    assert error["where"] == where
    assert what in error["what"]
    assert hint in error["hint"]
    assert what in said.err, "a person reads it as well"


def test_an_option_of_another_command_is_misspelt_for_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["plan", "quick", "--runs", "x"])
    said = capsys.readouterr().err
    assert "there is no option --runs" in said
    assert "did you mean" not in said


def test_wrong_usage_without_json_prints_no_object(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["comparre", "quick"])
    assert capsys.readouterr().out == ""


def test_a_python_without_a_module_of_its_own_is_named_as_what_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lacking(*_words: object) -> None:
        raise ModuleNotFoundError("No module named '_lzma'", name="_lzma")

    monkeypatch.setattr(command, "build_parser", lacking)
    assert main(["doctor"]) == 1
    said = capsys.readouterr().err
    assert "built without its module lzma" in said
    assert sys.executable in said
    assert "another Python" in said


def test_a_user_without_a_home_is_told_what_to_set() -> None:
    code = "import os, sys; os.getuid = lambda: 4242; from howdah.command.main import main; sys.exit(main(['doctor']))"
    environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "HOWDAH_CACHE")}
    environment.pop("XDG_CACHE_HOME", None)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "the user 4242 has no home directory" in done.stderr
    assert "HOWDAH_CACHE" in done.stderr
    assert "Traceback" not in done.stderr


def test_where_a_copy_finds_no_room_is_its_target() -> None:
    for number, where in ((errno.ENOSPC, "target"), (errno.EACCES, "source")):
        assert file_of_error(OSError(number, "", "source", None, "target")) == where
    assert file_of_error(OSError(errno.ENOSPC, "", "source")) == "source"
    assert file_of_error(OSError(errno.ENOSPC, "")) is None


@pytest.mark.parametrize(
    ("number", "hint"), [(errno.ENOSPC, "Make room there"), (errno.EROFS, "Choose a place"), (errno.EIO, None)]
)
def test_an_error_of_the_file_system_says_where_and_what_to_do(
    number: int, hint: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_options: object) -> int:
        raise OSError(number, "it fails", "some/file")

    monkeypatch.setattr(listing, "execute", fail)
    assert main(["list", "--json"]) == 1
    said = capsys.readouterr()
    error = _error(said.out)
    assert (error["what"], error["where"]) == ("it fails", "some/file")
    assert (error["hint"] or "").startswith(hint or "") and bool(error["hint"]) == bool(hint)
    assert said.err.startswith("howdah: some/file: it fails\n")


def test_an_interrupted_command_is_an_object(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(listing, "execute", interrupt)
    assert main(["list", "--json"]) == 130
    assert _error(capsys.readouterr().out)["what"] == "interrupted"


def test_many_files_that_cannot_be_copied_are_one_line(tmp_path: Path) -> None:
    """The disk fills up while the guest's programs are copied: a row for each of them is no message."""
    source = tmp_path / "source"
    source.mkdir()
    for name in "abc":
        (source / name).touch()

    def full(_source: str, target: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", target)

    with pytest.raises(shutil.Error) as failed:
        shutil.copytree(source, tmp_path / "target", copy_function=full)
    said = explain(failed.value)
    assert said.startswith(f"No space left on device: {tmp_path / 'target'}")
    assert said.endswith(" and 2 more")
    assert "\n" not in said and "Errno" not in said


def test_ctrl_c_while_a_command_loads_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_words: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "build_parser", interrupt)
    assert main(["run", "quick"]) == 130
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "howdah: interrupted; nothing was begun\n")


def test_a_linker_that_meets_a_full_disk_blames_the_disk(tmp_path: Path) -> None:
    def link(_directory: Path, _log: Path) -> None:
        raise HowdahError("does not compile: ld: final link failed: No space left on device", where="init.c")

    with pytest.raises(HowdahError, match="the disk is full") as failed:
        Cache(tmp_path).build("tool", "key", link)
    assert failed.value.where == str(tmp_path)
    assert "HOWDAH_CACHE" in str(failed.value.hint)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["completion"], "required: SHELL\n  SHELL is one of bash, zsh, fish\n"),
        (["clean", "quick"], "howdah clean: unexpected argument 'quick'\n  'howdah clean --help'"),
        (["list", "runs", "quick"], "howdah list: unexpected argument 'quick'\n"),
    ],
)
def test_an_argument_that_is_missing_or_too_many_is_named_with_its_command(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.EMFILE, "Too many open files", "howdah"),
        OverflowError("timestamp too large to convert to C _PyTime_t"),
        ImportError("libarrow.so.23: failed to map segment from shared object"),
        ImportError("No module named 'pyarrow'"),
    ],
)
def test_limits_met_while_a_command_loads_are_told(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_words: object = None) -> None:
        raise error

    monkeypatch.setattr(command, "build_parser", refuse)
    assert main(["list", "profiles", "--json"]) == 1
    said = capsys.readouterr()
    assert _error(said.out)["what"] in said.err
    assert "Traceback" not in said.err


def test_too_little_address_space_is_told_before_a_library_gives_up() -> None:
    started = [sys.executable, "-m", "howdah.command.main", "nightly", "--list"]
    for limit, told in ((300_000_000, True), (64_000_000_000, False)):
        done = subprocess.run(
            ["prlimit", f"--as={limit}", *started], capture_output=True, text=True, check=False, timeout=120
        )
        assert ("howdah: 286 MiB of address space may be too little" in done.stderr) is told, done.stderr
        assert "Traceback" not in done.stderr
        assert told or not done.returncode


_ULIMIT = "ulimit -f unlimited"


@pytest.mark.parametrize("words", [["new", "mine", "--output", "mine.yaml"], ["run", "mine.yaml", "--runs", "runs"]])
def test_a_limit_of_the_size_of_files_is_told_with_its_remedy(words: list[str], tmp_path: Path) -> None:
    """On a pipe: a file could not even hold the message."""
    shutil.copyfile(PROFILES / "quick.yaml", tmp_path / "mine.yaml" if words[0] == "run" else tmp_path / "other.yaml")
    started = [sys.executable, "-m", "howdah.command.main", *words]
    done = subprocess.run(
        ["prlimit", "--fsize=0", *started], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 1
    assert done.stderr.startswith("howdah: ") and _ULIMIT in " ".join(done.stderr.split()), done.stderr


def test_what_standard_error_cannot_take_goes_to_the_terminal(tmp_path: Path) -> None:
    """A log that may not grow swallows the message; the terminal of the command has it."""
    leader, follower = os.openpty()
    text = (
        "import fcntl, resource, sys, termios; fcntl.ioctl(3, termios.TIOCSCTTY, 0)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "from howdah.layout import write_stderr\nwrite_stderr('howdah: File too large\\n')\n"
    )
    with (tmp_path / "log").open("w") as log:
        os.set_inheritable(follower, True)
        if follower != 3:
            text = text.replace("ioctl(3", f"ioctl({follower}")
        subprocess.run(
            [sys.executable, "-c", text],
            stderr=log,
            pass_fds=[follower],
            start_new_session=True,
            check=False,
            timeout=60,
        )
    os.set_blocking(leader, False)
    assert b"howdah: File too large" in os.read(leader, 1000)
    os.close(leader)
    os.close(follower)
