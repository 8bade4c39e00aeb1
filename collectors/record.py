# SPDX-License-Identifier: Apache-2.0
"""One collector alone on a machine without an agent: ``python3 -m collectors.record interface``, until it is stopped.

It writes files in the formats of a run's raw/ (docs/data-format.md), and ``recording.json``. It reads the network
namespace in which it is started, needs no root and changes nothing. Standard library only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from collectors.batch import Batch
from collectors.collector import Collector, Surroundings
from collectors.interval.counters import CountersCollector
from collectors.interval.interface import InterfaceCollector
from collectors.polled import PolledCollector
from howdah.linux.namespace import Namespace
from howdah.linux.netlink.diag import SOCK_DIAG_BY_FAMILY, diag_request, open_diag
from howdah.linux.netlink.message import NETLINK_ROUTE, align
from howdah.linux.netlink.qdisc import RTM_GETQDISC, header, qdiscs
from howdah.linux.output import KIND_INET_DIAG, KIND_QDISC, FramedFile, Output

NODE = 0
_ENDS = (signal.SIGTERM, signal.SIGINT)
_NO_HANDLE = "0:"
_WITHOUT_QUEUE = ("noqueue", "noop")  # the kernel does not answer a request for one of these


class OwnNamespace(Namespace):
    """The namespace of this process. It is never entered, because that would need a privilege."""

    def __init__(self, name: str) -> None:
        super().__init__(name, -1)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        yield


class AllQueues(PolledCollector):
    """Every queueing discipline that exists at the start. Writes ``qdisc.bin`` (framed, kind 2)."""

    file = "qdisc.bin"
    kind = KIND_QDISC

    def questions(self) -> Iterator[tuple[str, Batch]]:
        for node, namespace in self.surroundings.namespaces.items():
            requests = []
            for state in qdiscs(namespace.netlink):
                if state.handle != _NO_HANDLE:
                    requests.append((RTM_GETQDISC, header(state.index, state.handle)))
                elif state.parent == "root" and state.kind not in _WITHOUT_QUEUE:
                    requests.append((RTM_GETQDISC, header(state.index, _NO_HANDLE, "root")))
            yield node, Batch(namespace, NETLINK_ROUTE, requests)


class AllConnections(Collector):
    """struct tcp_info of every IPv4 connection of the machine. Writes ``tcp_info.bin`` (framed, kind 1)."""

    def __init__(self, surroundings: Surroundings, interval_us: int) -> None:
        super().__init__(surroundings)
        self.interval_ns = interval_us * 1000
        self._netlink = open_diag()
        self._file = FramedFile(surroundings.output.binary("tcp_info.bin"))

    def sample(self, now_ns: int) -> None:
        answers = self._netlink.dump(SOCK_DIAG_BY_FAMILY, diag_request(None))
        padded = [answer.raw.ljust(align(len(answer.raw)), b"\0") for answer in answers]
        if padded:
            self._file.append(now_ns, NODE, KIND_INET_DIAG, padded)

    def stop(self, now_ns: int) -> None:
        self.sample(now_ns)
        self._file.close()
        self._netlink.close()


COLLECTORS = {
    "counters": CountersCollector,
    "interface": InterfaceCollector,
    "qdisc": AllQueues,
    "tcp-info": AllConnections,
}


def new_directory(parent: Path, name: str, time_s: float) -> Path:
    """Make ``NAME-YYYYMMDDTHHMMSSZ`` in ``parent``, with a number appended if that exists."""
    stem = f"{name}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(time_s))}"
    for number in range(1000):
        path = parent / (f"{stem}-{number}" if number else stem)
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        return path
    raise FileExistsError(f"{parent}: there are a thousand recordings {stem} already")


def record(name: str, interval_us: int, parent: Path) -> Path:
    """Run the collector until SIGTERM or SIGINT; return the directory that it wrote."""
    # Block signals and wait for them between samples, so that no sample is cut off.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    directory = new_directory(parent, name, time.time())
    output = Output(directory)
    host = socket.gethostname()
    surroundings = Surroundings(None, {host: OwnNamespace(host)}, {host: NODE}, [], output)
    collector = COLLECTORS[name](surroundings, interval_us)
    start_ns, interval_ns = time.monotonic_ns(), interval_us * 1000
    about = {"format": 1, "collector": name, "node": host, "interval_us": interval_us, "kernel": os.uname().release}
    about |= {"start_monotonic_ns": start_ns, "start_realtime_ns": time.time_ns()}
    output.json("recording.json", about)
    collector.start(start_ns)
    readings, due_ns = 0, start_ns
    while signal.sigtimedwait(_ENDS, max(0, due_ns - time.monotonic_ns()) / 1e9) is None:
        collector.sample(time.monotonic_ns())
        readings += 1
        # After a late sample, the next one is due at the next whole interval.
        due_ns += (1 + max(0, time.monotonic_ns() - due_ns) // interval_ns) * interval_ns
    collector.stop(time.monotonic_ns())
    output.json("recording.json", about | {"end_monotonic_ns": time.monotonic_ns(), "readings": readings})
    return directory


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="collectors.record", description="Run one collector until it is stopped.")
    parser.add_argument("collector", choices=sorted(COLLECTORS))
    parser.add_argument("--interval-ms", type=int, default=100, help="time between readings (default: 100)")
    parser.add_argument("--directory", type=Path, default=Path(), help="where the recording is put")
    options = parser.parse_args(arguments)
    if not 1 <= options.interval_ms <= 3_600_000:
        parser.error(f"--interval-ms is {options.interval_ms}; it must be 1 to 3600000")
    try:
        directory = record(options.collector, options.interval_ms * 1000, options.directory)
    except OSError as error:
        sys.stderr.write(f"collectors.record {options.collector}: {error}\n")
        return 1
    sys.stdout.write(json.dumps({"recording": str(directory)}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
