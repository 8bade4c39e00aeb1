# SPDX-License-Identifier: Apache-2.0
"""Shapes of what ``howdah list`` prints with ``--json``."""

from __future__ import annotations

from pydantic import Field

from howdah.command.shape import Shape


class ProfileShape(Shape):
    profile: str
    file: str = Field(description="below profiles/")
    group: str
    runs: int
    core_s: float = Field(description="expected time of its runs on one core")
    description: str


class ListProfiles(Shape):
    profiles: list[ProfileShape]


class AlgorithmShape(Shape):
    algorithm: str
    kernel_name: str
    module: str | None
    parameters: dict[str, str]
    summary: str


class ListAlgorithms(Shape):
    algorithms: list[AlgorithmShape]


class KernelShape(Shape):
    kernel: str
    release: str
    source: str
    image_sha256: str
    options_not_taken: list[str]
    directory: str


class ListKernels(Shape):
    kernels: list[KernelShape]


class ReceiverSource(Shape):
    title: str
    address: str | None


class ReceiverShape(Shape):
    receiver: str
    emulated: bool
    summary: str
    sources: list[ReceiverSource]


class ListReceivers(Shape):
    receivers: list[ReceiverShape]


class ListedMetric(Shape):
    metric: str
    unit: str | None
    meaning: str


class ListMetrics(Shape):
    metrics: list[ListedMetric]


class StackShape(Shape):
    stack: str
    summary: str
    needs: list[str] = Field(description="programs that build it")


class ListStacks(Shape):
    stacks: list[StackShape]


class ListedRun(Shape):
    experiment: str
    run: str
    status: str
    verdict: str | None
    outdated: bool = Field(description="the verdict is from another version of the analysis")
    changed: bool = Field(description="verdict.json is not the file that was recorded: no verdict is shown")


class ListRuns(Shape):
    runs: list[ListedRun]
