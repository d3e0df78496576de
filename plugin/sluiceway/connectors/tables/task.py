"""The task of the table sinks. Runs on the executors.

PyArrow and the table format's library are imported when a task starts, so that listing the plugins needs neither.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from sluiceway.api import SinkRecord, SinkTask, TopicPartition
from sluiceway.api.columns import ColumnBatch
from sluiceway.connectors.tables.format import WritingFormat
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    from sluiceway.connectors.tables.session import TableSession


class TableSinkTask(WritingFormat, SinkTask):
    """Writes records to tables. The offsets in the tables are authoritative; the consumer group follows them."""

    takes_columns = True

    _session: TableSession | None = None

    def start(self, config: Mapping[str, str]) -> None:
        from sluiceway.connectors.tables.session import TableSession

        options = self.options_of(config)
        self._session = TableSession(self.context, options, self.store_of(options))

    def open(self, partitions: Collection[TopicPartition]) -> None:
        self._started().open(partitions)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self._started().close(partitions)

    def put(self, records: Sequence[SinkRecord]) -> None:
        self._started().put(records)

    def put_columns(self, batch: ColumnBatch) -> None:
        self._started().put_columns(batch)

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        return self._started().pre_commit(offsets)

    def stop(self) -> None:
        if self._session is not None:
            self._session.stop()

    def _started(self) -> TableSession:
        if self._session is None:
            raise ConnectError("The table sink's task has not been started. Call start() first.")
        return self._session
