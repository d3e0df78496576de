"""Destinations of dlt that tests load into, and read with other libraries than dlt."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import orjson

from support.database import HOST, DatabaseForTest
from support.eventually import eventually

DATASET = "loaded"


class DltTarget(Protocol):
    """A destination. ``config`` has its keys of the sink."""

    config: dict[str, str]

    def ids(self, table: str) -> list[int]:
        """Return the column ``id`` of a table, in any order; nothing if there is no such table yet."""


def _config(destination: str, args: dict[str, Any], folder: Path, **more: str) -> dict[str, str]:
    return {
        "connector.class": "DltSink",
        "dlt.destination": destination,
        "dlt.destination.args": orjson.dumps(args).decode(),
        "dlt.dataset": DATASET,
        "dlt.folder": str(folder / "loads"),
        **more,
    }


class DuckDbTarget:
    """A file of DuckDB."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "db.duckdb")
        self.config = _config("duckdb", {"credentials": self.path}, folder)

    def ids(self, table: str) -> list[int]:
        if not Path(self.path).exists():
            return []
        with eventually(self._connected, what="a database that no load has locked") as database:
            known = database.execute("select count(*) from information_schema.tables where table_name = ?", [table]).fetchone()
            rows = database.execute(f"select id from {DATASET}.{table}").fetchall() if known and known[0] else []  # noqa: S608
        return [row[0] for row in rows]

    def _connected(self) -> Any:
        import duckdb

        try:
            return duckdb.connect(self.path, read_only=True)
        except duckdb.IOException:
            return None


class PostgresTarget:
    """A database of PostgreSQL."""

    def __init__(self, database: DatabaseForTest, folder: Path) -> None:
        self._database = database
        url = f"postgresql://{database.user}:{database.password}@{HOST}:{database.port}/{database.name}"
        self.config = {**_config("postgres", {"credentials": "dlt.secret.url"}, folder), "dlt.secret.url": url}

    def ids(self, table: str) -> list[int]:
        known = self._database.execute(f"select to_regclass('{DATASET}.{table}')")
        return [] if known == [(None,)] else [row[0] for row in self._database.execute(f"select id from {DATASET}.{table}")]  # noqa: S608


class FolderTarget:
    """Files in a folder: Parquet, or tables of Delta or Iceberg."""

    def __init__(self, folder: Path, table_format: str = "native") -> None:
        self._format, self._folder = table_format, folder / "lake"
        args = {"bucket_url": self._folder.as_uri()}
        more = {"dlt.table.format": table_format} if table_format != "native" else {"dlt.file.format": "parquet"}
        self.config = _config("filesystem", args, folder, **more)

    def ids(self, table: str) -> list[int]:
        folder = self._folder / DATASET / table
        if self._format == "delta":
            from deltalake import DeltaTable

            if not (folder / "_delta_log").exists():
                return []
            return [int(each.as_py()) for each in DeltaTable(str(folder)).to_pyarrow_table().column("id")]
        if self._format == "iceberg":
            from pyiceberg.table import StaticTable

            metadata = sorted((folder / "metadata").glob("*.metadata.json"), key=lambda each: each.name)
            rows = StaticTable.from_metadata(str(metadata[-1])).scan().to_arrow() if metadata else None
            return [] if rows is None else [int(str(each)) for each in rows.column("id").to_pylist()]
        import pyarrow.parquet as pq

        found: list[int] = []
        for file in folder.glob("**/*.parquet"):
            found += [int(str(each)) for each in pq.read_table(file, columns=["id"]).column("id").to_pylist()]
        return found
