# SPDX-License-Identifier: Apache-2.0
"""nginx in a host's namespace: one process, one port, and one object of zeros that takes no memory."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from howdah.agent.error import AgentError
from howdah.linux.namespace import Namespace
from howdah.linux.netlink.diag import TCP_LISTEN, open_diag, sockets

PROGRAM = "/usr/sbin/nginx"
OBJECT = "object"
_PLACE = Path("/tmp/howdah-http")
_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")

# Sends like Debian's nginx.conf (sendfile, tcp_nopush), and has nothing that would wake nginx without a request: no
# cache, no second process, no timer but that of an idle connection.
_CONFIGURATION = """\
daemon off;
master_process off;
user root;
pid {place}/nginx.pid;
error_log {log} warn;
events {{ worker_connections 64; }}
http {{
  log_format howdah "$msec $status $body_bytes_sent $request_time $connection_requests";
  access_log {access} howdah;
  sendfile on;
  tcp_nopush on;
  etag off;
  keepalive_timeout 3600s;
  keepalive_requests 2000;
  send_timeout 3600s;
  {temporary}
  server {{
    listen {address}:{port};
    root {place}/root;
  }}
}}
"""


def configuration(place: Path, raw: Path, flow: int, address: str, port: int) -> str:
    """The nginx.conf of a flow's server."""
    return _CONFIGURATION.format(
        place=place,
        log=raw / f"{flow}-server-errors.txt",
        access=raw / f"{flow}-server.txt",
        temporary=" ".join(f"{kind}_temp_path {place}/{kind};" for kind in _TEMPORARY),
        address=address,
        port=port,
    )


class HttpServer:
    """The server of one flow; ``start`` it before the epoch."""

    def __init__(self, label: str, namespace: Namespace, raw: Path, flow: int) -> None:
        self._label = label
        self._namespace = namespace
        self._raw = raw
        self._flow = flow
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, address: str, port: int, object_bytes: int) -> None:
        """Write the configuration and a sparse object, and start nginx; ``is_listening`` says when it accepts
        connections."""
        place = _PLACE / str(self._flow)
        root = place / "root"
        root.mkdir(parents=True)
        with (root / OBJECT).open("wb") as file:
            os.truncate(file.fileno(), object_bytes)
        file_name = place / "nginx.conf"
        file_name.write_text(configuration(place, self._raw, self._flow, address, port))
        command = [
            PROGRAM,
            "-p",
            str(place),
            "-c",
            str(file_name),
            "-e",
            str(self._raw / f"{self._flow}-server-errors.txt"),
        ]
        with (self._raw / f"{self._flow}-server-output.txt").open("wb") as output, self._namespace.entered():
            try:
                self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            except FileNotFoundError as error:
                raise AgentError(self._label, "nginx is not installed in the guest") from error

    def is_listening(self, port: int) -> bool:
        """Whether the server listens. Raises AgentError with its last messages if it has ended."""
        if self._process is not None and self._process.poll() is not None:
            raise AgentError(self._label, f"nginx ended ({self._process.returncode}): {self.complaints()}")
        with self._namespace.entered():
            netlink = open_diag()
        try:
            found = sockets(netlink)
        finally:
            netlink.close()
        return any(item.state == TCP_LISTEN and item.endpoint.local_port == port for item in found)

    def complaints(self) -> str:
        """The last lines of nginx's messages."""
        texts = []
        for kind in ("errors", "output"):
            path = self._raw / f"{self._flow}-server-{kind}.txt"
            texts += path.read_text(errors="replace").splitlines() if path.exists() else []
        return " / ".join(texts[-3:]) or "it said nothing"

    def sent_bytes(self) -> int:
        """Body bytes that the server has handed to its socket, according to its access log."""
        path = self._raw / f"{self._flow}-server.txt"
        return served_bytes(path.read_text()) if path.exists() else 0

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()


def served_bytes(text: str) -> int:
    """Sum the body bytes over the lines ``MSEC STATUS BODY_BYTES SECONDS REQUEST_NUMBER`` of an access log."""
    return sum(int(line.split()[2]) for line in text.splitlines() if len(line.split()) == 5)
