# SPDX-License-Identifier: Apache-2.0
"""Hostile packs, made from a good one: given to verify, unpack, and to what reads an unpacked experiment.

A command refuses or does its work. It writes nowhere but where it was told to, leaves nothing in the temporary place,
runs no code of the pack, is bounded in time and memory, prints no control character, and calls no lie verified.
"""

from __future__ import annotations

import copy
import gzip
import hashlib
import io
import json
import lzma
import random
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zstandard

from tests.faults.bounded import run_bounded
from tests.faults.mutation import Corpus, Mutator
from tests.faults.pack_file import INDEX, Members, members_of, packed
from tests.faults.sandbox import NAME, Sandbox
from tests.faults.trial import Case, CommandTrials

_BOMB_BYTES = 1 << 30
NAMES = (
    *("../../canary", "/tmp/canary", "a/../../canary", "..", ".", "", "-rf", ".profile", "\x1b[2J\x1b]0;x\x07", "a\nb"),
    *("\u202egpj", "a" * 300, "a/" * 60 + "a", "con\\..\\x", "howdah/__init__.py", "sitecustomize.py", "json.py", "~"),
)
ESCAPES = ("\x1b[2K\r✓ verified", "\x1b]0;title\x07", "\x9b31m", "\x1b[8m", "a\rb", "[red]x[/red]", "[/]")
# What ``verify`` may never call good: the data, the plan or the set of files is another.
_LIES = ("digest", "bomb", "plan", "extra", "name", "link", "twice", "missing")


class Packs(CommandTrials):
    """``make(n)`` is the same for ever, for one good pack."""

    def __init__(self, sandbox: Sandbox, seed: int) -> None:
        self.sandbox = sandbox
        self.seed = seed
        self.canary = sandbox.root / "canary"
        self.file = sandbox.root / "hostile.howdah.tar.zst"
        good = sandbox.root / "good.howdah.tar.zst"
        assert sandbox.reference is not None
        for words in (["pack", str(sandbox.reference), "-o", str(good)], ["verify", str(good)]):
            status, faults = run_bounded(sandbox, words)
            if status or faults:
                raise AssertionError(f"the good pack: {words[0]} ended with {status}: {faults} {sandbox.said()}")
        self.members = members_of(good)
        self.index_name = next(each.name for each, _ in self.members if each.name.endswith(INDEX))
        self.prefix = self.index_name.removesuffix("pack.json")
        index = json.loads(self._bytes(self.index_name))
        self.corpus = Corpus.of({"pack.json": json.dumps(index)}, {"pack.json": index}, [])

    def _bytes(self, name: str) -> bytes:
        return next(content for each, content in self.members if each.name == name)

    def make(self, number: int) -> Case:
        chance = random.Random(f"packs-{self.seed}-{number}")
        kinds = {name.removeprefix("_make_"): getattr(self, name) for name in dir(self) if name.startswith("_make_")}
        kind = list(kinds)[number % len(kinds)]
        made = kinds[kind]([(copy.copy(each), content) for each, content in self.members], chance)
        self.file.write_bytes(made if isinstance(made, bytes) else packed(made))
        return Case(number, "pack", kind, {"rerun": chance.random() < 0.2}, b"")

    # Each changes the members of the good pack, or gives the bytes of a file.

    def _make_name(self, members: Members, chance: random.Random) -> Members:
        at = self._any(members, chance)
        member, content = members[at]
        old, new = member.name.removeprefix(self.prefix), chance.choice(NAMES)
        if chance.random() < 0.5:
            new = f"{Path(old).parent}/{new}"
        member.name = self.prefix + new if chance.random() < 0.8 else new
        return self._listed(members, old, new, content)

    def _make_link(self, members: Members, chance: random.Random) -> Members:
        member, _ = members[at := self._any(members, chance)]
        member.type = chance.choice([tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, b"S"])
        member.linkname = chance.choice(["/etc/passwd", "../../../victim/secret", member.name, "."])
        member.devmajor, member.devminor, member.size = 1, 5, 0
        members[at] = (member, b"")
        return members

    def _make_twice(self, members: Members, chance: random.Random) -> Members:
        member, content = members[self._any(members, chance)]
        return [*members, (copy.copy(member), content[::-1])]

    def _make_missing(self, members: Members, chance: random.Random) -> Members:
        del members[self._any(members, chance)]
        return members

    def _make_index(self, members: Members, chance: random.Random) -> Members:
        tree = Mutator(self.corpus, chance).tree(self.corpus.trees["pack.json"])
        return self._with(members, self.index_name, json.dumps(tree).encode("utf-8", "surrogatepass"))

    def _make_odd_json(self, members: Members, chance: random.Random) -> Members:
        text = chance.choice(
            [b"[" * 200_000, b'{"a":' * 100_000, b"[" + b"[]," * 6_000_000 + b"0]", b"9" * 50_000, b"NaN", b"\xff\xfe",
             b'{"format": 1e999}', b'"\\ud800"', b'{"a": 1, "a": 2}']
        )  # fmt: skip
        names = [self.index_name, *(each.name for each, _ in members if each.name.endswith(".json"))]
        name = chance.choice(names)
        members = self._with(members, name, text)
        return members if name == self.index_name else self._listed(members, self._short(name), None, text)

    def _make_bomb(self, members: Members, chance: random.Random) -> Members:
        """A raw file that unpacks to a gigabyte, with the digests that it has."""
        raw = [each.name for each, _ in members if "/raw/" in each.name]
        name = chance.choice(raw)
        bomb = chance.choice([_bomb_zstd, _bomb_gz, _bomb_xz])()
        return self._listed(self._with(members, name, bomb), self._short(name), None, bomb)

    def _make_whole_bomb(self, _members: Members, _chance: random.Random) -> bytes:
        return _bomb_zstd()

    def _make_digest(self, members: Members, chance: random.Random) -> Members:
        member, content = members[at := self._any(members, chance)]
        place = chance.randrange(len(content)) if content else 0
        content = content[:place] + bytes([content[place] ^ 1 if content else 1]) + content[place + 1 :]
        member.size = len(content)
        members[at] = (member, content)
        return members

    def _make_extra(self, members: Members, chance: random.Random) -> Members:
        """A file that Python, make or a shell would run."""
        name = chance.choice(
            ["howdah/__init__.py", "sitecustomize.py", f"{NAME}/json.py", "Makefile", f"{NAME}/Kbuild"]
        )
        content = f"open({str(self.canary)!r}, 'w')\n# $(shell touch {self.canary})\n".encode()
        member = tarfile.TarInfo(self.prefix + name)
        member.size = len(content)
        return self._listed([*members, (member, content)], name, name, content)

    def _make_plan(self, members: Members, chance: random.Random) -> Members:
        """A plan that names what is on this machine, sealed anew."""
        name = chance.choice([each.name for each, _ in members if each.name.endswith("/plan.json")])
        plan = json.loads(self._bytes(name))
        shell = f"touch {self.canary}"
        module = {"name": "evil", "source": str(self.sandbox.root / "victim"), "parameters": {}}
        plan |= chance.choice(
            [{"engine": "host"}, {"modules": [module]}, {"kernel": str(self.sandbox.root / "victim")},
             {"kernel": {"path": "/bin/sh"}}, {"programs": [{"command": ["sh", "-c", shell], "files": [
                 {"name": str(self.sandbox.root / "victim" / "secret"), "path": "/etc/passwd", "sha256": "0" * 64}]}]},
             {"stack": {"build": ["sh", "-c", shell]}}, {"seed": 999}, {"name": chance.choice(ESCAPES)}]
        )  # fmt: skip
        return self._resealed(members, name, json.dumps(plan).encode())

    def _make_escape(self, members: Members, chance: random.Random) -> Members:
        """Control characters in what is printed of a run."""
        name = chance.choice([each.name for each, _ in members if each.name.endswith(("/run.json", "experiment.json"))])
        tree = json.loads(self._bytes(name))
        for key in chance.sample(sorted(tree), min(len(tree), 3)):
            tree[key] = chance.choice(ESCAPES)
        content = json.dumps(tree).encode()
        return self._listed(self._with(members, name, content), self._short(name), None, content)

    def _make_signature(self, members: Members, chance: random.Random) -> Members:
        name = chance.choice([each.name for each, _ in members if each.name.endswith("/run.json")])
        content = chance.choice([b"", b"-----BEGIN SSH SIGNATURE-----\nAAAA\n", b"\x1b[2J" * 50, b"x" * 5_000_000])
        member = tarfile.TarInfo(name + chance.choice([".sig", ".minisig"]))
        member.size = len(content)
        short = self._short(member.name)
        return self._listed([*members, (member, content)], short, short, content)

    def _make_damaged(self, members: Members, chance: random.Random) -> bytes:
        return Mutator(self.corpus, chance).damaged(packed(members))

    def _short(self, name: str) -> str:
        return name.removeprefix(self.prefix)

    def _any(self, members: Members, chance: random.Random) -> int:
        """A file of the experiment: what stands beside it says nothing of results."""
        return chance.choice(
            [at for at, (each, _) in enumerate(members) if each.name.startswith(f"{self.prefix}{NAME}/")]
        )

    def _with(self, members: Members, name: str, content: bytes) -> Members:
        for at, (member, _) in enumerate(members):
            if member.name == name:
                member.size = len(content)
                members[at] = (member, content)
        return members

    def _listed(self, members: Members, old: str, new: str | None, content: bytes) -> Members:
        """The index says ``new`` (``old`` where it is None) with the digest of this content."""
        index = json.loads(next(content for member, content in members if member.name == self.index_name))
        if new is not None:
            index["files"].pop(old, None)
        index["files"][old if new is None else new] = {
            "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()
        }  # fmt: skip
        return self._with(members, self.index_name, json.dumps(index).encode("utf-8", "surrogatepass"))

    def _resealed(self, members: Members, name: str, content: bytes) -> Members:
        """The file changed, with run.json's digest of it and the index's of both."""
        record_name = f"{name.removesuffix('/share/plan.json').removesuffix('/plan.json')}/run.json"
        record = json.loads(self._bytes(record_name))
        record.setdefault("digests", {})[name.rpartition("/")[2]] = hashlib.sha256(content).hexdigest()
        sealed = json.dumps(record).encode()
        members = self._with(self._with(members, name, content), record_name, sealed)
        return self._listed(
            self._listed(members, self._short(name), None, content), self._short(record_name), None, sealed
        )

    def tried(self, case: Case) -> tuple[bool, list[str]]:
        there = self.sandbox.root / "unpacked"
        shutil.rmtree(there, ignore_errors=True)
        victim = self.sandbox.root / "victim"
        victim.mkdir(exist_ok=True)
        (victim / "secret").write_text("mine")
        (victim / "Kbuild").write_text(f"$(shell touch {self.canary})\n")
        before = self._seen()
        faults = []
        status, found = run_bounded(self.sandbox, ["verify", str(self.file)])
        faults += found
        if status == 0 and case.base in _LIES:
            faults.append(f"verify calls a lie good: {self.sandbox.said()[-300:]!r}")
        if case.request["rerun"]:
            faults += run_bounded(self.sandbox, ["verify", "--rerun", str(self.file)], space_bytes=None)[1]
        unpacked, found = run_bounded(self.sandbox, ["unpack", str(self.file), str(there)])
        faults += found
        if unpacked and there.exists():
            faults.append("unpack was refused and left its directory")
        if there.exists():
            for words in (["list"], ["report", NAME, "--without-prometheus"], ["compare", NAME, NAME]):
                faults += run_bounded(self.sandbox, [*words, "--runs", str(there)])[1]
        shutil.rmtree(there, ignore_errors=True)
        if self.canary.exists():
            faults.append("code of the pack ran")
            self.canary.unlink()
        if changed := sorted(set(self._seen().items()) ^ set(before.items())):
            faults.append(f"written outside of where it was told to: {changed[:3]}")
        faults += [*self.sandbox.at_once(), *self.sandbox.left()]
        self.sandbox.clear_left()
        return status != 0, faults

    def _seen(self) -> dict[str, str]:
        """Files that no command may touch."""
        root = self.sandbox.root
        names = {f"top {entry.name}": "" for entry in root.iterdir() if entry.name not in ("said.txt", "canary")}
        return names | {str(file): file.read_text() for file in (root / "victim").iterdir()}


def _pieces(write: Callable[[bytes], Any]) -> None:
    for _ in range(_BOMB_BYTES >> 24):
        write(bytes(1 << 24))


def _bomb_zstd() -> bytes:
    machine = zstandard.ZstdCompressor().compressobj()
    pieces: list[bytes] = []
    _pieces(lambda piece: pieces.append(machine.compress(piece)))
    return b"".join([*pieces, machine.flush()])


def _bomb_gz() -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1, mtime=0) as file:
        _pieces(file.write)
    return out.getvalue()


def _bomb_xz() -> bytes:
    machine = lzma.LZMACompressor(preset=0)
    pieces: list[bytes] = []
    _pieces(lambda piece: pieces.append(machine.compress(piece)))
    return b"".join([*pieces, machine.flush()])
