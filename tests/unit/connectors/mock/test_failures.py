from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable

import pytest

from sluiceway.api import TopicPartition
from sluiceway.connectors.mock import config as keys
from sluiceway.connectors.mock.failures import Failures, is_bad
from sluiceway.errors import ConnectError, RetriableError
from unit.connectors.mock.tasks import records, sink, source

P0 = TopicPartition("t", 0)


def failed(call: Callable[..., object], *arguments: object) -> type[BaseException] | None:
    try:
        call(*arguments)
    except ConnectError as error:
        return type(error)
    return None


def test_a_source_sends_exactly_the_configured_records_before_it_fails() -> None:
    task = source(failure_in="poll", failure_after_records="7", batch_size="5")
    assert [len(task.poll() or ()) for _ in range(2)] == [5, 2]
    with pytest.raises(ConnectError, match=r"Mock failure in poll after 7 records, as failure\.in asks for"):
        task.poll()


def test_a_retriable_failure_ends_after_the_configured_calls() -> None:
    task = source(failure_in="poll", failure_kind="retriable", failure_times="2", batch_size="1")
    assert [failed(task.poll) for _ in range(4)] == [RetriableError, RetriableError, None, None]


def test_a_sink_takes_at_most_the_configured_records_before_it_fails() -> None:
    task = sink(failure_in="put", failure_after_records="7")
    task.put(records(0, 5))
    task.put([])
    for _ in range(2):
        with pytest.raises(ConnectError, match="Mock failure in put after 5 records"):
            task.put(records(5, 8))
    task.put(records(5, 7))


def test_only_the_configured_call_fails() -> None:
    assert failed(lambda: source(failure_in="start")) is ConnectError
    assert failed(lambda: sink(failure_in="start")) is ConnectError
    for where in ("commit", "stop"):
        a_source, a_sink = source(failure_in=where), sink(failure_in=where)
        a_source.poll()
        a_sink.put(records(0, 1))
        assert failed(a_source.commit) is (ConnectError if where == "commit" else None)
        assert failed(a_sink.flush, {P0: 1}) is (ConnectError if where == "commit" else None)
        assert failed(a_source.stop) is (ConnectError if where == "stop" else None)
        assert failed(a_sink.stop) is (ConnectError if where == "stop" else None)


def test_only_the_chosen_task_fails() -> None:
    task = source(failure_in="poll", failure_task="1", id="0")
    assert task.poll()
    with pytest.raises(ConnectError):
        source(failure_in="poll", failure_task="1", id="1").poll()


def test_a_hang_ends_after_its_time_without_an_error() -> None:
    started = time.monotonic()
    assert source(failure_in="poll", failure_kind="hang", failure_hang_ms="60", batch_size="2").poll()
    assert time.monotonic() - started >= 0.06


def test_a_hang_without_a_time_does_not_end() -> None:
    task = source(failure_in="poll", failure_kind="hang")
    thread = threading.Thread(target=task.poll, daemon=True)
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()


def test_mock_mode_fails_tasks_after_its_delay() -> None:
    now = 0.0
    values = keys.SINK.parse({"mock_mode": "task-failure", "delay_ms": "2000"})
    failures = Failures(values, 0, lambda: now)
    now = 1.9
    failures.at("put", 1, 1)
    now = 2.0
    failures.at("commit")
    with pytest.raises(ConnectError, match="task-failure"):
        failures.at("put", 1, 1)


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.25, 1 / 3, 0.9, 1.0])
def test_bad_records_have_the_configured_share_and_are_spread(share: float) -> None:
    bad = [number for number in range(10_000) if is_bad(number, share)]
    assert abs(len(bad) - 10_000 * share) <= 1
    if len(bad) > 1:
        assert max(later - earlier for earlier, later in itertools.pairwise(bad)) <= 1 / share + 1
