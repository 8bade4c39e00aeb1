# SPDX-License-Identifier: Apache-2.0
"""Collectors that send the kernel the same netlink requests at every sample and keep the answers unparsed."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.batch import Batch
from collectors.collector import IntervalCollector, Surroundings
from howdah.linux import clock
from howdah.linux.output import FramedFile


class PolledCollector(IntervalCollector):
    """Writes a framed file: for each sample and node the answers to the node's batch, if there are any.

    ``file`` and ``kind`` name the file and the kind of its records; ``questions`` returns each node's requests.
    """

    file: str
    kind: int

    def __init__(self, surroundings: Surroundings, interval_us: int | None) -> None:
        super().__init__(surroundings, interval_us)
        self._batches: list[tuple[int, Batch]] = []
        self._file: FramedFile | None = None
        # In real time earlier samples take time, so the wake-up's time would be too early.
        self._is_at_once = surroundings.plan is not None and surroundings.plan.traits.exact_uptime

    def questions(self) -> Iterator[tuple[str, Batch]]:
        """Yield each node and its batch; called once, when the collector starts."""
        raise NotImplementedError

    def start(self, _now_ns: int) -> None:
        for node, batch in self.questions():
            self._batches.append((self.surroundings.node_numbers[node], batch))
        output = self.surroundings.output
        self._file = FramedFile(output.binary(self.file), output.flush_ns)

    def sample(self, now_ns: int) -> None:
        assert self._file is not None
        for node, batch in self._batches:
            time_ns = now_ns if self._is_at_once else clock.now_ns()
            answers = batch.ask()
            if answers:
                self._file.append(time_ns, node, self.kind, answers)

    def stop(self, now_ns: int) -> None:
        assert self._file is not None
        self.sample(now_ns)
        self._file.close()
        for _node, batch in self._batches:
            batch.close()
