# SPDX-License-Identifier: Apache-2.0
"""What a stranger's build is kept from, and that an honest one does not notice."""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.build.cache import Cache
from howdah.build.module_build import oversized
from howdah.build.stack import StackUnsupportedError, build_stack
from howdah.build.supervise import (
    CommandFailedError,
    Sandbox,
    building_for_a_stranger,
    run_logged,
    sandbox_key,
    sandbox_of,
)
from howdah.build.tools import Tools, build_tools
from howdah.errors import HowdahError
from howdah.place import STACKS
from howdah.profile.stack import Stack, read_stack

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    if ctypes.CDLL(None).syscall(444, None, 0, 1) < 1:
        pytest.skip("this kernel has no Landlock")
    return build_tools(Cache(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "home"
    directory.mkdir()
    (directory / "secret.txt").write_text("the secret\n")
    monkeypatch.setenv("HOME", str(directory))
    monkeypatch.setenv("TOKEN", "the secret")
    return directory


@pytest.fixture
def of_a_stranger() -> Iterator[None]:
    with building_for_a_stranger(is_stranger=True):
        yield


def _sandbox(tools: Tools, tmp_path: Path, *read: Path) -> Sandbox:
    (tmp_path / "build").mkdir()
    return Sandbox(tools.launch, tmp_path / "entry.home", (tmp_path / "build",), read)


def _run(sandbox: Sandbox, text: str) -> str:
    lines: list[str] = []
    log = sandbox.home.with_name("log")
    run_logged(["sh", "-c", text], log, sandbox=sandbox, on_line=lines.append)
    return "\n".join(lines)


_TRIES = {
    "write": "echo x >{home}/x",
    "change": "echo x >>{home}/secret.txt",
    "read": "cat {home}/secret.txt",
    "list": "ls {home}",
    "remove": "rm {home}/secret.txt",
    "link": "ln {home}/secret.txt stolen",
    "given": "echo x >{given}/x",
    "elsewhere": "echo x >/tmp/howdah-of-a-stranger",
    "variable": 'test -n "$TOKEN"',
    "home": 'test "$HOME" = {home}',
    "process": "cat /proc/{process}/environ",
    "signal": "kill -0 {process}",
    "network": "bash -c 'echo >/dev/tcp/127.0.0.1/{port}'",
}


def test_a_hostile_command_reaches_nothing_of_the_user(tools: Tools, tmp_path: Path, home: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    sandbox = _sandbox(tools, tmp_path, given)
    with socket.create_server(("127.0.0.1", 0)) as server:
        values = {"home": home, "given": given, "process": os.getpid(), "port": server.getsockname()[1]}
        done = "".join(
            f"( {text.format(**values)} ) 2>/dev/null && echo DONE {name}\n" for name, text in _TRIES.items()
        )
        said = _run(sandbox, f"{done}exit 0")
    assert said == ""
    assert [each.name for each in home.iterdir()] == ["secret.txt"]
    assert list(given.iterdir()) == []
    assert (home / "secret.txt").read_text() == "the secret\n"


def test_every_try_succeeds_without_a_sandbox(tmp_path: Path, home: Path) -> None:
    """Else the test above proves nothing."""
    (tmp_path / "given").mkdir()
    place = tmp_path / "elsewhere"
    with socket.create_server(("127.0.0.1", 0)) as server:
        values = {"home": home, "given": tmp_path / "given", "process": os.getpid(), "port": server.getsockname()[1]}
        texts = {**_TRIES, "elsewhere": f"echo x >{place}"}
        texts["remove"] = texts.pop("remove")  # what the others read goes last
        done = "".join(f"( {text.format(**values)} ) >/dev/null && echo {name}\n" for name, text in texts.items())
        lines: list[str] = []
        run_logged(["sh", "-c", done], tmp_path / "log", cwd=tmp_path, on_line=lines.append)
    assert sorted(lines) == sorted(_TRIES)


def test_an_honest_build_finds_what_it_needs(tools: Tools, tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    (given / "number.h").write_text("#define NUMBER 7\n")
    sandbox = _sandbox(tools, tmp_path, given)
    (sandbox.write[0] / "main.c").write_text(
        '#include <stdio.h>\n#include "number.h"\nint main(void){ printf("%d\\n", NUMBER); return 0; }\n'
    )
    text = f"gcc -O2 -I{given} -o main main.c && ln -s main again && ./again && mkfifo $TMPDIR/pipe && echo x >$HOME/x"
    assert _run(sandbox, text) == "7"
    assert not sandbox.home.exists()
    assert not sandbox.home.with_name("entry.home.memory").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ln -s {home}/secret.txt mine.ko", "the build leaves a link to .*secret.txt, which is not its own"),
        ("mkdir deep && ln -s {home} deep/place", "the build leaves a link to .*home, which is not its own"),
        ("ln -s ../../../../../../../etc/passwd up", "the build leaves a link to .*passwd"),
        ("ln -s loop loop; true", None),
        ("ln -s main other", None),
    ],
)
def test_a_link_out_of_the_build_is_refused(
    tools: Tools, tmp_path: Path, home: Path, text: str, said: str | None
) -> None:
    sandbox = _sandbox(tools, tmp_path)
    if said is None:
        _run(sandbox, text)
        return
    for status in (0, 1):  # whether the command says that it failed or not
        with pytest.raises(HowdahError, match=said) as caught:
            _run(sandbox, f"rm -rf mine.ko deep up; {text.format(home=home)}; exit {status}")
        assert not isinstance(caught.value, CommandFailedError)


def _stack(place: Path, **fields: str) -> Stack:
    (place / "sources").mkdir(exist_ok=True)
    (place / "sources" / "program").write_text("#!/bin/sh\n")
    given = {"summary": "a test", "directory": "sources", "program": "program", **fields}
    (place / "mine.yaml").write_text("".join(f"{name}: {value}\n" for name, value in given.items()))
    return read_stack(place / "mine.yaml")


def _ignore(_what: str, _done: int, _total: int) -> None:
    """No progress display."""


@pytest.mark.usefixtures("of_a_stranger", "tools")
def test_a_strangers_stack_is_built_in_a_sandbox(tmp_path: Path, home: Path) -> None:
    ways = f"echo x >{home}/x; cat {home}/secret.txt >$1; echo x >~/y; cp program $1; exit 0"
    built = build_stack(
        _stack(tmp_path, build=f"[[sh, -c, '{ways}', sh, '{{out}}/program']]"), _ignore, Cache(tmp_path / "cache")
    )
    assert [each.name for each in built.directory.iterdir()] == ["program"]
    assert (built.directory / "program").read_text() == "#!/bin/sh\n"
    assert [each.name for each in home.iterdir()] == ["secret.txt"]
    assert [each.name for each in built.directory.parent.iterdir() if each.is_dir()] == [built.directory.name]


@pytest.mark.usefixtures("of_a_stranger", "tools")
def test_what_asks_for_a_version_is_the_stacks_word_as_well(tmp_path: Path, home: Path) -> None:
    stack = _stack(tmp_path, needs=f'{{perl: "-eopen(F,q(>{home}/x))||die(q(refused))"}}', build="[['true']]")
    with pytest.raises(StackUnsupportedError, match="does not work here: refused"):
        build_stack(stack, _ignore, Cache(tmp_path / "cache"))
    assert [each.name for each in home.iterdir()] == ["secret.txt"]


@pytest.mark.usefixtures("of_a_stranger", "tools")
def test_a_stack_that_needs_the_network_says_why_it_has_none(tmp_path: Path) -> None:
    stack = _stack(tmp_path, build="[[bash, -c, 'echo >/dev/tcp/127.0.0.1/1']]")
    with pytest.raises(HowdahError, match="does not build") as caught:
        build_stack(stack, _ignore, Cache(tmp_path / "cache"))
    assert "no network and none of your files" in str(caught.value)


@pytest.mark.usefixtures("of_a_stranger", "tools")
def test_a_link_among_a_strangers_sources_is_not_followed(tmp_path: Path, home: Path) -> None:
    stack = _stack(tmp_path, build="[[cp, program, '{out}/program']]")
    (stack.directory / "more").symlink_to(home / "secret.txt")
    with pytest.raises(HowdahError, match="sources hold a link to"):
        build_stack(stack, _ignore, Cache(tmp_path / "cache"))


def test_what_the_user_brought_is_built_as_ever(tools: Tools, tmp_path: Path) -> None:
    assert sandbox_of(tmp_path / "entry", tools.launch, [tmp_path]) is None
    assert sandbox_key() == []
    with building_for_a_stranger(is_stranger=True):
        assert sandbox_of(tmp_path / "entry", tools.launch, [tmp_path]) is not None
        assert sandbox_key() != [], "what failed in a sandbox is not what failed without one"
        with building_for_a_stranger(is_stranger=False):
            assert sandbox_key() == []
    assert sandbox_key() == []


@pytest.mark.usefixtures("of_a_stranger", "tools")
def test_what_howdah_ships_needs_no_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[object] = []

    def versions(_stack: object, sandbox: object) -> dict[str, str]:
        used.append(sandbox)
        return {}

    monkeypatch.setattr("howdah.build.stack._build", lambda *given: used.append(given[-1]))
    monkeypatch.setattr("howdah.build.stack._versions", versions)
    monkeypatch.setattr("howdah.build.stack._libraries", lambda _stack: {})
    build_stack(read_stack(STACKS / "gvisor.yaml"), _ignore, Cache(tmp_path / "cache"))
    assert used == [None, None]


def test_a_command_that_a_makefile_wrote_down_runs_there_too(tools: Tools, tmp_path: Path, home: Path) -> None:
    """Kbuild's record of how an object was made lies where a makefile may write."""
    sandbox = _sandbox(tools, tmp_path)
    place = sandbox.write[0]
    command = f"echo x >{home}/x; echo x >{place}/own;: -c -o x.o x.c"
    (place / ".x.o.cmd").write_text(f"savedcmd_x.o := {command}\n")
    assert list(oversized(place, place, sandbox)) == []
    assert (place / "own").is_file()
    assert [each.name for each in home.iterdir()] == ["secret.txt"]
