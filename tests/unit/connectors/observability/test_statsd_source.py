"""The StatsD source with real sockets: lines by UDP and TCP, bad lines, drops, intervals, and the end."""

from __future__ import annotations

import logging
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from sluiceway.api import ExactlyOnceSupport
from sluiceway.connectors.listening.keys import bound_socket
from sluiceway.connectors.observability import StatsdSourceConnector, statsd_listener
from sluiceway.connectors.observability import statsd as module
from sluiceway.connectors.observability.statsd import StatsdSourceTask
from sluiceway.connectors.observability.statsd_listener import Lines, StatsdListener
from sluiceway.errors import ConfigError, ConnectError, DataError
from sluiceway.stack.ports import free_port
from sluiceway.testing import SourceConnectorContract
from support.eventually import LIMIT, eventually
from support.listening_sources import HOST, Running, packets, statsd


def connected(source: Running) -> socket.socket:
    return socket.create_connection((HOST, source.port), LIMIT)


def listener(source: Running) -> StatsdListener:
    assert isinstance(source.task, StatsdSourceTask)
    found = source.task._listener
    assert found is not None
    return found


def until(source: Running, condition: Callable[[], bool]) -> None:
    def polled() -> bool:
        source.poll()
        return condition()

    eventually(polled)


def test_lines_of_packets_are_records() -> None:
    with statsd() as source:
        packets(source.port, b"a:1|c|@0.5|#x:y\nb:+2|g\r\n\n \n", b"c:3|ms")
        counter, gauge, timer = source.polled(3)
        assert (source.metric("packets"), source.metric("lines"), source.metric("lines-waiting")) == (2, 3, 0)
    assert (counter["name"], counter["type"], counter["value"], counter["sample_rate"]) == ("a", "counter", 1.0, 0.5)
    assert (counter["labels"], counter["temporality"]) == ({"x": "y"}, "delta")
    assert (gauge["value"], gauge["temporality"], timer["unit"]) == (2.0, "delta", "ms")
    record = source.records[0]
    assert (record.topic, record.key, record.source_partition, record.source_offset) == ("t", 'a{x="y"}', None, None)
    assert record.timestamp == counter["timestamp"]


def test_a_time_in_the_future_is_not_that_of_the_record() -> None:
    with statsd() as source:
        packets(source.port, b"a:1|c|T4000000000", b"b:1|c|T1600000000")
        future, past = source.polled(2)
    assert (future["timestamp"], past["timestamp"]) == (4_000_000_000_000, 1_600_000_000_000)
    assert source.records[0].timestamp is not None
    assert source.records[0].timestamp < future["timestamp"]
    assert source.records[1].timestamp == past["timestamp"]


@pytest.mark.parametrize("protocol", ["tcp", "both"])
def test_lines_of_connections_are_records(protocol: str) -> None:
    with statsd(protocol=protocol) as source:
        with connected(source) as one, connected(source) as other:
            one.sendall(b"a:1|c\nb:")
            source.polled(1)
            other.sendall(b"c:3|c\n")
            source.polled(2)
            one.sendall(b"2|c\n\nd:4|c")
            source.polled(3)
        source.polled(4)  # the end of a connection ends its last line
        if protocol == "both":
            packets(source.port, b"e:5|c")
            source.polled(5)
    assert [value["name"] for value in source.values()][:4] == ["a", "c", "b", "d"]


def test_a_bad_line_is_reported_and_the_others_are_records() -> None:
    with statsd(errors_tolerance="all") as source:
        packets(source.port, b"a:1|c\nbad\nb:2|c")
        source.polled(2)
        [(record, error)] = source.context.reported
        assert source.metric("lines-bad") == 1
    assert (record.value, record.topic, record.source_offset) == (b"bad", "t", None)
    assert str(error) == "The line 'bad' cannot be read: it is not of the form name:value|type"


def test_a_bad_line_that_is_not_tolerated_ends_the_task_after_the_records_before_it() -> None:
    with statsd() as source:
        packets(source.port, b"a:1|c\nbad\nb:2|c")
        source.polled(1)
        for _ in range(2):
            with pytest.raises(DataError, match="The line 'bad' cannot be read"):
                source.poll()
        packets(source.port, b"c:1|c")
        source.task.stop()
        assert source.metric("lines-lost") >= 1, "b, and c if it came in time"


def test_a_line_that_is_too_long_is_bad_and_ends_its_connection() -> None:
    with statsd(protocol="tcp", errors_tolerance="all") as source:
        with connected(source) as client:
            client.sendall(b"a:1|c\n" + b"x" * 70_000)
            source.polled(1)
            eventually(lambda: source.poll() or source.context.reported)
            assert client.recv(1) == b""
        [(_, error)] = source.context.reported
    assert "it has more than 65535 bytes" in str(error)


def test_packets_are_dropped_when_the_buffer_is_full_and_counted_exactly(caplog: pytest.LogCaptureFixture) -> None:
    sent = [b"a:1|c\nb:1|c\nc:1|c", b"d:1|c\ne:1|c", b"f:1|c\ng:1|c", b"h:1|c"]
    with statsd(buffer_lines="6") as source:
        packets(source.port, *sent)
        eventually(lambda: source.metric("packets") == 4)
        assert (source.metric("lines-waiting"), source.metric("lines-dropped")) == (6, 2)
        values = source.polled(6)
        packets(source.port, *sent)
        eventually(lambda: source.metric("packets") == 8)
        source.task.stop()
        assert (source.metric("lines-dropped"), source.metric("lines-lost")) == (4, 6)
    assert [value["name"] for value in values] == list("abcdeh")
    told = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert [each.partition(":")[0] for each in told] == [
        "2 lines are dropped",
        "6 lines are lost",
        "2 lines are dropped",
    ]


def test_a_packet_that_is_larger_than_the_buffer_is_not_lost_as_a_whole() -> None:
    with statsd(buffer_lines="2") as source:
        packets(source.port, b"a:1|c\nb:1|c\nc:1|c")
        eventually(lambda: source.metric("packets") == 1)
        assert (source.metric("lines-waiting"), source.metric("lines-dropped")) == (2, 1)


def test_what_the_system_drops_is_counted(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """The listener's thread is kept from reading while more comes than the system holds."""
    held, go_on = threading.Event(), threading.Event()
    real = StatsdListener._batches

    def slow(self: StatsdListener, lines: list[bytes]) -> Iterator[Lines]:
        held.set()
        go_on.wait(LIMIT)
        return real(self, lines)

    monkeypatch.setattr(StatsdListener, "_batches", slow)
    with statsd(udp_receive_bytes="4096") as source:
        packets(source.port, b"a:1|c")
        assert held.wait(LIMIT)
        packets(source.port, *[b"b:1|c"] * 1000)
        go_on.set()
        until(source, lambda: source.metric("packets") > 1 and source.metric("lines-waiting") == 0)
        packets(source.port, b"c:1|c")
        until(source, lambda: any(record.value["name"] == "c" for record in source.records))
        dropped = source.metric("packets-dropped")
        assert dropped > 0
        assert source.metric("packets") + dropped == 1002
        assert len(source.records) + dropped == 1002
        source.poll()
    assert any(f"{dropped} packets are dropped by the operating system" in each.getMessage() for each in caplog.records)


def test_the_count_of_the_system_goes_on_and_begins_again_after_32_bits() -> None:
    with statsd() as source:
        for total, dropped in ((5, 5), (7, 7), (2**32 - 1, 2**32 - 1), (1, 2**32 + 1)):
            listener(source)._system_dropped(total)
            assert source.metric("packets-dropped") == dropped


def test_a_connection_waits_for_room_and_loses_nothing() -> None:
    with statsd(protocol="tcp", buffer_lines="10") as source, connected(source) as client:
        sent = [f"n{number}:1|c" for number in range(95)]
        client.sendall("".join(f"{line}\n" for line in sent).encode())
        eventually(lambda: source.metric("lines-waiting") == 10)
        while len(source.records) < len(sent):
            source.poll()
        assert source.metric("lines-dropped") == 0
    assert [value["name"] for value in source.values()] == [line.partition(":")[0] for line in sent]


def test_connections_above_the_limit_are_closed() -> None:
    with statsd(protocol="tcp", max_connections="1") as source:
        with connected(source) as one:
            one.sendall(b"a:1|c\n")
            source.polled(1)
            with connected(source) as other:
                assert other.recv(1) == b""
            assert source.metric("connections-refused") == 1
        eventually(lambda: not listener(source)._clients)
        with connected(source) as next_one:
            next_one.sendall(b"b:1|c\n")
            source.polled(2)


def test_a_connection_that_is_reset_leaves_the_others() -> None:
    with statsd(protocol="tcp") as source, connected(source) as other:
        with connected(source) as broken:
            broken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            broken.sendall(b"a:1|c\n")
            source.polled(1)
        other.sendall(b"b:1|c\n")
        source.polled(2)


def test_an_interval_is_one_record_for_each_series(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module, "_now", lambda: int(now[0] * 1000))
    with statsd(flush_ms="10000") as source:
        packets(source.port, b"a:1|c|@0.5\na:3|c\nb:5|ms\nc:7|g\nd:9|c|T5")
        eventually(lambda: source.metric("lines-waiting") == 5)
        now[0] += 9.9
        assert [record.value["name"] for record in source.poll()] == ["d"], "the client has aggregated it itself"
        assert source.poll() == []
        now[0] += 0.1
        counter, timer, gauge = (dict(record.value) for record in source.poll())
        assert source.poll() == []
        packets(source.port, b"c:+1|g")
        eventually(lambda: source.metric("lines-waiting") == 1)
        now[0] += 10
        source.poll()
    assert (counter["value"], counter["start_timestamp"], counter["timestamp"]) == (5.0, 1_000_000, 1_010_000)
    assert (timer["value"], timer["histogram"]["count"], timer["histogram"]["max"]) == (5.0, 1.0, 5.0)
    assert (gauge["value"], source.values()[-1]["value"]) == (7.0, 8.0)
    assert source.records[-1].timestamp == 1_020_000


def test_lines_of_too_many_series_are_dropped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    with statsd(flush_ms="3600000", flush_series="2") as source:
        packets(source.port, b"a:1|c\nb:1|c\nc:1|c\nd:1:2|c\na:1|c")
        eventually(lambda: source.metric("lines-waiting") == 5)
        source.poll()
        assert source.metric("lines-dropped") == 3
        source.task.stop()
        assert source.metric("lines-lost") == 3, "those of the interval"
    assert "3 lines are dropped" in caplog.text
    assert "3 lines are lost" in caplog.text


def test_the_wait_of_a_poll_ends_with_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    now, waits = [1000.0], list[float]()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with statsd(flush_ms="1500") as source:
        monkeypatch.setattr(source.context, "wait", waits.append)
        for _ in range(2):
            source.poll()
            now[0] += 1
    assert waits == [1.0, 0.5]


@pytest.mark.parametrize("flush", ["0", "3600000"])
def test_what_was_received_is_records_before_the_task_stops(flush: str) -> None:
    with statsd(flush_ms=flush) as source:
        packets(source.port, b"a:1|c")
        eventually(lambda: source.metric("lines-waiting") == 1)
        source.poll()
        packets(source.port, b"a:2|c\nb:7|g")
        eventually(lambda: source.metric("lines-waiting") == 2)
        drained = [dict(record.value) for record in source.task.drain() or ()]
        source.task.stop()
        assert source.metric("lines-lost") == 0
    assert [(each["name"], each["value"]) for each in drained] == [("a", 2.0 if flush == "0" else 3.0), ("b", 7.0)]
    if flush != "0":
        assert drained[0]["start_timestamp"] <= drained[0]["timestamp"] < drained[0]["start_timestamp"] + 3_600_000


def test_the_end_closes_connections_and_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    with statsd(protocol="both", buffer_lines="2") as source, connected(source) as client:
        client.sendall(b"a:1|c\nb:1|c\nc:1|c\nd:1|c\n")
        eventually(lambda: source.metric("lines-waiting") == 2)
        port = source.port
        source.task.stop()
        source.task.stop()
        assert [each.name for each in threading.enumerate() if each.name == "statsd-listener"] == []
        assert client.recv(1) == b""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind((HOST, port))
        assert source.metric("lines-lost") == 2
        assert source.poll() == []
    assert [each.getMessage() for each in caplog.records if "lost" in each.getMessage()] == [
        "2 lines are lost: they were received, and the task has ended before they were records"
    ]


def test_a_port_that_only_one_protocol_can_have_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    bind, taken = bound_socket, list[int]()

    def bind_once(host: str, port: int, kind: socket.SocketKind, key: str) -> socket.socket:
        if port and not taken:
            taken.append(port)
            raise ConnectError("Address already in use")
        return bind(host, port, kind, key)

    monkeypatch.setattr(statsd_listener, "bound_socket", bind_once)
    with statsd(protocol="both") as source, connected(source) as client:
        client.sendall(b"a:1|c\n")
        eventually(source.poll)
    assert taken


@pytest.mark.parametrize("protocol", ["udp", "tcp"])
def test_a_port_that_is_in_use_is_said(protocol: str) -> None:
    with statsd(protocol=protocol) as source:
        port = str(source.port)
        wanted = f"Cannot listen on {HOST}:{port}: Address already in use"
        with pytest.raises(ConnectError, match=wanted), statsd(protocol="both", port=port):
            pass


def test_an_address_of_ipv6() -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6")
    with statsd(host="::1") as source, socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as client:
        client.sendto(b"a:1|c", ("::1", source.port))
        source.polled(1)


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"statsd.protocol": "sctp"}, "statsd.protocol"),
        ({"statsd.flush.ms": "-1"}, "statsd.flush.ms"),
        ({"statsd.buffer.lines": "0"}, "statsd.buffer.lines"),
        ({"topic": ""}, "topic"),
    ],
)
def test_bad_configs_are_refused(config: dict[str, str], key: str) -> None:
    given = {"name": "n", "topic": "t", **config}
    assert {name for name, each in StatsdSourceConnector.validate(given).items() if each.errors} == {key}
    with pytest.raises(ConfigError):
        StatsdSourceConnector().start(given)


def test_one_task_listens_without_exactly_once_and_offsets() -> None:
    connector = StatsdSourceConnector()
    config = {"topic": "t"}
    connector.start(config)
    assert connector.task_configs(5) == [config]
    assert connector.exactly_once_support(config) is ExactlyOnceSupport.UNSUPPORTED
    assert "listens" in connector.start_effects(config)
    assert "cannot be asked for again" in connector.position_elsewhere(config)


class TestContract(SourceConnectorContract):
    connector_class = StatsdSourceConnector
    record_count = 2
    records_within = poll_within = LIMIT
    resumable = False

    @pytest.fixture
    def config(self) -> Iterator[dict[str, str]]:
        """A client sends again and again, also while no task listens."""
        port, ended = free_port(), threading.Event()

        def send() -> None:
            while not ended.wait(0.02):
                packets(port, b"a:1|c\nb:2|c")

        sender = threading.Thread(target=send)
        sender.start()
        yield {"topic": "t", "statsd.port": str(port)}
        ended.set()
        sender.join()
