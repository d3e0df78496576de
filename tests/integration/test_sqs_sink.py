"""The sink for SQS' queues on an imitation: attributes, groups, repeats, and entries that fail."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from sluiceway.api import SinkRecord
from sluiceway.connectors.aws import SqsSinkConnector
from sluiceway.connectors.aws.sqs_sink import SqsSinkTask
from sluiceway.data import Header
from sluiceway.errors import ConfigError, ConnectError, RetriableError
from sluiceway.runtime.memory import MemorySinkContext
from sluiceway.testing import SinkConnectorContract
from support.aws_server import AwsServer
from support.faults.proxy import TcpProxy
from support.sink_tasks import put_until_taken


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


class Running:
    """A task without Kafka."""

    def __init__(self, server: AwsServer, queue: str, **more: str) -> None:
        given = {name.replace("_", "."): value for name, value in more.items()}
        self.config = {"name": "n", **server.config("sqs"), "sqs.url": queue, **given}
        self.context = MemorySinkContext(self.config)
        self.task = SqsSinkTask()
        self.task.initialize(self.context)
        self.task.start(self.config)

    def put(self, *records: SinkRecord) -> None:
        put_until_taken(self.task, self.context, records)

    @property
    def reasons(self) -> list[str]:
        return [str(error) for _record, error in self.context.reported]


@pytest.fixture
def start(server: AwsServer) -> Iterator[Callable[..., Running]]:
    made: list[Running] = []

    def start(queue: str, **more: str) -> Running:
        made.append(Running(server, queue, **more))
        return made[-1]

    yield start
    for each in made:
        each.task.stop()


Start = Callable[..., Running]


def record(offset: int, value: Any, key: Any = None, **more: Any) -> SinkRecord:
    return SinkRecord("t", 0, offset, value, None, key, None, **more)


def records(low: int, high: int, key: Any = None) -> list[SinkRecord]:
    return [record(number, str(number), key) for number in range(low, high)]


def bodies(server: AwsServer, queue: str) -> list[str]:
    return [str(each["Body"]) for each in server.take(queue)]


def numbers(server: AwsServer, queue: str) -> list[int]:
    return sorted(map(int, bodies(server, queue)))


def test_values_are_bodies_and_headers_attributes(start: Start, server: AwsServer, queue: str) -> None:
    headers = (
        Header("text", "ä"),
        Header("n", 7),
        Header("raw", b"\xff"),
        Header("sqs.queue", "x"),
        Header("sqs.receive.count", 1),
    )
    start(queue).put(
        record(0, "ä", headers=headers), *(record(1 + at, each) for at, each in enumerate([7, True, Decimal("1.10")]))
    )
    start(queue, sqs_headers_enabled="false").put(record(9, b"plain", headers=headers))
    found = {each["Body"]: each for each in server.take(queue)}
    assert set(found) == {"ä", "7", "true", "1.10", "plain"}
    given = {name: each.get("StringValue", each.get("BinaryValue")) for name, each in found["ä"]["MessageAttributes"].items()}
    assert given == {"text": "ä", "n": "7", "raw": b"\xff"}
    assert "MessageAttributes" not in found["plain"]


def test_requests_have_ten_messages_and_no_more_bytes_than_sqs_takes(start: Start, server: AwsServer, queue: str) -> None:
    sink = start(queue)
    sink.put(*records(0, 25))
    assert sorted(server.requests("SendMessageBatch")) == [5, 10, 10]
    assert numbers(server, queue) == list(range(25))
    server.ask("clear")
    sink.put(*(record(number, "x" * 500_000) for number in range(3)))
    assert sorted(server.requests("SendMessageBatch")) == [1, 2]
    assert not sink.reasons


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (record(1, None), "has no value.*sqs.null.values=ignore"),
        (record(1, ""), "is empty"),
        (record(1, "\x00"), "XML"),
        (record(1, b"\xff"), "whose messages are texts"),
        (record(1, {"a": 1}), "no text, bytes or number, but dict"),
        (record(1, "x" * 1_048_577), "has 1048577 bytes, and the queue takes 1048576"),
        (record(1, "a", headers=(Header("a b", "1"),)), "cannot be an attribute"),
        (record(1, "a", headers=(Header("AWS.x", "1"),)), "cannot be an attribute"),
        (record(1, "a", headers=(Header("a", ""),)), "header 'a' .* is empty"),
        (record(1, "a", headers=tuple(Header(f"h{number}", "1") for number in range(11))), "11 headers"),
    ],
)
def test_a_record_that_no_message_can_be_is_reported(
    start: Start, server: AwsServer, queue: str, bad: SinkRecord, why: str
) -> None:
    sink = start(queue)
    sink.put(record(0, "0"), bad, record(2, "2"))
    assert numbers(server, queue) == [0, 2]
    [reason] = sink.reasons
    assert re.search(why, reason), reason
    assert "t-0 at offset 1" in reason


def test_records_without_a_value_may_be_left_out(start: Start, server: AwsServer, queue: str) -> None:
    sink = start(queue, sqs_null_values="ignore")
    sink.put(record(0, "0"), record(1, None), record(2, "2"))
    assert (numbers(server, queue), sink.reasons) == ([0, 2], [])


def test_an_entry_that_sqs_refuses_for_good_is_a_bad_record(start: Start, server: AwsServer, queue: str) -> None:
    server.fail("SendMessageBatch", "InvalidMessageContents", having='"5"', sender=True)
    sink = start(queue)
    sink.put(*records(0, 10))
    assert numbers(server, queue) == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    assert ["t-0 at offset 5 was refused: InvalidMessageContents" in each for each in sink.reasons] == [True]


def test_an_entry_that_sqs_does_not_take_now_is_sent_again_alone(start: Start, server: AwsServer, queue: str) -> None:
    server.fail("SendMessageBatch", "InternalError", items=[1, 7])
    sink = start(queue)
    sink.put(*records(0, 10))
    assert numbers(server, queue) == list(range(10))
    assert (server.requests("SendMessageBatch"), sink.reasons) == ([10, 2], [])


def test_a_request_that_is_refused_because_of_one_message_is_sent_one_by_one(start: Start, server: AwsServer, queue: str) -> None:
    server.sqs.set_queue_attributes(QueueUrl=queue, Attributes={"MaximumMessageSize": "1024"})
    sink = start(queue)
    sink.put(record(0, "0"), record(1, "x" * 2000), record(2, "2"))  # the task does not know the queue's limit yet
    assert numbers(server, queue) == [0, 2]
    [reason] = sink.reasons
    assert "t-0 at offset 1 was refused" in reason
    sink.put(record(3, "x" * 2000))
    assert "the queue takes 1024" in sink.reasons[1]


def test_the_order_of_groups_is_kept_when_a_request_fails_in_part(start: Start, server: AwsServer, groups: str) -> None:
    server.fail("SendMessageBatch", "InternalError", having='"a3"', times=2)
    server.fail("SendMessageBatch", "RequestThrottled", having='"b5"')
    sink = start(groups)
    made = [record(2 * number + at, f"{key}{number}", key) for number in range(12) for at, key in enumerate("ab")]
    sink.put(*made)
    found = server.take(groups)
    for key in "ab":
        assert [each["Body"] for each in found if each["Attributes"]["MessageGroupId"] == key] == [
            f"{key}{number}" for number in range(12)
        ]
    assert {each["Attributes"]["MessageDeduplicationId"] for each in found} == {f"n-t-0-{number}" for number in range(24)}


def test_a_request_has_several_messages_of_a_group_if_order_is_not_wanted(start: Start, server: AwsServer, groups: str) -> None:
    start(groups, sqs_ordered="false").put(*records(0, 20, "a"))
    assert server.requests("SendMessageBatch") == [10, 10]
    server.ask("clear")
    start(groups).put(*records(20, 25, "a"))
    assert server.requests("SendMessageBatch") == [1] * 5
    assert numbers(server, groups) == list(range(25))


def test_groups_are_keys_or_partitions(start: Start, server: AwsServer, groups: str) -> None:
    start(groups).put(record(0, "0", "k"), record(1, "1"), record(2, "2", "ä b"))
    start(groups, sqs_message_group="partition").put(record(3, "3", "k"))
    found = {each["Body"]: each["Attributes"]["MessageGroupId"] for each in server.take(groups)}
    assert (found["0"], found["1"], found["3"]) == ("k", "t-0", "t-0")
    assert len(found["2"]) == 64, "the hash of a key that is no group"


def test_a_fifo_queue_drops_repeats(start: Start, server: AwsServer, groups: str) -> None:
    start(groups).put(*records(0, 5, "k"))
    start(groups).put(*records(3, 8, "k"))
    assert numbers(server, groups) == list(range(8))


def test_several_records_of_one_message_are_all_sent(start: Start, server: AwsServer, groups: str) -> None:
    start(groups).put(record(0, "1", "k"), record(0, "2", "k"), record(1, "3", "k"))
    found = server.take(groups)
    assert [each["Body"] for each in found] == ["1", "2", "3"]
    assert [each["Attributes"]["MessageDeduplicationId"] for each in found] == ["n-t-0-0", "n-t-0-0-1", "n-t-0-1"]


def test_a_service_that_throttles_or_is_away_is_waited_for(start: Start, server: AwsServer, queue: str) -> None:
    server.fail("SendMessageBatch", "RequestThrottled", times=2)
    server.fail("SendMessageBatch", "InternalFailure", status=500)
    sink = start(queue)
    sink.put(*records(0, 5))
    with TcpProxy(server.port) as proxy:
        away = start(queue.rpartition("/")[2], sqs_endpoint_url=f"http://127.0.0.1:{proxy.port}")
        proxy.drop()
        with pytest.raises(RetriableError, match="Amazon SQS at http://127"):
            away.task.put(records(5, 8))
        proxy.restore()
        away.put(*records(5, 8))
    assert numbers(server, queue) == list(range(8))


def test_a_service_that_stays_away_ends_the_task(start: Start, server: AwsServer, queue: str) -> None:
    sink = start(queue, sqs_endpoint_url="http://127.0.0.1:9", sluiceway_unreachable_timeout_ms="1")
    with pytest.raises(ConnectError, match=r"sluiceway\.unreachable\.timeout\.ms"):
        sink.put(record(0, "0"))


def test_a_queue_that_does_not_exist_is_an_error_of_its_key(start: Start, server: AwsServer, queue: str) -> None:
    with pytest.raises(ConfigError, match=r"nowhere for configuration sqs\.url: is no queue"):
        start("nowhere").put(record(0, "0"))
    found = SqsSinkConnector.validate({**server.config("sqs"), "sqs.url": "nowhere"})
    assert [name for name, each in found.items() if each.errors] == ["sqs.url"]
    assert not any(each.errors for each in SqsSinkConnector.validate({**server.config("sqs"), "sqs.url": queue}).values())


class TestContract(SinkConnectorContract):
    connector_class = SqsSinkConnector

    @pytest.fixture
    def config(self, server: AwsServer, queue: str) -> dict[str, str]:
        return {**server.config("sqs"), "sqs.url": queue}
