"""The connectors that compact tables: source connectors without records, so that they are scheduled like any micro-batch.

Runs on the executors. The tables' offsets are not touched; a sink whose commit comes second repeats it.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing

from sluiceway.api import SourceConnector, SourceRecord, SourceTask
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type, ValidatedValue
from sluiceway.config.validators import Range
from sluiceway.connectors.tables.config import ORPHAN_AGE_MS
from sluiceway.connectors.tables.format import WritingFormat
from sluiceway.connectors.tables.store import Table
from sluiceway.connectors.tables.validation import WritingConnector
from sluiceway.errors import ConfigError

log = logging.getLogger(__name__)

TARGET_BYTES = "sluiceway.compaction.target.file.bytes"
MIN_FILES = "sluiceway.compaction.min.files"
HISTORY_AGE_MS = "sluiceway.compaction.history.age.ms"
INTERVAL_MS = "sluiceway.compaction.interval.ms"

_POLL_SECONDS = 1.0
_key = functools.partial(ConfigKey, type=Type.LONG, importance=Importance.MEDIUM, group="Compaction")

COMPACTION = ConfigDef(
    [
        _key(
            name=TARGET_BYTES,
            default=128 * 1024 * 1024,
            validator=Range(1),
            doc="The size of the files to write. Files of at least three quarters of it are left as they are. The rows of one "
            "such file are in memory at once.",
        ),
        _key(
            name=MIN_FILES,
            type=Type.INT,
            default=5,
            validator=Range(2),
            doc="The number of small files of a partition from which they are rewritten.",
        ),
        _key(
            name=HISTORY_AGE_MS,
            default=-1,
            validator=Range(-1),
            doc="The age in milliseconds from which snapshots of Iceberg tables expire, and from which files that are not in "
            f"the newest version of Delta tables are deleted; -1 keeps all. Must be at least {ORPHAN_AGE_MS} of the sinks.",
        ),
        _key(
            name=INTERVAL_MS,
            default=3_600_000,
            validator=Range(0),
            doc="The milliseconds between two compactions of a connector that runs all the time. A micro-batch compacts once.",
        ),
    ]
)


class CompactionConnector(WritingConnector, SourceConnector):
    """Starts one task for all tables."""

    interval_by_timestamp = False

    @classmethod
    def check(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        found = super().check(config)
        age, orphans = found[HISTORY_AGE_MS].value, found[ORPHAN_AGE_MS].value
        if isinstance(age, int) and isinstance(orphans, int) and age >= 0 and not 0 <= orphans <= age:
            text = f"must be at least {ORPHAN_AGE_MS}, or files may be deleted before their commit"
            found[HISTORY_AGE_MS].errors.append(str(ConfigError(HISTORY_AGE_MS, age, text)))
        return found

    @classmethod
    def start_effects(cls, config: Mapping[str, str]) -> str:
        return "each poll of its task rewrites small files of the tables"

    def start(self, config: Mapping[str, str]) -> None:
        self.options_of(config)
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config]


class CompactionTask(WritingFormat, SourceTask):
    """Compacts each listed table, one after the other, in one call of ``poll``."""

    def start(self, config: Mapping[str, str]) -> None:
        self._options = self.options_of(config)
        values = self.definition.parse(config)
        self._target, self._least, self._history, interval = (
            int(str(values[name])) for name in (TARGET_BYTES, MIN_FILES, HISTORY_AGE_MS, INTERVAL_MS)
        )
        self._interval = interval / 1000
        self._due = time.monotonic()
        self._stopping = threading.Event()

    def poll(self) -> Sequence[SourceRecord] | None:
        if time.monotonic() < self._due:
            self._stopping.wait(min(_POLL_SECONDS, self._due - time.monotonic()))
            return None
        with closing(self.store_of(self._options)) as store:
            for name in self._options.tables:
                table = store.table(name)
                if table is None:
                    log.info("Table %s does not exist yet: nothing to compact", name)
                else:
                    self._compact(table, name)
        self._due = time.monotonic() + self._interval
        return None

    def stop(self) -> None:
        self._stopping.set()

    def _compact(self, table: Table, name: str) -> None:
        started = time.monotonic()
        if self._options.orphan_age is not None:
            table.sweep(self._options.orphan_age)
        count = table.compact(self._target, self._least)
        log.info("Compacted table %s: rewrote %d small data files in %.1f s", name, count, time.monotonic() - started)
        if self._history >= 0:
            table.expire(self._history / 1000)
