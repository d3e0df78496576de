"""The fields of dates, times and timestamps. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sluiceway.connectors.cdc import json_forms
from sluiceway.connectors.cdc.columns import FieldType
from sluiceway.connectors.cdc.mysql.binlog.temporal import DAY_MICROS, Calendar, Days, Invalid
from sluiceway.connectors.cdc.mysql.ddl.model import ColumnDefinition, JdbcType
from sluiceway.connectors.cdc.mysql.temporal_text import parse_date, parse_datetime, parse_time, parse_timestamp
from sluiceway.connectors.cdc.temporal import (
    CONNECT,
    ISO,
    ZONED_TIMESTAMP,
    date_form,
    fixed_fraction,
    iso_fraction,
    iso_timestamp,
    time_form,
    timestamp_form,
)

EPOCH = "1970-01-01T00:00:00Z"


def temporal_field(column: ColumnDefinition, mode: str, calendar: Calendar) -> FieldType | None:
    """Return the field type of a DATE, TIME, DATETIME or TIMESTAMP column; None for another column."""
    if column.jdbc_type == JdbcType.DATE:
        return _date(column, mode, calendar)
    if column.jdbc_type == JdbcType.TIME:
        return _time(column, mode)
    if column.jdbc_type == JdbcType.TIMESTAMP:
        return _datetime(column, mode, calendar)
    if column.jdbc_type == JdbcType.TIMESTAMP_WITH_TIMEZONE:
        return _timestamp(column)
    return None


def _date(column: ColumnDefinition, mode: str, calendar: Calendar) -> FieldType:
    form = date_form(mode)
    fallback = form.convert(0)
    on_invalid = None if column.optional else fallback

    def convert(days: Days) -> Any:
        return on_invalid if isinstance(days, Invalid) else form.convert(days)

    field = FieldType(form.schema, convert, fallback, on_invalid, lambda text: convert(parse_date(text, calendar)))
    if form.schema.name != "io.debezium.time.Date":
        return field

    def parsed(text: str) -> int:
        return json_forms.exact_int(parse_date(text, calendar))

    return replace(field, json=json_forms.Calculated(json_forms.exact_int), snapshot_json=json_forms.Remembered(parsed))


def _time(column: ColumnDefinition, mode: str) -> FieldType:
    form = time_form(mode, column.length or 0)
    fallback = form.convert(0)
    convert: Callable[[int], Any] = form.convert
    if mode in (ISO, CONNECT):
        # These forms are times of day; Debezium's records have null for other values.
        outside = None if column.optional else fallback

        def convert(micros: int) -> Any:
            return form.convert(micros) if 0 <= micros <= DAY_MICROS else outside

    on_absent = None if column.optional else fallback
    field = FieldType(form.schema, convert, fallback, on_absent, lambda text: convert(parse_time(text)))
    if form.schema.name != "io.debezium.time.MicroTime":
        return field
    return replace(field, json=json_forms.verbatim, snapshot_json=json_forms.Calculated(parse_time))


def _datetime(column: ColumnDefinition, mode: str, calendar: Calendar) -> FieldType:
    form = timestamp_form(mode, column.length or 0, wrap_nanos=True)
    fallback = form.convert(0, 0)
    on_invalid = None if column.optional else fallback

    def convert(micros: int | Invalid) -> Any:
        return on_invalid if isinstance(micros, Invalid) else form.convert(*divmod(micros, 1_000_000))

    field = FieldType(form.schema, convert, fallback, on_invalid, lambda text: convert(parse_datetime(text, calendar)))
    divisor = {"io.debezium.time.MicroTimestamp": 1, "io.debezium.time.Timestamp": 1000}.get(form.schema.name or "")
    if divisor is None:
        return field

    snapshot_form = json_forms.DatetimeText(divisor, lambda text: parse_datetime(text, calendar))
    return replace(field, json=json_forms.Micros(divisor), snapshot_json=snapshot_form)


def _timestamp(column: ColumnDefinition) -> FieldType:
    """TIMESTAMP, as text in UTC. The log's fraction has all declared digits, a query's as few as needed.

    A zero timestamp of the log is the epoch, one of a query null if the column is optional, as in Debezium's records.
    """
    digits = column.length or 0
    on_zero = None if column.optional else EPOCH

    def convert(micros: int) -> str:
        seconds, fraction = divmod(micros, 1_000_000)
        if not micros:
            return EPOCH
        return iso_timestamp(seconds, fixed_fraction(fraction, digits)) + "Z"

    def snapshot(text: str) -> str | None:
        parsed = parse_timestamp(text)
        if isinstance(parsed, Invalid):
            return on_zero
        seconds, fraction = divmod(parsed, 1_000_000)
        return iso_timestamp(seconds, iso_fraction(fraction)) + "Z"

    forms = (json_forms.UtcMicros(digits), json_forms.utc_text)
    return FieldType(ZONED_TIMESTAMP, convert, EPOCH, on_zero, snapshot, *forms)
