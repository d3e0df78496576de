"""A connector's runner on stores in memory, with a scripted connector and tasks that a test ends."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import ClassVar

from sluiceway.api import SourceConnector, SourceRecord, SourceTask
from sluiceway.config.definition import ConfigDef
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, FencedError
from sluiceway.runtime.task import TaskResult
from sluiceway.storage.memory import MemoryConfigBackingStore
from sluiceway.storage.model import RestartRequest, State, Status, TargetState
from sluiceway.worker.connector_runner import ConnectorRunner
from sluiceway.worker.executor import TaskAssignment
from sluiceway.worker.task_launcher import TaskLostError
from sluiceway.worker.task_watch import Slot
from support.engine import Offsets
from support.eventually import LIMIT, eventually

WATCHED = "support.runner_bench.WatchedConnector"
NAME = "watched"
QUICK = {"task.shutdown.graceful.timeout.ms": "200", "sluiceway.heartbeat.interval.ms": "100"}


@dataclass
class Script:
    """Behavior of the connector at each call, and the number of calls."""

    tasks: list[dict[str, str]] = field(default_factory=lambda: [{"n": "0"}, {"n": "1"}])
    calls: Counter[str] = field(default_factory=Counter)
    fails: dict[str, Exception] = field(default_factory=dict)
    hangs: set[str] = field(default_factory=set)
    release: threading.Event = field(default_factory=threading.Event)
    connector: WatchedConnector | None = None

    current: ClassVar[Script]

    def at(self, call: str) -> None:
        self.calls[call] += 1
        if call in self.hangs:
            self.release.wait(LIMIT)
        if call in self.fails:
            raise self.fails[call]


class WatchedTask(SourceTask):
    """Polls nothing, and counts its starts."""

    def start(self, config: Mapping[str, str]) -> None:
        Script.current.calls[f"task {config['n']}"] += 1

    def poll(self) -> Sequence[SourceRecord] | None: ...


class WatchedConnector(SourceConnector):
    task_class = WatchedTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef()

    def start(self, config: Mapping[str, str]) -> None:
        self.script = Script.current
        self.script.connector = self
        self.script.at("start")

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        self.script.at("task_configs")
        return self.script.tasks

    def stop(self) -> None:
        self.script.at("stop")


class Tasks:
    """A launcher. ``deaf`` tasks ignore stop commands; those also in ``undying`` ignore cancellation too.

    ``slots`` are the tasks' slots where they are not HELD, ``leaving`` the decommissioned executors of tasks; ``over`` is True
    once the application has ended.
    """

    def __init__(self) -> None:
        self.started: Counter[int] = Counter()
        self.cancelled: list[int] = []
        self.running: dict[int, Future[TaskResult]] = {}
        self.assignments: dict[int, TaskAssignment] = {}
        self.deaf: set[int] = set()
        self.undying: set[int] = set()
        self.slots: dict[int, Slot] = {}
        self.leaving: dict[int, str] = {}
        self.over = False

    def slot(self, assignment: TaskAssignment) -> Slot:
        return self.slots.get(assignment.spec.id.task, Slot.HELD)

    def must_move(self, assignment: TaskAssignment) -> str | None:
        return self.leaving.pop(assignment.spec.id.task, None)

    def slots_advice(self) -> str:
        return "get more"

    def has_ended(self) -> bool:
        return self.over

    def launch(self, assignment: TaskAssignment) -> Future[TaskResult]:
        number = assignment.spec.id.task
        self.started[number] += 1
        self.assignments[number] = assignment
        self.running[number] = Future()
        return self.running[number]

    def cancel(self, assignment: TaskAssignment) -> None:
        number = assignment.spec.id.task
        self.cancelled.append(number)
        if number not in self.undying and not self.running[number].done():
            self.running[number].set_exception(RuntimeError("Job was cancelled"))

    def end(self, number: int, **result: object) -> None:
        self.running[number].set_result(TaskResult(self.assignments[number].spec.id, **result))  # type: ignore[arg-type]

    def lose(self, number: int, *, crashed: bool = True) -> None:
        self.running[number].set_exception(TaskLostError("Python worker exited unexpectedly", crashed=crashed))


class Channel:
    """A control channel that records statuses and commands, and passes commands on to ``Tasks``.

    ``heard`` are the tasks' own reports. With ``broken``, new ones cannot be read.
    """

    generation = 7
    tasks_send_heartbeats = True

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self.published: list[tuple[str, State, str | None]] = []
        self.states: dict[str, State] = {}
        self.traces: dict[str, str | None] = {}
        self.commands: list[tuple[str, tuple[int, ...]]] = []
        self.fenced: type[FencedError] | None = None
        self.broken = False
        self.heard: dict[int, Status] = {}
        self.offsets = Offsets()
        self.generations: dict[int, int] = {}

    def raise_generation(self) -> int:
        self.generation += 1
        return self.generation

    def task_statuses(self, *, refresh: bool = False) -> Mapping[int, Status]:
        if refresh and self.broken:
            raise ConnectError("no broker answers")
        return self.heard

    def acquire(self) -> None: ...

    def close(self) -> None: ...

    def stop_waiting(self) -> None: ...

    def _publish(self, who: str, state: State, trace: str | None) -> None:
        self.verify()
        self.published.append((who, state, trace))
        self.states[who], self.traces[who] = state, trace

    def publish_connector(self, state: State, trace: str | None = None, *, version: str | None = None) -> None:
        self._publish("connector", state, trace)

    renew_connector = publish_connector
    seconds_left = float("inf")

    def verify(self) -> None:
        if self.fenced is not None:
            raise self.fenced("another process has taken over")

    def release_tasks(self) -> None:
        self.commands.append(("release", tuple(self._tasks.running)))
        for task, future in self._tasks.running.items():
            if task not in self._tasks.deaf and not future.done():
                self._tasks.end(task, records=5)

    def forget_release(self) -> None:
        self.commands.append(("forget", ()))

    def publish_tasks(
        self,
        tasks: Iterable[int],
        state: State,
        trace: str | None = None,
        *,
        version: str | None = None,
        generation: int | None = None,
    ) -> None:
        for task in tasks:
            self.generations[task] = self.generation if generation is None else generation
            self._publish(str(task), state, trace)

    def remove_task(self, task: int) -> None:
        self.states.pop(str(task), None)

    def remove_connector(self) -> None:
        self.states.clear()

    def known_tasks(self) -> list[int]:
        return sorted(int(who) for who in self.states if who != "connector")

    def failed_tasks(self) -> set[int]:
        return {int(who) for who, state in self.states.items() if who != "connector" and state is State.FAILED}

    def resume_tasks(self, tasks: Iterable[int]) -> None:
        self.commands.append(("run", tuple(tasks)))

    def pause_tasks(self, tasks: Iterable[int]) -> None:
        self.commands.append(("pause", tuple(tasks)))

    def stop_tasks(self, tasks: Iterable[int]) -> None:
        for task in list(tasks):
            self.commands.append(("stop", (task,)))
            if task not in self._tasks.deaf and not self._tasks.running[task].done():
                self._tasks.end(task)

    def source_offsets(self, config: Mapping[str, str]) -> AbstractContextManager[Offsets]:
        return nullcontext(self.offsets)

    def services(self, task: object) -> None:
        return None


class RunnerBench:
    """A runner on these fakes. Start it with ``start`` and end it with ``close``."""

    def __init__(
        self, script: Script | None = None, *, exit_when_idle: bool = True, bounded: bool = False, **worker: str
    ) -> None:
        Script.current = self.script = script or Script()
        self.store = MemoryConfigBackingStore()
        self.tasks = Tasks()
        self.channel = Channel(self.tasks)
        self.runner = ConnectorRunner(
            NAME,
            worker=WorkerConfig.of({**QUICK, **{key.replace("_", "."): value for key, value in worker.items()}}),
            config_store=self.store,
            channel=self.channel,  # type: ignore[arg-type]
            launcher=self.tasks,
            worker_id="w",
            exit_when_idle=exit_when_idle,
            bounded=bounded,
        )
        self.store.on_change(self._changed)

    def _changed(self, kind: str, _connector: str) -> None:
        if kind == "restart":
            for request in self.store.take_restart_requests():
                self.runner.restart(request)
        self.runner.notify()

    def start(self, state: TargetState | None = None, **config: str) -> RunnerBench:
        self.configure(state, **config)
        self.runner.start()
        return self

    def configure(self, state: TargetState | None = None, **config: str) -> None:
        named = {"name": NAME, "connector.class": WATCHED, "tasks.max": "2"}
        self.store.put_connector(NAME, {**named, **{key.replace("_", "."): value for key, value in config.items()}}, state)

    def restart(self, *, include_tasks: bool = False, only_failed: bool = False, task: int | None = None) -> None:
        self.store.put_restart_request(RestartRequest(NAME, only_failed, include_tasks, task))

    def eventually(self, condition: Callable[[], object], what: str) -> None:
        eventually(condition, what=what)

    def eventually_state(self, who: str, state: State | None) -> None:
        eventually(lambda: self.channel.states.get(who) is state, what=f"{who} {state}; {self.channel.published}")

    def eventually_running(self) -> None:
        """Wait until the tasks that the connector wants are started and the connector's status is RUNNING."""
        eventually(
            lambda: len(self.tasks.started) >= len(self.script.tasks) and self.channel.states.get("connector") is State.RUNNING,
            what=f"RUNNING; published: {self.channel.published}",
        )

    def ended(self) -> None:
        self.runner.join(LIMIT)
        assert not self.runner.is_alive()

    def close(self) -> None:
        self.script.release.set()
        self.runner.leave()
        if self.runner.is_alive():
            self.runner.join(LIMIT)
