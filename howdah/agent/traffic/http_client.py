# SPDX-License-Identifier: Apache-2.0
"""curl as the client: its command line, and its report of each transaction."""

from __future__ import annotations

from collections.abc import Iterable

from howdah.agent.traffic.http_server import OBJECT
from howdah.plan.plan import Flow
from howdah.record.agent import TransactionRecord

_MARK = "transaction"
# Written to standard error, which is not buffered, so that the report of a killed client is complete.
_FORMAT = (
    f"%{{stderr}}{_MARK} %{{http_code}} %{{size_download}} %{{num_connects}} "
    "%{time_connect} %{time_starttransfer} %{time_total}\\n"
)
_DAY_US = 86_400_000_000


def client_command(flow: Flow) -> list[str]:
    """The command of one curl that makes all requests of a flow over one connection, with the plan's ports and
    addresses."""
    http = flow.http
    assert http is not None
    url = f"http://{flow.source_address}:{flow.source_port}/{OBJECT}"
    command = ["/usr/bin/curl", "--disable", "--silent", "--show-error", "--http1.1", "--output", "/dev/null"]
    command += ["--interface", flow.destination_address, "--local-port", str(flow.destination_port)]
    command += ["--noproxy", "*", "--fail", "--fail-early", "--write-out", _FORMAT]
    if http.every_us:
        command += ["--rate", f"{_DAY_US // http.every_us}/d"]
    # The URL's fragment, which is not sent to the server, makes curl repeat the request.
    return [*command, url if http.requests == 1 else f"{url}#[1-{http.requests}]"]


def parse_transactions(text: str, every_us: int | None) -> list[TransactionRecord]:
    """Parse the output of --write-out, in order; times are from the start of the connection.

    curl gives times from the start of each request. The next request begins when the last one has ended, or
    ``every_us`` after the last one began if that is later.
    """
    found: list[TransactionRecord] = []
    start_ns = 0
    for fields in _lines(text):
        status, size, connects = (int(field) for field in fields[:3])
        connected, first, total = (round(float(field) * 1e9) for field in fields[3:6])
        end_ns = start_ns + total
        times = start_ns, end_ns, start_ns + connected, start_ns + first
        found.append(TransactionRecord(*times, size, status, connects))
        start_ns = end_ns if every_us is None else max(end_ns, start_ns + every_us * 1000)
    return found


def complaints(text: str) -> str:
    """The last lines of curl's output that are not transactions."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(_MARK)]
    return " / ".join(lines[-2:])


def _lines(text: str) -> Iterable[list[str]]:
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 7 and fields[0] == _MARK:
            yield fields[1:]
