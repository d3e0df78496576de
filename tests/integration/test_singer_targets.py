"""Real targets from the package index have what the records have, and twice if they append and get it twice."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.data import Schema, Struct, Type, date_schema, decimal_schema, timestamp_schema
from sluiceway.errors import RetriableError
from sluiceway.singer_plugins.programs import use_singer_plugins
from support.database import HOST, PASSWORD, USER
from support.postgres import PostgresServer
from support.singer_taps import installed
from support.singer_targets import flush, started_sink

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

ORDERS = TopicPartition("orders", 0)
ROW = Schema.struct(
    [
        ("id", Schema(Type.INT64)),
        ("name", Schema(Type.STRING, optional=True)),
        ("total", decimal_schema(2, optional=True)),
        ("ratio", Schema(Type.FLOAT64, optional=True)),
        ("paid", Schema(Type.BOOLEAN, optional=True)),
        ("day", date_schema(optional=True)),
        ("at", timestamp_schema(optional=True)),
        ("body", Schema(Type.BYTES, optional=True)),
        ("address", Schema.struct([("city", Schema(Type.STRING))], optional=True)),
        ("tags", Schema.array(Schema(Type.STRING), optional=True)),
        ("counts", Schema.map(Schema(Type.STRING), Schema(Type.INT32), optional=True)),
    ]
)
AT = dt.datetime(2026, 1, 2, 3, 4, 5, 678_000, dt.timezone.utc)
VALUES: list[list[Any]] = [
    [
        1,
        'n"1\u00e9',
        Decimal("12345678901234567.89"),
        0.1,
        True,
        dt.date(2026, 1, 2),
        AT,
        b"\x00\xff",
        "Rome",
        ["x", "y"],
        {"a": 1},
    ],
    [2, *[None] * 10],
]


def rows(first: int, name: str | None = None) -> list[SinkRecord]:
    """Return two records, whose ids are 1 and 2, from an offset on."""
    address = Schema.struct([("city", Schema(Type.STRING))], optional=True)
    made = []
    for number, values in enumerate(VALUES):
        given = list(values)
        given[1] = name or given[1]
        given[8] = None if given[8] is None else Struct.of(address, [given[8]])
        made.append(
            SinkRecord("orders", 0, first + number, Struct.of(ROW, given), ROW, key=given[0], key_schema=Schema(Type.INT64))
        )
    return made


@dataclass(frozen=True, slots=True)
class Case:
    """A target: ``read`` returns the rows that it has, and ``row`` is that of the first record."""

    requirement: str
    program: str
    settings: dict[str, Any]
    read: Callable[[], list[dict[str, Any]]]
    row: dict[str, Any]
    upserts: bool = False
    more: dict[str, str] = field(default_factory=dict)


def jsonl(_request: pytest.FixtureRequest, folder: Path) -> Case:
    def read() -> list[dict[str, Any]]:
        return [json.loads(line, parse_float=Decimal) for line in (folder / "orders.jsonl").read_text().splitlines()]

    row = {
        "id": 1,
        "name": 'n"1\u00e9',
        "total": Decimal("12345678901234567.89"),
        "ratio": Decimal("0.1"),
        "paid": True,
        "day": "2026-01-02",
        "at": "2026-01-02T03:04:05.678+00:00",
        "body": "AP8=",
        "address": {"city": "Rome"},
        "tags": ["x", "y"],
        "counts": {"a": 1},
    }
    return Case("target-jsonl==0.1.4", "target-jsonl", {"destination_path": str(folder), "do_timestamp_file": False}, read, row)


def of_csv(_request: pytest.FixtureRequest, folder: Path) -> Case:
    """It begins its file again at each start, so each run must have a file of its own."""

    def read() -> list[dict[str, Any]]:
        texts = [file.read_text() for file in sorted(folder.glob("orders-*.csv"))]
        return [row for text in texts for row in csv.DictReader(io.StringIO(text, newline=""))]

    settings = {
        "output_path": str(folder),
        "file_naming_scheme": "{stream_name}-{timestamp}.csv",
        "timestamp_format": "%Y%m%dT%H%M%S.%f",
    }
    row = {"id": "1", "name": 'n"1\u00e9', "total": "12345678901234567.89", "paid": "True", "body": "AP8="}
    return Case("meltanolabs-target-csv==0.5.0", "target-csv", settings, read, row)


def of_postgres(request: pytest.FixtureRequest, _folder: Path) -> Case:
    server: PostgresServer = request.getfixturevalue("postgres")

    def read() -> list[dict[str, Any]]:
        found = server.execute("select row_to_json(o)::text from orders o order by id")
        return [json.loads(line, parse_float=Decimal) for (line,) in found]

    settings = {
        "host": HOST,
        "port": server.port,
        "user": USER,
        "password": PASSWORD,
        "database": "postgres",
        "default_target_schema": "public",
        "add_record_metadata": False,
        "activate_version": False,
    }
    row = {
        "id": 1,
        "name": 'n"1\u00e9',
        "total": Decimal("12345678901234567.89"),
        "ratio": Decimal("0.1"),
        "paid": True,
        "body": "AP8=",
        "address": {"city": "Rome"},
        "counts": {"a": 1},
    }
    more = {"pk.mode": "record_key", "pk.fields": "id"}
    return Case("meltanolabs-target-postgres==0.8.1", "target-postgres", settings, read, row, upserts=True, more=more)


TARGETS: dict[str, Callable[[pytest.FixtureRequest, Path], Case]] = {
    "target-jsonl": jsonl,
    "meltanolabs-target-csv": of_csv,
    "meltanolabs-target-postgres": of_postgres,
}


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture(params=TARGETS)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    if "postgres" in request.param:
        request.getfixturevalue("postgres").execute("drop table if exists orders")
    folder = tmp_path / "data"
    folder.mkdir()
    made = TARGETS[request.param](request, folder)
    use_singer_plugins([installed(made.requirement)])
    return made


def config_of(case: Case) -> dict[str, str]:
    keys = {"singer.target": case.program, "singer.config": json.dumps(case.settings), "retry.backoff.ms": "0", **case.more}
    return {"name": "n", "connector.class": "SingerSink", **keys}


def test_the_target_has_what_the_records_have_and_keys_decide_about_doubles(case: Case) -> None:
    with started_sink(config_of(case)) as (task, context):
        task.put(rows(0))
        assert flush(task, context, {ORDERS: 2}) == {ORDERS: 2}
        found = case.read()
        assert {name: found[0][name] for name in case.row} == case.row
        assert [str(each["id"]) for each in found] == ["1", "2"]
        task.put(rows(2, "again"))
        assert flush(task, context, {ORDERS: 4}) == {ORDERS: 4}
        ids, names = ([str(each[name]) for each in case.read()] for name in ("id", "name"))
        assert ids == (["1", "2"] if case.upserts else ["1", "2", "1", "2"])
        assert names[-2:] == ["again", "again"]


def test_values_without_schemas_are_loaded(case: Case) -> None:
    with started_sink(config_of(case)) as (task, context):
        records = [SinkRecord("orders", 0, each, {"id": each, "total": each / 4}, key=each) for each in (1, 2)]
        task.put(records)
        assert flush(task, context, {ORDERS: 3}) == {ORDERS: 3}
        assert [Decimal(each["total"]) for each in case.read()][-2:] == [Decimal("0.25"), Decimal("0.5")]


def test_a_config_that_the_target_refuses_is_an_error_with_its_last_lines(case: Case) -> None:
    """No target runs with a config that is wrong for it; PostgreSQL's password is wrong."""
    if case.program != "target-postgres":
        pytest.skip("this target takes any config")
    config = config_of(case)
    config["singer.config"] = json.dumps({**case.settings, "port": 1, "password": "very-secret"})
    with started_sink(config) as (task, context):
        task.put(rows(0))
        with pytest.raises(RetriableError, match=r"target-postgres ended with exit code 1") as caught:
            task._flush()
        assert "very-secret" not in str(caught.value)
        assert task.pre_commit({ORDERS: 2}) == {ORDERS: 0}
        assert context.timeouts
