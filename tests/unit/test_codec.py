# SPDX-License-Identifier: Apache-2.0
"""The plan's classes, and how they are written and read, on small ones."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import field

import pytest

from howdah.codec import MANY, OCCASIONAL, decoded, encoded, in_columns, in_rows, planned


@planned
class Wheel:
    size: int
    spokes: list[int] = field(default_factory=list, metadata=OCCASIONAL)
    maker: str | None = field(default=None, metadata=OCCASIONAL)


@planned
class Cart:
    name: str
    front: Wheel | None
    wheels: list[Wheel]
    by_place: dict[str, Wheel]
    span: tuple[int, int] = (0, 0)
    bell: bool = False
    note: str = field(default="", compare=False)


CART = Cart("a", None, [Wheel(1), Wheel(2, [3])], {"left": Wheel(4, maker="b")}, (5, 6), note="here")


def test_it_is_written_without_what_is_occasional_or_not_compared() -> None:
    assert encoded(CART) == {
        "name": "a",
        "front": None,
        "wheels": [{"size": 1}, {"size": 2, "spokes": [3]}],
        "by_place": {"left": {"size": 4, "maker": "b"}},
        "span": [5, 6],
        "bell": False,
    }


def test_it_is_read_as_it_was() -> None:
    found = decoded(Cart, encoded(CART))
    assert found == CART
    assert (found.note, found.span, type(found.by_place["left"])) == ("", (5, 6), Wheel)
    assert decoded(Cart, {**encoded(CART), "front": {"size": 7}}).front == Wheel(7)


@pytest.mark.parametrize(
    ("value", "said"),
    [({}, "Wheel lacks size"), ({"size": 1, "colour": 2}, "Wheel has no field colour")],
)
def test_what_is_missing_or_unknown_is_told(value: dict[str, int], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        decoded(Wheel, value)


@pytest.mark.parametrize(
    "value", [[], "text", {"front": [1]}, {"wheels": [1]}, {"by_place": [1]}, {"by_place": {"left": "a"}}]
)
def test_what_is_not_an_object_is_told(value: object) -> None:
    whole = {**encoded(CART), **value} if isinstance(value, dict) else value
    with pytest.raises(TypeError, match="is not an object"):
        decoded(Cart, whole)  # type: ignore[arg-type]


def test_fields_are_given_once_and_no_more_than_there_are() -> None:
    with pytest.raises(TypeError, match="has size twice"):
        Wheel(1, size=2)  # type: ignore[misc]
    with pytest.raises(TypeError, match="has 3 fields, not 4"):
        Wheel(1, [], None, 4)  # type: ignore[call-arg]


def test_it_cannot_be_changed_but_replaced() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError, match="size of Wheel cannot be changed"):
        CART.wheels[0].size = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del CART.wheels[0].size
    rung = dataclasses.replace(CART, bell=True)
    assert (rung.bell, rung.wheels, rung.note, rung == CART) == (True, CART.wheels, CART.note, False)
    assert Wheel(1).spokes is not Wheel(1).spokes


def test_it_is_a_dataclass_to_all_that_ask() -> None:
    assert Wheel(1) == Wheel(1, []) != Wheel(2)
    assert repr(Wheel(1)) == "Wheel(size=1, spokes=[], maker=None)"
    assert copy.deepcopy(CART) == pickle.loads(pickle.dumps(CART)) == CART
    assert dataclasses.asdict(Wheel(1)) == {"size": 1, "spokes": [], "maker": None}


def test_very_many_records_are_written_in_columns_and_read_as_they_were() -> None:
    rows: list[dict[str, object]] = [
        {"id": number, "name": f"n{number}", "bursts": [], "size": None} for number in range(MANY)
    ]
    whole = {"flows": rows, "others": rows, "format": 3}
    written = in_columns(whole, ("flows",))
    flows = written["flows"]
    assert (flows["id"], flows["bursts"], flows["size"]) == (list(range(MANY)), {"all": []}, {"all": None})
    assert written["others"] is rows
    assert in_rows(written, ("flows",)) == whole
    one_more_field = [*rows[1:], {**rows[0], "like": "cubic"}]
    for others in (rows[1:], one_more_field, [rows[0]] * MANY, []):
        plain = {"flows": others}
        assert in_columns(plain, ("flows",)) == plain
        assert in_rows(plain, ("flows", "timeline")) is plain


@pytest.mark.parametrize(
    "columns",
    [{}, {"id": {"all": 1}}, {"id": [1, 2], "size": [3]}, {"id": [1], "size": 3}, {"id": [1], "size": {"one": 3}}],
)
def test_columns_that_do_not_fit_are_refused(columns: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="one length"):
        in_rows({"flows": columns}, ("flows",))
