"""Real taps of several makers from the package index: the same records as Meltano makes with the same tap.

Meltano runs the same programs, with target-jsonl, in a project that is written by hand.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sluiceway.connectors.singer.fields import Kind
from sluiceway.connectors.singer.source import SingerSourceTask
from sluiceway.runtime.memory import MemoryOffsets
from sluiceway.singer_plugins.programs import find_program, plugins_in, use_singer_plugins
from support.database import HOST, PASSWORD, USER
from support.eventually import eventually
from support.mariadb import MariaDbServer
from support.postgres import PostgresServer
from support.singer_taps import installed, program_of, started

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

MELTANO, TARGET = "meltano==4.4.1", "target-jsonl==0.1.4"
ROWS = 500
POSTGRES_TABLE = """create table items (id bigint primary key, name text, total numeric(20, 6), plain numeric,
    ratio double precision, paid boolean, day date, at timestamptz, local timestamp, doc jsonb, tags text[], note varchar(10))"""
POSTGRES_ROWS = f"""insert into items select id, 'n"' || id || E'\\u00e9\\n', id * 1000003.123456, id / 7.0, id / 3.0, id % 2 = 0,
    date '2026-01-01' + id::int, timestamptz '2026-01-01 00:00:00.123456+02' + id * interval '1 second',
    timestamp '2026-01-01 00:00:00.5' + id * interval '1 day', jsonb_build_object('a', id, 'b', array[1.50, 2]),
    array['x', id::text], case when id % 3 > 0 then 'x' end from generate_series(1, {ROWS}) id"""  # noqa: S608
MARIADB_TABLE = """create table lab.items (id bigint unsigned primary key, name varchar(40), total decimal(20, 6), ratio double,
    paid tinyint(1), day date, at datetime(6), note varchar(10))"""
MARIADB_ROWS = f"""insert into lab.items select seq, concat('n"', seq), seq * 1000003.123456, seq / 3, seq % 2,
    '2026-01-01' + interval seq day, '2026-01-01 00:00:00.123456' + interval seq second, if(seq % 3 > 0, 'x', null)
    from lab.seq_1_to_{ROWS}"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Case:
    """A tap with its settings, and the key by which its records are compared."""

    requirement: str
    program: str
    settings: dict[str, Any]
    capabilities: tuple[str, ...] = ("catalog", "discover", "state")
    more: dict[str, str] = field(default_factory=dict)
    key: str = "id"


Make = Callable[[pytest.FixtureRequest, Path], Case]


def jsonl(_request: pytest.FixtureRequest, folder: Path) -> Case:
    rows = ({"id": number, "name": f"n{number}", "total": number / 4, "nested": {"a": [1, 2.5]}} for number in range(ROWS))
    (folder / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return Case("tap-jsonl==0.3.1", "tap-jsonl", {"path": f"{folder}/*.jsonl", "stream_name": "items", "primary_keys": ["id"]})


def of_postgres(requirement: str, **settings: Any) -> Make:
    def make(request: pytest.FixtureRequest, _folder: Path) -> Case:
        server: PostgresServer = request.getfixturevalue("postgres")
        config = {"host": HOST, "port": server.port, "user": USER, "password": PASSWORD, **settings}
        return Case(requirement, "tap-postgres", config)

    return make


def of_mariadb(requirement: str) -> Make:
    def make(request: pytest.FixtureRequest, _folder: Path) -> Case:
        server: MariaDbServer = request.getfixturevalue("mariadb")
        config = {"host": HOST, "port": str(server.port), "user": USER, "password": PASSWORD, "filter_dbs": "lab"}
        more = {"singer.catalog.option": "properties"}
        return Case(requirement, "tap-mysql", config, ("properties", "discover", "state"), more)

    return make


def sheets(_request: pytest.FixtureRequest, folder: Path) -> Case:
    (folder / "items.csv").write_text("id,name,total\n" + "".join(f"{number},n{number},{number / 4}\n" for number in range(ROWS)))
    csv = {"path": f"{folder}/*.csv", "format": "csv", "primary_keys": ["id"], "table_name": "items"}
    return Case("tap-spreadsheets==1.1.2", "tap-spreadsheets", {"files": [csv]})


TAPS: dict[str, Make] = {
    "tap-jsonl": jsonl,
    "meltanolabs-tap-postgres": of_postgres("meltanolabs-tap-postgres==0.10.0", database="postgres", filter_schemas=["public"]),
    "pipelinewise-tap-postgres": of_postgres("pipelinewise-tap-postgres==1.8.4", dbname="postgres", filter_schemas="public"),
    "pipelinewise-tap-mysql": of_mariadb("pipelinewise-tap-mysql==1.6.0"),
    "tap-mysql": of_mariadb("tap-mysql==1.17.7"),
    "tap-spreadsheets": sheets,
}


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        server.execute(POSTGRES_TABLE)
        server.execute(POSTGRES_ROWS)
        yield server


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariaDbServer]:
    with MariaDbServer() as server:
        server.execute("create database lab")
        server.execute(MARIADB_TABLE)
        server.execute(MARIADB_ROWS)
        yield server


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    monkeypatch.setattr("sluiceway.singer_plugins.programs._folders", [])
    return lambda requirement: use_singer_plugins([installed(requirement)])


@pytest.mark.parametrize("tap", TAPS)
def test_records_are_those_of_meltano(
    request: pytest.FixtureRequest, tmp_path: Path, use: Callable[[str], None], tap: str
) -> None:
    (tmp_path / "data").mkdir()
    case = TAPS[tap](request, tmp_path / "data")
    use(case.requirement)
    metadata = json.dumps({"*": {"replication-method": "FULL_TABLE"}})
    config = {
        "singer.tap": case.program,
        "singer.config": json.dumps(case.settings),
        "singer.metadata": metadata,
        "singer.timestamps": "string",
        "singer.numbers": "string",
        "poll.interval.ms": "600000",
        **case.more,
    }
    expected = by_key(meltano(tmp_path / "project", case), case.key)
    found = by_key(ours(config), case.key)
    assert len(found) == ROWS
    assert found == expected


def by_key(records: list[dict[str, Any]], key: str) -> dict[str, Any]:
    found = {str(record[key]): record for record in records}
    assert len(found) == len(records)
    return found


def ours(config: dict[str, str]) -> list[dict[str, Any]]:
    """Return the records of one run, with the values of JSON and of numbers as text as what they say."""
    made: list[dict[str, Any]] = []
    with started(config, MemoryOffsets()) as task:

        def ended() -> bool:
            for record in task.poll() or ():
                values = record.value
                made.append({name: plain(value, kind_of(task, record.topic, name)) for name, value in values_of(values).items()})
            return task.ended is True

        eventually(ended, within=300)
    return made


def values_of(struct: Any) -> dict[str, Any]:
    return {name: struct[name] for name in struct if struct[name] is not None}


def kind_of(task: SingerSourceTask, topic: str, name: str) -> Kind:
    reader = task._reader
    assert reader is not None
    [table] = [each for each in reader._tables.values() if each.topic == topic]
    return next(each.form.kind for each in table.layout.fields if each.name == name)


def plain(value: Any, kind: Kind) -> Any:
    if kind in (Kind.JSON, Kind.NUMBER):
        value = json.loads(value, parse_float=Decimal)
    return exact(value)


def exact(value: Any) -> Any:
    """Return a value whose numbers are decimals without trailing zeros, at any depth, and whose nulls are left out."""
    if isinstance(value, dict):
        return {name: exact(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [exact(each) for each in value]
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return Decimal(repr(value) if isinstance(value, float) else value).normalize()
    return value


def meltano(folder: Path, case: Case) -> list[dict[str, Any]]:
    """Return the records that target-jsonl writes."""
    (folder / "out").mkdir(parents=True)
    programs = {program: program_of(folder, find_program(program)) for program in (case.program,)}
    [target] = plugins_in([installed(TARGET)])
    [runner] = plugins_in([installed(MELTANO)])
    extractor = {
        "name": case.program,
        "namespace": case.program.replace("-", "_"),
        "executable": str(programs[case.program]),
        "capabilities": list(case.capabilities),
        "settings": [{"name": name} for name in case.settings],
        "config": case.settings,
        "select": ["*.*"],
        "metadata": {"*": {"replication-method": "FULL_TABLE"}},
    }
    loader = {
        "name": "target-jsonl",
        "namespace": "target_jsonl",
        "executable": str(program_of(folder, target.command("target-jsonl"))),
        "settings": [{"name": "destination_path"}, {"name": "do_timestamp_file", "kind": "boolean"}],
        "config": {"destination_path": str(folder / "out"), "do_timestamp_file": False},
    }
    project = {
        "default_environment": "test",
        "environments": [{"name": "test"}],
        "send_anonymous_usage_stats": False,
        "plugins": {"extractors": [extractor], "loaders": [loader]},
    }
    (folder / "meltano.yml").write_text(json.dumps(project))  # JSON is YAML, too
    command = [*runner.command("meltano"), "run", "--no-install", case.program, "target-jsonl"]
    environment = {**os.environ, "MELTANO_SEND_ANONYMOUS_USAGE_STATS": "false"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for file in (folder / "out").glob("*.jsonl") for line in file.read_text().splitlines()]
    return [exact(json.loads(line, parse_float=Decimal)) for line in lines]
