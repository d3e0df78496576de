"""Keeps the records of an interval in a temporary file, until one transaction writes them. Runs on executors."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress

from sluiceway.api import SinkRecord


class RecordSpool:
    """Batches of records in a file without a name, which ends with its process."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="sluiceway-spool-")  # noqa: SIM115 (closed by ``close``)

    def add(self, records: Sequence[SinkRecord]) -> None:
        """Keep a batch."""
        pickle.dump(list(records), self._file, pickle.HIGHEST_PROTOCOL)

    def batches(self) -> Iterator[list[SinkRecord]]:
        """Yield the batches in their order."""
        self._file.seek(0)
        with suppress(EOFError):
            while True:
                yield pickle.load(self._file)  # noqa: S301 (written by this process)

    def clear(self) -> None:
        """Forget the batches."""
        self._file.seek(0)
        self._file.truncate()

    def close(self) -> None:
        """Delete the file."""
        self._file.close()
