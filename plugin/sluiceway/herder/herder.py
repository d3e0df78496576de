"""Serves requests about connectors from the REST API, the command line, the driver and Airflow."""

from __future__ import annotations

import copy
import functools
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sluiceway.api import OffsetTarget
from sluiceway.config.application import MAX_TASKS, Membership
from sluiceway.config.connector import CONFIG_TASK, CONNECTOR_CLASS, CONNECTOR_VERSION, NAME
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class
from sluiceway.errors import AlreadyExistsError, ConflictError, ConnectError, NotFoundError
from sluiceway.herder import history, moved, offset_edits, states, task_configs, validation
from sluiceway.herder.config_infos import ConfigInfos
from sluiceway.herder.dead_letters import ConnectorDeadLetters
from sluiceway.herder.enrichment import Config
from sluiceway.herder.isolated import Isolated, here
from sluiceway.herder.isolated_offsets import IsolatedOffsets
from sluiceway.herder.loggers import Loggers, checked_level, follow_cluster_levels
from sluiceway.herder.model import ConnectorInfo, ConnectorStatus, TaskInfo, TopicTracking
from sluiceway.herder.offset_edits import OffsetEdit
from sluiceway.herder.offset_targets import FoundOffset, PartitionChoice
from sluiceway.herder.offsets import ConnectorOffsets, OpenGroups, await_driver_stop, kafka_groups
from sluiceway.herder.overview import Overview, task_ids
from sluiceway.herder.restart_plan import plan_restart
from sluiceway.herder.signals import ConnectorSignals
from sluiceway.herder.substitutes import warn_of_substitutes
from sluiceway.storage.history import HistoryChange, Origin
from sluiceway.storage.interfaces import ConfigBackingStore, OffsetBackingStore, StatusBackingStore
from sluiceway.storage.intervals import IntervalEntry, Ledger, ledger_name
from sluiceway.storage.model import ClusterState, ConnectorEntry, RestartRequest, State, Status, TargetState, TaskId

log = logging.getLogger(__name__)

_PATCH_ATTEMPTS = 10


class _ChangedMeanwhileError(ConflictError):
    """A config was changed after it was read."""


def _admit_all(_name: str, _config: Mapping[str, str]) -> None:
    """Let every valid connector be created."""


class Herder:
    """Reads connectors from the stores' snapshots and writes changes to the stores.

    Has no state of its own, so any number of herders may exist. Thread-safe if the stores are. Reads do not wait for Kafka.
    Writes wait up to the stores' timeouts and raise the stores' errors. ``clock`` returns seconds since the epoch. ``admit`` is
    called with a new connector's name and valid config, and raises ConflictError if it cannot be created here. ``isolated``
    calls what needs a connector's secrets or code where this process has rights that connectors' authors have not. Validations
    then resolve no reference and connect to nothing.
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
        admit: Callable[[str, Mapping[str, str]], None] = _admit_all,
        isolated: Isolated = here,
    ) -> None:
        self._worker = worker
        self._config = config
        self._status = status
        self._offsets = offsets
        self._clock = clock
        self._open_groups = open_groups
        self._admit = admit
        self._isolated = isolated
        self._origin: Origin | None = None

    def acting_for(self, origin: Origin) -> Herder:
        """Return a herder that records the changes it makes in the connectors' histories, as made by ``origin``."""
        herder = copy.copy(self)
        herder._origin = origin
        return herder

    @property
    def worker(self) -> WorkerConfig:
        """The worker's config."""
        return self._worker

    @property
    def offline(self) -> bool:
        """Whether this process resolves no references and does not connect with connectors' rights."""
        return self._isolated is not here

    @property
    def topic_tracking(self) -> TopicTracking:
        """The worker's settings for the topics that connectors use."""
        return TopicTracking.of(self._worker.raw)

    # Reading.

    def connectors(self) -> list[str]:
        """Return the names of all connectors, sorted."""
        return sorted(self._config.snapshot().names())

    def overview(self) -> Overview:
        """Return all connectors as they are now."""
        return Overview(self._config.snapshot(), self._status.snapshot(), self._now(), self._worker.advertised_address)

    def metrics_urls(self) -> list[str]:
        """Return the URLs at which the drivers that are alive serve their metrics."""
        clock = self._now()
        return self._status.metrics_urls(clock.now - clock.timeout)

    def info(self, name: str) -> ConnectorInfo:
        """Return a connector's config and tasks. Raises NotFoundError."""
        return self.overview().info(name)

    def task_infos(self, name: str) -> list[TaskInfo]:
        """Return a connector's tasks with their configs. Raises NotFoundError."""
        entry = self._existing(name)
        return [TaskInfo(task, entry.task_configs[task.task]) for task in task_ids(entry)]

    def status(self, name: str) -> ConnectorStatus:
        """Return the status of a connector and its tasks, ignoring stale heartbeats. Raises NotFoundError."""
        return self.overview().status(name)

    def task_status(self, task: TaskId) -> Status:
        """Return the status of a task. Raises NotFoundError."""
        overview = self.overview()
        if overview.state.entry(task.connector) is not None:
            found = overview.status(task.connector).tasks.get(task.task)
            if found is not None:
                return found
        raise NotFoundError(f"No status found for task {task}")

    def offsets(self, name: str) -> list[OffsetEdit]:
        """Return every partition of a connector with its offset. Raises NotFoundError, KafkaClientError."""
        return self.offsets_and_position(name)[0]

    def offsets_and_position(self, name: str) -> tuple[list[OffsetEdit], str]:
        """Return ``offsets``, and where a source's position is, for users, if not in them; else an empty text."""
        offsets = self._offsets_of(self._existing(name))
        return offsets.read(), offsets.elsewhere

    def find_offsets(self, name: str, target: OffsetTarget, choice: PartitionChoice) -> list[FoundOffset]:
        """Return the offsets of a target such as a time, to be set by ``alter_offsets``. Raises as ``ConnectorOffsets.find``."""
        return self._offsets_of(self._existing(name)).find(target, choice)

    def history(self, name: str) -> list[HistoryChange]:
        """Return the recorded changes of a connector, oldest first; also of a deleted one. Raises NotFoundError."""
        changes = self._config.history(name)
        if not changes:
            self._known(name, f"Connector {name} not found")
        return changes

    def intervals(self, name: str) -> list[IntervalEntry]:
        """Return the intervals that runs of a connector have moved, the latest first. Raises NotFoundError, KafkaClientError."""
        self._existing(name)
        store = self._offsets
        if store is None:
            return []
        return sorted(Ledger.of(store.all(ledger_name(name))).entries.values(), key=lambda entry: -entry.interval.start)

    def waiting_intervals(self, name: str) -> list[IntervalEntry]:
        """Return the intervals that late records wait for (``airflow.interval.late=rerun``). Raises as ``intervals``."""
        self._existing(name)
        return [] if self._offsets is None else Ledger.waiting(self._offsets.all(ledger_name(name)))

    def config_of_version(self, name: str, version: int) -> dict[str, str]:
        """Return the config of a version in a connector's history, with the current secrets, without the task that set it.

        Raises NotFoundError, and BadRequestError if that version has no config or needs a secret that is gone.
        """
        changes = self.history(name)
        entry = self._config.snapshot().entry(name)
        config = history.config_of(name, changes, version, (entry.config if entry is not None else None) or {})
        return {key: value for key, value in config.items() if key != CONFIG_TASK}

    def dead_letters(self, name: str) -> ConnectorDeadLetters:
        """Return the dead letter queue of a connector. Raises NotFoundError."""
        return ConnectorDeadLetters(self._worker, name, self._existing(name).config or {}, self._isolated)

    def signals(self, name: str) -> ConnectorSignals:
        """Return the signals of a connector. Raises NotFoundError."""
        return ConnectorSignals(self._worker, name, self._existing(name).config or {}, self._isolated)

    def application(self, name: str) -> Membership:
        """Return the shared application that runs a connector, and why. Raises NotFoundError."""
        entry = self._existing(name)
        chosen = self._worker.applications.membership(entry.config or {})
        if entry.application == chosen.application:
            return chosen
        return Membership(entry.application, f"{chosen.reason}, and {MAX_TASKS} spreads its connectors")

    def driver(self, name: str) -> str | None:
        """Return the id of the driver that has the connector, also of one at rest; None without one. Raises NotFoundError."""
        self._existing(name)
        clock, status = self._now(), self._status.connector(name)
        # A driver that has just come has sent no heartbeat yet, and the REST API writes statuses, too: perhaps over the driver's.
        if named := self._status.driver(name, clock.now - clock.timeout):
            return named
        by_rest = status is not None and status.worker_id == self._worker.advertised_address and status.timestamp
        if status is None or by_rest or clock.stale(status) or status.worker_id == self._status.ended_driver(name):
            return None
        return status.worker_id

    def topics(self, name: str) -> list[str]:
        """Return the topics that a connector has used. As in Connect, empty for a connector that does not exist."""
        return self._status.topics(name)

    def check_health(self, timeout: float) -> None:
        """Check that the cluster answers within ``timeout`` seconds. Raises ConnectError."""
        self._config.refresh(timeout)

    # Writing.

    def validate(self, config: Config) -> ConfigInfos:
        """Return all keys of a config with their definitions and errors. Raises BadRequestError or ConfigError."""
        return validation.validate_config(config, self._worker, offline=self.offline)

    def create(self, name: str, config: Config, initial_state: TargetState | None = None) -> ConnectorInfo:
        """Create a connector if its config is valid, and return its info.

        Otherwise raises BadRequestError, AlreadyExistsError, or ConflictError, and stores nothing.
        """
        stored, secrets = self._checked(validation.named(name, config))

        def refuse_existing(newest: ClusterState) -> None:
            if newest.entry(name) is not None:
                raise AlreadyExistsError(f"Connector {name} already exists")
            task_configs.refuse_change(name, None, stored)
            self._admit(name, stored)

        self._config.put_connector(name, stored, initial_state, check=refuse_existing, origin=self._origin, secrets=secrets)
        self._remove_old_statuses(name)
        if initial_state in (TargetState.PAUSED, TargetState.STOPPED):
            self._write_statuses_at_rest(name, initial_state)
        log.info("[%s|worker] Created, %s", name, (initial_state or TargetState.STARTED).value)
        warn_of_substitutes(name, stored, self._worker)
        return self.info(name)

    def put_config(self, name: str, config: Config, *, by_task: bool = False) -> tuple[bool, ConnectorInfo]:
        """Create a connector or replace its config if the config is valid. Return whether it was created, and its info.

        Otherwise raises BadRequestError, or ConflictError for a new connector, for one that has moved, and for a config that an
        Airflow task sets unless it is ``by_task``; and stores nothing. A running driver applies the new config by itself.
        """
        stored, secrets = self._checked(moved.without_empty_mark(validation.named(name, config)))
        created = False

        def note_existence(newest: ClusterState) -> None:
            nonlocal created
            created = newest.entry(name) is None
            moved.refuse_change(name, newest.entry(name), config)
            if not by_task:
                task_configs.refuse_change(name, newest.entry(name), stored)
            if created:
                self._admit(name, stored)

        self._config.put_connector(name, stored, check=note_existence, origin=self._origin, secrets=secrets)
        log.info("[%s|worker] %s", name, "Created" if created else "Config changed")
        if created:
            self._remove_old_statuses(name)
            warn_of_substitutes(name, stored, self._worker)
        return created, self.info(name)

    def patch_config(self, name: str, patch: Config) -> ConnectorInfo:
        """Change some keys of a connector's config, where None removes one (KIP-477). Return the connector's info.

        Raises NotFoundError, BadRequestError, and ConflictError if other changes keep interfering, or the connector has moved.
        """
        self._known(name, f"Connector {name} not found")
        for _ in range(_PATCH_ATTEMPTS):
            entry = self._existing(name)
            before = entry.config or {}
            after = _patched(validation.named(name, before), validation.named(name, patch) if patch.get(NAME) else patch)
            stored, secrets = self._checked(moved.without_empty_mark(after))
            moved.refuse_change(name, entry, patch)
            task_configs.refuse_change(name, entry, stored)
            unchanged = functools.partial(_refuse_changed, name, before)
            try:
                self._config.put_connector(name, stored, check=unchanged, origin=self._origin, secrets=secrets)
            except _ChangedMeanwhileError:
                continue
            log.info("[%s|worker] Config patched", name)
            return self.info(name)
        raise ConflictError(f"The config of connector {name} was changed by others while it was being patched. Try again.")

    def delete(self, name: str) -> None:
        """Delete a connector and keep its offsets. Raises NotFoundError.

        A running driver stops its tasks and then clears the statuses. Without one they are cleared here.
        """
        self._known(name, f"Connector {name} not found")
        is_alive = self._driver_is_alive(name)
        self._config.remove_connector(name, self._origin)
        if not is_alive:
            self._status.remove_connector(name)
        log.info("[%s|worker] Deleted", name)

    def pause(self, name: str, *, by_move: bool = False) -> None:
        """Request that a connector pauses: its tasks stay but move no records. ``by_move`` is a move that starts it here.

        Raises NotFoundError, and ConflictError for one that has moved, or that another request would start while it moves.
        """
        self._refuse_moved(name)
        self._refuse_moving(name, by_move=by_move)
        self._pause_or_stop(name, TargetState.PAUSED)

    def stop(self, name: str) -> None:
        """Request that a connector stops: it has no tasks until it is resumed. Raises NotFoundError."""
        self._known(name)
        self._pause_or_stop(name, TargetState.STOPPED)

    def resume(self, name: str, *, by_move: bool = False) -> None:
        """Request that a paused or stopped connector runs. ``by_move`` and errors are as those of ``pause``."""
        self._refuse_moved(name)
        self._refuse_moving(name, by_move=by_move)
        self._config.put_target_state(name, TargetState.STARTED, self._origin)
        log.info("[%s|worker] Target state STARTED", name)

    def report_at_rest(self, name: str) -> bool:
        """Return whether a connector is paused or stopped. If so and it has no driver, write its statuses.

        Its target state is not written: a request that comes meanwhile stays.
        """
        entry = self._config.snapshot().entry(name)
        if entry is None or entry.target_state is TargetState.STARTED:
            return False
        if not self._driver_is_alive(name):
            self._write_statuses_at_rest(name, entry.target_state)
        return True

    def restart(self, name: str, *, include_tasks: bool = False, only_failed: bool = False) -> ConnectorStatus:
        """Request a restart of the Connector and, with ``include_tasks``, of its tasks.

        ``only_failed`` restarts only what has failed. Returns the status with RESTARTING for what is restarted. Without a
        driver there is nothing to restart: a driver that starts later starts everything. Raises NotFoundError, and
        ConflictError for one that has moved.
        """
        self._refuse_moved(name, f"Unknown connector: {name}")
        request = RestartRequest(name, only_failed, include_tasks)
        status = self.status(name)
        plan = plan_restart(request, status.connector.state, {number: task.state for number, task in status.tasks.items()})
        self._config.put_restart_request(request)
        log.info("[%s|worker] Restart requested: %s", name, plan)
        connector, tasks = plan.shown(status.connector, status.tasks)
        return replace(status, connector=connector, tasks=tasks)

    def restart_task(self, task: TaskId) -> None:
        """Request a restart of one task in any state. Raises NotFoundError, and ConflictError for a connector that has moved."""
        self._refuse_moved(task.connector, f"Unknown connector: {task.connector}")
        entry = self._config.snapshot().entry(task.connector)
        if entry is None or not 0 <= task.task < len(entry.task_configs):
            raise NotFoundError(f"Unknown task: {task}")
        self._config.put_restart_request(RestartRequest(task.connector, task=task.task))
        log.info("[%s|worker] Restart of task %d requested", task.connector, task.task)

    def alter_offsets(self, name: str, edits: Sequence[OffsetEdit]) -> str:
        """Set offsets of a stopped connector, where None removes one. Return the message for the user.

        Waits up to 10 s for a driver that is still stopping. Raises NotFoundError, BadRequestError if the connector is not
        stopped or an offset is invalid, and ConnectError if the connector or the cluster rejects the change.
        """
        offset_edits.refuse_empty(edits)
        offsets = self._stopped_offsets(name)
        return self._recording(name, offsets, lambda: offsets.alter(edits))

    def reset_offsets(self, name: str) -> str:
        """Remove the offsets of a stopped connector, and the ledger of its intervals: it begins again.

        Return the message for the user. Raises as ``alter_offsets`` does.
        """
        offsets = self._stopped_offsets(name)
        message = self._recording(name, offsets, offsets.reset)
        if self._offsets is not None and (ledger := self._offsets.all(ledger_name(name))):
            self._offsets.put(ledger_name(name), [(key, None) for key, _ in ledger])
        return message

    def reset_topics(self, name: str) -> None:
        """Remove the record of the topics that a connector has used."""
        self._status.remove_topics(name)

    def follow_log_levels(self, loggers: Loggers) -> None:
        """Apply log levels that are set for the whole cluster from now on."""
        follow_cluster_levels(self._config, loggers)

    def set_cluster_log_level(self, logger: str, level: str) -> None:
        """Set a log level for every process of the cluster. Raises NotFoundError for an unknown level."""
        self._config.put_logger_level(logger, checked_level(level))

    def _stopped_offsets(self, name: str) -> ConnectorOffsets | IsolatedOffsets:
        entry = self._config.refresh().entry(name)
        if entry is None:
            raise NotFoundError(f"Connector {name} not found")
        offset_edits.refuse_unless_stopped(entry)
        await_driver_stop(lambda: self._driver_is_alive(name), name)
        return self._offsets_of(entry)

    def _recording(self, name: str, offsets: ConnectorOffsets | IsolatedOffsets, change: Callable[[], str]) -> str:
        """Change offsets and record by whom. Return the message for the user."""
        if self._origin is None:
            return change()
        before = offsets.read()
        message = change()
        try:
            self._config.record_offsets(name, offset_edits.changes(before, offsets.read()), self._origin)
        except ConnectError as error:  # the offsets are changed, so the request must not fail
            log.warning("[%s|worker] The change of offsets is not in the history: %s", name, error)
        return message

    def _offsets_of(self, entry: ConnectorEntry) -> ConnectorOffsets | IsolatedOffsets:
        if self.offline:
            return IsolatedOffsets(entry, self._worker, self._offsets, self._open_groups, self._isolated)
        return ConnectorOffsets(entry, self._worker, self._offsets, self._open_groups)

    def _pause_or_stop(self, name: str, target: TargetState) -> None:
        self._config.put_target_state(name, target, self._origin)
        if not self._driver_is_alive(name):
            self._write_statuses_at_rest(name, target)
        log.info("[%s|worker] Target state %s", name, target.value)

    def _remove_old_statuses(self, name: str) -> None:
        """Clear the statuses that a dead driver has left of an earlier connector with this name."""
        if self._status.connector(name) is not None and not self._driver_is_alive(name):
            self._status.remove_connector(name)

    def _write_statuses_at_rest(self, name: str, target: TargetState) -> None:
        """Write the statuses of a paused or stopped connector without a driver.

        As in Connect, a failure stays visible while the connector is paused.
        """
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

    def _checked(self, config: Config) -> validation.Checked:
        return validation.checked(config, self._worker, offline=self.offline)

    def _existing(self, name: str) -> ConnectorEntry:
        entry = self._config.snapshot().entry(name)
        if entry is None:
            raise NotFoundError(f"Connector {name} not found")
        return entry

    def _known(self, name: str, otherwise: str | None = None) -> None:
        """Raise NotFoundError unless the connector exists, including one that another process has just created."""
        if self._config.snapshot().entry(name) is None and self._config.refresh().entry(name) is None:
            raise NotFoundError(otherwise or f"Unknown connector {name}")

    def _refuse_moved(self, name: str, otherwise: str | None = None) -> None:
        """Raise NotFoundError as ``_known`` does, and ConflictError for a connector that has moved to another cluster."""
        self._known(name, otherwise)
        moved.refuse_moved(name, self._config.snapshot().entry(name))

    def _refuse_moving(self, name: str, *, by_move: bool) -> None:
        if not by_move:
            moved.refuse_moving(name, self._config.snapshot().entry(name))

    def _driver_is_alive(self, name: str) -> bool:
        return states.driver_is_alive(self._status.connector(name), self._now())

    def _now(self) -> states.Clock:
        return states.Clock(int(self._clock() * 1000), self._worker.number("sluiceway.heartbeat.timeout.ms"))


def _patched(config: Mapping[str, str | None], patch: Config) -> dict[str, str]:
    """Return a config with the patch's keys: new ones come last, and None removes a key."""
    return {key: value for key, value in {**config, **patch}.items() if value is not None}


def _refuse_changed(name: str, config: Mapping[str, str], newest: ClusterState) -> None:
    entry = newest.entry(name)
    if entry is None:
        raise NotFoundError(f"Connector {name} not found")
    if entry.config != config:
        raise _ChangedMeanwhileError(f"The config of connector {name} has changed.")


def _version(entry: ConnectorEntry) -> str | None:
    try:
        config = entry.config or {}
        return connector_class(config.get(CONNECTOR_CLASS, ""), config.get(CONNECTOR_VERSION)).version()
    except NotFoundError:
        return None
