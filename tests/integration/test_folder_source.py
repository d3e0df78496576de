"""The folder source on a real broker: logs through rotations, formats through converters, bad rows, and restarts."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from support.engine import Offsets, RunningTask
from support.eventually import eventually
from support.exactly_once import exactly_once_worker, opened_stores
from support.kafka import Kafka
from support.log_writer import LogWriters
from support.rotated_log import KEEPING

pytestmark = pytest.mark.kafka

Names = Callable[[str], str]
LINES = 2000


def config(name: str, topic: str, paths: str, mode: str, **more: str) -> dict[str, str]:
    own = {"name": name, "connector.class": "FolderSource", "topic": topic, "paths": paths, "mode": mode}
    return {**own, **{key.replace("_", "."): value for key, value in more.items()}}


def numbers_by_file(kafka: Kafka, topic: str, count: int) -> dict[str, list[int]]:
    found = defaultdict(list)
    for message in kafka.read(topic, count):
        found[message.key().decode()].append(int(message.value().split()[0]))
    return dict(found)


def test_logs_are_followed_through_each_kind_of_rotation(kafka: Kafka, topic: str, name: str, tmp_path: Path) -> None:
    writers = LogWriters(tmp_path / "logs", KEEPING, every=300, rate=1000)
    made = config(name, topic, str(tmp_path / "logs" / "*" / "*.log"), "logs", record_key="file", rotated_close_ms="300")
    with RunningTask(made, kafka.worker()) as task:
        with writers:
            eventually(lambda: min(writers.written().values()) >= LINES, what=f"{LINES} lines of each log")
        writers.close()
        total = sum(writers.written().values())
        eventually(lambda: kafka.end(topic) >= total, what="all lines in the topic")
        stored = len(task.stored_offsets())
    assert numbers_by_file(kafka, topic, total) == {path: list(range(count)) for path, count in writers.written().items()}
    assert stored <= len(KEEPING)


def test_logs_that_were_rotated_while_the_task_was_stopped(kafka: Kafka, topic: str, name: str, tmp_path: Path) -> None:
    writers = LogWriters(tmp_path / "logs", KEEPING, every=300, rate=2000)
    made, offsets = config(name, topic, str(tmp_path / "logs" / "*" / "app.log"), "logs", record_key="file"), Offsets()
    with writers:
        with RunningTask(made, kafka.worker(), offsets=offsets):
            eventually(lambda: kafka.end(topic) > 500 * len(KEEPING), what="the first lines")
        before = min(writers.written().values())
        eventually(lambda: min(writers.written().values()) >= before + LINES, what=f"{LINES} lines of each log")
        with RunningTask(made, kafka.worker(), offsets=offsets):
            eventually(lambda: min(writers.written().values()) >= before + 2 * LINES, what=f"{LINES} lines more of each log")
    writers.close()
    total = sum(writers.written().values())
    with RunningTask(made, kafka.worker(), offsets=offsets):
        eventually(lambda: kafka.end(topic) >= total, what="all lines in the topic")
    assert numbers_by_file(kafka, topic, total) == {path: list(range(count)) for path, count in writers.written().items()}


def test_rows_of_csv_and_what_is_no_row(kafka: Kafka, topic: str, name: str, unique: Names, tmp_path: Path) -> None:
    rows = "".join(f'{number},"name ""{number}""",x\n' for number in range(5000))
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(f"id,name,note\n{rows}".encode()))
    (tmp_path / "b.csv").write_text("id,name,note\n1,too,many,fields\n2,b,\n")
    dlq = unique("dlq")
    json_values = {"value_converter": "JsonConverter", "value_converter_schemas_enable": "false"}
    made = config(
        name, topic, str(tmp_path / "*.csv*"), "files", format="csv", csv_null="", complete_when="renamed", **json_values
    )
    tolerant = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dlq,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    with RunningTask({**made, **tolerant}, kafka.worker(), bounded=True) as task:
        assert not task.join().failed
        done = {partition["file"]: offset["done"] for partition, offset in task.stored_offsets()}
    values = sorted(
        (json.loads(each) for each in kafka.values(topic, 5001)), key=lambda each: (each["note"] or "", int(each["id"]))
    )
    assert values[0] == {"id": "2", "name": "b", "note": None}
    assert values[1:] == [{"id": str(number), "name": f'name "{number}"', "note": "x"} for number in range(5000)]
    (bad,) = kafka.read(dlq, 1)
    headers = {key: value.decode() for key, value in bad.headers()}
    assert bad.value() == b"1,too,many,fields\n"
    assert headers["__connect.errors.stage"] == "TASK_POLL"
    assert f"{tmp_path}/b.csv at byte 13: 4 fields instead of 3" in headers["__connect.errors.exception.message"]
    assert done == {str(tmp_path / "a.csv.gz"): True, str(tmp_path / "b.csv"): True}


def test_a_bad_row_fails_a_task_that_tolerates_none(kafka: Kafka, topic: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n2,3\n")
    made = config(name, topic, str(tmp_path), "files", format="csv", complete_when="renamed")
    with RunningTask(made, kafka.worker(), bounded=True) as task:
        result = task.join()
    assert result.failed
    assert "a.csv at byte 5: 2 fields instead of 1: '2,3'" in (result.trace or "")


def test_a_file_that_was_finished_before_is_moved_at_the_start_also_exactly_once(
    kafka_bootstrap: str, unique: Names, tmp_path: Path
) -> None:
    """As after a crash between Kafka's acknowledgement and the move: no record comes with which there would be a commit."""
    topic, folder, out = unique("topic"), tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    (folder / "a.txt").write_text("1\n2\n")
    Kafka(kafka_bootstrap).create(topic)
    worker = exactly_once_worker(kafka_bootstrap, unique)
    made = config(topic, topic, str(folder), "files", complete_when="renamed")

    with opened_stores(worker) as opened:
        store = opened(made)
        with RunningTask(made, worker, store=store):
            eventually(
                lambda: any(offset.get("done") for _partition, offset in store.all(topic)),
                what="the offset of a file that is done",
            )
        with RunningTask({**made, "after.read": "move", "after.read.folder": str(out)}, worker, store=store):
            eventually((out / "a.txt").exists, what="the move")
    assert list(folder.iterdir()) == []
