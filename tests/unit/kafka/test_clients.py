from __future__ import annotations

import pickle

import pytest
from confluent_kafka import KafkaError, KafkaException
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, FencedError, KafkaClientError
from sluiceway.kafka.clients import internal_consumer_config, internal_producer_config, producer
from sluiceway.kafka.errors import mapped_errors, to_connect_error

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


def test_a_refused_client_config_is_a_kafka_client_error_naming_the_key() -> None:
    with pytest.raises(KafkaClientError, match=r"no\.such\.key"):
        producer({"bootstrap.servers": "b:9092", "no.such.key": "1"})


@pytest.mark.parametrize("code", [KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH])
def test_every_way_of_being_fenced_is_a_fenced_error(code: int) -> None:
    assert isinstance(to_connect_error(KafkaError(code), "write"), FencedError)


def test_other_errors_keep_librdkafkas_name_and_pickle() -> None:
    with pytest.raises(KafkaClientError, match="Cannot write") as caught, mapped_errors("write"):
        raise KafkaException(KafkaError(KafkaError._MSG_TIMED_OUT))
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
    assert (again.code, str(again)) == ("_MSG_TIMED_OUT", str(caught.value))
    assert isinstance(again, ConnectError)
