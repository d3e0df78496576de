"""Explains a failed test: which processes died, with the end of their logs, and the states and offsets of the connectors.

Background processes, herders, and REST clients that a test uses are noticed when they are made. What they say is read when a wait
of ``eventually`` fails, because most of them are closed before pytest makes its report.
"""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sluiceway.herder import Herder
from sluiceway.rest.client import ConnectClient
from sluiceway.stack.process import BackgroundProcess

if TYPE_CHECKING:
    from support.engine import RunningTask

_TAIL_LINES = 40
_ANSWER_SECONDS = 10.0  # a herder or a server that does not answer must not hold up the report

_herders: weakref.WeakSet[Herder] = weakref.WeakSet()
_clients: weakref.WeakSet[ConnectClient] = weakref.WeakSet()
_tasks: weakref.WeakSet[RunningTask] = weakref.WeakSet()
_others: list[weakref.WeakMethod[Callable[[], str]]] = []
_started: list[BackgroundProcess] = []
_died: list[str] = []
_notes: list[str] = []


def install() -> None:
    """Notice what tests start and create from now on. Called once, in each pytest process."""
    _after(Herder, "__init__", _herders.add)
    _after(ConnectClient, "__init__", _clients.add)
    _after(BackgroundProcess, "start", _start)
    stop = BackgroundProcess.stop

    def stopped(self: BackgroundProcess, *arguments: Any, **keywords: Any) -> bool:
        _bury(self)
        if self in _started:
            _started.remove(self)
        return stop(self, *arguments, **keywords)

    BackgroundProcess.stop = stopped  # type: ignore[method-assign]


def _start(process: BackgroundProcess) -> None:
    """Notice a process once, however often a test starts it again."""
    if process not in _started:
        _started.append(process)


def _after(kind: type[Any], name: str, then: Callable[[Any], object]) -> None:
    method = getattr(kind, name)

    def wrapped(self: Any, *arguments: Any, **keywords: Any) -> Any:
        result = method(self, *arguments, **keywords)
        then(self)
        return result

    setattr(kind, name, wrapped)


def task(running: RunningTask) -> None:
    """Notice a task that runs in a thread of the test."""
    _tasks.add(running)


def watch(says: Callable[[], str]) -> None:
    """Notice an object that explains itself by a method, for as long as it lives."""
    _others.append(weakref.WeakMethod(says))


def note() -> None:
    """Keep what connectors and tasks say now, for the report of the running test."""
    _notes[:] = [
        *map(_connectors_of_herder, list(_herders)),
        *map(_connectors_of_client, list(_clients)),
        *map(_task, list(_tasks)),
        *(_asked(says.__qualname__, says) for method in _others if (says := method())),
    ]


def report() -> str:
    """Return the explanation of the test that has just failed, empty if nothing is known."""
    for process in list(_started):
        _bury(process)
    return "\n\n".join(filter(None, [*_notes, *_died]))


def forget() -> None:
    """Forget what belongs to a test that has ended; processes that still run are kept."""
    _notes.clear()
    _died.clear()
    _started[:] = [process for process in _started if process.is_running()]


def _bury(process: BackgroundProcess) -> None:
    """Keep the end of the log of a process that ended before it was told to."""
    if process in _started and not process.is_running():
        _started.remove(process)
        _died.append(f"{process.name} has ended. The last lines of {process.log}:\n{process.log_tail(_TAIL_LINES)}")


def _connectors_of_herder(herder: Herder) -> str:
    def read() -> str:
        return "\n".join(f"{name}: {herder.status(name)}, offsets {herder.offsets(name)}" for name in herder.connectors())

    return _asked("connectors", read)


def _connectors_of_client(client: ConnectClient) -> str:
    def read() -> str:
        statuses = client.statuses().values()
        return "\n".join(f"{json.dumps(each['status'])}, offsets {client.offsets(each['status']['name'])}" for each in statuses)

    return _asked(f"connectors of {client.server}", read)


def _task(running: RunningTask) -> str:
    def read() -> str:
        return f"{running.reports.states}, offsets {running.stored_offsets()}\n{running.reports.trace or ''}".rstrip()

    return _asked(f"task {running.spec.id}", read)


def _asked(what: str, read: Callable[[], str]) -> str:
    """Return an answer, or why there is none; waits some seconds only."""
    answer = [f"no answer within {_ANSWER_SECONDS:g} s"]

    def ask() -> None:
        try:
            answer[0] = read()
        except Exception as error:  # noqa: BLE001 (whatever is wrong with it is part of the explanation)
            answer[0] = f"cannot be read: {error!r}"

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_ANSWER_SECONDS)
    return f"{what}: {answer[0]}" if answer[0] else ""
