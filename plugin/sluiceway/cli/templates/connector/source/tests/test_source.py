"""Tests of the source: Kafka Connect's contract, and what is its own."""

from __future__ import annotations

import pytest
from service import Service
from sluiceway.errors import RetriableError
from sluiceway.testing import MemoryOffsets, SourceConnectorContract, run_source

from acme_orders.source import AcmeOrdersSourceConnector


@pytest.fixture
def config(connection: dict[str, str]) -> dict[str, str]:
    return {**connection, "collections": "orders,customers", "topic.prefix": "test."}


class TestContract(SourceConnectorContract):
    connector_class = AcmeOrdersSourceConnector
    record_count = 5  # sample documents of both collections
    tasks_max = 2

    @pytest.fixture
    def config(self, connection: dict[str, str]) -> dict[str, str]:
        return {**connection, "collections": "orders,customers"}


def test_each_collection_is_a_topic(config: dict[str, str]) -> None:
    records = run_source(AcmeOrdersSourceConnector, config, records=5)
    assert sorted((each.topic, each.key) for each in records) == [
        ("test.customers", "c-1"),
        ("test.customers", "c-2"),
        ("test.orders", "o-1"),
        ("test.orders", "o-2"),
        ("test.orders", "o-3"),
    ]
    assert {"customer": "c-1", "amount": 10} in [each.value for each in records]


def test_only_new_changes_are_read_after_a_restart(service: Service, config: dict[str, str]) -> None:
    offsets = MemoryOffsets()
    run_source(AcmeOrdersSourceConnector, config, records=5, offsets=offsets)
    service.put("orders", "o-1", {"customer": "c-1", "amount": 11})
    service.put("orders", "o-2", None)
    changed, deleted = run_source(AcmeOrdersSourceConnector, config, records=2, offsets=offsets)
    assert (changed.key, changed.value) == ("o-1", {"customer": "c-1", "amount": 11})
    assert (deleted.key, deleted.value) == ("o-2", None)


def test_tasks_share_the_collections(config: dict[str, str]) -> None:
    connector = AcmeOrdersSourceConnector()
    connector.start({**config, "collections": "a,b,c"})
    assert [each["collections"] for each in connector.task_configs(2)] == ["a,c", "b"]
    assert [each["collections"] for each in connector.task_configs(5)] == ["a", "b", "c"]


def test_a_busy_service_is_asked_again(service: Service, config: dict[str, str]) -> None:
    service.busy = 1
    with pytest.raises(RetriableError, match="429"):
        run_source(AcmeOrdersSourceConnector, config, records=1)
    assert len(run_source(AcmeOrdersSourceConnector, config, records=5)) == 5


def test_validation_tries_the_connection(config: dict[str, str], nowhere: str) -> None:
    found = AcmeOrdersSourceConnector.validate({**config, "collections": "order"})
    assert found["collections"].errors == ["The service has no collection order. It has: customers, orders."]
    assert found["collections"].recommended_values == ["customers", "orders"]
    found = AcmeOrdersSourceConnector.validate({**config, "token": "wrong"})
    assert "HTTP 401" in found["token"].errors[0]
    found = AcmeOrdersSourceConnector.validate({**config, "url": nowhere})
    assert not any(each.errors for each in found.values()), "tasks wait for a service that does not run yet"
