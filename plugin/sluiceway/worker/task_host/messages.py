"""The two records of the status topic through which a driver and a task host talk. No I/O.

Both say everything there is to say, so that only the last record of a key counts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from sluiceway.errors import DataError
from sluiceway.runtime.task import TaskResult
from sluiceway.storage.codec import HOST_PREFIX
from sluiceway.storage.model import TaskId

_ORDERS, _REPORT = HOST_PREFIX + "orders-", HOST_PREFIX + "report-"


@dataclass(frozen=True, slots=True)
class HostedTask:
    """A task that a host must run.

    Its config is not here, because the config topic may be readable to fewer people than the status topic: the host reads the
    config topic up to ``config_offset`` and takes the config there if ``config_digest`` is its digest. ``positions`` are the
    offsets, by partition of the status topic, from which records are commands to the task.
    """

    job: str
    id: TaskId
    generation: int
    version: str | None
    sink: bool
    bounded: bool
    config_offset: int
    config_digest: str
    positions: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Orders:
    """The tasks that a host must run, by job. It drops those that are no longer listed, and ends with ``end``."""

    tasks: Mapping[str, HostedTask] = field(default_factory=dict)
    end: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """The share of a core that each running task of a host uses, and the result of each task that has ended, by job."""

    running: Mapping[str, float] = field(default_factory=dict)
    ended: Mapping[str, TaskResult] = field(default_factory=dict)


def orders_key(host: str) -> bytes:
    return f"{_ORDERS}{host}".encode()


def report_key(host: str) -> bytes:
    return f"{_REPORT}{host}".encode()


def reporting_host(key: bytes) -> str | None:
    """Return the name of the host whose report has this key, None if it is the key of something else."""
    return key.decode()[len(_REPORT) :] if key.startswith(_REPORT.encode()) else None


def config_digest(config: Mapping[str, str]) -> str:
    """Return a digest that tells two task configs apart."""
    return hashlib.sha256(json.dumps(sorted(config.items())).encode()).hexdigest()[:16]


def encode_orders(orders: Orders) -> bytes:
    tasks = [
        {**asdict(task), "positions": {str(partition): offset for partition, offset in task.positions.items()}}
        for task in orders.tasks.values()
    ]
    return json.dumps({"tasks": tasks, "end": orders.end}).encode()


def decode_orders(value: bytes) -> Orders:
    """Raises DataError for bytes that no driver of this version has written."""
    try:
        fields = json.loads(value)
        tasks = [
            HostedTask(
                **{
                    **task,
                    "id": TaskId(**task["id"]),
                    "positions": {int(partition): offset for partition, offset in task["positions"].items()},
                }
            )
            for task in fields["tasks"]
        ]
        return Orders({task.job: task for task in tasks}, fields["end"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"A task host cannot read its orders: {error!r}") from error


def encode_report(report: Report) -> bytes:
    ended = {job: asdict(result) for job, result in report.ended.items()}
    return json.dumps({"running": dict(report.running), "ended": ended}).encode()


def decode_report(value: bytes) -> Report:
    """Raises DataError for bytes that no host of this version has written."""
    try:
        fields = json.loads(value)
        ended = {job: TaskResult(**{**result, "id": TaskId(**result["id"])}) for job, result in fields["ended"].items()}
        return Report(fields["running"], ended)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"The driver cannot read the report of a task host: {error!r}") from error
