"""The progress of moves, and their summary."""

from __future__ import annotations

from typing import Any

import pytest

from sluiceway.cli.migration import Move
from sluiceway.cli.migration_steps import Step
from sluiceway.cli.migration_summary import Progress, summary_rows


def test_a_terminal_shows_one_line_and_errors() -> None:
    said: list[str] = []
    shown: list[str] = []
    progress = Progress(3, said.append, shown.append)
    for move in (Move("a", Step.STOP), Move("b", Step.STOP), Move("a", Step.DONE), Move("c", Step.PREPARE, error="Boom.")):
        progress.changed(move)
    assert shown[1] == "0 of 3 connectors done; 2 stopped on the source"
    assert shown[2] == "1 of 3 connectors done; 1 stopped on the source"
    assert shown[3] == "2 of 3 connectors done; 1 stopped on the source"
    assert said == ["c: not moved. Boom."]


def file_at(position: int) -> dict[str, Any]:
    return {"partition": {"filename": "x"}, "offset": {"position": position}}


def topic_at(partition: int, offset: int) -> dict[str, Any]:
    return {"partition": {"kafka_topic": "t", "kafka_partition": partition}, "offset": {"kafka_offset": offset}}


@pytest.mark.parametrize(
    ("offsets", "text"),
    [
        (None, "-"),
        ([], "none"),
        ([file_at(7)], '{"position": 7}'),
        ([{"partition": {}, "offset": {"a": "x" * 50}}], '{"a": "' + "x" * 33 + "..."),
        ([file_at(7), file_at(8)], "2 partitions"),
        ([topic_at(0, 7), topic_at(1, 8)], "15 in 2 partitions"),
        ([topic_at(0, 7), {"partition": {}, "offset": None}], "2 partitions"),
    ],
)
def test_offsets_are_shown_in_a_few_words(offsets: list[dict[str, Any]] | None, text: str) -> None:
    row = summary_rows([Move("a", Step.DONE, "RUNNING", standstill=1.23, before=offsets, after=offsets, here=True)])[1]
    assert row == ("a", "moved", "RUNNING", "1.2 s", text, text)


def test_a_connector_that_this_command_has_not_stopped_has_no_standstill() -> None:
    moves = [Move("a", Step.DONE, "PAUSED"), Move("b", error="Boom.")]
    assert [row[:4] for row in summary_rows(moves)[1:]] == [("a", "was moved", "PAUSED", "-"), ("b", "not moved", "-", "-")]
