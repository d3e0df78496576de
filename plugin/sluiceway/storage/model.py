"""Values stored on the three internal topics: configs, target states, statuses, restart requests. Immutable. No I/O."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


class TargetState(enum.Enum):
    """The state that a user requested for a connector (``target-state-<name>``)."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


INITIAL_STATES = {"RUNNING": TargetState.STARTED, "PAUSED": TargetState.PAUSED, "STOPPED": TargetState.STOPPED}
"""Target states by the names used for ``initial_state`` of a new connector (KIP-980)."""


class State(enum.Enum):
    """The state of a connector or task (``status-*``). Tasks are never STOPPED."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"


@dataclass(frozen=True, slots=True)
class RestartRequest:
    """A request to restart a connector and a selection of its tasks (KIP-745), or only the task ``task``."""

    connector: str
    only_failed: bool = False
    include_tasks: bool = False
    task: int | None = None


@dataclass(frozen=True, slots=True)
class ConnectorEntry:
    """The state of one connector on the config topic.

    ``config`` is None if there is only a target state or task configs: the connector was deleted or is being created.
    ``task_configs`` are the committed ones.
    ``inconsistent``: the commit record announces more tasks than there are task configs, which must be generated again.
    ``revision`` is the offset of the last record that changed the config or the task configs.
    ``applied_config`` is the config at the last commit of task configs. If it differs from ``config``, the task configs
    were not generated from the newest config.
    ``task_count`` is the number of tasks that have had transactional ids (exactly-once), None if there never were any.
    ``pending_fencing``: task configs were committed after those ids were last fenced.
    ``target_state_at`` is the time at which the target state, or else the config, was last written, in milliseconds since
    the epoch.
    ``placed`` is the one of the numbered applications of its name that the connector was given, None if none was.
    ``application`` is the shared application that runs it, None for one of its own.
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
    placed: str | None = None
    application: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterState:
    """An immutable snapshot of the config topic up to ``offset`` (exclusive)."""

    connectors: Mapping[str, ConnectorEntry] = field(default_factory=dict)
    offset: int = 0
    logger_levels: Mapping[str, str] = field(default_factory=dict)

    def names(self) -> list[str]:
        """Return the names of the connectors that have a config."""
        return [name for name, entry in self.connectors.items() if entry.config is not None]

    def entry(self, name: str) -> ConnectorEntry | None:
        """Return a connector that has a config, or None."""
        entry = self.connectors.get(name)
        return entry if entry is not None and entry.config is not None else None


@dataclass(frozen=True, slots=True)
class Status:
    """A status record.

    ``timestamp`` is that of the Kafka record, or of the last heartbeat that renewed it, in milliseconds since the epoch. It is 0
    if the status was not read from Kafka. ``of_connect`` is True if a worker of Kafka Connect wrote it: its generation is the
    group's, which says nothing about a driver's.
    """

    state: State
    worker_id: str
    generation: int
    trace: str | None = None
    version: str | None = None
    timestamp: int = field(default=0, compare=False)
    of_connect: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class LeaseOwner:
    """The Airflow task whose driver holds a connector's lease. ``map_index`` is -1 for a task that is not mapped."""

    dag: str
    run: str
    task: str
    map_index: int = -1

    def __str__(self) -> str:
        mapped = "" if self.map_index < 0 else f"[{self.map_index}]"
        return f"DAG {self.dag}, run {self.run}, task {self.task}{mapped}"


@dataclass(frozen=True, slots=True)
class ConnectorStatuses:
    """The status records of one connector: its own, and those of its tasks by number, in ascending order."""

    connector: Status | None = None
    tasks: Mapping[int, Status] = field(default_factory=dict)

    def all(self) -> list[Status]:
        return [*self.tasks.values(), *([self.connector] if self.connector is not None else [])]


@dataclass(frozen=True, slots=True)
class TaskId:
    """The id of a task. Its text is ``<connector>-<number>``."""

    connector: str
    task: int

    def __str__(self) -> str:
        return f"{self.connector}-{self.task}"
