"""Values that the herder returns. Immutable. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sluiceway.storage.model import Status, TaskId

ConnectorType = Literal["source", "sink", "unknown"]
"""The type of a connector; ``unknown`` if its class cannot be loaded here."""


@dataclass(frozen=True, slots=True)
class ConnectorInfo:
    """A connector's config and the ids of its tasks. References to secrets in ``config`` are not resolved."""

    name: str
    config: Mapping[str, str]
    tasks: tuple[TaskId, ...]
    type: ConnectorType


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    """The status of a connector and of its tasks by number."""

    name: str
    connector: Status
    tasks: Mapping[int, Status]
    type: ConnectorType


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """A task and its config."""

    id: TaskId
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TopicTracking:
    """The worker's settings for the topics that connectors use: recorded, and resettable by users (KIP-558)."""

    enabled: bool = True
    resettable: bool = True

    @classmethod
    def of(cls, raw: Mapping[str, str]) -> TopicTracking:
        """Read a worker's ``topic.tracking.enable`` and ``topic.tracking.allow.reset``."""
        return cls(*(raw.get(f"topic.tracking.{key}", "true").strip().lower() != "false" for key in ("enable", "allow.reset")))
