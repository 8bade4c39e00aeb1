# SPDX-License-Identifier: Apache-2.0
"""Runs in the machine at the end: ``deliver.py DIRECTORY DISK`` writes a directory as a tar archive to a disk.

The disk exists only for this. A disk lets the clock run away while its writer waits, which is harmless at the end;
during a run nothing accesses it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path

_DRIVERS = ("virtio_pci", "virtio_blk")  # modules, or built in
_APPEARS_S = 30


def main() -> None:
    directory, disk = Path(sys.argv[1]), Path(sys.argv[2])
    subprocess.run(["/usr/sbin/modprobe", "--all", *_DRIVERS], check=True)
    end = time.monotonic() + _APPEARS_S
    while not disk.exists() and time.monotonic() < end:
        time.sleep(0.01)
    with disk.open("r+b", buffering=0) as raw:
        with tarfile.open(fileobj=raw, mode="w|", bufsize=1 << 20) as archive:
            for name in sorted(path.name for path in directory.iterdir()):
                archive.add(directory / name, name)
        os.fsync(raw.fileno())


if __name__ == "__main__":
    main()
