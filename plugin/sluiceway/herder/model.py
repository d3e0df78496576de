"""What the herder answers, as immutable values. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sluiceway.storage.model import Status, TaskId

ConnectorType = Literal["source", "sink", "unknown"]
"""Which way a connector moves records; ``unknown`` where its class cannot be loaded here."""


@dataclass(frozen=True, slots=True)
class ConnectorInfo:
    """A connector's config and its tasks' ids. ``config`` holds references to secrets, never the secrets."""

    name: str
    config: Mapping[str, str]
    tasks: tuple[TaskId, ...]
    type: ConnectorType


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    """How a connector and its tasks (by number) fare."""

    name: str
    connector: Status
    tasks: Mapping[int, Status]
    type: ConnectorType


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """A task and the config it was given."""

    id: TaskId
    config: Mapping[str, str]
