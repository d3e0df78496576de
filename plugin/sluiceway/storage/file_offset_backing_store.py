"""Stores source offsets in a file (standalone mode), in Connect's format, so that either program can continue the other's."""

from __future__ import annotations

import logging
import os
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from sluiceway.api.records import Offset, Partition
from sluiceway.errors import ConnectError
from sluiceway.java import serialization as java_serialization
from sluiceway.storage.codec import encode_offset, encode_offset_key
from sluiceway.storage.offset_backing_store import offsets_of, stored_offset

log = logging.getLogger(__name__)


class FileOffsetBackingStore:
    """Implements ``OffsetBackingStore`` on a file. Thread-safe. Only one process at a time may use a file.

    ``path`` is ``offset.storage.file.filename``. Entries of other connectors are kept. Changes are written to a temporary
    file that then replaces the old one, so that a crash leaves the old file intact.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: java_serialization.Entries = {}
        self._lock = threading.Lock()

    def start(self) -> None:
        """Read the file. A missing file is an empty store. Raises ConnectError if it cannot be read or parsed."""
        with self._lock:
            self._entries = self._read()
        log.info("Read %d offsets from %s", len(self._entries), self._path)

    def stop(self) -> None:
        """Do nothing: all offsets are in the file."""

    def get(self, connector: str, partitions: Sequence[Partition]) -> list[Offset | None]:
        keys = [encode_offset_key(connector, partition) for partition in partitions]
        with self._lock:
            values = [self._entries.get(key) for key in keys]
        return [stored_offset(key, value, str(self._path)) for key, value in zip(keys, values, strict=True)]

    def put(self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]) -> None:
        """Store offsets and sync the file to disk. Raises ConnectError if it cannot be written."""
        changes: java_serialization.Entries = {}
        for partition, offset in offsets:
            key, value = encode_offset(connector, partition, offset)
            changes[key] = value
        with self._lock:
            if all(key in self._entries and self._entries[key] == value for key, value in changes.items()):
                return
            entries = {**self._entries, **changes}
            self._save(entries)
            self._entries = entries

    def all(self, connector: str) -> list[tuple[Partition, Offset]]:
        with self._lock:
            stored = {key: value for key, value in self._entries.items() if key is not None and value is not None}
        return offsets_of(connector, stored, str(self._path))

    def _read(self) -> java_serialization.Entries:
        try:
            return java_serialization.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConnectError(f"Cannot read the offsets file {self._path}: {error.strerror}.") from error
        except java_serialization.MalformedError as error:
            raise ConnectError(
                f"The offsets file {self._path} is damaged or not one of Kafka Connect's: {error}. Restore it from a backup, or "
                "move it away to start every source from the beginning."
            ) from error

    def _save(self, entries: java_serialization.Entries) -> None:
        folder = self._path.parent
        temporary: Path | None = None
        try:
            with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{self._path.name}.", delete=False) as file:
                temporary = Path(file.name)
                file.write(java_serialization.dumps(entries))
                file.flush()
                os.fsync(file.fileno())
            temporary.chmod(self._path.stat().st_mode & 0o777 if self._path.exists() else 0o644)
            temporary.replace(self._path)
        except OSError as error:
            if temporary is not None:
                temporary.unlink(missing_ok=True)
            raise ConnectError(f"Cannot write the offsets file {self._path}: {error.strerror}.") from error
