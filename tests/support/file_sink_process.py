"""Runs a file sink's task in a process that a test kills, at random or at a named point of a commit."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

from sluiceway.connectors.files.commit_log import CommitLog, Entry
from sluiceway.connectors.files.partition_writer import PartitionWriter
from sluiceway.runtime.sink.task_consumer import TaskConsumer
from support.engine import RunningTask
from support.eventually import LIMIT
from support.processes import fresh_processes

WORKER = {"offset.flush.interval.ms": "300"}
#: The points of a commit, in order.
POINTS = ("written", "finished", "planned", "first published", "published", "before the group commit", "group commit")


def kill_at(point: str, number: int) -> None:
    """Kill this process with SIGKILL when it reaches a point for the ``number``-th time. Counts commits with files only."""
    seen = 0

    def reached() -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def before(cls: type, name: str, when: Callable[..., bool] = lambda *_: True) -> None:
        call = getattr(cls, name)

        def wrapped(self: Any, *arguments: Any, **more: Any) -> Any:
            if when(self, *arguments):
                reached()
            return call(self, *arguments, **more)

        setattr(cls, name, wrapped)

    def after(cls: type, name: str, when: Callable[..., bool] = lambda *_: True) -> None:
        call = getattr(cls, name)

        def wrapped(self: Any, *arguments: Any, **more: Any) -> Any:
            result = call(self, *arguments, **more)
            if when(self, *arguments):
                reached()
            return result

        setattr(cls, name, wrapped)

    def has_files(_log: Any, entry: Entry) -> bool:
        return bool(entry.files)

    if point == "written":
        before(PartitionWriter, "commit", lambda writer: bool(writer._files))
    elif point == "finished":
        append = CommitLog.append

        def dying(self: Any, after: Entry | None, **more: Any) -> Entry:
            if more.get("files"):
                reached()
            return append(self, after, **more)

        CommitLog.append = dying  # type: ignore[method-assign]
    elif point == "planned":
        before(CommitLog, "publish", has_files)
    elif point == "first published":
        publish = CommitLog.publish

        def half(self: Any, entry: Entry) -> None:
            for file in entry.files[:1]:
                self._fs.publish(file.temporary, file.path)
            if entry.files:
                reached()
            publish(self, entry)

        CommitLog.publish = half  # type: ignore[method-assign]
    elif point == "published":
        after(CommitLog, "publish", has_files)
    elif point == "before the group commit":
        before(TaskConsumer, "commit", lambda _consumer, offsets: bool(offsets))
    elif point == "group commit":
        after(TaskConsumer, "commit", lambda _consumer, offsets: bool(offsets))


def _run(config: dict[str, str], bootstrap: str, bounded: bool, point: str, number: int) -> None:
    if point:
        kill_at(point, number)
    with RunningTask(config, {"bootstrap.servers": bootstrap, **WORKER}, bounded=bounded) as task:
        result = task.join(within=600)
        print(result.trace or "", file=sys.stderr, flush=True)
        sys.exit(1 if result.failed else 0)


class FileSinkProcess:
    """A task in a process of its own. Leaving the context kills it if it still runs."""

    def __init__(
        self, config: Mapping[str, str], bootstrap: str, *, bounded: bool = False, point: str = "", number: int = 1
    ) -> None:
        context = fresh_processes()
        arguments = (dict(config), bootstrap, bounded, point, number)
        self._process = context.Process(target=_run, args=arguments, daemon=True)

    def __enter__(self) -> FileSinkProcess:
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self._process.kill()
        self._process.join()

    def ended(self, within: float = LIMIT) -> int | None:
        """Wait for the end and return the exit code: 0 for success, -9 for a kill, None if it still runs."""
        self._process.join(within)
        return self._process.exitcode
