"""An Airflow connection to Kafka as worker properties."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.kafka.clients import producer_config
from sluiceway.provider.kafka_connection import overrides_of, worker_overrides


def _overrides(extra: dict[str, Any] | None = None, **fields: Any) -> dict[str, str]:
    usual: dict[str, Any] = {"host": None, "port": None, "login": None, "password": None}
    return overrides_of("k", **(usual | fields), extra=extra or {})


def test_where_kafka_is_stands_in_the_extra_or_is_the_host() -> None:
    assert _overrides({"bootstrap.servers": "a:1,b:2"}, host="c") == {"bootstrap.servers": "a:1,b:2"}
    assert _overrides(host="c", port=9093) == {"bootstrap.servers": "c:9093"}
    assert _overrides(host="c:1,d:2", port=9093) == {"bootstrap.servers": "c:1,d:2"}
    with pytest.raises(ConfigError, match="does not say where Kafka is"):
        _overrides()


def test_connects_own_clients_and_those_that_move_records_log_in_alike() -> None:
    found = _overrides(host="k:1", login="u", password="hunter2")
    for prefix in ("", "producer.", "consumer.", "admin."):
        assert found[f"{prefix}sasl.jaas.config"].endswith('PlainLoginModule required username="u" password="hunter2";')
        assert found[f"{prefix}security.protocol"] == "SASL_PLAINTEXT"


def test_what_librdkafka_is_told_is_what_the_connection_says(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n")
    extra = {"bootstrap.servers": "k:1", "security.protocol": "SASL_SSL", "sasl.mechanisms": "SCRAM-SHA-256",
             "sasl.username": "u", "sasl.password": 'hun"ter\\2', "ssl.ca.location": str(ca),
             "group.id": "not for us"}  # fmt: skip
    config = producer_config(WorkerConfig.of(_overrides(extra)), "p")
    assert (config["bootstrap.servers"], config["security.protocol"].upper()) == ("k:1", "SASL_SSL")
    assert (config["sasl.username"], config["sasl.password"]) == ("u", 'hun"ter\\2')
    assert "SCRAM-SHA-256" in config.values()
    assert config["ssl.ca.location"] == str(ca)
    assert "not for us" not in config.values()


def test_a_connection_is_looked_up_in_airflow_and_its_password_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden: list[str] = []
    monkeypatch.setattr("airflow.sdk.log.mask_secret", lambda value, *_: hidden.append(value))
    extra = {"bootstrap.servers": "k:1", "sasl.password": "h"}
    monkeypatch.setenv("AIRFLOW_CONN_K", json.dumps({"conn_type": "kafka", "extra": extra}))
    assert worker_overrides("k")["bootstrap.servers"] == "k:1"
    assert "h" in hidden


def test_a_connection_that_is_missing_or_of_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_PG", json.dumps({"conn_type": "postgres", "host": "h", "password": "hunter2"}))
    with pytest.raises(ConfigError, match="is of type 'postgres'") as raised:
        worker_overrides("pg")
    assert "hunter2" not in str(raised.value)
    with pytest.raises(ConfigError, match="has no connection 'none'"):
        worker_overrides("none")
