"""TimezoneConverter: converts the timestamps of change events to a time zone."""

from __future__ import annotations

import enum
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sluiceway.api import Transform
from sluiceway.api.transform import R
from sluiceway.config.definition import ConfigDef, Importance, Type
from sluiceway.data import Field, Struct, millis_of
from sluiceway.data import Type as SchemaType
from sluiceway.data.instant import MOMENT_TYPES, timestamp_of
from sluiceway.errors import DataError
from sluiceway.java.numbers import wrap
from sluiceway.java.regex import compile_java
from sluiceway.transforms.debezium.envelope import AFTER, BEFORE, SOURCE, cast_to_struct, is_envelope, typed
from sluiceway.transforms.debezium.errors import DebeziumError
from sluiceway.transforms.debezium.options import Options, config_def, option, regular_expressions, required
from sluiceway.transforms.debezium.time_zones import OffsetTime, OffsetTimestamp, Zone, is_zone
from sluiceway.transforms.util.mappings import java_split
from sluiceway.transforms.util.requirements import java_class

log = logging.getLogger(__name__)

_TOPIC = "topic"
_RULES = (
    "Rules separated by commas: source:table, source:table:field, topic:name, topic:name:field, or name:field for a table or "
    "topic. A field may start with before., after. or source."
)
_OPTIONS = (
    option(
        "converted.timezone",
        Type.STRING,
        "Converted Timezone",
        "Time zone to convert to: a region such as America/Los_Angeles or an offset such as +08:00.",
        importance=Importance.HIGH,
        checks=(required,),
    ),
    option(
        "include.list",
        Type.LIST,
        "Include List",
        f"What to convert; everything without a list. {_RULES}",
        importance=Importance.HIGH,
        checks=(regular_expressions,),
    ),
    option(
        "exclude.list",
        Type.LIST,
        "Exclude List",
        f"What not to convert; not together with include.list. {_RULES}",
        importance=Importance.HIGH,
        checks=(regular_expressions,),
    ),
)
_CONFIG = config_def(_OPTIONS)
_LIST = r'^\[(source|topic|[".\w\s_]+):([".\w\s_]+(?::[".\w\s_]+)?(?:,|]$))+$'
_LIST_FORMAT = (
    'Please specify a list of rules in the format of "source:<tablename>:<fieldnames>", "topic:<topicname>:<fieldnames>", '
    '"<matchname>:<fieldnames>"'
)
_TIMES = "io.debezium.time."
_UNSUPPORTED = {
    *(_TIMES + name for name in ("Date", "MicroTime", "NanoTime", "Time")),
    *("org.apache.kafka.connect.data." + name for name in ("Date", "Time")),
}
_UNITS = {"ts_ms": 1000, "ts_us": 10**6, "ts_ns": 10**9}
"""Units per second of the timestamps in the source block."""

_LONG_MAX, _LONG_MIN = (1 << 63) - 1, -(1 << 63)


class _Scope(enum.Enum):
    """The fields of a struct to convert."""

    ALL = "all"
    LISTED = "listed"
    OTHERS = "others"


class _Rule(NamedTuple):
    """The subject of a rule of a list. ``prefix`` is ``source``, ``topic`` or None."""

    prefix: str | None
    name: str | None
    field: str | None

    @classmethod
    def parse(cls, text: str) -> _Rule:
        parts = java_split(text)
        if len(parts) == 1:
            return cls(None, parts[0], None)
        if len(parts) not in (2, 3):
            return cls(None, None, None)
        if parts[0].lower() in (SOURCE, _TOPIC):
            return cls(parts[0], parts[1], parts[2] if len(parts) == 3 else None)
        return cls(None, parts[0], parts[1])


class TimezoneConverter(Transform):
    """Converts timestamps in the rows of change events to a time zone."""

    java_class = "io.debezium.transforms.TimezoneConverter"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        options = Options(_OPTIONS, config)
        options.require_valid()
        self._name = options.text("converted.timezone") or ""
        self._includes, self._excludes = options.items("include.list"), options.items("exclude.list")
        self._check()
        self._zone: Zone | None = None
        self._topics: dict[str | None, set[str]] = {}
        self._tables: dict[str | None, set[str]] = {}
        self._others: dict[str | None, set[str]] = {}
        self._collect(self._excludes or self._includes)

    def _check(self) -> None:
        kind, listed = ("include", self._includes) if self._includes else ("exclude", self._excludes)
        if listed and not compile_java(_LIST).matches(f"[{', '.join(listed)}]"):
            raise DebeziumError(f"Invalid {kind} list format. {_LIST_FORMAT}")
        if not is_zone(self._name):
            raise DebeziumError(
                "Invalid timezone format. Please specify either a geographic timezone (e.g. America/Los_Angeles) or a UTC "
                "offset in the format of +/-hh:mm, (e.g. +08:00)."
            )
        if self._includes and self._excludes:
            raise DebeziumError("Both include and exclude lists are specified. Please specify only one.")

    def _collect(self, listed: Iterable[str]) -> None:
        """Sort the rules. As in Debezium, a rule without a prefix has that of the rule before it."""
        prefix: str | None = None
        for text in listed:
            rule = _Rule.parse(text)
            prefix = rule.prefix or prefix
            rules = self._topics if prefix == _TOPIC else self._tables if prefix == SOURCE else self._others
            fields = rules.setdefault(rule.name, set())
            if rule.field is not None:
                fields.add(rule.field)

    def apply(self, record: R) -> R | Sequence[R] | None:
        if record.value is None or not is_envelope(record.value_schema):
            return record
        value = cast_to_struct(record.value)
        scope, fields = self._scope(_table_of(value), record.topic)
        return record if scope is None else record.new_record(value=self._converted(value, scope, fields))

    def _scope(self, table: str | None, topic: str) -> tuple[_Scope | None, set[str]]:
        """Return which fields to convert, None for none, and the fields that the matching rule lists."""
        candidates = ((self._topics, topic), (self._tables, table), (self._others, topic), (self._others, table))
        fields = next((rules[name] for rules, name in candidates if name in rules), None)
        if self._includes:
            if fields is None:
                return None, set()
            return (_Scope.LISTED if fields else _Scope.ALL), fields
        if fields is None:
            return _Scope.ALL, set()
        return (_Scope.OTHERS if fields else None), fields

    def _converted(self, value: Struct, scope: _Scope, fields: set[str]) -> Struct:
        by_block: dict[str, set[str]] = {BEFORE: set(), AFTER: set(), SOURCE: set()}
        for field in fields:
            block, dot, name = field.partition(".")
            if dot and block in by_block:
                by_block[block].add(name)
            else:
                by_block[BEFORE].add(field)
                by_block[AFTER].add(field)
        changed = Struct.of(value.schema, value.values_.copy())
        for block, listed in by_block.items():
            struct, place = _block(value, block), value.schema.field(block)
            if struct is not None and place is not None and (listed or block != SOURCE):
                changed.values_[place.index] = self._block_converted(block, struct, scope, listed)
        return changed

    def _block_converted(self, block: str, struct: Struct, scope: _Scope, listed: set[str]) -> Struct:
        changed = Struct.of(struct.schema, struct.values_.copy())
        for field in struct.schema.fields:
            epoch = block == SOURCE and field.name in _UNITS
            if (field.schema.name is None and not epoch) or not _in_scope(field.name, scope, listed):
                continue
            if field.schema.name in _UNSUPPORTED:
                log.warning("Skipping conversion for unsupported logical type: %s for field: %s", field.schema.name, field.name)
                continue
            value = struct[field.name]
            if value is not None and (epoch or field.schema.name in _CONVERSIONS):
                changed[field.name] = self._value(field, value)
        return changed

    def _value(self, field: Field, value: Any) -> Any:
        if self._zone is None:
            self._zone = Zone(self._name)
        name = field.schema.name
        if name is None:
            return _epoch_converted(self._zone, field, value)
        convert = _CONVERSIONS.get(name)
        return value if convert is None else convert(self._zone, value)


def _in_scope(name: str, scope: _Scope, listed: set[str]) -> bool:
    return scope is _Scope.ALL or (name in listed) == (scope is _Scope.LISTED)


def _table_of(value: Struct) -> str | None:
    try:
        source = typed(value, SOURCE, SchemaType.STRUCT)
        if source is None:
            raise TypeError("The change event has no source.")
        table: str | None = typed(source, "table", SchemaType.STRING)
    except DataError:
        return None
    return table


def _block(value: Struct, name: str) -> Struct | None:
    try:
        block: Struct | None = typed(value, name, SchemaType.STRUCT)
    except DataError:
        return None
    return block


def _epoch_converted(zone: Zone, field: Field, value: Any) -> int:
    if field.schema.type is not SchemaType.INT64:
        raise DebeziumError("Epoch field value should be a java.lang.Long")
    unit = _UNITS[field.name]
    converted: int = value + zone.offset_at_instant(value // unit) * unit
    if unit == 1000 and not _LONG_MIN <= converted <= _LONG_MAX:
        raise OverflowError("long overflow")
    return min(max(converted, _LONG_MIN), _LONG_MAX)


def _zoned_timestamp(zone: Zone, value: Any) -> str:
    parsed = OffsetTimestamp.parse(value)
    return parsed.text_at(zone.offset_at_local(parsed.local_seconds))


def _zoned_time(zone: Zone, value: Any) -> str:
    return OffsetTime.parse(value).text_at(zone.offset_at_instant(int(time.time())))


def _local(unit: int) -> Callable[[Zone, Any], Any]:
    """Return the conversion of local times, in units per second, to points in time."""

    def convert(zone: Zone, value: Any) -> int:
        if not isinstance(value, int):
            raise TypeError(f"class {java_class(value)} cannot be cast to class java.lang.Long")
        converted: int = value - zone.offset_at_local(value // unit) * unit
        if unit == 1000 and not _LONG_MIN <= converted <= _LONG_MAX:
            raise OverflowError("long overflow")
        return wrap(converted, 64)

    return convert


def _connect_timestamp(zone: Zone, value: Any) -> Any:
    if not isinstance(value, MOMENT_TYPES):
        raise TypeError(f"class {java_class(value)} cannot be cast to class java.util.Date")
    return timestamp_of(_local(1000)(zone, millis_of(value)))


_CONVERSIONS: Mapping[str, Callable[[Zone, Any], Any]] = {
    f"{_TIMES}Timestamp": _local(1000),
    f"{_TIMES}MicroTimestamp": _local(10**6),
    f"{_TIMES}NanoTimestamp": _local(10**9),
    f"{_TIMES}ZonedTimestamp": _zoned_timestamp,
    f"{_TIMES}ZonedTime": _zoned_time,
    "org.apache.kafka.connect.data.Timestamp": _connect_timestamp,
}
