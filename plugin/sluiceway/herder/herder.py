"""The herder: what REST, the command line, the driver and Airflow ask of connectors."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sluiceway.config.connector import CONNECTOR_CLASS, NAME
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class, is_sink
from sluiceway.errors import AlreadyExistsError, ConfigError, ConflictError, NotFoundError
from sluiceway.herder import offset_edits, states, validation
from sluiceway.herder.config_infos import ConfigInfos
from sluiceway.herder.enrichment import Config
from sluiceway.herder.loggers import Loggers, checked_level, follow
from sluiceway.herder.model import ConnectorInfo, ConnectorStatus, ConnectorType, TaskInfo
from sluiceway.herder.offset_edits import Edit
from sluiceway.herder.offsets import ConnectorOffsets, OpenGroups, await_rest, kafka_groups
from sluiceway.herder.patch import patched
from sluiceway.herder.restart_plan import plan_restart
from sluiceway.herder.topics import TopicTracking
from sluiceway.storage.interfaces import ConfigBackingStore, OffsetBackingStore, StatusBackingStore
from sluiceway.storage.model import ClusterState, ConnectorEntry, RestartRequest, State, Status, TargetState, TaskId

log = logging.getLogger(__name__)

_PATCH_ATTEMPTS = 10


class _ChangedMeanwhileError(ConflictError):
    """A config is no longer the one that was looked at."""


class Herder:
    """Answers from the stores' snapshots and writes to the stores; holds no state of its own, so any number may exist.

    Thread-safe if the stores are. Reads do not wait for Kafka; writes do, up to the stores' time limits, and raise what the
    stores raise. ``clock`` gives seconds since the epoch.
    """

    def __init__(
        self,
        worker: WorkerConfig,
        config: ConfigBackingStore,
        status: StatusBackingStore,
        offsets: OffsetBackingStore | None = None,
        *,
        clock: Callable[[], float] = time.time,
        open_groups: OpenGroups = kafka_groups,
    ) -> None:
        self._worker = worker
        self._config = config
        self._status = status
        self._offsets = offsets
        self._clock = clock
        self._open_groups = open_groups

    @property
    def topic_tracking(self) -> TopicTracking:
        """Whether the topics that connectors use are told."""
        return TopicTracking.of(self._worker.raw)

    # Reading.

    def connectors(self) -> list[str]:
        """Return the names of all connectors, sorted."""
        return sorted(self._config.snapshot().names())

    def configs(self) -> dict[str, Mapping[str, str]]:
        """Return the configs of all connectors by name, sorted."""
        state = self._config.snapshot()
        return {name: state.connectors[name].config or {} for name in sorted(state.names())}

    def info(self, name: str) -> ConnectorInfo:
        """Return a connector's config and tasks; raises NotFoundError."""
        return _info(self._existing(name))

    def task_infos(self, name: str) -> list[TaskInfo]:
        """Return a connector's tasks with their configs; raises NotFoundError."""
        entry = self._existing(name)
        return [TaskInfo(task, entry.task_configs[task.task]) for task in _tasks(entry)]

    def status(self, name: str) -> ConnectorStatus:
        """Return how a connector fares, never believing a driver that is gone; raises NotFoundError.

        A connector that no driver has taken yet is UNASSIGNED, or as its target state asks. (Connect has no answer for that
        moment and says 404; here it may last for as long as Airflow takes to start the driver.)
        """
        entry = self._config.snapshot().entry(name)
        if entry is None:
            raise NotFoundError(f"No status found for connector {name}")
        recorded = self._status.connector(name) or Status(State.UNASSIGNED, self._worker.advertised_address, 0)
        status, tasks = states.observe(entry.target_state, recorded, self._status.tasks(name), self._now())
        return ConnectorStatus(name, status, tasks, _type(entry))

    def task_status(self, task: TaskId) -> Status:
        """Return how one task fares; raises NotFoundError."""
        found = None
        if self._config.snapshot().entry(task.connector) is not None:
            found = self.status(task.connector).tasks.get(task.task)
        if found is None:
            raise NotFoundError(f"No status found for task {task}")
        return found

    def offsets(self, name: str) -> list[Edit]:
        """Return every partition of a connector with its offset; raises NotFoundError, KafkaClientError."""
        return self._offsets_of(self._existing(name)).read()

    def driver_lives(self, name: str) -> bool:
        """Whether a driver runs the connector, as far as its heartbeats tell."""
        return self._driver_lives(name)

    def topics(self, name: str) -> list[str]:
        """Return the topics that a connector was seen to use; none for a connector that does not exist, as in Connect."""
        return self._status.topics(name)

    def check_health(self, timeout: float) -> None:
        """Return if the cluster answers within ``timeout`` seconds; raises ConnectError."""
        self._config.refresh(timeout)

    # Writing.

    def validate(self, config: Config) -> ConfigInfos:
        """Return what is wrong with a config, and all keys that it may have; raises BadRequestError or ConfigError."""
        return validation.validate_config(config, self._worker)

    def create(self, name: str, config: Config, initial_state: TargetState | None = None) -> ConnectorInfo:
        """Make a connector, if its config is in order; raises BadRequestError or AlreadyExistsError and stores nothing then."""
        stored = validation.checked(validation.named(name, config), self._worker)

        def refuse_existing(newest: ClusterState) -> None:
            if newest.entry(name) is not None:
                raise AlreadyExistsError(f"Connector {name} already exists")

        self._config.put_connector(name, stored, initial_state, check=refuse_existing)
        self._forget_earlier(name)
        if initial_state in (TargetState.PAUSED, TargetState.STOPPED):
            self._put_to_rest(name, initial_state)
        log.info("[%s|worker] Created, %s", name, (initial_state or TargetState.STARTED).value)
        return self.info(name)

    def put_config(self, name: str, config: Config) -> tuple[bool, ConnectorInfo]:
        """Make a connector or give it a new config, if that is in order; return whether it is new, and its info.

        Raises BadRequestError and stores nothing then. A running driver takes the new config over by itself.
        """
        stored = validation.checked(validation.named(name, config), self._worker)
        created = False

        def look(newest: ClusterState) -> None:
            nonlocal created
            created = newest.entry(name) is None

        self._config.put_connector(name, stored, check=look)
        if created:
            self._forget_earlier(name)
        log.info("[%s|worker] %s", name, "Created" if created else "Config changed")
        return created, self.info(name)

    def patch_config(self, name: str, patch: Config) -> ConnectorInfo:
        """Change some keys of a connector's config, None removing one (KIP-477); return the connector's info.

        Raises NotFoundError, BadRequestError, and ConflictError if others change the config again and again meanwhile.
        """
        self._known(name, f"Connector {name} not found")
        for _ in range(_PATCH_ATTEMPTS):
            before = self._existing(name).config or {}
            after = patched(validation.named(name, before), validation.named(name, patch) if patch.get(NAME) else patch)
            stored = validation.checked(after, self._worker)
            try:
                self._config.put_connector(name, stored, check=functools.partial(_refuse_changed, name, before))
            except _ChangedMeanwhileError:
                continue
            log.info("[%s|worker] Config patched", name)
            return self.info(name)
        raise ConflictError(f"The config of connector {name} was changed by others while it was being patched; try again.")

    def delete(self, name: str) -> None:
        """Delete a connector; its offsets stay. Raises NotFoundError.

        A living driver drains its tasks and then clears the statuses; without one they are cleared here.
        """
        self._known(name, f"Connector {name} not found")
        lives = self._driver_lives(name)
        self._config.remove_connector(name)
        if not lives:
            self._status.remove_connector(name)
        log.info("[%s|worker] Deleted", name)

    def pause(self, name: str) -> None:
        """Ask that a connector pause: its tasks keep their place but move nothing. Raises NotFoundError."""
        self._rest(name, TargetState.PAUSED)

    def stop(self, name: str) -> None:
        """Ask that a connector stop: it has no tasks until it is resumed. Raises NotFoundError."""
        self._rest(name, TargetState.STOPPED)

    def resume(self, name: str) -> None:
        """Ask that a paused or stopped connector run. Raises NotFoundError."""
        self._known(name)
        self._config.put_target_state(name, TargetState.STARTED)
        log.info("[%s|worker] Target state STARTED", name)

    def restart(self, name: str, *, include_tasks: bool = False, only_failed: bool = False) -> ConnectorStatus:
        """Ask for a restart of the Connector, and of its tasks if they are included; only of what has failed, if asked so.

        Return how the connector fares once the request is under way. Without a driver there is nothing to restart: one that
        starts later starts everything. Raises NotFoundError.
        """
        self._known(name, f"Unknown connector: {name}")
        request = RestartRequest(name, only_failed, include_tasks)
        told = self.status(name)
        plan = plan_restart(request, told.connector.state, {number: task.state for number, task in told.tasks.items()})
        self._config.put_restart_request(request)
        log.info("[%s|worker] Restart requested: %s", name, plan)
        connector, tasks = plan.shown(told.connector, told.tasks)
        return replace(told, connector=connector, tasks=tasks)

    def restart_task(self, task: TaskId) -> None:
        """Ask for a restart of one task, whatever its state, and of nothing else. Raises NotFoundError."""
        self._known(task.connector, f"Unknown connector: {task.connector}")
        entry = self._config.snapshot().entry(task.connector)
        if entry is None or not 0 <= task.task < len(entry.task_configs):
            raise NotFoundError(f"Unknown task: {task}")
        self._config.put_restart_request(RestartRequest(task.connector, task=task.task))
        log.info("[%s|worker] Restart of task %d requested", task.connector, task.task)

    def alter_offsets(self, name: str, edits: Sequence[Edit]) -> str:
        """Set offsets of a stopped connector, None for one to be forgotten; return what to tell the user.

        Raises NotFoundError, BadRequestError if it is not stopped or an offset is none, ConnectError if the connector or
        the cluster refuses. Waits some seconds for a driver that is still stopping.
        """
        offset_edits.refuse_none(edits)
        return self._stopped_offsets(name).alter(edits)

    def reset_offsets(self, name: str) -> str:
        """Forget the offsets of a stopped connector; return what to tell the user. Raises as ``alter_offsets`` does."""
        return self._stopped_offsets(name).reset()

    def reset_topics(self, name: str) -> None:
        """Forget the topics that a connector was seen to use."""
        self._status.remove_topics(name)

    def follow_log_levels(self, loggers: Loggers) -> None:
        """Have levels that are set for the whole cluster set here too, from now on."""
        follow(self._config, loggers)

    def set_cluster_log_level(self, logger: str, level: str) -> None:
        """Ask every process of the cluster for a log level; raises NotFoundError for no level."""
        self._config.put_logger_level(logger, checked_level(level))

    def _stopped_offsets(self, name: str) -> ConnectorOffsets:
        entry = self._config.refresh().entry(name)
        if entry is None:
            raise NotFoundError(f"Connector {name} not found")
        offset_edits.refuse_unless_stopped(entry)
        await_rest(lambda: self._driver_lives(name), name)
        return self._offsets_of(entry)

    def _offsets_of(self, entry: ConnectorEntry) -> ConnectorOffsets:
        return ConnectorOffsets(entry, self._worker, self._offsets, self._open_groups)

    def _rest(self, name: str, target: TargetState) -> None:
        self._known(name)
        self._config.put_target_state(name, target)
        if not self._driver_lives(name):
            self._put_to_rest(name, target)
        log.info("[%s|worker] Target state %s", name, target.value)

    def _forget_earlier(self, name: str) -> None:
        """Clear what a driver that died left of an earlier connector of the same name."""
        if self._status.connector(name) is not None and not self._driver_lives(name):
            self._status.remove_connector(name)

    def _put_to_rest(self, name: str, target: TargetState) -> None:
        """Write the statuses that a driver would write, for want of one; a failure stays visible while paused, as in Connect."""
        entry = self._config.snapshot().entry(name)
        recorded = self._status.connector(name)
        paused = target is TargetState.PAUSED
        if entry is None or (paused and recorded is not None and recorded.state is State.FAILED):
            return
        status = Status(
            State.PAUSED if paused else State.STOPPED,
            self._worker.advertised_address,
            recorded.generation if recorded is not None else 0,
            version=_version(entry),
        )
        self._status.put_connector(name, status)
        for number, task in self._status.tasks(name).items():
            if not paused:
                self._status.remove_task(TaskId(name, number))
            elif task.state is not State.FAILED:
                self._status.put_task(TaskId(name, number), replace(status, generation=task.generation))

    # Helpers.

    def _existing(self, name: str) -> ConnectorEntry:
        entry = self._config.snapshot().entry(name)
        if entry is None:
            raise NotFoundError(f"Connector {name} not found")
        return entry

    def _known(self, name: str, otherwise: str | None = None) -> None:
        """Return if there is such a connector, also one that another process made just now."""
        if self._config.snapshot().entry(name) is None and self._config.refresh().entry(name) is None:
            raise NotFoundError(otherwise or f"Unknown connector {name}")

    def _driver_lives(self, name: str) -> bool:
        return states.driver_lives(self._status.connector(name), self._now())

    def _now(self) -> states.Clock:
        return states.Clock(int(self._clock() * 1000), self._worker.number("sluiceway.heartbeat.timeout.ms"))


def _refuse_changed(name: str, config: Mapping[str, str], newest: ClusterState) -> None:
    entry = newest.entry(name)
    if entry is None:
        raise NotFoundError(f"Connector {name} not found")
    if entry.config != config:
        raise _ChangedMeanwhileError(f"The config of connector {name} has changed.")


def _info(entry: ConnectorEntry) -> ConnectorInfo:
    return ConnectorInfo(entry.name, dict(entry.config or {}), _tasks(entry), _type(entry))


def _tasks(entry: ConnectorEntry) -> tuple[TaskId, ...]:
    return tuple(TaskId(entry.name, number) for number in range(len(entry.task_configs)))


def _type(entry: ConnectorEntry) -> ConnectorType:
    try:
        return "sink" if is_sink(connector_class((entry.config or {}).get(CONNECTOR_CLASS, ""))) else "source"
    except (NotFoundError, ConfigError):
        return "unknown"


def _version(entry: ConnectorEntry) -> str | None:
    try:
        return connector_class((entry.config or {}).get(CONNECTOR_CLASS, "")).version()
    except NotFoundError:
        return None
