# SPDX-License-Identifier: Apache-2.0
"""Shapes of what ``howdah list`` prints with ``--json``."""

from __future__ import annotations

from pydantic import Field

from howdah.record.model import FilePart


class ProfileShape(FilePart):
    profile: str
    file: str = Field(description="below profiles/")
    group: str
    runs: int
    core_s: float = Field(description="expected time of its runs on one core")
    description: str


class ListProfiles(FilePart):
    profiles: list[ProfileShape]


class AlgorithmShape(FilePart):
    algorithm: str
    kernel_name: str
    module: str | None
    parameters: dict[str, str]
    summary: str


class ListAlgorithms(FilePart):
    algorithms: list[AlgorithmShape]


class KernelShape(FilePart):
    kernel: str
    release: str
    source: str
    image_sha256: str
    options_not_taken: list[str]
    directory: str


class ListKernels(FilePart):
    kernels: list[KernelShape]


class ReceiverSource(FilePart):
    title: str
    address: str | None


class ReceiverShape(FilePart):
    receiver: str
    emulated: bool
    summary: str
    sources: list[ReceiverSource]


class ListReceivers(FilePart):
    receivers: list[ReceiverShape]


class ListedMetric(FilePart):
    metric: str
    unit: str | None
    meaning: str


class ListMetrics(FilePart):
    metrics: list[ListedMetric]


class StackShape(FilePart):
    stack: str
    summary: str
    needs: list[str] = Field(description="programs that build it")


class ListStacks(FilePart):
    stacks: list[StackShape]


class ListedRun(FilePart):
    experiment: str
    run: str
    status: str
    verdict: str | None
    outdated: bool = Field(description="the verdict is from another version of the analysis")
    changed: bool = Field(description="verdict.json is not the file that was recorded: no verdict is shown")


class ListRuns(FilePart):
    runs: list[ListedRun]
