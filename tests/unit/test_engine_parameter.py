# SPDX-License-Identifier: Apache-2.0
"""Parameter names are checked against the modules of a run before it starts; the kernel would ignore a wrong one."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from howdah.build.modules import Module
from howdah.build.uml_kernel import Kernel
from howdah.engine.uml.parameter import built_in_parameters, check_parameters
from howdah.errors import ParameterError
from howdah.plan.plan import Plan
from tests.unit.plan_factory import make_plan


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    """A kernel whose build lists the parameters of its built-in cubic."""
    (tmp_path / "modules.builtin.modinfo").write_bytes(
        b"tcp_cubic.license=GPL\0tcp_cubic.parm=hystart:turn on/off\0tcp_cubic.parmtype=beta:int\0"
    )
    values: dict[str, Any] = {field.name: "" for field in dataclasses.fields(Kernel)}
    return Kernel(**{**values, "build_dir": tmp_path})


@pytest.fixture
def modules(tmp_path: Path) -> list[Module]:
    file = tmp_path / "ss_search.ko"
    file.write_bytes(b"\0name=ss_search\0parm=threshold:percent\0parmtype=threshold:uint\0parm=version:2, 3 or 4\0")
    return [Module("ss_search", file, None, "modules")]


def plan_with(**changes: Any) -> Plan:
    return dataclasses.replace(make_plan(), **changes)


def test_names_that_are_there_pass(kernel: Kernel, modules: list[Module]) -> None:
    plan = plan_with(
        module_parameters={"ss_search": {"threshold": "20", "version": "3"}},
        kernel_parameters={"tcp_cubic.hystart": "0", "tcp_cubic.beta": "700", "ipv6.disable": "1"},
    )
    check_parameters(plan, modules, kernel)


def test_a_wrong_name_is_refused_with_place_module_and_names(kernel: Kernel, modules: list[Module]) -> None:
    plan = plan_with(
        module_parameters={"ss_search": {"treshold": "20"}},
        parameter_places={"ss_search.treshold": "profiles/mine.yaml:12"},
    )
    with pytest.raises(ParameterError) as caught:
        check_parameters(plan, modules, kernel)
    assert caught.value.where == "profiles/mine.yaml:12"
    assert "ss_search" in caught.value.what
    assert "'treshold'" in caught.value.what
    assert caught.value.hint == "did you mean threshold? its parameters are threshold, version"


def test_a_wrong_name_of_built_in_code_is_refused(kernel: Kernel, modules: list[Module]) -> None:
    with pytest.raises(ParameterError, match="tcp_cubic has no parameter 'hystrat'") as caught:
        check_parameters(plan_with(kernel_parameters={"tcp_cubic.hystrat": "0"}), modules, kernel)
    assert caught.value.hint == "did you mean hystart? its parameters are beta, hystart"


@pytest.mark.parametrize("value", ["700", "-1", "0x2bc", "0", "0700", "2147483647"])
def test_what_a_built_in_number_takes_passes(kernel: Kernel, value: str) -> None:
    check_parameters(plan_with(kernel_parameters={"tcp_cubic.beta": value}), [], kernel)


@pytest.mark.parametrize("value", ["wrong", "1.5", "", "08", "2147483648", "1 MB", "0x"])
def test_a_value_with_which_no_kernel_boots_is_refused_at_its_line(kernel: Kernel, value: str) -> None:
    plan = plan_with(
        kernel_parameters={"tcp_cubic.beta": value}, parameter_places={"tcp_cubic.beta": "profiles/mine.yaml:12"}
    )
    with pytest.raises(ParameterError, match=r"tcp_cubic\.beta takes a whole number from -2147483648 to") as caught:
        check_parameters(plan, [], kernel)
    assert caught.value.where == "profiles/mine.yaml:12"


def test_a_built_in_switch_takes_yes_and_no(kernel: Kernel) -> None:
    (kernel.build_dir / "modules.builtin.modinfo").write_bytes(b"x.parmtype=on:bool\0x.parmtype=some:array of int\0")
    for value in ("1", "N", "off", "y"):
        check_parameters(plan_with(kernel_parameters={"x.on": value, "x.some": "a"}), [], kernel)
    with pytest.raises(ParameterError, match=r"x\.on takes yes or no, as 1 or 0, not '2'"):
        check_parameters(plan_with(kernel_parameters={"x.on": "2"}), [], kernel)


def test_a_kernel_without_a_list_is_not_judged(tmp_path: Path) -> None:
    assert built_in_parameters(tmp_path / "nothing") == {}
