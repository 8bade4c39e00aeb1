# SPDX-License-Identifier: Apache-2.0
"""The tcp:tcp_probe tracepoint: the state of a connection at every segment it receives."""

from __future__ import annotations

from collectors.collector import Surroundings
from collectors.tracepoint import TracepointCollector


class TcpProbeCollector(TracepointCollector):
    """Fields: addresses, ``sport``, ``dport``, ``data_len``, ``snd_nxt``, ``snd_una``, ``snd_cwnd`` (packets),
    ``ssthresh`` (packets, tcp_current_ssthresh()), ``snd_wnd``, ``srtt`` (us), ``rcv_wnd``, ``sock_cookie``. A record
    is the state before its segment was processed. Becomes the table ``tcp_probe``.
    """

    name = "tcp_probe"
    event = "tcp/tcp_probe"
    account = "trace.json"
    record_bytes = 192  # 6.12 needs 148

    def __init__(self, surroundings: Surroundings) -> None:
        super().__init__(surroundings, surroundings.planned.collect.trace_buffer_bytes)
