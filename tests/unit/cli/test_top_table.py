"""Tests of the table of ``sluiceway top``."""

from __future__ import annotations

from typing import Any

from sluiceway.api import TopicPartition
from sluiceway.cli.top_table import Sample, committed, ranked, rows, summary


def status(type_: str = "sink", *tasks: str) -> dict[str, Any]:
    found = [{"id": number, "state": state} for number, state in enumerate(tasks)]
    return {"type": type_, "connector": {"state": "RUNNING"}, "tasks": found}


def at(topic: str, partition: int, offset: int | None) -> dict[str, Any]:
    fields = None if offset is None else {"kafka_offset": offset}
    return {"partition": {"kafka_topic": topic, "kafka_partition": partition}, "offset": fields}


def test_the_first_sample_shows_states_and_lags_but_no_rates() -> None:
    sample = Sample(0, {"s": status("sink", "RUNNING", "FAILED")}, {"s": [at("t", 0, 40)]}, {"s": 1002})
    assert rows(["s"], [sample]) == [
        ("NAME", "TYPE", "STATE", "TASKS", "OFFSETS/S", "LAG"),
        ("s", "sink", "RUNNING", "1 RUNNING, 1 FAILED", "-", "1,002"),
    ]


def test_what_a_running_task_waits_for_is_shown_before_others_that_run() -> None:
    statuses = {"b": status("sink", "RUNNING", "RUNNING"), "a": status("sink", "RUNNING"), "c": status("sink", "FAILED")}
    statuses["b"]["tasks"][1]["trace"] = "Waiting since noon, next try within 10 s. db: refused"
    statuses["c"]["tasks"][0]["trace"] = "E: no"
    assert ranked(statuses) == ["c", "b", "a"]
    assert summary(statuses, 3) == "3 connector(s): 1 FAILED, 1 RUNNING but waiting, 1 RUNNING"
    found = [(row[0], row[3], *row[6:]) for row in rows(["b", "a"], [Sample(0, statuses)])]
    assert found == [
        ("NAME", "TASKS", "STATUS"),
        ("b", "2 RUNNING (1 waiting)", "Waiting since noon, next try within 10 s. db: refused"),
        ("a", "1 RUNNING", ""),
    ]


def test_a_rate_is_the_growth_of_the_offsets_per_second() -> None:
    before = Sample(10, {"s": status()}, {"s": [at("t", 0, 100), at("t", 1, 0)]})
    now = Sample(12, {"s": status()}, {"s": [at("t", 0, 2100), at("t", 1, 1), at("t", 2, 9999)]})
    assert rows(["s"], [before, now])[1][4:] == ("1,000.5", "-")


def test_the_rate_of_a_source_is_that_of_the_one_number_in_its_offsets() -> None:
    def sample(when: float, position: object) -> Sample:
        return Sample(when, {"s": status("source")}, {"s": [{"partition": {"filename": "f"}, "offset": {"position": position}}]})

    assert rows(["s"], [sample(0, 10), sample(2, 30)])[1][4] == "10.0"
    assert rows(["s"], [sample(0, 10), sample(2, 0)])[1][4] == "0.0", "reset in between"
    assert rows(["s"], [sample(0, "b"), sample(2, "a")])[1][4] == "-"
    assert rows(["s"], [sample(0, 10), sample(0, 30)])[1][4] == "-"


def test_a_lag_that_is_not_known_is_not_shown_as_zero() -> None:
    sample = Sample(0, {"a": status(), "b": status(), "c": status()}, {}, {"a": None, "b": 0})
    assert [row[5] for row in rows(["a", "b", "c"], [sample])[1:]] == ["-", "0", "-"]


def test_committed_offsets_are_those_of_topic_partitions_that_have_one() -> None:
    source = {"partition": {"filename": "f"}, "offset": {"position": 1}}
    assert committed([at("t", 0, 1), at("t", 1, None), source]) == {TopicPartition("t", 0): 1}


def test_a_connector_that_was_not_shown_before_has_no_rate_until_the_next_sample() -> None:
    statuses = {"s": status(), "t": status()}
    first = Sample(0, statuses, {"s": [at("t", 0, 0)]})
    second = Sample(1, statuses, {"s": [at("t", 0, 10)], "t": [at("u", 0, 5)]})
    third = Sample(2, statuses, {"t": [at("u", 0, 8)]})
    assert [row[4] for row in rows(["s", "t"], [first, second])[1:]] == ["10.0", "-"]
    assert [row[4] for row in rows(["t"], [first, second, third])[1:]] == ["3.0"]


def test_trouble_comes_first() -> None:
    def made(state: str, *tasks: str) -> dict[str, Any]:
        return {**status("sink", *tasks), "connector": {"state": state}}

    statuses = {
        "stopped": made("STOPPED"),
        "paused": made("PAUSED", "PAUSED"),
        "b": made("RUNNING", "RUNNING"),
        "a": made("RUNNING", "RUNNING"),
        "restarting": made("RESTARTING"),
        "task without driver": made("RUNNING", "UNASSIGNED"),
        "unassigned": made("UNASSIGNED"),
        "paused with a failed task": made("PAUSED", "PAUSED", "FAILED"),
        "failed": made("FAILED"),
    }
    order = ["failed", "paused with a failed task", "task without driver", "unassigned", "restarting", "a", "b", "paused"]
    assert ranked(statuses) == [*order, "stopped"]
    assert summary(statuses, 9) == "9 connector(s): 2 FAILED, 2 UNASSIGNED, 1 RESTARTING, 2 RUNNING, 1 PAUSED, 1 STOPPED"
    assert summary(statuses, 4).endswith("; the first 4 are shown")
    assert summary({}, 0) == "0 connector(s)"
