"""Targets of offsets, as kafka-consumer-groups.sh understands them."""

from __future__ import annotations

import pytest

from sluiceway.api import OffsetTarget, OffsetTargetKind, TopicPartition
from sluiceway.errors import BadRequestError, NotFoundError
from sluiceway.herder.offset_targets import (
    PartitionChoice,
    chosen_partitions,
    chosen_sources,
    parse_target,
    sink_offset,
)
from sluiceway.kafka.lag import PartitionBounds

EARLIEST, LATEST, TIMESTAMP, SHIFT = OffsetTargetKind
COUNTS = {"a": 2, "b": 1, "other": 3}
T0 = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("to", "shift_by", "target"),
    [
        ("earliest", None, OffsetTarget(EARLIEST)),
        ("LATEST", None, OffsetTarget(LATEST)),
        (None, "-3", OffsetTarget(SHIFT, -3)),
        ("1970-01-01T00:00:01.500", None, OffsetTarget(TIMESTAMP, 1500)),
        ("1970-01-01T00:00:01Z", None, OffsetTarget(TIMESTAMP, 1000)),
        ("1970-01-01T01:00:01+01:00", None, OffsetTarget(TIMESTAMP, 1000)),
        ("1970-01-02", None, OffsetTarget(TIMESTAMP, 86_400_000)),
        ("1969-12-31T23:59:59", None, OffsetTarget(TIMESTAMP, -1000)),
    ],
)
def test_targets_are_parsed(to: str | None, shift_by: str | None, target: OffsetTarget) -> None:
    assert parse_target(to, shift_by) == target


@pytest.mark.parametrize(
    ("to", "shift_by", "message"),
    [
        (None, None, "Name one target"),
        ("latest", "1", "Name one target"),
        ("now", None, "nor a time such as"),
        ("", None, "nor a time such as"),
        (None, "1.5", "not a whole number"),
    ],
)
def test_other_targets_are_refused(to: str | None, shift_by: str | None, message: str) -> None:
    with pytest.raises(BadRequestError, match=message):
        parse_target(to, shift_by)


@pytest.mark.parametrize(
    ("target", "committed", "at", "offset"),
    [
        (OffsetTarget(EARLIEST), 50, -1, 10),
        (OffsetTarget(LATEST), None, -1, 100),
        (OffsetTarget(TIMESTAMP, 5), 50, 42, 42),
        (OffsetTarget(TIMESTAMP, 5), 50, -1, 100),  # no record is as late
        (OffsetTarget(SHIFT, 7), 50, -1, 57),
        (OffsetTarget(SHIFT, -7), 50, -1, 43),
        (OffsetTarget(SHIFT, 70), 50, -1, 100),
        (OffsetTarget(SHIFT, -70), 50, -1, 10),
        (OffsetTarget(SHIFT, 0), 5, -1, 10),  # the records were deleted
    ],
)
def test_offsets_stay_within_the_partition(target: OffsetTarget, committed: int | None, at: int, offset: int) -> None:
    assert sink_offset("k", T0, target, committed, PartitionBounds(10, 100, at)) == offset


def test_without_an_offset_there_is_nothing_to_shift() -> None:
    with pytest.raises(BadRequestError, match="no offset to shift in partition t:0"):
        sink_offset("k", T0, OffsetTarget(SHIFT, 1), None, PartitionBounds(0, 1))


@pytest.mark.parametrize(
    ("config", "topics", "numbers", "found"),
    [
        ({"topics": "b,a"}, [], [], ["a:0", "a:1", "b:0"]),
        ({"topics.regex": "[ab]"}, [], [], ["a:0", "a:1", "b:0"]),
        ({"topics": "a,b"}, ["a"], ["1"], ["a:1"]),
        ({"topics.regex": "[ab]"}, ["b"], [], ["b:0"]),
        ({"topics": "a,b"}, [], ["0"], ["a:0", "b:0"]),
    ],
)
def test_partitions_of_a_sink_are_chosen(config: dict[str, str], topics: list[str], numbers: list[str], found: list[str]) -> None:
    chosen = chosen_partitions("k", config, PartitionChoice.parse(topics, numbers), COUNTS)
    assert [f"{each.topic}:{each.partition}" for each in chosen] == found


@pytest.mark.parametrize(
    ("config", "topics", "numbers", "error", "message"),
    [
        ({"topics": "a"}, ["other"], [], BadRequestError, "does not read topic other"),
        ({"topics.regex": "[ab]"}, ["other"], [], BadRequestError, "does not read topic other"),
        ({"topics": "gone"}, [], [], NotFoundError, "do not exist: gone"),
        ({"topics.regex": "[xyz]"}, [], [], NotFoundError, "do not exist: no topic"),
        ({"topics": "a,b"}, [], ["1"], NotFoundError, "do not exist: b:1"),
        ({"topics": "a"}, [], ["{}"], BadRequestError, "is a number"),
        ({"topics": "a"}, [], ["-1"], BadRequestError, "neither the number"),
        ({"topics": "a"}, [], ["x"], BadRequestError, "neither the number"),
        ({"topics": "a"}, [], ["true"], BadRequestError, "neither the number"),
    ],
)
def test_unknown_partitions_are_refused(
    config: dict[str, str], topics: list[str], numbers: list[str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        chosen_partitions("k", config, PartitionChoice.parse(topics, numbers), COUNTS)


def test_partitions_of_a_source_are_chosen_by_their_fields() -> None:
    found = [({"protocol": "1", "table": "a"}, {"n": 1}), ({"protocol": "1", "table": "b"}, None)]
    assert chosen_sources(found, PartitionChoice()) == found
    assert chosen_sources(found, PartitionChoice.parse([], ['{"table": "b"}'])) == found[1:]
    with pytest.raises(NotFoundError, match="No partition"):
        chosen_sources(found, PartitionChoice.parse([], ['{"table": "c"}']))
    with pytest.raises(BadRequestError, match="Topics are for sinks"):
        chosen_sources(found, PartitionChoice.parse(["t"], []))
    with pytest.raises(BadRequestError, match="JSON object"):
        chosen_sources(found, PartitionChoice.parse([], ["1"]))
