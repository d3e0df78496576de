"""DltSink with a real broker and real destinations, which other libraries than dlt read."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from sluiceway.connectors.dlt.sink import DltSinkConnector
from support.database import DatabaseForTest
from support.dlt_targets import DltTarget, DuckDbTarget, FolderTarget, PostgresTarget
from support.eventually import eventually
from support.jdbc_sink import JSON, STATIC_MEMBER, TaskProcess, fill, kill_at_random, person
from support.kafka import Kafka

pytestmark = pytest.mark.kafka

COUNT = 20_000
MERGE = {"dlt.tables.upsert-mode-enabled": "true", "dlt.tables.default-id-columns": "id"}
_POSTGRES = {"dlt.destination": "postgres", "dlt.destination.args": '{"credentials": "dlt.secret.url"}'}
_LONG = pytest.mark.long


@pytest.fixture(
    params=[
        "duckdb",
        "postgres",
        pytest.param("folder native", marks=_LONG),
        pytest.param("folder delta", marks=_LONG),
        pytest.param("folder iceberg", marks=_LONG),
    ]
)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> DltTarget:
    if request.param == "duckdb":
        return DuckDbTarget(tmp_path)
    if request.param == "postgres":
        return PostgresTarget(request.getfixturevalue("postgresql"), tmp_path)
    return FolderTarget(tmp_path, request.param.split()[1])


@pytest.fixture
def numbers(kafka: Kafka, unique: Callable[[str], str]) -> str:
    """A topic of two partitions with the numbers below COUNT."""
    topic = kafka.create(unique("numbers").replace("-", "_").lower(), 2)
    fill(kafka.bootstrap, (person(0, number, f"n{number}", topic=topic, partition=number % 2) for number in range(COUNT)))
    return topic


def _config(target: DltTarget, topic: str, **more: str) -> dict[str, str]:
    return {"name": f"sink-{topic}", "topics": topic, **target.config, **JSON, **STATIC_MEMBER, **more}


def test_killed_in_loads_each_record_is_loaded_once(kafka: Kafka, numbers: str, target: DltTarget, chance: random.Random) -> None:
    small = {"sluiceway.flush.size": "1000", "consumer.override.max.poll.records": "500"}
    kill_at_random(_config(target, numbers, **small), kafka.bootstrap, lambda: len(target.ids(numbers)), chance, 1.0)
    with TaskProcess(_config(target, numbers), kafka.bootstrap, bounded=True) as process:
        process.finish()
    assert Counter(target.ids(numbers)) == Counter(range(COUNT))
    assert kafka.committed(f"connect-sink-{numbers}") == {(numbers, 0): COUNT // 2, (numbers, 1): COUNT // 2}


def test_a_database_that_is_away_is_waited_for(
    kafka: Kafka, unique: Callable[[str], str], postgresql: DatabaseForTest, tmp_path: Path
) -> None:
    topic = kafka.create(unique("away").replace("-", "_").lower(), 1)
    target = PostgresTarget(postgresql, tmp_path)
    config = {**_config(target, topic, **MERGE), "sluiceway.flush.size": "1"}
    with TaskProcess(config, kafka.bootstrap) as process:
        fill(kafka.bootstrap, [person(0, 0, "a", topic=topic)])
        eventually(lambda: target.ids(topic) == [0])
        postgresql.execute(f'alter schema loaded rename to "{topic}_away"')  # every statement of a load fails
        fill(kafka.bootstrap, [person(0, 1, "b", topic=topic)])
        eventually(lambda: target.ids(topic) == [1] or not process.alive, what="a load into a dataset that was dropped")
    assert target.ids(topic) == [1], "a dataset that was dropped is made, with what comes"


@pytest.mark.parametrize(
    ("more", "key", "why"),
    [
        ({"dlt.destination": "duckdbb"}, "dlt.destination", "is no destination of dlt"),
        ({"dlt.destination": "bigquery", "dlt.destination.args": "{}"}, "dlt.destination.args", "has no value for"),
        ({"dlt.destination.args": '{"nothing": 1, "credentials": 2}'}, "dlt.destination", ""),
        ({"dlt.destination.args": "[]"}, "dlt.destination.args", "must be a JSON object"),
        ({"dlt.destination.args": '{"credentials": "dlt.secret.no"}'}, "dlt.destination.args", "names the key dlt.secret.no"),
        ({"dlt.merge.strategy": "upsert"}, "dlt.merge.strategy", "dlt.tables.upsert-mode-enabled=true"),
        ({"dlt.tables.upsert-mode-enabled": "true"}, "dlt.tables.default-id-columns", "needs the columns"),
        (
            {**MERGE, "dlt.destination": "filesystem", "dlt.destination.args": '{"bucket_url": "FOLDER"}'},
            "dlt.tables.upsert-mode-enabled",
            "Set dlt.table.format=delta or iceberg",
        ),
        (
            {
                **MERGE,
                "dlt.destination": "filesystem",
                "dlt.table.format": "delta",
                "dlt.merge.strategy": "delete-insert",
                "dlt.destination.args": '{"bucket_url": "FOLDER"}',
            },
            "dlt.merge.strategy",
            "which has upsert",
        ),
        ({**_POSTGRES, "dlt.secret.url": "postgresql://me:hunter2@127.0.0.1:1/nothing"}, "", ""),  # a task waits for it
    ],
)
def test_a_validation_finds_what_a_load_would(tmp_path: Path, more: dict[str, str], key: str, why: str) -> None:
    given = {name: value.replace("FOLDER", tmp_path.as_uri()) for name, value in more.items()}
    config = {**DuckDbTarget(tmp_path).config, "name": "sink", "topics": "t", **given}
    errors = {name: each.errors for name, each in DltSinkConnector.validate(config).items() if each.errors}
    assert set(errors) == ({key} if key else set()), errors
    assert why in str(errors.get(key, ""))
    assert "hunter2" not in str(errors)


def test_a_validation_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """dlt makes a database of DuckDB in the current folder if it is given none."""
    monkeypatch.chdir(tmp_path)
    config = {"name": "sink", "topics": "t", "connector.class": "DltSink", "dlt.destination": "duckdb"}
    assert not any(each.errors for each in DltSinkConnector.validate(config).values())
    assert not list(tmp_path.iterdir())


def test_a_login_that_is_refused_is_found_by_a_validation(postgresql: DatabaseForTest, tmp_path: Path) -> None:
    config = {**PostgresTarget(postgresql, tmp_path).config, "name": "sink", "topics": "t"}
    assert not any(each.errors for each in DltSinkConnector.validate(config).values())
    config["dlt.secret.url"] = config["dlt.secret.url"].replace(f":{postgresql.password}@", ":hunter2@")
    errors = {name: each.errors for name, each in DltSinkConnector.validate(config).items() if each.errors}
    assert "password authentication failed" in str(errors.pop("dlt.destination"))
    assert not errors
