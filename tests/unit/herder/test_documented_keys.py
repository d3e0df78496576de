"""Every key that the documentation shows is accepted by validation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluiceway.config.connector import OWN
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class
from sluiceway.herder.enrichment import framework_def
from sluiceway.herder.validation import validate_config

DOCS = Path(__file__).resolve().parents[3] / "docs"
WORKER = WorkerConfig.of({"group.id": "g", "offset.storage.file.filename": "offsets"})
SINK = {"name": "c", "connector.class": "VerifiableSink", "topics": "t", "tasks.max": "1"}
MICRO_BATCH = {"airflow.mode": "micro-batch"}
PREFIXES = (
    *("transforms.", "predicates.", "producer.", "consumer.", "admin.", "spark.", "option.", "topic.creation."),
    *("iceberg.catalog.", "iceberg.table.", "delta.storage.", "delta.table.", "value.converter.", "key.converter."),
)
"""Starts of keys that no connector defines one by one."""
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
    assert errors({**SINK, **MICRO_BATCH, key: EXAMPLES[key]}) == {}


def blocks() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the connectors' configs in the pages."""
    for page in sorted(DOCS.rglob("*.md")):
        for number, block in enumerate(re.findall(r"```json\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)):
            try:
                found = json.loads(block)
            except ValueError:
                continue  # a part of a config
            config = found.get("config", found) if isinstance(found, dict) else {}
            if isinstance(config, dict) and "connector.class" in config:
                yield f"{page.relative_to(DOCS)}-{number}", {"name": "c", **{key: str(value) for key, value in config.items()}}


@pytest.mark.parametrize("config", [pytest.param(config, id=name) for name, config in blocks()])
def test_the_keys_of_a_config_in_a_page_are_known(config: dict[str, str]) -> None:
    connector = connector_class(config["connector.class"])
    definitions = (framework_def(connector, {**config}, WORKER), connector.config_def(), OWN)
    known = {key.name for definition in definitions for key in definition}
    assert [key for key in config if key not in known and not key.startswith(PREFIXES)] == []


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
