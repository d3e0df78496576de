"""Rates and lags, from one look to the next."""

from __future__ import annotations

from typing import Any

from sluiceway.api import TopicPartition
from sluiceway.cli.top_table import Look, rows

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def status(type_: str = "sink", *tasks: str) -> dict[str, Any]:
    found = [{"id": number, "state": state} for number, state in enumerate(tasks)]
    return {"type": type_, "connector": {"state": "RUNNING"}, "tasks": found}


def at(topic: str, partition: int, offset: int | None) -> dict[str, Any]:
    told = None if offset is None else {"kafka_offset": offset}
    return {"partition": {"kafka_topic": topic, "kafka_partition": partition}, "offset": told}


def test_a_first_look_shows_states_and_lags_but_no_rates() -> None:
    look = Look(0, {"s": status("sink", "RUNNING", "FAILED")}, {"s": [at("t", 0, 40), at("t", 1, 5)]}, ends={T0: 1042, T1: 5})
    assert rows(look, None) == [
        ("NAME", "TYPE", "STATE", "TASKS", "OFFSETS/S", "LAG"),
        ("s", "sink", "RUNNING", "1 RUNNING, 1 FAILED", "-", "1,002"),
    ]


def test_a_rate_is_the_growth_of_the_offsets_in_a_second() -> None:
    before = Look(10, {"s": status()}, {"s": [at("t", 0, 100), at("t", 1, 0)]})
    now = Look(12, {"s": status()}, {"s": [at("t", 0, 2100), at("t", 1, 1), at("t", 2, 9999)]})
    assert rows(now, before)[1][4:] == ("1,000.5", "-")


def test_a_source_counts_whatever_its_one_number_is() -> None:
    def look(when: float, position: object) -> Look:
        return Look(when, {"s": status("source")}, {"s": [{"partition": {"filename": "f"}, "offset": {"position": position}}]})

    assert rows(look(2, 30), look(0, 10))[1][4] == "10.0"
    assert rows(look(2, 0), look(0, 10))[1][4] == "0.0"  # reset meanwhile
    assert rows(look(2, "a"), look(0, "b"))[1][4] == "-"
    assert rows(look(0, 30), look(0, 10))[1][4] == "-"


def test_partitions_without_a_committed_offset_count_from_their_first_record() -> None:
    offsets, ends = {"s": [at("t", 0, 1), at("t", 1, None)]}, {T0: 3, T1: 9}
    look = Look(0, {"s": status()}, offsets, {"s": ["t"]}, {T1: 4}, ends)
    assert rows(look, None)[1][5] == "7"


def test_partitions_whose_end_is_not_known_do_not_count() -> None:
    look = Look(0, {"s": status()}, {"s": [at("t", 0, 1), at("u", 0, 7)]}, {"s": ["t", "u"]}, ends={T0: 3})
    assert rows(look, None)[1][5] == "2"
    assert rows(Look(0, {"s": status()}), None)[1][5] == "-"


def test_partitions_of_other_sinks_do_not_count() -> None:
    look = Look(0, {"s": status()}, {"s": [at("t", 0, 1)]}, {"s": []}, ends={T0: 3, T1: 9})
    assert rows(look, None)[1][5] == "2"
