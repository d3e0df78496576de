"""Makes a config of every built-in plugin from nothing, by the form alone.

The form names the keys that need a value; the test gives it one, as a user would, until the REST API accepts the config.
"""

from __future__ import annotations

import re

import deltalake
import pyarrow as pa
import pytest
from playwright.sync_api import Browser, expect
from pyiceberg.catalog.sql import SqlCatalog

from sluiceway.herder.validation import installed
from support.dashboard import MemoryConnectors
from support.page import PageServer, Ui, opened

pytestmark = pytest.mark.long

_ROUNDS = 8
# What validation says if a config is complete, but a server or a package is not there.
_ABSENT = re.compile(
    r"needs the package|Unable to connect|Check that the storage is reachable|Error while validating connector config: failed to"
)
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
FILTER = "org.apache.kafka.connect.transforms.Filter"
PLUGIN_KEYS = {
    "field": "f",
    "fields": "f",
    "headers": "h",
    "header": "h",
    "operation": "copy",
    "spec": "string",
    "value.literal": "v",
    "static.field": "f",
    "static.value": "v",
    "regex": "r",
    "replacement": "s",
    "target.type": "string",
    "format": "yyyy",
    "name": "h",
    "pattern": "p",
    "topic.regex": "r",
    "topic.replacement": "s",
    "logical.table": "t",
    "partition.payload.fields": "f",
    "partition.topic.num": "1",
    "converted.timezone": "UTC",
    "schema.registry.url": "mock://registry",
    "from.ms": "1",
    "to.ms": "2",
}
_OF_PLUGINS = {"search": {"connection.url": "http://absent.invalid:9200"}, "folder": {"mode": "files"}}
"""Values of keys that several plugins have for different things, by a part of the plugin's name in lower case."""
_ROWS = pa.table({"id": pa.array([1], pa.int64())})


def _of_plugin(name: str) -> dict[str, str]:
    return next((values for part, values in _OF_PLUGINS.items() if part in name.lower()), {})


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Values of keys, with tables behind those that name one."""
    folder = tmp_path_factory.mktemp("plugins")
    deltalake.write_deltalake(folder / "delta" / "t", _ROWS)
    (folder / "rows.db").touch()
    catalog = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
    iceberg = SqlCatalog("iceberg", **catalog)
    iceberg.create_namespace("db")
    iceberg.create_table("db.t", _ROWS.schema)
    return {
        "topics": "orders",
        "topic": "orders",
        "topic.prefix": "p-",
        "path": str(folder / "out"),
        "format": "parquet",
        "format.class": "JsonFormat",
        "flush.size": "100",
        "store.url": "hdfs://namenode:8020",
        "gcs.bucket.name": "bucket",
        "s3.bucket.name": "bucket",
        "azblob.container.name": "container",
        "azblob.account.name": "account",
        "connection.url": f"jdbc:sqlite:{folder}/rows.db",
        "mode": "bulk",
        "iceberg.tables": "db.t",
        "iceberg.catalog.type": "sql",
        "iceberg.catalog.uri": catalog["uri"],
        "iceberg.catalog.warehouse": catalog["warehouse"],
        "delta.path": str(folder / "delta"),
        "delta.tables": "t",
        "database.hostname": "absent.invalid",
        "database.user": "user",
        "database.dbname": "shop",
        "database.server.id": "1",
        "schema.history.internal.kafka.bootstrap.servers": "broker:9092",
        "schema.history.internal.kafka.topic": "history",
        "source.cluster.alias": "source",
        "otlp.endpoints": "http://absent.invalid:4318/v1/metrics",
        "targets": "absent.invalid:9090",
        "paths": str(folder),
        "hbase.table": "t",
        "dlt.destination": "duckdb",
        "dlt.source": "support.dlt_sources.numbers",
        "mqtt.server.uri": "tcp://absent.invalid:1883",
        "mqtt.topics": "plant/#",
        "kafka.topic": "plant",
        "http.url": "http://absent.invalid/items",
        "http.request.url": "http://absent.invalid/items",
        "nats.streams": "S",
        "nats.stream": "S",
        "nats.consumer": "c",
        "rabbitmq.queue": "q",
        "sqs.url": "q",
        "kinesis.stream": "s",
        "kinesis.region": "eu-west-1",
        "sqs.region": "eu-west-1",
        "aws.access.key.id": "a",
        "aws.secret.access.key": "s",
        "redis.stream.name": "s",
        "singer.tap": "tap-absent",
        "singer.target": "target-absent",
        "index": "logs",
    }


def test_a_config_of_every_built_in_connector_is_made_by_the_form_alone(browser: Browser, values: dict[str, str]) -> None:
    connectors = MemoryConnectors()
    table: list[str] = []
    with PageServer(connectors.herder, connectors.dashboard) as server, opened(browser, server.url) as ui:
        for number, plugin in enumerate(installed()):
            name = f"made-{number}"
            ui.go(f"#/plugins/{plugin.name}/create")
            expect(ui.control("name")).to_be_focused(timeout=60_000)
            ui.set("name", name)
            if plugin.type == "sink":
                ui.set("topics", values["topics"])
            filled, absent = _complete(ui, values | _of_plugin(plugin.name))
            table.append(f"{plugin.name}: {', '.join(filled) or 'nothing more'}{f'; {absent}' if absent else ''}")
            print(table[-1], flush=True)
            if absent is None:
                ui.page.get_by_role("dialog").get_by_role("button", name="Create").click()
                expect(ui.page.get_by_role("heading", level=1)).to_have_text(name)
                assert set(connectors.herder.info(name).config) >= {"name", "connector.class", *filled}
            else:
                ui.button("Cancel").click()
                ui.page.get_by_role("dialog").get_by_role("button", name="Discard").click()
                expect(ui.page.locator(".editor")).to_have_count(0)  # leads elsewhere, before the next go()
    assert len(table) == len(installed())


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("transformation", {"transforms": "p", "transforms.p.type": ""}),
        ("predicate", {"transforms": "f", "transforms.f.type": FILTER, "predicates": "p", "predicates.p.type": ""}),
        ("converter", {"value.converter": ""}),
        ("header_converter", {"header.converter": ""}),
    ],
)
def test_every_other_built_in_plugin_is_configured_by_the_form_alone(browser: Browser, kind: str, keys: dict[str, str]) -> None:
    connectors = MemoryConnectors()
    plugins = [each for each in installed(connectors_only=False) if each.type == kind]
    own = list(keys)[-1]
    prefix = own.removesuffix("type") if own.endswith(".type") else f"{own}."
    values = {"topic": "lines"} | {f"{prefix}{key}": value for key, value in PLUGIN_KEYS.items()}
    with PageServer(connectors.herder, connectors.dashboard) as server, opened(browser, server.url) as ui:
        for number, plugin in enumerate(plugins):
            name = f"made-{number}"
            ui.go(f"#/plugins/{SOURCE}/create")
            expect(ui.control("name")).to_be_focused(timeout=60_000)
            ui.set("name", name)
            for key, value in keys.items():
                expect(ui.field(key)).to_be_attached()
                ui.set(key, value or plugin.name)
            filled, absent = _complete(ui, values)
            print(f"{plugin.name}: {', '.join(filled)}", flush=True)
            assert absent is None, absent
            ui.page.get_by_role("dialog").get_by_role("button", name="Create").click()
            expect(ui.page.get_by_role("heading", level=1)).to_have_text(name)
            config = connectors.herder.info(name).config
            assert config[own] == plugin.name
            assert set(config) >= set(filled)
    assert plugins


def _complete(ui: Ui, values: dict[str, str]) -> tuple[list[str], str | None]:
    """Fill in keys with errors until there are none. Return them, and what is absent on this machine."""
    filled: list[str] = []
    for _ in range(_ROUNDS):
        ui.button("Review").click()
        expect(ui.page.locator(".editor")).to_have_attribute("aria-busy", "false", timeout=60_000)
        dialog, errors = ui.page.get_by_role("dialog"), ui.page.locator(".field:has(.wrong p)")
        expect(dialog.or_(errors.first)).to_be_visible()
        if dialog.is_visible():
            return filled, None
        found = {each.get_attribute("data-field") or "": each.locator(".wrong").inner_text() for each in errors.all()}
        if all(_ABSENT.search(message) for message in found.values()):
            return filled, "; ".join(found.values())
        for key, message in found.items():
            if not _ABSENT.search(message):
                assert key in values, f"{key}: {message}"
                assert key not in filled, f"{key}: {message}"
                ui.set(key, values[key])
                filled.append(key)
    raise AssertionError(f"The form still has errors after {_ROUNDS} rounds, in {filled}")
