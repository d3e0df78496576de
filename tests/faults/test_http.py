"""HTTP as source, as sender of webhooks, and as target, while the task's process is killed, and the server is away at times.

The task runs in a process of its own, as on an executor, so that it can be killed anywhere: between two pages, between Kafka's
acknowledgement and the answer to a webhook, or before the answer to a request.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from sluiceway.connectors.http import HttpSourceConnector, WebhookSourceConnector
from sluiceway.stack.ports import free_port
from support.eventually import LIMIT, eventually
from support.exactly_once import exactly_once_worker
from support.faults.rows import NewRow
from support.http_server import HOST, Collector, HttpServer
from support.jdbc_sink import STATIC_MEMBER, TaskProcess, kill_at_random
from support.kafka import Kafka
from support.listening_sources import JSON, post
from support.queues.publishers import GrowingList
from support.queues.sources import HttpSource, numbers_in
from support.source_process import SourceProcess, task_config

pytestmark = pytest.mark.kafka

KILLS = int(os.environ.get("KILLS", "20"))
RECORDS = 500  # for each kill of the sink
LONGEST = 1.0  # seconds from the first new record to the kill
PAGE = 20


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as started:
        yield started


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("direction", ["ASC", "IMPLICIT"])
def test_killed_many_times_each_item_is_in_the_topic(
    kafka_bootstrap: str, server: HttpServer, unique: Callable[[str], str], row: NewRow, chance: random.Random, direction: str
) -> None:
    kafka, once = Kafka(kafka_bootstrap), direction == "ASC"
    topic = kafka.create(unique("http-fault"), retention_ms="-1")  # items are of last January
    promised = "0 lost, 0 duplicated" if once else "0 lost, at most one run duplicated for each kill"
    made = row(
        f"2: HttpSource of a list ({direction}), {KILLS} kills -9 of the task, every fourth time the server is away", promised
    )
    worker = {**exactly_once_worker(kafka_bootstrap, unique), "offset.flush.interval.ms": "200"}
    if not once:
        worker["exactly.once.source.support"] = "disabled"
    config = task_config(
        HttpSourceConnector,
        {
            "name": topic,
            "connector.class": "HttpSource",
            "http.request.url": f"{server.url}/cursor",
            "http.request.params": "since=${offset.timestamp}&cursor=${page.cursor}",
            "http.paging": "cursor",
            "http.paging.pointer": "/next",
            "http.response.list.pointer": "/items",
            "http.response.record.offset.pointer": "key=/id, timestamp=/updated",
            "http.response.list.order.direction": direction,
            "http.timer.interval.millis": "50",
            "retry.backoff.ms": "50",
            "kafka.topic": topic,
            "key.converter": "StringConverter",
            "value.converter": "JsonConverter",
            "value.converter.schemas.enable": "false",
        },
    )
    with GrowingList(size=PAGE, newest_first=not once) as work:
        server.work = work
        for number in range(KILLS):
            started, before = time.monotonic(), kafka.count(topic)
            with SourceProcess(config, worker) as task:
                eventually(lambda: kafka.count(topic) > before or not task.alive, what="new records")  # noqa: B023
                assert task.alive
                made.recovered(time.monotonic() - started)
                time.sleep(chance.uniform(0, LONGEST))  # where to kill
                if number % 4 == 0:
                    server.stop()
                    time.sleep(chance.uniform(0, LONGEST))  # for which it is away
                    server.start()
                    assert task.alive
    expected = work.known
    with SourceProcess(config, worker) as task:

        def complete() -> bool:
            assert task.alive
            return expected <= set(numbers_in(kafka_bootstrap, topic, HttpSource.number_of))

        eventually(complete, what="the last item")
    found = numbers_in(kafka_bootstrap, topic, HttpSource.number_of)
    made.seen = f"{found.total()} records of {len(expected)} items"
    made.lost, made.duplicated = len(expected - set(found)), found.total() - len(found)
    assert set(found) == expected
    assert made.duplicated == 0 or not once  # a list with the newest items first moves, too, while its pages are read


class Sender:
    """A thread that posts rising numbers until each is answered with success. ``retries`` counts the attempts without."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._stopping = threading.Event()
        self.number = self.retries = 0
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._stopping.is_set():
            if self._posted():
                self.number += 1
            else:
                self.retries += 1
                time.sleep(0.05)

    def _posted(self) -> bool:
        try:
            return post(self._port, json.dumps({"id": self.number}).encode(), JSON, path="/webhook").status == 200
        except OSError:
            return False

    def __enter__(self) -> Sender:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(LIMIT)


@pytest.mark.timeout(3600)
def test_killed_many_times_each_answered_webhook_is_in_the_topic(
    kafka_bootstrap: str, unique: Callable[[str], str], row: NewRow, chance: random.Random
) -> None:
    kafka, port = Kafka(kafka_bootstrap), free_port(HOST)
    topic = kafka.create(unique("http-fault"), retention_ms="-1")  # items are of last January
    made = row(f"2: WebhookSource, {KILLS} kills -9 of the task", "0 lost, at most one duplicated for each kill")
    worker = {**exactly_once_worker(kafka_bootstrap, unique), "exactly.once.source.support": "disabled"}
    converters = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
    own = {"connector.class": "WebhookSource", "topic": topic, "webhook.port": str(port)}
    config = task_config(WebhookSourceConnector, {"name": topic, **own, **converters, "key.converter": "StringConverter"})
    with Sender(port) as sender:
        for _ in range(KILLS):
            started, before = time.monotonic(), sender.number
            with SourceProcess(config, worker) as task:
                eventually(lambda: sender.number > before + 3 or not task.alive, what="answers")  # noqa: B023
                assert task.alive
                made.recovered(time.monotonic() - started)
                time.sleep(chance.uniform(0, LONGEST))  # where to kill
    found = numbers_in(kafka_bootstrap, topic, HttpSource.number_of)
    made.seen = f"{found.total()} records of {sender.number} answered webhooks, {sender.retries} attempts without an answer"
    made.lost, made.duplicated = len(set(range(sender.number)) - set(found)), found.total() - len(found)
    assert set(range(sender.number)) <= set(found) <= set(range(sender.number + 1))
    assert made.duplicated <= KILLS


@pytest.mark.timeout(3600)
def test_killed_many_times_each_record_is_done_once(
    kafka_bootstrap: str, server: HttpServer, unique: Callable[[str], str], row: NewRow, chance: random.Random
) -> None:
    topic = Kafka(kafka_bootstrap).create(unique("http-fault"))
    made = row(f"2: HttpSink, {KILLS} kills -9 of the task, every fourth time the server is away", "0 lost, 0 done twice")
    settings = {
        "name": f"sink-{topic}",
        "connector.class": "HttpSink",
        "topics": topic,
        "http.url": f"{server.url}/items",
        "retry.backoff.ms": "50",
        "key.converter": "StringConverter",
        "value.converter": "StringConverter",
        **STATIC_MEMBER,
    }
    server.work = collector = Collector()
    total = 0
    for number in range(KILLS):
        producer = Producer({"bootstrap.servers": kafka_bootstrap, "linger.ms": 20})
        for each in range(total, total + RECORDS):
            producer.produce(topic, str(each), partition=0)
        assert producer.flush(LIMIT) == 0
        total += RECORDS
        made.recovered(kill_at_random(settings, kafka_bootstrap, lambda: len(collector.bodies), chance, LONGEST))
        if number % 4 == 0:
            with TaskProcess(settings, kafka_bootstrap) as task:
                server.stop()
                time.sleep(chance.uniform(0, LONGEST))  # for which it is away
                server.start()
                assert task.alive
    with TaskProcess(settings, kafka_bootstrap, bounded=True) as task:
        task.finish()
    found = [int(body) for body in collector.bodies]
    made.seen = f"{total} records, {collector.seen} requests, {len(found)} done"
    made.lost, made.duplicated = len(set(range(total)) - set(found)), len(found) - len(set(found))
    assert found == list(range(total)), "in their order"
