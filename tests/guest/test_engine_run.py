# SPDX-License-Identifier: Apache-2.0
"""The uml engine runs plans: what it stages and reports, what a bad agent becomes, the user's own module; and the
host engine, in a guest that has what it needs."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from howdah.agent.start import BUNDLE
from howdah.build import bundle
from howdah.build.guest_tree import python_command
from howdah.engine import share
from howdah.engine.uml import engine as engine_module
from howdah.engine.uml.build import Built
from howdah.engine.uml.engine import UmlEngine
from howdah.engine.uml.guest import boot
from howdah.errors import HowdahError, RunFailedError
from howdah.plan.plan import Plan
from howdah.profile import load
from howdah.record.directory import RunDirectory
from howdah.work.compiled import compile_plans
from tests.built_modules import build_modules
from tests.guest.guest_kit import build_or_skip, host_guest, make_guest, run_script

pytestmark = pytest.mark.guest

_PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def built() -> Built:
    return build_or_skip()


@pytest.fixture(scope="module")
def plan() -> Plan:
    return compile_plans(load(_PROJECT / "profiles/quick.yaml"))[0]


def _nothing(_phase: str, _done: int, _total: int) -> None:
    pass


def _directory(path: Path, plan: Plan) -> RunDirectory:
    directory = RunDirectory(path)
    directory.path.mkdir()
    directory.plan.write_text(plan.to_json())
    return directory


def test_a_run_leaves_raw_files_and_says_what_it_ran_on(built: Built, plan: Plan, tmp_path: Path) -> None:
    directory = _directory(tmp_path / "a run", plan)
    phases: list[str] = []
    report = UmlEngine().run(directory, plan, lambda phase, _done, _total: phases.append(phase))
    record = json.loads((directory.raw / "agent.json").read_text())
    assert record["status"] == "ok"
    assert record["kernel_release"] == report.kernel.release == built.kernel.release
    assert (directory.raw / "tcp_probe.bin").stat().st_size > 0
    assert report.guest_tree is not None
    assert (report.guest_tree.packages or {})["iproute2"]
    assert report.modules["howdah_traffic"].srcversion
    assert 16 << 20 < (report.engine.guest_memory_peak_bytes or 0) < plan.guest_memory_bytes
    assert phases[-1] == "done"
    assert (directory.share / "plan.json").read_text() == directory.plan.read_text()


def test_two_runs_of_a_plan_leave_equal_files(plan: Plan, tmp_path: Path) -> None:
    contents: list[dict[str, bytes]] = []
    for name in ("one", "two"):
        directory = _directory(tmp_path / name, plan)
        UmlEngine().run(directory, plan, _nothing)
        files = {path.name: path.read_bytes() for path in directory.raw.iterdir() if path.is_file()}
        # What the process took of this machine's memory: whole huge pages, where it had any to give.
        assert int(files.pop("guest-memory.txt")) > 0
        files["agent.json"] = _without_wall_times(files["agent.json"])
        contents.append(files)
    assert contents[0].keys() == contents[1].keys()
    assert [name for name in contents[0] if contents[0][name] != contents[1][name]] == []


def _without_wall_times(text: bytes) -> bytes:
    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: strip(item) for key, item in value.items() if "wall" not in key}
        return [strip(item) for item in value] if isinstance(value, list) else value

    return json.dumps(strip(json.loads(text))).encode()


def test_the_identity_names_everything_a_run_depends_on(built: Built, plan: Plan) -> None:
    identity = UmlEngine().prepare([plan], _nothing)
    assert built.kernel.image_sha256 in identity.values()
    assert built.tree.sha256 in identity.values()
    assert UmlEngine().prepare([plan], _nothing) == identity


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        ("raise SystemExit(3)", "status 3.* without a record"),
        ("import os; os.kill(os.getpid(), 11)", "signal 11"),
        (
            'open(\'/howdah/out/agent.json\', \'w\').write(\'{"status": "error", "error": '
            '{"operation": "link s1", "message": "File exists"}}\'); raise SystemExit(1)',
            "link s1.*File exists",
        ),
        ("open('/howdah/out/agent.json', 'w').write('{\"status\":')", "cannot be read"),
    ],
)
def test_an_agent_that_fails_fails_the_run(
    built: Built, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str, expected: str
) -> None:
    place = tmp_path / "agent/howdah/agent"
    place.mkdir(parents=True)
    (place.parent / "__init__.py").write_text("")
    (place / "__init__.py").write_text("")
    (place / "start").write_text(agent + "\n")
    bad = dataclasses.replace(built, agent=tmp_path / "agent")
    monkeypatch.setattr(engine_module, "build", lambda *_arguments: bad)
    with pytest.raises(RunFailedError, match=expected):
        UmlEngine().run(_directory(tmp_path / "run", plan), plan, _nothing)
    assert (tmp_path / "run/raw/console.log").exists()


_MODULE = """\
#include <linux/module.h>
#include <net/tcp.h>
static struct tcp_congestion_ops mine = {
	.ssthresh = tcp_reno_ssthresh,
	.cong_avoid = tcp_reno_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
	.name = "mine",
	.owner = THIS_MODULE,
};
static int __init start(void) { return tcp_register_congestion_control(&mine); }
static void __exit stop(void) { tcp_unregister_congestion_control(&mine); }
module_init(start);
module_exit(stop);
MODULE_LICENSE("GPL");
"""


def test_the_users_own_module(built: Built, tmp_path: Path) -> None:
    source = tmp_path / "my modules/tcp_mine.c"
    source.parent.mkdir()
    source.write_text(_MODULE)
    module = next(item for item in build_modules(built.kernel, [str(source)], _nothing) if item.name == "tcp_mine")
    assert module.srcversion
    guest = make_guest(
        built, tmp_path / "run", "insmod /howdah/in/m.ko; sysctl net.ipv4.tcp_available_congestion_control"
    )
    shutil.copy(module.file, guest.share / "m.ko")
    boot(guest, _nothing)
    assert "mine" in guest.console.read_text().split()
    again = next(item for item in build_modules(built.kernel, [str(module.file)], _nothing) if item.name == "tcp_mine")
    assert again.srcversion == module.srcversion, "a .ko of this kernel is taken"


def test_a_module_that_does_not_compile_names_the_line(built: Built, tmp_path: Path) -> None:
    source = tmp_path / "tcp_wrong.c"
    source.write_text(_MODULE.replace("tcp_reno_cong_avoid", "tcp_reno_cong_avoidance"))
    with pytest.raises(HowdahError, match="tcp_reno_cong_avoidance") as caught:
        build_modules(built.kernel, [str(source)], _nothing)
    assert caught.value.where == f"{source}:5"
    assert built.kernel.release in caught.value.what
    source.write_text(
        _MODULE.replace("return tcp_reg", "extern int no_such_symbol(void); return no_such_symbol() + tcp_reg")
    )
    with pytest.raises(HowdahError, match="does not export: no_such_symbol"):
        build_modules(built.kernel, [str(source)], _nothing)


_HOST_TRY = """\
import json, sys
from pathlib import Path
from types import SimpleNamespace
# A guest has no pydantic.
sys.modules["howdah.record.run"] = SimpleNamespace(EngineReport=dict, EngineOrigin=dict, KernelOrigin=dict)
from howdah.engine.host import HostEngine
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
engine = HostEngine()
print("lacks", [lack.what for lack in engine.lacks()])
directory = RunDirectory(Path("/tmp/a run"))
directory.path.mkdir()
directory.plan.write_text(Path("/howdah/in/plan.json").read_text())
plan = Plan.from_json(directory.plan.read_text())
try:
    print("identity", json.dumps(engine.prepare([plan], lambda *_: None)))
    report = engine.run(directory, plan, lambda *_: None)
    print("report", json.dumps(report))
finally:
    print((directory.raw / "console.log").read_text())
"""


@pytest.mark.parametrize("tool", ["iperf3", "python"])
def test_the_host_engine_where_there_is_netem(built: Built, plan: Plan, tmp_path: Path, tool: str) -> None:
    """The guest's is the kernel that is measured."""
    traffic = [dataclasses.replace(flow, traffic=tool, sink=tool) for flow in plan.flows]
    guest = host_guest(built, tmp_path, dataclasses.replace(plan, flows=traffic), _HOST_TRY)
    ending = boot(guest, _nothing)
    console = guest.console.read_text()
    assert "lacks []" in console, console
    assert ending.exit_status == 0, console
    report = json.loads(next(line for line in console.splitlines() if line.startswith("report"))[len("report ") :])
    assert report["engine"]["name"] == "host"
    assert report["kernel"]["release"] == built.kernel.release


def test_the_guest_has_the_tools_whose_versions_are_recorded(built: Built, tmp_path: Path) -> None:
    _, console = run_script(
        built, tmp_path, "iperf3 --version | head -1; tcpdump --version 2>&1 | head -1; ss -V; mn --version"
    )
    assert f"iperf {built.tree.packages['iperf3'].split('-')[0]}" in console
    assert "not found" not in console


def test_the_bundle_is_the_same_to_the_byte_wherever_it_is_built(built: Built, tmp_path: Path) -> None:
    """Also where nothing is byte-compiled yet and the tree is reached by a link: a guest counts the memory it fills."""
    share.copy_agent(tmp_path / "agent")
    tree, made = tmp_path / "tree", tmp_path / BUNDLE
    tree.symlink_to(built.tree.root)
    arguments = (tmp_path / "agent", share.GUEST_SHARE, tree, made)
    command = [*python_command(tree), bundle.__file__, *map(str, arguments)]
    subprocess.run(command, env={"PATH": os.environ["PATH"], "PYTHONHASHSEED": "0"}, check=True)
    assert made.read_bytes() == (built.agent / BUNDLE).read_bytes()


def test_byte_code_is_in_the_bundle_and_in_the_file_that_reads_it(built: Built) -> None:
    files = {str(file.relative_to(built.agent)) for file in built.agent.rglob("*") if file.is_file()}
    started = files - {str(name) for name in share.agent_sources()}
    assert started == {BUNDLE, "howdah/agent/start", built.tools.populate.name}
