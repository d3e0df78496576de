from __future__ import annotations

import itertools
from concurrent.futures import Future
from typing import Any

import pytest

from sluiceway.java_plugins.commit_calls import CommitCalls
from sluiceway.java_plugins.errors import JavaProcessError
from sluiceway.java_plugins.frames import ANSWER, Frame
from sluiceway.java_plugins.source_task import JavaSourceTask, StopWatch


class _Task:
    """Stands for a Java object and its host."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.host: Any = self

    def interrupt(self) -> None:
        self.calls.append("interrupt")

    def kill(self) -> None:
        self.calls.append("kill")


def test_a_late_call_is_interrupted_once_and_then_its_process_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    now, task = [100.0], _Task()
    monkeypatch.setattr("sluiceway.java_plugins.source_task.time.monotonic", lambda: now[0])
    commands = iter([False, True])
    watch = StopWatch(lambda: next(commands), 10)
    for seconds in (0, 50, 52, 53.1, 57, 57.9):
        now[0] = 100.0 + seconds
        watch(task, "poll()")  # type: ignore[arg-type]
    assert task.calls == ["interrupt"]
    now[0] = 158.1
    with pytest.raises(JavaProcessError, match=r"poll\(\) of the task did not return within 8.1 s"):
        watch(task, "poll()")  # type: ignore[arg-type]
    assert task.calls == ["interrupt", "kill"]


class _Java:
    """Stands for the Java objects of a task: keeps the calls, whose futures a test completes."""

    def __init__(self, traits: dict[str, bool], header: dict[str, Any] | None = None) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.begun: list[Future[Frame]] = []
        self.number = 1
        self.host: Any = self
        self._traits = traits
        self._header = header

    def new(self, kind: str, *_: Any, **__: Any) -> _Java:
        self.calls.append(("new", kind))
        return self

    def call(self, method: str, *_: Any, **__: Any) -> Any:
        return self._traits

    def call_for_bytes(self, method: str, *_: Any, **__: Any) -> tuple[Any, bytes]:
        self.calls.append((method, None))
        return self._header, b""

    def begin(self, method: str, args: Any = None, body: bytes = b"") -> Future[Frame]:
        self.calls.append((method, args))
        self.begun.append(Future())
        return self.begun[-1]


class _Context:
    transaction_context: Any = None


def _task(java: _Java, *, may: bool = True) -> JavaSourceTask:
    class Task(JavaSourceTask):
        pass

    task = Task()
    task._object = java  # type: ignore[assignment]
    task._stopping = StopWatch(lambda: False, 10)
    task._values = None
    task._calls = CommitCalls(java, "[c|task-0] ")  # type: ignore[arg-type]
    task.context = _Context()  # type: ignore[assignment]
    task.may_poll_ahead = lambda: may
    return task


PART = {"batch": 1, "start": 0, "count": 0, "topics": [], "offsets": [], "action": None}


@pytest.mark.parametrize("transactions", [None, object()])
@pytest.mark.parametrize("may", [True, False])
@pytest.mark.parametrize(("end", "size"), [(10, 10), (5, 10), (0, 0)])
@pytest.mark.parametrize("positioned", [True, False])
@pytest.mark.parametrize(("record", "offsets"), list(itertools.product([False, True], repeat=2)))
def test_only_a_task_that_cannot_notice_polls_ahead(
    record: bool, offsets: bool, positioned: bool, end: int, size: int, may: bool, transactions: object
) -> None:
    java = _Java({"commitRecord": record, "commit": offsets}, {**PART, "end": end, "size": size, "positioned": positioned})
    task = _task(java, may=may)
    task.context.transaction_context = transactions  # type: ignore[assignment]
    task.poll()
    ahead = not record and not offsets and positioned and end == size > 0 and may and transactions is None
    assert task.polls_ahead is ahead
    assert (("ahead", None) in java.calls) is ahead
    task.poll()
    assert java.calls[-2 if ahead else -1][0] == "poll"


def _answer(call: Future[Frame]) -> None:
    call.set_result(Frame(ANSWER, 1, None, b""))


def test_a_commit_follows_the_acknowledgements_before_it_and_two_never_overlap() -> None:
    java = _Java({"commitRecord": True, "commit": True})
    task = _task(java)
    sent = task.sent_records(1)
    sent.release()
    sent.add(0, 0, 5)
    task.commit()
    sent.add(1, 0, 6)
    task.commit()
    assert java.calls[2:] == [("acknowledge", None), ("commit", {"after": 1}), ("acknowledge", None)]
    calls = task._calls
    waited: list[float] = []

    def end_all(seconds: float) -> None:
        waited.append(seconds)
        for call in java.begun:
            if not call.done():
                _answer(call)

    calls.await_all(end_all)
    assert java.calls[5:] == [("commit", {"after": 2})], "the one that was due meanwhile"
    assert len(waited) == 2


def test_a_slow_commit_record_holds_up_polls_only_when_very_many_records_wait_for_it() -> None:
    java = _Java({"commitRecord": True, "commit": False})
    calls = _task(java)._calls
    sent = calls.acknowledgements.of(1)
    sent.release()
    waited: list[float] = []

    def end_first(seconds: float) -> None:
        waited.append(seconds)
        _answer(java.begun[0])

    for index in range(3):
        for number in range(8000):
            sent.add(number, 0, index)
        calls.acknowledge()
        calls.await_some(end_first)
    assert len(waited) == 1
    assert java.begun[0].done()
    calls.commit()
    assert [name for name, _ in java.calls].count("commit") == 0, "the class does not override it"
