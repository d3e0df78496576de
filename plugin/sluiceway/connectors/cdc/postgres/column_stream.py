"""Turns many messages of the log into encoded records at once. The columnar form of ``stream``, whose reader it moves.

Changes of one table, also those of several transactions, become one batch. Whatever is not usual is left to the reader.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from sluiceway.api import EncodedRecords, NotColumnar
from sluiceway.columns.text_arrays import joined
from sluiceway.connectors.cdc.column_serializers import ColumnSerializer, change_records
from sluiceway.connectors.cdc.postgres.receiver import Received
from sluiceway.connectors.cdc.postgres.tuple_columns import ChangeColumns, change_columns
from sluiceway.connectors.cdc.sizes import fits_columns

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.connectors.cdc.emitter import Emitter
    from sluiceway.connectors.cdc.postgres.source import Position, Sources
    from sluiceway.connectors.cdc.tables import TableSchema

pc: Any = pyarrow.compute  # its stubs do not know all arguments

_BEGIN, _COMMIT, _INSERT, _UPDATE, _DELETE = b"BCIUD"
_OPERATIONS = {_INSERT: "c", _UPDATE: "u", _DELETE: "d"}


class Changes:
    """Successive changes of one relation. ``firsts`` has the index of each transaction's first change; the transactions' ids,
    times in microseconds, and the commits before them are in the other lists."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.lsns: list[int] = []
        self.firsts: list[int] = []
        self.xids: list[int | None] = []
        self.micros: list[int] = []
        self.commits: list[int | None] = []
        self._open = False

    @property
    def relation(self) -> int | None:
        return int.from_bytes(self.messages[0][1:5], "big") if self.messages else None

    def add(self, message: Received, position: Position) -> None:
        """Add a change of the transaction that ``position`` is in."""
        if not self._open:
            self._open = True
            self.firsts.append(len(self.messages))
            self.xids.append(position.xid)
            self.micros.append(position.micros)
            self.commits.append(position.commit_lsn)
        self.messages.append(message.data)
        self.lsns.append(message.lsn)

    def end_transaction(self) -> list[int]:
        """Return the positions of the changes of the transaction that has ended, if it had any."""
        found = self.lsns[self.firsts[-1] :] if self._open else []
        self._open = False
        return found


def end_of_run(messages: Sequence[Received], start: int) -> int:
    """Return the end of the messages that begin at ``start`` and change one relation only; the transactions' bounds count."""
    relation = None
    for index in range(start, len(messages)):
        data = messages[index].data
        kind = data[0] if data else 0
        if kind in (_INSERT, _UPDATE, _DELETE):
            if relation is None:
                relation = data[1:5]
            elif relation != data[1:5]:
                return index
        elif kind not in (_BEGIN, _COMMIT):
            return index
    return len(messages)


def encode_changes(
    changes: Changes,
    width: int,
    table: TableSchema,
    emitter: Emitter,
    sources: Sources,
    labels: Mapping[int, Collection[str]],
    *,
    tombstones: bool,
    offset: dict[str, Any],
) -> EncodedRecords | None:
    """Return the records of changes, or None if they must be made one by one.

    ``labels`` has the known labels of the columns that are enums.
    """
    serializer = emitter.encoded(table, snapshot=False)
    if serializer is None or not fits_columns(sum(map(len, changes.messages)), len(changes.messages)):
        return None

    def encode() -> EncodedRecords:
        rows = change_columns(changes.messages, width)
        for index, known in labels.items():
            if not set(pc.unique(rows.new[index].values).to_pylist()) <= {None, *known}:
                raise NotColumnar("an enum has a new label")
        return _encoded(changes, rows, table, serializer, emitter, sources, tombstones=tombstones, offset=offset)

    return emitter.attempt(table, encode)


def _encoded(
    changes: Changes,
    rows: ChangeColumns,
    table: TableSchema,
    serializer: ColumnSerializer,
    emitter: Emitter,
    sources: Sources,
    *,
    tombstones: bool,
    offset: dict[str, Any],
) -> EncodedRecords:
    operations = [_OPERATIONS[message[0]] for message in changes.messages]
    source = _source(changes, table, sources)
    keys, values = change_records(
        table, serializer, operations, rows.new, rows.old, source, tombstones=tombstones, with_old=rows.with_old
    )
    return emitter.batch(table, keys, values, offset)


def _source(changes: Changes, table: TableSchema, sources: Sources) -> list[Any]:
    """Return the values of the source blocks; those that differ as arrays of text."""
    count, name = len(changes.lsns), table.id
    lsns = pa.array(changes.lsns, pa.int64()).cast(pa.utf8())
    begins = [f'"[{"null" if commit is None else _text(commit)},' for commit in changes.commits]
    if len(begins) == 1:
        order = joined([begins[0], *_text_pieces(lsns), ']"'], count)
        return sources.columns(name.schema, name.table, lsns, order, changes.micros[0], changes.xids[0])
    numbers: Any = pa.array(np.repeat(np.arange(len(begins)), np.diff(np.array([*changes.firsts, count]))))
    order = joined([pa.array(begins).take(numbers), *_text_pieces(lsns), ']"'], count)
    micros = pa.array(changes.micros, pa.int64()).take(numbers)
    xids = pa.array(["null" if xid is None else str(xid) for xid in changes.xids]).take(numbers)
    return sources.columns(name.schema, name.table, lsns, order, micros, xids)


def _text(number: int) -> str:
    r"""Return a number as JSON text within JSON text: ``\"1\"``."""
    return f'\\"{number}\\"'


def _text_pieces(numbers: AnyArray) -> list[str | AnyArray]:
    return ['\\"', numbers, '\\"']
