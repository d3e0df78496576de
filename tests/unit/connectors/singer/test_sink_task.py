"""The task of SingerSink with a target of the tests' own: what counts as flushed, what is repeated, and what is not."""

from __future__ import annotations

import json
import stat
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.connectors.singer import SingerSinkConnector
from sluiceway.connectors.singer.sink import SingerSinkTask
from sluiceway.connectors.singer.target import TargetProcess
from sluiceway.errors import ConfigError, ConnectError, DataError, NotFoundError, RetriableError
from sluiceway.runtime.memory import MemoryReporter, MemorySinkContext
from support.eventually import eventually
from support.singer_taps import is_running
from support.singer_targets import fake_sink, flush, messages, record, records_in, started_sink
from support.sink_tasks import put_until_taken

ORDERS, PEOPLE = TopicPartition("orders", 0), TopicPartition("people", 0)


def rows(*offsets: int, topic: str = "orders") -> list[SinkRecord]:
    return [record(offset, {"id": offset}, topic) for offset in offsets]


def ids(out: Path) -> list[int]:
    return [each["id"] for each in records_in(messages(out))]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


# --- when ---


def test_a_flush_is_due_by_count_and_its_offsets_are_those_that_pre_commit_returns(out: Path) -> None:
    with started_sink(fake_sink(out, flush_size="3")) as (task, context):
        task.put(rows(0, 1))
        assert task.pre_commit({ORDERS: 2}) == {ORDERS: 0}
        assert not out.exists()
        task.put(rows(2, 3, 4, 5, 6, 7, 8))  # one run for each put, so that its offsets can be committed before the next one
        assert ids(out) == list(range(9))
        assert context.commit_requested
        task.put(rows(9))
        assert task.pre_commit({ORDERS: 10}) == {ORDERS: 9}
        assert task.metrics() == {"runs": 1, "loaded-records": 9, "waiting-records": 1}


def test_a_flush_is_due_by_bytes(out: Path) -> None:
    with started_sink(fake_sink(out, flush_bytes="20")) as (task, _context):
        task.put(rows(0, 1))
        assert not out.exists()
        task.put(rows(2))
        assert ids(out) == [0, 1, 2]


def test_a_flush_is_due_by_time_also_without_new_records(out: Path) -> None:
    with started_sink(fake_sink(out, flush_interval_ms="50")) as (task, _context):
        task.put(rows(0))

        def flushed() -> bool:
            task.put([])
            return ids(out) == [0]

        eventually(flushed)
        task.put([])
        assert task.metrics()["runs"] == 1
        task.put(rows(1))
        eventually(lambda: task.pre_commit({ORDERS: 2}) == {ORDERS: 2})
        assert ids(out) == [0, 1]


def test_what_waits_is_flushed_when_no_more_records_come(out: Path) -> None:
    with started_sink(fake_sink(out)) as (task, context):
        task.put([*rows(0, 1), *rows(5, topic="people")])
        offsets = {ORDERS: 4, PEOPLE: 6}  # the messages at 2 and 3 were filtered out
        assert task.pre_commit(offsets) == {ORDERS: 0, PEOPLE: 5}
        assert flush(task, context, offsets) == offsets
        assert ids(out) == [0, 1, 5]
        assert flush(task, context, offsets) == offsets
        assert task.metrics()["runs"] == 1


# --- what counts ---


FAILURES: dict[str, tuple[dict[str, Any], str]] = {
    "exit code": ({"exit": 2}, r"fake_target\.py ended with exit code 2\. Its last lines:"),
    "crash in the middle": ({"crash_after": 2}, r"fake_target\.py ended with signal SIGKILL"),
    "ends without reading": ({"deaf": True, "exit": 4}, r"fake_target\.py ended with exit code 4"),
    "slow": ({"hang": 60}, r"fake_target\.py was killed, because it has not ended within 1 s\. Raise flush\.timeout\.ms"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_run_is_repeated_and_nothing_is_committed_meanwhile(out: Path, failure: str) -> None:
    target, problem = FAILURES[failure]
    config = fake_sink(out, target, flush_size="3", max_retries="2", retry_backoff_ms="10")
    if failure == "slow":
        config["flush.timeout.ms"] = "1000"
    with started_sink(config) as (task, context):
        for _ in range(2):
            with pytest.raises(RetriableError, match=problem):
                task.put(rows(0, 1, 2, 3))
            assert context.timeouts[-1] == 10
            time.sleep(0.01)
        assert task.pre_commit({ORDERS: 0}) == {ORDERS: 0}
        with pytest.raises(ConnectError, match=problem) as caught:
            task.put(rows(0, 1, 2, 3))
        assert not isinstance(caught.value, RetriableError)
        assert "3 runs have failed in a row, more than max.retries allows" in str(caught.value)
        assert flush(task, context, {ORDERS: 4}) == {ORDERS: 0}
        with pytest.raises(ConnectError, match=problem):
            task.put([])


@pytest.mark.parametrize(
    ("target", "printed"),
    [
        ({"echo": "none"}, "no line"),
        ({"echo": "partial"}, "it has printed 1 lines, the last one of 13 bytes"),
        ({"echo": "more"}, "it has printed 2 lines, the last one of 4 bytes"),
        ({"deaf": True}, "no line"),
    ],
)
def test_a_run_without_the_state_as_its_last_line_fails_the_task_and_is_not_repeated(
    out: Path, target: dict[str, Any], printed: str
) -> None:
    with started_sink(fake_sink(out, target, flush_size="2")) as (task, context):
        with pytest.raises(
            ConnectError, match="ended with exit code 0, but the last line that it printed is not the STATE"
        ) as caught:
            task.put(rows(0, 1))
        assert not isinstance(caught.value, RetriableError)
        assert f"({printed})" in str(caught.value)
        before = ids(out)
        assert flush(task, context, {ORDERS: 2}) == {ORDERS: 0}
        assert ids(out) == before


def test_states_in_between_do_not_count(out: Path) -> None:
    with started_sink(fake_sink(out, {"echo": "each", "exit": 1}, flush_size="2")) as (task, _context):
        with pytest.raises(RetriableError):
            task.put(rows(0, 1))
        assert task.pre_commit({ORDERS: 2}) == {ORDERS: 0}


def test_a_put_that_is_repeated_takes_no_record_twice(out: Path, tmp_path: Path) -> None:
    config = fake_sink(out, {"once": str(tmp_path / "once")}, flush_size="3")
    with started_sink(config) as (task, context):
        records = rows(*range(8))
        with pytest.raises(RetriableError, match="ERROR not yet"):
            task.put(records)
        put_until_taken(task, context, records)
        assert flush(task, context, {ORDERS: 8}) == {ORDERS: 8}
    assert ids(out) == list(range(8))


def test_what_is_flushed_while_a_put_waits_to_be_repeated_is_not_taken_again(out: Path, tmp_path: Path) -> None:
    """As when another partition is revoked meanwhile. Its bad record is reported once."""
    with started_sink(fake_sink(out, {"once": str(tmp_path / "once")}, flush_size="3")) as (task, context):
        task.put(rows(0, 1))
        records = [*rows(2, 3), record(4, "bad"), *rows(5)]
        with pytest.raises(RetriableError):
            task.put(records)
        assert flush(task, context, {ORDERS: 2}) == {ORDERS: 2}
        assert ids(out) == [0, 1, 2, 3, 5]
        task.put(records)
        assert flush(task, context, {ORDERS: 6}) == {ORDERS: 6}
    assert ids(out) == [0, 1, 2, 3, 5]
    assert len(context.reported) == 1


def test_records_of_one_message_are_all_taken_and_again_after_a_rewind_only_once(out: Path) -> None:
    """A transform makes several records of a message; a rewind brings the messages since the last commit again."""
    with started_sink(fake_sink(out)) as (task, context):
        split = [record(3, {"id": number}) for number in (30, 31)]
        task.put([*rows(2), *split])
        task.put([*rows(4)])
        task.put([*split, *rows(4, 5)])
        assert flush(task, context, {ORDERS: 6}) == {ORDERS: 6}
    assert ids(out) == [2, 30, 31, 4, 5]


def test_a_rewind_after_an_interrupted_put_loses_nothing(out: Path) -> None:
    """The put was interrupted while it reported a record; what it had taken is not skipped if earlier records come again, too."""
    with started_sink(fake_sink(out)) as (task, context):
        task.put(rows(5, 6))
        context.errant_record_reporter = Interrupting()  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):
            task.put([*rows(7, 8), record(9, "bad")])
        context.errant_record_reporter = MemoryReporter()
        task.put([*rows(6, 7, 8), record(9, "bad"), *rows(10)])
        assert flush(task, context, {ORDERS: 11}) == {ORDERS: 11}
        assert len(context.reported) == 1
    assert ids(out) == [5, 6, 7, 8, 10]


class Interrupting:
    """A reporter that is interrupted, as the runtime does by an exception that is no Exception."""

    def report(self, _record: SinkRecord, _error: BaseException) -> None:
        raise KeyboardInterrupt


def test_a_revoked_partition_is_forgotten(out: Path, tmp_path: Path) -> None:
    config = fake_sink(out, {"once": str(tmp_path / "once")}, flush_size="3")
    with started_sink(config) as (task, context):
        with pytest.raises(RetriableError):
            task.put([*rows(0, 1), *rows(0, topic="people")])
        task.close([PEOPLE])
        put_until_taken(task, context, rows(0, 1))
        assert not ids(out)
        assert flush(task, context, {ORDERS: 2}) == {ORDERS: 2}
        assert ids(out) == [0, 1]
        task.put(rows(0, topic="people"))  # it is back
        assert flush(task, context, {PEOPLE: 1}) == {PEOPLE: 1}
    assert ids(out) == [0, 1, 0]


# --- bad records ---


def test_a_bad_record_is_reported_and_the_others_are_loaded(out: Path) -> None:
    with started_sink(fake_sink(out)) as (task, context):
        task.put([*rows(0), record(1, "x"), record(2, None), *rows(3)])
        assert [each.original_kafka_offset for each, _ in context.reported] == [1, 2]
        assert flush(task, context, {ORDERS: 4}) == {ORDERS: 4}
    assert ids(out) == [0, 3]


def test_a_bad_record_without_a_reporter_fails_the_task_after_what_was_before_it(out: Path) -> None:
    with started_sink(fake_sink(out), reports=False) as (task, context):
        task.put(rows(0, 1))
        with pytest.raises(DataError, match="orders-0 at offset 3"):
            task.put([*rows(2), record(3, "x")])
        assert flush(task, context, {ORDERS: 2}) == {ORDERS: 2}


# --- the process ---


def test_the_config_is_private_and_removed_and_no_variables_of_python_are_passed_on(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "about.json"
    for name in ("PYTHONPATH", "PYTHONHOME_X", "SPARK_HOME", "PYSPARK_PYTHON", "VIRTUAL_ENV"):
        monkeypatch.setenv(name, "/x")
    with started_sink(fake_sink(out, {"environment": str(about)}, flush_size="1")) as (task, _context):
        task.put(rows(0))
    found = json.loads(about.read_text())
    assert (found["folder"], found["file"]) == (0o700, stat.S_IRUSR | stat.S_IWUSR)
    assert not Path(found["path"]).parent.exists()
    assert not [name for name in found["variables"] if name.startswith(("PYTHON", "SPARK", "PYSPARK", "VIRTUAL"))]
    assert "PATH" in found["variables"]


def test_the_log_and_errors_have_the_targets_lines_without_secrets(out: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = {**fake_sink(out, {"exit": 1, "noise": 2}, flush_size="1"), "singer.config.password": "very-secret"}
    caplog.set_level("INFO")
    with started_sink(config) as (task, _context), pytest.raises(RetriableError) as caught:
        task.put(rows(0))
    assert "INFO noise 1 of [hidden]" in str(caught.value)
    assert "fake_target.py: INFO noise 0 of [hidden]" in caplog.text
    assert "very-secret" not in caplog.text + str(caught.value)


def test_a_target_that_prints_much_does_not_block(out: Path) -> None:
    with started_sink(fake_sink(out, {"noise": 5000}, flush_size="20000")) as (task, _context):
        task.put(rows(*range(20_000)))
    assert len(ids(out)) == 20_000


def test_a_target_dies_with_the_thread_of_its_task(out: Path) -> None:
    """The kernel ends it with the thread, so that it also ends with a process that is killed."""
    found: list[int] = []
    started = threading.Event()

    def run() -> None:
        task = SingerSinkTask()
        config = fake_sink(out, {"sleep": 600}, flush_size="2", max_retries="0")
        task.initialize(MemorySinkContext(config))
        task.start(config)
        target = task._target
        assert target is not None
        command = [*target._command, "--config", _config_of(out)]
        process = TargetProcess("t", command)
        found.append(process.pid)
        eventually(out.exists)
        started.set()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert started.is_set()
    eventually(lambda: not is_running(found[0]))


def _config_of(out: Path) -> str:
    path = out.with_name("config.json")
    path.write_text(json.dumps({"out": str(out)}))
    return str(path)


def test_no_process_and_no_folder_is_left_after_failed_runs(out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    before = set(psutil.Process().children(recursive=True))
    for target, limit in (({"exit": 1}, "240000"), ({"hang": 60}, "1000"), ({"echo": "none"}, "240000")):
        config = fake_sink(out, target, flush_size="1", flush_timeout_ms=limit)
        with started_sink(config) as (task, _context), pytest.raises(ConnectError):
            task.put(rows(0))
    assert not list(scratch.iterdir())
    assert set(psutil.Process().children(recursive=True)) <= before


# --- the config ---


def test_a_target_that_is_not_there_is_an_error_of_the_start(out: Path) -> None:
    config = {**fake_sink(out), "singer.target": "target-absent"}
    with pytest.raises(NotFoundError, match="target-absent is no program on this machine"), started_sink(config):
        pass


@pytest.mark.parametrize(
    ("keys", "name", "problem"),
    [
        ({"pk.fields": "id"}, "pk.fields", "has no effect with pk.mode=none"),
        ({"pk.mode": "kafka", "pk.fields": "a,b"}, "pk.fields", "must name three fields"),
        ({"pk.mode": "record_value", "pk.fields": "a,a"}, "pk.fields", "names a field twice"),
        ({"singer.python": "3.11"}, "singer.python", "has no effect without singer.requirements"),
        ({"singer.config": "[]"}, "singer.config", "must be a JSON object"),
        ({"singer.config": "{"}, "singer.config", "is no JSON"),
        ({"flush.size": "0"}, "flush.size", "at least 1"),
        ({"behavior.on.null.values": "delete"}, "behavior.on.null.values", "fail, ignore"),
    ],
)
def test_keys_that_conflict_or_are_wrong_are_refused_by_name(keys: dict[str, str], name: str, problem: str) -> None:
    config = {"singer.target": "target-x", **keys}
    [errors] = [each.errors for each in SingerSinkConnector.check(config).values() if each.errors]
    assert problem in errors[0]
    assert name in errors[0]
    with pytest.raises(ConfigError, match=name):
        SingerSinkConnector().start(config)


def test_a_preview_shows_the_messages() -> None:
    found = SingerSinkConnector.preview({"singer.target": "target-x", "pk.mode": "kafka"}, rows(3))
    assert found is not None
    assert [json.loads(each)["type"] for each in found] == ["SCHEMA", "RECORD"]
    assert '"record":{"id":3,"__connect_topic":"orders","__connect_partition":0,"__connect_offset":3}' in found[1]
