"""SQS and Kinesis as sources and as targets, while the task's process is killed, and every fourth time AWS is away for a while.

The server is an imitation that forgets all when it ends, so it is a proxy before it that refuses connections. The task runs in a
process of its own, as on an executor, so that it can be killed anywhere: between two reads, between Kafka's acknowledgement and
the deletion of a message, or before the answer to a request.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from sluiceway.connectors.aws import KinesisSourceConnector, SqsSourceConnector
from support.aws_server import AwsServer
from support.eventually import LIMIT, eventually
from support.exactly_once import exactly_once_worker
from support.faults.proxy import TcpProxy
from support.faults.rows import NewRow
from support.jdbc_sink import STATIC_MEMBER, TaskProcess, kill_at_random
from support.kafka import Kafka
from support.queues.publishers import Feeder
from support.queues.sources import numbers_in
from support.source_process import SourceProcess, task_config

pytestmark = pytest.mark.kafka

KILLS = int(os.environ.get("KILLS", "20"))
PREFETCH = 200
VISIBILITY = 10  # seconds for which a killed task's messages are hidden
RECORDS = 300  # for each kill of a sink
LONGEST = 1.0  # seconds from the first new record to the kill
CONVERTERS = {"key.converter": "StringConverter", "value.converter": "StringConverter"}


@pytest.fixture
def server() -> Iterator[AwsServer]:
    with AwsServer() as started:
        yield started


@pytest.fixture
def proxy(server: AwsServer) -> Iterator[TcpProxy]:
    with TcpProxy(server.port) as made:
        yield made


def away(proxy: TcpProxy, chance: random.Random) -> None:
    proxy.drop()
    time.sleep(chance.uniform(0, LONGEST))  # for which it is away
    proxy.restore()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["kinesis", "sqs"])
def test_killed_many_times_each_message_is_in_the_topic(
    kafka_bootstrap: str,
    server: AwsServer,
    proxy: TcpProxy,
    unique: Callable[[str], str],
    row: NewRow,
    chance: random.Random,
    kind: str,
) -> None:
    kafka, once = Kafka(kafka_bootstrap), kind == "kinesis"
    topic = kafka.create(unique("aws-fault"))
    promised = "0 lost, 0 duplicated" if once else f"0 lost, at most {PREFETCH} duplicated for each kill"
    made = row(f"2: source of {kind}, {KILLS} kills -9 of the task, every fourth time AWS is away, too", promised)
    worker = {**exactly_once_worker(kafka_bootstrap, unique), "offset.flush.interval.ms": "200"}
    common = {"name": topic, "kafka.topic": topic, **server.config(kind, f"http://127.0.0.1:{proxy.port}"), **CONVERTERS}
    if once:
        server.create_stream(topic, 2)
        own = {"connector.class": "KinesisSource", "kinesis.stream": topic, "kinesis.values": "string"}
        config = task_config(KinesisSourceConnector, {**common, **own, "kinesis.empty.records.backoff.ms": "200"})
        feeder = Feeder(lambda numbers: server.put(topic, *numbers))
    else:
        worker["exactly.once.source.support"] = "disabled"
        queue = server.create_queue(topic)
        own = {"connector.class": "SqsSource", "sqs.url": topic, "sqs.prefetch": str(PREFETCH), "sqs.waittime.seconds": "1"}
        own["sqs.visibility.timeout.seconds"] = str(VISIBILITY)
        config = task_config(SqsSourceConnector, {**common, **own})
        feeder = Feeder(lambda numbers: server.send(queue, *numbers))
    with feeder:
        for number in range(KILLS):
            started, before = time.monotonic(), kafka.count(topic)
            with SourceProcess(config, worker) as task:
                eventually(lambda: kafka.count(topic) > before or not task.alive, what="new records")  # noqa: B023
                assert task.alive
                made.recovered(time.monotonic() - started)
                time.sleep(chance.uniform(0, LONGEST))  # where to kill
                if number % 4 == 0:
                    away(proxy, chance)
                    assert task.alive
    with SourceProcess(config, worker) as task:

        def complete() -> bool:
            assert task.alive
            return feeder.known <= set(numbers_in(kafka_bootstrap, topic))

        eventually(complete, what="the last message")
    found = numbers_in(kafka_bootstrap, topic)
    made.seen = f"{found.total()} records of {len(feeder.known)} messages"
    made.lost, made.duplicated = len(feeder.known - set(found)), found.total() - len(found)
    assert feeder.known == set(found)
    assert made.duplicated <= (0 if once else PREFETCH * (KILLS + KILLS // 4 + 1))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["kinesis", "sqs"])
def test_killed_many_times_each_record_is_there(
    kafka_bootstrap: str,
    server: AwsServer,
    proxy: TcpProxy,
    unique: Callable[[str], str],
    row: NewRow,
    chance: random.Random,
    kind: str,
) -> None:
    topic = Kafka(kafka_bootstrap).create(unique("aws-fault"))
    fifo = kind == "sqs"
    promised = "0 lost, 0 duplicated" if fifo else "0 lost, in order but for repeats"
    made = row(f"2: sink of {kind}, {KILLS} kills -9 of the task, every fourth time AWS is away, too", promised)
    settings = {
        "name": f"sink-{topic}",
        "topics": topic,
        **server.config(kind, f"http://127.0.0.1:{proxy.port}"),
        **CONVERTERS,
        **STATIC_MEMBER,
    }
    if fifo:
        queue = server.create_queue(f"{topic}.fifo")
        settings |= {"connector.class": "SqsSink", "sqs.url": f"{topic}.fifo"}
    else:
        server.create_stream(topic)
        settings |= {"connector.class": "KinesisSink", "kinesis.stream": topic}

    def count() -> int:
        return sum(server.counts(queue)) if fifo else server.counted(topic).total()

    total = 0
    for number in range(KILLS):
        producer = Producer({"bootstrap.servers": kafka_bootstrap, "linger.ms": 20})
        for each in range(total, total + RECORDS):
            producer.produce(topic, str(each), key=str(each % 20), partition=0)
        assert producer.flush(LIMIT) == 0
        total += RECORDS
        made.recovered(kill_at_random(settings, kafka_bootstrap, count, chance, LONGEST))
        if number % 4 == 0:
            with TaskProcess(settings, kafka_bootstrap) as task:
                away(proxy, chance)
                assert task.alive
    with TaskProcess(settings, kafka_bootstrap, bounded=True) as task:
        task.finish()
    if fifo:
        found = [(each["Attributes"]["MessageGroupId"], int(each["Body"])) for each in server.take(queue)]
    else:
        found = [(each["PartitionKey"], int(each["Data"])) for each in server.in_stream(topic)["shardId-000000000000"]]
    made.seen = f"{total} records, {len(found)} messages"
    values = [value for _key, value in found]
    made.lost, made.duplicated = len(set(range(total)) - set(values)), len(values) - len(set(values))
    assert made.lost == 0
    firsts = list(dict.fromkeys(found))
    for key in map(str, range(20)):
        assert [value for each, value in firsts if each == key] == list(range(int(key), total, 20)), key
    assert not fifo or made.duplicated == 0
