# SPDX-License-Identifier: Apache-2.0
"""Certificates over real connections: who has them is taken, and everyone else is told why not."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

from howdah.cluster.connect import connected
from howdah.cluster.place import Place
from howdah.cluster.reach import AUTHORITY, check_scheduler, make_certificates, own_host
from howdah.cluster.serve import run_scheduler, run_worker
from howdah.engine.life import descendants
from howdah.errors import HowdahError
from tests.cluster_processes import Processes


@dataclass
class Secured:
    processes: Processes
    own: Path
    foreign: Path  # of another authority
    mixed: Path  # trusts the cluster's authority, and has a certificate of another one

    def place(self, tls: Path | None, scheme: str = "tls") -> Place:
        return Place(scheduler=self.processes.address.replace("tls", scheme, 1), tls=tls)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    place = tmp_path_factory.mktemp("tls")
    own, foreign, mixed = (place / name for name in ("own", "foreign", "mixed"))
    for directory in (own, foreign):
        make_certificates(directory, 1)
    shutil.copytree(foreign, mixed)
    shutil.copyfile(own / AUTHORITY, mixed / AUTHORITY)
    processes = Processes(place, own)
    try:
        yield Secured(processes, own, foreign, mixed)
    finally:
        processes.end()


def _refusal(place: Place) -> str:
    with pytest.raises(HowdahError) as raised, connected(place, lambda _text: None):
        pass
    return str(raised.value)


def test_who_has_the_certificates_is_taken(secured: Secured) -> None:
    with connected(secured.place(secured.own), lambda _text: None) as client:
        assert client.scheduler_info()["address"] == secured.processes.address


def test_none_at_all(secured: Secured) -> None:
    said = _refusal(secured.place(None))
    assert "requires a certificate, and none was given" in said
    assert "--tls DIR" in said


def test_those_of_another_authority(secured: Secured) -> None:
    assert "the scheduler's certificate is not accepted" in _refusal(secured.place(secured.foreign))


def test_a_certificate_of_another_authority_than_the_clusters(secured: Secured) -> None:
    said = _refusal(secured.place(secured.mixed))
    assert "the scheduler refused our certificate" in said
    assert str(secured.mixed) in said


def test_an_address_without_tls(secured: Secured) -> None:
    assert "this address has no TLS" in _refusal(secured.place(secured.own, "tcp"))
    assert "this scheduler accepts only TLS" in _refusal(secured.place(None, "tcp"))


def test_files_that_are_no_certificates(secured: Secured, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(secured.own, broken)
    (broken / AUTHORITY).write_text("nothing\n")
    assert "these certificates cannot be used" in _refusal(secured.place(broken))


def test_a_worker_that_is_refused_says_why_and_ends(secured: Secured) -> None:
    assert "the scheduler refused our certificate" in secured.processes.refused_worker("stranger", secured.mixed)


def test_a_server_that_has_no_tls(secured: Secured) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        answered = threading.Thread(target=lambda: server.accept()[0].sendall(b"\0" * 64))
        answered.start()
        with pytest.raises(HowdahError, match="there is no TLS at this address"):
            check_scheduler(f"tls://127.0.0.1:{server.getsockname()[1]}", secured.own, 5.0)
        answered.join()


def _listening(process: int) -> set[str]:
    """Addresses at which a process and its children listen, by the kernel's own tables."""
    sockets = set()
    for each in (process, *descendants(process)):
        for descriptor in Path(f"/proc/{each}/fd").iterdir():
            with suppress(OSError):
                sockets.add(str(descriptor.readlink()))
    found = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                raw = bytes.fromhex(fields[1].partition(":")[0])
                words = [raw[at : at + 4][::-1] for at in range(0, len(raw), 4)]
                found.add(socket.inet_ntop(family, b"".join(words)))
    return found


def test_scheduler_and_worker_listen_on_loopback_alone(secured: Secured, tmp_path: Path) -> None:
    plain = Processes(tmp_path)
    try:
        workers = [secured.processes.worker("listener").pid, plain.worker("listener").pid]
        for process in (secured.processes.scheduler.pid, plain.scheduler.pid, *workers):
            assert _listening(process) == {"127.0.0.1"}
    finally:
        plain.end()


@pytest.mark.parametrize(
    "act",
    [
        lambda: run_scheduler("0.0.0.0", 0, None, None, print),
        lambda: run_worker("tcp://127.0.0.1:8786", 1, "0.0.0.0", None, print),
        lambda: run_worker("tcp://192.0.2.1:8786", 1, None, None, print),
        lambda: check_scheduler("tcp://192.0.2.1:8786", None, 1.0),
        lambda: check_scheduler("tcp://scheduler.example:8786", None, 1.0),
        lambda: check_scheduler("tcp://[2001:db8::1]:8786", None, 1.0),
    ],
)
def test_nothing_goes_beyond_loopback_without_certificates(act: Callable[[], None]) -> None:
    with pytest.raises(HowdahError, match="could run programs") as raised:
        act()
    assert "--tls" in str(raised.value.hint)


def test_a_worker_listens_where_its_scheduler_reaches_it() -> None:
    assert own_host("tcp://127.0.0.1:8786") == "127.0.0.1"
    assert own_host("tls://localhost:8786") == "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect(("192.0.2.1", 9))  # documentation's network: nothing is sent
        except OSError:
            pytest.skip("this machine has no way out")
        assert own_host("tls://192.0.2.1:8786") == asked.getsockname()[0] != "0.0.0.0"
