# SPDX-License-Identifier: Apache-2.0
"""Files of YAML and JSON that somebody hands over: bombs in them, their own parts changed, or no files at all.

Profiles, suites and machines files are here for their bombs; ``inputs.py`` changes what is in them.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from howdah.profile.source import parse_yaml
from howdah.record.provenance import sha256_text
from tests.faults.limited import Answer
from tests.faults.mutation import Corpus, Mutator
from tests.faults.trial import ROOT, Case, LimitedTrials
from tests.nightly_factory import sheet

_SPARSE_BYTES = 1 << 40
_ALIASES = "".join(f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9) if at else 'x'}]\n" for at in range(30))


@cache
def yaml_bombs() -> dict[str, str]:
    """By name; they take half a second and a quarter of a gigabyte: who only imports this makes none."""
    return {
        "aliases": _ALIASES,
        "an alias of itself": "a: &a [*a]\n",
        "merged aliases": "a: &a {b: 1}\nc: {<<: [*a, *a]}\n",
        "deep lists": "a: " + "[" * 500_000,
        "deep mappings": "".join(f"{' ' * at}a:\n" for at in range(2000)),
        "deep flow mappings": "{a: " * 300_000,
        "deep dashes": "- " * 300_000,
        "a huge scalar": f"name: {'x' * 50_000_000}\n",
        "a huge folded scalar": "name: >\n" + " word\n" * 3_000_000,
        "a huge number": f"howdah: {'9' * 1_000_000}\n",
        "a huge float": f"howdah: 1e{'9' * 100_000}\n",
        "a huge key": f"{'k' * 2_000_000}: 1\n",
        "many keys": "".join(f"k{at}: 1\n" for at in range(400_000)),
        "many documents": "---\na: 1\n" * 300_000,
        "many comments": "# c\n" * 3_000_000,
        "many directives": "%TAG ! x\n" * 200_000,
        "many anchors": "".join(f"- &a{at} x\n" for at in range(200_000)),
        "a tag of Python": "!!python/object/apply:os.system [': > {canary}']\n",
        "a tag in a value": "howdah: !!python/name:os.system\nname: !!python/object/new:os.system [': > {canary}']\n",
        "odd tags": "a: !!binary aGk=\nb: !!timestamp 2001-01-01\nc: !!set {{x}}\nd: !<tag:x> y\ne: !!omap [a: 1]\n",
        "escapes": 'name: "\\e[2J\\e]0;x\\a\\x9b31m"\n"\\e[2K": 1\n\u202ekey: 1\n',
        "NUL": "name: a\0b\n",
        "UTF-16": "howdah: 1\n".encode("utf-16").decode("latin-1"),
        "one line": "a" * 9_000_000,
        "returns": "a: 1\r" * 1_000_000,
        "tabs": "\t" * 1_000_000,
    }


@cache
def json_bombs() -> dict[str, str]:
    """By name."""
    return {
        "deep lists": "[" * 500_000,
        "deep objects": '{"a":' * 300_000,
        "many values": "[" + "0," * 20_000_000 + "0]",
        "many empty lists": '{"traces": [' + "[]," * 6_000_000 + "[]]}",
        "a huge number": f'{{"format": {"9" * 1_000_000}}}',
        "a huge float": '{"format": 1e999, "traces": NaN}',
        "a huge text": '{"format": "' + "x" * 50_000_000 + '"}',
        "a lone surrogate": '{"format": "\\ud800", "\\udfff": 1}',
        "twice a name": '{"format": 1, "format": 2}',
        "escapes": '{"format": "\\u001b[2J\\u009b31m"}',
        "records of nothing": "\x1e" * 3_000_000,
        "records that are none": '\x1e1\n\x1e"name"\n\x1e[["name"]]\n\x1e{"name": []}\n\x1e{"name": "recovery:x"}\n',
    }


_ODD_FILES = ("pipe", "/dev/zero", "/dev/full", "directory", "circle", "sparse", "missing", "/proc/self/mem", "socket")
_JSON = ("baseline", "qlog")


class Texts(LimitedTrials):
    """``make(n)`` is the same for ever."""

    limit_s = 5.0

    def __init__(self, directory: Path, seed: int) -> None:
        self.directory = directory
        self.seed = seed
        self.canary = directory / "canary"
        (directory / "lwip").symlink_to(ROOT / "stacks" / "lwip")
        good = {
            "profile": (ROOT / "profiles" / "quick.yaml").read_text(),
            "suite": (ROOT / "profiles" / "suites" / "nightly.yaml").read_text().replace("../", f"{ROOT}/profiles/"),
            "machines": (ROOT / "playbooks" / "machines" / "virtual.yaml").read_text(),
            "thresholds": (ROOT / "reports" / "scores.yaml").read_text(),
            "settings": "queue: short\ncores: 4\nmemory: 8 GB\njobs: 2\njob_extra_directives: ['--exclusive']\n",
            "hosts": "one\ntwo  # the second\nuser@three\n",
            "stack": (ROOT / "stacks" / "lwip.yaml").read_text(),
            "baseline": json.dumps(
                sheet(
                    "mutated", lambda _slug, number: {"utilisation": 0.9, "exit_time_s": float(number)}, repetitions=3
                ).to_json()
            ),
            "qlog": (ROOT / "tests" / "golden" / "quic" / "aioquic.qlog").read_text(),
        }
        records = (ROOT / "tests" / "golden" / "quic" / "ngtcp2.qlog").read_text()
        self.good = {kind: [text] for kind, text in good.items()}
        self.good["qlog"].append(records)
        trees = {kind: text for kind, text in good.items() if kind != "hosts"}
        parsed = {kind: (json.loads if kind in _JSON else _tree)(text) for kind, text in trees.items()}
        self.corpora = {kind: Corpus.of({kind: good[kind]}, {kind: tree}, []) for kind, tree in parsed.items()}

    def make(self, number: int) -> Case:
        chance = random.Random(f"texts-{self.seed}-{number}")
        kind = list(self.good)[number % len(self.good)]
        file = self.directory / f"mutated{'.json' if kind in _JSON else '.yaml'}"
        if file.is_dir() and not file.is_symlink():
            shutil.rmtree(file)
        file.unlink(missing_ok=True)
        draw = chance.random()
        if draw < 0.15:
            name = chance.choice(_ODD_FILES)
            self._put(file, name)
        elif draw < 0.5:
            bombs = json_bombs() if kind in _JSON else yaml_bombs()
            name = chance.choice(list(bombs))
            bomb = bombs[name].replace("{canary}", str(self.canary))
            where = chance.choice(["alone", "below", "above"])
            text = chance.choice(self.good[kind])
            content = bomb if where == "alone" else text + bomb if where == "below" else bomb + text
            file.write_bytes(content.encode("utf-8", "surrogatepass"))
            name = f"{name}, {where}"
        else:
            name, mutator = "changed", Mutator(self.corpora.get(kind, Corpus.of({}, {}, [])), chance)
            if kind == "hosts" or chance.random() < 0.3:
                file.write_bytes(mutator.damaged(chance.choice(self.good[kind]).encode()))
            elif kind == "qlog" and chance.random() < 0.5:
                file.write_bytes(self._records(chance))
            else:
                written = mutator.document()[1]
                file.write_bytes(_resealed(written) if kind == "baseline" else written)
        request = {"kind": kind, "file": str(file), "overrides": [], "quick": False}
        return Case(number, kind, name, request, b"")

    def _records(self, chance: random.Random) -> bytes:
        """A sequence of records with one of them changed."""
        records = self.good["qlog"][1].split("\x1e")
        at = chance.randrange(1, len(records))
        tree = json.loads(records[at])
        own = Mutator(Corpus.of({}, {"record": tree}, []), chance)
        records[at] = json.dumps(own.tree(tree)) + "\n"
        return "\x1e".join(records).encode("utf-8", "surrogatepass")

    def _put(self, file: Path, what: str) -> None:
        match what:
            case "pipe":
                os.mkfifo(file)
            case "directory":
                file.mkdir()
            case "circle":
                file.symlink_to(file.name)
            case "sparse":
                with file.open("wb") as opened:
                    opened.truncate(_SPARSE_BYTES)
            case "missing":
                pass
            case "socket":
                file.symlink_to("/dev/log")
            case _:
                file.symlink_to(what)

    def warm_up(self) -> dict[str, Any]:
        return {"kind": "profile", "file": str(ROOT / "profiles" / "quick.yaml"), "overrides": [], "quick": False}

    @contextlib.contextmanager
    def ready(self) -> Iterator[None]:
        with super().ready():
            for number, (kind, (text, *_)) in enumerate(self.good.items()):  # so that each has loaded its libraries
                file = self.directory / f"good{number}.yaml"
                file.write_text(text)
                self.worker.ask({**self.warm_up(), "kind": kind, "file": str(file)}, 60)
            yield

    def meet(self, case: Case) -> None:
        super().meet(case)
        if self.canary.exists():
            case.fault = f"code of the file ran; {case.fault or ''}"
            self.canary.unlink()

    def wrongly_refused(self, answer: Answer) -> str | None:
        placed = (answer.where or "").startswith(str(self.directory))
        return None if placed else f"refused without a place: {answer.where}: {answer.said}"


def _tree(text: str) -> Any:
    return parse_yaml(text, "good")[0]


def _resealed(content: bytes) -> bytes:
    """A baseline with the digest of what it says, where it can have one."""
    try:
        tree = json.loads(content)
        said = {name: value for name, value in tree.items() if name != "sha256"}
        return json.dumps({**said, "sha256": sha256_text(json.dumps(said, sort_keys=True))}).encode()
    except (ValueError, AttributeError, RecursionError):
        return content
