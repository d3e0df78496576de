"""Plans rounds of a folder's new files. Each file is a source partition, so it is read again once its offset is deleted."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from sluiceway.api import OffsetStorageReader
from sluiceway.api.data_frames import Round, Split
from sluiceway.connectors.spark.parquet_reader import parquet_reader
from sluiceway.connectors.spark.reading import finding, load_files
from sluiceway.connectors.spark.source_config import PATH, SourceConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FILE = "file"
_DONE = {"complete": True}


class FileRounds:
    """The rounds of one folder. A file belongs to the same slot in every round, whatever other files there are."""

    def __init__(self, spark: SparkSession, config: SourceConfig, offsets: OffsetStorageReader) -> None:
        self._spark = spark
        self._config = config
        self._offsets = offsets
        self._done: set[str] = set()

    def next_round(self) -> Round | None:
        """Return the files that are new, at most ``round.max.files``."""
        new = [file for file in self._files() if file not in self._done]
        stored = self._offsets.offsets([self._partition(file) for file in new])
        self._done.update(file for file, offset in zip(new, stored, strict=True) if offset is not None)
        files = [file for file in new if file not in self._done][: self._config.max_files]
        if not files:
            return None
        whole = load_files(self._spark, self._config, files)
        groups: dict[int, list[str]] = {}
        for file in files:
            groups.setdefault(zlib.crc32(file.encode()) % self._config.splits, []).append(file)
        readers = {slot: parquet_reader(whole, self._config, group) for slot, group in groups.items()}
        direct = all(readers.values())
        splits = []
        for slot, group in sorted(groups.items()):
            frame = whole if direct else load_files(self._spark, self._config, group, whole)
            splits.append(Split(frame, [(self._partition(file), _DONE) for file in group], slot, readers[slot]))
        return Round(self._config.topic, splits, self._config.schema_name)

    def _files(self) -> list[str]:
        """List the folder as Spark does: without names that start with an underscore or a dot."""
        listing = self._spark.read.format("text").option("recursiveFileLookup", "true")
        with finding(self._config.path):
            return sorted(listing.load(self._config.path).inputFiles())

    def _partition(self, file: str) -> dict[str, str]:
        return {PATH: self._config.path, _FILE: file}
