"""Keys of the sink."""

from __future__ import annotations

import pytest

from sluiceway.config.definition import ConfigValue
from sluiceway.connectors.jdbc.sink.config import SinkOptions
from sluiceway.connectors.jdbc.sink.connector import JdbcSinkConnector
from sluiceway.errors import ConfigError

URL = {"connection.url": "jdbc:sqlite:people.db"}


def options(**config: str) -> SinkOptions:
    return SinkOptions.of({**URL, **{key.replace("_", "."): value for key, value in config.items()}})


@pytest.mark.parametrize(
    ("config", "key", "message"),
    [
        ({"insert.mode": "upsert"}, "pk.mode", "needs a primary key"),
        ({"insert.mode": "update", "pk.mode": "none"}, "pk.mode", "needs a primary key"),
        ({"delete.enabled": "true", "pk.mode": "kafka"}, "delete.enabled", "record_key"),
        ({"pk.mode": "kafka", "pk.fields": "a,b"}, "pk.fields", "three columns"),
        ({"table.types": "INDEX"}, "table.types", "TABLE, VIEW"),
    ],
)
def test_conflicting_keys_are_errors(config: dict[str, str], key: str, message: str) -> None:
    [error] = JdbcSinkConnector.validate({**URL, **config})[key].errors
    assert message in error
    with pytest.raises(ConfigError, match=message):
        SinkOptions.of({**URL, **config})


def test_the_password_is_not_in_the_repr() -> None:
    made = options(connection_url="jdbc:postgresql://db/people", connection_user="me", connection_password="hush")
    assert "hush" not in repr(made)
    assert made.connection.url.password == "hush"


def test_the_defaults_are_those_of_confluents_sink() -> None:
    shown: dict[str, ConfigValue] = {key.name: key.shown_default for key in JdbcSinkConnector.config_def()}
    expected = {
        "insert.mode": "insert",
        "batch.size": "3000",
        "delete.enabled": "false",
        "table.types": "TABLE",
        "table.name.format": "${topic}",
        "pk.mode": "none",
        "pk.fields": "",
        "fields.whitelist": "",
        "db.timezone": "UTC",
        "auto.create": "false",
        "auto.evolve": "false",
        "quote.sql.identifiers": "always",
        "max.retries": "10",
        "retry.backoff.ms": "3000",
        "connection.attempts": "3",
        "connection.backoff.ms": "10000",
    }
    assert {name: shown[name] for name in expected} == expected
