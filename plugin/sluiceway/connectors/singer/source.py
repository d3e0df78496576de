"""SingerSourceConnector and its task: read what a Singer tap prints, with its state as the offset."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluiceway.api import Offset, Partition, Pump, SourceColumns, SourceConnector, SourceRecord, SourceTask
from sluiceway.config.definition import ConfigDef, ConfigValue, ValidatedValue
from sluiceway.connectors.checked_connector import CheckedConnector
from sluiceway.connectors.singer.catalog import stream_name
from sluiceway.connectors.singer.config import (
    CATALOG,
    CATALOG_OPTION,
    DEFINITION,
    SELECT,
    WITHOUT,
    Options,
    conflicts,
    options_of,
)
from sluiceway.connectors.singer.plugin import CONFIG
from sluiceway.data import OPTIONAL_BYTES_SCHEMA
from sluiceway.errors import ConfigError, ConnectError, DataError, MissingToolError, NotFoundError
from sluiceway.folders import scratch_folder
from sluiceway.installation import install_command

if TYPE_CHECKING:
    from sluiceway.connectors.singer.run import Batch, Progress, Reader
    from sluiceway.connectors.singer.tap import Tap

log = logging.getLogger(__name__)

TAP_FIELD, STATE_FIELD = "tap", "state"
_BATCHES = 16  # that wait for the task
_WAIT_SECONDS = 0.5
_FEWEST_FOR_COLUMNS = 200  # as the runtime counts them
_VALIDATE_SECONDS = 30.0
_END_SECONDS = 30.0


class SingerSourceTask(SourceTask):
    """Runs a tap, again and again, and returns its records.

    The tap and the thread that reads its output belong to a pump. The offset of a record is the last state before it, that of the
    last record before a state is this state. What a run sends as its last state without records after it is stored while idle.
    """

    _pump: Pump[Batch | Progress] | None = None
    _reader: Reader | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = options_of(config)
        self._partition: Partition = {TAP_FIELD: options.name}
        stored = self.context.offset_storage_reader.offset(self._partition)
        state = None if stored is None else state_of(stored)
        self._stored = self._safe = state  # what the last record, or an idle offset, has; what has been read up to now
        self._runs = 0
        self._files: list[Path] = []  # the tap's files whose lines are all polled
        self._tap: Tap | None = None
        self._reader = new_reader(options, state)
        self._pump = Pump(self.context, self._items, _BATCHES, self._interrupt)

    # --- on the pump's thread ---

    def _items(self) -> Iterator[Batch | Progress]:
        """Yield what runs of the tap send, until the task stops."""
        from sluiceway.connectors.singer.messages import resumable
        from sluiceway.connectors.singer.run import Progress
        from sluiceway.connectors.singer.tap import Interrupted, Tap

        reader = self._reader
        assert reader is not None  # noqa: S101 (start() has made it)
        with scratch_folder("singer") as folder:
            self._tap = tap = Tap(self._options, folder)
            try:
                while True:
                    state = reader.state
                    catalog = tap.catalog()
                    log.info("%s starts %s", self._options.name, "from its beginning" if state is None else "from its last state")
                    reader.begin()
                    with tap.run(catalog, None if state is None else resumable(state)) as process:
                        yield from reader.read(process.chunks())
                        if tap.interrupted:
                            return
                        code = process.wait(_END_SECONDS)
                        if code:
                            raise process.failure(code)
                    yield from reader.last()
                    yield Progress(reader.state, ended=True)
                    log.info("%s has ended well, with %d records", self._options.name, reader.records)
                    if tap.wait(self._options.interval):
                        return
            except Interrupted:
                return

    def _interrupt(self) -> None:
        if self._tap is not None:
            self._tap.interrupt()

    # --- on the task's thread ---

    def poll(self) -> Sequence[SourceRecord] | None:
        batch = self._next()
        return None if batch is None else self._rows(batch)

    def poll_columns(self) -> SourceColumns | Sequence[SourceRecord] | None:
        from sluiceway.connectors.singer.tables import NoColumnsError

        batch = self._next()
        if batch is None or len(batch.lines) < _FEWEST_FOR_COLUMNS:
            return None if batch is None else self._rows(batch)
        try:
            columns = batch.table.columns(batch.lines)
        except NoColumnsError:
            return self._rows(batch)
        self._stored = batch.after
        return SourceColumns(
            batch=columns,
            source_partition=self._partition_at(batch.after),
            source_offset=offset_of(batch.after),
            records=lambda: self._records(batch),
        )

    def _next(self) -> Batch | None:
        """Return the next lines; None if there are none now."""
        from sluiceway.connectors.singer.run import Progress

        if self._pump is None:
            raise ConnectError("The task has not been started. Call start() first.")
        for item in self._pump.take(1, _WAIT_SECONDS):
            if isinstance(item, Progress):
                self._safe = item.state
                self._runs += item.ended
                return None
            self._safe = item.after
            if item.file is not None:
                self._files.append(item.file)
            return item
        return None

    def _rows(self, batch: Batch) -> Sequence[SourceRecord] | None:
        """Return the records of a batch; None if all of its lines are bad. Raises ConnectError unless errors are tolerated."""
        records = self._records(batch)
        if records:
            offset = records[-1].source_offset
            self._stored = None if offset is None else offset[STATE_FIELD]
        return records or None

    def _records(self, batch: Batch) -> list[SourceRecord]:
        table, partition, offset = batch.table, self._partition_at(batch.before), offset_of(batch.before)
        schema, key_schema = table.layout.schema, table.layout.key_schema
        records: list[SourceRecord] = []
        good = False
        for line in batch.lines:
            try:
                value, key = table.row(line)
            except DataError as error:
                raw = SourceRecord(partition, offset, table.topic, bytes(line.record), OPTIONAL_BYTES_SCHEMA)
                self.context.report(raw, error)
                good = False
            else:
                records.append(SourceRecord(partition, offset, table.topic, value, schema, key, key_schema))
                good = True
        if good:  # else the state after the batch is stored while idle, once the bad record is in the dead letter queue
            records[-1].source_partition, records[-1].source_offset = self._partition_at(batch.after), offset_of(batch.after)
        return records

    def _partition_at(self, state: str | None) -> Partition | None:
        """Return the source partition of a record; None before the first state, because an empty offset would be one."""
        return None if state is None else self._partition

    def idle_offsets(self) -> Sequence[tuple[Partition, Offset | None]]:
        """Return the state of what was read, if no record has it: the last one of a run, or that behind a bad record."""
        offset = offset_of(self._safe)
        if offset is None or self._safe == self._stored:
            return ()
        self._stored = self._safe
        return [(self._partition, offset)]

    @property
    def ended(self) -> bool | None:
        """True once a run of the tap has ended."""
        return self._runs > 0

    def commit(self) -> None:
        """Remove the tap's files whose records are in Kafka."""
        files, self._files = self._files, []
        for file in files:
            try:
                file.unlink(missing_ok=True)
            except OSError as error:
                log.warning("The tap's file %s is read, but cannot be removed: %s", file, error)

    def metrics(self) -> Mapping[str, float]:
        """Return how many runs have ended, and how many versions of tables were activated."""
        return {} if self._reader is None else {"runs": self._runs, "activated-versions": self._reader.versions}

    def stop(self) -> None:
        pump, self._pump = self._pump, None
        if pump is not None:
            pump.close()


def new_reader(options: Options, state: str | None) -> Reader:
    """Return a reader of the tap's messages. Raises MissingToolError without the package for it."""
    try:
        from sluiceway.connectors.singer.run import Reader
    except ImportError as error:
        raise MissingToolError(
            f"SingerSource needs a Python package that is not installed ({error}). Run: {install_command('singer')} in the "
            "Python environment of the tasks."
        ) from error
    return Reader(options, state)


def offset_of(state: str | None) -> Offset | None:
    """Return the source offset of a state. It is text: Connect's offsets hold no objects."""
    return None if state is None else {STATE_FIELD: state}


def state_of(offset: Offset) -> str:
    """Return the state in an offset. Raises ConnectError."""
    text = offset.get(STATE_FIELD)
    try:
        if set(offset) != {STATE_FIELD} or not isinstance(text, str) or not isinstance(json.loads(text), dict):
            raise ValueError
    except ValueError:
        raise ConnectError(
            f'{dict(offset)} is no offset of a tap: it is {{"{STATE_FIELD}": "TEXT"}}, where TEXT is a state as a JSON object.'
        ) from None
    return text


class SingerSourceConnector(CheckedConnector, SourceConnector):
    """Runs a Singer tap, again and again, and writes its records to a topic for each stream. There is one task."""

    task_class = SingerSourceTask
    interval_by_timestamp = False

    @classmethod
    def config_def(cls) -> ConfigDef:
        return DEFINITION

    @classmethod
    def start_effects(cls, config: Mapping[str, str]) -> str:
        """Return that a tap with BATCH files leaves some behind, unless they are committed."""
        try:
            batches = "batch_config" in options_of(config).tap.settings
        except ConfigError:
            return ""
        return "the tap writes files of its batch_config" if batches else ""

    @classmethod
    def try_config(cls, config: Mapping[str, str], found: Mapping[str, ValidatedValue]) -> None:
        """Ask the tap for its catalog: its streams are recommended values, and it tries its config.

        A tap that is not installed on this machine, or takes longer than 30 s, is no error: the tasks' machines have it.
        """
        if config.get(CATALOG_OPTION) == WITHOUT or config.get(CATALOG):
            return
        try:
            catalog = _discovered(options_of(config))
        except (NotFoundError, MissingToolError) as error:
            log.info("The tap is not asked for its streams: %s", error)
        except ConnectError as error:
            found[CONFIG].errors.append(str(error))
        else:
            if catalog is not None:
                _recommend(found[SELECT], options_of(config), catalog)

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        return conflicts(values)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [dict(self._config)]

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        name = options_of(config).name
        for partition, offset in offsets:
            if offset is None:
                continue
            if partition != {TAP_FIELD: name}:
                raise ConnectError(f'The partition of this connector is {{"{TAP_FIELD}": "{name}"}}.')
            state_of(offset)
        return True


def _discovered(options: Options) -> Any:
    """Return the catalog that the tap prints; None if it takes too long. Installs nothing."""
    import threading

    from sluiceway.connectors.singer.tap import Interrupted, Tap

    with scratch_folder("singer") as folder:
        tap = Tap(options, folder, install=False)
        timer = threading.Timer(_VALIDATE_SECONDS, tap.interrupt)
        timer.start()
        try:
            return tap.discover()
        except Interrupted:
            log.warning("%s has not printed its catalog within %.0f s", options.name, _VALIDATE_SECONDS)
            return None
        finally:
            timer.cancel()


def _recommend(value: ValidatedValue, options: Options, catalog: Any) -> None:
    """Recommend the streams of a catalog, and add what is wrong with the selection to the errors."""
    try:
        options.selection.apply(catalog)
    except ConnectError as error:
        value.errors.append(str(error))
    streams = catalog.get("streams") if isinstance(catalog, dict) else None
    if isinstance(streams, list):
        names = sorted(stream_name(each) for each in streams if isinstance(each, dict))
        value.recommended_values = [name.replace(".", "\\.") + ".*" for name in names if name]
