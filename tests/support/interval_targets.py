"""Targets of sinks, and tables that sources read, in tests of exact intervals."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

import pyarrow.parquet as pq

from sluiceway.config.intervals import Interval
from support.database import DatabaseForTest
from support.table_sink import Lake

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (the column has no zone)
ADDED = {"airflow.interval.column": "hour"}  # each row's hour, so that a run that is cleared replaces it


class Target(Protocol):
    """Where a sink writes."""

    config: dict[str, str]

    def written(self) -> list[str]:
        """Return the values that are there, sorted."""


class ParquetFiles:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.config = {"connector.class": "ParquetSink", "path": str(folder), "flush.size": "20"}

    def written(self) -> list[str]:
        return sorted(value for values in self.by_interval().values() for value in values)

    def by_interval(self) -> dict[str, list[str]]:
        """Return the values by the interval in the files' names."""
        found: dict[str, list[str]] = {}
        for file in self._folder.glob("topics/**/*.parquet"):
            mark = next(part for part in file.name.split(".") if "Z-" in part).partition("-")[0]
            found.setdefault(mark, []).extend(map(str, pq.read_table(file).column("text").to_pylist()))
        return {mark: sorted(values) for mark, values in found.items()}


class LakeTable:
    """A table of Iceberg or Delta to which rows are added."""

    def __init__(self, kind: str, folder: Path) -> None:
        self._lake = Lake(kind, folder)
        self.config = {**self._lake.config(), **ADDED}

    def written(self) -> list[str]:
        return sorted(text for text, _ in self.rows())

    def rows(self) -> list[tuple[str, str]]:
        found = self._lake.read(self.config)
        texts, hours_ = (map(str, found.column(name).to_pylist()) for name in ("text", "hour"))
        return list(zip(texts, hours_, strict=True))


class DatabaseTable:
    def __init__(self, database: DatabaseForTest) -> None:
        self._database = database
        mode = {"insert.mode": "insert", "pk.mode": "none", "auto.create": "true", "table.name.format": "moved"}
        self.config = {
            "connector.class": "JdbcSink",
            **database.config,
            **mode,
            "consumer.override.max.poll.records": "20",
            **ADDED,
        }

    def written(self) -> list[str]:
        return sorted(text for text, _ in self.rows())

    def rows(self) -> list[tuple[str, str]]:
        return list(self._database.execute("select text, hour from moved"))


def fill_table(database: DatabaseForTest, hours: Sequence[Interval], chance: random.Random) -> dict[Interval, list[str]]:
    """Create a table of rows with times to the microsecond, at the very borders too; return what belongs to each hour."""
    database.execute("create table moments (id serial primary key, text text, at timestamp(6) not null)")
    found: dict[Interval, list[str]] = {interval: [] for interval in hours}
    rows = []
    for interval in hours:
        start, end = (_EPOCH + timedelta(milliseconds=moment) for moment in (interval.start, interval.end))
        inside = [start + timedelta(microseconds=chance.randrange(3_600_000_000)) for _ in range(20)]
        for number, moment in enumerate([start, start, end - timedelta(microseconds=1), *inside]):
            found[interval].append(f"{interval.start}-{number}")
            rows.append((found[interval][-1], moment))
    rows += [("before", _EPOCH + timedelta(milliseconds=hours[0].start, microseconds=-1))]
    rows += [("after", _EPOCH + timedelta(milliseconds=hours[-1].end))]
    chance.shuffle(rows)
    for text, moment in rows:
        database.execute(f"insert into moments (text, at) values ('{text}', '{moment.isoformat()}')")  # noqa: S608 (test data)
    return found
