"""Runs a task in a thread for tests, with commands, reports and offsets in memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sluiceway.api import Offset, Partition
from sluiceway.config.worker import WorkerConfig
from sluiceway.metrics.registry import registry
from sluiceway.runtime.sink.worker_sink_task import run_sink
from sluiceway.runtime.source.worker_source_task import run_source
from sluiceway.runtime.task import TaskCommand, TaskResult, TaskServices, TaskSpec
from sluiceway.storage.codec import encode_offset
from sluiceway.storage.interfaces import OffsetBackingStore
from sluiceway.storage.model import State, TaskId
from support import explain
from support.eventually import LIMIT, eventually


class Offsets:
    """An ``OffsetBackingStore`` in memory; ``error`` is raised by ``put`` while it is set."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, str], Offset | None] = {}
        self.puts: list[list[tuple[Partition, Offset | None]]] = []
        self.error: Exception | None = None

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def get(self, connector: str, partitions: Sequence[Partition]) -> list[Offset | None]:
        return [self.stored.get((connector, json.dumps(dict(partition)))) for partition in partitions]

    def put(self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]) -> None:
        if self.error is not None:
            raise self.error
        self.puts.append(list(offsets))
        for partition, offset in offsets:
            encode_offset(connector, partition, offset)  # raises DataError for what cannot be stored
            self.stored[connector, json.dumps(dict(partition))] = offset

    def all(self, connector: str) -> list[tuple[Partition, Offset]]:
        return [
            (json.loads(key), offset) for (name, key), offset in self.stored.items() if name == connector and offset is not None
        ]


def batch_forms(connector: str) -> dict[str, int]:
    """Return the number of batches of the running tasks of a connector by reason; of columns under ``columns``."""
    found: dict[str, int] = {}
    for bean in registry.beans():
        if bean.type != "task-metrics" or bean.tags["connector"] != connector:
            continue
        for name, value in bean.values.items():
            if name.endswith("-batches-total"):
                reason = bean.tags.get("reason", "columns")
                found[reason] = found.get(reason, 0) + int(value)
    return found


class Commands:
    """A ``TaskControl`` for tests. ``script`` runs at each call of ``command()`` and may return a new command."""

    def __init__(self, script: Callable[[int], TaskCommand | None] | None = None) -> None:
        self._command = TaskCommand.RUN
        self._changed = threading.Event()
        self._script = script
        self._asked = 0

    def give(self, command: TaskCommand) -> None:
        self._command = command
        self._changed.set()

    def command(self) -> TaskCommand:
        self._asked += 1
        if self._script is not None and (command := self._script(self._asked)) is not None:
            self._command = command
        return self._command

    def wait(self, seconds: float) -> None:
        self._changed.wait(min(seconds, 0.05))
        self._changed.clear()

    def wake(self) -> None:
        self._changed.set()

    def close(self) -> None: ...


class Reports:
    """A ``TaskReporter`` that keeps the reports."""

    def __init__(self) -> None:
        self.states: list[State] = []
        self.trace: str | None = None
        self.topics: list[str] = []

    def report(self, state: State, trace: str | None = None) -> None:
        self.trace = trace
        self.states.append(state)

    def topic(self, topic: str) -> None:
        self.topics.append(topic)


class RunningTask:
    """A task in a thread of its own. Use it as a context manager, which stops the task at the end.

    Source offsets are in memory, in ``offsets``, unless a ``store`` is given.
    """

    def __init__(
        self,
        config: Mapping[str, str],
        worker: Mapping[str, str],
        *,
        offsets: Offsets | None = None,
        store: OffsetBackingStore | None = None,
        task: int = 0,
        bounded: bool = False,
        commands: Commands | None = None,
        sink: bool | None = None,
    ) -> None:
        self.offsets = offsets or Offsets()
        self._store: OffsetBackingStore = store or self.offsets
        self.commands = commands or Commands()
        self.reports = Reports()
        self.spec = spec_of(config, worker, task=task, bounded=bounded)
        if sink is not None:  # some sources have a key named topics
            self.spec = replace(self.spec, sink=sink)
        self.result: TaskResult | None = None
        self._thread = threading.Thread(target=self._run, name=str(self.spec.id), daemon=True)

    def _run(self) -> None:
        services = TaskServices(self.commands, self.reports, None if self.spec.sink else self._store)
        self.result = (run_sink if self.spec.sink else run_source)(self.spec, services)

    def __enter__(self) -> RunningTask:
        explain.task(self)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread.is_alive():
            self.commands.give(TaskCommand.STOP)
            self.join()

    def stored_offsets(self) -> list[tuple[Partition, Offset]]:
        """Return the source offsets in the task's store."""
        return self._store.all(self.spec.id.connector)

    def stop(self, command: TaskCommand = TaskCommand.STOP) -> TaskResult:
        self.commands.give(command)
        return self.join()

    def join(self, within: float = LIMIT) -> TaskResult:
        self._thread.join(within)
        assert self.result is not None, f"the loop of {self.spec.id} did not end within {within:g} s"
        return self.result

    def wait_for(self, state: State, within: float = LIMIT) -> None:
        eventually(lambda: self.reports.states[-1:] == [state], within=within, what=f"{self.spec.id} {state.value}")


def spec_of(config: Mapping[str, str], worker: Mapping[str, str], *, task: int = 0, bounded: bool = False) -> TaskSpec:
    """Return the spec of a task: a sink task's if the config has topics."""
    sink = "topics" in config or "topics.regex" in config
    return TaskSpec(TaskId(config["name"], task), dict(config), WorkerConfig.of(worker), "test:8083", 1, sink, bounded=bounded)
