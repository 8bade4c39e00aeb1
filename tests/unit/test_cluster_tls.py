# SPDX-License-Identifier: Apache-2.0
"""Certificates over real connections: who has them is taken, and everyone else is told why not."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

from howdah.cluster.certificate import AUTHORITY, make_certificates
from howdah.cluster.connect import connected
from howdah.cluster.place import Place
from howdah.cluster.reach import check_scheduler
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
    assert "asks for a certificate, and none was given" in said
    assert "--tls DIR" in said


def test_those_of_another_authority(secured: Secured) -> None:
    assert "the scheduler's certificate is not accepted" in _refusal(secured.place(secured.foreign))


def test_a_certificate_of_another_authority_than_the_clusters(secured: Secured) -> None:
    said = _refusal(secured.place(secured.mixed))
    assert "the scheduler refused our certificate" in said
    assert str(secured.mixed) in said


def test_an_address_without_tls(secured: Secured) -> None:
    assert "this address has no TLS" in _refusal(secured.place(secured.own, "tcp"))
    assert "this scheduler speaks TLS alone" in _refusal(secured.place(None, "tcp"))


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
