"""What was moved between two looks at a connector."""

from __future__ import annotations

import json

import pytest

from sluiceway.errors import ConnectError
from sluiceway.provider.progress.position import LONGEST, Moved, Position, progress_line
from sluiceway.provider.progress.progress_log import MovementWatch
from support.eventually import eventually

A, B = {"filename": "a"}, {"filename": "b"}


def test_only_partitions_that_changed_are_told_with_both_offsets() -> None:
    before = Position([(A, {"position": 1}), (B, {"position": 5})], count=10)
    after = Position([(A, {"position": 4}), (B, {"position": 5}), ({"filename": "c"}, {"position": 2})], count=15)
    moved = Moved.between(before, after, 2.0)
    assert json.loads(json.dumps(moved.as_dict())) == {
        "records": 5,
        "seconds": 2.0,
        "offsets": [
            {"partition": A, "from": {"position": 1}, "to": {"position": 4}},
            {"partition": {"filename": "c"}, "from": None, "to": {"position": 2}},
        ],
    }


def test_what_the_driver_counted_wins_over_what_the_topics_say() -> None:
    assert Moved.between(Position(count=10), Position(count=99), 1.0, records=7).records == 7


def test_without_a_look_before_nothing_is_said_to_have_changed() -> None:
    moved = Moved.between(None, Position([(A, {"position": 4})], count=15), 1.0)
    assert (moved.records, moved.changes, bool(moved)) == (None, (), False)


def test_an_answer_stays_small_enough_for_airflows_database() -> None:
    after = Position([({"n": number}, {"position": 1}) for number in range(LONGEST + 5)])
    assert len(Moved.between(Position(), after, 1.0).changes) == LONGEST


def test_a_line_has_records_rate_and_a_sinks_lag() -> None:
    assert progress_line(Position(count=100, lag=90), Position(count=150, lag=40), 10.0) == "50 record(s), 5.0/s, lag 40"
    assert progress_line(Position(count=100), Position(count=20), 10.0) == "0 record(s), 0.0/s", "a topic that was made anew"
    assert "not known" in progress_line(Position(), Position(), 1.0)


class _Kafka:
    def __init__(self) -> None:
        self.count = 0
        self.away = False
        self.looks = 0

    def position(self, name: str) -> Position:
        return Position([({"p": name}, {"o": self.count})], count=self.count)

    def meter(self, name: str) -> object:
        def look() -> Position:
            self.looks += 1
            if self.away:
                raise ConnectError("no broker")
            self.count += 3
            return Position(count=self.count, lag=1)

        return look


def test_progress_is_logged_while_the_driver_runs_and_an_outage_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    kafka = _Kafka()
    with caplog.at_level("INFO"):
        with MovementWatch("c", kafka, interval=0.01) as watch:  # type: ignore[arg-type]
            eventually(lambda: "3 record(s)" in caplog.text, within=10, what="a line")
            kafka.away = True
            eventually(lambda: "not known now: no broker" in caplog.text, within=10, what="a warning")
            kafka.away = False
            looks = kafka.looks
            eventually(lambda: kafka.looks > looks + 2, within=10, what="looks after the outage")
        assert watch.moved(None).records == kafka.count
