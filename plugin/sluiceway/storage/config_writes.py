"""Decides which records a change of configs consists of, for both the Kafka and the memory config store."""

from __future__ import annotations

import abc
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from sluiceway.config.connector import NAME
from sluiceway.errors import ConflictError, NotFoundError
from sluiceway.storage.codec import (
    KeyValue,
    encode_commit,
    encode_connector,
    encode_logger_level,
    encode_placed,
    encode_restart,
    encode_target_state,
    encode_task,
    encode_task_count,
)
from sluiceway.storage.history import HistoryChange, OffsetChange, Origin, config_change, deletion, offsets_change, state_change
from sluiceway.storage.model import ClusterState, ConnectorEntry, RestartRequest, TargetState, TaskId


class Decided(NamedTuple):
    """The records to write, which may be none. ``change`` is what the history of the connector ``name`` records of it."""

    records: Sequence[KeyValue]
    name: str = ""
    change: HistoryChange | None = None


Decision = Callable[[ClusterState], Decided]
"""Returns what to write for the newest state. Raises an exception to refuse the change."""


class ConfigWrites(abc.ABC):
    """The ``put`` and ``remove`` methods of a config store. Each change is decided on the newest state and written atomically."""

    @abc.abstractmethod
    def _write(self, decide: Decision) -> None:
        """Write what ``decide`` returns for the newest state, and return once ``snapshot`` shows it."""

    def put_connector(
        self,
        name: str,
        config: Mapping[str, str],
        target_state: TargetState | None = None,
        *,
        check: Callable[[ClusterState], None] | None = None,
        origin: Origin | None = None,
        secrets: Collection[str] = (),
    ) -> None:
        """Store a config, preceded by a target state if given. See ``ConfigBackingStore``."""

        def decide(state: ClusterState) -> Decided:
            if check is not None:
                check(state)
            first = [] if target_state is None else [encode_target_state(name, target_state)]
            stored = {**config, NAME: config.get(NAME, name)}
            change = None if origin is None else config_change(state.entry(name), stored, target_state, origin, secrets)
            return Decided([*first, encode_connector(name, config)], name, change)

        self._write(decide)

    def remove_connector(self, name: str, origin: Origin | None = None) -> None:
        """Write the tombstones of the config and the target state, even if the connector does not exist."""

        def decide(state: ClusterState) -> Decided:
            entry = state.entry(name)
            placed = [encode_placed(name, None)] if entry is not None and entry.placed is not None else []
            change = None if origin is None else deletion(entry, origin)
            return Decided([*placed, encode_connector(name, None), encode_target_state(name, None)], name, change)

        self._write(decide)

    def put_target_state(self, name: str, state: TargetState, origin: Origin | None = None) -> None:
        """Store a target state; STOPPED is preceded by the commit of an empty set of tasks. Raises NotFoundError."""

        def decide(known: ClusterState) -> Decided:
            entry = _existing(known, name)
            first = [encode_commit(name, 0)] if state is TargetState.STOPPED else []
            change = None if origin is None else state_change(entry, state, origin)
            return Decided([*first, encode_target_state(name, state)], name, change)

        self._write(decide)

    def record_offsets(self, name: str, changes: Sequence[OffsetChange], origin: Origin) -> None:
        """Record in the history that offsets were changed. They are stored elsewhere."""
        self._write(lambda _state: Decided((), name, offsets_change(changes, origin)))

    def put_placed(self, decide: Callable[[ClusterState], Mapping[str, str]]) -> None:
        """Store which numbered application runs each of some connectors. See ``ConfigBackingStore``."""
        self._write(lambda state: Decided([encode_placed(name, application) for name, application in decide(state).items()]))

    def put_task_configs(self, name: str, configs: Sequence[Mapping[str, str]]) -> None:
        """Store task configs and their commit record unless they equal the stored ones. Raises NotFoundError.

        Equal ones are written again if the connector's config has changed since the last commit, as Connect does, so that
        readers of the topic see that they were generated from the newest config.
        """

        def decide(known: ClusterState) -> Decided:
            entry = _existing(known, name)
            up_to_date = entry.applied_config == entry.config and not entry.inconsistent
            if up_to_date and list(entry.task_configs) == [dict(config) for config in configs]:
                return Decided(())
            tasks = [encode_task(TaskId(name, number), config) for number, config in enumerate(configs)]
            return Decided([*tasks, encode_commit(name, len(configs))])

        self._write(decide)

    def put_task_count(self, name: str, tasks: int) -> None:
        """Store that all earlier tasks were fenced and ``tasks`` may start. See ``ConfigBackingStore``."""

        def decide(known: ClusterState) -> Decided:
            newest = len(_existing(known, name).task_configs)
            if newest != tasks:
                raise ConflictError(
                    f"Connector {name} now has {newest} tasks instead of the {tasks} that were fenced for: another driver "
                    "gave it new task configs. Fence again before any task starts."
                )
            return Decided([encode_task_count(name, tasks)])

        self._write(decide)

    def put_restart_request(self, request: RestartRequest) -> None:
        """Request a restart from the driver that runs the connector."""
        self._write(lambda _state: Decided([encode_restart(request)]))

    def put_logger_level(self, namespace: str, level: str) -> None:
        """Request a log level from every process of the cluster."""
        self._write(lambda _state: Decided([encode_logger_level(namespace, level)]))


def _existing(state: ClusterState, name: str) -> ConnectorEntry:
    entry = state.entry(name)
    if entry is None:
        raise NotFoundError(f"Connector {name} not found")
    return entry
