from __future__ import annotations

import pytest

from sluiceway.api import TopicPartition
from sluiceway.connectors.mirror.source import MirrorSourceConnector
from sluiceway.connectors.mirror.topic_partitions import (
    assign_round_robin,
    assignment_text,
    next_position,
    parse_assignment,
    source_partition,
)
from sluiceway.errors import ConfigError, ConnectError


def partitions(topic: str, count: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]


def test_partitions_are_assigned_round_robin_in_any_input_order() -> None:
    found = [*partitions("b", 2), *partitions("a", 3)]
    assigned = assign_round_robin(found[::-1], 2)
    assert assigned == [[("a", 0), ("a", 2), ("b", 1)], [("a", 1), ("b", 0)]]


def test_no_task_is_without_partitions() -> None:
    assert assign_round_robin(partitions("a", 2), 5) == [[("a", 0)], [("a", 1)]]
    assert assign_round_robin([], 5) == []


def test_an_assignment_survives_the_task_config() -> None:
    given = [TopicPartition("a-b", 0), TopicPartition("c", 12)]
    assert assignment_text(given) == "a-b-0,c-12"
    assert parse_assignment("a-b-0,c-12") == given


@pytest.mark.parametrize("text", ["a", "a-", "-1", "a-x"])
def test_an_invalid_assignment_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"task.assigned.partitions"):
        parse_assignment(text)


def test_partitions_are_stored_as_mirror_maker_stores_them() -> None:
    stored = source_partition("A", TopicPartition("t", 3))
    assert list(stored.items()) == [("cluster", "A"), ("partition", 3), ("topic", "t")]


@pytest.mark.parametrize(
    ("offset", "position"),
    [(None, None), ({}, None), ({"offset": None}, None), ({"offset": 0}, 1), ({"offset": 41}, 42), ({"offset": -1}, None)],
)
def test_reading_resumes_after_the_stored_offset(offset: dict[str, object] | None, position: int | None) -> None:
    assert next_position(offset) == position


@pytest.mark.parametrize("wrong", ["5", 1.5, True])
def test_a_stored_offset_that_is_not_an_integer_is_refused_with_advice(wrong: object) -> None:
    with pytest.raises(ConnectError, match="PATCH /connectors"):
        next_position({"offset": wrong})


GOOD = {"partition": 0, "topic": "t", "cluster": "A"}


@pytest.mark.parametrize(
    ("partition", "offset", "where", "wrong"),
    [
        (
            {"topic": "t", "partition": 0},
            {"offset": 1},
            "Source partition {topic=t, partition=0}",
            "is missing the 'cluster' key, which is required",
        ),
        (
            {"partition": 0, "cluster": "A"},
            {"offset": 1},
            "Source partition {partition=0, cluster=A}",
            "is missing the 'topic' key, which is required",
        ),
        (
            {"topic": "t", "cluster": "A"},
            {"offset": 1},
            "Source partition {topic=t, cluster=A}",
            "is missing the 'partition' key, which is required",
        ),
        (
            {**GOOD, "cluster": 1},
            {"offset": 1},
            "Source partition {partition=0, topic=t, cluster=1}",
            "has an invalid value 1 for the 'cluster' key, which must be a string",
        ),
        (
            {**GOOD, "partition": "x"},
            {"offset": 1},
            "Source partition {partition=x, topic=t, cluster=A}",
            "has an invalid value x for the 'partition' key, which must be an integer",
        ),
        (
            {**GOOD, "partition": 1 << 31},
            {"offset": 1},
            "Source partition {partition=2147483648, topic=t, cluster=A}",
            "has an invalid value 2147483648 for the 'partition' key, which must be an integer",
        ),
        (
            {**GOOD, "partition": -1},
            {"offset": 1},
            "Source partition {partition=-1, topic=t, cluster=A}",
            "has an invalid value -1 for the 'partition' key, which cannot be negative",
        ),
        (
            GOOD,
            {"x": 1},
            "Source offset {x=1} for source partition {partition=0, topic=t, cluster=A}",
            "is missing the 'offset' key, which is required",
        ),
        (
            GOOD,
            {"offset": None},
            "Source offset {offset=null} for source partition {partition=0, topic=t, cluster=A}",
            "has an invalid value null for the 'offset' key, which must be an integer",
        ),
        (
            GOOD,
            {"offset": -1},
            "Source offset {offset=-1} for source partition {partition=0, topic=t, cluster=A}",
            "has an invalid value -1 for the 'offset' key, which cannot be negative",
        ),
    ],
)
def test_invalid_offsets_are_refused_with_connects_messages(
    partition: dict[str, object], offset: dict[str, object], where: str, wrong: str
) -> None:
    with pytest.raises(ConnectError) as error:
        MirrorSourceConnector().alter_offsets({}, [(partition, offset)])
    assert str(error.value) == f"{where} {wrong}"


def test_any_offset_may_be_deleted_and_large_ones_set() -> None:
    assert MirrorSourceConnector().alter_offsets({}, [({"no": "such"}, None), (GOOD, {"offset": 1 << 40})])
