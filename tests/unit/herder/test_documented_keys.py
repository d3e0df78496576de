"""Every key that the documentation shows is accepted by validation, with its value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sluiceway.config.connector import OWN
from sluiceway.config.definition import ConfigDef
from sluiceway.config.unknown_keys import unknown_keys
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class
from sluiceway.herder.enrichment import framework_def
from sluiceway.herder.validation import validate_config

DOCS = Path(__file__).resolve().parents[3] / "docs"
WORKER = WorkerConfig.of({"group.id": "g", "offset.storage.file.filename": "offsets"})
SOURCE = {"name": "c", "connector.class": "support.engine_connectors.ScriptedSourceConnector", "tasks.max": "1"}
SINK = {"name": "c", "connector.class": "VerifiableSink", "topics": "t", "tasks.max": "1"}
TABLES = {
    "name": "c",
    "connector.class": "DeltaSink",
    "topics": "t",
    "delta.path": "/p",
    "delta.tables": "t",
    "delta.tables.auto-create-enabled": "true",
}
MICRO_BATCH = {"airflow.mode": "micro-batch"}
PREFIXES = (
    "labels.",
    *("source.cluster.", "target.cluster.", "dlt.config.", "dlt.secret.", "singer.config."),
    *("transforms.", "predicates.", "producer.", "consumer.", "admin.", "spark.", "option.", "topic.creation."),
    *("iceberg.catalog.", "iceberg.table.", "delta.storage.", "delta.table.", "dlt.table.", "value.converter.", "key.converter."),
)
"""Starts of keys that no connector defines one by one."""
WRITTEN_IN_THE_PAGE = "csv_source.CsvSourceConnector"
OF_JARS = "connector.plugin.version"
"""The key of a config whose class is one of the reader's jars."""
EXAMPLES = {
    "airflow.mode": "micro-batch",
    "airflow.schedule": "@hourly",
    "airflow.catchup": "false",
    "airflow.start.date": "2024-01-31",
    "airflow.owner": "me",
    "airflow.tags": "a,b",
    "airflow.retries": "3",
    "airflow.on.failure.callback": "alerts.failed",
    "airflow.on.success.callback": "alerts.done,alerts.counted",
    "airflow.on.retry.callback": "alerts.again",
    "airflow.outlets": "s3://bucket/a,file:///b",
    "airflow.dag": "mine",
    "airflow.config.task": "load",
    "airflow.interval": "exact",
    "airflow.interval.field": "order.at",
    "airflow.interval.time": "record",
    "airflow.interval.lateness": "10m",
    "airflow.interval.late": "next",
    "airflow.interval.rerun.within": "3d",
    "airflow.interval.again": "append",
    "airflow.interval.column": "hour",
    "airflow.max.active.runs": "1",
    "airflow.assets.interval": "1m",
    "airflow.partition": "hour",
    "airflow.interval.start.ms": "0",
    "airflow.interval.end.ms": "3600000",
    "airflow.interval.positions": '{"t":{"0":[0,0,5]}}',
    "airflow.interval.reruns": "[[0,3600000]]",
    "airflow.interval.attempt": "1",
    "airflow.interval.connector": "c",
}


def errors(config: dict[str, str]) -> dict[str, tuple[str, ...]]:
    found = validate_config(config, WORKER)
    return {info.value.name: info.value.errors for info in found.configs if info.value is not None and info.value.errors}


def documented() -> set[str]:
    """Return the keys below ``airflow.`` in all pages."""
    keys = set()
    for page in DOCS.rglob("*.md"):
        keys |= set(re.findall(r"(?<![\w./\[])airflow\.[a-z]+(?:\.[a-z]+)*", page.read_text(encoding="utf-8")))
    return {key for key in keys if key.startswith(("airflow.on.", *EXAMPLES))}


def test_the_pages_and_the_definition_have_the_same_keys() -> None:
    assert documented() == {key.name for key in OWN if key.name.startswith("airflow.")} == set(EXAMPLES)


@pytest.mark.parametrize("key", sorted(EXAMPLES))
def test_a_documented_key_is_accepted(key: str) -> None:
    mode = {} if key == "airflow.partition" else MICRO_BATCH
    connector = {"airflow.interval.time": SOURCE, "airflow.interval.column": TABLES}.get(key, SINK)
    assert errors({**connector, **mode, key: EXAMPLES[key]}) == {}


def printed(text: str) -> Iterator[str]:
    """Yield the JSON blocks of a page, and the files that its commands write, as a shell would."""
    for block, file in re.findall(r"```json\n(.*?)```|\.(?:json|yaml) <<'?END'?\n(.*?)^END$", text, re.DOTALL | re.MULTILINE):
        file = re.sub(r"\$\(date [^)]*\)", "2024-01-31", file)
        yield block or re.sub(r"\$\([^)]*\)", "localhost:9092", file.replace("$PWD", "/home/me/sluiceway").replace(r"\$", "$"))


def blocks() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the connectors' configs in the pages."""
    for page in sorted(DOCS.rglob("*.md")):
        for number, block in enumerate(printed(page.read_text(encoding="utf-8"))):
            try:
                documents = list(yaml.load_all(block, yaml.BaseLoader))  # all values as texts; reads JSON, too
            except yaml.YAMLError:
                continue  # a part of a config
            for part, found in enumerate(documents):
                config = found.get("config", found) if isinstance(found, dict) else {}
                if isinstance(config, dict) and config.get("connector.class", WRITTEN_IN_THE_PAGE) != WRITTEN_IN_THE_PAGE:
                    yield f"{page.relative_to(DOCS)}-{number}-{part}", {"name": "c", **config}


@pytest.mark.parametrize("config", [pytest.param(config, id=name) for name, config in blocks()])
def test_the_keys_of_a_config_in_a_page_are_known(config: dict[str, str]) -> None:
    known = {key.name for definition in definitions(config) for key in definition}
    assert unknown_keys(config, known) == {}
    assert [key for key in config if key not in known and not key.startswith(PREFIXES)] == []


@pytest.mark.parametrize("config", [pytest.param(config, id=name) for name, config in blocks() if OF_JARS not in config])
def test_the_values_of_a_config_in_a_page_are_valid(config: dict[str, str]) -> None:
    """Without the connector's own checks, which may ask the system that the page names."""
    found = [value for definition in definitions(config) for value in definition.validate(config).values()]
    assert {value.name: value.errors for value in found if value.errors} == {}


def test_the_pages_have_configs_of_both_kinds() -> None:
    names = [name for name, _ in blocks()]
    assert any(name.startswith("how-to/recipes") for name in names)
    assert any(name.startswith("how-to/write-files") for name in names)


def definitions(config: dict[str, str]) -> tuple[ConfigDef, ...]:
    """Return the definitions of a config's keys: those of all connectors, those of its class, and Sluiceway's own."""
    connector = connector_class(config["connector.class"])
    return framework_def(connector, dict(config), WORKER), connector.config_def(), OWN


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        ({"airflow.schedule": "0 25 * * *"}, "airflow.schedule", "not a cron expression"),
        ({"airflow.schedule": "nonsense"}, "airflow.schedule", "not a cron expression"),
        ({"airflow.schedule": "@nonsense"}, "airflow.schedule", "not a cron expression"),
        ({"airflow.schedule": "0 0 30 2 *"}, "airflow.schedule", "never comes true"),
        ({"airflow.schedule": "lag:0"}, "airflow.schedule", "how many records"),
        ({"airflow.schedule": "lag:many"}, "airflow.schedule", "how many records"),
        ({"airflow.schedule": "asset:"}, "airflow.schedule", "URIs of assets"),
        ({"airflow.schedule": "asset:nothing"}, "airflow.schedule", "URIs of assets"),
        ({"airflow.schedule": "asset:airflow://x"}, "airflow.schedule", "not airflow"),
        ({"airflow.schedule": "asset:s3://ü"}, "airflow.schedule", "ASCII"),
        ({"airflow.schedule": "asset:s3://a|s3://[b"}, "airflow.schedule", "not a URI"),
        ({"airflow.schedule": "@hourly", "airflow.mode": "long-running"}, "airflow.schedule", "airflow.mode=micro-batch"),
        ({"airflow.catchup": "true", "airflow.schedule": "@hourly"}, "airflow.catchup", "airflow.start.date"),
        ({"airflow.catchup": "true", "airflow.start.date": "2024-01-31"}, "airflow.catchup", "cron expression"),
        ({"airflow.catchup": "perhaps"}, "airflow.catchup", "true or false"),
        ({"airflow.start.date": "yesterday"}, "airflow.start.date", "ISO 8601"),
        ({"airflow.outlets": "nothing"}, "airflow.outlets", "scheme"),
        ({"airflow.on.failure.callback": "notify"}, "airflow.on.failure.callback", "with its module"),
        ({"airflow.nothing": "x"}, "airflow.nothing", "Unknown configuration"),
        ({"connector.class": "VerifiableSource", "topic": "t", "airflow.schedule": "lag:5"}, "airflow.schedule", "only a sink"),
        ({"airflow.schedule": "on-change"}, "airflow.schedule", "only sources are watched"),
    ],
    ids=str,
)
def test_a_schedule_that_airflow_could_not_keep_is_an_error_of_its_key(changes: dict[str, str], key: str, message: str) -> None:
    found = errors({**SINK, **MICRO_BATCH, **changes})
    assert message in found[key][0]


@pytest.mark.parametrize(
    "schedule",
    [
        "@once",
        "@continuous",
        "@quarterly",
        "*/5 * * * *",
        "0 0 29 2 *",
        "lag:5",
        "asset:s3://a,file:///b",
        "asset:x-a://b|s3://c",
    ],
)
def test_schedules_that_airflow_keeps(schedule: str) -> None:
    assert errors({**SINK, **MICRO_BATCH, "airflow.schedule": schedule}) == {}
