"""Partitions and offsets of the source as tasks are given them and as Connect stores them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sluiceway.api import Offset, Partition, TopicPartition
from sluiceway.data import java_text
from sluiceway.errors import ConfigError, ConnectError

ASSIGNED_PARTITIONS = "task.assigned.partitions"
TASK_INDEX = "task.index"

CLUSTER = "cluster"
PARTITION = "partition"
TOPIC = "topic"
OFFSET = "offset"

_INT = range(-(2**31), 2**31)


def dealt_out(places: Collection[TopicPartition], tasks: int) -> list[list[TopicPartition]]:
    """Return the partitions of each task, dealt out in turn; no task is left without any."""
    ordered = sorted(places)
    return [ordered[number::tasks] for number in range(min(tasks, len(ordered)))]


def assignment_text(places: Sequence[TopicPartition]) -> str:
    """Return partitions as a task's config holds them: ``orders-0,orders-1``."""
    return ",".join(f"{topic}-{partition}" for topic, partition in places)


def assigned(text: str) -> list[TopicPartition]:
    """Read what ``assignment_text`` wrote; raises ConfigError."""
    return [_place(each) for each in text.split(",") if each]


def source_partition(alias: str, place: TopicPartition) -> dict[str, str | int]:
    """Return a partition of the source as its offset is stored."""
    return {CLUSTER: alias, PARTITION: place.partition, TOPIC: place.topic}


def position_after(offset: Offset | None) -> int | None:
    """Return where to read on after a stored offset, which is that of the last record copied; None: nothing is stored."""
    stored = None if offset is None else offset.get(OFFSET)
    if stored is None:
        return None
    if not _whole(stored):
        raise ConnectError(
            f"The stored offset {offset!r} is none of a mirror's, which are whole numbers. "
            "Set it right by PATCH /connectors/<name>/offsets, or DELETE it to read from the start."
        )
    return stored + 1 if stored >= 0 else None


def check_offset(partition: Partition, offset: Offset | None) -> None:
    """Check an offset that a user wants to set, in Connect's words. Any may be forgotten. Raises ConnectError."""
    if offset is None:
        return
    if partition is None:
        raise ConnectError("Source partitions may not be null")
    here = f"Source partition {java_text(partition)}"
    for key in (CLUSTER, TOPIC):
        _require(partition, key, here)
        if not isinstance(partition[key], str):
            raise _invalid(partition[key], key, here, "must be a string")
    _check_number(partition, PARTITION, here, _INT)
    _check_number(offset, OFFSET, f"Source offset {java_text(offset)} for source partition {java_text(partition)}", None)


def _place(text: str) -> TopicPartition:
    topic, dash, number = text.rpartition("-")
    if not (dash and topic and number.isdecimal()):
        raise ConfigError(ASSIGNED_PARTITIONS, text, "A partition is a topic, a dash and a number")
    return TopicPartition(topic, int(number))


def _check_number(found: Partition | Offset, key: str, where: str, fitting: range | None) -> None:
    _require(found, key, where)
    value = found[key]
    if not _whole(value) or (fitting is not None and value not in fitting):
        raise _invalid(value, key, where, "must be an integer")
    if value < 0:
        raise _invalid(value, key, where, "cannot be negative")


def _require(found: Partition | Offset, key: str, where: str) -> None:
    if key not in found:
        raise ConnectError(f"{where} is missing the '{key}' key, which is required")


def _invalid(value: object, key: str, where: str, why: str) -> ConnectError:
    return ConnectError(f"{where} has an invalid value {java_text(value)} for the '{key}' key, which {why}")


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
