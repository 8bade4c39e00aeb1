# SPDX-License-Identifier: Apache-2.0
"""A guest whose root is hostile: it reads its share, writes its raw directory, and reaches nothing else of the host."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from howdah.engine.uml.build import Built
from tests.guest.container import in_container
from tests.guest.guest_kit import build_or_skip, run_script

# Every name by which a guest can ask hostfs for a place of the host; the launcher runs in the private directory.
_WAYS = ("{secret}", "/..{secret}", "/../..{secret}", "/../../../../../../../..{secret}", "/in/../../../../..{secret}")

_SCRIPT = """
cd /tmp
try() {{ if "$@" >/dev/null 2>&1; then echo "DONE $*"; else echo "refused $*"; fi; }}
for way in {ways}; do
  mkdir -p mounted
  if mount -t hostfs none mounted -o "hostfs=$way"; then
    try cat mounted/secret.txt
    try sh -c 'echo changed >mounted/secret.txt'
    try sh -c 'echo new >mounted/new.txt'
    try ls mounted
    umount mounted
  else
    echo "refused mount $way"
  fi
done
mount -t hostfs none mounted -o hostfs=/../proc && try cat mounted/{outside}/environ && umount mounted
for kind in "ln -s {secret}/secret.txt /howdah/out/link" "mkfifo /howdah/out/pipe" "mknod /howdah/out/zero c 1 5" \\
            "mknod /howdah/out/disk b 8 0"; do try $kind; done
echo written >/howdah/out/mine.txt && echo "OWN written"
cat /howdah/in/script.sh >/dev/null && echo "OWN read"
try sh -c 'echo x >/howdah/in/script.sh'
"""


@pytest.fixture(scope="module")
def built() -> Built:
    return build_or_skip()


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("outside")
    (directory / "secret.txt").write_text("secret")
    return directory


def test_a_hostile_guest_reaches_its_own_files_alone(built: Built, tmp_path: Path, secret: Path) -> None:
    ways = " ".join(way.format(secret=secret) for way in _WAYS)
    script = _SCRIPT.format(ways=ways, secret=secret, outside=os.getpid())
    ending, said = run_script(built, tmp_path / "run", script)
    assert ending.exit_status == 0, said
    assert "DONE" not in said, said
    assert said.count("refused") >= len(_WAYS) + 5, said
    assert "OWN written" in said and "OWN read" in said
    assert (secret / "secret.txt").read_text() == "secret"
    assert [path.name for path in secret.iterdir()] == ["secret.txt"]
    raw = tmp_path / "run" / "raw"
    assert (raw / "mine.txt").read_text() == "written\n"
    assert [path.name for path in raw.iterdir() if path.is_symlink() or not path.is_file()] == []
    assert ending.bounds is not None
    assert ending.bounds.kept_from == ("files", "network", "privileges")
    assert ending.bounds.addresses_fixed


def test_a_guest_in_a_container_has_the_same_memory(built: Built, tmp_path: Path) -> None:
    """Docker forbids to switch address randomisation off. The gap before the heap would become the guest's memory."""
    script = "grep -E 'MemTotal|CommitLimit' /proc/meminfo >/howdah/out/memory.txt"
    places = [tmp_path / name for name in ("free", "once", "again")]

    def boot(place: Path) -> None:
        ending, _ = run_script(built, place, script)
        assert ending.bounds is not None
        (place / "fixed.txt").write_text(str(ending.bounds.addresses_fixed))

    boot(places[0])
    for place in places[1:]:
        assert in_container(lambda place=place: boot(place)) == 0  # type: ignore[misc]
    memory = [(place / "raw" / "memory.txt").read_text() for place in places]
    bounds = [(place / "fixed.txt").read_text() for place in places]
    assert memory[1:] == memory[:1] * 2
    assert bounds == ["True"] * 3
