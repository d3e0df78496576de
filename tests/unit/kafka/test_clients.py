from __future__ import annotations

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError, KafkaClientError
from sluiceway.kafka import clients
from sluiceway.kafka.clients import (
    admin_client,
    consumer_config,
    internal_consumer_config,
    internal_producer_config,
    java_consumer_config,
    producer,
    producer_config,
    transactional_producer_config,
)

WORKER = WorkerConfig.of(
    {
        "bootstrap.servers": "b1:9092,b2:9092",
        "group.id": "g",
        "security.protocol": "SASL_SSL",
        "producer.acks": "1",
        "producer.linger.ms": "500",
        "consumer.isolation.level": "read_uncommitted",
        "consumer.auto.offset.reset": "latest",
    }
)


def test_clients_of_internal_topics_take_security_but_not_the_connectors_client_settings() -> None:
    writing = internal_producer_config(WORKER, "g-configs")
    reading = internal_consumer_config(WORKER, "g-configs")
    assert writing["bootstrap.servers"] == reading["bootstrap.servers"] == "b1:9092,b2:9092"
    assert writing["security.protocol"] == reading["security.protocol"] == "SASL_SSL"
    assert writing["client.id"] == reading["client.id"] == "g-configs"
    assert (writing["acks"], writing["linger.ms"], writing["partitioner"]) == ("all", "0", "murmur2_random")
    assert (reading["isolation.level"], reading["auto.offset.reset"]) == ("read_committed", "error")


def test_the_callers_group_wins_over_all_other_settings_of_a_consumer() -> None:
    worker = WorkerConfig.of({"group.id": "workers", "consumer.group.id": "shared"})
    assert consumer_config(worker, "c", "own", {"group.id": "override"})["group.id"] == "own"


def test_a_refused_client_config_is_a_kafka_client_error_naming_the_key() -> None:
    with pytest.raises(KafkaClientError, match=r"no\.such\.key"):
        producer({"bootstrap.servers": "b:9092", "no.such.key": "1"})


@pytest.mark.parametrize("overrides", [{}, {"enable.idempotence": "false"}, {"max.in.flight.requests.per.connection": "7"}])
def test_a_producer_has_one_request_in_flight_unless_it_is_overridden(
    overrides: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[dict[str, str]] = []
    monkeypatch.setattr(clients, "Producer", lambda config, **_options: made.append(config))
    worker = WorkerConfig.of({})
    producer(producer_config(worker, "c", overrides))
    producer(transactional_producer_config(worker, "c", "id", {**overrides, "enable.idempotence": "true"}))
    producer(internal_producer_config(worker, "c", **overrides))
    wanted = overrides.get("max.in.flight.requests.per.connection", "1")
    assert [each["max.in.flight.requests.per.connection"] for each in made] == [wanted] * 3


def test_buffer_memory_is_kept_as_kilobytes() -> None:
    assert producer_config(WorkerConfig.of({}), "c", {"buffer.memory": "10485760"})["queue.buffering.max.kbytes"] == "10240"


def test_a_transactional_producers_delivery_timeout_is_the_transaction_timeout() -> None:
    config = transactional_producer_config(WorkerConfig.of({}), "c", "g-c-0")
    assert (config["transactional.id"], config["acks"], config["enable.idempotence"]) == ("g-c-0", "all", "true")
    assert (config["transaction.timeout.ms"], config["delivery.timeout.ms"]) == ("60000", "60000")
    producer(config)


def test_the_transaction_timeout_exceeds_the_length_of_transactions() -> None:
    worker = WorkerConfig.of({})
    assert transactional_producer_config(worker, "c", "i", longest_ms=60_000)["transaction.timeout.ms"] == "90000"
    short = {"transaction.timeout.ms": "5000"}
    assert transactional_producer_config(worker, "c", "i", short, longest_ms=4999)["delivery.timeout.ms"] == "5000"
    with pytest.raises(ConfigError, match=r"producer\.override\.transaction\.timeout\.ms"):
        transactional_producer_config(worker, "c", "i", short, longest_ms=5000)


@pytest.mark.parametrize(("key", "value"), [("enable.idempotence", "false"), ("acks", "1")])
def test_overrides_that_rule_out_transactions_are_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"producer.override.{key}"):
        transactional_producer_config(WorkerConfig.of({}), "c", "i", {key: value})


def test_a_connector_cannot_override_the_transactional_id() -> None:
    assert transactional_producer_config(WorkerConfig.of({}), "c", "i", {"transactional.id": "x"})["transactional.id"] == "i"


@pytest.mark.parametrize("worker", [{}, {"producer.transactional.id": "w"}], ids=str)
@pytest.mark.parametrize("own", [{}, {"transactional.id": "x"}], ids=str)
def test_only_the_producer_of_transactions_has_a_transactional_id(
    worker: dict[str, str], own: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    settings = WorkerConfig.of(worker)
    assert "transactional.id" not in producer_config(settings, "c", own)
    assert ("transactional.id in the settings of producer c is ignored" in caplog.text) == bool(worker or own)
    assert transactional_producer_config(settings, "c", "i", own)["transactional.id"] == "i"
    assert "transactional.id" not in internal_producer_config(settings, "c")


@pytest.mark.parametrize("worker", [{}, {"consumer.enable.auto.commit": "true"}], ids=str)
@pytest.mark.parametrize("own", [{}, {"enable.auto.commit": "true"}], ids=str)
def test_no_consumer_commits_by_itself(worker: dict[str, str], own: dict[str, str]) -> None:
    settings = WorkerConfig.of(worker)
    assert consumer_config(settings, "c", "g", own)["enable.auto.commit"] == "false"
    assert internal_consumer_config(settings, "c")["enable.auto.commit"] == "false"
    java = java_consumer_config(settings, "c", "g", own, 10)
    assert java is None or java["enable.auto.commit"] == "false"


def test_an_admin_client_prefers_the_connectors_overrides_and_uses_the_given_client_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[dict[str, str]] = []
    monkeypatch.setattr("sluiceway.kafka.clients.AdminClient", lambda config, logger: made.append(config))
    worker = WorkerConfig.of(
        {
            "group.id": "g",
            "admin.retries": "3",
            "admin.request.timeout.ms": "1000",
            "admin.listeners": "http://:1",
            "admin.listeners.https.ssl.protocol": "x",
        }
    )
    admin_client(worker)
    admin_client(worker, {"request.timeout.ms": "2000"}, client_id="connector-adminclient-c-0")
    assert [(each["client.id"], each["retries"], each["socket.timeout.ms"]) for each in made] == [
        ("g-shared-admin", "3", "1000"),
        ("connector-adminclient-c-0", "3", "2000"),
    ]
    assert not any(key.startswith("listeners") for each in made for key in each)
