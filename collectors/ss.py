# SPDX-License-Identifier: Apache-2.0
"""The ss tool's view of the flows, as a cross-check of tcp_info."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from collectors.batch import Batch
from collectors.collector import Collector, CollectorError, Surroundings
from howdah.linux.netlink.diag import SOCK_DIAG_BY_FAMILY, diag_request
from howdah.linux.netlink.message import NETLINK_SOCK_DIAG, NLMSG_DONE, build

COMMAND = ["ss", "--tcp", "--info", "--numeric", "--memory", "--oneline", "--extended"]

# The extensions that ss requests: INET_DIAG_MEMINFO, INFO, VEGASINFO, CONG, SKMEMINFO.
_EXTENSIONS = sum(1 << (attribute - 1) for attribute in (1, 2, 3, 4, 7))


def sockets_text(answers: list[bytes], file: Path) -> str:
    """Return the output of ``ss -tinmOe`` for inet_diag answers, which ``file`` holds meanwhile.

    Raises CollectorError if ss is missing or fails.
    """
    file.write_bytes(b"".join(answers) + build(NLMSG_DONE, 0, 0, bytes(4)))
    # With this variable, ss reads the kernel's answers from a file (tcp_show_netlink_file in ss.c).
    environment = {**os.environ, "TCPDIAG_FILE": str(file)}
    try:
        done = subprocess.run(
            COMMAND, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
        )
    except FileNotFoundError as error:
        raise CollectorError("ss (of iproute2) is not installed in the guest") from error
    except subprocess.CalledProcessError as error:
        raise CollectorError(f"ss failed: {error.stderr.strip()}") from error
    finally:
        file.unlink()
    return done.stdout


def dumps_text(dumps: list[list[bytes]], file: Path) -> list[str]:
    """Return ss's output for each of several dumps. Raises errors like ``sockets_text``.

    A guest starts a process slowly, so one ss reads all dumps, unless it prints fewer lines than there are answers.
    """
    if not dumps:
        return []
    lines = sockets_text([answer for answers in dumps for answer in answers], file).splitlines(keepends=True)
    if len(lines) != 1 + sum(map(len, dumps)):  # ss omits closed sockets
        return [sockets_text(answers, file) for answers in dumps]
    heading, *sockets = lines
    rest = iter(sockets)
    return [heading + "".join(next(rest) for _ in answers) for answers in dumps]


class SsCollector(Collector):
    """Reads the sockets' state twice: ``begin`` two RTTs after the first flow's start, ``end`` before the first stop.

    The requests are those of ss, but ss itself only runs after the flows: a starting process draws random numbers from
    the source that congestion control algorithms use. Writes ``ss-begin.txt`` and ``ss-end.txt``: for each host with a
    flow, a line ``# HOST TIME_NS`` (CLOCK_MONOTONIC), then ss's output, one line a socket.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        super().__init__(surroundings)
        self._batches: list[tuple[str, Batch]] = []
        self._taken: dict[str, list[tuple[str, int, list[bytes]]]] = {}

    def times_us(self) -> dict[str, int]:
        """The times of the two readings, in microseconds from the epoch."""
        flows = self.surroundings.planned.flows
        begin = min(flow.start_us + 2 * flow.rtt_us for flow in flows)
        stops = [flow.stop_us for flow in flows if flow.stop_us]
        end = min([*stops, self.surroundings.planned.duration_us]) - 20_000
        return {"begin": begin, "end": max(end, begin)}

    def start(self, _now_ns: int) -> None:
        requests: dict[str, list[tuple[int, bytes]]] = {}
        for connection in self.surroundings.connections:
            if connection.generated:
                continue  # most of them exist at neither reading
            for host, endpoint in connection.ends:
                requests.setdefault(host, []).append((SOCK_DIAG_BY_FAMILY, diag_request(endpoint, _EXTENSIONS)))
        for host, questions in requests.items():
            self._batches.append((host, Batch(self.surroundings.namespaces[host], NETLINK_SOCK_DIAG, questions)))

    def take(self, name: str, now_ns: int) -> None:
        self._taken[name] = [(host, now_ns, batch.ask()) for host, batch in self._batches]

    def stop(self, _now_ns: int) -> None:
        for _host, batch in self._batches:
            batch.close()
        place: Path = self.surroundings.output.path
        dumps = [answers for taken in self._taken.values() for _host, _time_ns, answers in taken]
        texts = iter(dumps_text(dumps, place / "ss.diag"))
        for name, taken in self._taken.items():
            parts = [f"# {host} {time_ns}\n{next(texts)}" for host, time_ns, _answers in taken]
            (place / f"ss-{name}.txt").write_text("".join(parts), encoding="utf-8")
