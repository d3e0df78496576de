from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from sluiceway.java_plugins.errors import JavaError
from sluiceway.java_plugins.sink_task import JavaSinkTask, MessagesForJava


class _Stop(BaseException):
    """Stands for the runtime's ``Interrupted``."""


class _Object:
    """Stands for a Java sink task; a busy one is waited for, for ``seconds`` of a clock."""

    def __init__(self, wait: Callable[[float], None]) -> None:
        self.host: Any = self
        self.interrupts = 0
        self.busy = 0.0
        self.error: JavaError | None = None
        self._wait = wait

    def interrupt(self) -> None:
        self.interrupts += 1

    def call(self, method: str, _args: object, _body: bytes, *, watch: Callable[[float], None]) -> object:
        watch(0.0)
        self._wait(self.busy)
        watch(self.busy)
        if self.error is not None:
            raise self.error
        return [] if method == "preCommit" else 1


def _interrupted() -> NoReturn:
    raise _Stop


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> _Object:
    now = [100.0]
    monkeypatch.setattr("sluiceway.java_plugins.source_task.time.monotonic", lambda: now[0])

    def wait(seconds: float) -> None:
        now[0] += seconds

    return _Object(wait)


@pytest.fixture
def task(java: _Object) -> JavaSinkTask:
    made = JavaSinkTask()
    made.prepare({}, None, lambda: True, 10, _interrupted)
    made._object = java  # type: ignore[assignment]  # as start() sets it
    return made


@pytest.mark.parametrize("error", [None, JavaError("interrupted", "java.lang.InterruptedException", "")])
def test_an_interrupted_put_is_not_trusted_nor_is_a_commit_after_it(
    java: _Object, task: JavaSinkTask, error: JavaError | None
) -> None:
    java.busy, java.error = 6.5, error
    with pytest.raises(_Stop):
        task.put(MessagesForJava(None, 1))
    assert java.interrupts == 1
    java.busy, java.error = 0.0, None
    with pytest.raises(_Stop):
        task.pre_commit({})


def test_a_put_that_ends_before_it_is_interrupted_counts(java: _Object, task: JavaSinkTask) -> None:
    java.busy = 5.5
    records = MessagesForJava(None, 3)
    task.put(records)
    assert (records.size, java.interrupts) == (1, 0)
    java.busy = 0.0
    assert task.pre_commit({}) == {}
