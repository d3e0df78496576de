"""Configs of Debezium's JDBC sink."""

from __future__ import annotations

import pytest

from sluiceway.connectors.jdbc.debezium.connector import DebeziumJdbcSinkConnector, translate
from sluiceway.connectors.jdbc.sink.config import InsertMode, PkMode, SinkOptions
from sluiceway.discovery import connector_class

CONFIG = {
    "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
    "tasks.max": "1",
    "topics": "orders",
    "connection.url": "jdbc:postgresql://127.0.0.1:1/db",
    "connection.username": "postgres",
    "connection.password": "hidden",
    "insert.mode": "upsert",
    "delete.enabled": "true",
    "primary.key.mode": "record_key",
    "schema.evolution": "basic",
    "use.time.zone": "UTC",
    "connection.pool.max_size": "8",
    "hibernate.show_sql": "true",
}


def test_the_java_class_names_the_connector() -> None:
    assert connector_class(CONFIG["connector.class"]) is DebeziumJdbcSinkConnector


def test_a_config_of_debeziums_sink_is_translated() -> None:
    assert not {name: each.errors for name, each in DebeziumJdbcSinkConnector.validate(CONFIG).items() if each.errors}
    options = SinkOptions.of(translate(CONFIG))
    assert (options.insert_mode, options.pk_mode, options.delete_enabled) == (InsertMode.UPSERT, PkMode.RECORD_KEY, True)
    assert (options.auto_create, options.auto_evolve, options.connection.quote) == (True, True, False)
    assert (options.batch_size, options.max_retries, options.backoff) == (500, 5, 1.0)
    assert (options.connection.url.user, options.connection.url.password) == ("postgres", "hidden")
    assert "hidden" not in repr(options)


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        ({"primary.key.mode": "none"}, "primary.key.mode", "insert.mode=upsert needs a primary key"),
        ({"primary.key.mode": "record_header"}, "primary.key.mode", "record_header"),
        ({"primary.key.mode": "record_value"}, "delete.enabled", "needs primary.key.mode=record_key"),
        ({"use.time.zone": "Mars"}, "use.time.zone", "Mars"),
        ({"truncate.enabled": "true"}, "truncate.enabled", "dropped"),
        ({"field.include.list": "a", "field.exclude.list": "b"}, "field.exclude.list", "field.include.list"),
        *(
            ({key: "org.example.Names"}, key, "or use Debezium's Java class")
            for key in (
                *("collection.naming.strategy", "table.naming.strategy", "column.naming.strategy"),
                *("collection.table.format", "cloud.events.schema.name.pattern"),
            )
        ),
    ],
)
def test_errors_name_the_keys_of_debeziums_config(changes: dict[str, str], key: str, message: str) -> None:
    found = DebeziumJdbcSinkConnector.validate({**CONFIG, **changes})
    assert message in found[key].errors[0]


def test_the_default_of_a_key_with_one_value_is_accepted() -> None:
    defaults = {key.name: str(key.default) for key in DebeziumJdbcSinkConnector.config_def() if "Only the default." in key.doc}
    assert len(defaults) == 5
    found = DebeziumJdbcSinkConnector.validate({**CONFIG, **defaults})
    assert not {name: each.errors for name, each in found.items() if each.errors}
