# SPDX-License-Identifier: Apache-2.0
"""What is kept of a kernel's command line: parameters, and no path of the machine that made the run."""

from __future__ import annotations

from howdah.agent.provenance import boot_parameters


def test_parameters_are_kept_and_nothing_else() -> None:
    line = (
        "mem=64M root=/home/somebody/x.y=z rootfstype=hostfs tcp_cubic.hystart=1 quiet tcp_cubic.hystart=0 a.b= init\n"
    )
    assert boot_parameters(line) == {"tcp_cubic.hystart": "0", "a.b": ""}
