"""Requests to Airflow's API server that need a connector's rights, on a real broker: their answers are those of a REST API."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sluiceway.api import OffsetTarget, OffsetTargetKind
from sluiceway.config.signal_topic import Signal
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import BadRequestError, ConfigError, ConnectError
from sluiceway.herder import Herder
from sluiceway.herder.isolated import here
from sluiceway.herder.offset_targets import PartitionChoice
from sluiceway.preview import landlock
from sluiceway.preview.isolated import isolated
from sluiceway.storage.factory import Stores, open_stores
from sluiceway.storage.history import Origin
from sluiceway.storage.model import TargetState
from support.kafka import Kafka, worker_for

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(not landlock.available(), reason="this kernel has no Landlock"),
]

LATEST = OffsetTarget(OffsetTargetKind.LATEST)
LONG = "org.apache.kafka.connect.converters.LongConverter"


class Lab(NamedTuple):
    """A cluster, and its connectors as the API server and as a REST API of its own answer for them."""

    kafka: Kafka
    inside: Herder
    outside: Herder
    folder: Path

    def refer(self, **values: str) -> dict[str, str]:
        """Write values to a file that configs may refer to, and return a reference for each."""
        file = self.folder / "values.properties"
        with file.open("a") as written:
            written.writelines(f"{key}={value}\n" for key, value in values.items())
        return {key: f"${{file:{file}:{key}}}" for key in values}

    def add(self, name: str, **config: str) -> None:
        keys = {key.replace("_", "."): value for key, value in config.items()}
        self.inside.create(name, {"name": name, **keys}, TargetState.STOPPED)


@pytest.fixture
def lab(kafka: Kafka, kafka_bootstrap: str, unique: Callable[[str], str], opened: Callable[[Any], Any], tmp_path: Path) -> Lab:
    (tmp_path / "allowed").mkdir()
    providers = {
        "config.providers": "file,airflow",
        "config.providers.airflow.class": "AirflowConfigProvider",
        "config.providers.file.class": "FileConfigProvider",
        "config.providers.file.param.allowed.paths": str(tmp_path / "allowed"),
    }
    worker: WorkerConfig = worker_for(kafka_bootstrap, unique, **providers)
    stores: Stores = opened(open_stores(worker))

    def herder(call: Any) -> Herder:
        found = Herder(worker, stores.config, stores.status, stores.offsets, isolated=call)
        return found.acting_for(Origin(user="ada"))

    return Lab(kafka, herder(isolated), herder(here), tmp_path / "allowed")


def test_a_signal_is_sent_with_the_connectors_values(lab: Lab, name: str, topic: str) -> None:
    values = lab.refer(brokers=lab.kafka.bootstrap, prefix="shop")
    lab.add(
        name,
        connector_class="io.debezium.connector.postgresql.PostgresConnector",
        topic_prefix=values["prefix"],
        database_hostname="h",
        database_user="u",
        database_dbname="d",
        signal_enabled_channels="source,kafka",
        signal_kafka_topic=topic,
        signal_kafka_bootstrap_servers=values["brokers"],
    )
    signal = Signal("s1", "execute-snapshot", {"data-collections": ["public.t"]})
    assert lab.inside.signals(name).send(signal) == topic
    [message] = lab.kafka.read(topic, 1)
    assert (message.key(), json.loads(message.value())) == (b"shop", signal._asdict())


def test_dead_letter_queue_records_are_decoded_by_the_connectors_converter(lab: Lab, name: str, dlq: str) -> None:
    lab.kafka.produce(lab.kafka.create(dlq), struct.pack(">q", 42), b"\xff", "text")
    lab.add(
        name,
        connector_class="FileStreamSink",
        topics="t",
        file="/f",
        value_converter=lab.refer(converter=LONG)["converter"],
        errors_deadletterqueue_topic_name=dlq,
    )
    shown = [each.value and each.value.text for each in lab.inside.dead_letters(name).newest(3).records]
    assert sorted(map(str, shown)) == ["/w==", "42", "text"]
    assert lab.inside.dead_letters(name).newest(3) == lab.outside.dead_letters(name).newest(3)


@pytest.mark.long
def test_the_offsets_of_a_sink_with_own_rights(lab: Lab, name: str, topic: str) -> None:
    lab.kafka.produce(topic, *"abcde")
    values = lab.refer(brokers=lab.kafka.bootstrap, group=f"group-{name}")
    lab.add(
        name,
        connector_class="FileStreamSink",
        topics=topic,
        file="/f",
        consumer_override_group_id=values["group"],
        admin_override_bootstrap_servers=values["brokers"],
    )
    partition = {"kafka_topic": topic, "kafka_partition": 0}
    message = lab.inside.alter_offsets(name, [(partition, {"kafka_offset": 3})])
    assert message == "The offsets for this connector have been altered successfully"
    assert lab.kafka.committed(f"group-{name}") == {(topic, 0): 3}
    assert lab.inside.offsets(name) == lab.outside.offsets(name) == [(partition, {"kafka_offset": 3})]
    [found] = lab.inside.find_offsets(name, LATEST, PartitionChoice())
    assert found == (partition, {"kafka_offset": 3}, {"kafka_offset": 5})
    with pytest.raises(BadRequestError):
        lab.inside.alter_offsets(name, [({"kafka_topic": topic}, {"kafka_offset": 3})])
    assert "reset successfully" in lab.inside.reset_offsets(name)
    assert lab.outside.offsets(name) == []
    changed = [(change.kind.value, change.partitions) for change in lab.inside.history(name)[-2:]]
    assert changed == [("offsets", 1), ("offsets", 1)]


@pytest.mark.long
def test_the_offsets_of_a_source_with_a_topic_of_its_own(lab: Lab, name: str, unique: Callable[[str], str]) -> None:
    file = lab.folder / "in.txt"
    file.write_text("one\ntwo\n")
    values = lab.refer(offsets=unique("offsets"), file=str(file))
    lab.add(name, connector_class="FileStreamSource", topic="t", file=values["file"], offsets_storage_topic=values["offsets"])
    partition = {"filename": str(file)}
    assert "altered successfully" in lab.inside.alter_offsets(name, [(partition, {"position": 4})])
    assert lab.inside.offsets(name) == lab.outside.offsets(name) == [(partition, {"position": 4})]
    [found] = lab.inside.find_offsets(name, LATEST, PartitionChoice())
    assert found.offset == lab.outside.find_offsets(name, LATEST, PartitionChoice())[0].offset
    with pytest.raises(ConnectError, match="position"):
        lab.inside.alter_offsets(name, [(partition, {"position": "x"})])
    lab.inside.reset_offsets(name)
    assert lab.inside.offsets(name) == lab.outside.offsets(name) == []


@pytest.mark.long
def test_what_only_a_driver_resolves_is_an_error_that_says_so(lab: Lab, name: str) -> None:
    lab.add(
        name, connector_class="FileStreamSink", topics="t", file="/f", admin_override_bootstrap_servers="${airflow:kafka:host}"
    )
    with pytest.raises(ConfigError, match="to the connector's driver only"):
        lab.inside.offsets(name)
