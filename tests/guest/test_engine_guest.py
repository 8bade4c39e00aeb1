# SPDX-License-Identifier: Apache-2.0
"""A guest starts, sees what it should, and ends in every way a guest can end; nothing of it stays."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from howdah.engine.ending import Ending, runtime_base
from howdah.engine.life import descendants
from howdah.engine.uml.build import Built
from howdah.engine.uml.guest import boot
from howdah.errors import HowdahError, RunFailedError
from tests.built_modules import build_modules
from tests.guest.guest_kit import build_or_skip, make_guest, run_script

pytestmark = pytest.mark.guest

_HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def built() -> Built:
    return build_or_skip()


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    before = _traces()
    yield
    assert _until(lambda: _traces() <= before), f"left behind: {_traces() - before}"


def _traces() -> set[str]:
    """Private directories of guests started by this process."""
    return {path.name for path in runtime_base().glob(f"howdah-guest-{os.getpid()}-*")}


def _until(condition: Callable[[], bool], limit_s: float = 30) -> bool:
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def test_what_the_guest_sees(built: Built, tmp_path: Path) -> None:
    script = (
        "touch /howdah/in/no 2>/dev/null && echo 'share is writable'\n"
        "touch /etc/yes && rm /usr/bin/find && echo 'the tree takes changes'\n"
        "echo result >/howdah/out/file\n"
        "uname -r; cat /etc/debian_version; python3 -c 'import ctypes, json, mininet; print(\"python\")'\n"
        "test -e /sys/kernel/tracing/events/tcp/tcp_probe && echo tcp_probe\n"
        "tc qdisc add dev lo root netem delay 1ms && echo netem\n"
        "exit 5\n"
    )
    ending, console = run_script(built, tmp_path / "a run", script)
    assert (ending.exit_status, ending.signal) == (5, None)
    lines = console.splitlines()
    assert lines[:6] == ["the tree takes changes", built.kernel.release, lines[2], "python", "tcp_probe", "netem"]
    assert lines[2].startswith("13.")
    assert (tmp_path / "a run/raw/file").read_text() == "result\n"
    assert not (tmp_path / "a run/share/no").exists()
    assert (built.tree.root / "usr/bin/find").exists(), "changes stay in the guest"
    assert not (built.tree.root / "etc/yes").exists()


def test_memory_is_populated_in_the_program_and_not_in_what_it_starts(built: Built, tmp_path: Path) -> None:
    share = tmp_path / "share"
    share.mkdir()
    shutil.copy2(built.tools.populate, share)
    loaded = "grep -c populate.so /proc/{process}/maps; "
    script = (
        loaded.format(process="$$") + loaded.format(process="self") + "env | grep -c LD_PRELOAD; python3 -c 'print(7)'"
    )
    _, console = run_script(built, tmp_path, script)
    loads, *others = console.splitlines()[:4]
    assert int(loads) > 0
    assert others == ["0", "0", "7"]


def test_sleeping_takes_virtual_time_only(built: Built, tmp_path: Path) -> None:
    script = "cat /proc/uptime; sleep 500; cat /proc/uptime"
    _, console = run_script(built, tmp_path, script)
    first, second = (float(line.split()[0]) for line in console.splitlines()[:2])
    assert second - first == pytest.approx(500, abs=0.02)


_DRAW = """\
od -An -tx1 -N64 /dev/urandom
cat /proc/sys/kernel/random/boot_id
python3 -c 'import os; print(os.urandom(9))'
"""


def test_random_numbers_follow_the_seed(built: Built, tmp_path: Path) -> None:
    _, first = run_script(built, tmp_path / "one", _DRAW, seed=7)
    _, again = run_script(built, tmp_path / "two", _DRAW, seed=7)
    _, other = run_script(built, tmp_path / "three", _DRAW, seed=8)
    assert len(first.splitlines()) > 5
    assert first == again
    assert not set(first.splitlines()[:5]) & set(other.splitlines()[:5])


def test_vector_registers_survive_faults_calls_switches_and_signals(built: Built, tmp_path: Path) -> None:
    guest = make_guest(built, tmp_path, "", command=("/howdah/in/registers",))
    source = str(_HERE / "registers.c")
    subprocess.run(["gcc", "-O2", "-static", "-o", str(guest.share / "registers"), source], check=True)
    ending = boot(guest, lambda _phase, _done, _total: None)
    console = guest.console.read_text()
    assert "unchanged" in console, console
    assert ending.exit_status == 0


_PANIC = """\
#include <linux/module.h>
#include <linux/panic.h>
static int __init start(void) { panic("asked for by a test"); }
module_init(start);
MODULE_LICENSE("GPL");
"""


def test_a_panic_ends_the_run_and_is_quoted(built: Built, tmp_path: Path) -> None:
    source = tmp_path / "howdah_panic.c"
    source.write_text(_PANIC)
    modules = build_modules(built.kernel, [str(source)], lambda _what, _done, _total: None)
    guest = make_guest(built, tmp_path, "echo before\ninsmod /howdah/in/howdah_panic.ko")
    shutil.copy(next(module.file for module in modules if module.name == "howdah_panic"), guest.share)
    with pytest.raises(RunFailedError, match="panicked: asked for by a test"):
        boot(guest, lambda _phase, _done, _total: None)
    assert guest.console.read_text().startswith("before\n")


def test_a_busy_guest_ends_at_its_wall_clock_limit(built: Built, tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match="wall-clock limit of 1 s") as caught:
        run_script(built, tmp_path, "echo busy\nwhile :; do :; done", wall_clock_limit_s=1)
    assert "busy" in str(caught.value)


def test_a_guest_that_waits_for_ever_ends_at_its_clock_limit(built: Built, tmp_path: Path) -> None:
    script = "exec python3 -S -c 'import threading; threading.Event().wait()'"
    with pytest.raises(RunFailedError, match="limit of 60 simulated seconds"):
        run_script(built, tmp_path, script, clock_limit_s=60)


def test_a_guest_that_reboots_is_ended(built: Built, tmp_path: Path) -> None:
    script = "echo up; exec python3 -S -c 'import ctypes; ctypes.CDLL(None).reboot(0x1234567)'"
    with pytest.raises(RunFailedError, match="rebooted"):
        run_script(built, tmp_path, script)
    assert (tmp_path / "raw/console.log").read_text().count("up\n") == 1


def test_a_killed_command_is_told(built: Built, tmp_path: Path) -> None:
    ending, _ = run_script(built, tmp_path, "kill -9 $$")
    assert (ending.exit_status, ending.signal) == (None, 9)


def test_a_program_that_is_not_in_the_tree(built: Built, tmp_path: Path) -> None:
    ending, console = run_script(built, tmp_path, "", command=("/no/such",))
    assert ending.exit_status == 1
    assert "/no/such: No such file" in console


def test_two_guests_at_once_do_not_meet(built: Built, tmp_path: Path) -> None:
    endings: dict[str, tuple[Ending, str]] = {}

    def run(name: str) -> None:
        script = f"echo {name} >/tmp/mine\nsleep 50\ncat /tmp/mine >/howdah/out/mine\nls /tmp"
        endings[name] = run_script(built, tmp_path / name, script)

    threads = [threading.Thread(target=run, args=(name,)) for name in ("one", "two", "three")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    for name in ("one", "two", "three"):
        assert endings[name][0].exit_status == 0
        assert (tmp_path / name / "raw/mine").read_text() == f"{name}\n"


@pytest.mark.usefixtures("built")
def test_nothing_is_left_when_howdah_is_killed(tmp_path: Path) -> None:
    """kill -9 at many moments of a guest's life, from before its kernel starts."""
    program = "from tests.guest.test_engine_guest import boot_for_ever; boot_for_ever()"
    for moment_s in (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 1.0):
        directory = tmp_path / f"after {moment_s}"
        process = subprocess.Popen([sys.executable, "-c", program, str(directory)], cwd=_HERE.parents[1])
        console = directory / "raw/console.log"
        assert _until(console.exists)
        time.sleep(moment_s)
        family = descendants(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert _until(lambda family=family: not any(_runs(pid) for pid in family))  # type: ignore[misc]
        assert _until(lambda pid=process.pid: not list(runtime_base().glob(f"howdah-guest-{pid}-*")))  # type: ignore[misc]


def boot_for_ever() -> None:
    """Run by the test above in a process of its own."""
    guest = make_guest(build_or_skip(), Path(sys.argv[1]), "while :; do sleep 1; done", clock_limit_s=10**8)
    boot(guest, lambda _phase, _done, _total: None)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(os.geteuid() != 0, reason="these tests run without root already")
def test_a_user_without_rights_boots_the_same_guest(built: Built) -> None:
    nobody = 65534
    with tempfile.TemporaryDirectory(prefix="howdah-test-") as name:
        place = Path(name)
        place.chmod(0o755)
        subprocess.run(["cp", "-a", str(built.tree.root), str(place / "tree")], check=True)
        shutil.copytree(built.tools.directory, place / "tools")
        shutil.copy2(built.kernel.image, place / "linux")
        guest = make_guest(built, place / "a run", "echo $(id -u) >/howdah/out/user; rm /etc/passwd && echo root")
        for path in (place / "a run/raw", place / "a run/share"):
            os.chown(path, nobody, nobody)
        tools = type(built.tools)(place / "tools", place / "tools/launch", place / "tools/shim.so", built.tools.key)
        child = os.fork()
        if not child:
            status = 99
            try:
                os.setgroups([])
                os.setgid(nobody)
                os.setuid(nobody)
                os.environ.pop("XDG_RUNTIME_DIR", None)
                changed = dataclasses.replace(guest, kernel=place / "linux", tree=place / "tree", tools=tools)
                status = boot(changed, lambda _phase, _done, _total: None).exit_status or 0
            except HowdahError as error:
                sys.stderr.write(f"{error}\n")
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        user = place / "a run/raw/user"
        assert user.read_text() == "0\n", "root inside"
        assert user.stat().st_uid == nobody, "nobody outside"
        assert (place / "tree/etc/passwd").exists()
