"""Reads what a version did from a Delta table's log. Runs on executors.

delta-rs reads the change data feed in an order that differs between reads, so a task could not continue in the middle. The log
names the files of a version, and their rows have an order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    from pyarrow import fs


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A file of a version: its path below the table's folder, and its partition values as texts."""

    path: str
    partition: Mapping[str, str | None]


@dataclass(slots=True)
class LoggedVersion:
    """The actions of a version that matter for its rows.

    Attributes:
        operation: the writer's name for what it did.
        added, removed: files whose rows were added or removed, without those that only moved to other files.
        changes: files of the change data feed, if it was written.
        changes_columns: whether the table's columns or properties were set.
    """

    operation: str = "unknown"
    added: list[LoggedFile] = field(default_factory=list)
    removed: list[LoggedFile] = field(default_factory=list)
    changes: list[LoggedFile] = field(default_factory=list)
    changes_columns: bool = False


def read_version(files: fs.FileSystem, version: int, table: str) -> LoggedVersion | None:
    """Return what a version did; None if its log file does not exist. Raises ConnectError for features that are not supported."""
    try:
        with files.open_input_stream(f"_delta_log/{version:020}.json") as source:
            text = source.read()
    except FileNotFoundError:
        return None
    found = LoggedVersion()
    for line in text.splitlines():
        if line.strip():
            _apply(found, json.loads(line), f"Table {table}, version {version}")
    return found


def _apply(found: LoggedVersion, line: Mapping[str, Any], where: str) -> None:
    for kind, action in line.items():
        if kind in ("add", "remove") and action.get("deletionVector"):
            raise deletion_vectors(where)
        if kind == "add" and action.get("dataChange", True):
            found.added.append(_file(action))
        elif kind == "remove" and action.get("dataChange", True):
            found.removed.append(_file(action))
        elif kind == "cdc":
            found.changes.append(_file(action))
        elif kind == "metaData":
            found.changes_columns = True
        elif kind == "commitInfo":
            found.operation = str(action.get("operation", found.operation))


def deletion_vectors(where: str) -> ConnectError:
    return ConnectError(
        f"{where}: a file has a deletion vector, which cannot be read. Set delta.enableDeletionVectors=false and run "
        "REORG TABLE ... APPLY (PURGE)."
    )


def _file(action: Mapping[str, Any]) -> LoggedFile:
    return LoggedFile(unquote(action["path"]), action.get("partitionValues") or {})
