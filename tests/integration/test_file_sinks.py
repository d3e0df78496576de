"""File sinks with a real broker: exactly once across kills, offsets by REST, micro-batches."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from sluiceway.api import ColumnBatch, SinkRecord
from sluiceway.config.worker import WorkerConfig
from sluiceway.connectors.files.task import FileSinkTask
from sluiceway.herder import Herder
from sluiceway.rest.app import make_app
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.factory import open_stores
from sluiceway.storage.model import State
from support.engine import RunningTask
from support.eventually import eventually
from support.file_sink_process import POINTS, WORKER, FileSinkProcess
from support.file_sinks import all_rows, data_files, ids, row
from support.jdbc_sink import JSON, STATIC_MEMBER, fill
from support.kafka import Kafka

pytestmark = pytest.mark.kafka

FORMATS = ["ParquetSink", "OrcSink", "AvroFileSink", "CsvSink", "JsonFileSink"]
_POINTS = ["planned", "first published", "before the group commit"]
_SLICE = ["ParquetSink", "JsonFileSink"]  # for each change; `make test-frames` kills the others too
MORE_FORMATS = [*FORMATS[1:], "TextSink"]
COUNT = 4000


def config(folder: Path, topic: str, connector: str = "ParquetSink", **more: str) -> dict[str, str]:
    keys = {key.replace("_", "."): value for key, value in more.items()}
    return {
        "name": f"sink-{topic}",
        "connector.class": connector,
        "topics": topic,
        "path": str(folder),
        "flush.size": "300",
        **JSON,
        **STATIC_MEMBER,
        **keys,
    }


def produced(kafka: Kafka, topic: str, start: int, end: int, partitions: int = 1) -> None:
    """Fill a topic with rows whose ids are the numbers from ``start`` to ``end``."""

    def records() -> Iterator[SinkRecord]:
        for number in range(start, end):
            yield row(number, topic=topic, partition=number % partitions)

    fill(kafka.bootstrap, records())


def finished(kafka: Kafka, keys: dict[str, str]) -> None:
    with RunningTask(keys, {"bootstrap.servers": kafka.bootstrap, **WORKER}, bounded=True) as running:
        assert not running.join().failed, running.result


@pytest.mark.parametrize("connector", FORMATS)
def test_every_format_holds_the_topic(kafka: Kafka, topic: str, tmp_path: Path, connector: str) -> None:
    produced(kafka, topic, 0, 1000)
    finished(kafka, config(tmp_path, topic, connector))
    assert [(int(found["id"]), found["name"]) for found in all_rows(tmp_path)] == [(n, f"n{n}") for n in range(1000)]
    assert [path.name.split("+")[2:3] for path in data_files(tmp_path)] == [[f"{first:010d}"] for first in range(0, 1000, 300)]
    assert kafka.committed(f"connect-sink-{topic}") == {(topic, 0): 1000}
    produced(kafka, topic, 1000, 1010)
    finished(kafka, config(tmp_path, topic, connector))
    assert ids(tmp_path) == list(range(1010))
    assert kafka.committed(f"connect-sink-{topic}") == {(topic, 0): 1010}


@pytest.mark.parametrize("connector", ["ParquetSink", "JsonFileSink"])
def test_the_runtime_passes_columns(
    kafka: Kafka, topic: str, tmp_path: Path, connector: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    put_columns = FileSinkTask.put_columns

    def counted(self: FileSinkTask, batch: ColumnBatch) -> None:
        put_columns(self, batch)
        counts.append(len(batch))

    monkeypatch.setattr(FileSinkTask, "put_columns", counted)
    produced(kafka, topic, 0, 5000)
    finished(kafka, config(tmp_path, topic, connector))
    assert ids(tmp_path) == list(range(5000))
    assert sum(counts) > 2500


@pytest.mark.parametrize("point", [each if each in _POINTS else pytest.param(each, marks=pytest.mark.long) for each in POINTS])
@pytest.mark.parametrize(
    "connector", ["ParquetSink", *(pytest.param(each, marks=pytest.mark.long) for each in [*FORMATS[1:], "TextSink"])]
)
def test_a_kill_at_a_point_of_a_commit_loses_and_repeats_nothing(
    kafka: Kafka, topic: str, tmp_path: Path, connector: str, point: str, chance: random.Random
) -> None:
    keys = config(tmp_path, topic, connector, partitioner_class="FieldPartitioner", partition_field_name="kind")
    keys |= {"transforms": "k", "transforms.k.type": "InsertFieldValue", "transforms.k.partition.field": "kind"}
    produced(kafka, topic, 0, 1500)
    number = 1 if "group" in point else chance.randint(1, 3)  # one commit of the group may be enough for all records
    with FileSinkProcess(keys, kafka.bootstrap, point=point, number=number) as process:
        assert process.ended() == -9
    finished(kafka, keys)
    assert ids(tmp_path) == list(range(1500))
    assert kafka.committed(f"connect-sink-{topic}") == {(topic, 0): 1500}
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.parametrize("kills", [4, pytest.param(10, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "connector", [each if each in _SLICE else pytest.param(each, marks=pytest.mark.long) for each in FORMATS]
)
def test_kills_at_random_lose_and_repeat_nothing(
    kafka: Kafka, unique: Callable[[str], str], tmp_path: Path, connector: str, chance: random.Random, kills: int
) -> None:
    topic = kafka.create(unique("kills"), 2)
    keys = config(tmp_path, topic, connector, rotate_schedule_interval_ms="500")
    done = 0
    for _ in range(kills):
        produced(kafka, topic, done, done + COUNT // 10, 2)
        done += COUNT // 10
        files = len(data_files(tmp_path))
        with FileSinkProcess(keys, kafka.bootstrap) as process:
            if chance.random() < 0.7:
                eventually(lambda least=files: len(data_files(tmp_path)) > least, what="another file")
            process.ended(within=chance.random())
            process.kill()
    finished(kafka, keys)
    assert ids(tmp_path) == list(range(done))
    assert kafka.committed(f"connect-sink-{topic}") == {(topic, number): done // 2 for number in range(2)}


def test_files_are_committed_when_the_task_pauses_or_stops(kafka: Kafka, topic: str, tmp_path: Path) -> None:
    produced(kafka, topic, 0, 100)
    keys = config(tmp_path, topic)
    with RunningTask(keys, {"bootstrap.servers": kafka.bootstrap, **WORKER}) as running:
        running.wait_for(State.RUNNING)
        eventually(lambda: any("json" not in path.name for path in tmp_path.rglob("*.tmp")), what="an open file")
        running.commands.give(TaskCommand.PAUSE)
        running.wait_for(State.PAUSED)
        assert set(ids(tmp_path)) <= set(range(100))
        assert kafka.committed(f"connect-sink-{topic}") == {(topic, 0): len(ids(tmp_path))}
        running.commands.give(TaskCommand.RUN)
        eventually(lambda: running.reports.states[-1] is State.RUNNING, what="RUNNING")
    finished(kafka, keys)
    assert ids(tmp_path) == list(range(100))


@pytest.fixture
def rest_worker(kafka_bootstrap: str, unique: Callable[[str], str]) -> WorkerConfig:
    properties = {"bootstrap.servers": kafka_bootstrap, "group.id": unique("group")}
    for kind in ("config", "offset", "status"):
        properties |= {f"{kind}.storage.topic": unique(kind), f"{kind}.storage.replication.factor": "1"}
    return WorkerConfig.of(properties)


@pytest.mark.parametrize(
    "point", [pytest.param("", marks=pytest.mark.long), pytest.param("planned", marks=pytest.mark.long), "published"]
)
def test_offsets_set_by_rest_give_exactly_those_records_again(
    kafka: Kafka, topic: str, tmp_path: Path, rest_worker: WorkerConfig, point: str
) -> None:
    produced(kafka, topic, 0, 1000)
    keys = config(tmp_path, topic)
    if point:
        with FileSinkProcess(keys, kafka.bootstrap, point=point, number=3) as process:
            assert process.ended() == -9
    else:
        finished(kafka, keys)
    written = 900 if point else 1000
    with open_stores(rest_worker) as stores:
        herder = Herder(rest_worker, stores.config, stores.status, stores.offsets)
        http = TestClient(make_app(lambda: herder))
        made = http.post("/connectors", json={"name": keys["name"], "config": keys, "initial_state": "STOPPED"})
        assert made.status_code == 201, made.text
        edit = {"partition": {"kafka_topic": topic, "kafka_partition": 0}, "offset": {"kafka_offset": 750}}

        def patched() -> bool:  # the killed member leaves the group after its session
            answer = http.patch(f"/connectors/{keys['name']}/offsets", json={"offsets": [edit]})
            return answer.status_code == 200

        eventually(patched, what="the group without members")
        assert http.get(f"/connectors/{keys['name']}/offsets").json() == {"offsets": [edit]}
    finished(kafka, keys)
    assert ids(tmp_path) == sorted([*range(1000), *range(750, written)])
    assert kafka.committed(f"connect-sink-{topic}") == {(topic, 0): 1000}
