# SPDX-License-Identifier: Apache-2.0
"""Prepare the workers of a cluster: check each, send what it lacks, and refuse those that cannot make the runs.

Pieces that a worker has in a bundle of its own (howdah/build/supply.py) are found by digest. Only the rest is sent.
"""

from __future__ import annotations

import json
import platform
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from distributed import Client

from howdah.build.cache import Cache, content_key
from howdah.build.packed_piece import PackedPiece, Piece, pack_piece
from howdah.build.supply import digest_of
from howdah.cluster import worker
from howdah.cluster.message import About, Delivery, MadeRun, WantedBundle, WorkerUnreachableError, call
from howdah.cluster.store import Store
from howdah.codec import decoded
from howdah.engine.engine_bundle import EngineBundle
from howdah.errors import HowdahError
from howdah.publish.sweep import SweepNumbers
from howdah.record.provenance import agent_sha256, analysis_sha256
from howdah.work.display import simulated_s, time_left
from howdah.work.experiment import LEAST_FREE_BYTES
from howdah.work.job import Outcome, Rest, Work

_LOOK_EVERY_S = 1.0
_ROOM_EVERY_S = 5.0  # between checks of full disks
Heard = Callable[[str, Any], None]  # the event's kind and its object


@dataclass
class Load:
    """What the runs of a batch need. A piece is packed when the first worker lacks it."""

    bundles: list[EngineBundle]
    cache: Cache
    _packed: dict[str, tuple[PackedPiece, Path]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def pieces(self) -> dict[str, Piece]:
        return {piece.name: piece for bundle in self.bundles for piece in bundle.pieces.values()}

    def of_bundles(self) -> dict[str, PackedPiece]:
        """Return the pieces that this machine got in a bundle, with their digests in that bundle."""
        found = {}
        for name in self.pieces():
            kind, _, key = name.partition("/")
            ready = digest_of(kind, key, self.cache)
            if ready is not None:
                found[name] = PackedPiece(name, ready.sha256, ready.size)
        return found

    def packed(self, piece: Piece) -> tuple[PackedPiece, Path]:
        """Return the packed piece and its file. Raise HowdahError if it cannot be made."""
        with self._lock:
            if piece.name not in self._packed:
                self._packed[piece.name] = pack_piece(piece, self.cache)
            return self._packed[piece.name]

    def described(self, bundle: EngineBundle, there: dict[str, PackedPiece] | None) -> WantedBundle:
        """Describe a bundle for a worker. ``there``: its pieces by name; None for a worker that shares this cache."""
        programs = {piece.name: piece.programs for piece in bundle.pieces.values() if piece.programs}
        about = WantedBundle(identity(bundle), bundle.engine, bundle.content, programs)
        if there is None:
            return replace(about, own=tuple(bundle.pieces))
        return replace(about, packed_pieces=tuple(there[name] for name in bundle.pieces))


def identity(bundle: EngineBundle) -> str:
    """Return the ID of a bundle, made from the keys of its pieces."""
    return content_key(bundle.engine, json.dumps([bundle.content, sorted(bundle.pieces)], sort_keys=True))


@dataclass
class Member:
    """A worker. Workers with the same ``store`` share what was sent; ``refused`` is the reason why it is not used.

    A ``full`` worker is used again when its disk has room. ``making`` has the keys of runs that it was already making
    when it joined, for a scheduler that it had lost.
    """

    address: str
    ready: bool = False
    refused: str | None = None
    host: str = ""
    store: str = ""
    slots: int = 0
    seconds: float = 0.0  # to become ready
    full: bool = False
    making: list[str] = field(default_factory=list)


class Workers:
    """The workers of a batch. Until it is closed, other threads call ``heard`` with ``ready``, ``refused`` or
    ``unfetched``.

    ``sending`` has a lock for each store of workers, which the batches of a command share: a batch waits for pieces
    that the previous one is still sending, instead of sending them again.
    """

    def __init__(self, client: Client, load: Load, heard: Heard, sending: Mapping[str, threading.Lock]) -> None:
        self.client = client
        self._load = load
        self._store = Store(load.cache).name
        self._tell = heard
        self.sent_bytes = 0  # by this process; data between workers are not counted
        self._members: dict[str, Member] = {}
        self._stores: dict[str, str] = {}
        self._lock = threading.Lock()
        self._sending = sending
        self._ended = threading.Event()
        # Not in a thread, where Python 3.11's parser may fail.
        self._own = {"agent": agent_sha256(), "analysis": analysis_sha256()}
        self._thread = threading.Thread(target=self._watch, name="howdah workers", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()

    def _notify(self, what: str, about: Any) -> None:
        if not self._ended.is_set():
            self._tell(what, about)

    @property
    def members(self) -> list[Member]:
        with self._lock:
            return list(self._members.values())

    @property
    def ready(self) -> list[Member]:
        return [each for each in self.members if each.ready]

    @property
    def slots(self) -> int:
        return sum(each.slots for each in self.ready)

    def forget(self, address: str) -> None:
        """Prepare a worker again, because it reported that something is missing."""
        with self._lock:
            known = self._members.get(address)
            if known is not None and not known.ready:
                return  # it is being prepared, or is refused
            member = self._members[address] = Member(address)
        threading.Thread(target=self._make_ready, args=(member,), daemon=True).start()

    def store_of(self, address: str) -> str:
        """Return the store of a worker, even a lost one; empty if it was never prepared."""
        return self._stores.get(address, "")

    def shares_our_disk(self, address: str) -> bool:
        """Return whether a worker uses the cache of this command."""
        return self.store_of(address) == self._store

    def refuse(self, address: str, why: str, *, full: bool = False) -> None:
        """Stop using this worker. If its disk is ``full``, stop using all that share it until it has room."""
        with self._lock:
            first = self._members.get(address)
            chosen = [
                each
                for each in self._members.values()
                if each is first or (full and first is not None and each.store == first.store and not each.full)
            ]
            for each in chosen:
                each.ready, each.refused, each.full = False, why, full
        for each in chosen:
            self._notify("refused", each)

    def _watch(self) -> None:
        room_due = time.monotonic()
        while not self._ended.is_set():
            try:
                there = set(self.client.scheduler_info()["workers"])
            except (OSError, KeyError, ValueError, RuntimeError):
                there = set()  # reconnecting
            with self._lock:
                for gone in self._members.keys() - there:
                    del self._members[gone]
                new = [Member(address) for address in there - self._members.keys()]
                self._members |= {each.address: each for each in new}
            for each in new:
                threading.Thread(target=self._make_ready, args=(each,), daemon=True).start()
            if time.monotonic() >= room_due:
                room_due = time.monotonic() + _ROOM_EVERY_S
                for each in self.members:
                    if each.full:
                        threading.Thread(target=self._look_for_room, args=(each,), daemon=True).start()
            self._ended.wait(_LOOK_EVERY_S)

    def _look_for_room(self, member: Member) -> None:
        """Use a worker again whose disk was full, if it has room now."""
        with suppress(HowdahError, RuntimeError):
            if call(self.client, member.address, worker.free_bytes) < 2 * LEAST_FREE_BYTES:
                return
            with self._lock:
                if self._members.get(member.address) is not member or not member.full:
                    return
                again = self._members[member.address] = Member(member.address)
            self._make_ready(again)

    def _make_ready(self, member: Member) -> None:
        begun = time.monotonic()
        try:
            unfetched = self._prepare(member)
        except WorkerUnreachableError:
            with self._lock:  # the next look adds it again if the scheduler still has it
                if self._members.get(member.address) is member:
                    del self._members[member.address]
            return
        except HowdahError as error:
            member.refused = f"{error.what} ({error.hint})" if error.hint else error.what
            self._notify("refused", member)
            return
        except Exception as error:  # noqa: BLE001 - a thread that ends unheard would leave the worker in doubt
            member.refused = f"{type(error).__name__}: {error}"
            self._notify("refused", member)
            return
        for made in unfetched:  # before the worker gets a job
            self._notify("unfetched", Delivery(made, member.address, member.host))
        member.seconds = time.monotonic() - begun
        member.ready = True
        self._notify("ready", member)

    def _prepare(self, member: Member) -> list[MadeRun]:
        """Prepare a worker and return its runs that nobody has fetched. Raise HowdahError if it cannot be used."""
        description = call(self.client, member.address, worker.hello)
        check(description, self._own)
        about = decoded(About, description)
        member.host, member.store, member.slots, member.making = about.host, about.store, about.slots, about.making
        self._stores[member.address] = member.store
        with self._sending[member.store]:  # so that workers of one machine do not receive the same piece
            there = None if member.store == self._store else self._send_missing(member)
            for bundle in self._load.bundles:
                call(self.client, member.address, worker.take_bundle, self._load.described(bundle, there))
        return about.unfetched

    def _send_missing(self, member: Member) -> dict[str, PackedPiece]:
        """Send what a worker lacks. Return all pieces by name, as the worker then has them."""
        there = self._load.of_bundles()
        lacks = self._lacks(member, there)
        for name, piece in self._load.pieces().items():
            if name not in there or there[name].sha256 in lacks:
                there[name] = self._load.packed(piece)[0]
        for sha256 in self._lacks(member, there):
            name = next(name for name, each in there.items() if each.sha256 == sha256)
            self._send(member, *self._load.packed(self._load.pieces()[name]))
        return there

    def _lacks(self, member: Member, pieces: dict[str, PackedPiece]) -> list[str]:
        described = list(pieces.values())
        lacks: list[str] = call(self.client, member.address, worker.lacks, described) if described else []
        return lacks

    def _send(self, member: Member, packed_piece: PackedPiece, file: Path) -> None:
        transfer = secrets.token_hex(16)
        offset = 0
        with file.open("rb") as opened:
            while offset < packed_piece.size:
                opened.seek(offset)
                chunk = opened.read(worker.CHUNK_BYTES)
                offset = call(self.client, member.address, worker.take_chunk, packed_piece, transfer, offset, chunk)
                with self._lock:
                    self.sent_bytes += len(chunk)


def check(about: Mapping[str, Any], wanted: Mapping[str, str]) -> None:
    """Check the description of a worker, which may have another version of howdah.

    Raise HowdahError if its runs would differ from this machine's.
    """
    if about["machine"] != platform.machine():
        raise HowdahError(f"it is a {about['machine']}, and the kernels are for {platform.machine()}")
    for name, own in wanted.items():
        if about[name] != own:
            raise HowdahError(
                f"it has another howdah ({about['version']}, {name} {about[name][:12]}; here {own[:12]})",
                hint="install the same version on all machines",
            )


_EVERY_S = 1.0


class Tally:
    """Writes the numbers of a cluster's runs during a command, for ``howdah serve``; counts all batches of the command.

    ``runs`` is the directory for the file; None writes nothing.
    """

    def __init__(self, runs: Path | None) -> None:
        self.sweep = SweepNumbers()
        self._runs = runs
        self._sent_before = 0
        self._due = 0.0

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Count outcomes that ended."""
        made = [each for each in outcomes if each.error is None]
        self.sweep.runs["made"] += len(made)
        self.sweep.runs["failed"] += len(outcomes) - len(made)
        self.sweep.simulated_s += simulated_s(made)

    def show(self, active: list[Work], handed: int, workers: Workers, outcomes: Sequence[Outcome], rest: Rest) -> None:
        """Write the numbers once a second; ``outcomes`` and ``rest`` are those that a batch reports."""
        if self._runs is None or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _EVERY_S
        members = workers.members
        waiting = rest.total - rest.past.count - len(outcomes) - len(active) - handed
        self.sweep.runs |= {"in_progress": len(active), "handed": handed, "waiting": waiting}
        self.sweep.left_s = time_left(active, list(outcomes), rest)
        ready, refused = sum(each.ready for each in members), sum(each.refused is not None for each in members)
        self.sweep.workers = {"ready": ready, "preparing": len(members) - ready - refused, "refused": refused}
        self.sweep.slots = workers.slots
        self.sweep.sent_bytes = self._sent_before + workers.sent_bytes
        with suppress(OSError):  # a full disk is reported where it matters more
            self.sweep.write(self._runs)

    def close(self, workers: Workers) -> None:
        """Remove the file at the end of a batch."""
        self._sent_before += workers.sent_bytes
        self._due = 0.0
        if self._runs is not None:
            with suppress(OSError):
                self.sweep.remove(self._runs)
