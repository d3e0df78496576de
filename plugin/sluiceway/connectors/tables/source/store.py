"""Interface of a table format for the table sources: snapshots of a table, and what each commit changed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Selection:
    """The columns and rows to read: no columns are all columns, and an empty condition is all rows."""

    columns: tuple[str, ...] = ()
    row_filter: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows in an order that never changes, usually those of a data file. ``read`` reads them from the start."""

    name: str
    read: Callable[[], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows with the columns that they had then."""

    columns: pa.Schema
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class Commit:
    """The changes that a snapshot or version made to a table.

    Attributes:
        operation: the format's name for it.
        columns: the table's columns after it.
        appended: the rows that it added, none if it only moved rows to other files; None if it changed or deleted rows.
        changed: returns the rows before and after such a change, both possibly with the same rows that it did not change.
    """

    snapshot: int
    operation: str
    columns: pa.Schema
    appended: Sequence[Part] | None
    changed: Callable[[], tuple[Sequence[Part], Sequence[Part]]]


class SourceTable(Protocol):
    """One table. Not thread-safe. All methods raise UnreachableError if they cannot reach the catalog or the storage."""

    @property
    def uuid(self) -> str: ...

    @property
    def columns(self) -> pa.Schema:
        """The columns to read, as loaded last. Raises ConnectError if the table lacks one, or for an invalid row filter."""

    @property
    def id_columns(self) -> tuple[str, ...]:
        """The columns that identify a row by the table's own schema."""

    def reload(self) -> None:
        """Load the table as it is now. Raises ConnectError if it was dropped or replaced."""

    def current(self) -> int | None:
        """Return the newest snapshot, as loaded last; None if there is none."""

    def at(self, moment: dt.datetime) -> int | None:
        """Return the newest snapshot that was committed before a moment; None if there is none."""

    def rows(self, snapshot: int) -> Rows:
        """Return all rows of a snapshot. Raises ConnectError if it does not exist any more."""

    def commits(self, after: int | None) -> Sequence[int]:
        """Return the snapshots after one, oldest first; None is before the first. Raises ConnectError if some are missing."""

    def commit(self, snapshot: int) -> Commit:
        """Return what a snapshot did. Raises ConnectError if it does not exist any more."""


class SourceStore(Protocol):
    """The tables of a catalog or folder. Raises as ``SourceTable`` does."""

    def table(self, name: str, selection: Selection) -> SourceTable | None:
        """Load a table; None if it does not exist."""

    def close(self) -> None: ...


def dropped(name: str, key: str, where: str = "") -> ConnectError:
    """Return the error of a table that does not exist any more; ``key`` lists the tables."""
    return ConnectError(f"Table {name} was dropped{where}. Remove it from {key}, or create it and restart the task.")


def check_same(name: str, known: str, found: str) -> None:
    """Raise ConnectError if a table of the same name has another id than the one that was read before."""
    if found != known:
        raise ConnectError(
            f"Table {name} was replaced by another table of the same name. DELETE the connector's offsets to read the new table "
            "from start.position, then restart the task."
        )


@contextmanager
def finding_files(what: str, name: str, why: str, keep: str) -> Iterator[None]:
    """Raise ConnectError for a file that is gone; ``why`` says who deletes such files, ``keep`` what must be kept longer."""
    try:
        yield
    except FileNotFoundError as error:
        raise ConnectError(
            f"Reading {what} of table {name}: a file is gone. {why} before it was read. DELETE the connector's offsets to read "
            f"the table again, and keep {keep} longer than the connector may be behind."
        ) from error


def expired(name: str, snapshot: int, why: str) -> ConnectError:
    """Return the error of a snapshot whose successors cannot be read."""
    return ConnectError(
        f"Table {name} cannot be read on from snapshot {snapshot}: {why}. Rows may be missed. DELETE the connector's offsets to "
        f'read the table again, or PATCH them to {{"snapshot": <id>}} to continue after a snapshot that exists. Keep snapshots '
        "longer than the connector may be behind."
    )
