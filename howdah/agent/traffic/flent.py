# SPDX-License-Identifier: Apache-2.0
"""A flow that flent runs: its test ``tcp_nup`` with one stream and its pings, with the data file kept in raw/flent/.

flent's stream is netperf, which is not in Debian's free part, so iperf (version 2) replaces it, through flent's own
runner for iperf. The test file stays as it is but for that entry, changed in the guest's own copy of the tree.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from howdah.agent.error import AgentError
from howdah.agent.loop import Loop
from howdah.agent.traffic.iperf3 import Iperf3Flow
from howdah.linux.namespace import Namespace
from howdah.linux.output import Output
from howdah.plan.plan import Flow
from howdah.record.agent import FlowRecord

_TEST = Path("/usr/share/flent/flent/tests/tcp_nup.conf")
_PROGRAMS = Path("/tmp/howdah-flent")
_MARK = "# howdah: iperf in netperf's place"
_CHANGE = f"""
{_MARK}
for _spec in DATA_SETS.values():
    if _spec.get('runner') == 'netperf_demo':
        _spec.update(runner='iperf_csv', interval=STEP_SIZE, ip_version=4,
                     host=get_test_parameter('howdah_peer', default=HOST),
                     local_bind=get_test_parameter('howdah_local', default=None))
"""
# flent reads iperf's CSV as it was before 2.2. Since then times have microseconds, but flent takes any digits after the
# point for milliseconds; and the interval has two columns, so that flent would take the bytes for the rate.
_FILTER = r"""#!/bin/sh
PROGRAM "$@" | sed -u 's/^\([^,]*\.[0-9]\{3\}\)[0-9]\{3\},/\1,/; s/^\(\([^,]*,\)\{6\}[0-9.]*\),/\1-/'
"""


def filter_script(program: str) -> str:
    """Return a shell script that runs iperf and converts its CSV to the form that flent reads."""
    return _FILTER.replace("PROGRAM", program)


def flent_command(flow: Flow, directory: Path) -> list[str]:
    """The command for one stream over the flow's time, with its ports and its algorithm, without delays before and
    after."""
    seconds = max((flow.stop_us - flow.start_us) // 1_000_000, 1)
    peer = f"{flow.destination_address} --port {flow.destination_port} -Z {flow.kernel_algorithm}"
    parameters = {
        "upload_streams": "1",
        "howdah_peer": peer,
        "howdah_local": f"{flow.source_address}:{flow.source_port}",
    }
    command = ["flent", "tcp_nup", "--host", flow.destination_address, "--length", str(seconds), "--delay", "0"]
    for name, value in parameters.items():
        command += ["--test-parameter", f"{name}={value}"]
    return [*command, "--ipv4", "--title", flow.name, "--data-dir", str(directory)]


def server_command(flow: Flow) -> list[str]:
    """The iperf server's command. Its report, one line of CSV when the connection ends, has the received bytes."""
    address, port = flow.destination_address, str(flow.destination_port)
    return ["iperf", "--server", "--bind", address, "--port", port, "--enhanced", "--reportstyle", "C"]


class FlentFlow(Iperf3Flow):
    """Runs an iperf server from before the epoch, and flent from the flow's start. There is no control connection."""

    kind = "flent"
    folder = "flent"

    def __init__(self, description: Flow, namespaces: dict[str, Namespace], loop: Loop, output: Output) -> None:
        super().__init__(description, namespaces, loop, output)
        self._data = self._directory / str(description.id)

    def _file(self, end: str) -> Path:
        return self._data / f"{end}.txt"

    def prepare(self) -> None:
        flow = self.description
        self._data.mkdir(exist_ok=True)
        try:
            if _MARK not in (test := _TEST.read_text(encoding="utf-8")):
                _TEST.write_text(test + _CHANGE, encoding="utf-8")
            _PROGRAMS.mkdir(exist_ok=True)
            program = _PROGRAMS / "iperf"
            program.write_text(filter_script("/usr/bin/iperf"), encoding="utf-8")
            program.chmod(0o755)
        except OSError as error:
            raise AgentError(self.label, f"flent's test cannot be prepared: {error}") from error
        self._server = self._spawn(flow.receiver, server_command(flow), self._file("server"))

    def _client_command(self) -> list[str]:
        path = f"PATH={_PROGRAMS}:/usr/sbin:/usr/bin:/sbin:/bin"
        return ["/usr/bin/env", path, "HOME=/tmp", *flent_command(self.description, self._data)]

    def finished(self) -> bool:
        """Whether flent has ended. The server would keep listening, so ``close`` ends it."""
        return self._start_ns is None or self._client is None or self._client.poll() is not None

    def record(self, epoch_ns: int) -> FlowRecord:
        status = self._client.poll() if self._client is not None else None
        written = sorted(self._data.glob("*.flent.gz"))
        error = None
        if self._start_ns is not None and (status != 0 or not written):
            error = f"flent ended with status {status}: {self._client_output()}"
        received = received_bytes(self._output_of("server"))
        return replace(
            super().record(epoch_ns),
            bytes_sent=received,
            bytes_received=received,
            complete=error is None and self._end_ns is not None,
            error=error,
        )

    def _client_output(self) -> str:
        return self._output_of("client").strip()[-300:]

    def _output_of(self, end: str) -> str:
        try:
            return self._file(end).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""


def received_bytes(report: str) -> int:
    """Parse an iperf server's CSV, whose first line names the columns; 0 if no connection ended."""
    names: list[str] = []
    found = 0
    for line in report.splitlines():
        fields = line.split(",")
        if fields[0] == "time":
            names = fields
        elif names and len(fields) > names.index("bytes") and fields[names.index("srcaddress")]:
            found = int(fields[names.index("bytes")])
    return found


DRIVER = FlentFlow
