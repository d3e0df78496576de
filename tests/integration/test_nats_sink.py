"""The sink for JetStream on a real server: subjects, headers, repeats, and streams and servers in trouble."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from sluiceway.api import SinkRecord
from sluiceway.connectors.nats import NatsSinkConnector
from sluiceway.connectors.nats.sink import NatsSinkTask
from sluiceway.data import Header
from sluiceway.errors import ConnectError, RetriableError
from sluiceway.runtime.memory import MemorySinkContext
from sluiceway.testing import SinkConnectorContract
from support.nats_server import NatsServer
from support.sink_tasks import put_until_taken

USERS = """
authorization {{
  users = [
    {{ user: all, password: "s3cret" }}
    {{ user: few, password: "s3cret", permissions {{ publish: ["{0}.open.>", "$JS.API.>"], subscribe: "_INBOX.>" }} }}
  ]
}}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[NatsServer]:
    with NatsServer() as server:
        yield server


@pytest.fixture
def stream(server: NatsServer, unique: Callable[[str], str]) -> str:
    name = unique("stream")
    server.create(name)
    return name


class Running:
    """A task without Kafka."""

    def __init__(self, server: NatsServer, subject: str, **more: str) -> None:
        given = {name.replace("_", "."): value for name, value in more.items()}
        self.config = {"name": "n", **server.config, "nats.subject": subject, **given}
        self.context = MemorySinkContext(self.config)
        self.task = NatsSinkTask()
        self.task.initialize(self.context)
        self.task.start(self.config)

    def put(self, *records: SinkRecord) -> None:
        put_until_taken(self.task, self.context, records)

    @property
    def reasons(self) -> list[str]:
        return [str(error) for _record, error in self.context.reported]

    @property
    def connections(self) -> float:
        return self.task.metrics()["connections-opened"]


@pytest.fixture
def start(server: NatsServer, stream: str) -> Iterator[Callable[..., Running]]:
    made: list[Running] = []

    def start(subject: str = stream, on: NatsServer = server, **more: str) -> Running:
        made.append(Running(on, subject, **more))
        return made[-1]

    yield start
    for each in made:
        each.task.stop()


Start = Callable[..., Running]


def record(offset: int, value: Any, key: Any = None, **more: Any) -> SinkRecord:
    return SinkRecord("t", 0, offset, value, None, key, None, **more)


def records(low: int, high: int) -> list[SinkRecord]:
    return [record(number, str(number)) for number in range(low, high)]


def payloads(server: NatsServer, stream: str) -> list[bytes]:
    return [message.data for message in server.take(stream)]


def texts(low: int, high: int) -> list[bytes]:
    return [b"%d" % number for number in range(low, high)]


def test_values_are_payloads_and_ids_are_of_the_records(start: Start, server: NatsServer, stream: str) -> None:
    start().put(*(record(number, value) for number, value in enumerate(["ä", b"\xff", 7, True, 1.5, Decimal("1.10"), ""])))
    found = server.take(stream)
    assert [each.data for each in found] == ["ä".encode(), b"\xff", b"7", b"true", b"1.5", b"1.10", b""]
    assert [each.headers.pairs for each in found] == [[("Nats-Msg-Id", f"n-t-0-{number}")] for number in range(7)]


def test_headers_are_carried(start: Start, server: NatsServer, stream: str) -> None:
    headers = (
        *(Header("n", 7), Header("text", "ä b"), Header("raw", b"abc"), Header("yes", True), Header("none", None)),
        *(
            Header("twice", "1"),
            Header("twice", "2"),
            Header("list", [1, 2]),
            Header("Nats-Rollup", "all"),
            Header("nats-ttl", "1s"),
        ),
        *(Header("nats.stream", "S"), Header("nats.sequence", 1), Header("nats.deliveries", 1), Header("nats.own", "x")),
    )
    start().put(record(0, "a", headers=headers))
    start(nats_headers_enabled="false", nats_message_id="${topic}/${partition}/${offset}").put(record(1, "b", headers=headers))
    first, second = server.take(stream)
    assert first.headers.pairs == [
        *(("Nats-Msg-Id", "n-t-0-0"), ("n", "7"), ("text", "ä b"), ("raw", "abc"), ("yes", "true"), ("none", "")),
        *(("twice", "1"), ("twice", "2"), ("list", "[1, 2]"), ("nats.own", "x")),
    ]
    assert second.headers.pairs == [("Nats-Msg-Id", "t/0/1")]


def test_the_subject_is_of_the_record(start: Start, server: NatsServer, stream: str) -> None:
    start(stream + ".${topic}.p${partition}.${key}").put(
        record(0, "a", key="x"), record(1, "b", key=7), record(2, "c", key="y.z")
    )
    assert [each.subject for each in server.take(stream)] == [f"{stream}.t.p0.{key}" for key in ("x", "7", "y.z")]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (record(1, None, "k"), "has no value"),
        (record(1, {"a": 1}, "k"), "no text, bytes or number, but dict"),
        (record(1, "\ud800", "k"), "cannot be published"),
        (record(1, "a"), r"nats.subject has ${key}, and t-0 at offset 1 has no key"),
        (record(1, "a", {"a": 1}), "The key of t-0 at offset 1"),
        (record(1, "a", b"\xff"), "is not UTF-8"),
        *(
            (record(1, "a", key), "Check nats.subject")
            for key in ("", "a b", "a..b", "*", "a.>", "a\r\nPUB b 0", "x" * 3000, ".a")
        ),
        *(
            (record(1, "a", "k", headers=(Header(*header),)), "cannot be one of NATS")
            for header in [("a b", "1"), ("", "1"), ("ä", "1"), ("a:", "1"), ("a", "1\r\n2"), ("a", " 1"), ("a", b"\xff")]
        ),
        (record(1, "a" * 1_048_576, "k"), "are more than the server's 1048576"),
        (record(1, "a" * 1_048_500, "k", headers=(Header("x", "y" * 100),)), "are more than the server's 1048576"),
    ],
)
def test_records_that_cannot_be_published_are_reported(
    start: Start, server: NatsServer, stream: str, bad: SinkRecord, why: str
) -> None:
    sink = start(stream + ".${key}")
    sink.put(record(0, "first", "k"), bad, record(2, "last", "k"))
    [reason] = sink.reasons
    assert why in reason
    assert payloads(server, stream) == [b"first", b"last"]
    assert sink.connections == 1


@pytest.mark.parametrize("key", ["$JS.API.STREAM.DELETE.{}", "$SYS.REQ", "$JS.ACK.{}.c.1.1.1.1.1"])
def test_the_servers_own_subjects_are_refused(start: Start, server: NatsServer, stream: str, key: str) -> None:
    sink = start("${key}")
    sink.put(record(0, "", key.format(stream)), record(1, "b", stream))
    assert "is the server's own" in sink.reasons[0]
    assert payloads(server, stream) == [b"b"]


def test_a_value_of_a_bucket_can_be_written(start: Start, server: NatsServer, unique: Callable[[str], str]) -> None:
    bucket = unique("bucket")
    server.create(f"KV_{bucket}", f"$KV.{bucket}.>", max_msgs_per_subject=1)
    start(f"$KV.{bucket}." + "${key}").put(record(0, "1", "a"), record(1, "2", "b"), record(2, "3", "a"))
    assert payloads(server, f"KV_{bucket}") == [b"2", b"3"]


def test_a_subject_that_no_stream_takes_is_a_bad_record(start: Start, server: NatsServer, stream: str) -> None:
    sink = start("${key}")
    sink.put(*(record(number, str(number), stream if number % 2 else "nowhere.x") for number in range(100)))
    assert payloads(server, stream) == [b"%d" % number for number in range(1, 100, 2)]
    assert {bad.kafka_offset for bad, _error in sink.context.reported} == set(range(0, 100, 2))
    assert "no stream takes the subject nowhere.x. Check nats.subject" in sink.reasons[0]


def test_without_a_dead_letter_queue_such_a_record_fails_the_task_and_is_named_before(server: NatsServer) -> None:
    task, config = NatsSinkTask(), {"name": "n", **server.config, "nats.subject": "nowhere"}
    task.initialize(MemorySinkContext(config, reports=False))
    task.start(config)
    try:
        with pytest.raises(ConnectError, match=r"no stream takes the subject nowhere\. Check nats\.subject") as error:
            task.put([record(0, "a")])
        assert not isinstance(error.value, RetriableError)
    finally:
        task.stop()
    found = NatsSinkConnector.validate(config)
    assert [name for name, each in found.items() if each.errors] == ["nats.subject"]


@pytest.mark.parametrize("window", ["1", "7", "1000"])
def test_many_records_are_in_the_stream_in_their_order(start: Start, server: NatsServer, stream: str, window: str) -> None:
    count = 2500 if window == "1000" else 200
    sink = start(nats_publish_window=window)
    sink.put(*records(0, count))
    assert payloads(server, stream) == texts(0, count)
    assert sink.connections == 1


def test_repeats_are_dropped_by_the_stream(start: Start, server: NatsServer, stream: str) -> None:
    for first in (0, 50, 20):
        start().put(*records(first, first + 100))
    assert payloads(server, stream) == texts(0, 150)


def test_connectors_do_not_drop_each_others_records(start: Start, server: NatsServer, stream: str) -> None:
    start(f"{stream}.a").put(*records(0, 10))
    start(f"{stream}.b", name="other").put(*records(0, 10))
    assert server.count(stream) == 20


def test_several_records_of_one_message_are_all_written(start: Start, server: NatsServer, stream: str) -> None:
    made = [record(number // 3, str(number)) for number in range(9)]
    start().put(*made)
    start().put(*made)
    assert payloads(server, stream) == texts(0, 9)


def test_a_stream_that_is_full_is_waited_for(start: Start, server: NatsServer, unique: Callable[[str], str]) -> None:
    stream = unique("full")
    server.create(stream, max_msgs=5, discard="new")
    sink, given = start(stream, nats_publish_window="1"), records(0, 8)
    with pytest.raises(RetriableError, match="maximum messages exceeded"):
        sink.task.put(given)
    found = payloads(server, stream)
    server.purge(stream)
    sink.put(*given)
    assert found + payloads(server, stream) == texts(0, 8)


def test_a_message_that_the_stream_does_not_take_is_a_bad_record(
    start: Start, server: NatsServer, unique: Callable[[str], str]
) -> None:
    stream = unique("small")
    server.create(stream, max_msg_size=200)
    sink = start(stream)
    sink.put(record(0, "a"), record(1, "b" * 300), record(2, "c"))
    assert payloads(server, stream) == [b"a", b"c"]
    assert "message size exceeds maximum allowed" in sink.reasons[0]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_that_restarts_is_waited_for_and_gets_each_message_once(
    start: Start, stream: str, number: signal.Signals
) -> None:
    with NatsServer() as own:
        own.create(stream)
        sink = start(stream, own, nats_publish_window="50")
        sink.put(*records(0, 500))
        own.end(number)
        with pytest.raises(RetriableError, match=r"NATS at 127\.0\.0\.1"):
            sink.task.put(records(500, 1000))
        own.start()
        sink.put(*records(500, 1000))
        assert payloads(own, stream) == texts(0, 1000)


def test_a_server_that_does_not_answer_is_waited_for(start: Start, stream: str) -> None:
    with NatsServer() as own:
        own.create(stream)
        sink = start(stream, own, nats_timeout_ms="500")
        sink.put(*records(0, 10))
        own.send(signal.SIGSTOP)
        try:
            with pytest.raises(RetriableError, match="has acknowledged no message"):
                sink.task.put(records(10, 300))
        finally:
            own.send(signal.SIGCONT)
        sink.put(*records(10, 300))
        assert payloads(own, stream) == texts(0, 300)
        assert sink.connections > 1


def test_a_server_that_stays_away_fails_the_task(start: Start) -> None:
    sink = start("a", nats_servers="nats://127.0.0.1:9", sluiceway_unreachable_timeout_ms="0")
    with pytest.raises(ConnectError, match=r"NATS at 127\.0\.0\.1:9.*more than sluiceway\.unreachable") as error:
        sink.task.put([record(0, "a")])
    assert not isinstance(error.value, RetriableError)


def test_a_subject_that_the_user_may_not_publish_to_is_a_bad_record(start: Start, stream: str) -> None:
    with NatsServer(USERS.format(stream), user="all", password="s3cret") as own:
        own.create(stream)
        sink = start(stream + ".${key}", own, nats_user="few", nats_password="s3cret")
        sink.put(*(record(number, str(number), "Shut" if number % 2 else "open.x") for number in range(20)))
        assert payloads(own, stream) == [b"%d" % number for number in range(0, 20, 2)]
        assert f"the user may not publish to {stream}.Shut" in sink.reasons[0]
        assert len(sink.reasons) == 10


class TestContract(SinkConnectorContract):
    connector_class = NatsSinkConnector

    @pytest.fixture
    def config(self, server: NatsServer, stream: str) -> dict[str, str]:
        return {**server.config, "nats.subject": stream}
