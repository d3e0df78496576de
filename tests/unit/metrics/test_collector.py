"""A driver's collection of its tasks' metrics."""

from __future__ import annotations

import pytest

from sluiceway.errors import DataError
from sluiceway.metrics.beans import CONNECT, OWN, Bean, decode_beans, encode_beans
from sluiceway.metrics.collector import MetricsCollector, distinct, startups, worker_bean


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def process(succeeded: float, failed: float) -> Bean:
    counts = {"task-startup-success-total": succeeded, "task-startup-failure-total": failed, "cpu-seconds-total": 5.0}
    return Bean(OWN, "process-metrics", {"process": "1"}, counts)


def test_beans_travel_as_json() -> None:
    beans = [Bean(CONNECT, "t", {"connector": "ä"}, {"a": 1.5, "status": "running"}), process(1, 0)]
    assert decode_beans(encode_beans(beans)) == beans
    (unknown,) = decode_beans(encode_beans([Bean(CONNECT, "t", {}, {"a": float("nan")})]))
    assert unknown.values["a"] != unknown.values["a"]


@pytest.mark.parametrize("text", [b"", b"{}x", b"[1]", b'[["a", "b", 1, {}]]', b'[["a", "b", {}, {"c": null}]]'])
def test_anything_else_is_refused(text: bytes) -> None:
    with pytest.raises(DataError, match="The metrics cannot be read"):
        decode_beans(text)


def test_a_silent_process_is_dropped_but_its_starts_still_count() -> None:
    clock = Clock()
    collector = MetricsCollector(clock)
    collector.receive("a", [process(3, 1)])
    clock.now = 15.0
    collector.receive("b", [process(1, 0)])
    assert startups(collector.beans()) == {"task-startup-success-total": 4, "task-startup-failure-total": 1}
    clock.now = 70.0
    assert [bean.values.get("cpu-seconds-total") for bean in collector.beans()] == [5.0, None]
    assert startups(collector.beans()) == {"task-startup-success-total": 4, "task-startup-failure-total": 1}


def test_processes_send_more_often_while_somebody_reads() -> None:
    clock = Clock()
    collector = MetricsCollector(clock)
    assert collector.receive("a", [process(3, 1)]) == 15.0
    collector.beans()
    assert collector.receive("a", [process(3, 1)]) == 5.0
    clock.now = 21.0
    assert not any("cpu-seconds-total" in bean.values for bean in collector.beans()), "it has ended"
    clock.now = 400.0
    assert collector.receive("a", [process(3, 1)]) == 15.0


def test_the_worker_sums_the_starts_of_its_processes() -> None:
    values = worker_bean([process(3, 1), process(0, 0)], connectors=2, tasks=7).values
    assert (values["connector-count"], values["task-count"]) == (2, 7)
    assert (values["task-startup-attempts-total"], values["task-startup-failure-percentage"]) == (4, 0.25)
    assert values["connector-startup-success-percentage"] == 0


def test_of_two_reports_of_one_task_the_later_counts() -> None:
    old, new = (Bean(CONNECT, "t", {"task": "0"}, {"a": value}) for value in (1.0, 2.0))
    assert distinct([old, Bean(CONNECT, "t", {"task": "1"}, {}), new])[0].values == {"a": 2.0}
