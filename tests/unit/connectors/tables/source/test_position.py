"""Positions in tables as source offsets."""

from __future__ import annotations

from typing import Any

import pytest

from sluiceway.connectors.tables.source.position import Position, check_offset, position_of
from sluiceway.errors import ConnectError


@pytest.mark.parametrize(
    "position",
    [Position(7), Position(7, True), Position(7, True, "a", 3, "u"), Position(7, False, "a", 0), Position(0, uuid="u")],
)
def test_an_offset_is_read_as_it_was_written(position: Position) -> None:
    assert position_of(position.offset()) == position


@pytest.mark.parametrize(
    "offset",
    [
        {},
        {"snapshot": "7"},
        {"snapshot": None},
        {"snapshot": True},
        {"snapshot": 7, "row": -1},
        {"snapshot": 7, "file": 3},
        {"snapshot": 7, "initial": 1},
        {"version": 7},
    ],
)
def test_an_offset_that_no_task_can_start_from_is_refused(offset: dict[str, Any]) -> None:
    with pytest.raises(ConnectError):
        check_offset({"table": "t"}, offset, ["t"])


def test_offsets_are_of_tables_that_the_connector_reads() -> None:
    check_offset({"table": "t"}, {"snapshot": 7}, ["t"])
    check_offset({"table": "dropped"}, None, ["t"])
    for partition in ({"table": "other"}, {"file": "t"}, {"table": "t", "file": "x"}, None):
        with pytest.raises(ConnectError):
            check_offset(partition, {"snapshot": 7}, ["t"])
