"""A client's threads and connections end when its last user is done with it, also after requests that were refused."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator

import pytest

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import InternalTopicError, KafkaClientError
from sluiceway.kafka import admin
from sluiceway.kafka.clients import AdminClient, admin_client
from sluiceway.kafka.cluster import Cluster
from sluiceway.kafka.group_offsets import ConsumerGroups
from sluiceway.kafka.kafka_based_log import KafkaBasedLog, LogRecord
from sluiceway.kafka.worker_group import connect_workers
from support.eventually import eventually

pytestmark = pytest.mark.kafka

Request = Callable[[AdminClient, str], object]


@pytest.fixture(autouse=True)
def no_garbage_collection() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def refused(request: Callable[[], object]) -> None:
    with pytest.raises(KafkaClientError):
        request()


def end_offsets(client: AdminClient, topic: str) -> None:
    with pytest.raises(InternalTopicError):
        admin.end_offsets(client, [TopicPartition(topic, 7)])


def offsets_of_a_cluster(client: AdminClient, topic: str) -> None:
    groups = object.__new__(ConsumerGroups)
    groups._admin = client
    groups.delete(f"no-{topic}")


def settings_in_a_cluster(client: AdminClient, topic: str) -> None:
    cluster = object.__new__(Cluster)
    cluster._admin, cluster._timeout, cluster._where = client, 30.0, ""
    assert cluster.settings([f"no-{topic}"]) == {}
    refused(lambda: cluster.extend(topic, 1))


REQUESTS: dict[str, Request] = {
    "create a topic that exists": lambda client, topic: admin.create_topic(client, topic),
    "describe a missing topic": lambda client, topic: admin.partition_count(client, f"no-{topic}"),
    "read the settings of a missing topic": lambda client, topic: refused(lambda: admin.topic_settings(client, f"no-{topic}")),
    "read the end of a missing partition": end_offsets,
    "delete a missing group": offsets_of_a_cluster,
    "read missing settings, shrink a topic": settings_in_a_cluster,
    "look for Kafka Connect's workers": lambda client, topic: connect_workers(client, f"no-{topic}"),
}


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_a_client_ends_after_a_request_that_was_refused(
    worker: WorkerConfig, unique: Callable[[str], str], request_: Request
) -> None:
    topic = unique("lifetime")
    client = admin_client(worker)
    admin.create_topic(client, topic, 1, 1)
    request_(client, topic)
    alive = weakref.ref(client)
    del client
    eventually(lambda: alive() is None)  # librdkafka's thread may still have it in its hand


def test_a_log_and_its_client_end_with_the_store_that_read_it(worker: WorkerConfig, unique: Callable[[str], str]) -> None:
    topic = unique("lifetime")

    class Store:
        def __init__(self) -> None:
            self.admin = admin_client(worker)
            admin.create_topic(self.admin, topic, 1, 1)
            self.log = KafkaBasedLog(worker, topic, 1, topic, self.on_record, admin=self.admin)

        def on_record(self, record: LogRecord) -> None:
            pass

    store = Store()
    store.log.start()
    store.log.stop()
    alive = weakref.ref(store.admin)
    del store
    eventually(lambda: alive() is None)
