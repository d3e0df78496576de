"""Converts the source's topic partitions to and from task configs and stored offsets. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sluiceway.api import Offset, Partition, TopicPartition
from sluiceway.data import java_text
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.java.numbers import whole_number

ASSIGNED_PARTITIONS = "task.assigned.partitions"
TASK_INDEX = "task.index"

CLUSTER = "cluster"
PARTITION = "partition"
TOPIC = "topic"
OFFSET = "offset"

_INT = range(-(2**31), 2**31)


def assign_round_robin(partitions: Collection[TopicPartition], max_tasks: int) -> list[list[TopicPartition]]:
    """Return the partitions of each task, round-robin, for at most ``max_tasks`` tasks. No task is without partitions."""
    ordered = sorted(partitions)
    return [ordered[task::max_tasks] for task in range(min(max_tasks, len(ordered)))]


def assignment_text(partitions: Sequence[TopicPartition]) -> str:
    """Return ``task.assigned.partitions`` for a task's config, such as ``orders-0,orders-1``."""
    return ",".join(f"{topic}-{partition}" for topic, partition in partitions)


def parse_assignment(text: str) -> list[TopicPartition]:
    """Parse the text that ``assignment_text`` returns; raises ConfigError."""
    return [_parse_topic_partition(each) for each in text.split(",") if each]


def source_partition(alias: str, topic_partition: TopicPartition) -> dict[str, str | int]:
    """Return the source partition (the key of stored offsets) of a topic partition."""
    return {CLUSTER: alias, PARTITION: topic_partition.partition, TOPIC: topic_partition.topic}


def next_position(offset: Offset | None) -> int | None:
    """Return the position to read from, given the stored offset of the last copied record; None if none is stored.

    Raises ConnectError for a stored offset that is not an integer.
    """
    stored = None if offset is None else offset.get(OFFSET)
    if stored is None:
        return None
    if not _is_integer(stored):
        raise ConnectError(
            f"The stored offset {offset!r} is not an integer. "
            "Correct it with PATCH /connectors/<name>/offsets, or DELETE it to read from the start."
        )
    return stored + 1 if stored >= 0 else None


def check_offset(partition: Partition, offset: Offset | None) -> None:
    """Check an offset that a user sets by REST; None deletes it. Raises ConnectError with Connect's messages."""
    if offset is None:
        return
    if partition is None:
        raise ConnectError("Source partitions may not be null")
    where = f"Source partition {java_text(partition)}"
    for key in (CLUSTER, TOPIC):
        _require(partition, key, where)
        if not isinstance(partition[key], str):
            raise _invalid(partition[key], key, where, "must be a string")
    _check_number(partition, PARTITION, where, _INT)
    _check_number(offset, OFFSET, f"Source offset {java_text(offset)} for source partition {java_text(partition)}", None)


def _parse_topic_partition(text: str) -> TopicPartition:
    topic, dash, digits = text.rpartition("-")
    number = whole_number(digits)
    if not (dash and topic) or number is None:
        raise ConfigError(ASSIGNED_PARTITIONS, text, "must be a list of <topic>-<partition>, separated by commas")
    return TopicPartition(topic, number)


def _check_number(found: Partition | Offset, key: str, where: str, valid: range | None) -> None:
    _require(found, key, where)
    value = found[key]
    if not _is_integer(value) or (valid is not None and value not in valid):
        raise _invalid(value, key, where, "must be an integer")
    if value < 0:
        raise _invalid(value, key, where, "cannot be negative")


def _require(found: Partition | Offset, key: str, where: str) -> None:
    if key not in found:
        raise ConnectError(f"{where} is missing the '{key}' key, which is required")


def _invalid(value: object, key: str, where: str, why: str) -> ConnectError:
    return ConnectError(f"{where} has an invalid value {java_text(value)} for the '{key}' key, which {why}")


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
