"""Parses and checks requests to change a connector's offsets (KIP-875). No I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from sluiceway.api import TopicPartition
from sluiceway.errors import BadRequestError, ConnectError
from sluiceway.storage.history import OffsetChange
from sluiceway.storage.model import ConnectorEntry, TargetState

OffsetEdit = tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]
"""A partition and its new offset. None as the offset removes it."""

TOPIC, PARTITION, OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"

_INT, _LONG = 2**31, 2**63
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def refuse_empty(edits: Sequence[OffsetEdit]) -> None:
    """Raise BadRequestError for a request without offsets."""
    if not edits:
        raise BadRequestError("Partitions / offsets need to be provided for an alter offsets request")


def refuse_unless_stopped(entry: ConnectorEntry) -> None:
    """Raise BadRequestError unless the connector's target state is STOPPED and it has no tasks."""
    if entry.target_state is not TargetState.STOPPED or entry.task_configs:
        raise BadRequestError(
            "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the specified "
            f"connector by issuing a 'PUT' request to the '/connectors/{entry.name}/stop' endpoint"
        )


def sink_offsets(edits: Sequence[OffsetEdit]) -> dict[TopicPartition, int | None]:
    """Parse the offsets of a sink in a request. Raises BadRequestError for an invalid partition or offset."""
    return {_sink_partition(partition): _sink_offset(offset) for partition, offset in edits}


def is_topic_name(name: str) -> bool:
    """Return whether Kafka accepts the name for a topic."""
    return _TOPIC_NAME.fullmatch(name) is not None and name not in (".", "..")


def as_edits(offsets: Mapping[TopicPartition, int]) -> list[OffsetEdit]:
    """Return a sink's offsets as REST shows them."""
    return [({PARTITION: each.partition, TOPIC: each.topic}, {OFFSET: offset}) for each, offset in sorted(offsets.items())]


def refuse_nested(edits: Sequence[OffsetEdit]) -> None:
    """Raise ConnectError (DataException in Connect) for source partitions and offsets with values that are not primitive."""
    for fields in (each for edit in edits for each in edit if each is not None):
        for name, value in fields.items():
            kind = _not_primitive(value)
            if kind is not None:
                raise ConnectError(f"Offsets may only contain primitive types as values, but field {name} contains {kind}")


def changes(before: Sequence[OffsetEdit], after: Sequence[OffsetEdit]) -> list[OffsetChange]:
    """Return the partitions whose offsets differ, with both."""
    old, new = _by_partition(before), _by_partition(after)
    pairs = ((key, old.get(key, ({}, None)), new.get(key, ({}, None))) for key in {**old, **new})
    return [(was[0] or now[0] or {}, was[1], now[1]) for _, was, now in pairs if was[1] != now[1]]


def with_stored(
    edits: Sequence[OffsetEdit], stored: Sequence[OffsetEdit]
) -> list[tuple[Mapping[str, Any], Mapping[str, Any] | None, Mapping[str, Any] | None]]:
    """Return partitions with their stored and their new offsets, in the order of the new ones."""
    old = _by_partition(stored)
    pairs = _by_partition(edits).items()
    return [(partition or {}, old.get(key, (None, None))[1], offset) for key, (partition, offset) in pairs]


def _by_partition(edits: Sequence[OffsetEdit]) -> dict[str, OffsetEdit]:
    return {json.dumps(partition, sort_keys=True): (partition, offset) for partition, offset in edits}


def success(*, reset: bool, checked: bool) -> str:
    """Return Connect's message for success. ``checked``: the connector itself has checked the offsets."""
    done = "reset" if reset else "altered"
    if checked:
        return f"The offsets for this connector have been {done} successfully"
    return (
        f"The Connect framework-managed offsets for this connector have been {done} successfully. However, if this connector "
        f"manages offsets externally, they will need to be manually {done} in the system that the connector uses."
    )


def group_busy(name: str, *, reset: bool) -> str:
    """Return Connect's message for a stopped sink whose consumer group still has members."""
    do = "reset" if reset else "alter"
    return (
        f"Failed to {do} consumer group offsets for connector {name} either because its tasks haven't stopped completely yet "
        f"or the connector was resumed before the request to {do} its offsets could be successfully completed. If the connector "
        "is in a stopped state, this operation can be safely retried. If it doesn't eventually succeed, the Connect cluster "
        "may need to be restarted to get rid of the zombie sink tasks."
    )


def _not_primitive(value: object) -> str | None:
    if isinstance(value, list):
        return "ARRAY"
    if isinstance(value, Mapping):
        return "MAP"
    if isinstance(value, int) and not -_LONG <= value < _LONG:
        return "class java.math.BigInteger"
    return None


def _sink_partition(partition: Mapping[str, Any] | None) -> TopicPartition:
    if partition is None:
        raise BadRequestError("The partition for a sink connector offset cannot be null or missing")
    if TOPIC not in partition or PARTITION not in partition:
        raise BadRequestError(f"The partition for a sink connector offset must contain the keys '{TOPIC}' and '{PARTITION}'")
    if partition[TOPIC] is None:
        raise BadRequestError("Kafka topic names must be valid strings and may not be null")
    if partition[PARTITION] is None:
        raise BadRequestError("Kafka partitions must be valid numbers and may not be null")
    number = _whole(partition[PARTITION], _INT)
    if number is None:
        raise BadRequestError(
            f"Failed to parse the following Kafka partition value in the provided offsets: '{_text(partition[PARTITION])}'. "
            "Partition values for sink connectors need to be integers."
        )
    return TopicPartition(_text(partition[TOPIC]), number)


def _sink_offset(offset: Mapping[str, Any] | None) -> int | None:
    if offset is None:
        return None
    if OFFSET not in offset:
        raise BadRequestError(f"The offset for a sink connector should either be null or contain the key '{OFFSET}'")
    number = _whole(offset[OFFSET], _LONG)
    if number is None:
        raise BadRequestError(
            f"Failed to parse the following Kafka offset value in the provided offsets: '{_text(offset[OFFSET])}'. "
            "Offset values for sink connectors need to be integers."
        )
    return number


def _whole(value: object, limit: int) -> int | None:
    """Return an integer, or the integer in a text, within Java's range. None for anything else."""
    try:
        number = int(str(value)) if "_" not in str(value) and str(value) == str(value).strip() else limit
    except ValueError:
        return None
    return number if -limit <= number < limit else None


def _text(value: object) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
