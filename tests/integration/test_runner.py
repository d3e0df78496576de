"""A connector's lifecycle on a driver with real topics; tasks are threads instead of Spark jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from sluiceway.runtime.task import TaskResult
from sluiceway.worker.connector_runner import RunnerOutcome
from sluiceway.worker.executor import Work
from sluiceway.worker.task_launcher import ThreadLauncher
from support.driver_bench import Bench, open_bench
from support.eventually import LIMIT, eventually

pytestmark = pytest.mark.kafka


@pytest.fixture
def bench(tmp_path: Path, kafka_bootstrap: str, unique: Callable[[str], str]) -> Iterator[Bench]:
    with open_bench(kafka_bootstrap, unique("runner"), tmp_path) as made:
        yield made


def source_config(bench: Bench, topic: str) -> dict[str, str]:
    return {"connector.class": "FileStreamSource", "file": str(bench.source), "topic": topic}


def test_two_connectors_copy_lines_from_file_to_file(bench: Bench, unique: Callable[[str], str]) -> None:
    topic, source, sink = unique("lines"), unique("source"), unique("sink")
    bench.source.write_text("".join(f"line {n}\n" for n in range(5000)))
    bench.herder.create(source, source_config(bench, topic))
    bench.herder.create(sink, {"connector.class": "FileStreamSink", "file": str(bench.sink), "topics": topic})
    bench.driver(source, "one:1")
    bench.driver(sink, "two:2")
    eventually(lambda: bench.sink.exists() and bench.sink.read_bytes() == bench.source.read_bytes(), what="equal files")
    assert bench.states(source) == ("RUNNING", ["RUNNING"])
    assert bench.states(sink) == ("RUNNING", ["RUNNING"])


def test_a_pause_drains_the_driver_and_a_new_one_continues(bench: Bench, unique: Callable[[str], str]) -> None:
    topic, source, sink = unique("lines"), unique("source"), unique("sink")
    bench.source.write_text("a\n")
    bench.herder.create(source, source_config(bench, topic))
    bench.herder.create(sink, {"connector.class": "FileStreamSink", "file": str(bench.sink), "topics": topic})
    bench.driver(sink, "two:2")
    _, first = bench.driver(source, "one:1")
    eventually(lambda: bench.sink.exists() and bench.sink.read_text() == "a\n", what="the first line")
    bench.herder.pause(source)
    assert first.result(timeout=LIMIT) == [RunnerOutcome.DONE]
    eventually(lambda: bench.states(source) == ("PAUSED", ["PAUSED"]), what="PAUSED")
    with bench.source.open("a") as file:
        file.write("b\n")
    bench.herder.resume(source)
    bench.driver(source, "one:3")
    eventually(lambda: bench.sink.read_text() == "a\nb\n", what="the missing line, once")
    eventually(lambda: bench.states(source) == ("RUNNING", ["RUNNING"]), what="RUNNING")


def test_a_second_driver_fences_the_first(bench: Bench, unique: Callable[[str], str]) -> None:
    source = unique("source")
    bench.source.write_text("a\n")
    bench.herder.create(source, source_config(bench, unique("lines")))
    _, first = bench.driver(source, "one:1")
    eventually(lambda: bench.states(source) == ("RUNNING", ["RUNNING"]), what="the first driver")
    bench.driver(source, "two:2")
    assert first.result(timeout=LIMIT) == [RunnerOutcome.FENCED]
    eventually(lambda: bench.stores.status.connector(source).worker_id == "two:2", what="the second driver's status")  # type: ignore[union-attr]


def test_a_deletion_ends_the_driver_and_leaves_no_status(bench: Bench, unique: Callable[[str], str]) -> None:
    source = unique("source")
    bench.source.write_text("a\n")
    bench.herder.create(source, source_config(bench, unique("lines")))
    _, outcome = bench.driver(source, "one:1")
    eventually(lambda: bench.states(source) == ("RUNNING", ["RUNNING"]), what="RUNNING")
    bench.herder.delete(source)
    assert outcome.result(timeout=LIMIT) == [RunnerOutcome.DONE]
    bench.stores.status.refresh()
    assert bench.stores.status.connector(source) is None
    assert not bench.stores.status.tasks(source)


def test_a_changed_config_takes_effect_without_a_new_driver(bench: Bench, unique: Callable[[str], str]) -> None:
    topic, source, sink = unique("lines"), unique("source"), unique("sink")
    other = bench.folder / "other.txt"
    bench.source.write_text("a\n")
    other.write_text("from the other file\n")
    bench.herder.create(source, source_config(bench, topic))
    bench.herder.create(sink, {"connector.class": "FileStreamSink", "file": str(bench.sink), "topics": topic})
    bench.driver(sink, "two:2")
    bench.driver(source, "one:1")
    eventually(lambda: bench.sink.exists() and bench.sink.read_text() == "a\n", what="the first line")
    bench.herder.put_config(source, {**source_config(bench, topic), "file": str(other)})
    eventually(lambda: bench.sink.read_text() == "a\nfrom the other file\n", what="the other file's line")


def test_a_connector_that_cannot_start_is_failed_and_starts_after_a_config_change(
    bench: Bench, unique: Callable[[str], str]
) -> None:
    source = unique("source")
    bench.source.write_text("a\n")
    # Bypasses validation, as if another worker had written it.
    bench.stores.config.put_connector(source, {"connector.class": "no.such.Connector", "name": source})
    bench.driver(source, "one:1")
    eventually(lambda: bench.states(source)[0] == "FAILED", what="FAILED")
    assert "no.such.Connector" in (bench.stores.status.connector(source).trace or "")  # type: ignore[union-attr]
    bench.herder.put_config(source, source_config(bench, unique("lines")))
    eventually(lambda: bench.states(source) == ("RUNNING", ["RUNNING"]), what="RUNNING")


class LosingLauncher(ThreadLauncher):
    """Loses the process of the first task it starts."""

    def __init__(self) -> None:
        self.launched = 0

    def launch(self, work: Work) -> Future[TaskResult]:
        self.launched += 1
        if self.launched == 1:
            lost: Future[TaskResult] = Future()
            lost.set_exception(RuntimeError("Python worker exited unexpectedly (crashed)"))
            return lost
        return super().launch(work)


def test_a_task_whose_process_is_lost_is_started_again(bench: Bench, unique: Callable[[str], str]) -> None:
    source = unique("source")
    bench.source.write_text("a\n")
    bench.herder.create(source, source_config(bench, unique("lines")))
    launcher = LosingLauncher()
    bench.driver(source, "one:1", launcher)
    eventually(lambda: bench.states(source) == ("RUNNING", ["RUNNING"]), what="RUNNING")
    assert launcher.launched == 2


def test_a_failed_task_stays_failed_and_the_connector_continues(bench: Bench, unique: Callable[[str], str]) -> None:
    source = unique("source")
    bench.source.write_text("x" * 2_000_000 + "\n")  # larger than a record may be
    bench.herder.create(source, source_config(bench, unique("lines")))
    bench.driver(source, "one:1")
    eventually(lambda: bench.states(source) == ("RUNNING", ["FAILED"]), what="a FAILED task")
    assert bench.stores.status.tasks(source)[0].trace
    bench.stores.status.refresh()
    assert bench.stores.offsets.all(source) == []


def test_a_micro_batch_copies_the_available_records_and_ends(bench: Bench, unique: Callable[[str], str]) -> None:
    topic, source, sink = unique("lines"), unique("source"), unique("sink")
    bench.herder.create(source, source_config(bench, topic))
    bench.herder.create(sink, {"connector.class": "FileStreamSink", "file": str(bench.sink), "topics": topic})
    expected = ""
    for batch in ("first", "second"):
        lines = "".join(f"{batch} {n}\n" for n in range(3000))
        expected += lines
        with bench.source.open("a") as file:
            file.write(lines)
        for name in (source, sink):
            _, outcome = bench.driver(name, f"{batch}:1", bounded=True)
            assert outcome.result(timeout=LIMIT) == [RunnerOutcome.DONE]
            assert bench.states(name) == ("UNASSIGNED", ["UNASSIGNED"])
        assert bench.sink.read_text() == expected
