"""Destinations of dlt that die at a point of a load: their process is killed there once, when a file says so."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

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
