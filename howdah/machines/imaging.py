# SPDX-License-Identifier: Apache-2.0
"""Makes one disk image in a mount namespace of its own (``unshare``): all steps that must be root of a tree.

``howdah.machines.image`` starts ``python -m howdah.machines.imaging SPECIFICATION``. Lines ``step N OF WHAT`` report
progress. A failure ends it with status 1 and the reason in its last lines.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Units for features that such a machine lacks: each costs an emulated processor time.
_MASKED = (
    "apt-daily-upgrade.timer",
    "apt-daily.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "fstrim.timer",
    "getty@.service",
    "irtt.service",
    "kmod-static-nodes.service",
    "ldconfig.service",
    "modprobe@.service",
    "netperf.service",
    "nginx.service",
    "serial-getty@.service",
    "systemd-ask-password-console.path",
    "systemd-ask-password-wall.path",
    "systemd-binfmt.service",
    "systemd-creds.socket",
    "systemd-firstboot.service",
    "systemd-hwdb-update.service",
    "systemd-initctl.socket",
    "systemd-journal-catalog-update.service",
    "systemd-journal-flush.service",
    "systemd-logind.service",
    "systemd-machine-id-commit.service",
    "systemd-networkd-persistent-storage.service",
    "systemd-networkd-wait-online.service",
    "systemd-pstore.service",
    "systemd-random-seed.service",
    "systemd-remount-fs.service",
    "systemd-rfkill.service",
    "systemd-sysext.socket",
    "systemd-tmpfiles-clean.timer",
    "systemd-tmpfiles-setup-dev-early.service",
    "systemd-tmpfiles-setup-dev.service",
    "systemd-udev-load-credentials.service",
    "systemd-update-done.service",
    "systemd-update-utmp.service",
    "systemd-user-sessions.service",
    "dev-hugepages.mount",
    "dev-mqueue.mount",
    "proc-sys-fs-binfmt_misc.automount",
    "run-lock.mount",
    "sys-fs-fuse-connections.mount",
    "sys-kernel-config.mount",
    "sys-kernel-debug.mount",
)
# Programs that look for reasons to start more units at each boot: a login console, fstab, a TPM.
_GENERATORS = "systemd/system-generators"
_ENABLED = ("systemd-networkd.service", "ssh.service")
_EMPTIED = ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale")
_STEPS = 5
_ROOT = Path(__file__).resolve().with_name("root")


def _step(number: int, what: str) -> None:
    sys.stdout.write(f"step {number} {_STEPS} {what}\n")
    sys.stdout.flush()


def _run(command: Sequence[str], **environment: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, env={**os.environ, **environment})


def make(specification: dict[str, Any]) -> None:
    work = Path(specification["work"])
    root = work / "root"
    root.mkdir()
    try:
        _step(1, "unpack the packages")
        _run(["tar", "--extract", "--numeric-owner", "--file", specification["base"], "--directory", str(root)])
        _step(2, "lay in the kernel's modules")
        kernel = specification["kernel"]
        _lay_in_kernel(root, kernel)
        _configure(root, Path(specification["tree"]))
        _step(3, "set up by the playbooks")
        record = _set_up(root, work, specification)
        _finish(root)
        _step(4, "write the file system")
        disk = Path(specification["disk"])
        disk.touch()
        os.truncate(disk, specification["disk_bytes"])
        _run(
            [
                *("/sbin/mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-L", "howdah"),
                *("-E", "lazy_itable_init=1,root_owner=0:0,nodiscard", "-d", str(root), str(disk)),
            ]
        )
        Path(specification["record"]).write_text(json.dumps(record, indent=1) + "\n")
        _step(5, "done")
    finally:
        shutil.rmtree(work)


def _lay_in_kernel(root: Path, kernel: dict[str, str]) -> None:
    release = kernel["release"]
    modules = root / "usr/lib/modules" / release
    modules.parent.mkdir(exist_ok=True)
    shutil.copytree(kernel["modules"], modules, symlinks=True)
    if "headers" in kernel:
        # Packages of older suites have /lib beside /usr/lib.
        for part, where in (("usr", root / "usr"), ("lib", root / "usr/lib")):
            source = Path(kernel["headers"]) / part
            if source.is_dir():
                _run(["cp", "--archive", "--no-preserve=ownership", f"{source}/.", str(where)])
        _name_compiler(root)
    _run(["/sbin/depmod", "--basedir", str(root), release])


def _name_compiler(root: Path) -> None:
    """Link the image's compiler under the names that the headers request: that of their release (gcc-12, also in full).

    Debian's headers do not insist on the version (DEBIAN_KERNEL_NO_CC_VERSION_CHECK).
    """
    for file in root.glob("usr/src/linux-headers-*/.kernelvariables"):
        for version in re.findall(r"gcc-(\d+)", file.read_text()):
            for name in (f"gcc-{version}", f"x86_64-linux-gnu-gcc-{version}"):
                if not (root / "usr/bin" / name).is_symlink():
                    _link(root / "usr/local/bin" / name, "/usr/bin/gcc")


def _configure(root: Path, tree: Path) -> None:
    shutil.copytree(tree, root, dirs_exist_ok=True)
    units = root / "etc/systemd/system"
    for name in _MASKED:
        _link(units / name, "/dev/null")
    (root / "etc" / _GENERATORS).mkdir(exist_ok=True)
    for generator in (root / "usr/lib" / _GENERATORS).iterdir():
        _link(root / "etc" / _GENERATORS / generator.name, "/dev/null")
    wanted = units / "multi-user.target.wants"
    wanted.mkdir(exist_ok=True)
    for name in _ENABLED:
        _link(wanted / name, f"/usr/lib/systemd/system/{name}")
    _link(units / "default.target", "/usr/lib/systemd/system/multi-user.target")
    for name in ("dev", "proc", "sys", "run"):
        (root / name).mkdir(exist_ok=True)
    for key in (root / "etc/ssh").glob("ssh_host_*"):
        key.unlink()


def _set_up(root: Path, work: Path, specification: dict[str, Any]) -> dict[str, Any]:
    """Run playbooks/site.yml in the tree, so that it finds nearly everything done on a machine made from the image.

    Returns which of the project's modules were built for its kernel, and which were not, with the reason.
    """
    shared = work / "shared"
    shared.mkdir()
    # Ansible does not quote the name of its shell. The path of a checkout may contain a space; the cache's does not.
    shell = work / "shell.sh"
    shutil.copy(_ROOT / "shell.sh", shell)
    inventory = work / "inventory.json"
    inventory.write_text(json.dumps(_inventory(shell, shared, specification["kernel"])))
    _run(
        [
            *("unshare", "--mount", "--propagation", "private", "--", str(_ROOT / "mount.sh"), str(root), str(shared)),
            *(specification["ansible"], "--inventory", str(inventory), specification["playbook"]),
        ],
        HOWDAH_TREE=str(root),
        ANSIBLE_CONFIG=str(Path(specification["playbook"]).with_name("ansible.cfg")),
        ANSIBLE_LOCAL_TEMP=str(work / "ansible"),
        ANSIBLE_NOCOLOR="1",
        ANSIBLE_PIPELINING="1",
    )
    _remove_mount_point(root, shared)
    return _built_modules(root, specification["kernel"], specification["modules"])


def _inventory(shell: Path, shared: Path, kernel: dict[str, str]) -> dict[str, Any]:
    """Return an inventory with the tree as its only host, reached through ``shell``."""
    host = {
        "ansible_connection": "local",
        "ansible_shell_executable": str(shell),
        "ansible_remote_tmp": str(shared),
        "ansible_python_interpreter": "/usr/bin/python3",
        "howdah_running": False,
        "howdah_machines": "image",
        "howdah_kernel_package": "external",
        "modules_kernel": kernel["release"],
        "modules_wanted": "headers" in kernel,
    }
    groups: dict[str, Any] = {name: {"hosts": {"image": {}}} for name in ("linux", "monitors")}
    return {"all": {"hosts": {"image": host}, "children": groups}}


def _remove_mount_point(root: Path, shared: Path) -> None:
    place = root / shared.relative_to("/")
    for directory in (place, *place.parents):
        if directory == root or any(directory.iterdir()):
            return
        directory.rmdir()


def _built_modules(root: Path, kernel: dict[str, str], wanted: list[str]) -> dict[str, Any]:
    release = kernel["release"]
    files = (root / "usr/lib/modules" / release).glob("updates/dkms/*")
    built = sorted(file.name.partition(".ko")[0] for file in files)
    left_out = {}
    for record in root.glob(f"usr/src/howdah-*/left-out/{release}"):
        left_out = dict(line.split("\t", 1) for line in record.read_text().splitlines())
    if "headers" not in kernel:
        left_out = dict.fromkeys(wanted, f"there are no headers of {release} to build it with")
    return {"modules_built": built, "modules_left_out": left_out}


def _link(place: Path, target: str) -> None:
    place.unlink(missing_ok=True)
    place.symlink_to(target)


def _finish(root: Path) -> None:
    for name in _EMPTIED:
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).mkdir(parents=True)
    # Newer than /usr, so that no unit updates anything at boot (ConditionNeedsUpdate=).
    for name in ("etc/.updated", "var/.updated"):
        (root / name).touch()
        os.utime(root / name, (time.time() + 1, time.time() + 1))


def main(arguments: list[str]) -> int:
    try:
        make(json.loads(Path(arguments[0]).read_text()))
    except subprocess.CalledProcessError as error:
        sys.stdout.write(f"{error.cmd[0]} ended with status {error.returncode}\n")
        return 1
    except OSError as error:
        sys.stdout.write(f"{error.filename}: {error.strerror}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
