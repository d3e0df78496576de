"""The task of the table sources. Runs on the executors.

PyArrow and the table format's library are imported when a task starts, so that listing the plugins needs neither.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sluiceway.api import SourceColumns, SourceRecord, SourceTask
from sluiceway.api.outage import Outage
from sluiceway.connectors.tables.source.format import SourceFormat
from sluiceway.errors import RetriableError

if TYPE_CHECKING:
    from sluiceway.connectors.tables.source.reader import TableReader
    from sluiceway.connectors.tables.source.store import SourceStore


class TableSourceTask(SourceFormat, SourceTask):
    """Reads its tables in turn, a batch of each that has rows."""

    _store: SourceStore | None = None

    def start(self, config: Mapping[str, str]) -> None:
        from sluiceway.connectors.tables.source.reader import TableReader

        options = self.options_of(config)
        self._store = store = self.store_of(options)
        offsets = self.context.offset_storage_reader
        self._outage = Outage(options.unreachable)
        self._readers: deque[TableReader] = deque(TableReader(name, options, store, offsets) for name in options.tables)

    def poll(self) -> Sequence[SourceRecord] | None:
        found = self._next(columnar=False)
        return found.records() if isinstance(found, SourceColumns) else found

    def poll_columns(self) -> SourceColumns | Sequence[SourceRecord] | None:
        return self._next(columnar=True)

    def _next(self, *, columnar: bool) -> SourceColumns | Sequence[SourceRecord] | None:
        for _ in range(len(self._readers)):
            reader = self._readers[0]
            self._readers.rotate(-1)
            if reader.due > time.monotonic():
                continue
            try:
                found = reader.next(columnar=columnar)
            except RetriableError as error:
                self._outage.lasts(error)
                raise
            self._outage.ended()
            if found is not None:
                return found
        return None

    def stop(self) -> None:
        if self._store is not None:
            self._store.close()
