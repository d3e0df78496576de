"""Parses the worker's and connectors' settings for exactly-once sources (KIP-618). No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluiceway.config.connector import SOURCE
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import OneOf
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.runtime.source.transaction_boundary import (
    ConnectorBoundary,
    IntervalBoundary,
    PollBoundary,
    TransactionBoundary,
)
from sluiceway.storage.model import TaskId

WORKER_SUPPORT = "exactly.once.source.support"
SUPPORT = "exactly.once.support"
BOUNDARY = "transaction.boundary"
INTERVAL = "transaction.boundary.interval.ms"

WORKER = ConfigDef(
    [
        ConfigKey(
            name=WORKER_SUPPORT,
            type=Type.STRING,
            default="disabled",
            importance=Importance.HIGH,
            validator=OneOf(("DISABLED", "PREPARING", "ENABLED"), ignore_case=True),
            doc="Set to enabled to write the records and offsets of source tasks in transactions. Kafka Connect requires "
            "preparing on all workers first; here it is accepted and has the effect of disabled.",
        ),
    ]
)

_CONNECTOR = ConfigDef([SOURCE[SUPPORT], SOURCE[BOUNDARY], SOURCE[INTERVAL]])


def exactly_once_enabled(worker: WorkerConfig) -> bool:
    """Return True if the worker runs its source tasks exactly once. Raises ConfigError for an invalid value."""
    return str(WORKER.parse(worker.raw)[WORKER_SUPPORT]).lower() == "enabled"


def transactional_id(worker: WorkerConfig, task: TaskId, slot: int | None = None) -> str:
    """Return the transactional id of a source task, the same as Kafka Connect's, or of one of its slots for DataFrames."""
    return f"{worker.group_id}-{task}" if slot is None else f"{worker.group_id}-{task}-slot-{slot}"


@dataclass(frozen=True, slots=True)
class ExactlyOnceSettings:
    """A connector's own settings. ``interval_ms`` is 0 unless the boundary is ``interval``."""

    required: bool
    boundary: str
    interval_ms: int

    @classmethod
    def of(cls, config: Mapping[str, str], worker: WorkerConfig) -> ExactlyOnceSettings:
        """Parse a connector's config. Raises ConfigError."""
        values = _CONNECTOR.parse(config)
        boundary = str(values[BOUNDARY]).lower()
        interval = values[INTERVAL] if isinstance(values[INTERVAL], int) else worker.number("offset.flush.interval.ms")
        return cls(
            required=str(values[SUPPORT]).lower() == "required",
            boundary=boundary,
            interval_ms=int(str(interval)) if boundary == "interval" else 0,
        )

    def new_boundary(self, *, each_batch: bool = False) -> TransactionBoundary:
        """Return the transaction boundary of one task. With ``each_batch``, ``poll`` ends a transaction after each one."""
        if self.boundary == "interval":
            return IntervalBoundary(self.interval_ms / 1000)
        return ConnectorBoundary() if self.boundary == "connector" else PollBoundary(each_batch=each_batch)


def check_not_required(settings: ExactlyOnceSettings) -> None:
    """Raise ConfigError for a connector that requires exactly once, on a worker that runs its tasks at least once."""
    if settings.required:
        raise ConfigError(
            SUPPORT,
            "required",
            f"this worker does not run sources exactly once; set {WORKER_SUPPORT}=enabled in its properties (distributed mode "
            "only), or requested here",
        )
