"""The search source, exactly once, while its process and the node are killed and several writers add and change documents.

The task runs in a process of its own, as on an executor, so that it can be killed anywhere: between two pages, between a
page and Kafka's commit. Writers are faster than refreshes, and their writes become visible out of order.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from urllib.error import URLError

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from sluiceway.connectors.search.source import OpenSearchSourceConnector
from support.eventually import LIMIT, eventually
from support.exactly_once import exactly_once_worker
from support.faults.rows import NewRow
from support.search import SearchServer
from support.source_process import SourceProcess, task_config

pytestmark = pytest.mark.kafka

KILLS = int(os.environ.get("KILLS", "20"))
WRITERS = 3
LONGEST = 1.0  # seconds from the first new record to the kill
MODES = {
    "writes": {"mode": "incrementing"},
    "timestamps": {"mode": "timestamp", "timestamp.field": "t", "timestamp.delay.ms": "20000"},
}


@pytest.fixture
def server() -> Iterator[SearchServer]:
    with SearchServer() as started:
        yield started


class Writers:
    """Threads that write documents, each with a number that no other has. ``acknowledged`` has those that the server took."""

    def __init__(self, server: SearchServer, index: str) -> None:
        self._server, self._index = server, index
        self._stopping = threading.Event()
        self.acknowledged: list[set[str]] = [set() for _ in range(WRITERS)]
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(WRITERS)]

    def _run(self, writer: int) -> None:
        number = 0
        while not self._stopping.wait(0.02):
            ids = [f"{writer}-{number + each}" for each in range(10)]
            number += len(ids)
            moment = int(time.time() * 1000) // 100 * 100  # many documents of one time
            lines = [json.dumps(part) for each in ids for part in ({"create": {"_id": each}}, {"t": moment, "id": each})]
            try:
                answer = self._server.send(f"/{self._index}/_bulk", "\n".join([*lines, ""]).encode())
            except (URLError, OSError, ValueError):
                continue  # the node was killed; whether it has written these is not known
            self.acknowledged[writer] |= {
                each["create"]["_id"] for each in answer.get("items", ()) if each["create"]["status"] == 201
            }

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop writing, and wait until all threads have."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(LIMIT)


class Documents:
    """The documents in a topic as they come: how many records each has. To be closed."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "group.id": "unused", "isolation.level": "read_committed"}
        self._consumer = Consumer({**settings, "enable.auto.commit": "false"})
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        self.counts: Counter[str] = Counter()
        self.close = self._consumer.close

    def read(self) -> int:
        """Read more of the topic; return the number of records so far."""
        messages = self._consumer.consume(100_000, 0.5)
        self.counts.update(json.loads(message.value() or b"")["id"] for message in messages if message.error() is None)
        return self.counts.total()

    def have(self, ids: set[str]) -> bool:
        """Read more; tell whether all of these are there."""
        self.read()
        return ids <= self.counts.keys()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mode", MODES)
def test_killed_many_times_each_document_is_in_the_topic_once(
    kafka_bootstrap: str, server: SearchServer, unique: Callable[[str], str], row: NewRow, chance: random.Random, mode: str
) -> None:
    made = row(
        f"2: search source by {mode}, {KILLS} kills -9 of the task, every fourth of OpenSearch too", "0 lost, 0 duplicated"
    )
    index = unique("source-fault").lower()
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    admin.create_topics([NewTopic(index, 1, 1)])[index].result(LIMIT)
    settings = {"index": {"number_of_shards": 3, "number_of_replicas": 0}}
    server.call("PUT", f"/{index}", {"settings": settings, "mappings": {"properties": {"t": {"type": "date"}}}})
    worker = {**exactly_once_worker(kafka_bootstrap, unique), "offset.flush.interval.ms": "200"}
    config = task_config(
        OpenSearchSourceConnector,
        {
            "name": index,
            "connector.class": "OpenSearchSource",
            "connection.url": server.url,
            "index": index,
            "poll.interval.ms": "50",
            "batch.max.rows": "50",  # many pages, so that kills fall everywhere
            "value.converter": "JsonConverter",
            "value.converter.schemas.enable": "false",
            **MODES[mode],
        },
    )
    documents = Documents(kafka_bootstrap, index)
    with closing(documents), Writers(server, index) as writers:
        for number in range(KILLS):
            started, before = time.monotonic(), documents.counts.total()
            with SourceProcess(config, worker) as task:
                eventually(lambda before=before: documents.read() > before, what="new records")
                made.recovered(time.monotonic() - started)
                time.sleep(chance.uniform(0, LONGEST))  # where to kill
                if number % 4 == 0:
                    server.kill()
                    server.start()
                    assert task.alive
        writers.stop()
        taken = set().union(*writers.acknowledged)
        with SourceProcess(config, worker) as task:
            eventually(lambda: documents.have(taken), within=4 * LIMIT, what="the last document")
        eventually(lambda: documents.counts.total() == documents.read(), what="the end of the topic")
    found = documents.counts
    made.seen = f"{found.total()} records of {len(taken)} acknowledged documents"
    made.lost, made.duplicated = len(taken - set(found)), found.total() - len(found)
    assert set(found) == set(server.documents(index))
    assert found.total() == len(found)
