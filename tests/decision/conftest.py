# SPDX-License-Identifier: Apache-2.0
"""Programs of plug-ins, built when a test asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.decision.build import program
from tests.decision.lived import once
from tests.decision.runner import Runner, source_of

Start = Callable[..., Runner]
Lives = Callable[[Start], None]
Lived = Callable[[str, Lives], None]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """The runner of a plug-in's source, linked once a session."""
    directory = tmp_path_factory.mktemp("decision")
    programs: dict[Path, Path] = {}

    def build(source: Path) -> Path:
        if source not in programs:
            programs[source] = program(source, directory)
        return programs[source]

    return build


@contextmanager
def _starting(built: Callable[[Path], Path]) -> Iterator[Start]:
    with ExitStack() as programs:

        def run(
            plug_in: str | Path,
            *,
            load: bool = True,
            tolerant: bool = False,
            core: dict[str, int] | None = None,
            **parameters: int | str,
        ) -> Runner:
            source = plug_in if isinstance(plug_in, Path) else source_of(plug_in)
            runner = programs.enter_context(Runner(built(source), tolerant=tolerant))
            runner.set(**parameters)
            runner.set_core(**(core or {}))
            if load:
                assert runner.load().error == 0
            return runner

        yield run


@pytest.fixture
def start(built: Callable[[Path], Path]) -> Iterator[Start]:
    """``start("limited", max_ssthresh=50)``: a running plug-in, loaded, with parameters set before; ``core`` has
    those of the core.

    Programs end with the test, and fail it when memory is left over.
    """
    with _starting(built) as run:
        yield run


@pytest.fixture
def lived(built: Callable[[Path], Path], request: pytest.FixtureRequest) -> Lived:
    """``lived("limited", lives)`` calls ``lives(start)``, unless the same program has lived the same lives before.

    For long lives, and those that are drawn. Nothing may decide them but the program and the code of these tests.
    Programs end with the call, and fail it when memory is left over.
    """

    def call(plug_in: str, lives: Lives) -> None:
        def whole() -> None:
            with _starting(built) as run:
                lives(run)

        once(source_of(plug_in), str(request.node.name), whole)

    return call
