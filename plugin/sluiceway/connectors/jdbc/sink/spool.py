"""Keeps the records of an interval in a temporary file, until one transaction writes them. Runs on executors."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress

from sluiceway.api import SinkRecord, TopicPartition


class RecordSpool:
    """Batches of records in a file without a name, which ends with its process."""

    def __init__(self) -> None:
        self._next: dict[TopicPartition, int] = {}  # the offset behind a partition's last record
        self._file = tempfile.TemporaryFile(prefix="sluiceway-spool-")  # noqa: SIM115 (closed by ``close``)

    def add(self, records: Sequence[SinkRecord]) -> None:
        """Keep a batch, without records that are put again, as after a rebalance."""
        new = []
        for record in records:
            partition = record.original_topic_partition
            if record.original_kafka_offset >= self._next.get(partition, 0):
                self._next[partition] = record.original_kafka_offset + 1
                new.append(record)
        pickle.dump(new, self._file, pickle.HIGHEST_PROTOCOL)

    def batches(self) -> Iterator[list[SinkRecord]]:
        """Yield the batches in their order."""
        self._file.seek(0)
        with suppress(EOFError):
            while True:
                yield pickle.load(self._file)  # noqa: S301 (written by this process)

    def clear(self) -> None:
        """Forget the batches."""
        self._next.clear()
        self._file.seek(0)
        self._file.truncate()

    def close(self) -> None:
        """Delete the file."""
        self._file.close()
