"""The MQTT source and sink on a real broker: what records have, sessions, shared subscriptions, and a broker in trouble."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
from typing import Any

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode

from sluiceway.api import ExactlyOnceSupport, SinkRecord, SourceRecord
from sluiceway.connectors.mqtt import MqttSinkConnector, MqttSourceConnector
from sluiceway.connectors.mqtt.connection import Session
from sluiceway.connectors.mqtt.sink import MqttSinkTask
from sluiceway.connectors.mqtt.source import MqttSourceTask
from sluiceway.errors import ConnectError, RetriableError
from sluiceway.runtime.memory import MemorySinkContext, MemorySourceContext
from sluiceway.testing import SinkConnectorContract, SourceConnectorContract
from support.engine import RunningTask
from support.eventually import LIMIT, eventually
from support.kafka import Kafka
from support.mqtt_peer import Peer
from support.mqtt_server import MqttServer
from support.sink_tasks import put_until_taken

pytestmark = pytest.mark.kafka

BOTH = pytest.mark.parametrize("version", ["5", "3.1.1"])


@pytest.fixture(scope="module")
def server() -> Iterator[MqttServer]:
    with closing(MqttServer()) as server:
        server.start()
        yield server


@pytest.fixture
def topic(unique: Callable[[str], str]) -> str:
    return unique("topic")


@pytest.fixture
def peer(server: MqttServer) -> Iterator[Peer]:
    with closing(Peer(server)) as peer:
        yield peer


def source_config(server: MqttServer, topic: str, **more: str) -> dict[str, str]:
    given = {key.replace("_", "."): value for key, value in more.items()}
    own = {"name": f"source-{topic}", "mqtt.server.uri": server.url, "mqtt.topics": topic, "kafka.topic": "t"}
    return {**own, "connector.class": "MqttSource", **given}


class _Task(MqttSourceTask):
    def start(self, config: Mapping[str, str]) -> None:
        self.subscribed = threading.Event()
        super().start(config)

    def connect(self) -> None:
        super().connect()
        self.subscribed.set()


@contextmanager
def running(config: dict[str, str], task: int = 0) -> Iterator[Any]:
    """A source task without Kafka."""
    connector = MqttSourceConnector()
    connector.start(config)
    given = connector.task_configs(task + 1)[task]
    made: Any = _Task()
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


def subscribed(task: Any) -> None:
    """Wait until the broker knows the task's session and its subscriptions."""
    assert task.subscribed.wait(LIMIT)


def values(records: Sequence[SourceRecord]) -> list[bytes]:
    return [record.value for record in records]


def numbers(low: int, high: int) -> list[bytes]:
    return [b"%d" % number for number in range(low, high)]


# --- The source


@BOTH
def test_a_record_has_the_payload_the_topic_and_what_the_protocol_says(
    server: MqttServer, peer: Peer, topic: str, version: str
) -> None:
    config = source_config(
        server, topic, mqtt_topics=f"{topic}/+/x,{topic}/other/#", kafka_topic="m.${topic}", mqtt_version=version
    )
    with running(config) as task:
        subscribed(task)
        properties: dict[str, Any] = {"ContentType": "text", "CorrelationData": b"7", "UserProperty": [("a", "1"), ("a", "2")]}
        peer.send(f"{topic}/plant/x", b"\xff\x00", qos=2, **properties)
        peer.send(f"{topic}/other/deep/er", b"", qos=0)
        first, second = read(task, 2)
    assert (first.topic, first.key, first.value) == (f"m.{topic}.plant.x", f"{topic}/plant/x", b"\xff\x00")
    assert (second.key, second.value) == (f"{topic}/other/deep/er", b"")
    headers = [(each.key, each.value) for each in first.headers]
    assert headers[0][0] == "mqtt.message.id"
    assert headers[1:4] == [("mqtt.qos", 1), ("mqtt.retained", False), ("mqtt.duplicate", False)]
    own = [("mqtt.content.type", "text"), ("mqtt.correlation.data", b"7"), ("a", "1"), ("a", "2")]
    assert headers[4:] == (own if version == "5" else [])


@BOTH
def test_what_is_not_acknowledged_comes_again_and_the_session_keeps_what_comes_meanwhile(
    server: MqttServer, peer: Peer, topic: str, version: str
) -> None:
    config = source_config(server, topic, mqtt_version=version)
    with running(config) as task:
        subscribed(task)
        peer.send(topic, *numbers(0, 2))
        assert values(read(task, 2)) == numbers(0, 2)
        eventually(lambda: task.metrics()["messages-acknowledged"] == 2)
        peer.send(topic, *numbers(2, 5))
        assert values(read(task, 1, acknowledge=False))[0] == b"2"  # the broker need not send more before that is acknowledged
    peer.send(topic, *numbers(5, 8))
    with running(config) as task:
        again = read(task, 6)
        assert values(again) == numbers(2, 8)
        was_sent = [{each.key: each.value for each in record.headers}["mqtt.duplicate"] for record in again]
        assert (was_sent[0], any(was_sent[3:])) == (True, False)
        eventually(lambda: task.metrics()["messages-held"] == 0)
    with running(config) as task:
        subscribed(task)
        assert not task.poll()


def test_a_dead_broker_is_waited_for_and_loses_nothing(server: MqttServer, topic: str) -> None:
    with closing(Peer(server)) as before, running(source_config(server, topic)) as task:
        subscribed(task)
        before.send(topic, *numbers(0, 50))
        held = read(task, 1, acknowledge=False)
        server.end()
        eventually(lambda: task.poll() is None and any("MQTT broker" in str(each) for each in task.context.waits_for))
        server.start()
        for record in held:
            task.commit_record(record, 0, 0)  # of the lost connection: the broker does not know it
        assert sorted(values(read(task, 50))) == sorted(numbers(0, 50))
    with closing(Peer(server)) as after, running(source_config(server, topic)) as task:
        after.send(topic, b"last")
        assert values(read(task, 1)) == [b"last"]


def test_a_paused_task_answers_pings_and_takes_no_more(server: MqttServer, peer: Peer, topic: str) -> None:
    config = source_config(server, topic, mqtt_held="10", **{"mqtt.keepalive.interval.seconds": "1"})
    with running(config) as task:
        subscribed(task)
        idles = threading.Event()
        idle = task.idle
        task.idle = lambda seconds: (idles.set(), idle(seconds))
        task.paused()
        assert idles.wait(LIMIT)  # what it waited for has ended
        peer.send(topic, *numbers(0, 100))
        pinged = threading.Event()
        client = task._session._client
        client.on_log = lambda *args: "PINGRESP" in args[3] and pinged.set()
        assert pinged.wait(LIMIT)
        assert task.metrics()["messages-received"] == 0
        assert task.metrics()["connections-lost"] == 0
        task.resumed()
        assert values(read(task, 100)) == numbers(0, 100)


def test_tasks_share_a_subscription(server: MqttServer, peer: Peer, topic: str) -> None:
    config = source_config(server, topic, mqtt_share_name="g")
    connector = MqttSourceConnector()
    connector.start(config)
    assert len(connector.task_configs(3)) == 3
    connector.start(source_config(server, topic))
    assert len(connector.task_configs(3)) == 1
    with running(config) as one, running(config, 1) as two:
        subscribed(one)
        subscribed(two)
        peer.send(topic, *numbers(0, 100))
        found: list[list[bytes]] = [[], []]

        def all_read() -> bool:
            for mine, task in zip(found, (one, two), strict=True):
                for record in task.poll() or ():
                    task.commit_record(record, 0, 0)
                    mine.append(record.value)
            return len(found[0]) + len(found[1]) >= 100

        eventually(all_read, what="the messages of both")
    assert sorted(found[0] + found[1]) == sorted(numbers(0, 100))
    assert all(found)


def test_a_retained_message_comes_once(server: MqttServer, peer: Peer, topic: str) -> None:
    peer.send(topic, b"kept", retain=True)
    config = source_config(server, topic)
    with running(config) as task:
        (record,) = read(task, 1)
        assert {each.key: each.value for each in record.headers}["mqtt.retained"] is True
        eventually(lambda: task.metrics()["messages-held"] == 0)
    with running(config) as task:
        subscribed(task)
        peer.send(topic, b"new")
        assert values(read(task, 1)) == [b"new"], "the session has the subscription already"


def test_topics_of_an_earlier_config_give_no_records(server: MqttServer, peer: Peer, topic: str) -> None:
    with running(source_config(server, topic, mqtt_topics=f"{topic}/a,{topic}/b")) as task:
        subscribed(task)
    peer.send(f"{topic}/a", b"1")
    peer.send(f"{topic}/b", b"2")
    with running(source_config(server, topic, mqtt_topics=f"{topic}/b")) as task:
        assert values(read(task, 1)) == [b"2"]
        eventually(lambda: task.metrics()["messages-held"] == 0)
        assert task.metrics()["messages-unwanted"] == 1


def test_two_clients_with_one_id_say_so(server: MqttServer, topic: str) -> None:
    config = source_config(server, topic, mqtt_client_id=topic)
    with running(config) as one:
        subscribed(one)
        with running(config) as two:

            def is_said() -> bool:
                for task in (one, two):
                    task.poll()
                return any("mqtt.client.id" in str(each) for task in (one, two) for each in task.context.waits_for)

            eventually(is_said, what="the key to change")


@pytest.mark.parametrize(
    ("payload", "more", "why"),
    [(b"\xff", {"mqtt.values": "string"}, "not UTF-8"), (b"x", {"kafka.topic": "${topic}"}, "cannot name one of Kafka")],
)
def test_a_message_that_gives_no_record_is_a_bad_record(
    server: MqttServer, peer: Peer, topic: str, payload: bytes, more: dict[str, str], why: str
) -> None:
    config = {**source_config(server, topic, mqtt_topics=f"{topic}/#", errors_tolerance="all"), **more}
    with running(config) as task:
        subscribed(task)
        peer.send(f"{topic}/ä", payload)
        eventually(lambda: not task.poll() and bool(task.context.reported))
        ((bad, error),) = task.context.reported
        assert (bad.value, bad.key) == (payload, f"{topic}/ä")
        assert why in str(error)
        assert task.metrics()["messages-acknowledged"] == 0
        task.commit()
        eventually(lambda: task.metrics()["messages-acknowledged"] == 1)
    peer.send(f"{topic}/b", b"text")
    with running(config) as task:
        (good,) = read(task, 1)
        assert good.topic == more.get("kafka.topic", "t").replace("${topic}", f"{topic}.b")


@pytest.mark.parametrize(
    ("more", "key", "why"),
    [
        ({"mqtt.username": "user", "mqtt.password": "hush"}, "mqtt.password", "Check mqtt.username"),
        ({"mqtt.topics": "a/#/b"}, "mqtt.topics", "# as the last one"),
        ({"mqtt.topics": "a+/b"}, "mqtt.topics", "as a whole level"),
        ({"mqtt.topics": "$share/g/a"}, "mqtt.topics", "set mqtt.share.name"),
        ({"mqtt.qos": "2"}, "mqtt.qos", "with 1, none is"),
        ({"mqtt.server.uri": "http://h"}, "mqtt.server.uri", "tcp://mqtt:1883"),
        ({"mqtt.server.uri": "tcp://me:hush@h"}, "mqtt.server.uri", "must not have a login"),
        ({"mqtt.server.uri": "tcp://h,ssl://h"}, "mqtt.server.uri", "for all brokers or for none"),
        ({"mqtt.cacert": "/ca.pem"}, "mqtt.cacert", "only with ssl://"),
        ({"mqtt.server.uri": "ssl://h", "mqtt.cacert": "/no/ca.pem"}, "mqtt.cacert", "cannot be read"),
        ({"mqtt.server.uri": "ssl://h", "mqtt.key.file": "/k"}, "mqtt.key.cert", "is needed with mqtt.key.file"),
    ],
)
def test_what_cannot_work_is_refused_by_its_key(server: MqttServer, topic: str, more: dict[str, str], key: str, why: str) -> None:
    found = MqttSourceConnector.validate({**source_config(server, topic), **more})
    wrong = {name: each.errors for name, each in found.items() if each.errors}
    assert list(wrong) == [key]
    assert why in wrong[key][0]
    assert "hush" not in str(wrong)


def test_the_login_is_checked_without_the_session_of_a_running_task(server: MqttServer, topic: str) -> None:
    config = source_config(server, topic, mqtt_username="user", mqtt_password="secret")
    with running(config) as task:
        subscribed(task)
        assert not [name for name, each in MqttSourceConnector.validate(config).items() if each.errors]
        assert not [name for name, each in MqttSinkConnector.validate({**config, "topics": "t"}).items() if each.errors]
        task.poll()
        assert task.metrics()["connections-lost"] == 0
    away = {**config, "mqtt.server.uri": "tcp://127.0.0.1:1", "mqtt.connect.timeout.seconds": "1"}
    assert not [name for name, each in MqttSourceConnector.validate(away).items() if each.errors], "tasks wait for it"
    assert MqttSourceConnector().exactly_once_support({}) is ExactlyOnceSupport.UNSUPPORTED


def test_a_refused_subscription_fails_the_task(server: MqttServer, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = ReasonCode(PacketTypes.SUBACK, "Not authorized")
    answered = Session._subscribed
    monkeypatch.setattr(
        Session,
        "_subscribed",
        lambda self, client, data, number, _reasons, more: answered(self, client, data, number, [refused], more),
    )
    with (
        running(source_config(server, topic, mqtt_topics="closed/a")) as task,
        pytest.raises(ConnectError, match="closed/a: Not auth"),
    ):
        read(task, 1)


def test_a_micro_batch_takes_what_waits_and_ends(server: MqttServer, kafka: Kafka, peer: Peer, topic: str) -> None:
    with running(source_config(server, topic)) as task:
        subscribed(task)
    peer.send(topic, *numbers(0, 500))
    kafka.create(topic)
    config = source_config(
        server, topic, kafka_topic=topic, value_converter="ByteArrayConverter", key_converter="StringConverter"
    )
    with RunningTask(config, kafka.worker(), bounded=True) as bounded:
        result = bounded.join()
    assert (result.trace, result.records) == (None, 500)
    assert [value.encode() for value in kafka.values(topic, 500)] == numbers(0, 500)
    with running(source_config(server, topic)) as task:
        subscribed(task)
        assert not task.poll(), "all were acknowledged"


class TestSourceContract(SourceConnectorContract):
    connector_class = MqttSourceConnector
    records_within = poll_within = LIMIT
    resumable = False

    def identity(self, record: SourceRecord) -> object:
        return record.value

    @pytest.fixture
    def config(self, server: MqttServer, peer: Peer, topic: str) -> dict[str, str]:
        for number in range(3):
            peer.send(f"{topic}/{number}", b"%d" % number, retain=True)
        return source_config(server, topic, mqtt_topics=f"{topic}/#")


# --- The sink


class Sink:
    """A sink task without Kafka."""

    def __init__(self, server: MqttServer, topic: str, **more: str) -> None:
        given = {name.replace("_", "."): value for name, value in more.items()}
        self.config = {"name": topic, "mqtt.server.uri": server.url, "mqtt.topic": topic, **given}
        self.context = MemorySinkContext(self.config)
        self.task = MqttSinkTask()
        self.task.initialize(self.context)
        self.task.start(self.config)

    def put(self, *records: SinkRecord) -> None:
        put_until_taken(self.task, self.context, records)

    @property
    def reasons(self) -> list[str]:
        return [str(error) for _record, error in self.context.reported]

    def close(self) -> None:
        self.task.stop()


def record(offset: int, value: Any, key: Any = None) -> SinkRecord:
    return SinkRecord("t", 3, offset, value, None, key, None)


@BOTH
@pytest.mark.parametrize("qos", ["0", "1", "2"])
def test_records_are_published_in_order(server: MqttServer, topic: str, version: str, qos: str) -> None:
    more = {"mqtt.version": version, "mqtt.qos": qos}
    with (
        closing(Peer(server, f"{topic}/#")) as peer,
        closing(Sink(server, topic + "/${topic}-${partition}/${key}", **more)) as sink,
    ):
        sink.put(*(record(each, b"%d" % each, "k") for each in range(200)))
        sink.put(record(200, "text", 7), record(201, Decimal("1.10"), b"k"), record(202, True, "k"))
        found = peer.payloads(203)
        assert found[:200] == numbers(0, 200)
        names = [name for name, _payload, _retain in peer.received]
        assert names[0] == f"{topic}/t-3/k"
        others = {name: payload for name, payload, _retain in peer.received[200:202]}
        assert (others[f"{topic}/t-3/7"], found[202]) == (b"text", b"true")


def test_a_record_without_a_value_deletes_what_is_retained(server: MqttServer, topic: str) -> None:
    with closing(Sink(server, topic + "/${key}", mqtt_retained_enabled="true")) as sink:
        sink.put(record(0, "a", "x"), record(1, "b", "y"), record(2, "c", "x"), record(3, None, "y"))
    with closing(Peer(server, f"{topic}/#")) as peer:
        assert peer.payloads(1) == [b"c"]
        assert peer.received == [(f"{topic}/x", b"c", True)]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (record(1, None, "k"), "has no value. With mqtt.retained.enabled=true"),
        (record(1, "a"), "has no key"),
        (record(1, "a", "#"), "has no +, #, or NUL"),
        (record(1, "a", b"\xff"), "not UTF-8"),
        (record(1, {"a": 1}, "k"), "no text, bytes or number"),
        (record(1, Decimal("NaN"), "k"), "cannot be published by MQTT"),
        (record(1, "\ud800", "k"), "cannot be published by MQTT"),
        (record(1, b"x" * 200_000, "k"), "at most 100000 bytes"),
        (record(1, "a", "/../closed"), ""),
    ],
)
def test_records_that_cannot_be_published_are_reported_and_others_are_published(
    server: MqttServer, topic: str, bad: SinkRecord, why: str
) -> None:
    with closing(Peer(server, f"{topic}/#")) as peer, closing(Sink(server, topic + "/${key}")) as sink:
        sink.put(record(0, "before", "k"), bad, record(2, "after", "k"))
        if why:
            (reason,) = sink.reasons
            assert why in reason
        found = peer.payloads(2)
        assert (found[0], found[-1]) == (b"before", b"after")


def test_a_topic_that_is_refused_refuses_its_records_only(server: MqttServer, topic: str) -> None:
    with closing(Peer(server, f"{topic}/#")) as peer, closing(Sink(server, "${key}")) as sink:
        sink.put(record(0, "a", f"{topic}/x"), record(1, "b", "closed/x"), record(2, "c", f"{topic}/x"))
        (reason,) = sink.reasons
        assert "the broker says: Not authorized" in reason
        assert peer.payloads(2) == [b"a", b"c"]


def test_a_dead_broker_gets_all_records_later(server: MqttServer, topic: str) -> None:
    with running(source_config(server, topic)) as task, closing(Sink(server, topic)) as sink:
        subscribed(task)
        sink.put(*(record(each, b"%d" % each) for each in range(100)))
        assert values(read(task, 100)) == numbers(0, 100)
        task.subscribed.clear()
        server.end()
        with pytest.raises(RetriableError, match="MQTT broker"):
            sink.task.put([record(100, b"100")])
        server.start()
        subscribed(task)
        sink.put(*(record(each, b"%d" % each) for each in range(100, 200)))
        # The broker may not have got the last acknowledgements, and gives those again.
        found: set[bytes] = set()
        while not set(numbers(100, 200)) <= found:
            found.update(values(read(task, 1)))


class TestSinkContract(SinkConnectorContract):
    connector_class = MqttSinkConnector

    @pytest.fixture
    def config(self, server: MqttServer, topic: str) -> dict[str, str]:
        return {"mqtt.server.uri": server.url, "mqtt.topic": topic}
