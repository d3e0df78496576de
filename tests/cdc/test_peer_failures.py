"""Recorded scenarios of MariaDB in which Debezium itself dies: our connector captures each row and change.

Their statements are those of the kit's folder ``peer_fails``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cdc.configs import JSON, mariadb_config
from support.engine import Offsets, RunningTask
from support.eventually import eventually
from support.kafka import Kafka
from support.mariadb import MariaDbServer

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(600)]

_SCENARIOS = Path(__file__).parent / "kit/peer_fails"
_PLACEHOLDER = "__debezium_unavailable_value"
Change = tuple[str, dict[str, Any] | None]

_SNAPSHOT: list[Change | None] = [
    ("r", {"id": 1, "a": "one", "b": 1}),
    ("r", {"id": 2, "a": "two", "b": 2}),
    ("r", {"id": 3, "a": "three", "b": 3}),
]
_DELETED: list[Change | None] = [("d", None), None]


def _addresses(address: str) -> dict[str, list[Change | None]]:
    rows: list[Change | None] = []
    for operation, first in (("r", 1), ("c", 101)):
        rows += [(operation, {"id": first, "a": address}), (operation, {"id": first + 1, "a": None})]
    return {"t": rows + _DELETED}


# The operation and the row after it, by scenario and table; None is a tombstone.
CHANGES: dict[str, dict[str, list[Change | None]]] = {
    "my_ddl_system_versioned": {
        "t": _SNAPSHOT,
        "sv": [("c", {"id": 1, "x": 1}), ("u", {"id": 1, "x": 2}), *_DELETED],
    },
    # A number that the log leaves out is null: only strings and bytes have a placeholder.
    "my_ops_row_image_minimal": {
        "t": [
            *_SNAPSHOT,
            ("c", {"id": 4, "a": "four", "b": 4}),
            ("u", {"id": 1, "a": "ONE", "b": None}),
            ("u", {"id": 2, "a": _PLACEHOLDER, "b": None}),
            *_DELETED,
        ]
    },
    "my_ops_row_image_noblob": {
        "t": [
            ("r", {"id": 1, "a": 1, "b": "big"}),
            ("u", {"id": 1, "a": 2, "b": _PLACEHOLDER}),
            ("u", {"id": 1, "a": 2, "b": "z"}),
            *_DELETED,
        ]
    },
    "my_types_inet4": _addresses("10.0.0.1"),
    "my_types_inet6": _addresses("2001:db8::1"),
    "my_types_year_zero": {
        "t": [
            *((op, {"id": first + n, "a": a}) for op, first in (("r", 1), ("c", 101)) for n, a in enumerate((0, 1970, 1901))),
            *_DELETED,
        ]
    },
}


@pytest.fixture(scope="module")
def server() -> Iterator[MariaDbServer]:
    with MariaDbServer(binlog=True) as started:
        yield started


@pytest.mark.parametrize("scenario", sorted(path.stem for path in _SCENARIOS.glob("*.json")))
def test_each_change_is_captured(server: MariaDbServer, kafka: Kafka, unique: Callable[[str], str], scenario: str) -> None:
    given = json.loads((_SCENARIOS / f"{scenario}.json").read_text())
    server.execute(f"create database {scenario}")
    database = server.database(scenario)
    for statement in given["before"]:
        database.execute(statement)
    name = unique("fails")
    config = mariadb_config(database, name, kafka.bootstrap, **{key.replace(".", "_"): v for key, v in given["config"].items()})
    wanted = CHANGES[scenario]
    topics = {table: kafka.create(f"{name}.{scenario}.{table}") for table in wanted}
    worker = {"bootstrap.servers": kafka.bootstrap, **JSON, "offset.flush.interval.ms": "300"}
    with RunningTask(config, worker, offsets=Offsets()) as task:
        read = {table: sum(change is not None and change[0] == "r" for change in changes) for table, changes in wanted.items()}
        eventually(lambda: all(kafka.count(topics[table]) >= read[table] for table in topics), what="the snapshot")
        with database.connect() as connection, connection.cursor() as cursor:
            for statement in (each for step in given["steps"] for each in step.get("sql", ())):
                cursor.execute(statement)
        for table, changes in wanted.items():
            arrived = partial(_arrived, kafka, topics[table], len(changes), task)
            eventually(arrived, what=f"the changes of {table}")
            assert [_change(message.value()) for message in kafka.read(topics[table], len(changes))] == changes
        assert not task.stop().failed, task.result


def _arrived(kafka: Kafka, topic: str, records: int, task: RunningTask) -> bool:
    return kafka.count(topic) >= records or task.result is not None


def _change(value: bytes | None) -> Change | None:
    if value is None:
        return None
    event = json.loads(value)
    return event["op"], event["after"]
