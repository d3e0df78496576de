"""``sluiceway topics`` and ``read`` on a real broker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from sluiceway.cli.main import main
from sluiceway.config.worker import WorkerConfig
from sluiceway.storage.config_backing_store import KafkaConfigBackingStore
from sluiceway.storage.model import State, Status
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore
from support.kafka import Kafka

pytestmark = pytest.mark.kafka

StoreT = TypeVar("StoreT", KafkaConfigBackingStore, KafkaStatusBackingStore)


@contextmanager
def opened(store: StoreT) -> Iterator[StoreT]:
    store.start()
    try:
        yield store
    finally:
        store.stop()


def test_topics_are_listed_and_their_records_read(
    kafka: Kafka, unique: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configs, topic = unique("configs"), kafka.create(unique("looked-at"))
    properties = {**kafka.worker(), "group.id": unique("cluster"), "config.storage.topic": configs}
    properties |= {"config.storage.replication.factor": "1", "status.storage.replication.factor": "1"}
    properties["status.storage.topic"] = statuses_topic = unique("statuses")
    file = tmp_path / "worker.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))

    def run(*arguments: str) -> str:
        code = main([*arguments, "--worker", str(file)])
        printed = capsys.readouterr()
        return printed.out if code == 0 else printed.err

    kafka.produce(topic, '{"password": "p"}', "2", "three", key=b"k")
    assert {"topic": topic, "partitions": 1, "records": 3} in json.loads(run("topics", "-o", "json"))
    assert configs not in run("topics", "-a"), "looking creates no topic"
    assert [each["value"] for each in json.loads(run("read", topic, "-o", "json"))] == [{"password": "[hidden]"}, 2, "three"]
    assert configs not in run("topics", "-a"), "looking creates no topic"
    for arguments, values in (
        (("--from", "latest", "-n", "1"), ["three"]),
        (("--from", "1", "-n", "1"), [2]),
        (("--from", "2100-01-01T00:00:00"), []),
        (("--from", "1970-01-02T00:00:00", "-n", "1", "--show-secrets"), [{"password": "p"}]),
    ):
        assert [each["value"] for each in json.loads(run("read", topic, "-o", "json", *arguments))] == values
    assert "3 records, decoded by what their bytes look like" in run("read", topic)
    assert f"Did you mean {topic}?" in run("read", topic.upper() + "x")

    worker, text = WorkerConfig.of(properties), "org.apache.kafka.connect.storage.StringConverter"
    with opened(KafkaConfigBackingStore(worker)) as store:
        store.put_connector("s", {"name": "s", "connector.class": "FileStreamSink", "topics": topic, "value.converter": text})
    assert "decoded by the converters of connector s" in (printed := run("read", topic))
    assert '"2"' in printed, "a text, not a number"
    assert "Connector x not found" in run("read", topic, "--connector", "x")

    written = kafka.create(unique("written"))
    kafka.produce(written, "2")
    assert "decoded by what their bytes look like" in run("read", written)
    assert statuses_topic not in run("topics", "-a"), "looking creates no topic"
    config = {"name": "w", "connector.class": "FileStreamSource", "value.converter": text}
    with opened(KafkaConfigBackingStore(worker)) as configured, opened(KafkaStatusBackingStore(worker)) as statuses:
        configured.put_connector("w", config)
        statuses.put_connector("w", Status(State.RUNNING, "here:1", 1))
        statuses.put_topic("w", 0, written)
    assert "decoded by the converters of connector w" in (printed := run("read", written))
    assert '"2"' in printed, "a text, not a number"
