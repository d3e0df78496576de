"""Ranges of row keys: the plan, its divisions, and positions, as offsets and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.connectors.hbase.ranges import Plan, Position, keys_of, keys_text
from sluiceway.connectors.hbase.values import binary_text, from_binary_text
from sluiceway.errors import ConnectError

KEYS = st.one_of(st.binary(max_size=6), st.sampled_from([b"-", b"<", b" ", b"\\", b"\\x41", b"a b", b"\xff", b"\x00"]))


@given(st.binary())
def test_a_key_is_text_and_back(key: bytes) -> None:
    text = binary_text(key)
    assert from_binary_text(text) == key
    assert text.isascii()
    assert " " not in text


@given(st.lists(KEYS))
def test_keys_are_one_text_and_back(keys: list[bytes]) -> None:
    assert keys_of(keys_text(keys)) == tuple(keys)


@given(st.lists(st.lists(KEYS, max_size=5), min_size=1, max_size=4))
def test_a_plan_that_is_divided_covers_all_keys_and_survives_its_offset(rounds: list[list[bytes]]) -> None:
    plan = Plan((), {})
    for starts in rounds:
        before = set(plan.starts)
        plan = plan.divided(starts)
        assert Plan.of(plan.to_offset()) == plan
        assert before | set(starts) | {b""} == set(plan.starts)
        ends = [plan.end(start) for start in plan.starts]
        assert ends == [*plan.starts[1:], b""]
        for start in set(plan.starts) - before if before else ():
            assert plan.parents[start] == max(each for each in before if each < start)


def test_a_plan_has_not_more_ranges_than_fit_into_a_message() -> None:
    plan = Plan((), {}).divided([b"%05d" % each for each in range(5000)])
    assert 500 < len(plan.starts) <= 1000
    assert len(plan.divided([b"x%05d" % each for each in range(5000)]).starts) <= 1000


def test_a_range_without_a_position_stays_with_the_one_whose_position_it_takes() -> None:
    plan = Plan((), {}).divided([b"m"]).divided([b"c"]).divided([b"e", b"x"])
    assert plan.units({b"", b"m"}) == [(b"", b"c", b"e"), (b"m", b"x")]
    assert plan.units({b"", b"m", b"c"}) == [(b"",), (b"c", b"e"), (b"m", b"x")]
    assert plan.units(set()) == [(b"", b"c", b"e"), (b"m", b"x")]


@pytest.mark.parametrize(
    "offset",
    [{}, {"starts": ""}, {"starts": "a b"}, {"starts": "- b a"}, {"starts": "- a", "parents": "a"},
     {"starts": "- a", "parents": "b<-"}, {"starts": "- a", "parents": "-<a"}],
)  # fmt: skip
def test_what_is_no_plan_is_refused(offset: dict[str, Any]) -> None:
    with pytest.raises(ConnectError, match="does not say where ranges"):
        Plan.of(offset)


@given(st.integers(0, 2**62), st.one_of(st.none(), st.tuples(st.integers(0, 2**61), st.binary())))
def test_a_position_survives_its_offset(since: int, during: tuple[int, bytes] | None) -> None:
    position = Position(since) if during is None else Position(since, since + during[0], during[1])
    assert Position.of(position.to_offset()) == position


@pytest.mark.parametrize(
    "offset",
    [
        {},
        {"since": -1},
        {"since": "1"},
        {"since": True},
        {"since": 1, "until": 2},
        {"since": 1, "row": "a"},
        {"since": 1, "x": 1},
        {"since": 2**63},
        {"since": 2, "until": 1, "row": "a"},
        {"since": 1, "until": 2, "row": "é€"},
        {"since": 1, "until": 2, "row": "\\xff"},
    ],
)
def test_what_is_no_position_is_refused(offset: dict[str, Any]) -> None:
    with pytest.raises(ConnectError, match="is no position in a table"):
        Position.of(offset)
