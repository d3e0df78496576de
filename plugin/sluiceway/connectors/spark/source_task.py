"""The task of SparkSource: plans rounds by a column, by files, or of everything at once. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.api.data_frames import DataFrameSourceTask, Round, Split
from sluiceway.config.intervals import interval_of
from sluiceway.connectors.spark.column_rounds import ColumnRounds
from sluiceway.connectors.spark.file_rounds import FileRounds
from sluiceway.connectors.spark.reading import check_names, load
from sluiceway.connectors.spark.source_config import SourceConfig


class SparkSourceTask(DataFrameSourceTask):
    """Reads one table, query or folder."""

    def start(self, config: Mapping[str, str]) -> None:
        self._config = settings = SourceConfig.of(config)
        offsets = self.context.offset_storage_reader
        self._rounds: ColumnRounds | FileRounds | None = None
        if settings.column:
            self._rounds = ColumnRounds(self.spark, settings, offsets, interval_of(config))
        elif settings.by_file:
            self._rounds = FileRounds(self.spark, settings, offsets)

    @property
    def poll_seconds(self) -> float:
        return self._config.poll_interval

    @property
    def slots(self) -> int:
        return self._config.splits

    def next_round(self) -> Round | None:
        return self._everything() if self._rounds is None else self._rounds.next_round()

    def _everything(self) -> Round | None:
        """Return all rows as one split, unless they have been read."""
        config = self._config
        if self.context.offset_storage_reader.offset(config.partition) is not None:
            return None
        check_names(config)
        split = Split(load(self.spark, config), [(config.partition, {"complete": True})])
        return Round(config.topic, [split], config.schema_name)
