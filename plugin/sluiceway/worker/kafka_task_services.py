"""A distributed task's connections to the internal topics: commands to it, its status and its offsets. Runs on executors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from sluiceway.api.task import TopicPartition
from sluiceway.herder.loggers import Loggers
from sluiceway.kafka.kafka_based_log import LogRecord, TopicTail
from sluiceway.runtime.task import TaskCommand, TaskServices, TaskSpec
from sluiceway.storage.factory import open_source_offsets
from sluiceway.storage.model import State, Status
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore
from sluiceway.worker.task_commands import command_keys, level_in
from sluiceway.worker.task_heartbeat import HeartbeatReporter
from sluiceway.worker.task_host.shared_control import SharedTaskControl

_POLL_SECONDS = 0.2  # the longest that close() waits for the thread
_CLOSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class KafkaTaskServices:
    """Opens a task's connections on its executor. Picklable.

    Args:
        positions: offset of each partition of the config and status topics from which to read commands.
        paused: True if the connector's target state was not STARTED at those offsets.
    """

    positions: tuple[tuple[TopicPartition, int], ...]
    paused: bool

    def open(self, spec: TaskSpec) -> TaskServices:
        status = KafkaStatusBackingStore(spec.worker, reading=False)
        status.start()
        offsets = None
        if not spec.sink:
            offsets = open_source_offsets(spec.worker, spec.config)
            offsets.start()
        interval = spec.worker.duration("sluiceway.heartbeat.interval.ms").total_seconds()
        reporter = HeartbeatReporter(KafkaTaskReporter(spec, status), interval)
        command = TaskCommand.PAUSE if self.paused else TaskCommand.RUN
        control = KafkaTaskControl(spec, dict(self.positions), command, on_end=reporter.stop)

        def close() -> None:
            control.close()
            if offsets is not None:
                offsets.stop()
            status.stop()

        return TaskServices(control=control, reporter=reporter, offsets=offsets, close=close)


class KafkaTaskControl:
    """Follows a task's commands, and changed log levels, in the config and status topics, on a thread of its own.

    ``on_end`` is called on that thread once the task must stop, and when it has ended.
    """

    def __init__(
        self,
        spec: TaskSpec,
        positions: dict[TopicPartition, int],
        command: TaskCommand,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._spec = spec
        self._on_end = on_end
        # The status topic holds the heartbeats of all connectors and tasks; only records of these keys are decoded.
        self._keys = command_keys(spec.id)
        self._commands = SharedTaskControl(spec, command, on_end)
        self._loggers = Loggers(spec.id.connector)
        self._tail = TopicTail(spec.worker, f"{spec.worker.group_id}-commands", positions)
        self._failure: Exception | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"commands-{spec.id}", daemon=True)
        self._thread.start()

    def command(self) -> TaskCommand:
        """Return the command. Raises InternalTopicError if a topic was lost."""
        if self._failure is not None:
            raise self._failure
        return self._commands.command()

    def wait(self, seconds: float) -> None:
        """Wait until the command changes, at most ``seconds``. Records of other connectors do not end the wait."""
        if self._failure is None:
            self._commands.wait(seconds)

    def wake(self) -> None:
        self._commands.wake()

    def close(self) -> None:
        self._on_end()
        self._closing.set()
        self._thread.join(timeout=_CLOSE_SECONDS)

    def _follow(self) -> None:
        try:
            while not self._closing.is_set():
                for record in self._tail.poll(_POLL_SECONDS):
                    self._read(record)
        except Exception as error:  # noqa: BLE001 (the thread's outermost frame; the task's thread raises it)
            self._failure = error
            self._commands.wake()
        finally:
            self._tail.close()

    def _read(self, record: LogRecord) -> None:
        if record.key not in self._keys and record.topic != self._spec.worker.config_topic:
            return
        self._commands.read(record)
        if (level := level_in(record, self._spec)) is not None:
            self._loggers.apply_cluster_level(level.namespace, level.level)


class KafkaTaskReporter:
    """Writes a task's state, and the topics it uses, to the status topic."""

    def __init__(self, spec: TaskSpec, store: KafkaStatusBackingStore) -> None:
        self._spec = spec
        self._store = store

    def report(self, state: State, trace: str | None = None) -> None:
        spec = self._spec
        self._store.put_task(spec.id, Status(state, spec.worker_id, spec.generation, trace, spec.version))

    def topic(self, topic: str) -> None:
        self._store.put_topic(self._spec.id.connector, self._spec.id.task, topic)
