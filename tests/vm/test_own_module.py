# SPDX-License-Identifier: Apache-2.0
"""A profile's own module on an unmodified kernel, where its name is built in (cubic) or a module of its own (bbr)."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from howdah.command.main import main
from howdah.place import file_of
from tests.guest.test_own_module import MODULE, PROFILE

pytestmark = [pytest.mark.vm, pytest.mark.usefixtures("qemu", "remembered_guests")]

EXAMPLES = file_of("docs/examples")
NAMES = ("cubic", "bbr")


# Its processor need not be fast: a kernel that boots waits less for a clock that goes on sooner.
SLOW = "machine: {shift: 2}\n"


def test_files_with_the_names_of_the_kernels_own_are_what_is_measured(tmp_path: Path) -> None:
    """Each by a flow of its own in one run."""
    for algorithm in NAMES:
        (tmp_path / f"tcp_{algorithm}.c").write_text(MODULE.replace("NAME", algorithm))
    profile = tmp_path / "own.yaml"
    modules = ", ".join(f"tcp_{algorithm}.c" for algorithm in NAMES)
    flows = ", ".join(f"{{algorithm: {algorithm}}}" for algorithm in NAMES)
    profile.write_text(f"{PROFILE}{SLOW}modules: [{modules}]\nflows: [{flows}]\n")
    assert main(["run", str(profile), "--engine", "vm", "--no-report", "--runs", str(tmp_path / "runs")]) == 0
    (run,) = [path.parent for path in tmp_path.glob("runs/own/*/run.json")]
    loaded = json.loads((run / "run.json").read_text())["modules"]
    windows = pq.read_table(run / "tables/tcp_probe.parquet", columns=["flow", "cwnd_packets"]).to_pylist()
    for flow, algorithm in enumerate(NAMES, start=1):
        module = loaded[f"tcp_{algorithm}"]
        assert module["algorithms"] == [algorithm]
        assert module["uses_most"] > module["uses_before"]
        assert max(row["cwnd_packets"] for row in windows if row["flow"] == flow) == 10


# The verifier cannot see that it ends.
_ENDLESS = "\twhile (*(volatile __u32 *)&tp->snd_una != 1)\n\t\t;\n"


def test_a_congestion_control_in_bpf_is_loaded_and_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The example of docs/bring-your-own.md, beside a copy that the kernel refuses."""
    text = (EXAMPLES / "tcp_delay.bpf.c").read_text()
    (tmp_path / "tcp_delay.bpf.c").write_text(text)
    first = "\tif (rtt_us <= 0)\n"
    endless = text.replace('.name = "delay"', '.name = "endless"').replace(first, f"{_ENDLESS}{first}")
    (tmp_path / "tcp_endless.bpf.c").write_text(endless)
    profile = tmp_path / "own.yaml"
    modules = "modules: [tcp_delay.bpf.c, tcp_endless.bpf.c]\nalgorithm: [delay, endless]\n"
    profile.write_text(f"{PROFILE}{SLOW}engine: vm\n{modules}")
    assert main(["run", str(profile), "--no-report", "--runs", str(tmp_path / "runs")]) == 4
    said = capsys.readouterr().out
    assert '"load BPF tcp_endless.bpf.o": the kernel refused it: ' in said and "infinite loop detected" in said
    (run,) = tmp_path.glob("runs/own/delay-*")
    module = json.loads((run / "run.json").read_text())["modules"]["tcp_delay"]
    assert module["algorithms"] == ["delay"]
    assert (module["uses_before"], module["uses_most"]) == (0, 1)
    assert set(module["programs"]) >= {"delay_init", "delay_ssthresh"}
    checks = {check["name"]: check["ok"] for check in json.loads((run / "verdict.json").read_text())["checks"]}
    assert checks["module of delay"] is True
    # Ten packets of the first round queue for 11 ms: it leaves slow start in the second.
    table = pq.read_table(run / "tables/tcp_probe.parquet", columns=["cwnd_packets", "ssthresh_packets"]).to_pylist()
    assert min(row["ssthresh_packets"] for row in table if row["ssthresh_packets"]) == 19


# What a copy of an older tcp_cubic.c does: kernels from 6.9 on ask for BTF_KFUNCS_START.
_KFUNCS = """\
#include <linux/btf.h>
#include <linux/btf_ids.h>
BTF_SET8_START(ids)
BTF_SET8_END(ids)
static const struct btf_kfunc_id_set set = { .owner = THIS_MODULE, .set = &ids };
"""
_REGISTER = "register_btf_kfunc_id_set(BPF_PROG_TYPE_STRUCT_OPS, &set) ?: tcp_register"


def test_what_a_stock_kernel_refuses_and_the_user_mode_kernel_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/caveats.md says so."""
    source = MODULE.replace("NAME", "mine").replace("static u32 keep", f"{_KFUNCS}static u32 keep")
    (tmp_path / "tcp_mine.c").write_text(source.replace("return tcp_register", f"return {_REGISTER}"))
    profile = tmp_path / "own.yaml"
    profile.write_text(f"{PROFILE}modules: [tcp_mine.c]\nalgorithm: mine\n")
    command = ["run", str(profile), "--no-report", "--runs", str(tmp_path / "runs")]
    assert main(command) == 0
    assert main([*command, "--engine", "vm", "--set", "machine.shift=2"]) == 4
    said = capsys.readouterr()
    assert "Invalid argument" in said.out + said.err
