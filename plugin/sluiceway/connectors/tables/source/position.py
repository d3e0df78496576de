"""The position of a source in a table, and its form as a source offset. No I/O."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sluiceway.api import Offset, Partition
from sluiceway.errors import ConnectError

TABLE = "table"
SNAPSHOT, INITIAL, FILE, ROW, UUID = "snapshot", "initial", "file", "row", "uuid"

_FORM = '{"snapshot": 42} for all of a snapshot or version, or {"snapshot": 42, "initial": true} to read it as a whole'
_HINT = "Correct it with PATCH /connectors/<name>/offsets, or DELETE it to read from start.position."


@dataclass(frozen=True, slots=True)
class Position:
    """The position up to which a table has been read.

    Attributes:
        snapshot: the snapshot's id or the version; None before the first one.
        initial: the snapshot is read as a whole, instead of what it changed.
        file: the data file that is being read; None if all of the snapshot has been read, or with ``initial`` nothing of it.
        row: the number of rows of the file that have been read, without those that the row filter leaves out.
        uuid: the table's id, None if it is not known.
    """

    snapshot: int | None
    initial: bool = False
    file: str | None = None
    row: int = 0
    uuid: str | None = None

    @property
    def within(self) -> bool:
        """Whether the snapshot has not been read completely."""
        return self.initial or self.file is not None

    def offset(self) -> Offset:
        """Return the position as a source offset."""
        found: dict[str, object] = {SNAPSHOT: self.snapshot}
        if self.initial:
            found[INITIAL] = True
        if self.file is not None:
            found |= {FILE: self.file, ROW: self.row}
        if self.uuid is not None:
            found[UUID] = self.uuid
        return found


def position_of(offset: Offset) -> Position:
    """Return the position in a source offset. Raises ConnectError for an offset that no task can start from."""
    for name in offset:
        if name not in (SNAPSHOT, INITIAL, FILE, ROW, UUID):
            raise ConnectError(f"An offset of a table has no field {name!r}: write {_FORM}.")
    snapshot, file, row = offset.get(SNAPSHOT), offset.get(FILE), offset.get(ROW, 0)
    initial, uuid = offset.get(INITIAL, False), offset.get(UUID)
    if type(snapshot) is not int:
        raise ConnectError(f"The field 'snapshot' of an offset must be a whole number, not {snapshot!r}: write {_FORM}. {_HINT}")
    if type(initial) is not bool:
        raise ConnectError(f"The field 'initial' of an offset must be true or false, not {initial!r}. {_HINT}")
    if not (file is None or isinstance(file, str)) or not (uuid is None or isinstance(uuid, str)):
        raise ConnectError(f"The fields 'file' and 'uuid' of an offset must be texts. {_HINT}")
    if type(row) is not int or row < 0:
        raise ConnectError(f"The field 'row' of an offset must be a number of rows, not {row!r}. {_HINT}")
    return Position(snapshot, initial, file, row, uuid)


def check_offset(partition: Partition | None, offset: Offset | None, tables: Collection[str]) -> None:
    """Raise ConnectError for an offset that no task can start from. None deletes the offset, also of a table no longer read."""
    table = (partition or {}).get(TABLE)
    if not isinstance(table, str) or len(partition or {}) != 1:
        raise ConnectError(f"A source partition is a table, such as {{'table': 'shop.orders'}}, not {dict(partition or {})}.")
    if offset is None:
        return
    if table not in tables:
        raise ConnectError(f"The connector does not read table {table}, only {', '.join(tables)}.")
    position_of(offset)
