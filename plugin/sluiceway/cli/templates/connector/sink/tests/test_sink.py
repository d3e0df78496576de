"""Tests of the sink: Kafka Connect's contract, and what is its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from service import Service
from sluiceway.api import SinkRecord
from sluiceway.data import INT64_SCHEMA, STRING_SCHEMA, Schema, Struct
from sluiceway.testing import SinkConnectorContract, run_sink

from acme_orders.sink import AcmeOrdersSinkConnector


def record(offset: int, key: str | None, value: Any, schema: Schema | None = None) -> SinkRecord:
    return SinkRecord("orders", 0, offset, value, schema, key, STRING_SCHEMA if key else None)


@pytest.fixture
def config(connection: dict[str, str]) -> dict[str, str]:
    return {**connection, "collection": "copies"}


class TestContract(SinkConnectorContract):
    connector_class = AcmeOrdersSinkConnector

    @pytest.fixture
    def config(self, connection: dict[str, str], service: Service) -> dict[str, str]:
        self.service = service
        return {**connection, "collection": "copies"}

    def records(self) -> Sequence[SinkRecord]:
        return [
            SinkRecord(self.topic, partition, offset, {"amount": offset}, None, f"{partition}-{offset}", STRING_SCHEMA)
            for offset in range(3)
            for partition in range(2)
        ]

    def check_written(self, config: Mapping[str, str], records: Sequence[SinkRecord]) -> None:
        documents = self.service.documents("copies")
        assert {each.key: each.value for each in records}.items() <= documents.items()


def test_a_record_replaces_the_document_with_its_key(service: Service, config: dict[str, str]) -> None:
    records = [record(0, "a", {"amount": 1}), record(1, "b", {"amount": 2}), record(2, "a", {"amount": 3})]
    run_sink(AcmeOrdersSinkConnector, config, records)
    assert service.documents("copies") == {"a": {"amount": 3}, "b": {"amount": 2}}


def test_a_tombstone_deletes_the_document(service: Service, config: dict[str, str]) -> None:
    records = [record(0, "a", {"amount": 1}), record(1, "a", None)]
    run_sink(AcmeOrdersSinkConnector, config, records)
    assert service.documents("copies") == {}


def test_a_struct_is_written_as_an_object(service: Service, config: dict[str, str]) -> None:
    schema = Schema.struct({"amount": INT64_SCHEMA})
    without_key = record(7, None, Struct(schema, {"amount": 1}), schema)
    run_sink(AcmeOrdersSinkConnector, config, [without_key])
    assert service.documents("copies") == {"orders-0-7": {"amount": 1}}


def test_what_the_service_refuses_is_reported(service: Service, config: dict[str, str]) -> None:
    records = [record(0, "a", {"amount": -1}), record(1, "b", "text"), record(2, "c", {"amount": 3})]
    run = run_sink(AcmeOrdersSinkConnector, config, records)
    assert sorted(each.key for each, _ in run.reported) == ["a", "b"]
    assert "the amount must not be negative" in str([error for _, error in run.reported])
    assert service.documents("copies") == {"c": {"amount": 3}}


def test_records_are_written_again_to_a_busy_service(service: Service, config: dict[str, str]) -> None:
    service.busy = 1
    run = run_sink(AcmeOrdersSinkConnector, config, [record(0, "a", {"amount": 1})])
    assert service.documents("copies") == {"a": {"amount": 1}}
    assert not run.reported


def test_a_preview_shows_the_requests(config: dict[str, str]) -> None:
    records = [record(0, "a", {"amount": 1}), record(1, "b", "text")]
    assert AcmeOrdersSinkConnector.preview(config, records) == [
        '{"id": "a", "document": {"amount": 1}}',
        "Refused: The value must be a struct or a map, not a str.",
    ]


def test_validation_tries_the_connection(config: dict[str, str], nowhere: str) -> None:
    found = AcmeOrdersSinkConnector.validate({**config, "token": "wrong"})
    assert "HTTP 401" in found["token"].errors[0]
    found = AcmeOrdersSinkConnector.validate({**config, "url": nowhere})
    assert not any(each.errors for each in found.values()), "tasks wait for a service that does not run yet"
