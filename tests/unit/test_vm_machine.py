# SPDX-License-Identifier: Apache-2.0
"""A virtual machine's command line, what is said of one that goes wrong, and the clock of an idle one."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from howdah.build import accelerator
from howdah.build.cache import Cache
from howdah.build.tools import build_tools, library, variable
from howdah.engine.vm import machine
from howdah.engine.vm.machine import WARP, QemuMachine, Speed, command_line, run
from howdah.engine.vm.watch import UP
from howdah.errors import EngineUnavailableError, HowdahError, RunFailedError


@pytest.fixture
def made(tmp_path: Path) -> QemuMachine:
    for name in ("kernel", "tree.cpio"):
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "raw").mkdir()
    return QemuMachine(
        kernel=tmp_path / "kernel",
        first=(tmp_path / "tree.cpio",),
        command=("/usr/bin/python3", "-m", "howdah.agent"),
        memory_bytes=256 << 20,
        delivery_bytes=1 << 20,
        raw=tmp_path / "raw",
        console=tmp_path / "raw" / "console.log",
        speed=Speed(1),
        accelerator="tcg",
        wall_clock_limit_s=20.0,
        clock_limit_s=100,
        launcher=build_tools(Cache()).launch,
        kernel_arguments=("tcp_cubic.hystart=0",),
    )


def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A shell script instead of QEMU; $console, $disk and $signs are the files it would write."""
    program = tmp_path / "qemu"
    head = (
        '#!/bin/sh\nfor word; do case "$word" in file:*) console=${word#file:};;\n'
        "if=none,*) disk=${word#*file=}; disk=${disk%%,*};; file,id=signs,*) signs=${word#*path=};; esac; done\n"
    )
    program.write_text(head + script)
    program.chmod(0o755)
    monkeypatch.setattr(machine, "QEMU", str(program))


def quiet(_phase: str, _done: int, _total: int) -> None: ...


def test_nothing_that_could_differ_is_left_open(made: QemuMachine) -> None:
    words = command_line(made, Path("initrd"), Path("disk"), Path("signs"))
    line = " ".join(words)
    assert "shift=1,sleep=off,align=off" in words
    for part in (
        "nokaslr",
        "clock=vm",
        "-nodefaults",
        "-no-user-config",
        "random.trust_cpu=off",
        "tcp_cubic.hystart=0",
    ):
        assert part in line
    assert line.endswith("-- /usr/bin/python3 -m howdah.agent")
    assert "-net" not in line, "it has no network but its own namespaces"


def test_real_time_has_no_virtual_clock(made: QemuMachine) -> None:
    virtual, real = (
        command_line(replace(made, speed=Speed(shift)), Path("initrd"), Path("disk"), Path("signs"))
        for shift in (0, None)
    )
    assert "-icount" in virtual
    assert "-icount" not in real
    assert "HOWDAH_SETTLE_S=" in " ".join(virtual), "idle virtual time costs nothing"
    assert "HOWDAH_SETTLE_S=" not in " ".join(real)


def test_a_word_with_a_space_is_refused(made: QemuMachine) -> None:
    with pytest.raises(ValueError, match="command line"):
        command_line(replace(made, kernel_arguments=("a b",)), Path("initrd"), Path("disk"), Path("signs"))


@pytest.mark.parametrize(("shift", "text"), [(0, "1 instructions"), (1, "0.5 instructions"), (None, "as fast")])
def test_speed_in_words(shift: int | None, text: str) -> None:
    assert Speed(shift).text.startswith(text)


def test_what_it_delivers_is_unpacked_and_its_end_is_read(
    made: QemuMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(
        tmp_path,
        monkeypatch,
        'cd "$(mktemp -d)"; echo \'{"exit": 3, "signal": null}\' > guest-exit.json; echo x > trace; tar cf "$disk" *\n',
    )
    ending, command = run(made, quiet)
    assert (ending.exit_status, ending.signal) == (3, None)
    assert (made.raw / "trace").read_text() == "x\n"
    assert command[0].endswith("qemu")
    assert not [file.name for file in made.raw.iterdir() if file.name.startswith(".")], (
        "the disk and the archive are gone"
    )


def test_a_kernel_that_panics_is_told_with_its_console(
    made: QemuMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, 'echo "Kernel panic - not syncing: VFS" > "$console"\n')
    with pytest.raises(RunFailedError, match="a panic of its kernel: VFS") as error:
        run(made, quiet)
    assert "Last lines of the console" in str(error.value)


def test_one_that_ends_without_a_word_is_told(
    made: QemuMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, 'echo "Freeing initrd memory" > "$console"\n')
    with pytest.raises(RunFailedError, match="without delivering what it recorded"):
        run(made, quiet)


def test_a_kernel_that_never_comes_up_is_ended_after_its_processor_time(
    made: QemuMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, 'echo "tsc: Fast TSC calibration" > "$console"\nwhile :; do :; done\n')
    with pytest.raises(RunFailedError, match=r"did not come up.*processor time") as error:
        run(replace(made, boot_limit_s=0.5), quiet)
    assert "Fast TSC calibration" in str(error.value)


def test_one_that_sleeps_while_it_boots_is_ended_after_some_wall_time(
    made: QemuMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, "sleep 600\n")
    with pytest.raises(RunFailedError, match="did not come up"):
        run(replace(made, boot_limit_s=0.05), quiet)


def test_a_machine_that_falls_silent_is_ended_and_the_message_says_where_it_was(
    made: QemuMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f"echo '{UP.decode()}' > \"$console\"; printf '=385\\nc123\\n' > \"$signs\"; while :; do :; done\n"
    stand_in(tmp_path, monkeypatch, script)
    seen = []
    with pytest.raises(RunFailedError, match=r"hangs: .*phase flows, 12\.3 of 38\.5 s of its own time"):
        run(replace(made, silence_limit_s=0.5), lambda *position: seen.append(position))
    assert ("flows", 12_300_000, 38_500_000) in seen, "progress is shown while it runs"


def test_one_that_was_killed_says_so(made: QemuMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = f"echo '{UP.decode()}' > \"$console\"; printf 'b70\\n' > \"$signs\"; kill -9 $$\n"
    stand_in(tmp_path, monkeypatch, script)
    with pytest.raises(RunFailedError, match=r"killed from outside \(SIGKILL, phase calibrate-before, 7\.0 s"):
        run(made, quiet)


def test_a_machine_without_qemu_says_what_to_install(
    made: QemuMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "QEMU", str(tmp_path / "no-qemu"))
    with pytest.raises(EngineUnavailableError, match="no-qemu") as error:
        run(made, quiet)
    assert "qemu-system-x86" in str(error.value)


def test_what_is_no_kernel_is_told_in_qemus_words(
    made: QemuMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, "echo 'qemu: invalid kernel header' >&2; exit 1\n")
    with pytest.raises(RunFailedError, match="status 1: qemu: invalid kernel header"):
        run(made, quiet)


def test_one_that_never_ends_is_ended_and_nothing_of_it_stays(
    made: QemuMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, f'echo $$ > {tmp_path}/pid; echo booting > "$console"; sleep 600\n')
    with pytest.raises(RunFailedError, match="wall-clock limit of 1 s"):
        run(replace(made, wall_clock_limit_s=1.0), quiet)
    pid = int((tmp_path / "pid").read_text())
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists():
            break
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}").exists()


def test_a_slow_machine_may_take_longer_than_the_limit(
    made: QemuMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the limit a sixteenth passes between two of its clock's steps."""
    script = (
        f"echo '{UP.decode()}' > \"$console\"; printf '=385\\n' > \"$signs\"; i=0\n"
        'while [ $i -lt 20 ]; do i=$((i + 1)); printf "c$i\\n" >> "$signs"; sleep 0.25; done\n'
        'cd "$(mktemp -d)"; echo \'{"exit": 0, "signal": null}\' > guest-exit.json; tar cf "$disk" *\n'
    )
    stand_in(tmp_path, monkeypatch, script)
    ending, _command = run(replace(made, wall_clock_limit_s=4.0), quiet)
    assert ending.exit_status == 0
    assert ending.wall_s > 4.0


def test_a_program_that_ran_out_of_the_machines_time_is_told(
    made: QemuMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = 'cd "$(mktemp -d)"; echo \'{"exit": null, "signal": null}\' > guest-exit.json; tar cf "$disk" *\n'
    stand_in(tmp_path, monkeypatch, script)
    with pytest.raises(RunFailedError, match="not done after 100 s of its own time"):
        run(made, quiet)


def test_kvm_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerator, "KVM", tmp_path / "kvm")
    assert "there is no" in str(accelerator.why_no_kvm(tmp_path / "kernel"))
    (tmp_path / "kvm").touch()
    for script, words in (
        ("echo 'not syncing: no init' > \"$console\"\n", None),
        ("echo 'failed to set MSR' >&2; exit 134\n", "status 134: failed to set MSR"),
        ("sleep 60\n", "does not start"),
    ):
        stand_in(tmp_path, monkeypatch, script)
        monkeypatch.setattr(accelerator, "QEMU", str(tmp_path / "qemu"))
        monkeypatch.setattr(accelerator, "_TRIAL_S", 2.0)
        found = accelerator.why_no_kvm(tmp_path / "kernel")
        assert found is None if words is None else words in str(found)


def test_a_trial_of_kvm_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = tmp_path / "kernel"
    image.write_bytes(b"kernel")
    trials: list[Path] = []

    def trial(tried: Path) -> str:
        trials.append(tried)
        return "it does not start"

    monkeypatch.setattr(accelerator, "why_no_kvm", trial)
    cache = Cache(tmp_path / "cache")
    assert [accelerator.cached_why_no_kvm(image, cache) for _ in range(2)] == ["it does not start"] * 2
    assert trials == [image]


def test_real_time_takes_kvm_where_it_works_and_says_why_not_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, cache = tmp_path / "kernel", Cache(tmp_path)
    answers: dict[str, str | None] = {"said": None}
    monkeypatch.setattr(accelerator, "cached_why_no_kvm", lambda _image, _cache: answers["said"])
    assert accelerator.choose("auto", image, cache) == accelerator.Accelerator("kvm", None)
    assert accelerator.choose("tcg", image, cache).name == "tcg"
    answers["said"] = "there is no /dev/kvm"
    assert accelerator.choose("auto", image, cache) == accelerator.Accelerator("tcg", "there is no /dev/kvm")
    with pytest.raises(EngineUnavailableError, match="there is no /dev/kvm"):
        accelerator.choose("kvm", image, cache)


STAND_IN = Path(__file__).with_name("warp_stand_in.c")
LIMIT_S = 60


@pytest.fixture(scope="module")
def machine_of_warp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("machine") / "machine"
    subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-pthread", "-o", str(program), str(STAND_IN)], check=True)
    return program


def seen(*command: str) -> tuple[int, int]:
    """How often the machine was idle with instructions that were not counted, and with none."""
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT_S)
    early, right = map(int, done.stdout.split())
    return early, right


def test_without_it_the_clock_is_moved_too_early(machine_of_warp: Path) -> None:
    early, right = seen(str(machine_of_warp))
    assert early > 0
    assert right == 200


@pytest.mark.parametrize("processors", [[], ["taskset", "--cpu-list", "{one}"]], ids=["any", "one"])
def test_with_it_never(machine_of_warp: Path, tmp_path: Path, processors: list[str]) -> None:
    one = str(min(os.sched_getaffinity(0)))
    pinned = [word.format(one=one) for word in processors]
    assert seen(*pinned, "env", variable(library(WARP, Cache(tmp_path))), str(machine_of_warp)) == (0, 200)


def test_a_source_that_does_not_compile_is_told(tmp_path: Path) -> None:
    source = tmp_path / "wrong.c"
    source.write_text("int ppoll(\n")
    with pytest.raises(HowdahError, match="does not compile") as raised:
        library(source, Cache(tmp_path / "cache"))
    assert raised.value.where == str(source)


def test_a_changed_source_is_another_library(tmp_path: Path) -> None:
    source, cache = tmp_path / "one.c", Cache(tmp_path / "cache")
    source.write_text("int one;\n")
    first = library(source, cache)
    assert library(source, cache) == first
    source.write_text("int two;\n")
    assert library(source, cache) != first
