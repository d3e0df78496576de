"""The connector of the table sinks: sets offsets in the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing

from sluiceway.api import IntervalRepeat, SinkConnector, TopicPartition
from sluiceway.config.intervals import COLUMN
from sluiceway.connectors.tables.config import DYNAMIC, UPSERT
from sluiceway.connectors.tables.validation import WritingConnector
from sluiceway.errors import ConnectError


class TableSinkConnector(WritingConnector, SinkConnector):
    """Starts tasks with the connector's config."""

    replaces_rows = True

    @classmethod
    def interval_repeat(cls, config: Mapping[str, str]) -> IntervalRepeat:
        if config.get(cls.prefix + UPSERT, "").strip().lower() == "true":
            return IntervalRepeat.MERGES
        # Which tables had rows before is not known if records name them.
        replaces = config.get(COLUMN) and config.get(cls.prefix + DYNAMIC, "").strip().lower() != "true"
        return IntervalRepeat.REPLACES if replaces else IntervalRepeat.ADDS

    def start(self, config: Mapping[str, str]) -> None:
        self.options_of(config)
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks

    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Set the offsets in the tables too, because tasks start from those. Connects to the catalog."""
        for partition, offset in offsets.items():
            if offset is not None and offset < 0:
                raise ConnectError(f"The offset of {partition[0]}-{partition[1]} must not be negative, but is {offset}.")
        if offsets:
            wanted = {TopicPartition._make(partition): offset for partition, offset in offsets.items()}
            with closing(self.store_of(self.options_of(config))) as store:
                if store.shares_offsets:
                    if any(store.offset(partition) is not None for partition in wanted):
                        store.set_offsets(wanted)
                    return True
                for name in store.names():
                    table = store.table(name)
                    if table is not None and any(table.offset(partition) is not None for partition in wanted):
                        table.set_offsets(wanted)
        return True
