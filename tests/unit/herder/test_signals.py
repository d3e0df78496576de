"""Signals over the REST API: which connectors take them, and the record that is sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from sluiceway.config.signal_topic import TYPES, Signal, SignalTopic, enabled_channels
from sluiceway.connectors.cdc.signals import Signals
from sluiceway.errors import KafkaClientError
from sluiceway.herder import signals
from support.rest_replay import Connect

_POSTGRES = "io.debezium.connector.postgresql.PostgresConnector"
_CONFIG = {
    "connector.class": _POSTGRES,
    "topic.prefix": "p",
    "signal.enabled.channels": "source, Kafka",
    "signal.kafka.bootstrap.servers": "k:1",
}
_SIGNAL = {"type": "execute-snapshot", "id": "s1", "data": {"data-collections": ["public.t"]}}

Sent = list[tuple[Mapping[str, str], str, bytes, bytes]]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """The records that would be written to Kafka: properties, topic, key, value."""
    found: Sent = []
    monkeypatch.setattr(signals, "send_signal", lambda *record: found.append(record))
    return found


def _connect(config: Mapping[str, str]) -> Connect:
    connect = Connect()
    connect.config.put_connector("c", {**config, "name": "c"})
    return connect


def _refusal(config: Mapping[str, str], body: object = _SIGNAL) -> tuple[int, str]:
    answer = _connect(config).http.post("/connectors/c/signals", json=body)
    assert answer.json()["error_code"] == answer.status_code
    return answer.status_code, answer.json()["message"]


def test_the_record_is_that_of_debeziums_channel(sent: Sent) -> None:
    answer = _connect(_CONFIG).http.post("/connectors/c/signals", json=_SIGNAL)
    assert (answer.status_code, answer.json()) == (202, {"id": "s1", "topic": "p-signal"})
    [(properties, topic, key, value)] = sent
    assert (properties, topic, key) == ({"bootstrap.servers": "k:1"}, "p-signal", b"p")
    assert json.loads(value) == _SIGNAL


def test_a_signal_without_id_gets_one_and_without_data_an_empty_object(sent: Sent) -> None:
    connect = _connect(_CONFIG)
    ids = [connect.http.post("/connectors/c/signals", json={"type": "stop-snapshot"}).json()["id"] for _ in range(2)]
    documents = [json.loads(value) for *_, value in sent]
    assert documents == [{"id": each, "type": "stop-snapshot", "data": {}} for each in ids]
    assert ids[0] != ids[1]


def test_the_config_names_topic_brokers_and_security() -> None:
    more = {
        "signal.kafka.topic": "own",
        "signal.consumer.bootstrap.servers": "k:2",
        "signal.consumer.security.protocol": "SSL",
    }
    assert SignalTopic.of(_CONFIG | more) == ("own", "p", {"bootstrap.servers": "k:2", "security.protocol": "SSL"})
    assert enabled_channels({}) == {"source"}


def test_references_are_resolved(sent: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONNECTOR_TOPIC", "resolved")
    classes = {"config.providers.env.class": "EnvVarConfigProvider", "config.providers.file.class": "FileConfigProvider"}
    connect = Connect({"config.providers": "env,file", **classes})
    topic = {"signal.kafka.topic": "${env:CONNECTOR_TOPIC}", "database.password": "${file:/no/such/file:password}"}
    connect.config.put_connector("c", {**_CONFIG, **topic, "name": "c"})
    assert connect.http.post("/connectors/c/signals", json=_SIGNAL).json()["topic"] == "resolved"
    connect.config.put_connector("c", {**_CONFIG, "signal.kafka.topic": "${file:/no/such/file:topic}", "name": "c"})
    answer = connect.http.post("/connectors/c/signals", json=_SIGNAL)
    assert answer.status_code == 409
    assert "signal.kafka.topic cannot be resolved" in answer.json()["message"]
    assert len(sent) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"connector.class": "FileStreamSource"}, "is not a connector of change data capture"),
        ({"connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector"}, "is not a connector of change data capture"),
        ({"connector.class": "com.example.Absent"}, "is not a connector of change data capture"),
        ({"connector.class": "io.debezium.connector.mongodb.MongoDbSinkConnector"}, "is not a connector of change data capture"),
        ({"signal.enabled.channels": "file"}, "signal.enabled.channels is 'file'. Add kafka to it"),
        ({"signal.enabled.channels": ""}, "signal.enabled.channels is 'source'. Add kafka to it"),
        ({"signal.kafka.bootstrap.servers": ""}, "does not set signal.kafka.bootstrap.servers"),
        ({"topic.prefix": ""}, "does not set topic.prefix"),
    ],
)
def test_a_connector_that_reads_no_signals_from_kafka_is_a_conflict(sent: Sent, changes: Mapping[str, str], message: str) -> None:
    status, text = _refusal({**_CONFIG, **changes})
    assert status == 409
    assert message in text
    assert sent == []


def test_an_unknown_connector_is_not_found(sent: Sent) -> None:
    assert Connect().http.post("/connectors/c/signals", json=_SIGNAL).status_code == 404


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], 'a JSON object with "type"'),
        ({**_SIGNAL, "key": "p"}, 'a JSON object with "type"'),
        ({"id": "1"}, '"type" must be'),
        ({"type": ""}, '"type" must be'),
        ({"type": "log", "id": 1}, '"id" must be a string'),
        ({"type": "log", "data": "{}"}, '"data" must be a JSON object'),
        ({"type": "strange"}, "Connector c takes execute-snapshot, stop-snapshot"),
        ({"type": "execute-snapshot"}, "must name the tables to read"),
    ],
)
def test_a_signal_that_cannot_be_executed_is_refused(sent: Sent, body: object, message: str) -> None:
    status, text = _refusal(_CONFIG, body)
    assert status == 400
    assert message in text
    assert sent == []


def test_a_connector_that_is_not_installed_here_checks_its_signals_itself(sent: Sent) -> None:
    """A Java connector may know types that those in Python do not."""
    connect = _connect({**_CONFIG, "connector.class": "io.debezium.connector.oracle.OracleConnector"})
    assert connect.http.post("/connectors/c/signals", json={"type": "custom"}).status_code == 202
    assert len(sent) == 1


def test_the_message_says_what_to_check_if_the_brokers_do_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KafkaClientError("Cannot describe topic 'p-signal': timed out (_TIMED_OUT).", "_TIMED_OUT")

    monkeypatch.setattr(signals, "send_signal", fail)
    status, text = _refusal(_CONFIG)
    assert status == 500
    assert "Cannot describe topic 'p-signal'" in text
    assert "Check signal.kafka.bootstrap.servers" in text


def test_connectors_execute_the_types_that_are_accepted(caplog: pytest.LogCaptureFixture) -> None:
    class Silent:
        def __getattr__(self, name: str) -> object:
            return lambda *_, **__: None

    silent: Any = Silent()
    executed = Signals(silent, list, lambda *_: None, silent, lambda _error: False)
    for each in TYPES:
        executed.execute(Signal("s", each, {}))
    assert "is unknown" not in caplog.text
    executed.execute(Signal("s", "strange", {}))
    assert "its type strange is unknown" in caplog.text
