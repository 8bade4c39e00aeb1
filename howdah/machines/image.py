# SPDX-License-Identifier: Apache-2.0
"""Makes disk images of virtual machines, once: Debian's packages, a kernel's modules, and the setup by playbooks/.

Neither root nor a mount is needed: mmdebstrap installs the packages, ``howdah.machines.imaging`` does the rest in its
own namespaces, and ``mke2fs -d`` writes the file system. Machines boot from overlays, never the image itself.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from howdah.build.archive import SUITE, bootstrap, listed_packages
from howdah.build.cache import Cache, Progress, content_key
from howdah.build.cpio import Writer
from howdah.build.kernel_image import unpack_kernel
from howdah.build.supervise import CommandFailedError, run_logged
from howdah.build.tools import build_tools, compile_c, compiler_version
from howdah.distribution import install_extra, installing
from howdah.errors import HowdahError
from howdah.machines.archive import modules
from howdah.machines.kernel import MachineKernel, first_modules
from howdah.place import MODULES, OWN_PYTHON, PACKAGE, PLAYBOOKS, name_of

PACKAGES = Path(__file__).with_name("image-packages.txt")
TREE = Path(__file__).with_name("tree")
_FIRST = Path(__file__).with_name("first.c")
_IMAGING = Path(__file__).with_name("imaging.py")
_UNPACKED = "vmlinux"
_OTHER_SYSTEMS = ("freebsd", "windows", "image")
_LAYOUT = "1"  # part of every key: raise it when the result changes for the same ingredients
_FIRST_LAYOUT = "2"
_BASE_BYTES = 3 << 30
_IMAGE_BYTES = 4 << 30
DISK_BYTES = 8 << 30  # size for the machine; the file is sparse
_STEPS = {
    "I: running apt-get update": "index",
    "I: downloading packages": "download",
    "I: extracting archives": "extract",
    "I: installing essential": "install the essential ones",
    "I: installing remaining": "install the others",
    "I: creating tarball": "pack",
}


@dataclass(frozen=True)
class MachineImage:
    """A disk image. ``disk`` is an ext4 file system, ``first`` the initial file system, not personalised.

    ``starts`` is the kernel for QEMU: uncompressed if QEMU can start it so, because emulated decompression takes
    seconds.

    ``modules_left_out`` maps the project's modules that do not build for this kernel to the compiler's message.
    """

    disk: Path
    first: Path
    starts: Path
    kernel: MachineKernel
    sources_key: str
    modules_built: list[str]
    modules_left_out: dict[str, str]


def provide_machine_image(kernel: MachineKernel, cache: Cache, progress: Progress) -> MachineImage:
    """Return the image with that kernel's modules; takes minutes the first time, then nothing.

    Raises HowdahError if a program is missing, packages cannot be fetched, or the playbooks fail.
    """
    base = _provide_base(cache, progress)
    key = content_key(_LAYOUT, base.name, kernel.key, *_sources())
    made = cache.build(
        "machine-image",
        key,
        lambda directory, log: _make(directory, log, base, kernel, cache, progress),
        needs_bytes=_IMAGE_BYTES,
        waiting=lambda: progress(f"image with {kernel.release} (another howdah makes it, waiting)", 0, 0),
    )
    record = json.loads((made / "image.json").read_text())
    first = cache.build("machine-first", content_key(kernel.key, *_first_sources()), _first_maker(kernel))
    unpacked = first / _UNPACKED
    return MachineImage(
        disk=made / "disk.ext4",
        first=first / "first.cpio",
        starts=unpacked if unpacked.exists() else kernel.image,
        kernel=kernel,
        sources_key=sources_key(),
        modules_built=record["modules_built"],
        modules_left_out=record["modules_left_out"],
    )


def sources_key() -> str:
    """Return a key of an image's local inputs except its kernel; a machine with another key is set up completely."""
    return content_key(_LAYOUT, SUITE, *listed_packages(PACKAGES), *_sources())


def _sources() -> list[bytes]:
    roles = (PLAYBOOKS / "roles").iterdir()
    own = [role for role in roles if not role.name.startswith(_OTHER_SYSTEMS)]
    places = [TREE, _IMAGING.with_name("root"), PLAYBOOKS / "group_vars", *own]
    files = [
        _IMAGING,
        PLAYBOOKS / "site.yml",
        # Installers leave byte code beside Python files.
        *(file for place in places for file in place.rglob("*") if file.is_file() and file.suffix != ".pyc"),
    ]
    named = sorted((name_of(file), file) for file in files)
    return [modules(), *(f"{name}\n".encode() + file.read_bytes() for name, file in named)]


def _module_names() -> list[str]:
    """Return all modules of the project: those with directories of their own, and one for each file of algorithms/."""
    plug_ins = sorted(file.stem for file in (MODULES / "algorithms").glob("ss_*.c") if not file.stem.endswith(".mod"))
    return ["howdah_traffic", "howdah_slow_start", "howdah_receiver", "howdah_processor", "howdah_hop", *plug_ins]


def _provide_base(cache: Cache, progress: Progress) -> Path:
    key = content_key(_LAYOUT, SUITE, *listed_packages(PACKAGES))

    def install(directory: Path, log: Path) -> None:
        def follow(line: str) -> None:
            step = next((number for number, text in enumerate(_STEPS) if line.startswith(text)), None)
            if step is not None:
                progress(f"packages of the image: {list(_STEPS.values())[step]}", step, len(_STEPS))

        options = (
            f"--mode={'root' if os.geteuid() == 0 else 'unshare'}",
            "--variant=minbase",
            "--skip=output/dev",
            '--aptopt=APT::Install-Recommends "false"',
            '--aptopt=Acquire::Languages "none"',
            "--dpkgopt=force-unsafe-io",
            *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale", "info")),
        )
        bootstrap(
            *(directory / "base.tar", options, listed_packages(PACKAGES), log, build_tools(cache).launch, follow),
            failing="the packages of the image",
            needs=("mmdebstrap", "uidmap"),
        )

    return cache.build(
        "machine-base",
        key,
        install,
        needs_bytes=_BASE_BYTES,
        waiting=lambda: progress("packages of the image (another howdah installs them, waiting)", 0, 0),
    )


def _make(directory: Path, log: Path, base: Path, kernel: MachineKernel, cache: Cache, progress: Progress) -> None:
    specification = directory / "imaging.json"
    work = directory / "work"
    work.mkdir()
    # howdah itself is left empty here, or every change of it would outdate the image: the playbook delivers it later.
    (work / "howdah.zip").touch()
    (work / "modules.tar").write_bytes(modules())
    specification.write_text(json.dumps(_specification(directory, work, base, kernel)))

    def follow(line: str) -> None:
        if line.startswith("step "):
            _, number, count, what = line.split(" ", 3)
            progress(f"image with {kernel.release}: {what}", int(number), int(count))

    mapped = [] if os.geteuid() == 0 else ["--map-root-user", "--map-auto"]
    command = [
        *("unshare", *mapped, "--mount", "--propagation", "private", "--"),
        *(*OWN_PYTHON, "-m", "howdah.machines.imaging", str(specification)),
    ]
    try:
        run_logged(
            command,
            log,
            launcher=build_tools(cache).launch,
            on_line=follow,
            environment={"PYTHONPATH": str(PACKAGE.parent)},
        )
    except CommandFailedError as error:
        raise HowdahError(
            f"the image with {kernel.release} cannot be made: " + " / ".join(error.tail[-4:]),
            where=kernel.source,
            hint=f"The full output is in {log}. A user without root needs newuidmap ({installing('uidmap')}) and lines "
            "in /etc/subuid and /etc/subgid.",
        ) from error
    specification.unlink()


def _specification(directory: Path, work: Path, base: Path, kernel: MachineKernel) -> dict[str, object]:
    return {
        "base": str(base / "base.tar"),
        "work": str(work),
        "kernel": {name: str(value) for name, value in asdict(kernel).items() if value is not None},
        "tree": str(TREE),
        "modules": _module_names(),
        "playbook": str(PLAYBOOKS / "site.yml"),
        "ansible": str(ansible_playbook()),
        "disk": str(directory / "disk.ext4"),
        "disk_bytes": DISK_BYTES,
        "record": str(directory / "image.json"),
    }


def ansible_playbook() -> Path:
    """Return Ansible's program, from this Python's environment or PATH. Raises HowdahError without it."""
    beside = Path(sys.executable).parent / "ansible-playbook"
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("ansible-playbook")
    if found is None:
        raise HowdahError("ansible-core is not installed", hint=install_extra("machines"))
    return Path(found)


def _first_sources() -> list[str]:
    return [_FIRST_LAYOUT, compiler_version(), _FIRST.read_text()]


def _first_maker(kernel: MachineKernel) -> Callable[[Path, Path], None]:
    def make(directory: Path, log: Path) -> None:
        program = directory / "first"
        compile_c(_FIRST, program, log, "-static")
        with (directory / "first.cpio").open("wb") as file:
            archive = Writer(file)
            archive.directory("modules")
            names = []
            for name, content in first_modules(kernel):
                archive.data(f"modules/{name}.ko", content)
                names.append(f"/modules/{name}.ko\n")
            archive.data("modules/list", "".join(names).encode())
            archive.file("init", program, 0o755)
            archive.close()
        unpack_kernel(kernel.image, directory / _UNPACKED)

    return make
