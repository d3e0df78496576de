"""What the three internal topics say, as immutable values. Pure: no I/O."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


class TargetState(enum.Enum):
    """What a user wants of a connector (``target-state-<name>``)."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


INITIAL_STATES = {"RUNNING": TargetState.STARTED, "PAUSED": TargetState.PAUSED, "STOPPED": TargetState.STOPPED}
"""Target states by the names that ``initial_state`` of a new connector has (KIP-980)."""


class State(enum.Enum):
    """What a connector or task is doing (``status-*``); tasks are never STOPPED."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"


@dataclass(frozen=True, slots=True)
class RestartRequest:
    """A restart of a connector and a choice of its tasks (KIP-745), or of the one task ``task`` and nothing else."""

    connector: str
    only_failed: bool = False
    include_tasks: bool = False
    task: int | None = None


@dataclass(frozen=True, slots=True)
class ConnectorEntry:
    """All that the config topic says of one connector.

    ``config`` None: task configs or a target state without a connector (it was deleted, or is being created STOPPED).
    ``task_configs`` are the committed ones only; ``inconsistent`` says that the commit record asks for more tasks than
    there are task records, so they must be generated again.
    ``revision`` is the offset of the last record that changed config or task configs.
    ``applied_config`` is the config as it was at the last commit of task configs: where it differs from ``config``, the
    task configs have not been made from the newest config yet.
    ``task_count`` is how many tasks of exactly-once generations have had transactional ids (None: never any), and
    ``pending_fencing`` says that task configs were committed since those ids were last fenced.
    ``target_state_at`` is when the target state was last written, or, if it never was, the config: in milliseconds since the
    epoch.
    """

    name: str
    config: Mapping[str, str] | None = None
    target_state: TargetState = TargetState.STARTED
    task_configs: tuple[Mapping[str, str], ...] = ()
    inconsistent: bool = False
    revision: int = -1
    applied_config: Mapping[str, str] | None = None
    task_count: int | None = None
    pending_fencing: bool = False
    target_state_at: int = 0


@dataclass(frozen=True, slots=True)
class ClusterState:
    """An immutable snapshot of the config topic, read up to ``offset`` (exclusive)."""

    connectors: Mapping[str, ConnectorEntry] = field(default_factory=dict)
    offset: int = 0
    logger_levels: Mapping[str, str] = field(default_factory=dict)

    def names(self) -> list[str]:
        """Return the names of the connectors that exist (have a config)."""
        return [name for name, entry in self.connectors.items() if entry.config is not None]

    def entry(self, name: str) -> ConnectorEntry | None:
        """Return a connector that exists, or None."""
        entry = self.connectors.get(name)
        return entry if entry is not None and entry.config is not None else None


@dataclass(frozen=True, slots=True)
class Status:
    """One status record. ``timestamp`` is the Kafka record's, in milliseconds since the epoch (0: not from Kafka)."""

    state: State
    worker_id: str
    generation: int
    trace: str | None = None
    version: str | None = None
    timestamp: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class TaskId:
    """A task of a connector; prints as ``name-0``."""

    connector: str
    task: int

    def __str__(self) -> str:
        return f"{self.connector}-{self.task}"
