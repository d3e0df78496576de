"""The source of SQS' queues on an imitation: deletes, pauses, visibility, groups, and answers of a service in trouble."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from sluiceway.api import SourceRecord
from sluiceway.connectors.aws import SqsSourceConnector
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.runtime.memory import MemorySourceContext
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.model import State
from sluiceway.testing import SourceConnectorContract
from support.aws_server import SECRET, AwsServer
from support.engine import RunningTask
from support.eventually import LIMIT, eventually
from support.faults.proxy import TcpProxy
from support.kafka import Kafka

pytestmark = pytest.mark.kafka

STRINGS = {"key.converter": "StringConverter", "value.converter": "StringConverter"}
VISIBILITY = 10  # seconds, the least that a task takes


@pytest.fixture(scope="module")
def server() -> Iterator[AwsServer]:
    with AwsServer() as server:
        yield server


@pytest.fixture
def queue(server: AwsServer, unique: Callable[[str], str]) -> str:
    server.ask("clear")
    return server.create_queue(unique("queue"))


@pytest.fixture
def groups(server: AwsServer, unique: Callable[[str], str]) -> str:
    """A FIFO queue."""
    server.ask("clear")
    return server.create_queue(unique("queue") + ".fifo")


def name_of(queue: str) -> str:
    return queue.rpartition("/")[2]


def config_of(server: AwsServer, *queues: str, **more: str) -> dict[str, str]:
    given = {key.replace("_", "."): value for key, value in more.items()}
    own = {"name": name_of(queues[0]), "connector.class": "SqsSource", "sqs.url": ",".join(queues), "sqs.waittime.seconds": "1"}
    return {**own, **server.config("sqs"), **STRINGS, **given}


@contextmanager
def running(config: dict[str, str]) -> Iterator[Any]:
    """A task without Kafka."""
    connector = SqsSourceConnector()
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

    eventually(enough, what=f"{count} records")
    return records


def numbers(records: Sequence[SourceRecord]) -> list[int]:
    return [int(record.value) for record in records]


def send(server: AwsServer, queue: str, low: int, high: int, group: str | None = None) -> None:
    server.send(queue, *map(str, range(low, high)), group=group)


def left(server: AwsServer, queue: str) -> int:
    """Return the number of messages that are not deleted, hidden or not."""
    return sum(server.counts(queue))


def in_kafka(kafka: Kafka, topic: str, count: int) -> list[int]:
    return [int(value) for value in kafka.values(topic, count)]


def test_a_record_has_the_message_its_attributes_and_its_time(server: AwsServer, queue: str) -> None:
    attributes = {
        "text": {"DataType": "String", "StringValue": "ä"},
        "number": {"DataType": "Number.int", "StringValue": "7"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\xff"},
    }
    sent = server.sqs.send_message(QueueUrl=queue, MessageBody="body", MessageAttributes=attributes)
    with running(config_of(server, queue)) as task:
        [record] = read(task, 1)
    assert (record.topic, record.value, record.key) == (name_of(queue), "body", sent["MessageId"])
    assert (record.source_partition, record.source_offset) == (None, None)
    assert (record.timestamp or 0) > 1_700_000_000_000
    found = {each.key: each.value for each in record.headers}
    assert {name: found[name] for name in attributes} == {"text": "ä", "number": "7", "raw": b"\xff"}
    assert [found[f"sqs.{name}"] for name in ("queue", "message.id", "receive.count")] == [name_of(queue), sent["MessageId"], 1]


def test_values_may_be_bytes_and_headers_left_out(server: AwsServer, queue: str) -> None:
    server.send(queue, "ä")
    with running(config_of(server, queue, sqs_values="bytes", sqs_headers_enabled="false", kafka_topic="t-${queue}")) as task:
        [record] = read(task, 1)
    assert (record.topic, record.value, record.headers) == (f"t-{name_of(queue)}", "ä".encode(), ())


def test_messages_are_deleted_once_kafka_has_them(server: AwsServer, queue: str) -> None:
    send(server, queue, 0, 10)
    with running(config_of(server, queue)) as task:
        records = read(task, 10, acknowledge=False)
        for record in (*records[:3], *records[7:]):
            task.commit_record(record, 0, 0)
        eventually(lambda: left(server, queue) == 4)
        eventually(lambda: task.metrics()["messages-acknowledged"] == 6)
    with running(config_of(server, name_of(queue))) as task:
        again = read(task, 4)
        assert sorted(numbers(again)) == sorted(numbers(records[3:7])), "they were given back, and not first after 30 s"
        assert task.metrics()["messages-redelivered"] == 4
        [count] = [header.value for header in again[0].headers if header.key == "sqs.receive.count"]
        assert count >= 2, "a request that waited meanwhile may have received it, too, and given it back"
        eventually(lambda: left(server, queue) == 0)


def test_a_task_holds_no_more_messages_than_it_may(server: AwsServer, queue: str) -> None:
    send(server, queue, 0, 40)
    with running(config_of(server, queue, sqs_prefetch="15")) as task:
        held = read(task, 15, acknowledge=False)
        assert not task.poll()
        assert server.counts(queue) == (25, 15)
        for record in held:
            task.commit_record(record, 0, 0)
        assert len(set(numbers(held + read(task, 25)))) == 40
    eventually(lambda: left(server, queue) == 0)


def test_what_waits_for_kafka_is_not_received_by_others(server: AwsServer, queue: str) -> None:
    server.sqs.set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": "3"})
    send(server, queue, 0, 12)
    with running(config_of(server, queue)) as task:
        records = read(task, 12, acknowledge=False)
        threading.Event().wait(VISIBILITY * 1.5)  # longer than messages are hidden without an extension
        assert server.counts(queue) == (0, 12)
        for record in records:
            task.commit_record(record, 0, 0)
        eventually(lambda: left(server, queue) == 0)
    assert len(server.requests("ChangeMessageVisibilityBatch")) >= 4


def test_an_extension_that_fails_is_tried_again(server: AwsServer, queue: str) -> None:
    send(server, queue, 0, 2)
    server.fail("ChangeMessageVisibilityBatch", "InternalError", items=[0, 1], times=2)
    with running(config_of(server, queue, sqs_visibility_timeout_seconds=str(VISIBILITY))) as task:
        records = read(task, 2, acknowledge=False)
        threading.Event().wait(VISIBILITY * 1.2)
        assert server.counts(queue) == (0, 2)
        assert server.faults_left() == 0
        for record in records:
            task.commit_record(record, 0, 0)
        eventually(lambda: left(server, queue) == 0)


def test_groups_are_read_in_order_with_their_names_as_keys(server: AwsServer, groups: str) -> None:
    for each in range(0, 60, 10):
        send(server, groups, each, each + 10, group="a")
        send(server, groups, 100 + each, 110 + each, group="b")
    with running(config_of(server, groups, sqs_prefetch="20")) as task:
        records = read(task, 120)
        assert [int(each.value) for each in records if each.key == "a"] == list(range(60))
        assert [int(each.value) for each in records if each.key == "b"] == list(range(100, 160))
        found = {each.key: each.value for each in records[0].headers}
        assert found["sqs.deduplication.id"].endswith(records[0].value)
        assert found["sqs.sequence.number"]
        eventually(lambda: left(server, groups) == 0)


def test_two_tasks_keep_the_order_of_groups(server: AwsServer, groups: str) -> None:
    for each in range(0, 40, 10):
        for group in "abc":
            send(server, groups, each, each + 10, group=group)
    config = config_of(server, groups, sqs_prefetch="10")
    found: list[SourceRecord] = []
    with running(config) as one, running(config) as other:

        def enough() -> bool:
            for task in (one, other):
                records = task.poll() or ()
                found.extend(records)
                for record in records:
                    task.commit_record(record, 0, 0)
            return len(found) >= 120

        eventually(enough, what="120 records")
    for group in "abc":
        assert [int(each.value) for each in found if each.key == group] == list(range(40))


def test_deletes_that_fail_are_repeated_alone(server: AwsServer, queue: str) -> None:
    send(server, queue, 0, 10)
    server.fail("DeleteMessageBatch", "InternalError", items=[2, 5])
    with running(config_of(server, queue)) as task:
        read(task, 10)
        eventually(lambda: left(server, queue) == 0)
        assert task.metrics()["messages-expired"] == 0
    assert server.faults_left() == 0
    assert sum(server.requests("DeleteMessageBatch")) == 12


def test_a_message_that_cannot_be_deleted_is_told_of(server: AwsServer, queue: str, caplog: pytest.LogCaptureFixture) -> None:
    send(server, queue, 0, 3)
    server.fail("DeleteMessageBatch", "ReceiptHandleIsInvalid", items=[0], sender=True)
    with running(config_of(server, queue)) as task:
        read(task, 3)
        eventually(lambda: task.metrics()["messages-expired"] == 1)
        eventually(lambda: left(server, queue) == 1)
    assert "cannot be deleted: ReceiptHandleIsInvalid" in caplog.text


def test_a_paused_task_gives_its_messages_to_others_and_takes_them_again(server: AwsServer, kafka: Kafka, queue: str) -> None:
    topic = kafka.create(name_of(queue))
    send(server, queue, 0, 30)
    with RunningTask(config_of(server, queue), kafka.worker()) as task:
        assert sorted(in_kafka(kafka, topic, 30)) == list(range(30))
        task.commands.give(TaskCommand.PAUSE)
        task.wait_for(State.PAUSED)
        eventually(lambda: server.counts(queue) == (0, 0))
        send(server, queue, 100, 130)
        with running(config_of(server, queue)) as other:
            assert sorted(numbers(read(other, 30))) == list(range(100, 130))
            eventually(lambda: left(server, queue) == 0)
        send(server, queue, 30, 60)
        task.commands.give(TaskCommand.RUN)
        assert sorted(in_kafka(kafka, topic, 60)) == list(range(60))
    eventually(lambda: left(server, queue) == 0)


def test_a_task_gives_back_what_it_has_not_sent_when_it_pauses(server: AwsServer, queue: str) -> None:
    send(server, queue, 0, 25)
    with running(config_of(server, queue)) as task:
        eventually(lambda: task.metrics()["messages-held"] == 25)
        task.paused()
        eventually(lambda: server.counts(queue) == (25, 0))
        with running(config_of(server, queue, sqs_prefetch="10")) as other:
            taken = numbers(read(other, 10))
        task.resumed()
        eventually(lambda: left(server, queue) == 25 - len(taken))
        assert len(set(taken + numbers(read(task, 25 - len(taken))))) == 25
        eventually(lambda: left(server, queue) == 0)


def test_a_request_that_ends_after_the_pause_gives_its_messages_back(server: AwsServer, queue: str) -> None:
    with running(config_of(server, queue, sqs_waittime_seconds="20")) as task:
        eventually(lambda: len(server.requests("ReceiveMessage")) == 4)
        task.paused()
        eventually(lambda: task._receivers is not None and not task._receivers._runs.is_set())
        send(server, queue, 0, 10)
        eventually(lambda: server.requests("ChangeMessageVisibilityBatch"))
        eventually(lambda: server.counts(queue) == (10, 0))


def test_several_queues_are_dealt_among_tasks(server: AwsServer, unique: Callable[[str], str]) -> None:
    queues = [server.create_queue(unique("queue")) for _ in range(3)]
    connector = SqsSourceConnector()
    connector.start(config_of(server, *queues))
    assert [each["sqs.url"].split(",") for each in connector.task_configs(2)] == [[queues[0], queues[2]], [queues[1]]]
    assert [each["sqs.url"] for each in connector.task_configs(4)] == [*queues, queues[0]]
    for number, queue in enumerate(queues):
        send(server, queue, 10 * number, 10 * number + 10)
    with running(config_of(server, *queues)) as task:
        records = read(task, 30)
    assert {each.topic for each in records} == set(map(name_of, queues))
    assert sorted(numbers(records)) == list(range(30))


def test_a_queue_that_does_not_exist_is_an_error_of_its_key(server: AwsServer, queue: str) -> None:
    for missing in ("nowhere", f"{queue}-nowhere"):
        config = config_of(server, queue, missing)
        found = SqsSourceConnector.validate(config)
        assert [name for name, each in found.items() if each.errors] == ["sqs.url"]
        assert f"{missing} for configuration sqs.url: is no queue of Amazon SQS" in found["sqs.url"].errors[0]
        with running(config) as task, pytest.raises(ConfigError, match=r"sqs\.url: is no queue"):
            eventually(task.poll)


@pytest.mark.parametrize(
    ("code", "status", "key"), [("InvalidClientTokenId", 403, "aws.access.key.id"), ("AccessDenied", 403, "aws.access.key.id")]
)
def test_credentials_that_are_refused_are_an_error_of_their_key(
    server: AwsServer, queue: str, code: str, status: int, key: str
) -> None:
    message = f"first line\n\nx-amz-security-token:{SECRET}"
    for _ in range(2):
        server.fail("GetQueueAttributes", code, status=status, message=message)
    found = SqsSourceConnector.validate(config_of(server, queue))
    assert [name for name, each in found.items() if each.errors] == [key]
    assert SECRET not in str(found[key].errors)
    with running(config_of(server, queue)) as task, pytest.raises(ConnectError, match=code) as error:
        eventually(task.poll)
    assert SECRET not in str(error.value)


def test_a_service_that_throttles_is_waited_for(server: AwsServer, kafka: Kafka, queue: str) -> None:
    topic = kafka.create(name_of(queue))
    server.fail("ReceiveMessage", "RequestThrottled", times=12)
    send(server, queue, 0, 5)
    with RunningTask(config_of(server, queue), kafka.worker()) as task:
        eventually(lambda: "RequestThrottled" in (task.reports.trace or ""), what="the reason in the status")
        assert sorted(in_kafka(kafka, topic, 5)) == list(range(5))
        eventually(lambda: task.reports.trace is None)


def test_a_service_that_cannot_be_reached_is_waited_for_and_nothing_is_lost(server: AwsServer, queue: str) -> None:
    with TcpProxy(server.port) as proxy:
        config = {**config_of(server, name_of(queue)), **server.config("sqs", f"http://127.0.0.1:{proxy.port}")}
        send(server, queue, 0, 20)
        with running(config) as task:
            records = read(task, 20, acknowledge=False)
            proxy.drop()
            eventually(lambda: task.metrics()["connections-lost"])
            for record in records:
                task.commit_record(record, 0, 0)
            assert left(server, queue) == 20
            proxy.restore()
            eventually(lambda: left(server, queue) == 0)
            eventually(lambda: task.metrics()["messages-acknowledged"] == 20)  # counted once the service has answered
            send(server, queue, 20, 40)
            assert sorted(numbers(read(task, 20))) == list(range(20, 40))


def test_a_service_that_does_not_answer_is_waited_for(server: AwsServer, queue: str) -> None:
    send(server, queue, 0, 5)
    with running(config_of(server, queue, aws_timeout_ms="1000")) as task:
        assert len(read(task, 5)) == 5
        eventually(lambda: left(server, queue) == 0)
        server.send_signal(signal.SIGSTOP)
        eventually(lambda: task.metrics()["connections-lost"])
        server.send_signal(signal.SIGCONT)
        send(server, queue, 5, 9)
        assert sorted(set(numbers(read(task, 4)))) == [5, 6, 7, 8]


def test_a_run_of_what_there_is_ends(server: AwsServer, kafka: Kafka, queue: str) -> None:
    topic = kafka.create(name_of(queue))
    send(server, queue, 0, 200)
    with RunningTask(config_of(server, queue, sqs_prefetch="50"), kafka.worker(), bounded=True) as task:
        assert task.join().records == 200
    assert sorted(in_kafka(kafka, topic, 200)) == list(range(200))
    assert left(server, queue) == 0
    with RunningTask(config_of(server, queue), kafka.worker(), bounded=True) as task:
        assert task.join().records == 0


class TestContract(SourceConnectorContract):
    connector_class = SqsSourceConnector
    records_within = poll_within = LIMIT
    resumable = False

    @pytest.fixture
    def config(self, server: AwsServer, queue: str) -> dict[str, str]:
        send(server, queue, 0, 3)
        return {**server.config("sqs"), "sqs.url": queue, "sqs.waittime.seconds": "1"}

    def identity(self, record: SourceRecord) -> object:
        return str(record.value)
