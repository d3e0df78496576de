"""Source tasks whose records go through transforms."""

from __future__ import annotations

from typing import Any

import pytest

from sluiceway.api import Transform
from support.engine import RunningTask
from support.engine_connectors import ACKNOWLEDGED_SOURCE, SOURCE, Script, script
from unit.runtime.chains import Closing, chain_config
from unit.runtime.fake_clients import FakeProducer
from unit.runtime.source.test_worker_source_task import config, record, stored, values, worker

REPEAT = {"type": "unit.runtime.chains.Repeat"}
CAST = {"type": "Cast$Value", "spec": "int32"}
NO_TOMBSTONES = {"type": "Filter", "predicate": "p"}
TOMBSTONE = {"type": "RecordIsTombstone"}


def run_through(*steps: Any, stages: list[dict[str, str]], connector: str = SOURCE, **more: str) -> tuple[Script, RunningTask]:
    """Run a source whose records go through a chain."""
    made = script("src", *steps)
    transforms = chain_config(*stages, p=TOMBSTONE)
    with RunningTask({**config(connector, **more), **transforms}, worker(), bounded=True) as task:
        task.join()
    return made, task


def test_transformed_records_are_produced_with_the_tasks_offsets() -> None:
    renamed = {"type": "RegexRouter", "regex": "t", "replacement": "u"}
    _, task = run_through([record("a", 1), record("b", 2)], stages=[renamed])
    assert [topic for topic, *_ in FakeProducer.made[-1].sent] == ["u", "u"]
    assert stored(task) == {"position": 2}
    assert task.reports.topics == ["u"]


@pytest.mark.parametrize("last", ["a", None])
def test_the_offset_of_a_filtered_record_is_stored(last: Any) -> None:
    _, task = run_through([record(None, 1), record("a", 2), record(last, 3)], stages=[NO_TOMBSTONES])
    assert values() == [b"a"] + [b"a"] * (last is not None)
    assert stored(task) == {"position": 3}
    assert task.join().records == 3


def test_the_offsets_of_a_batch_that_is_filtered_completely_are_stored() -> None:
    _, task = run_through([record(None, 1)], stages=[NO_TOMBSTONES])
    assert (values(), stored(task)) == ([], {"position": 1})


def test_all_records_made_from_one_are_produced() -> None:
    _, task = run_through([record("2", 1), record("0", 2), record("1", 3)], stages=[REPEAT])
    assert values() == [b"2.0", b"2.1", b"1.0"]
    assert stored(task) == {"position": 3}


def test_an_offset_is_stored_only_after_all_records_made_from_it_are_sent() -> None:
    """The second of two is too large, so the offset of their source must not be stored."""
    big = {"type": "unit.runtime.source.test_worker_source_task_transforms.SmallThenBig"}
    _, task = run_through([record("a", 1), record("b", 2)], stages=[big])
    assert task.join().failed
    assert values() == [b"a"]
    assert task.offsets.puts == []


class SmallThenBig(Transform):
    def apply(self, record: Any) -> Any:
        return [record, record.new_record(value="x" * 1001)]


def test_commit_record_is_called_once_for_each_of_the_tasks_records() -> None:
    made, task = run_through(
        [record(None, 1), record("2", 2), record("1", 3), record(None, 4)],
        stages=[NO_TOMBSTONES, REPEAT],
        connector=ACKNOWLEDGED_SOURCE,
    )
    acknowledged = [call[1:] for call in made.calls if call[0] == "commit_record"]
    assert sorted(acknowledged, key=str) == [("1", 0, 2), ("2", 0, 1), (None, -1, -1), (None, -1, -1)]
    assert stored(task) == {"position": 4}


def test_a_record_that_cannot_be_transformed_fails_the_task_at_its_offset() -> None:
    _, task = run_through([record("1", 1), record("x", 2), record("3", 3)], stages=[CAST])
    assert (task.join().trace or "").startswith(
        "sluiceway.errors.ConnectError: Tolerance exceeded in error handler: a record for topic t with source offset "
        "{'position': 2} cannot be transformed by t0: "
    )
    assert "DataError" in (task.join().trace or ""), "the cause is missing"
    assert (values(), stored(task)) == ([b"1"], {"position": 1})


def test_a_record_that_cannot_be_transformed_is_skipped_with_tolerance(caplog: pytest.LogCaptureFixture) -> None:
    made, task = run_through(
        [record("1", 1), record("x", 2), record("3", 3), record("y", 4)],
        stages=[CAST],
        connector=ACKNOWLEDGED_SOURCE,
        errors_tolerance="all",
    )
    assert (values(), stored(task)) == ([b"1", b"3"], {"position": 4})
    assert [call[1] for call in made.calls if call[0] == "commit_record"].count("x") == 1
    assert "2 skipped so far" in caplog.text


@pytest.mark.parametrize("step", [None, RuntimeError("poll failed")])
def test_the_chain_is_closed_when_the_task_ends(step: Any) -> None:
    Closing.closed = 0
    run_through([record("a", 1)], step, stages=[{"type": "unit.runtime.chains.Closing"}])
    assert Closing.closed == 1


def test_a_chain_that_cannot_be_built_fails_the_task_before_it_starts() -> None:
    made, task = run_through([record("a", 1)], stages=[{"type": "Nope.x"}])
    assert task.join().failed
    assert made.names() == []
