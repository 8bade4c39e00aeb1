# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.guest.bare_root ORDER``: become a program in a root that has next to nothing.

No C library where programs look for one (so it is as with musl), no shell, compiler or package manager. /tmp and
/dev/shm are mounted noexec and everything else but the home directory is read-only. The program is a plain user's, and
runs under a seccomp filter as containers have it. ORDER is JSON: ``python`` (arguments), ``places`` (directories that
the root has, at their own paths), ``home``, and ``environment``.

It takes root, or user namespaces.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from howdah.build.guest_tree import with_loader
from tests.guest.container import forbid_as_containers_do

_NEW_NAMESPACE, _NEW_USER = 0x00020000, 0x10000000
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_EXEC, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = (
    1,
    2,
    4,
    8,
    32,
    4096,
    16384,
    1 << 18,
)
_DETACH = 2
_PIVOT_ROOT = 155
_USER = 1000
_LOADER = "/opt/ld.so"
_LIBC = ctypes.CDLL(None, use_errno=True)


def _call(what: str, status: int) -> None:
    if status < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def _mount(source: str, target: Path, kind: str | None, flags: int, options: str | None = None) -> None:
    target.mkdir(parents=True, exist_ok=True)
    words = [None if word is None else word.encode() for word in (source, str(target), kind)]
    _call(f"mount {target}", _LIBC.mount(*words, flags, options and options.encode()))


def _bind(place: Path, target: Path) -> None:
    _mount(str(place), target, None, _BIND | _RECURSIVE)
    _mount("none", target, None, _REMOUNT | _BIND | _READ_ONLY)


def _new_namespaces() -> None:
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        _call("unshare", _LIBC.unshare(_NEW_NAMESPACE))
    else:
        _call("unshare", _LIBC.unshare(_NEW_NAMESPACE | _NEW_USER))
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    _call("mount /", _LIBC.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None))


def _libraries() -> tuple[Path, list[Path]]:
    """This Python's loader, and the directories of its libraries."""
    said = subprocess.run(["ldd", os.path.realpath(sys.executable)], capture_output=True, text=True, check=True).stdout
    files = [Path(word) for line in said.splitlines() for word in line.split() if word.startswith("/")]
    loader = next(file for file in files if file.name.startswith("ld-linux"))
    return loader.resolve(), list(dict.fromkeys(file.parent.resolve() for file in files if file != loader))


def _fill(root: Path, order: dict[str, Any]) -> list[str]:
    """Returns where the libraries are in it."""
    loader, libraries = _libraries()
    _mount("root", root, "tmpfs", 0, "mode=755")
    opt = root / "opt"
    opt.mkdir()
    (root / _LOADER[1:]).write_bytes(loader.read_bytes())
    changed = with_loader(Path(os.path.realpath(sys.executable)).read_bytes(), _LOADER)
    assert changed is not None
    (opt / "python").write_bytes(changed)
    for file in (root / _LOADER[1:], opt / "python"):
        file.chmod(0o755)
    for number, place in enumerate(libraries):
        _bind(place, opt / f"lib{number}")
    _mount("tmp", root / "tmp", "tmpfs", _NO_SUID | _NO_DEVICES | _NO_EXEC, "mode=1777")
    for place in map(Path, order["places"]):
        _bind(place, root / str(place)[1:])
    _mount("dev", root / "dev", "tmpfs", _NO_SUID, "mode=755")
    for name in ("null", "zero", "urandom", "random"):
        (root / "dev" / name).touch()
        _call(name, _LIBC.mount(f"/dev/{name}".encode(), str(root / "dev" / name).encode(), None, _BIND, None))
    _mount("shm", root / "dev/shm", "tmpfs", _NO_SUID | _NO_DEVICES | _NO_EXEC, "mode=1777,size=64m")
    _mount("/proc", root / "proc", None, _BIND | _RECURSIVE)
    _mount(order["home"], root / "home", None, _BIND)
    return [f"/opt/lib{number}" for number in range(len(libraries))]


def _enter(root: Path) -> None:
    old = root / "old"
    old.mkdir()
    _mount("none", root, None, _REMOUNT | _BIND | _READ_ONLY)
    _call("pivot_root", _LIBC.syscall(_PIVOT_ROOT, str(root).encode(), str(old).encode()))
    os.chdir("/")
    _call("umount", _LIBC.umount2(b"/old", _DETACH))


def _become_plain() -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_USER, _USER, _USER)
        os.setresuid(_USER, _USER, _USER)


def main() -> None:
    order = json.loads(sys.argv[1])
    _new_namespaces()
    root = Path(tempfile.mkdtemp())
    libraries = _fill(root, order)
    _enter(root)
    _become_plain()
    forbid_as_containers_do()
    os.chdir("/home")
    own = {"HOME": "/home", "PATH": "/nowhere", "LD_LIBRARY_PATH": ":".join(libraries)}
    environment = own | order["environment"]
    os.execve("/opt/python", ["/opt/python", *order["python"]], environment)


def run_in_bare_root(
    arguments: list[str], *, places: list[Path], home: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run this Python with arguments there. What it writes into ``home`` belongs to the plain user."""
    if os.geteuid() == 0:
        os.chown(home, _USER, _USER)
    value = {"PYTHONHOME": sys.base_prefix, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    order = {"python": arguments, "places": [*map(str, places)], "home": str(home), "environment": value}
    command = [sys.executable, "-m", "tests.guest.bare_root", json.dumps(order)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    main()
