"""Tests of when a connector counts as one without progress."""

from __future__ import annotations

from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.provider.progress.no_progress import NoProgressWatch


class Watched:
    def __init__(self) -> None:
        self.now = 0.0
        self.watch = NoProgressWatch(60, lambda: self.now)

    def after(self, seconds: float, count: int | None, lag: int | None) -> str | None:
        self.now += seconds
        return self.watch.check(ConnectorProgress(count=count, lag=lag))


def test_a_sink_with_lag_that_commits_nothing_is_reported_once() -> None:
    sink = Watched()
    assert sink.after(0, 10, 5) is None
    assert sink.after(59, 10, 7) is None
    assert sink.after(1, 10, 9) == "no progress for 60 s: no record committed, 9 are waiting"
    assert sink.after(600, 10, 9) is None, "once"
    assert sink.after(1, 11, 8) is None
    assert sink.after(60, 11, 8) is not None, "again after progress"


def test_a_sink_without_lag_may_rest() -> None:
    sink = Watched()
    assert [sink.after(600, 10, 0) for _ in range(3)] == [None] * 3
    assert sink.after(10, 10, 1) is None, "the time begins with the first record that waits"
    assert sink.after(50, 10, 1) is not None


def test_a_source_is_reported_when_its_topics_do_not_grow() -> None:
    source = Watched()
    assert source.after(0, 10, None) is None
    assert source.after(60, 10, None) == "no progress for 60 s: no record written"


def test_what_is_not_known_is_not_reported() -> None:
    unknown = Watched()
    assert [unknown.after(600, None, None) for _ in range(3)] == [None] * 3
