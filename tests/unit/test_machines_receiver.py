# SPDX-License-Identifier: Apache-2.0
"""The receiver of hosts without an agent: what it counts, where it listens, and that it stands alone."""

from __future__ import annotations

import ast
import json
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from howdah.machines.receiver import StreamReceiver, main

ROOT = Path(__file__).resolve().parents[2]
ALONE = (ROOT / "howdah" / "machines" / "receiver.py", ROOT / "collectors" / "siftr.py")


def test_every_connection_is_read_to_its_end_and_told_of(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    receiver = StreamReceiver("127.0.0.1", 0, str(log))
    thread = threading.Thread(target=receiver.serve, args=(2,))
    thread.start()
    sizes = {}
    for size in (3_000_000, 0):
        with socket.create_connection(("127.0.0.1", receiver.port)) as end:
            sizes[end.getsockname()[1]] = size
            end.sendall(bytes(size))
    thread.join(60)
    receiver.close()
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert {record["peer_port"]: record["bytes_received"] for record in records} == sizes
    full = max(records, key=lambda record: record["bytes_received"])
    assert full["accepted_realtime_ns"] <= full["first_byte_realtime_ns"] <= full["end_realtime_ns"]
    empty = min(records, key=lambda record: record["bytes_received"])
    assert (empty["first_byte_realtime_ns"], empty["error"]) == (None, None)


def test_a_fixed_buffer_is_that_of_its_connections(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    receiver = StreamReceiver("127.0.0.1", 0, str(log), buffer_bytes=65_536)
    thread = threading.Thread(target=receiver.serve, args=(1,))
    thread.start()
    with socket.create_connection(("127.0.0.1", receiver.port)) as end:
        end.sendall(b"x")
    thread.join(60)
    receiver.close()
    assert json.loads(log.read_text())["buffer_bytes"] == 131_072  # Linux doubles what it is asked for


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "somewhere"])
def test_it_listens_on_one_address_only(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--address", address, "--connections", "0"]) == 1
    assert address in capsys.readouterr().err


@pytest.mark.parametrize("path", ALONE, ids=lambda path: path.stem)
def test_what_is_copied_alone_needs_the_standard_library_alone(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= set(sys.stdlib_module_names)
    done = subprocess.run([sys.executable, "-S", "-I", path, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
