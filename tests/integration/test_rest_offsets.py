"""Offsets of sources and sinks by REST, on a real Kafka's offsets topic and consumer groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from fastapi.testclient import TestClient

from sluiceway.api import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import Herder
from sluiceway.kafka.admin import create_topic
from sluiceway.kafka.clients import admin_client
from sluiceway.kafka.group_offsets import ConsumerGroups
from sluiceway.rest.app import make_app
from sluiceway.storage.connector_offset_backing_store import ConnectorOffsetBackingStore
from sluiceway.storage.factory import Stores, open_source_offsets, open_stores
from sluiceway.storage.offset_backing_store import KafkaOffsetBackingStore

pytestmark = pytest.mark.kafka

SOURCE = {"connector.class": "FileStreamSource", "file": "/f", "topic": "t"}
ALTERED = "The offsets for this connector have been altered successfully"


@pytest.fixture
def worker(kafka_bootstrap: str, unique: Callable[[str], str]) -> WorkerConfig:
    properties = {"bootstrap.servers": kafka_bootstrap, "group.id": unique("group"), "offset.storage.partitions": "2"}
    for kind in ("config", "offset", "status"):
        properties |= {f"{kind}.storage.topic": unique(kind), f"{kind}.storage.replication.factor": "1"}
    return WorkerConfig.of(properties)


@pytest.fixture
def stores(worker: WorkerConfig) -> Iterator[Stores]:
    with open_stores(worker) as stores:
        yield stores


@pytest.fixture
def http(worker: WorkerConfig, stores: Stores) -> TestClient:
    herder = Herder(worker, stores.config, stores.status, stores.offsets)
    return TestClient(make_app(lambda: herder))


@pytest.fixture
def topic(worker: WorkerConfig, unique: Callable[[str], str]) -> str:
    name = unique("topic")
    create_topic(admin_client(worker), name, 3, 1)
    return name


@contextmanager
def started(
    store: KafkaOffsetBackingStore | ConnectorOffsetBackingStore,
) -> Iterator[KafkaOffsetBackingStore | ConnectorOffsetBackingStore]:
    store.start()
    try:
        yield store
    finally:
        store.stop()


def edit(topic: str, partition: int, offset: Any) -> dict[str, Any]:
    where = {"kafka_topic": topic, "kafka_partition": partition}
    return {"partition": where, "offset": None if offset is None else {"kafka_offset": offset}}


def patch(http: TestClient, name: str, *edits: Any) -> tuple[int, str]:
    answer = http.patch(f"/connectors/{name}/offsets", json={"offsets": list(edits)})
    return answer.status_code, answer.json()["message"]


def offsets(http: TestClient, name: str) -> Any:
    return http.get(f"/connectors/{name}/offsets").json()["offsets"]


def make_sink(http: TestClient, topic: str, **config: str) -> None:
    sink = {"connector.class": "FileStreamSink", "file": "/f", "topics": topic} | config
    answer = http.post("/connectors", json={"name": "k", "config": sink, "initial_state": "STOPPED"})
    assert answer.status_code == 201, answer.text


def test_a_sources_offsets_are_the_records_of_its_topic(http: TestClient, stores: Stores) -> None:
    http.post("/connectors", json={"name": "s", "config": SOURCE, "initial_state": "STOPPED"})
    partition = {"filename": "/f"}
    assert patch(http, "s", {"partition": partition, "offset": {"position": 3}}) == (200, ALTERED)
    assert stores.offsets.get("s", [partition]) == [{"position": 3}]
    assert offsets(http, "s") == [{"partition": partition, "offset": {"position": 3}}]
    assert http.delete("/connectors/s/offsets").status_code == 200
    assert stores.offsets.all("s") == []


def test_a_sources_own_offsets_topic_holds_its_offsets(
    http: TestClient, worker: WorkerConfig, stores: Stores, unique: Callable[[str], str]
) -> None:
    config = SOURCE | {"offsets.storage.topic": unique("own")}
    http.post("/connectors", json={"name": "s", "config": config, "initial_state": "STOPPED"})
    partition = {"filename": "/f"}
    assert patch(http, "s", {"partition": partition, "offset": {"position": 3}}) == (200, ALTERED)
    with started(open_source_offsets(worker, config)) as own:
        assert own.get("s", [partition]) == [{"position": 3}]
        own.put("s", [(partition, {"position": 7})])
    stores.offsets.put("s", [(partition, {"position": 5})])  # an outdated backup, which is ignored
    assert offsets(http, "s") == [{"partition": partition, "offset": {"position": 7}}]
    assert http.delete("/connectors/s/offsets").status_code == 200
    assert offsets(http, "s") == []
    assert stores.offsets.all("s") == []


def test_offsets_can_be_set_right_after_a_stop_by_another_server(worker: WorkerConfig, http: TestClient) -> None:
    http.post("/connectors", json={"name": "s", "config": SOURCE})
    with open_stores(worker) as others:
        other = TestClient(make_app(lambda: Herder(worker, others.config, others.status, others.offsets)))
        assert http.put("/connectors/s/stop").status_code == 204
        assert patch(other, "s", {"partition": {"filename": "/f"}, "offset": {"position": 1}}) == (200, ALTERED)


def test_a_sinks_offsets_are_altered_and_deleted_one_by_one_and_all_at_once(
    http: TestClient, worker: WorkerConfig, topic: str
) -> None:
    make_sink(http, topic)
    groups = ConsumerGroups(worker)
    assert offsets(http, "k") == []
    assert http.delete("/connectors/k/offsets").status_code == 200  # the group does not exist
    assert patch(http, "k", edit(topic, 0, 5), edit(topic, 1, 6), edit(topic, 2, 7)) == (200, ALTERED)
    assert groups.offsets("connect-k") == {TopicPartition(topic, n): 5 + n for n in range(3)}
    assert patch(http, "k", edit(topic, 1, None), edit(topic, 2, 70)) == (200, ALTERED)
    assert offsets(http, "k") == [edit(topic, 0, 5), edit(topic, 2, 70)]
    assert patch(http, "k", edit(topic, 1, None)) == (200, ALTERED)  # deleted already
    assert patch(http, "k", edit("not-there-any-more", 0, None)) == (200, ALTERED)
    assert offsets(http, "k") == [edit(topic, 0, 5), edit(topic, 2, 70)]
    assert http.delete("/connectors/k/offsets").status_code == 200
    assert groups.offsets("connect-k") == {}


def test_group_id_and_admin_overrides_of_the_connector_are_used(http: TestClient, worker: WorkerConfig, topic: str) -> None:
    make_sink(http, topic, **{"consumer.override.group.id": "own", "admin.override.client.id": "mine"})
    assert patch(http, "k", edit(topic, 0, 5)) == (200, ALTERED)
    groups = ConsumerGroups(worker)
    assert (groups.offsets("own"), groups.offsets("connect-k")) == ({TopicPartition(topic, 0): 5}, {})


@pytest.mark.parametrize("unknown", [("nosuch-topic", 0), (None, 3), (None, 99)])
def test_an_unknown_partition_is_refused_and_no_offset_is_altered(http: TestClient, topic: str, unknown: tuple[Any, int]) -> None:
    make_sink(http, topic)
    refused = (500, "Failed to alter consumer group offsets for connector k")
    assert patch(http, "k", edit(topic, 0, 1), edit(unknown[0] or topic, unknown[1], 1)) == refused
    assert offsets(http, "k") == []


def test_offsets_are_not_altered_while_a_zombie_task_consumes(http: TestClient, worker: WorkerConfig, topic: str) -> None:
    make_sink(http, topic)
    patch(http, "k", edit(topic, 0, 0), edit(topic, 1, 0), edit(topic, 2, 0))
    producer = Producer({"bootstrap.servers": worker.bootstrap_servers})
    producer.produce(topic, b"x")
    producer.flush()
    zombie = Consumer({"bootstrap.servers": worker.bootstrap_servers, "group.id": "connect-k", "enable.auto.commit": "false"})
    try:
        zombie.subscribe([topic])
        assert zombie.poll(30) is not None
        before = offsets(http, "k")
        for change in ([edit(topic, 0, 9)], [edit(topic, 0, None)]):
            status, message = patch(http, "k", *change)
            assert status == 500
            assert message.startswith("Failed to alter consumer group offsets for connector k either because its tasks haven't")
        answer = http.delete("/connectors/k/offsets")
        assert answer.status_code == 500
        assert answer.json()["message"].startswith("Failed to reset consumer group offsets for connector k either because")
        assert offsets(http, "k") == before
    finally:
        zombie.close()
    assert patch(http, "k", edit(topic, 0, 9)) == (200, ALTERED)


def found(http: TestClient, query: str) -> dict[int, tuple[Any, Any]]:
    answer = http.get(f"/connectors/k/offsets/find?{query}")
    assert answer.status_code == 200, answer.text
    return {
        each["partition"]["kafka_partition"]: (each["before"] and each["before"]["kafka_offset"], each["offset"]["kafka_offset"])
        for each in answer.json()["offsets"]
    }


def test_a_sink_goes_to_a_time_the_beginning_the_end_or_a_number_of_records_on_or_back(
    http: TestClient, worker: WorkerConfig, topic: str
) -> None:
    make_sink(http, topic)
    producer = Producer({"bootstrap.servers": worker.bootstrap_servers})
    for partition, count in ((0, 5), (1, 3)):
        for number in range(count):
            producer.produce(topic, b"x", partition=partition, timestamp=1_700_000_000_000 + 1000 * number)
    producer.flush()
    patch(http, "k", edit(topic, 0, 2), edit(topic, 1, 3), edit(topic, 2, 0))
    assert found(http, "to=earliest") == {0: (2, 0), 1: (3, 0), 2: (0, 0)}
    assert found(http, "to=latest&partition=0") == {0: (2, 5)}
    assert found(http, "shiftBy=-2") == {0: (2, 0), 1: (3, 1), 2: (0, 0)}
    assert found(http, "to=2023-11-14T22:13:23.000Z") == {0: (2, 3), 1: (3, 3), 2: (0, 0)}  # without a later record: the end
    assert found(http, f"to=2023-11-14T22:13:20.500&topic={topic}") == {0: (2, 1), 1: (3, 1), 2: (0, 0)}
    edits = http.get("/connectors/k/offsets/find?shiftBy=1&partition=0&partition=1").json()["offsets"]
    assert patch(http, "k", *({key: each[key] for key in ("partition", "offset")} for each in edits)) == (200, ALTERED)
    mine = [each for each in offsets(http, "k") if each["partition"]["kafka_topic"] == topic]  # the group is every test's
    assert mine == [edit(topic, 0, 3), edit(topic, 1, 3), edit(topic, 2, 0)]
    [change] = http.get("/connectors/k/history").json()["history"][-1]["offsets"]
    assert (change["before"], change["after"]) == ({"kafka_offset": 2}, {"kafka_offset": 3})
