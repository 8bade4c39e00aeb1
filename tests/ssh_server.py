# SPDX-License-Identifier: Apache-2.0
"""An SSH server on loopback that runs commands as whoever started it: a real one, of asyncssh.

``home`` has what a client needs to come in: key, known hosts, and a configuration with the server's port.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import asyncssh

HOST = "127.0.0.1"


async def _give(source: Any, sink: Any) -> None:
    """What the client sends; the end of its connection is the end of the program's input."""
    with suppress(OSError, asyncssh.Error):
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    sink.close()


async def _take(source: Any, sink: Any) -> None:
    """What the program says, read to its end also when the client is gone."""
    while data := await source.read(65536):
        with suppress(OSError, asyncssh.Error):
            sink.write(data)


@contextmanager
def ssh_server(home: Path, environment: dict[str, str]) -> Iterator[int]:
    """The server's port. Commands get ``environment`` and nothing else."""
    keys = home / ".ssh"
    keys.mkdir(parents=True, mode=0o700)
    own, host = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    own.write_private_key(keys / "id_ed25519")
    own.write_public_key(keys / "authorized")

    at_work: set[asyncio.Task[Any]] = set()

    async def run(process: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        at_work.add(task)
        task.add_done_callback(at_work.discard)
        shell = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", process.command, env=environment, stdin=-1, stdout=-1, stderr=-1, start_new_session=True
        )
        forward = asyncio.create_task(_give(process.stdin, shell.stdin))
        await asyncio.gather(_take(shell.stdout, process.stdout), _take(shell.stderr, process.stderr))
        status = await shell.wait()
        forward.cancel()
        with suppress(OSError, asyncssh.Error):
            process.exit(status)

    async def serve(ready: threading.Event, found: list[Any], ended: asyncio.Event) -> None:
        server = await asyncssh.listen(
            HOST,
            0,
            server_host_keys=[host],
            authorized_client_keys=str(keys / "authorized"),
            process_factory=run,
            encoding=None,
        )
        found.append(server.get_port())
        ready.set()
        await ended.wait()
        server.close()
        if at_work:  # what was started ends with its connection
            await asyncio.wait(at_work, timeout=20)

    loop, ready, found = asyncio.new_event_loop(), threading.Event(), list[Any]()
    ended = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(ready, found, ended),), daemon=True)
    thread.start()
    assert ready.wait(30), "the SSH server did not start"
    port = int(found[0])
    public = host.export_public_key().decode().strip()
    (keys / "known_hosts").write_text(f"[{HOST}]:{port} {public}\n")
    (keys / "config").write_text(
        f"Host {HOST}\n  Port {port}\n  IdentityFile {keys / 'id_ed25519'}\n"
        f"  UserKnownHostsFile {keys / 'known_hosts'}\n"
    )
    try:
        yield port
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(30)
