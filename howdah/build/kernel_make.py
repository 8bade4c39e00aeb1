# SPDX-License-Identifier: Apache-2.0
"""``make`` as all builds of kernels and modules call it: the same for everybody, whatever their environment."""

from __future__ import annotations

from pathlib import Path

# The version string is stirred into the guest's random numbers, and the image's hash is part of every run's key:
# neither may depend on when and by whom the kernel was built.
FIXED = {
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_USER": "howdah",
    "KBUILD_BUILD_HOST": "howdah",
    "KBUILD_BUILD_VERSION": "1",
}
# What make and compilers see of the environment. Kbuild takes much of what it does from there (KCFLAGS, LOCALVERSION,
# KCONFIG_CONFIG, CROSS_COMPILE …), of which no key knows.
INHERITED = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "LD_PRELOAD")
# The kernel's makefiles ask for the large code model, in which every call goes through a 64-bit constant. The image is
# linked at 0x60000000, where the small one does and is 15 % faster. Modules live beyond 2 GiB and keep the large one.
IMAGE_FLAGS = "KCFLAGS=-mcmodel=small"


def make_command(source_dir: Path, build_dir: Path, *arguments: str) -> list[str]:
    """``make`` for the user-mode architecture, with output apart from the source."""
    return ["make", "-C", str(source_dir), f"O={build_dir}", "ARCH=um", *arguments]
