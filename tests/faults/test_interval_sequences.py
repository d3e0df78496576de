"""Each record in the one interval that it belongs to, on a real Airflow, whose runs are cleared, killed, and run side by side.

SEQUENCES in the environment is the number of random sequences of each kind.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

from cdc.captured import captured_postgres
from cdc.test_intervals import write
from sluiceway.config.intervals import Interval
from support.airflow_home import isolate_airflow
from support.database import DatabaseForTest
from support.faults.rows import NewRow
from support.interval_sequences import SETTINGS, AirflowMachine
from support.interval_targets import DatabaseTable, LakeTable, ParquetFiles, Target, fill_table
from support.intervals import CONVERTERS, belongings, fill, hours
from support.kafka import Kafka
from support.postgres import PostgresServer, drop_slots
from support.stack import RunningStack

isolate_airflow()
pytestmark = [pytest.mark.airflow, pytest.mark.kafka, pytest.mark.timeout(3600)]

_SEQUENCES = int(os.environ.get("SEQUENCES", "1"))
_DAY = hours(1_767_225_600_000, 24)  # 2026-01-01
_COUNT = 4  # hours of a sequence
_STEPS = 3
_LATENESS = 600_000
_EXACTLY_ONCE = {"exactly.once.source.support": "enabled"}


class Hours(NamedTuple):
    """A topic with the records of a day, and the values that belong to each hour."""

    topic: str
    of: Mapping[Interval, list[str]]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    running = RunningStack(tmp_path_factory.mktemp("stack"), postgres=True, settings=SETTINGS, worker=_EXACTLY_ONCE)
    yield running
    running.close()


@pytest.fixture(scope="module")
def kafka(stack: RunningStack) -> Kafka:
    return Kafka(stack.addresses.bootstrap)


@pytest.fixture(scope="module")
def filled(kafka: Kafka) -> Hours:
    topic = kafka.create("day", 3, retention_ms="-1")
    sent = fill(kafka.bootstrap, topic, 3, _DAY, 50, _LATENESS, random.Random(7))  # noqa: S311 (test data)
    return Hours(topic, belongings(sent, _DAY, _LATENESS))


@pytest.fixture(params=["parquet", "iceberg", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    if request.param == "postgresql":
        return DatabaseTable(request.getfixturevalue("postgresql"))
    return ParquetFiles(tmp_path) if request.param == "parquet" else LakeTable("iceberg", tmp_path)


def _some_hours(chance: random.Random) -> list[Interval]:
    first = chance.randrange(len(_DAY) - _COUNT + 1)
    return _DAY[first : first + _COUNT]


@pytest.mark.parametrize("sequence", range(_SEQUENCES))
def test_a_sink_moves_each_record_once(
    stack: RunningStack,
    filled: Hours,
    target: Target,
    unique: Callable[[str], str],
    chance: random.Random,
    row: NewRow,
    sequence: int,
) -> None:
    name, some = unique("sink").lower(), _some_hours(chance)
    made = row(f"{target.config['connector.class']} {sequence}: runs cleared, killed, side by side", "each record once")
    config = {**target.config, **CONVERTERS, "topics": filled.topic, "airflow.interval.lateness": "10m", "name": name}
    machine = AirflowMachine(stack, name, config, some, chance)
    machine.run(_STEPS)
    assert target.written() == sorted(value for hour in some for value in filled.of[hour])
    stack.connect.delete(name)
    made.seen = f"{len(target.written())} records, {machine.kills} kills, {machine.clears} clears"


@pytest.mark.parametrize("sequence", range(_SEQUENCES))
def test_a_table_is_moved_to_a_topic_once(
    stack: RunningStack,
    kafka: Kafka,
    postgresql: DatabaseForTest,
    unique: Callable[[str], str],
    chance: random.Random,
    row: NewRow,
    sequence: int,
) -> None:
    name, some = unique("rows").lower(), _some_hours(chance)
    made = row(f"JdbcSource {sequence}: runs cleared, killed, side by side", "each row once")
    kafka.create(f"{name}-moments")
    expected = fill_table(postgresql, _DAY, chance)
    config = {
        "connector.class": "JdbcSource",
        **postgresql.config,
        "mode": "timestamp+incrementing",
        "timestamp.column.name": "at",
        "incrementing.column.name": "id",
        "table.whitelist": "public.moments",
        "topic.prefix": f"{name}-",
        "batch.max.rows": "7",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
        "exactly.once.support": "required",
    }
    machine = AirflowMachine(stack, name, config, some, chance)
    machine.run(_STEPS)
    values = [orjson.loads(message.value())["text"] for message in kafka.read_committed(f"{name}-moments")]
    assert sorted(values) == sorted(text for hour in some for text in expected[hour])
    stack.connect.delete(name)
    made.seen = f"{len(values)} rows, {machine.kills} kills, {machine.clears} clears"


@pytest.mark.parametrize("sequence", range(_SEQUENCES))
def test_a_log_is_moved_to_a_topic_once(
    stack: RunningStack,
    kafka: Kafka,
    postgresql_server: PostgresServer,
    unique: Callable[[str], str],
    chance: random.Random,
    row: NewRow,
    sequence: int,
) -> None:
    name = unique("log").lower().replace("-", "_")
    made = row(f"PostgreSQL's log {sequence}: runs cleared and killed", "each change once")
    with captured_postgres(postgresql_server, name) as source:
        source.execute(
            "create publication dbz_publication for all tables",
            f"select pg_create_logical_replication_slot('{source.config['slot.name']}', 'pgoutput')",
        )
        written = write(source, chance)
        kafka.create(f"{name}.public.t")
        config = {
            **source.config,
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "topic.prefix": name,
            "snapshot.mode": "no_data",
            "airflow.interval.lateness": "0s",
            "max.batch.size": "10",
            "value.converter": "JsonConverter",
            "value.converter.schemas.enable": "false",
            "key.converter": "JsonConverter",
            "exactly.once.support": "required",
        }
        seconds = [*written.seconds, Interval(written.seconds[-1].end, written.seconds[-1].end + 1000)]
        machine = AirflowMachine(stack, name, config, seconds, chance, side_by_side=False)
        for second in seconds:
            machine.move([second], may_kill=True)
            if chance.random() < 0.3:
                machine.move([chance.choice(seconds[: seconds.index(second) + 1])])
        found = [orjson.loads(message.value())["after"]["id"] for message in kafka.read_committed(f"{name}.public.t")]
        assert sorted(found) == written.keys
        stack.connect.delete(name)
        drop_slots(source.database, f"slot_name = '{source.config['slot.name']}'")
    made.seen = f"{len(found)} changes, {machine.kills} kills, {machine.clears} clears"
