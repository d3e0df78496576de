"""HBaseSourceConnector and its task: read the rows of a table, then those with newer cells, pass by pass."""

from __future__ import annotations

import logging
import math
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sluiceway.api import (
    ExactlyOnceSupport,
    Offset,
    OffsetTarget,
    OffsetTargetKind,
    Partition,
    SourceConnector,
    SourceLag,
    SourceRecord,
    SourceTask,
)
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type, ValidatedValue
from sluiceway.config.intervals import interval_of
from sluiceway.config.validators import Check, EnumText, NonEmptyString
from sluiceway.connectors.errors import UnreachableError
from sluiceway.connectors.groups import Groups
from sluiceway.connectors.hbase.client import NOW, Cell, Gateways, HBaseClient, MissingTableError, Row, column_of
from sluiceway.connectors.hbase.connection import (
    CONNECTION_KEYS,
    TABLE,
    HBaseConnector,
    check_table,
    gateways_of,
)
from sluiceway.connectors.hbase.ranges import PARENTS, START, STARTS, Plan, Position, keys_of, keys_text
from sluiceway.connectors.hbase.ranges import TABLE as TABLE_PARTITION
from sluiceway.connectors.hbase.values import (
    COLUMNS,
    ENCODING,
    Column,
    Encoding,
    binary_text,
    check_columns,
    columns_of,
    encoding_key,
    is_binary_text,
    reader_of,
    row_schema,
)
from sluiceway.connectors.keys import text, whole
from sluiceway.connectors.periodic import Job, Periodic
from sluiceway.data import BYTES_SCHEMA, STRING_SCHEMA, Schema, SchemaBuilder, Struct
from sluiceway.errors import BadRequestError, ConfigError, ConnectError, DataError, RetriableError

log = logging.getLogger(__name__)

TOPIC, RECORD, KEY_TYPE, VALUE_TYPE = "topic", "hbase.record", "hbase.key.type", "hbase.value.type"
START_AT, HORIZON, INTERVAL, BATCH = "hbase.start", "hbase.horizon.ms", "poll.interval.ms", "batch.max.rows"
REGIONS_INTERVAL = "hbase.regions.interval.ms"
TASK_STARTS, TASK_PLAN, TASK_PARENTS = "task.ranges", "task.plan.starts", "task.plan.parents"
TABLE_PLACEHOLDER = "${table}"
_READS, _RECORDS = "Reads", "Records"
_BATCH_BYTES = 8 * 2**20
_STORE_SECONDS = 60.0  # between two stored positions of a range of which no row is read
_RETRY_SECONDS = 5.0
_NAMES = 10_000  # of columns that are remembered
_FIRST_BATCH = 100  # rows; more in each request, as long as they are small
_SPLIT_SECONDS = 60.0  # for which the regions' starts are remembered
_TIMES = range(10**11, 10**14)  # ms since 1970: from 1973 on

CONFIG = ConfigDef(
    [
        *CONNECTION_KEYS,
        text(
            name=TABLE,
            validator=Check(check_table, "the name of a table"),
            importance=Importance.HIGH,
            group=_READS,
            doc="The table to read, such as orders, or shop:orders with a namespace.",
        ),
        ConfigKey(
            name=COLUMNS,
            type=Type.LIST,
            default=[],
            validator=Check(check_columns, "cf, cf:name, or cf:age=int32"),
            importance=Importance.HIGH,
            group=_READS,
            doc="The column families or columns to read; by default all. With a type for each column "
            "(cf:name=string,cf:age=int32), a record's value is a struct with a field for each qualifier. Types: string, bytes, "
            "boolean, int8, int16, int32, int64, float32, float64.",
        ),
        text(
            name=START_AT,
            default="beginning",
            validator=EnumText("beginning", "now"),
            group=_READS,
            doc="Where to start without stored offsets. beginning: all rows. now: rows that are written from now on.",
        ),
        whole(
            HORIZON,
            10_000,
            0,
            _READS,
            "How old cells must be to be read, in ms: more than the clocks of the region servers and of the task differ, and "
            "than a write takes. Cells that appear later than that with an older timestamp are missed.",
            importance=Importance.MEDIUM,
        ),
        whole(INTERVAL, 5_000, 1, _READS, "Milliseconds between two passes over a range of row keys."),
        whole(BATCH, 1_000, 1, _READS, "The most rows of a request; fewer if they are large."),
        whole(
            REGIONS_INTERVAL, 60_000, 1_000, _READS, "Milliseconds between two looks for regions that were split, for more tasks."
        ),
        text(
            name=TOPIC,
            default=TABLE_PLACEHOLDER,
            validator=NonEmptyString(),
            importance=Importance.HIGH,
            group=_RECORDS,
            doc=f"The topic. {TABLE_PLACEHOLDER} is the table, with a dot for the colon after a namespace.",
        ),
        text(
            name=RECORD,
            default="row",
            validator=EnumText("row", "changes"),
            group=_RECORDS,
            doc="What a record has of a row with new cells. row: all of its columns. changes: the new cells only.",
        ),
        text(
            name=KEY_TYPE,
            default="string",
            validator=EnumText("string", "bytes"),
            group=_RECORDS,
            doc="The type of keys: row keys as UTF-8 text, or bytes.",
        ),
        text(
            name=VALUE_TYPE,
            default="string",
            validator=EnumText("string", "bytes"),
            group=_RECORDS,
            doc=f"The type of cells without types in {COLUMNS}: a record's value is a map from family:qualifier to them.",
        ),
        encoding_key(_RECORDS),
    ]
)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The table, what is read of it, and how. Times are in ms."""

    gateways: Gateways
    table: str
    topic: str
    columns: tuple[Column, ...]
    from_now: bool
    horizon: int
    interval: int
    batch: int
    whole_rows: bool
    text_keys: bool
    text_values: bool
    encoding: Encoding

    @property
    def pairs(self) -> list[tuple[bytes, bytes | None]]:
        return [each.pair for each in self.columns]

    @property
    def typed(self) -> bool:
        return any(each.type for each in self.columns)


def source_options(config: Mapping[str, str]) -> SourceOptions:
    """Return the options of a config. Raises ConfigError."""
    values = CONFIG.parse(config)
    table = str(values[TABLE])

    def is_set(name: str, value: str) -> bool:
        return str(values[name]).lower() == value

    return SourceOptions(
        gateways=gateways_of(values),
        table=table,
        topic=str(values[TOPIC]).replace(TABLE_PLACEHOLDER, table.replace(":", ".")),
        columns=columns_of(values[COLUMNS]),
        from_now=is_set(START_AT, "now"),
        horizon=int(str(values[HORIZON])),
        interval=int(str(values[INTERVAL])),
        batch=int(str(values[BATCH])),
        whole_rows=is_set(RECORD, "row"),
        text_keys=is_set(KEY_TYPE, "string"),
        text_values=is_set(VALUE_TYPE, "string"),
        encoding=Encoding(str(values[ENCODING]).lower()),
    )


class Records:
    """Makes records of rows."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._key_schema = STRING_SCHEMA if options.text_keys else BYTES_SCHEMA
        cells = STRING_SCHEMA if options.text_values else BYTES_SCHEMA
        name = options.table.replace(":", ".")
        typed = options.typed
        self._schema: Schema = row_schema(options.columns, name) if typed else SchemaBuilder.map(STRING_SCHEMA, cells).build()
        columns = options.columns if typed else ()
        self._fields = {each.pair: (each.field, reader_of(str(each.type), options.encoding)) for each in columns}
        self._types = {each.pair: each.type for each in columns}
        self._names: dict[tuple[bytes, bytes], str] = {}

    def value(self, row: Row) -> Any:
        """Return the value of a record. Raises DataError for cells that are not what the config says."""
        options = self._options
        if not options.typed:
            if not options.text_values:
                return {self._name_of(cell): cell.value for cell in row.cells}
            try:
                return {self._name_of(cell): cell.value.decode() for cell in row.cells}
            except UnicodeDecodeError as error:
                [bad, *_] = [column_of(cell) for cell in row.cells if cell.value == error.object]
                raise DataError(
                    f"Column {bad} of a row is no UTF-8 text. Set {VALUE_TYPE}=bytes, or its type in {COLUMNS}."
                ) from None
        made = Struct(self._schema)
        for cell in row.cells:
            field, read = self._fields[cell.family, cell.qualifier]
            try:
                made[field] = read(cell.value)
            except (ValueError, struct.error):
                kind = self._types[cell.family, cell.qualifier]
                raise DataError(
                    f"Column {column_of(cell)} of a row has {len(cell.value)} bytes that are no {kind} with {ENCODING}="
                    f"{options.encoding.value}. Change {COLUMNS} or {ENCODING}."
                ) from None
        return made

    def _name_of(self, cell: Cell) -> str:
        column = cell.family, cell.qualifier
        name = self._names.get(column)
        if name is None:
            name = column_of(cell)
            if len(self._names) < _NAMES:
                self._names[column] = name
        return name

    def record(self, row: Row, partition: Partition, position: Position) -> SourceRecord:
        """Return the record of a row. Raises DataError."""
        key: Any = row.key
        if self._options.text_keys:
            try:
                key = row.key.decode()
            except UnicodeDecodeError:
                raise DataError(f"A row key is no UTF-8 text. Set {KEY_TYPE}=bytes.") from None
        return SourceRecord(
            partition,
            position.to_offset(),
            self._options.topic,
            self.value(row),
            self._schema,
            key,
            self._key_schema,
            timestamp=_time_of(row),
        )

    def raw(self, row: Row, partition: Partition, position: Position) -> SourceRecord:
        """Return what is reported of a row that has no record: its key and its cells as they are."""
        value = repr({column_of(cell): cell.value for cell in row.cells}).encode()
        return SourceRecord(partition, position.to_offset(), self._options.topic, value, BYTES_SCHEMA, row.key, BYTES_SCHEMA)


def _time_of(row: Row) -> int | None:
    """Return the newest timestamp of a row's cells, None if it is no time, such as an offset or a version."""
    newest = max(cell.timestamp for cell in row.cells)
    return newest if newest in _TIMES else None


@dataclass(slots=True)
class _Range:
    """A range of row keys and its state. ``due`` is the time in ms at which its next pass may begin."""

    start: bytes
    end: bytes
    partition: Partition
    position: Position
    due: float = 0.0
    began: bool = False  # the pass, since the start of the task
    passes: int = 0  # that began and ended since then
    reached: bytes | None = None  # in this pass, the key up to which there is nothing more to read
    moved: bool = False  # a pass has ended, which no record says
    stored: float = -math.inf  # when such a position was last stored, in monotonic seconds; unless a record came after it


def _next_key(read: _Range) -> bytes:
    """Return the key at or after which the next row of a pass is."""
    row = read.position.row
    return max(read.start, read.reached or b"", b"" if row is None else row + b"\x00")


class HBaseSourceTask(SourceTask):
    """Reads ranges of row keys in passes: the rows with cells written since the last pass, up to the horizon.

    Positions of new ranges, then the plan of all ranges, are stored before the first row is read: without the plan nothing would
    tell which ranges there are.
    """

    _client: HBaseClient | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = source_options(config)
        interval = interval_of(config)
        self._limit = None if interval is None else interval.end
        begin = interval.start if interval is not None else self._now() - options.horizon if options.from_now else 0
        self._records = Records(options)
        plan = Plan.of({STARTS: config[TASK_PLAN], PARENTS: config[TASK_PARENTS]})
        own = keys_of(config[TASK_STARTS])
        reader = self.context.offset_storage_reader
        partitions = {start: range_partition(options.table, start) for start in own}
        plan_partition = {TABLE_PARTITION: options.table}
        planned = reader.offset(plan_partition)
        known = own if planned is None else Plan.of(planned).starts  # a position of another plan may be stale
        stored = reader.offsets(list(partitions.values()))
        found = [offset if start in known else None for start, offset in zip(own, stored, strict=True)]
        positions: dict[bytes, Position] = {}
        for start, offset in zip(own, found, strict=True):  # in the order of keys: a parent comes first
            if offset is not None:
                positions[start] = Position.of(offset)
            elif start in plan.parents:
                positions[start] = positions[plan.parents[start]]
            else:
                positions[start] = Position(begin)
        self._ranges = [_Range(start, plan.end(start), partitions[start], positions[start]) for start in own]
        self._first: list[list[tuple[Partition, Offset]]] = []  # to store before rows are read, one after another
        new = [start for start, offset in zip(own, found, strict=True) if offset is None]
        if new:
            self._first.append([(partitions[start], positions[start].to_offset()) for start in new])
        if planned != plan.to_offset():
            self._first.append([(plan_partition, plan.to_offset())])
        self._given = False  # the runtime has the first of them
        self._asked = False
        self._next = 0
        self._batch = min(options.batch, _FIRST_BATCH)
        self._regions: list[bytes] = []
        self._regions_at = -math.inf
        self._behind = 0.0
        self._client = HBaseClient(options.gateways)

    @staticmethod
    def _now() -> int:
        return int(time.time() * 1000)

    def poll(self) -> Sequence[SourceRecord] | None:
        if self._first and (self._given or not self._asked):  # a preview never asks for them
            if self._given:
                self.context.wait(0.1)
            self._asked = True
            return None
        read = self._due_range()
        if read is None:
            return None
        try:
            return self._read(read) or None
        except UnreachableError as error:
            said = str(error) if self._batch > 1 else f"{str(error).rstrip('.')}. {self._advice(read)}"
            self._batch = max(1, self._batch // 2)  # an answer may have been too large
            raise RetriableError(said) from error

    def idle_offsets(self) -> Sequence[tuple[Partition, Offset | None]]:
        if self._first:
            self._given = True
            return self._first[0]
        now = time.monotonic()
        moved = [each for each in self._ranges if each.moved and now - each.stored >= _STORE_SECONDS]
        for each in moved:
            each.moved, each.stored = False, now
        return [(each.partition, each.position.to_offset()) for each in moved]

    @property
    def commit_is_awaited(self) -> bool:
        return self._given

    def commit(self) -> None:
        if self._given:
            del self._first[0]
            self._given = self._asked = False

    @property
    def ended(self) -> bool:
        """True once each range was read in a pass that began after the start of the task, or to the end of the run's interval."""
        if self._limit is not None and any(each.position.since < self._limit for each in self._ranges):
            return False
        return not self._first and all(each.passes for each in self._ranges)

    def source_lag(self) -> SourceLag:
        return SourceLag(seconds=max(0.0, time.time() - self._behind) if self._behind else None)

    def stop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _due_range(self) -> _Range | None:
        """Return a range to read from, in turn; wait if none is due."""
        now = self._now()
        count = len(self._ranges)
        for number in range(count):
            each = self._ranges[(self._next + number) % count]
            if each.position.until is None:
                until = now - self._options.horizon
                if self._limit is not None:
                    until = min(until, self._limit)
                if now < each.due:
                    continue
                each.due = now + self._options.interval
                if until <= each.position.since:
                    each.passes += 1
                    continue
                each.position = replace(each.position, until=until)
                each.reached, each.began = None, True
            self._next = (self._next + number + 1) % count
            return each
        self.context.wait(min(1.0, max(0.01, min(each.due for each in self._ranges) / 1000 - time.time())))
        return None

    def _read(self, read: _Range) -> list[SourceRecord]:
        position = read.position
        rows, last, ended = self._scan(read, position)
        records = []
        for row in rows:
            after = Position(position.since, position.until, row.key)
            try:
                records.append(self._records.record(row, read.partition, after))
                read.stored = -math.inf
            except DataError as error:
                self.context.report(self._records.raw(row, read.partition, after), error)
        if ended:
            read.position = Position(position.until or 0)
            read.passes += read.began
            read.moved = True
            if all(each.passes for each in self._ranges):
                self._behind = min(each.position.since for each in self._ranges) / 1000
        elif last is not None:
            read.position = Position(position.since, position.until, last)
        return records

    def _advice(self, read: _Range) -> str:
        """Return the likely cause of a request for one row that fails while the server runs."""
        first = f"the first row of table {self._options.table} from '{binary_text(_next_key(read))}' on"
        return (
            f"If the server runs, {first} takes more than its memory or hbase.thrift.timeout. Raise these, leave out columns "
            f"({COLUMNS}), or set an offset behind the row."
        )

    def _scan(self, read: _Range, position: Position) -> tuple[Sequence[Row], bytes | None, bool]:
        """Return the next rows of a pass, the key of the last one that was looked at, and whether the pass has ended."""
        options, client, until = self._options, self._client, position.until
        if client is None or until is None:
            raise ConnectError("The task has not been started. Call start() first.")
        start = _next_key(read)
        if read.end and start >= read.end:  # a range that was divided may end before the row that was read last
            return [], None, True
        most, stop = self._batch, self._region_end(start, read.end)
        # Whole rows have their newest cells, which in HBase may have replaced those of the time of the pass.
        everything = options.whole_rows and not position.since
        found = rows = client.scan(
            options.table, start, stop, most=most, since=position.since, until=NOW if everything else until, columns=options.pairs
        )
        if everything:
            rows = [each for each in found if any(cell.timestamp < until for cell in each.cells)]
        elif found and options.whole_rows:
            rows = client.get(options.table, [each.key for each in found], columns=options.pairs)
        if found:
            self._fit_batch(found, most)
        read.reached = stop if len(found) < most else found[-1].key + b"\x00"
        return rows, found[-1].key if found else None, len(found) < most and stop == read.end

    def _region_end(self, start: bytes, end: bytes) -> bytes:
        """Return the end of the region with a key, or of the range: a request reads one region, so that it takes not too long."""
        now = time.monotonic()
        if self._client is not None and now - self._regions_at >= _SPLIT_SECONDS:
            self._regions = self._client.starts(self._options.table)
            self._regions_at = now
        later = next((each for each in self._regions if each > start), b"")
        return later if later and (not end or later < end) else end

    def _fit_batch(self, rows: Sequence[Row], most: int) -> None:
        size = sum(len(cell.value) + len(cell.qualifier) + 50 for row in rows for cell in row.cells)
        if size > _BATCH_BYTES:
            self._batch = max(1, len(rows) * _BATCH_BYTES // size)  # a region may have had fewer than `most`
        elif size < _BATCH_BYTES // 4:
            self._batch = min(self._options.batch, most * 2)


def range_partition(table: str, start: bytes) -> dict[str, str]:
    """Return the source partition of the range of row keys that starts there."""
    return {TABLE_PARTITION: table, START: binary_text(start)}


class HBaseSourceConnector(HBaseConnector, SourceConnector):
    """Reads a table of HBase by its Thrift 2 server: all rows, then again and again those with cells that were written since.

    Tasks share the table by ranges of row keys, which start where its regions do. A scan by time finds no deletions, and of
    several versions that were written between two passes the newest one.
    """

    task_class = HBaseSourceTask
    _monitor: Periodic | None = None

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def interval_refusal(cls, config: Mapping[str, str]) -> str:
        return ""

    @classmethod
    def try_table(cls, client: HBaseClient, found: Mapping[str, ValidatedValue]) -> None:
        table = str(found[TABLE].value)
        try:
            families = client.families(table)
        except MissingTableError:
            found[TABLE].errors.append(str(ConfigError(TABLE, table, "is no table of this HBase")))
            return
        for column in columns_of(found[COLUMNS].value):
            if column.family not in families:
                known = ", ".join(sorted(each.decode() for each in families))
                message = f"is no column family of table {table}, which has {known}"
                found[COLUMNS].errors.append(str(ConfigError(COLUMNS, column.family.decode(), message)))

    def start(self, config: Mapping[str, str]) -> None:
        super().start(config)
        self._options = source_options(config)
        self._groups = Groups[tuple[bytes, ...]]()
        self._starts: list[bytes] = []
        self._interval = int(str(CONFIG.parse(config)[REGIONS_INTERVAL])) / 1000
        try:
            self._starts = self._find()
        except UnreachableError as error:  # the monitor finds them once HBase answers
            self._wait(error)
        interval = min(self._interval, _RETRY_SECONDS) if not self._starts else self._interval
        self._monitor = Periodic(f"hbase-{config.get('name', '')}", [Job("to look for new regions", self._look, interval)])
        self._monitor.start()

    def _find(self) -> list[bytes]:
        client = HBaseClient(self._options.gateways)
        try:
            return client.starts(self._options.table)
        finally:
            client.close()

    def _wait(self, reason: object) -> None:
        log.warning("%s", reason)
        self.context.waiting(reason, _RETRY_SECONDS)

    def _look(self) -> None:
        """Look for regions that start where none did. Runs on the monitor's thread."""
        try:
            found = self._find()
        except UnreachableError as error:
            self._wait(error)
            return
        self.context.waiting()
        new = set(found) - set(self._starts)
        self._starts = found
        if new:
            log.info("Table %s has %d new regions", self._options.table, len(new))
            self.context.request_task_reconfiguration()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Assign ranges to tasks: those of the stored plan, divided where regions start now."""
        if not self._starts:
            return []
        table, reader = self._options.table, self.context.offset_storage_reader
        before = Plan.of(reader.offset({TABLE_PARTITION: table}))
        plan = before.divided(self._starts)
        found = reader.offsets([range_partition(table, start) for start in before.starts])
        stored = {start for start, offset in zip(before.starts, found, strict=True) if offset is not None}
        planned = plan.to_offset()
        common = {**self._config, TASK_PLAN: str(planned[STARTS]), TASK_PARENTS: str(planned.get(PARENTS, ""))}
        groups = self._groups.assign(plan.units(stored), max_tasks)
        return [{**common, TASK_STARTS: keys_text(sorted(key for unit in group for key in unit))} for group in groups]

    def stop(self) -> None:
        if self._monitor is not None:
            self._monitor.stop()

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        table = source_options(config).table
        for partition, offset in offsets:
            if offset is None:
                continue
            if (partition or {}).get(TABLE_PARTITION) != table:
                raise ConnectError(f'The connector reads table {table}: a partition is {{"{TABLE_PARTITION}": "{table}", ...}}.')
            if set(partition or ()) == {TABLE_PARTITION}:
                Plan.of(offset)
            elif set(partition or ()) == {TABLE_PARTITION, START} and is_binary_text(partition[START]):
                position = Position.of(offset)
                if max(position.since, position.until or 0) > time.time() * 1000:
                    raise ConnectError(f"{dict(offset)} is a time to come: cells would be passed over until then.")
            else:
                raise ConnectError(
                    f'A partition is {{"{TABLE_PARTITION}": "orders", "{START}": ""}}, with the first row key of a range.'
                )
        return True

    def find_offsets(
        self, config: Mapping[str, str], target: OffsetTarget, offsets: Sequence[tuple[Partition, Offset]]
    ) -> Sequence[tuple[Partition, Offset | None]]:
        """Return positions at a time of cells, for each range with a stored position."""
        if target.kind is OffsetTargetKind.SHIFT:
            raise BadRequestError("Rows are not numbered. Set a time, the beginning, or the end.")
        since = {OffsetTargetKind.EARLIEST: 0, OffsetTargetKind.LATEST: int(time.time() * 1000)}.get(target.kind, target.number)
        return [(partition, Position(max(0, since)).to_offset()) for partition, _offset in offsets if START in (partition or {})]
