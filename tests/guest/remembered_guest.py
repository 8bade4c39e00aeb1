# SPDX-License-Identifier: Apache-2.0
"""Guests that run a script of a test: what one wrote is remembered by all that it is made of (remembered_run.py).

For tests of what happens in the kernel. One that is about how guests are started, watched or ended calls ``boot``.
"""

from __future__ import annotations

from howdah.build.cache import content_key
from howdah.engine.uml.build import Built
from howdah.engine.uml.guest import Guest, boot
from howdah.record.directory import RunDirectory
from tests.guest.remembered_run import launcher_sha256, recall, remember

_PLACES = ("kernel", "tree", "tools", "share", "raw", "console")  # what is there is looked at, not where


def key_of(built: Built, guest: Guest) -> str:
    """Of what the guest would write."""
    names = [str(path.relative_to(guest.share)) for path in sorted(guest.share.rglob("*")) if path.is_file()]
    contents = [(guest.share / name).read_bytes() for name in names]
    values = {name: value for name, value in vars(guest).items() if name not in _PLACES}
    made_of = (built.kernel.image_sha256, built.tree.sha256, built.tools.key, launcher_sha256())
    return content_key(*made_of, repr(sorted(values.items())), *names, *contents)


def run_once(built: Built, guest: Guest) -> int | None:
    """Boot it, unless an equal one has ended with status 0 before; the status. raw/ has what it wrote."""
    assert guest.raw == guest.share.parent / "raw"
    key, directory = key_of(built, guest), RunDirectory(guest.share.parent)
    recalled = RunDirectory(directory.path / "recalled")
    if recall(key, recalled.path):
        guest.raw.rmdir()
        recalled.raw.rename(guest.raw)
        recalled.path.rmdir()
        return 0
    status = boot(guest, lambda _phase, _done, _of: None).exit_status
    if status == 0:
        remember(key, directory)
    return status
