# SPDX-License-Identifier: Apache-2.0
"""The ``vm`` engine: a plan on an unmodified distribution kernel, all hosts as namespaces of one virtual machine."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from howdah.build.accelerator import AUTO, TCG, Accelerator, choose
from howdah.build.cache import Cache, content_key
from howdah.build.cpio import Writer
from howdah.build.guest_tree import GuestTree, build_tree, packages_of_plan
from howdah.build.module_sources import extras_of
from howdah.build.modules import Module, ModuleSet, provide_modules
from howdah.build.stock_kernel import StockKernel, provide_kernel
from howdah.build.tools import FIRST, Tools, build_tools, compile_c, compiler_version, library
from howdah.engine.ending import check_agent
from howdah.engine.engine import BuildProgress, Identity, Lack, RunProgress, lacks_of, require
from howdah.engine.preparing import Preparation, as_run_failure, as_run_progress
from howdah.engine.share import agent_command, build_agent, stage, stage_collectors
from howdah.engine.vm import needs
from howdah.engine.vm.first import needs_whole_tree, tree_archive
from howdah.engine.vm.machine import MACHINE, SILENCE_S, WARP, QemuMachine, Speed, run
from howdah.engine.vm.profile import MachineProfile, perf_archive
from howdah.errors import EngineUnavailableError, HowdahError, RunFailedError
from howdah.plan.kernel import OwnKernel
from howdah.plan.plan import Plan
from howdah.record.agent import ModuleRecord
from howdah.record.directory import RunDirectory
from howdah.record.run import EngineOrigin, EngineReport, KernelOrigin, TreeOrigin
from howdah.scratch import scratch

_HERE = Path(__file__).parent
_CLOCK_SLACK_S = 600
_TREE_BYTES = 400 * 2**20  # the first file system, while the kernel unpacks it
_DELIVERY_BYTES = 1 << 30
_RAW_BYTES_PER_PACKET = 120  # records stay in memory until the end
_CAPTURED_BYTES = 144  # of a packet in tcpdump's file: 128 bytes and a header
_REAL_TIME_SLACK = 2
_REAL_TIME_SILENCE_S = 60.0  # in real time a machine reports every second
_SLOWDOWN = 40  # least ratio of emulated to user-mode run time


@dataclass(frozen=True)
class _Built:
    tools: Tools
    init: Path
    warp: Path
    kernel: StockKernel
    tree: GuestTree
    packed: Path
    module_set: ModuleSet
    agent: Path


class VmEngine:
    """The vm engine: one core per machine. By default time is virtual, exact and repeatable.

    With real time, runs are made one at a time: ``prepare`` sets ``parallel``.
    """

    name = "vm"
    parallel = True

    def __init__(self, cache: Cache | None = None) -> None:
        self.cache = cache or Cache()

    def lacks(self) -> list[Lack]:
        return lacks_of(needs.checks())

    def prepare(self, plans: Sequence[Plan], progress: BuildProgress) -> Identity:
        require(self.lacks(), self.name, "The uml engine needs none of this: leave out --engine vm.")
        identity: Identity = {"engine": self.name, "qemu": needs.qemu_version()}
        preparation = Preparation(plans, progress)
        for plan in plans:
            try:
                built = self._build(plan, progress)
                identity |= self._identity(built, plan, progress)
            except EngineUnavailableError:
                raise
            except HowdahError as error:
                preparation.add_failure(error)
            else:
                preparation.report_unused(built.module_set, plan)
        preparation.conclude()
        return identity

    def _identity(self, built: _Built, plan: Plan, progress: BuildProgress) -> Identity:
        """Return the identity of the parts of a plan's runs. Raises HowdahError for a part that does not build."""
        found: Identity = {"tree": built.tree.sha256, "init": built.init.parent.name}
        if plan.real_time is None:
            found["warp"] = built.warp.parent.name
        found[f"first {built.packed.parent.name}"] = MACHINE
        found[f"kernel {plan.kernel}"] = built.kernel.image_sha256
        if plan.real_time is not None:
            self.parallel = False  # parallel runs would compete for the processor
            accelerator = choose(plan.real_time.accelerator, built.kernel.image, self.cache)
            found["accelerator"] = accelerator.name
            if accelerator.why is not None and plan.real_time.accelerator == AUTO:
                progress(f"emulated, without KVM: {accelerator.why}", 0, 0)
        if plan.collect.cpu and plan.processor_shift is not None:
            found["perf"] = perf_archive(built.tree, self.cache, progress).parent.name
        for module in _chosen(built, plan):
            found[f"module {module.name} {plan.kernel}"] = module.identity
        return found

    def _build(self, plan: Plan, progress: BuildProgress) -> _Built:
        tools = build_tools(self.cache)
        tree = build_tree(progress, self.cache, packages_of_plan(plan))
        own = plan.own_kernel or OwnKernel(None, None)
        modules, headers = (Path(name) if name else None for name in (own.modules, own.headers))
        kernel = provide_kernel(plan.kernel, progress, self.cache, modules, headers)
        ready = ModuleSet({}, {})
        if kernel.headers is not None:
            ready = provide_modules(kernel, plan.modules, progress, self.cache, extras_of(plan))
        packed = tree_archive(tree, self.cache, progress, whole=needs_whole_tree(plan))
        agent = build_agent("netlink", tree, tools, self.cache)
        return _Built(tools, _init(self.cache), library(WARP, self.cache), kernel, tree, packed, ready, agent)

    def run(self, directory: RunDirectory, plan: Plan, progress: RunProgress) -> EngineReport:
        progress("prepare", 0, 0)
        with as_run_failure():
            built = self._build(plan, as_run_progress(progress))
        try:
            return self._run(directory, plan, progress, built)
        except RunFailedError as error:
            error.known = EngineReport(kernel=_kernel(built))
            raise

    def _run(self, directory: RunDirectory, plan: Plan, progress: RunProgress, built: _Built) -> EngineReport:
        with as_run_failure():
            modules = _chosen(built, plan)
        stage(directory, built.agent, [(module.name, module.file) for module in modules])
        stage_collectors(directory, plan)
        shutil.copyfile(_HERE / "deliver.py", directory.share / "deliver.py")
        real_time = plan.real_time
        accelerator = (
            Accelerator(TCG, None)
            if real_time is None
            else choose(real_time.accelerator, built.kernel.image, self.cache)
        )
        speed = Speed(plan.processor_shift)
        with scratch("howdah-machine-") as place:
            own = place / "run.cpio"
            _pack_run(own, built.init, directory.share)
            machine = QemuMachine(
                kernel=built.kernel.image,
                first=(built.packed, built.kernel.modules_archive, own),
                command=agent_command("--progress-port"),
                memory_bytes=plan.guest_memory_bytes + _TREE_BYTES + recorded_bytes(plan),
                delivery_bytes=_DELIVERY_BYTES + recorded_bytes(plan),
                raw=directory.raw,
                console=directory.console,
                speed=speed,
                accelerator=accelerator.name,
                wall_clock_limit_s=plan.wall_clock_limit_s * (_SLOWDOWN if real_time is None else _REAL_TIME_SLACK),
                clock_limit_s=(plan.epoch_us + plan.end_us) // 10**6 + _CLOCK_SLACK_S,
                launcher=built.tools.launch,
                kernel_arguments=tuple(f"{name}={value}" for name, value in plan.kernel_parameters.items()),
                silence_limit_s=SILENCE_S if real_time is None else _REAL_TIME_SILENCE_S,
                library=built.warp if real_time is None else None,
                own_modules=plan.modules_in_use,
            )
            look = None
            if plan.collect.cpu and plan.processor_shift is not None:
                look = MachineProfile(
                    built.kernel, built.tree, place / "counted", self.cache, as_run_progress(progress)
                )
                machine = look.at(machine)
            ending, command = run(machine, progress)
            if look is not None:
                look.finish(machine, {module.loaded_as: module.file for module in modules})
        with directory.log.open("a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(command)}\n")
        record = check_agent(directory, ending)
        return _report(built, modules, speed, accelerator, ending.wall_s, record.modules or {}, command)


def _chosen(built: _Built, plan: Plan) -> list[Module]:
    """Return the project's modules that the plan needs; the kernel's own are loaded by name on use."""
    if built.kernel.headers is None and plan.required_modules:
        raise HowdahError(
            f"the modules {', '.join(plan.required_modules)} cannot be built for {built.kernel.release}",
            where=built.kernel.package,
            hint="No suite that this machine's Debian can use has its headers, or machine.headers does not name them. "
            "Algorithms of the kernel itself, with traffic by iperf3, need no module.",
        )
    return built.module_set.choose(plan.required_modules)


def recorded_bytes(plan: Plan) -> int:
    """Return the size of the records of packets and their ACKs, in the trace and in each capture."""
    packets = plan.path.rate_bits_per_second * plan.duration_us // 8_000_000 // plan.path.frame_bytes
    captured = len(plan.collect.pcap) * _CAPTURED_BYTES
    return 2 * packets * (_RAW_BYTES_PER_PACKET + captured)


def _pack_run(target: Path, init: Path, share: Path) -> None:
    with target.open("wb") as file:
        archive = Writer(file)
        archive.file("init", init, 0o755)
        archive.parents(["howdah/in/x", "howdah/out/x"])
        archive.tree(share, "howdah/in")
        archive.close()


def _init(cache: Cache) -> Path:
    source = _HERE / "init.c"

    def compile_it(directory: Path, log: Path) -> None:
        compile_c(source, directory / "init", log, "-static", f"-I{FIRST.parent}")

    key = content_key(compiler_version(), FIRST.read_bytes(), source.read_bytes())
    return cache.build("machine-init", key, compile_it) / "init"


def _kernel(built: _Built) -> KernelOrigin:
    kernel = built.kernel
    return KernelOrigin(
        release=kernel.release,
        package=kernel.package,
        version=kernel.version,
        image_sha256=kernel.image_sha256,
        config_sha256=kernel.config_sha256,
        source=f"{kernel.package} {kernel.version}",
    )


def _report(
    built: _Built,
    modules: list[Module],
    speed: Speed,
    accelerator: Accelerator,
    wall_s: float,
    loaded: Mapping[str, ModuleRecord],
    command: list[str],
) -> EngineReport:
    return EngineReport(
        engine=EngineOrigin(
            name=VmEngine.name,
            guest_wall_s=round(wall_s, 3),
            qemu=needs.qemu_version(),
            accelerator=accelerator.name,
            why_not_kvm=accelerator.why,
            processor=speed.text,
            command=command,
        ),
        kernel=_kernel(built),
        guest_tree=TreeOrigin(sha256=built.tree.sha256, packages=built.tree.packages),
        modules={module.name: module.described(loaded.get(module.name)) for module in modules},
    )
