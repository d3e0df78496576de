"""Encodes and decodes heartbeats: one record of the status topic renews the statuses of many connectors and tasks. No I/O.

A status record is written when the status changes. The process that is responsible for it says with heartbeats that it still
holds. A heartbeat counts only for statuses of the same worker and generation, so that one of a process that another has
replaced renews nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, field

from sluiceway.errors import DataError
from sluiceway.storage.codec import HOST_PREFIX, KeyValue
from sluiceway.storage.model import LeaseOwner, TaskId

_PREFIX = f"{HOST_PREFIX}heartbeat-"


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The statuses that still hold: the generation of each, by connector, and by connector and task.

    ``metrics`` is the URL at which a driver serves its metrics, ``owner`` the Airflow task that started the driver.
    """

    worker_id: str
    connectors: Mapping[str, int] = field(default_factory=dict)
    tasks: Mapping[TaskId, int] = field(default_factory=dict)
    metrics: str | None = None
    owner: LeaseOwner | None = None

    def subjects(self) -> Iterator[tuple[str | TaskId, int]]:
        """Yield each connector's name and each task's id, with the generation of its status."""
        yield from self.connectors.items()
        yield from self.tasks.items()


def heartbeat_key(sender: str) -> bytes:
    """Return the key of the heartbeats of a driver or a task host."""
    return f"{_PREFIX}{sender}".encode()


def is_heartbeat(key: bytes | None) -> bool:
    return key is not None and key.startswith(_PREFIX.encode())


def encode_heartbeat(sender: str, heartbeat: Heartbeat | None) -> KeyValue:
    """Encode a heartbeat. None is a tombstone: the sender has ended."""
    if heartbeat is None:
        return heartbeat_key(sender), None
    tasks: dict[str, dict[str, int]] = {}
    for task, generation in heartbeat.tasks.items():
        tasks.setdefault(task.connector, {})[str(task.task)] = generation
    fields: dict[str, object] = {"worker_id": heartbeat.worker_id, "connectors": dict(heartbeat.connectors), "tasks": tasks}
    if heartbeat.metrics is not None:
        fields["metrics"] = heartbeat.metrics
    if heartbeat.owner is not None:
        fields["owner"] = astuple(heartbeat.owner)
    return heartbeat_key(sender), json.dumps(fields, separators=(",", ":")).encode()


def decode_heartbeat(value: bytes) -> Heartbeat:
    """Decode a heartbeat. Raises DataError for bytes that no process of this version has written."""
    try:
        fields = json.loads(value)
        tasks = {
            TaskId(connector, int(number)): int(generation)
            for connector, numbers in fields["tasks"].items()
            for number, generation in numbers.items()
        }
        connectors = {str(name): int(generation) for name, generation in fields["connectors"].items()}
        metrics, owner = fields.get("metrics"), fields.get("owner")
        return Heartbeat(
            str(fields["worker_id"]),
            connectors,
            tasks,
            None if metrics is None else str(metrics),
            None if owner is None else LeaseOwner(*owner),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"The heartbeat cannot be read: {error!r}") from error
