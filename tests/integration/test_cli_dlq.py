"""The commands of ``sluiceway dlq`` on a real broker: list, show and replay dead letter queue records."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from sluiceway import exit_codes
from sluiceway.cli.main import main
from sluiceway.config.worker import WorkerConfig
from sluiceway.storage.config_backing_store import KafkaConfigBackingStore
from support.bad_records import JSON, PREFIX, headers, sink, tolerant
from support.engine import RunningTask
from support.engine_connectors import script
from support.kafka import Kafka

pytestmark = pytest.mark.kafka
Names = Callable[[str], str]


class Shell:
    """Runs ``sluiceway dlq`` commands against a cluster of its own."""

    def __init__(self, kafka: Kafka, folder: Path, unique: Names, capsys: pytest.CaptureFixture[str]) -> None:
        self.properties = {
            **kafka.worker(),
            "group.id": unique("cluster"),
            "config.storage.topic": unique("configs"),
            "config.storage.replication.factor": "1",
        }
        self.file = folder / "worker.properties"
        self.file.write_text("".join(f"{key}={value}\n" for key, value in self.properties.items()))
        self._capsys = capsys

    def put(self, config: Mapping[str, str]) -> None:
        store = KafkaConfigBackingStore(WorkerConfig.of(self.properties))
        store.start()
        store.put_connector(config["name"], config)
        store.stop()

    def run(self, *arguments: str) -> str:
        code = main(["dlq", arguments[0], "--worker", str(self.file), *arguments[1:]])
        printed = self._capsys.readouterr()
        assert code == 0, printed.err
        return printed.out

    def fail(self, *arguments: str, code: int = exit_codes.FAILED) -> str:
        assert main(["dlq", arguments[0], "--worker", str(self.file), *arguments[1:]]) == code
        return self._capsys.readouterr().err


@pytest.fixture
def shell(kafka: Kafka, tmp_path: Path, unique: Names, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(kafka, tmp_path, unique, capsys)


def test_records_are_listed_shown_and_replayed_once(kafka: Kafka, topic: str, name: str, dlq: str, shell: Shell) -> None:
    config = sink(name, topic, JSON, tolerant(dlq))
    shell.put(config)
    assert shell.run("list").split()[-4:] == [name, dlq, "0", "0"]
    kafka.produce(topic, "1", "bad", "worse", key=b"k", headers=[("own", b"1")])
    script(name)
    with RunningTask(config, kafka.worker(), bounded=True) as task:
        task.join()
    assert json.loads(shell.run("list", "-o", "json")) == [{"connector": name, "topic": dlq, "letters": 2, "new": 2}]
    shown = json.loads(shell.run("show", name, "-o", "json"))
    assert [(each["offset"], each["key"], each["value"]) for each in shown] == [(0, "k", "bad"), (1, "k", "worse")]
    assert {"key": f"{PREFIX}stage", "value": "VALUE_CONVERTER"} in shown[0]["headers"]
    text = shell.run("show", name, "-n", "1")
    assert f"from topic {topic}, partition 0, offset 1" in text
    assert "VALUE_CONVERTER  sluiceway.errors." in text
    assert "worse" not in text

    assert shell.run("replay", name, "--dry-run") == f"2 records would be sent to {topic}\n"
    assert kafka.end(topic) == 3
    assert shell.run("replay", name, "-n", "1") == f"1 records sent to {topic}\n"
    assert shell.run("replay", name) == f"1 records sent to {topic}\n"
    assert shell.run("replay", name) == f"No records to replay in {dlq}\n"
    assert json.loads(shell.run("list", "-o", "json"))[0]["new"] == 0
    again = kafka.read(topic, 5)[3:]
    assert [(message.key(), message.value()) for message in again] == [(b"k", b"bad"), (b"k", b"worse")]
    assert again[0].headers() == [("own", b"1"), ("__sluiceway.replayed", b"1")]

    with RunningTask(config, kafka.worker(), bounded=True) as task:
        task.join()
    assert shell.run("replay", name, "--keep-headers", "-n", "1") == f"1 records sent to {topic}\n"
    last = kafka.read(topic, 6)[5]
    assert headers(last)["__sluiceway.replayed"] == "2"
    assert headers(last)[f"{PREFIX}stage"] == "VALUE_CONVERTER"


def test_records_of_other_connectors_in_a_shared_topic_are_skipped(kafka: Kafka, unique: Names, dlq: str, shell: Shell) -> None:
    configs = []
    for _ in range(2):
        name, topic = unique("connector"), kafka.create(unique("errors"))
        kafka.produce(topic, f"bad-{topic}")
        configs.append(sink(name, topic, JSON, tolerant(dlq)))
        shell.put(configs[-1])
        script(name)
        with RunningTask(configs[-1], kafka.worker(), bounded=True) as task:
            task.join()
    second = configs[1]
    out = json.loads(shell.run("replay", second["name"], "-o", "json"))
    assert out == {"dryRun": False, "sent": {second["topics"]: 1}, "left": {"of other connectors": 1}}
    assert kafka.values(second["topics"], 2) == [f"bad-{second['topics']}"] * 2
    assert kafka.end(configs[0]["topics"]) == 1


def test_records_without_their_topic_need_a_topic_option(
    kafka: Kafka, topic: str, name: str, dlq: str, unique: Names, shell: Shell
) -> None:
    config = sink(name, topic, JSON, tolerant(dlq), {"errors.deadletterqueue.context.headers.enable": "false"})
    shell.put(config)
    kafka.produce(topic, "bad")
    script(name)
    with RunningTask(config, kafka.worker(), bounded=True) as task:
        task.join()
    assert "Name the topic to send it to with --topic" in shell.fail("replay", name)
    other = kafka.create(unique("other"))
    assert shell.run("replay", name, "--topic", other) == f"1 records sent to {other}\n"
    assert kafka.values(other, 1) == ["bad"]


def test_a_connector_without_a_dead_letter_queue_is_an_error(kafka: Kafka, topic: str, name: str, shell: Shell) -> None:
    assert f"Connector {name} not found" in shell.fail("show", name, code=exit_codes.NOT_FOUND)
    shell.put(sink(name, topic))
    assert "does not set errors.deadletterqueue.topic.name" in shell.fail("show", name)


def test_a_queue_in_place_of_its_connector_is_answered_with_the_connector(topic: str, name: str, dlq: str, shell: Shell) -> None:
    shell.put(sink(name, topic, JSON, tolerant(dlq)))
    assert f"{dlq} is the dead letter queue of {name}." in shell.fail("show", dlq, code=exit_codes.NOT_FOUND)
