"""HBaseSinkConnector and its task: write records to rows of tables, in batches."""

from __future__ import annotations

import enum
import logging
import time
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sluiceway.api import (
    DONE,
    BatchLimits,
    BatchSinkTask,
    Converter,
    IntervalRepeat,
    Outcome,
    SinkConnector,
    SinkRecord,
    WriteResult,
)
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type, ValidatedValue
from sluiceway.config.validators import Check, EnumText
from sluiceway.connectors.errors import UnreachableError
from sluiceway.connectors.hbase.client import Delete, Family, Gateways, HBaseClient, MissingTableError, Put, RefusedError
from sluiceway.connectors.hbase.connection import (
    CONNECTION_KEYS,
    TABLE,
    HBaseConnector,
    check_table,
    gateways_of,
)
from sluiceway.connectors.hbase.values import ENCODING, Encoding, binary_text, encoding_key, simple_bytes
from sluiceway.connectors.keys import flag, text, unreachable_key, unreachable_seconds, whole
from sluiceway.connectors.simple_values import record_name
from sluiceway.data import Schema, Struct
from sluiceway.discovery import converter_class
from sluiceway.errors import ConfigError, ConnectError, DataError

log = logging.getLogger(__name__)

FAMILY, QUALIFIER, AUTO_CREATE = "hbase.family", "hbase.qualifier", "hbase.auto.create"
_FAMILY = "cf"
KEY_FIELDS, SEPARATOR = "hbase.rowkey.fields", "hbase.rowkey.separator"
TIMESTAMP, NULLS, TOMBSTONES = "hbase.timestamp", "hbase.null.fields", "behavior.on.null.values"
BATCH, BYTES = "batch.size", "batch.bytes"
TOPIC_PLACEHOLDER = "${topic}"
_WRITES = "Writes"
_LONGEST_KEY = 2**15 - 1
_REMEMBERED = 10_000  # rows of which the last deletion is known
_SERVER_MS = 2
_FRAME_BYTES = 1_500_000  # below the servers' default limit of a frame
_LATEST = 2**63 - 1  # stands for the server's time


class Times(enum.Enum):
    """The sources of the timestamps of cells."""

    RECORD = "record"
    OFFSET = "offset"
    SERVER = "server"


def _check_table(name: str, value: ConfigValue) -> None:
    check_table(name, str(value).replace(TOPIC_PLACEHOLDER, "topic"))


def _check_family(name: str, value: ConfigValue) -> None:
    text_ = str(value)
    if not text_ or ":" in text_ or text_.startswith(".") or not text_.isprintable():
        raise ConfigError(name, value, "is no name of a column family, such as cf")


CONFIG = ConfigDef(
    [
        *CONNECTION_KEYS,
        text(
            name=TABLE,
            default=TOPIC_PLACEHOLDER,
            validator=Check(_check_table, "the name of a table"),
            importance=Importance.HIGH,
            group=_WRITES,
            doc=f"The table, such as shop:orders with a namespace. {TOPIC_PLACEHOLDER} is the topic.",
        ),
        flag(
            name=AUTO_CREATE,
            default=False,
            group=_WRITES,
            doc=f"Whether tables that are missing are created, with the column family of {FAMILY}.",
        ),
        text(
            name=FAMILY,
            default=_FAMILY,
            validator=Check(_check_family, "the name of a column family"),
            importance=Importance.HIGH,
            group=_WRITES,
            doc="The column family of fields. A field whose name is family:qualifier goes to that column.",
        ),
        text(
            name=QUALIFIER,
            default="value",
            group=_WRITES,
            doc="The qualifier of values without fields, such as a string.",
        ),
        ConfigKey(
            name=KEY_FIELDS,
            type=Type.LIST,
            default=[],
            importance=Importance.HIGH,
            group=_WRITES,
            doc="The fields that make the row key, of the record's key or else of its value; by default the record's key, or "
            "all of its fields.",
        ),
        text(name=SEPARATOR, default=":", group=_WRITES, doc="What stands between the fields of a row key."),
        encoding_key(_WRITES),
        text(
            name=TIMESTAMP,
            default=Times.RECORD.value,
            validator=EnumText(*(each.value for each in Times)),
            group=_WRITES,
            doc="The timestamp of cells. record: the record's; an older record that comes later does not replace a newer one, "
            "and records that come again after a crash change nothing. offset: the record's offset plus 1, for tables that "
            "nothing else writes to: of a key, the last record in the topic wins. server: the time of the write.",
        ),
        text(
            name=NULLS,
            default="delete",
            validator=EnumText("delete", "ignore"),
            group=_WRITES,
            doc="What a field without a value does to its column. delete: it is deleted. ignore: it stays as it is.",
        ),
        text(
            name=TOMBSTONES,
            default="delete",
            validator=EnumText("delete", "ignore", "fail"),
            group=_WRITES,
            doc="What a record without a value does. delete: its row is deleted. ignore: nothing. fail: it is a bad record.",
        ),
        whole(BATCH, 1_000, 1, _WRITES, "The most rows of a request."),
        whole(BYTES, 2 * 2**20, 1, _WRITES, "The most bytes of a request; a larger row is sent alone."),
        unreachable_key(_WRITES, "servers"),
    ]
)


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The tables, and the form of rows there."""

    gateways: Gateways
    table: str
    auto_create: bool
    family: str
    qualifier: str
    key_fields: tuple[str, ...]
    separator: str
    encoding: Encoding
    times: Times
    delete_nulls: bool
    tombstones: str
    limits: BatchLimits


def sink_options(config: Mapping[str, str]) -> SinkOptions:
    """Return the options of a config. Raises ConfigError."""
    values = CONFIG.parse(config)
    fields, gateways = values[KEY_FIELDS], gateways_of(values)
    most = int(str(values[BYTES]))
    return SinkOptions(
        gateways=gateways,
        table=str(values[TABLE]),
        auto_create=bool(values[AUTO_CREATE]),
        family=str(values[FAMILY]),
        qualifier=str(values[QUALIFIER]),
        key_fields=tuple(map(str, fields)) if isinstance(fields, list) else (),
        separator=str(values[SEPARATOR]),
        encoding=Encoding(str(values[ENCODING]).lower()),
        times=Times(str(values[TIMESTAMP]).lower()),
        delete_nulls=str(values[NULLS]).lower() == "delete",
        tombstones=str(values[TOMBSTONES]).lower(),
        limits=BatchLimits(
            int(str(values[BATCH])),
            min(most, _FRAME_BYTES) if gateways.framed else most,
            unreachable=unreachable_seconds(values),
        ),
    )


class Write(NamedTuple):
    """The changes of a record. A row is deleted if there are no others."""

    table: str
    key: bytes
    cells: tuple[tuple[bytes, bytes, bytes], ...]
    nulls: tuple[tuple[bytes, bytes], ...]
    timestamp: int | None
    offset: int

    @property
    def deletes_row(self) -> bool:
        return not self.cells and not self.nulls


class _Deletion(NamedTuple):
    """The last deletion in a row: the timestamp that was asked for, the one that was used, and the record's offset."""

    asked: int
    used: int
    offset: int


class HBaseSinkTask(BatchSinkTask[Write]):
    """Writes records in batches: puts of many rows in one call, then deletions of many rows in one call."""

    _client: HBaseClient | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = sink_options(config)
        self.limits = options.limits
        self._families: dict[str, Mapping[bytes, Family]] = {}
        self._deleted: OrderedDict[tuple[str, bytes], _Deletion] = OrderedDict()
        self._moved = 0
        self._json: Converter = converter_class("JsonConverter")()
        self._json.configure({"schemas.enable": "false", "decimal.format": "NUMERIC"})
        self._client = HBaseClient(options.gateways)

    def stop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def prepare(self, record: SinkRecord) -> Write | None:
        options = self._options
        if record.value is None:
            if options.tombstones == "ignore":
                return None
            if options.tombstones == "fail":
                raise DataError(f"{record_name(record)} has no value, and {TOMBSTONES} is fail.")
        key = self._row_key(record)
        if not 0 < len(key) <= _LONGEST_KEY:
            raise DataError(f"The row key of {record_name(record)} has {len(key)} bytes. HBase takes 1 to {_LONGEST_KEY}.")
        cells: list[tuple[bytes, bytes, bytes]] = []
        nulls: list[tuple[bytes, bytes]] = []
        seen: set[tuple[bytes, bytes]] = set()
        for name, value, schema in _fields(record, options.qualifier):
            column = self._column(name, record)
            if column in seen:
                raise DataError(f"{record_name(record)} has two fields for one column: {_shown(name)}.")
            seen.add(column)
            if value is not None:
                cells.append((*column, self._bytes(value, schema, record, f"field {_shown(name)}")))
            elif options.delete_nulls:
                nulls.append(column)
        if record.value is not None and not cells and not nulls:
            raise DataError(
                f"{record_name(record)} has no fields, and HBase has no rows without columns. errors.tolerance=all leaves it out."
            )
        table = options.table.replace(TOPIC_PLACEHOLDER, record.topic)
        return Write(table, key, tuple(cells), tuple(nulls), self._timestamp(record), record.original_kafka_offset)

    def order_key(self, item: Write) -> Hashable:
        return item.table, item.key

    def size_of(self, item: Write) -> int:
        return len(item.key) + sum(len(value) + len(qualifier) + 40 for _family, qualifier, value in item.cells)

    def write(self, items: Sequence[Write]) -> Sequence[WriteResult]:
        results: list[WriteResult] = [DONE] * len(items)
        try:
            for table in dict.fromkeys(each.table for each in items):
                self._open_table(table)
            self._write_all(items, results)
        except UnreachableError:
            self._families.clear()  # a table may have been disabled, or deleted
            raise
        return results

    def _write_all(self, items: Sequence[Write], results: list[WriteResult]) -> None:
        due = []
        for number, item in enumerate(items):
            if (reason := self._refusal(item)) is None:
                due.append(number)
            else:
                results[number] = WriteResult(Outcome.REFUSED, reason)
        for index, numbers in enumerate(_rounds(due, items)):
            if index and self._options.times is Times.SERVER:
                time.sleep(_SERVER_MS / 1000)  # a put in the millisecond of a deletion would be hidden
            for number, reason in self._write_round([(number, self._visible(items[number])) for number in numbers]):
                results[number] = WriteResult(Outcome.REFUSED, reason)

    def metrics(self) -> Mapping[str, float]:
        """Return how many records were written 1 ms later, because their row was deleted in their millisecond."""
        return {**super().metrics(), "puts-after-deletions": self._moved}

    def _row_key(self, record: SinkRecord) -> bytes:
        options, key = self._options, record.key
        names: Sequence[str] = options.key_fields
        if not names:
            if key is None:
                raise DataError(f"{record_name(record)} has no key to make a row key of. Set {KEY_FIELDS}.")
            if not isinstance(key, Mapping):
                return self._bytes(key, record.key_schema, record, "key")
            names = [field.name for field in key.schema.fields] if isinstance(key, Struct) else list(map(str, key))
        parts = []
        for name in names:
            for holder in (key, record.value):
                if isinstance(holder, Mapping) and name in holder and holder[name] is not None:
                    parts.append(self._bytes(holder[name], _schema_of(holder, name), record, f"field {name}"))
                    break
            else:
                raise DataError(
                    f"{record_name(record)} has no field {name} with a value, of which {KEY_FIELDS} makes the row key."
                )
        return options.separator.encode().join(parts)

    def _column(self, name: Any, record: SinkRecord) -> tuple[bytes, bytes]:
        """Return the family and the qualifier of a field. The keys of a map may be other than texts."""
        try:
            found = simple_bytes(name, None, Encoding.TEXT)
        except UnicodeError:
            found = None
        if found is None:
            raise DataError(f"{record_name(record)} has a field without a name that HBase takes: {_shown(name)}.")
        family, colon, qualifier = found.partition(b":")
        return (family, qualifier) if colon else (self._options.family.encode(), found)

    def _bytes(self, value: Any, schema: Schema | None, record: SinkRecord, what: str) -> bytes:
        """Return the bytes of a cell: of a list, a struct or a date the JSON of it."""
        try:
            found = simple_bytes(value, schema, self._options.encoding)
            if found is None:
                found = self._json.from_connect_data(record.topic, schema, value) or b""
        except (ConnectError, UnicodeError, ValueError, ArithmeticError) as error:
            reason = "a text without a UTF-8 form" if isinstance(error, UnicodeError) else str(error)
            raise DataError(f"The {what} of {record_name(record)} cannot be written to HBase: {reason}") from None
        return found

    def _timestamp(self, record: SinkRecord) -> int | None:
        times = self._options.times
        if times is Times.OFFSET:
            return record.original_kafka_offset + 1
        if times is Times.SERVER or record.timestamp is None:
            return None
        if not 0 <= record.timestamp < _LATEST:
            raise DataError(f"{record_name(record)} has a time before 1970, or none that HBase takes. Set another {TIMESTAMP}.")
        return record.timestamp

    def _open_table(self, table: str) -> None:
        """Look at a table once. Raises MissingTableError, and ConfigError for a family that drops cells by their timestamps."""
        if table in self._families:
            return
        client, options = self._opened(), self._options
        check_table(TABLE, table)
        try:
            families = client.families(table)
            client.check_enabled(table)
        except MissingTableError as error:
            if not options.auto_create:
                raise MissingTableError(f"{error} Create it, or set {AUTO_CREATE}=true.") from None
            client.create_table(table, [options.family])
            log.info("Created table %s with column family %s", table, options.family)
            families = client.families(table)
        if problem := _ttl_problem(table, families, options.times):
            raise ConfigError(TIMESTAMP, options.times.value, problem)
        self._families[table] = families

    def _refusal(self, item: Write) -> str | None:
        families = self._families[item.table]
        missing = {family for family, *_rest in (*item.cells, *item.nulls) if family not in families}
        if not missing:
            return None
        names = ", ".join(sorted(each.decode() for each in missing))
        self._families.pop(item.table)  # somebody may add it
        self._families[item.table] = self._opened().families(item.table)
        if missing <= set(self._families[item.table]):
            return None
        known = ", ".join(sorted(each.decode() for each in self._families[item.table]))
        return f"table {item.table} has no column family {names}, only {known}. {FAMILY} is that of fields that name none"

    def _visible(self, item: Write) -> Write:
        """Return a write that an earlier deletion of its row in the same millisecond does not hide: it gets 1 ms more than that.

        In HBase a deletion hides all cells up to its timestamp, also those that are put later (section "Delete" of its reference
        guide), unless the family has NEW_VERSION_BEHAVIOR.
        """
        if self._options.times is not Times.RECORD or item.timestamp is None:
            return item
        row, asked, used = (item.table, item.key), item.timestamp, item.timestamp
        last = self._deleted.get(row)
        if last is not None and last.offset == item.offset:  # it is written again
            return item._replace(timestamp=last.used)
        if last is not None and last.offset < item.offset and last.asked <= asked <= last.used:
            used = last.used + 1
            self._moved += 1
        if (item.nulls or item.deletes_row) and (last is None or (last.offset < item.offset and last.used <= used)):
            self._deleted[row] = _Deletion(asked, used, item.offset)
            self._deleted.move_to_end(row)
            if len(self._deleted) > _REMEMBERED:
                self._deleted.popitem(last=False)
        return item if used == asked else item._replace(timestamp=used)

    def _write_round(self, due: Sequence[tuple[int, Write]]) -> Iterator[tuple[int, str]]:
        """Write items of different rows; yield the numbers of those that HBase refuses, and why."""
        for table in dict.fromkeys(item.table for _number, item in due):
            of_table = [(number, item) for number, item in due if item.table == table]
            try:
                self._write_rows(table, [item for _number, item in of_table])
            except RefusedError as error:
                if len(of_table) == 1:
                    yield of_table[0][0], str(error)
                    continue
                for each in of_table:  # those that were written are written again as they were
                    yield from self._write_round([each])

    def _write_rows(self, table: str, items: Sequence[Write]) -> None:
        client = self._opened()
        if puts := [Put(each.key, each.cells, each.timestamp) for each in items if each.cells]:
            client.put(table, puts)
        deletes = [Delete(each.key, each.nulls, each.timestamp) for each in items if each.nulls or each.deletes_row]
        if deletes:
            client.delete(table, deletes)

    def _opened(self) -> HBaseClient:
        if self._client is None:
            raise ConnectError("The task has not been started. Call start() first.")
        return self._client


def _rounds(numbers: Sequence[int], items: Sequence[Write]) -> list[list[int]]:
    """Return the numbers of items in rounds in which each row is once: within a call, HBase keeps no order of a row's cells."""
    seen: dict[Hashable, int] = {}
    rounds: list[list[int]] = []
    for number in numbers:
        row = items[number].table, items[number].key
        index = seen[row] = seen.get(row, -1) + 1
        if index == len(rounds):
            rounds.append([])
        rounds[index].append(number)
    return rounds


def _fields(record: SinkRecord, qualifier: str) -> Iterator[tuple[Any, Any, Schema | None]]:
    """Yield the names, values and schemas of a record's fields; of a value without fields itself."""
    value = record.value
    if value is None:
        return
    if not isinstance(value, Mapping):
        yield qualifier, value, record.value_schema
        return
    names: Any = [field.name for field in value.schema.fields] if isinstance(value, Struct) else value
    for name in names:
        yield name, value[name], _schema_of(value, name) if isinstance(value, Struct) else _map_values(record)


def _map_values(record: SinkRecord) -> Schema | None:
    return None if record.value_schema is None else record.value_schema.value_schema


def _schema_of(holder: Mapping[Any, Any], name: str) -> Schema | None:
    field = holder.schema.field(name) if isinstance(holder, Struct) else None
    return None if field is None else field.schema


def _ttl_problem(table: str, families: Mapping[bytes, Family], times: Times) -> str | None:
    short = [each.name.decode() for each in families.values() if each.ttl is not None]
    if times is not Times.OFFSET or not short:
        return None
    return (
        f"must be record or server for table {table}: column family {', '.join(sorted(short))} has a TTL, by which cells with "
        "the timestamps of offsets are too old at once"
    )


def _shown(name: Any) -> str:
    return repr(name)[:100]


class HBaseSinkConnector(HBaseConnector, SinkConnector):
    """Writes records to rows of HBase by its Thrift 2 server: a row for each key, a column for each field.

    Cells have the timestamps of their records or offsets, so that records that come again after a crash change nothing.
    """

    task_class = HBaseSinkTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def try_table(cls, client: HBaseClient, found: Mapping[str, ValidatedValue]) -> None:
        table = str(found[TABLE].value)
        if TOPIC_PLACEHOLDER in table:
            client.table_exists("sluiceway")  # whether this is a Thrift 2 server
            return
        try:
            families = client.families(table)
        except MissingTableError:
            if not found[AUTO_CREATE].value:
                found[TABLE].errors.append(
                    str(ConfigError(TABLE, table, f"is no table of this HBase. Create it, or set {AUTO_CREATE}=true"))
                )
            return
        family = str(found[FAMILY].value)
        # Records may name the families of all their fields, so that the default is never needed.
        if family != _FAMILY and family.encode() not in families:
            known = ", ".join(sorted(each.decode() for each in families))
            found[FAMILY].errors.append(
                str(ConfigError(FAMILY, family, f"is no column family of table {table}, which has {known}"))
            )
        if problem := _ttl_problem(table, families, Times(str(found[TIMESTAMP].value).lower())):
            found[TIMESTAMP].errors.append(str(ConfigError(TIMESTAMP, found[TIMESTAMP].value, problem)))

    @classmethod
    def interval_repeat(cls, config: Mapping[str, str]) -> IntervalRepeat:
        adds = config.get(TIMESTAMP, "").strip().lower() == Times.SERVER.value
        return IntervalRepeat.ADDS if adds else IntervalRepeat.MERGES

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks

    @classmethod
    def preview(cls, config: Mapping[str, str], records: Sequence[SinkRecord]) -> Sequence[str] | None:
        """Return the rows, columns and values that would be written."""
        task = HBaseSinkTask()
        task.start(config)
        found = []
        for record in records:
            item = task.prepare(record)
            if item is None:
                continue
            row = f"{item.table} {binary_text(item.key)}"
            found += [f"delete {row}"] if item.deletes_row else []
            found += [f"put {row} {each[0].decode()}:{binary_text(each[1])} = {binary_text(each[2])}" for each in item.cells]
            found += [f"delete {row} {family.decode()}:{binary_text(qualifier)}" for family, qualifier in item.nulls]
        return found
