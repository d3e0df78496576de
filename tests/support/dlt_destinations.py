"""Destinations of dlt that die at a point of a load, when a file says so, and one that tells what its process has."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import dlt
from dlt.destinations import duckdb
from dlt.destinations.impl.duckdb.duck import DuckDbClient

ROWS, STATE, END = "rows", "state", "end"
POINTS = (ROWS, STATE, END)
"""Before the job of a table's rows; between it and the job of the state; before the load is marked as complete."""

_MARK = "DIE_AT"


def die_at(point: str, folder: Path) -> None:
    """Let the next load that comes to a point die there."""
    (folder / _MARK).write_text(point)


def _reached(point: str, database: str) -> None:
    mark = Path(database).parent / _MARK
    if mark.exists() and mark.read_text() == point:
        mark.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


class _Client(DuckDbClient):
    def create_load_job(self, table: Any, file_path: str, load_id: str, restore: bool = False) -> Any:
        is_state = table["name"].startswith("_dlt_")
        _reached(STATE if is_state else ROWS, self.config.credentials._conn_str())
        return super().create_load_job(table, file_path, load_id, restore)

    def complete_load(self, load_id: str) -> None:
        _reached(END, self.config.credentials._conn_str())
        super().complete_load(load_id)


class fragile(duckdb):  # noqa: N801 (as dlt's destinations)
    """DuckDB."""

    @property
    def client_class(self) -> type[DuckDbClient]:
        return _Client


_asked: list[str] = []


class _Telling(DuckDbClient):
    def complete_load(self, load_id: str) -> None:
        super().complete_load(load_id)
        with socket.socket() as made:  # the hook works
            made.connect_ex(("127.0.0.1", 1))
        told = {
            "password": dlt.secrets.get("password"),
            "place": dlt.config.get("place"),
            "airflow": any(name.partition(".")[0] == "airflow" for name in sys.modules),
            "environment": dict(os.environ),
            "arguments": sys.argv,
            "pid": os.getpid(),
            "asked": [each for each in _asked if "connect" in each or "getaddrinfo" in each],
        }
        Path(self.config.credentials._conn_str()).with_suffix(".told").write_text(json.dumps(told))


class telling(duckdb):  # noqa: N801 (as dlt's destinations)
    """DuckDB, whose loads write what their process has, and each address that it has asked for, beside the database."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        sys.addaudithook(lambda event, args: _asked.append(f"{event} {args[1:2]}") if event.startswith("socket.") else None)

    @property
    def client_class(self) -> type[DuckDbClient]:
        return _Telling
