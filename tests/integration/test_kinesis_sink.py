"""The sink for Kinesis' streams on an imitation: keys, order, and records that fail."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sluiceway.api import SinkRecord
from sluiceway.connectors.aws import KinesisSinkConnector
from sluiceway.connectors.aws.kinesis_sink import KinesisSinkTask
from sluiceway.errors import ConfigError, ConnectError, RetriableError
from sluiceway.runtime.memory import MemorySinkContext
from sluiceway.testing import SinkConnectorContract
from support.aws_server import AwsServer
from support.faults.proxy import TcpProxy
from support.sink_tasks import put_until_taken

THROTTLED = "ProvisionedThroughputExceededException"


@pytest.fixture(scope="module")
def server() -> Iterator[AwsServer]:
    with AwsServer() as server:
        yield server


@pytest.fixture
def stream(server: AwsServer, unique: Callable[[str], str]) -> str:
    server.ask("clear")
    name = unique("stream")
    server.create_stream(name)
    return name


class Running:
    """A task without Kafka."""

    def __init__(self, server: AwsServer, stream: str, **more: str) -> None:
        given = {name.replace("_", "."): value for name, value in more.items()}
        self.config = {"name": "n", **server.config("kinesis"), "kinesis.stream": stream, **given}
        self.context = MemorySinkContext(self.config)
        self.task = KinesisSinkTask()
        self.task.initialize(self.context)
        self.task.start(self.config)

    def put(self, *records: SinkRecord) -> None:
        put_until_taken(self.task, self.context, records)

    @property
    def reasons(self) -> list[str]:
        return [str(error) for _record, error in self.context.reported]


@pytest.fixture
def start(server: AwsServer, stream: str) -> Iterator[Callable[..., Running]]:
    made: list[Running] = []

    def start(**more: str) -> Running:
        made.append(Running(server, stream, **more))
        return made[-1]

    yield start
    for each in made:
        each.task.stop()


Start = Callable[..., Running]


def record(offset: int, value: Any, key: Any = None, **more: Any) -> SinkRecord:
    return SinkRecord("t", 0, offset, value, None, key, None, **more)


def found(server: AwsServer, stream: str) -> list[tuple[str, bytes]]:
    """Return the keys and data of the records of a stream of one shard."""
    [records] = server.in_stream(stream).values()
    return [(each["PartitionKey"], each["Data"]) for each in records]


def test_values_are_data_and_keys_are_partition_keys(start: Start, server: AwsServer, stream: str) -> None:
    start().put(record(0, "ä", "k"), record(1, b"\xff", 7), record(2, 3))
    start(kinesis_partition_key="${topic}/${partition}").put(record(3, "x", "k"))
    start(kinesis_partition_key="p-${key}").put(record(4, "y", "k"), record(5, "z"))
    keys = [*(("k", "ä".encode()), ("7", b"\xff"), ("t-0-2", b"3"), ("t/0", b"x")), ("p-k", b"y"), ("p-t-0-5", b"z")]
    assert found(server, stream) == keys


def test_requests_have_as_many_records_and_bytes_as_they_may(start: Start, server: AwsServer, stream: str) -> None:
    start().put(*(record(number, str(number)) for number in range(1100)))
    assert sorted(server.requests("PutRecords")) == [100, 500, 500]
    server.ask("clear")
    start(kinesis_request_records="2").put(*(record(number, str(number)) for number in range(5)))
    assert sorted(server.requests("PutRecords")) == [1, 2, 2]
    server.ask("clear")
    start().put(*(record(number, "x" * 1_000_000) for number in range(7)))
    assert sorted(server.requests("PutRecords")) == [2, 5]
    assert len(found(server, stream)) == 1112


def test_the_order_of_a_key_is_kept_when_records_fail(start: Start, server: AwsServer, stream: str) -> None:
    server.fail("PutRecords", THROTTLED, items=[0], times=2)
    server.fail("PutRecords", "InternalFailure", items=[1])
    server.fail("PutRecords", THROTTLED)
    sink = start()
    sink.put(*(record(3 * number + at, f"{number}", key) for number in range(6) for at, key in enumerate("abc")))
    records = found(server, stream)
    for key in "abc":
        assert [data for each, data in records if each == key] == [b"%d" % number for number in range(6)], key
    assert (server.faults_left(), sink.reasons) == (0, [])


def test_a_request_has_several_records_of_a_key_if_order_is_not_wanted(start: Start, server: AwsServer, stream: str) -> None:
    start(kinesis_ordered="false").put(*(record(number, str(number), "k") for number in range(20)))
    assert server.requests("PutRecords") == [20]
    server.ask("clear")
    start().put(*(record(number, str(number), "k") for number in range(5)))
    assert server.requests("PutRecords") == [1] * 5


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (record(1, None, "k"), "has no value.*kinesis.null.values=ignore"),
        (record(1, {"a": 1}, "k"), "no text, bytes or number, but dict"),
        (record(1, "x", ""), "a partition key of 0 characters"),
        (record(1, "x", "k" * 257), "a partition key of 257 characters"),
        (record(1, "x", b"\xff"), "cannot be put into Kinesis"),
        (record(1, "x" * 1_048_576, "k"), "1048577 bytes|refused"),
    ],
)
def test_a_record_that_kinesis_cannot_have_is_reported(
    start: Start, server: AwsServer, stream: str, bad: SinkRecord, why: str
) -> None:
    sink = start()
    sink.put(record(0, "0"), bad, record(2, "2"))
    assert sorted(data for _key, data in found(server, stream)) == [b"0", b"2"]
    [reason] = sink.reasons
    assert re.search(why, reason), reason
    assert "t-0 at offset 1" in reason


def test_records_without_a_value_are_left_out_or_empty(start: Start, server: AwsServer, stream: str) -> None:
    start(kinesis_null_values="ignore").put(record(0, None, "a"), record(1, "1", "b"))
    start(kinesis_null_values="empty").put(record(2, None, "c"))
    assert found(server, stream) == [("b", b"1"), ("c", b"")]


def test_a_service_that_is_away_is_waited_for(start: Start, server: AwsServer, stream: str) -> None:
    with TcpProxy(server.port) as proxy:
        sink = start(kinesis_endpoint_url=f"http://127.0.0.1:{proxy.port}")
        proxy.drop()
        with pytest.raises(RetriableError, match="Amazon Kinesis at http://127"):
            sink.task.put([record(0, "0")])
        proxy.restore()
        sink.put(record(0, "0"))
    assert len(found(server, stream)) == 1
    away = start(kinesis_endpoint_url="http://127.0.0.1:9", sluiceway_unreachable_timeout_ms="1")
    with pytest.raises(ConnectError, match=r"sluiceway\.unreachable\.timeout\.ms"):
        away.put(record(0, "0"))


def test_a_right_that_is_missing_ends_the_task(start: Start, server: AwsServer, stream: str) -> None:
    server.fail("PutRecords", "AccessDeniedException")
    with pytest.raises(ConnectError, match=r"AccessDenied.*Give the credentials the right") as error:
        start().put(record(0, "0"))
    assert not isinstance(error.value, RetriableError)


def test_a_stream_that_does_not_exist_is_an_error_of_its_key(start: Start, server: AwsServer, stream: str) -> None:
    with pytest.raises(ConfigError, match=r"nowhere for configuration kinesis\.stream: is no stream"):
        start(kinesis_stream="nowhere").put(record(0, "0"))
    config = {**server.config("kinesis"), "kinesis.stream": "nowhere"}
    assert [name for name, each in KinesisSinkConnector.validate(config).items() if each.errors] == ["kinesis.stream"]
    good = {**config, "kinesis.stream": stream}
    assert not any(each.errors for each in KinesisSinkConnector.validate(good).values())


class TestContract(SinkConnectorContract):
    connector_class = KinesisSinkConnector

    @pytest.fixture
    def config(self, server: AwsServer, stream: str) -> dict[str, str]:
        return {**server.config("kinesis"), "kinesis.stream": stream}
