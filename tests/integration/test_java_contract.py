"""What Kafka Connect promises Java source tasks holds over restarts, pauses, changes, and kills, and in Kafka Connect itself.

``ContractSource`` has a kind of task for each way in which connectors rely on it. ``check`` says what must hold.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.java_plugins.hosts import task_host
from sluiceway.runtime.task import TaskCommand
from sluiceway.stack.ports import free_port
from sluiceway.stack.process import BackgroundProcess
from sluiceway.storage.model import State
from support.driver import write_properties
from support.engine import Offsets, RunningTask
from support.engine_connectors import lines
from support.eventually import LIMIT, eventually
from support.exactly_once import exactly_once_worker, opened_stores
from support.java_plugins import SCRIPTED, compiled_plugin, fetch_runtime, forget_plugins, java_processes
from support.kafka import Kafka
from support.peer import PeerDistributed, change_state, put_config, rest_answers, restart, wait_for_state
from support.transactions import seen

pytestmark = pytest.mark.kafka

DRAINING, READING = "Draining", "Reading"
OBSERVERS = ("Acknowledging", "Limited", "Committing", "OffsetInCommit", "Threaded", "Throwing")
"""The kinds that override ``commitRecord`` and ``commit``."""
KINDS = (DRAINING, READING, *OBSERVERS)
_STRINGS = "org.apache.kafka.connect.storage.StringConverter"
_MORE = 30  # records before and after each event
_ROUNDS = int(os.environ.get("ROUNDS", "2"))  # restarts, pauses, and kills of each kind
_FLUSH = {"offset.flush.interval.ms": "100"}


@pytest.fixture(scope="module")
def plugin_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    fetch_runtime()
    folder = tmp_path_factory.mktemp("plugins")
    compiled_plugin(folder, "contract", SCRIPTED)
    use_plugin_path({"plugin.path": str(folder), "plugin.java": "prefer"})
    yield folder
    forget_plugins()


class Source:
    """A connector of one kind with its queue, its topic, and the log of its task's calls."""

    def __init__(self, kind: str, name: str, kafka: Kafka, folder: Path, **more: str) -> None:
        self.kind = kind
        self.kafka = kafka
        self.topic = kafka.create(f"{name}-{kind.lower()}")
        self.queue, self.log = folder / f"{kind}.queue", folder / f"{kind}.log"
        self.config = {
            "name": self.topic,
            "connector.class": "test.ContractSource",
            "task.class": f"test.ContractSource${kind}",
            "tasks.max": "1",
            "kind": kind,
            "topic": self.topic,
            "queue": str(self.queue),
            "log": str(self.log),
            **{f"{part}.converter": _STRINGS for part in ("key", "value")},
            **more,
        }

    def move(self) -> None:
        """Wait for more records."""
        before = self.kafka.end(self.topic)
        eventually(lambda: self.kafka.end(self.topic) >= before + _MORE, what=f"more records of {self.kind}")

    def values(self) -> list[int]:
        return [int(message.value() or b"") for message in seen(self.kafka.bootstrap, self.topic)]

    def rest_until_sent(self) -> None:
        """Wait until Kafka has all that the paused task has taken."""
        eventually(lambda: self.values() == taken(lines(self.log)), what=f"all that {self.kind} has taken")


def taken(calls: list[str]) -> list[int]:
    """Return the numbers that ``poll`` has returned."""
    starts = [int(call.split()[1]) for call in calls if call.startswith("took")]
    return [number for start in starts for number in range(start, start + 10)]


def runs_of(calls: list[str]) -> list[list[str]]:
    """Return the calls of each task, from its start on."""
    starts = [index for index, call in enumerate(calls) if call == "start"]
    return [calls[start:end] for start, end in pairwise([*starts, len(calls)])]


def check(source: Source, *, killed: bool = False) -> None:
    """Check what a source that has ended has written, and the calls of its tasks."""
    values, calls = source.values(), lines(source.log)
    if killed:
        assert source.kind == DRAINING or set(values) >= set(range(max(values) + 1)), "a record is lost"
        return
    assert values == list(range(len(values))), f"{source.kind} lost or repeated records"
    assert taken(calls) == values, f"{source.kind} has returned what was thrown away"
    if source.kind != READING:
        assert int(source.queue.read_text()) == len(values)
    for run in runs_of(calls):
        assert run[-1] == "stop", f"{source.kind} was called after stop(): {run[-5:]}"
        assert run.count("stop") == 1
        if source.kind in OBSERVERS:
            assert run[-2] == "commit", f"the last call before stop(): {run[-5:]}"
            acknowledged = [int(call.split()[1]) for call in run if call.startswith("record")]
            assert acknowledged == taken(run), "commitRecord is called for each record, in order"


@contextmanager
def running(source: Source, worker: dict[str, str], offsets: Offsets) -> Iterator[RunningTask]:
    """Run the source's task, exactly once if the worker does, and stop it at the end."""
    if "exactly.once.source.support" not in worker:
        with RunningTask(source.config, worker, offsets=offsets) as task:
            yield task
            assert not task.stop().failed, task.result
        return
    with opened_stores(worker) as stores, RunningTask(source.config, worker, store=stores({})) as task:
        yield task
        assert not task.stop().failed, task.result


def restarted(source: Source, worker: dict[str, str], offsets: Offsets) -> None:
    for _ in range(_ROUNDS):
        with running(source, worker, offsets):
            source.move()


def paused(source: Source, worker: dict[str, str], offsets: Offsets) -> None:
    with running(source, worker, offsets) as task:
        for _ in range(_ROUNDS):
            source.move()
            task.commands.give(TaskCommand.PAUSE)
            task.wait_for(State.PAUSED)
            assert source.values() == taken(lines(source.log)), "a paused task has sent what it has taken"
            task.commands.give(TaskCommand.RUN)


def killed(source: Source, worker: dict[str, str], offsets: Offsets) -> None:
    for _ in range(_ROUNDS):
        with RunningTask(source.config, worker, offsets=offsets) as task:
            source.move()
            for process in java_processes():
                os.kill(process, signal.SIGKILL)
            assert task.join().failed
    with running(source, worker, offsets):
        source.move()


_GATE = {("Acknowledging", restarted), (DRAINING, restarted)}


@pytest.mark.parametrize(
    ("kind", "event"),
    [
        pytest.param(kind, event, marks=() if (kind, event) in _GATE else pytest.mark.long, id=f"{kind}-{event.__name__}")
        for kind in KINDS
        for event in (restarted, paused, killed)
    ],
)
def test_a_task_gets_what_connect_promises(
    plugin_path: Path,
    kafka: Kafka,
    unique: Callable[[str], str],
    tmp_path: Path,
    kind: str,
    event: Callable[[Source, dict[str, str], Offsets], None],
) -> None:
    source = Source(kind, unique("contract"), kafka, tmp_path)
    event(source, {**kafka.worker(), **_FLUSH}, Offsets())
    check(source, killed=event is killed)
    assert java_processes() == []


@pytest.mark.long
@pytest.mark.parametrize("event", [restarted, paused], ids=lambda event: event.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_a_task_gets_what_connect_promises_with_transactions(
    plugin_path: Path,
    kafka: Kafka,
    unique: Callable[[str], str],
    tmp_path: Path,
    kind: str,
    event: Callable[[Source, dict[str, str], Offsets], None],
) -> None:
    source = Source(kind, unique("contract"), kafka, tmp_path)
    event(source, exactly_once_worker(kafka.bootstrap, unique), Offsets())
    check(source)


@pytest.mark.long
@pytest.mark.parametrize("kind", [DRAINING, READING])
def test_what_a_poll_returns_when_it_is_interrupted_is_sent(
    plugin_path: Path, kafka: Kafka, unique: Callable[[str], str], tmp_path: Path, kind: str
) -> None:
    source, offsets = Source(kind, unique("contract"), kafka, tmp_path, block="true"), Offsets()
    worker = {**kafka.worker(task_shutdown_graceful_timeout_ms="10000"), **_FLUSH}
    for _ in range(2):
        with running(source, worker, offsets):
            eventually(lambda: lines(source.log)[-1:] == ["waits"], what="the poll that waits")
    check(source)
    assert lines(source.log).count("interrupted") == 2


@pytest.mark.long
def test_records_that_wait_in_a_full_buffer_are_sent_before_a_stop(
    plugin_path: Path, kafka: Kafka, unique: Callable[[str], str], tmp_path: Path
) -> None:
    full = {"producer.override.queue.buffering.max.messages": "3"}
    source = Source(DRAINING, unique("contract"), kafka, tmp_path, **full)
    restarted(source, {**kafka.worker(), **_FLUSH}, Offsets())
    check(source)


def standalone(kafka: Kafka, folder: Path, plugin_path: Path) -> tuple[BackgroundProcess, str]:
    """Start standalone mode; return its process and the address of its REST API."""
    rest = f"http://127.0.0.1:{free_port()}"
    worker = {**kafka.worker(plugin_path=str(plugin_path), plugin_java="prefer"), **_FLUSH}
    properties = {**worker, "listeners": rest, "offset.storage.file.filename": str(folder / "offsets")}
    file = write_properties(folder / "worker.properties", properties)
    command: list[str | Path] = [sys.executable, "-m", "sluiceway.cli.main", "standalone", file]
    process = BackgroundProcess("standalone", command, folder / "state", cwd=folder)
    process.start()
    process.wait_until(lambda: rest_answers(rest), LIMIT)
    return process, rest


@contextmanager
def sluiceway(kafka: Kafka, _unique: Callable[[str], str], folder: Path, plugin_path: Path) -> Iterator[str]:
    """Run standalone mode and yield the address of its REST API."""
    folder.mkdir()
    process, rest = standalone(kafka, folder, plugin_path)
    try:
        yield rest
    finally:
        process.stop()


@contextmanager
def connect(kafka: Kafka, unique: Callable[[str], str], folder: Path, plugin_path: Path, **more: str) -> Iterator[str]:
    """Run Kafka Connect and yield the address of its REST API."""
    topics = unique("config"), unique("offset"), unique("status")
    extra: Mapping[str, str] = {"plugin.path": str(plugin_path), "plugin.discovery": "only_scan", **_FLUSH, **more}
    with PeerDistributed(kafka.bootstrap, unique("group"), folder, topics, extra) as peer:
        yield peer.rest


@contextmanager
def connect_exactly_once(kafka: Kafka, unique: Callable[[str], str], folder: Path, plugin_path: Path) -> Iterator[str]:
    with connect(kafka, unique, folder, plugin_path, **{"exactly.once.source.support": "enabled"}) as rest:
        yield rest


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize(
    "stack",
    [sluiceway, *(pytest.param(each, marks=pytest.mark.peer) for each in (connect, connect_exactly_once))],
    ids=lambda stack: stack.__name__,
)
def test_all_kinds_in_one_worker_get_what_connect_promises(
    plugin_path: Path,
    kafka: Kafka,
    unique: Callable[[str], str],
    tmp_path: Path,
    stack: Callable[..., AbstractContextManager[str]],
) -> None:
    name = unique("contract")
    # Kafka Connect's thread of commits leaves a task that must stop, and then cancels a poll that waits for one.
    kinds = [kind for kind in KINDS if stack is not connect or kind != "Committing"]
    sources = [Source(kind, name, kafka, tmp_path) for kind in kinds]
    with stack(kafka, unique, tmp_path / "stack", plugin_path) as rest:
        for source in sources:
            put_config(rest, source.topic, source.config)
        moved(sources)
        for source in sources:
            change_state(rest, source.topic, "pause")
        for source in sources:
            wait_for_state(rest, source.topic, "PAUSED")
            source.rest_until_sent()
            change_state(rest, source.topic, "resume")
        moved(sources)
        for source in sources:
            restart(rest, source.topic)
        moved(sources)
        for source in sources:
            put_config(rest, source.topic, {**source.config, "changed": "true"})
        moved(sources)
        for verb in ("stop", "resume", "stop"):
            for source in sources:
                change_state(rest, source.topic, verb)
            if verb == "resume":
                moved(sources)
                continue
            for source in sources:
                wait_for_state(rest, source.topic, "STOPPED", tasks=0)
    for source in sources:
        check(source)


def moved(sources: Sequence[Source]) -> None:
    """Wait for more records of each source."""
    for source in sources:
        source.move()


@pytest.mark.parametrize(
    ("java_opts", "numbers"),
    [("", (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)), pytest.param("-Xrs", (), marks=pytest.mark.long)],
)
def test_a_java_process_leaves_requests_to_end_to_python(java_opts: str, numbers: tuple[signal.Signals, ...]) -> None:
    fetch_runtime()
    with task_host("test", java_opts) as slot:
        helper = slot.host().new("metrics", None)
        for number in numbers:
            os.kill(slot.host().pid, number)
        assert helper.call("values") == []
        assert os.getsid(slot.host().pid) == slot.host().pid, "it gets no signal that is sent to the group of Python"
    assert java_processes() == []


def _has_lines(file: Path, count: int) -> bool:
    return len(lines(file)) >= count


def _has_ended(process: BackgroundProcess) -> bool:
    return not process.is_running()


def _all_of(process: BackgroundProcess) -> list[psutil.Process]:
    first = psutil.Process(process.status().pid)
    return [first, *first.children(recursive=True)]


def _of_its_group(process: BackgroundProcess) -> list[psutil.Process]:
    return [each for each in _all_of(process) if os.getpgid(each.pid) == process.status().pid]


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize(
    ("chosen", "number"),
    [(_of_its_group, signal.SIGTERM), (_all_of, signal.SIGTERM), (_of_its_group, signal.SIGINT)],
    ids=["SIGTERM-group", "SIGTERM-all", "SIGINT-group"],
)
def test_tasks_commit_when_a_signal_ends_more_than_the_first_process(
    plugin_path: Path,
    kafka: Kafka,
    unique: Callable[[str], str],
    tmp_path: Path,
    chosen: Callable[[BackgroundProcess], list[psutil.Process]],
    number: signal.Signals,
) -> None:
    """As service managers, containers' init processes, ``timeout``, and terminals do."""
    name = unique("contract")
    sources = [Source(kind, name, kafka, tmp_path) for kind in (DRAINING, "Acknowledging")]
    written = tmp_path / "written"
    sink = {"connector.class": "FileStreamSink", "topics": sources[0].topic, "file": str(written), "value.converter": _STRINGS}
    for _ in range(2):
        process, rest = standalone(kafka, tmp_path, plugin_path)
        for source in sources:
            put_config(rest, source.topic, source.config)
        put_config(rest, f"{name}-sink", sink)
        before = len(lines(written))
        moved(sources)
        eventually(partial(_has_lines, written, before + _MORE), what="the sink's lines")
        for each in chosen(process):
            with suppress(psutil.NoSuchProcess):
                each.send_signal(number)
        eventually(partial(_has_ended, process), what="the end")
        log = process.log_tail(1000)
        assert " ERROR " not in log, log
    for source in sources:
        check(source)
    assert lines(written) == [str(value) for value in range(len(lines(written)))], "the sink lost or repeated lines"
    assert java_processes() == []
