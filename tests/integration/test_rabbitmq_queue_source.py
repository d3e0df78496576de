"""The source of RabbitMQ's queues on a real server: acknowledgements, lost connections and channels, pauses, and bounded runs."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pytest

from sluiceway.api import ExactlyOnceSupport, SourceRecord
from sluiceway.connectors.rabbitmq import RabbitQueueSourceConnector, RabbitStreamSourceConnector
from sluiceway.errors import ConnectError
from sluiceway.runtime.memory import MemorySourceContext
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.model import State
from sluiceway.testing import SourceConnectorContract
from support.certificates import Authority
from support.engine import RunningTask
from support.eventually import LIMIT, eventually
from support.kafka import Kafka
from support.rabbitmq_server import RabbitServer

pytestmark = pytest.mark.kafka

KINDS = ["classic", "quorum"]
BYTES = {"key.converter": "StringConverter", "value.converter": "ByteArrayConverter"}
LATE = 6.0  # seconds after which the server closes the channel of a consumer that does not acknowledge


@pytest.fixture(scope="module")
def server() -> Iterator[RabbitServer]:
    with closing(RabbitServer()) as server:
        server.start()
        yield server


@pytest.fixture(scope="module")
def hasty() -> Iterator[RabbitServer]:
    """A server that does not wait for acknowledgements for long."""
    with closing(RabbitServer(consumer_timeout=LATE)) as server:
        server.start()
        yield server


@pytest.fixture
def queue(unique: Callable[[str], str]) -> str:
    return unique("queue")


@pytest.fixture(params=KINDS)
def declared(request: pytest.FixtureRequest, server: RabbitServer, queue: str) -> str:
    """A queue of each kind."""
    server.declare(queue, request.param)
    return queue


@pytest.fixture
def into(kafka: Kafka, queue: str) -> Kafka:
    """The broker with a topic of the queue's name."""
    kafka.create(queue)
    return kafka


def config_of(server: RabbitServer, queue: str, **more: str) -> dict[str, str]:
    given = {key.replace("_", "."): value for key, value in more.items()}
    return {"name": queue, "connector.class": "RabbitQueueSource", **server.config, "rabbitmq.queue": queue, **BYTES, **given}


@contextmanager
def running(config: dict[str, str]) -> Iterator[Any]:
    """A task without Kafka."""
    connector = RabbitQueueSourceConnector()
    connector.start(config)
    [given] = connector.task_configs(1)
    made = connector.task_class()
    made.initialize(MemorySourceContext(given))
    made.start(given)
    try:
        yield made
    finally:
        made.stop()


def read(task: Any, count: int, *, acknowledge: bool = True) -> list[SourceRecord]:
    records: list[SourceRecord] = []

    def enough() -> bool:
        found = task.poll() or ()
        records.extend(found)
        for record in found if acknowledge else ():
            task.commit_record(record, 0, 0)
        return len(records) >= count

    eventually(enough)
    return records


def numbers(records: Sequence[SourceRecord]) -> list[int]:
    return [int(record.value) for record in records]


def publish(server: RabbitServer, queue: str, low: int, high: int, **properties: Any) -> None:
    server.publish(queue, *map(str, range(low, high)), **properties)


def in_kafka(kafka: Kafka, topic: str, count: int) -> list[int]:
    return [int(value) for value in kafka.values(topic, count)]


def test_a_record_has_the_body_the_message_id_and_the_time_of_a_message(server: RabbitServer, declared: str) -> None:
    table = {"n": 7, "big": 2**40, "text": "ä", "raw": b"\xff", "yes": True, "none": None, "list": [{"count": 1, "of": "a"}]}
    server.publish(declared, b"\xff\x00", message_id="m1", timestamp=1_700_000_000, content_type="text/plain", headers=table)
    server.publish(declared, b"")
    with running(config_of(server, declared, kafka_topic="rabbit.${queue}")) as task:
        first, second = read(task, 2)
    assert (first.topic, first.key, first.value, first.timestamp) == (f"rabbit.{declared}", "m1", b"\xff\x00", 1_700_000_000_000)
    assert (second.key, second.value, second.timestamp) == (None, b"", None)
    assert {header.key: header.value for header in first.headers} == {
        "rabbitmq.redeliver": False,
        "rabbitmq.exchange": "",
        "rabbitmq.routing.key": declared,
        "rabbitmq.content.type": "text/plain",
        "rabbitmq.delivery.mode": 2,
        "rabbitmq.message.id": "m1",
        "rabbitmq.timestamp": 1_700_000_000,
        **{"rabbitmq.n": 7, "rabbitmq.big": 2**40, "rabbitmq.text": "ä", "rabbitmq.raw": b"\xff", "rabbitmq.yes": True},
        **{"rabbitmq.none": None, "rabbitmq.list": '[{"count":1,"of":"a"}]'},
    }


def test_headers_can_be_left_out_and_values_be_texts(server: RabbitServer, queue: str) -> None:
    server.declare(queue)
    server.publish(queue, "Zoë", message_id="m")
    with running(config_of(server, queue, rabbitmq_headers_enabled="false", rabbitmq_values="string")) as task:
        [record] = read(task, 1)
    assert (record.value, record.headers) == ("Zoë", ())


def test_a_text_that_is_not_utf_8_is_a_bad_record_and_acknowledged_with_it(server: RabbitServer, queue: str) -> None:
    server.declare(queue)
    server.publish(queue, b"\xff", "2")
    with running(config_of(server, queue, rabbitmq_values="string", errors_tolerance="all")) as task:
        assert numbers(read(task, 1)) == [2]
        [(bad, error)] = task.context.reported
        assert (bad.value, "rabbitmq.values=bytes" in str(error)) == (b"\xff", True)
        assert task.metrics()["messages-acknowledged"] == 0, "the good one waits for the older bad one"
        task.commit()  # when the bad record is in Kafka
        eventually(lambda: task.metrics()["messages-acknowledged"] == 2)
    assert server.count(queue) == 0
    server.publish(queue, b"\xff")
    with running(config_of(server, queue, rabbitmq_values="string")) as task, pytest.raises(ConnectError, match="not UTF-8"):
        read(task, 1)
    eventually(lambda: server.count(queue) == 1)


def test_messages_are_acknowledged_in_runs_once_kafka_has_them(server: RabbitServer, declared: str) -> None:
    publish(server, declared, 0, 10)
    with running(config_of(server, declared)) as task:
        records = read(task, 10, acknowledge=False)
        for record in (*records[:3], *records[4:]):
            task.commit_record(record, 0, 0)
        eventually(lambda: task.metrics()["messages-acknowledged"] == 3)
    eventually(lambda: server.count(declared) == 7)
    with running(config_of(server, declared)) as task:
        again = read(task, 7)
        assert numbers(again) == list(range(3, 10))
        assert task.metrics()["messages-redelivered"] == 7
        assert {header.value for header in again[0].headers if header.key == "rabbitmq.redeliver"} == {True}
        eventually(lambda: task.metrics()["messages-acknowledged"] == 7)
    assert server.count(declared) == 0


def test_a_task_holds_no_more_messages_than_the_prefetch_count(server: RabbitServer, declared: str) -> None:
    publish(server, declared, 0, 20)
    with running(config_of(server, declared, rabbitmq_prefetch_count="5")) as task:
        held = read(task, 5, acknowledge=False)
        assert not task.poll()
        assert server.count(declared) == 15
        for record in held:
            task.commit_record(record, 0, 0)
        assert numbers(read(task, 15)) == list(range(5, 20))


@pytest.mark.parametrize(("shared", "most"), [("true", 4), ("false", 8)])
def test_the_prefetch_count_is_for_each_queue_or_for_all(server: RabbitServer, queue: str, shared: str, most: int) -> None:
    queues = [f"{queue}-{number}" for number in range(2)]
    for each in queues:
        server.declare(each)
        publish(server, each, 0, 10)
    config = config_of(server, queue, rabbitmq_prefetch_count="4", rabbitmq_prefetch_global=shared)
    with running({**config, "rabbitmq.queue": ",".join(queues)}) as task:
        records = read(task, most, acknowledge=False)
        assert not task.poll()
        assert sum(map(server.count, queues)) == 20 - most
        for record in records:
            task.commit_record(record, 0, 0)
        records += read(task, 20 - most)
    assert {record.topic for record in records} == set(queues)


def test_a_paused_task_gives_its_messages_to_others_and_takes_them_again(
    server: RabbitServer, into: Kafka, declared: str
) -> None:
    publish(server, declared, 0, 100)
    with RunningTask(config_of(server, declared, rabbitmq_prefetch_count="30"), into.worker()) as task:
        assert in_kafka(into, declared, 100) == list(range(100))
        task.commands.give(TaskCommand.PAUSE)
        task.wait_for(State.PAUSED)
        eventually(lambda: server.consumers(declared) == 0)
        publish(server, declared, 100, 200)
        assert server.count(declared) == 100
        taken = [int(body) for _properties, body in server.take(declared)]
        assert sorted(taken) == list(range(100, 200)), "another consumer has them"
        publish(server, declared, 100, 150)
        task.commands.give(TaskCommand.RUN)
        assert sorted(in_kafka(into, declared, 150)) == list(range(150))
    assert server.count(declared) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_pause_is_longer_than_the_server_waits_for_acknowledgements(
    hasty: RabbitServer, into: Kafka, queue: str, kind: str
) -> None:
    hasty.declare(queue, kind)
    config = config_of(hasty, queue, rabbitmq_prefetch_count="10")
    with RunningTask(config, into.worker()) as task:
        publish(hasty, queue, 0, 5)
        assert in_kafka(into, queue, 5) == list(range(5))
        task.commands.give(TaskCommand.PAUSE)
        task.wait_for(State.PAUSED)
        publish(hasty, queue, 5, 100)
        threading.Event().wait(1.5 * LATE)  # longer than the server waits for an acknowledgement
        assert hasty.count(queue) == 95
        task.commands.give(TaskCommand.RUN)
        assert sorted(in_kafka(into, queue, 100)) == list(range(100))


@pytest.mark.parametrize("kind", KINDS)
def test_a_channel_that_is_closed_for_a_late_acknowledgement_is_opened_again(hasty: RabbitServer, queue: str, kind: str) -> None:
    hasty.declare(queue, kind)
    publish(hasty, queue, 0, 3)
    with running(config_of(hasty, queue)) as task:
        late = read(task, 3, acknowledge=False)
        eventually(lambda: task.metrics()["connections-lost"] == 1)
        again = read(task, 3, acknowledge=False)
        for record in late:
            task.commit_record(record, 0, 0)  # tags of the old channel, which the new one knows as others
        task.poll()
        assert task.metrics()["messages-acknowledged"] == 0
        for record in again:
            task.commit_record(record, 0, 0)
        eventually(lambda: task.metrics()["messages-acknowledged"] == 3)
    assert numbers(late) == numbers(again) == [0, 1, 2]
    assert hasty.count(queue) == 0


def test_heartbeats_go_on_while_a_task_waits_for_kafka(server: RabbitServer, queue: str) -> None:
    server.declare(queue)
    publish(server, queue, 0, 9)
    config = config_of(server, queue, rabbitmq_requested_heartbeat_seconds="1", rabbitmq_prefetch_count="5")
    with running(config) as task:
        records = read(task, 5, acknowledge=False)
        threading.Event().wait(0.6 * LATE)  # longer than the server waits for a heartbeat
        for record in records:
            task.commit_record(record, 0, 0)
        assert numbers(read(task, 4)) == [5, 6, 7, 8]
        assert task.metrics()["connections-lost"] == 0


def test_a_queue_that_is_deleted_is_waited_for(server: RabbitServer, into: Kafka, queue: str) -> None:
    server.declare(queue)
    with RunningTask(config_of(server, queue), into.worker()) as task:
        publish(server, queue, 0, 3)
        assert in_kafka(into, queue, 3) == [0, 1, 2]
        server.delete(queue)
        eventually(lambda: "no queue" in (task.reports.trace or ""), what="the reason in the status")
        server.declare(queue)
        publish(server, queue, 3, 5)
        assert in_kafka(into, queue, 5) == [0, 1, 2, 3, 4]
        eventually(lambda: task.reports.trace is None)


def test_a_server_that_restarts_is_waited_for(into: Kafka, queue: str) -> None:
    with closing(RabbitServer()) as own:
        own.start()
        for number, kind in enumerate(KINDS):
            own.declare(f"{queue}-{number}", kind)
        config = config_of(own, queue, kafka_topic=queue)
        config["rabbitmq.queue"] = f"{queue}-0,{queue}-1"
        with RunningTask(config, into.worker()) as task:
            publish(own, f"{queue}-0", 0, 5)
            assert in_kafka(into, queue, 5) == list(range(5))
            eventually(lambda: own.count(f"{queue}-0") == 0)
            own.end(signal.SIGTERM)  # tests/faults has kills
            eventually(lambda: "RabbitMQ at 127.0.0.1" in (task.reports.trace or ""), what="the reason in the status")
            own.start()
            publish(own, f"{queue}-1", 5, 9)
            assert sorted(set(in_kafka(into, queue, 9))) == list(range(9))
            eventually(lambda: task.reports.trace is None)


def test_another_server_of_the_cluster_is_tried(server: RabbitServer, queue: str) -> None:
    server.declare(queue)
    publish(server, queue, 0, 1)
    with running({**config_of(server, queue), "rabbitmq.host": "127.0.0.9,127.0.0.1"}) as task:
        assert numbers(read(task, 1)) == [0]


def test_a_run_of_what_there_is_ends(server: RabbitServer, into: Kafka, declared: str) -> None:
    publish(server, declared, 0, 3000)
    with RunningTask(config_of(server, declared, rabbitmq_prefetch_count="100"), into.worker(), bounded=True) as task:
        assert task.join().records == 3000
    assert in_kafka(into, declared, 3000) == list(range(3000))
    assert server.count(declared) == 0
    with RunningTask(config_of(server, declared), into.worker(), bounded=True) as task:
        assert task.join().records == 0


def test_a_run_goes_on_when_nothing_comes_because_of_late_acknowledgements(server: RabbitServer, queue: str) -> None:
    server.declare(queue)
    server.declare(f"{queue}-empty")
    publish(server, queue, 0, 20)
    config = {**config_of(server, queue, rabbitmq_prefetch_count="5"), "rabbitmq.queue": f"{queue},{queue}-empty"}
    with running(config) as task:
        records = read(task, 5, acknowledge=False)
        assert not task.ended
        assert not task.poll()
        for record in records:
            task.commit_record(record, 0, 0)
        assert numbers(read(task, 15)) == list(range(5, 20))
        eventually(lambda: task.ended)


def test_a_run_ends_although_somebody_goes_on_publishing(server: RabbitServer, into: Kafka, declared: str) -> None:
    publish(server, declared, 0, 500)
    stopping = threading.Event()

    def write() -> None:
        while not stopping.wait(0.01):
            publish(server, declared, 0, 20)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with RunningTask(config_of(server, declared, rabbitmq_prefetch_count="50"), into.worker(), bounded=True) as task:
            result = task.join()
    finally:
        stopping.set()
        writer.join()
    assert not result.failed
    assert result.records >= 500


def test_tasks_that_restart_and_pause_lose_and_double_nothing(server: RabbitServer, into: Kafka, declared: str) -> None:
    total = 0
    for _ in range(3):
        with RunningTask(config_of(server, declared), into.worker()) as task:
            publish(server, declared, total, total + 200)
            eventually(lambda: into.end(declared) > total)  # noqa: B023
            task.commands.give(TaskCommand.PAUSE)
            task.wait_for(State.PAUSED)
            publish(server, declared, total + 200, total + 300)
            task.commands.give(TaskCommand.RUN)
            eventually(lambda: into.end(declared) > total + 200)  # noqa: B023
        total += 300
    with RunningTask(config_of(server, declared), into.worker(), bounded=True) as task:
        task.join()
    assert sorted(in_kafka(into, declared, total)) == list(range(total))
    assert server.count(declared) == 0


def test_two_tasks_share_a_queue(server: RabbitServer, into: Kafka, declared: str) -> None:
    config = config_of(server, declared, rabbitmq_prefetch_count="10", tasks_max="2")
    with RunningTask(config, into.worker()), RunningTask(config, into.worker(), task=1):
        publish(server, declared, 0, 1000)
        assert sorted(in_kafka(into, declared, 1000)) == list(range(1000))


def test_a_queue_with_another_exclusive_consumer_is_waited_for(server: RabbitServer, into: Kafka, queue: str) -> None:
    server.declare(queue)
    with closing(server.connect()) as connection:
        other = connection.channel()
        other.basic_consume(queue, lambda *_: None, exclusive=True)
        with RunningTask(config_of(server, queue), into.worker()) as task:
            eventually(lambda: "exclusive" in (task.reports.trace or ""), what="the reason in the status")
            other.close()
            publish(server, queue, 0, 1)
            assert in_kafka(into, queue, 1) == [0]


def test_a_stream_is_not_read_as_a_queue(server: RabbitServer, queue: str) -> None:
    server.declare(queue, "stream")
    with running(config_of(server, queue)) as task, pytest.raises(ConnectError, match=r"is a stream.*RabbitStreamSource"):
        eventually(task.poll)


def test_quorum_queues_have_no_shared_prefetch_count(server: RabbitServer, queue: str) -> None:
    server.declare(queue, "quorum")
    with running(config_of(server, queue, rabbitmq_prefetch_global="true")) as task, pytest.raises(ConnectError, match="qos"):
        eventually(task.poll)


def test_validation_tries_the_login_and_names_queues_that_do_not_exist(server: RabbitServer, queue: str) -> None:
    def errors(**more: str) -> dict[str, list[str]]:
        found = RabbitQueueSourceConnector.validate(config_of(server, queue, **more))
        assert "hush" not in str(found)
        return {name: each.errors for name, each in found.items() if each.errors}

    assert list(errors()) == ["rabbitmq.queue"]
    server.declare(queue)
    assert errors() == {}
    assert list(errors(rabbitmq_password="hush")) == ["rabbitmq.password"]
    assert list(errors(rabbitmq_virtual_host="nowhere")) == ["rabbitmq.virtual.host"]
    assert errors(rabbitmq_port="1") == {}, "a server that is away is waited for"
    assert list(errors(rabbitmq_security_protocol="SSL")) == ["rabbitmq.port"]
    for kind in (RabbitQueueSourceConnector, RabbitStreamSourceConnector):
        once = kind().exactly_once_support({})
        assert once is (ExactlyOnceSupport.SUPPORTED if kind is RabbitStreamSourceConnector else ExactlyOnceSupport.UNSUPPORTED)


def test_a_refused_login_fails_the_task(server: RabbitServer, queue: str) -> None:
    with running(config_of(server, queue, rabbitmq_password="hush")) as task, pytest.raises(ConnectError) as error:
        eventually(task.poll)
    assert "refused the login of user guest" in str(error.value)
    assert "hush" not in str(error.value)


def test_tls_is_by_pem_files(tmp_path_factory: pytest.TempPathFactory, queue: str) -> None:
    folder, authority, other = tmp_path_factory.mktemp("tls"), Authority("own"), Authority("other")
    certificate, key = authority.issue("rabbit")
    files = {"ca": authority.pem, "certificate": certificate, "key": key, "other": other.pem}
    for name, content in files.items():
        (folder / name).write_text(content)
        (folder / name).chmod(0o644)
    with closing(RabbitServer(tls=[folder / "ca", folder / "certificate", folder / "key"])) as own:
        own.start()
        own.declare(queue)
        publish(own, queue, 0, 1)
        config = config_of(own, queue, rabbitmq_security_protocol="SSL")
        config |= {"rabbitmq.port": str(own.tls_port), "rabbitmq.https.ssl.truststore.location": str(folder / "ca")}
        with running(config) as task:
            assert numbers(read(task, 1)) == [0]
        distrustful = {**config, "rabbitmq.https.ssl.truststore.location": str(folder / "other")}
        found = RabbitQueueSourceConnector.validate(distrustful)
        assert [name for name, each in found.items() if each.errors] == ["rabbitmq.https.ssl.truststore.location"]


def test_the_position_is_the_queues(server: RabbitServer) -> None:
    config = {"rabbitmq.queue": "orders"}
    assert "orders in RabbitMQ" in RabbitQueueSourceConnector.position_elsewhere(config)
    assert RabbitQueueSourceConnector.start_effects(config)


class TestContract(SourceConnectorContract):
    connector_class = RabbitQueueSourceConnector
    records_within = poll_within = LIMIT
    resumable = False

    @pytest.fixture
    def config(self, server: RabbitServer, queue: str) -> dict[str, str]:
        server.declare(queue)
        publish(server, queue, 0, 3)
        return {**server.config, "rabbitmq.queue": queue}

    def identity(self, record: SourceRecord) -> object:
        return json.dumps([record.topic, record.value.decode()])
