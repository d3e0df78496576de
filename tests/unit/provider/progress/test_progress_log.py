"""Tests of the progress that a task logs while its driver runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sluiceway.errors import ConnectError
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.provider.progress.progress_log import ProgressLog
from support.eventually import eventually


class _Kafka:
    def __init__(self) -> None:
        self.count = 0
        self.away = False
        self.reads = 0
        self.failures: tuple[str, ...] = ()

    def failed(self, name: str, since: float) -> tuple[str, ...]:
        return self.failures

    def progress(self, name: str) -> ConnectorProgress:
        return ConnectorProgress([({"p": name}, {"o": self.count})], count=self.count)

    def progress_reader(self, name: str) -> Callable[[], ConnectorProgress]:
        def read() -> ConnectorProgress:
            self.reads += 1
            if self.away:
                raise ConnectError("no broker")
            self.count += 3
            return ConnectorProgress(count=self.count, lag=1)

        return read


def test_progress_is_logged_while_the_driver_runs_and_continues_after_an_outage(caplog: pytest.LogCaptureFixture) -> None:
    kafka = _Kafka()
    with caplog.at_level("INFO"):
        with ProgressLog("c", kafka, interval=0.01) as progress:
            eventually(lambda: "3 record(s)" in caplog.text, what="a line")
            kafka.away = True
            eventually(lambda: "Cannot measure progress" in caplog.text, what="a warning")
            assert "no broker" in caplog.text
            kafka.away = False
            reads = kafka.reads
            eventually(lambda: kafka.reads > reads + 2, what="measurements after the outage")
        assert progress.summary(None).records == kafka.count


def test_a_line_is_a_warning_while_something_has_failed(caplog: pytest.LogCaptureFixture) -> None:
    kafka = _Kafka()
    seen: list[tuple[str, ...]] = []

    def levels() -> list[str]:
        return [each.levelname for each in caplog.records if "3 record(s)" in each.getMessage()]

    with caplog.at_level("INFO"), ProgressLog("c", kafka, interval=0.01, observe_failed=seen.append):
        eventually(lambda: "INFO" in levels(), what="a line")
        kafka.failures = ("connector: E: x", "task 2: E: y")
        eventually(lambda: levels()[-1] == "WARNING", what="a warning")
        kafka.failures = ()
        eventually(lambda: levels()[-1] == "INFO", what="a line after the restart")
    assert "[c|worker] FAILED: connector: E: x; task 2: E: y; 3 record(s)" in caplog.text
    assert {(), ("connector: E: x", "task 2: E: y")} == set(seen)


def test_each_measurement_is_observed_with_the_one_before_it() -> None:
    seen: list[tuple[int | None, int | None]] = []

    def observe(before: ConnectorProgress | None, now: ConnectorProgress) -> None:
        seen.append((before.count if before else None, now.count))

    with ProgressLog("c", _Kafka(), interval=0.01, observe=observe):
        eventually(lambda: len(seen) >= 2, what="two measurements")
    assert seen[:2] == [(0, 3), (3, 6)]
