"""The fields of dates, times, timestamps and intervals. No I/O."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sluiceway.connectors.cdc import json_forms
from sluiceway.connectors.cdc.columns import FieldType
from sluiceway.connectors.cdc.postgres.text import (
    INFINITY,
    MINUS_INFINITY,
    parse_date,
    parse_interval,
    parse_snapshot_date,
    parse_time,
    parse_timestamp,
    zoned_time,
)
from sluiceway.connectors.cdc.postgres.type_info import TypeInfo, TypeSettings
from sluiceway.connectors.cdc.temporal import (
    CONNECT,
    INTERVAL,
    ISO,
    LONG_MAX,
    LONG_MIN,
    MICRO_DURATION,
    ZONED_TIME,
    ZONED_TIMESTAMP,
    date_form,
    fixed_fraction,
    iso_timestamp,
    time_form,
    timestamp_form,
)
from sluiceway.data import Instant

_SECONDS_PER_MONTH_DAYS = 365.25 / 12
_INFINITE_MILLIS = {INFINITY: 9_223_372_036_825_200_000, MINUS_INFINITY: -9_223_372_036_832_400_000}
_INFINITE_MICROS = {INFINITY: LONG_MAX, MINUS_INFINITY: LONG_MIN}


def date_field(_info: TypeInfo, settings: TypeSettings) -> FieldType:
    form = date_form(settings.time_mode)
    zero = form.convert(0)
    as_number = settings.time_mode not in (CONNECT, ISO)
    json_form = json_forms.Remembered(parse_date) if as_number else None
    field = FieldType(form.schema, lambda text: form.convert(parse_date(text)), zero, json=json_form)
    if settings.correct:
        return field
    json_form = json_forms.Remembered(parse_snapshot_date) if as_number else None
    return replace(field, snapshot=lambda text: form.convert(parse_snapshot_date(text)), snapshot_json=json_form)


def time_field(info: TypeInfo, settings: TypeSettings) -> FieldType:
    form = time_form(settings.time_mode, info.second_digits)
    json_form = json_forms.Calculated(json_forms.clock_micros) if form.schema.name == "io.debezium.time.MicroTime" else None
    return FieldType(form.schema, lambda text: form.convert(parse_time(text)), form.convert(0), json=json_form)


def timetz_field(_info: TypeInfo, _settings: TypeSettings) -> FieldType:
    return FieldType(ZONED_TIME, zoned_time, "00:00:00Z")


def timestamp_field(info: TypeInfo, settings: TypeSettings) -> FieldType:
    form = timestamp_form(settings.time_mode, info.second_digits)
    infinite: dict[str, Any] = dict(_INFINITE_MICROS)
    if settings.time_mode == CONNECT:
        infinite = {text: Instant(millis) for text, millis in _INFINITE_MILLIS.items()}
    elif form.schema.name == "io.debezium.time.Timestamp":
        infinite = dict(_INFINITE_MILLIS)
    elif settings.time_mode == ISO:
        infinite = {INFINITY: INFINITY, MINUS_INFINITY: MINUS_INFINITY}

    def convert(text: str) -> Any:
        return infinite[text] if text in infinite else form.convert(*parse_timestamp(text))

    numbers = {
        "io.debezium.time.MicroTimestamp": json_forms.timestamp_micros,
        "io.debezium.time.Timestamp": json_forms.timestamp_millis,
    }
    calculate = numbers.get(form.schema.name or "")
    json_form = None if calculate is None else json_forms.Calculated(calculate)
    return FieldType(form.schema, convert, form.convert(0, 0), json=json_form)


def timestamptz_field(info: TypeInfo, _settings: TypeSettings) -> FieldType:
    digits = info.second_digits

    def convert(text: str) -> str:
        if text in (INFINITY, MINUS_INFINITY):
            return text
        seconds, micros = parse_timestamp(text)
        return f"{iso_timestamp(seconds, fixed_fraction(micros, digits))}Z"

    return FieldType(ZONED_TIMESTAMP, convert, "1970-01-01T00:00:00Z", json=json_forms.ZonedTimestamp(digits))


def interval_field(_info: TypeInfo, settings: TypeSettings) -> FieldType:
    if settings.interval_mode == "string":
        return FieldType(INTERVAL, _interval_text, "P0Y0M0DT0H0M0S")
    return FieldType(MICRO_DURATION, _interval_micros, 0)


def _interval_micros(text: str) -> int:
    """Return an interval in microseconds, computed in floating point and saturated as in Java."""
    parts = parse_interval(text)
    days = (parts.years * 12 + parts.months) * _SECONDS_PER_MONTH_DAYS + parts.days
    seconds, micros = divmod(abs(parts.micros), 1_000_000)
    sign = -1 if parts.micros < 0 else 1
    total = (days * 86_400 + sign * seconds) * 1e6 + sign * micros
    return min(max(int(total), LONG_MIN), LONG_MAX)


def _interval_text(text: str) -> str:
    parts = parse_interval(text)
    hours, minutes, seconds = parts.clock
    return f"P{parts.years}Y{parts.months}M{parts.days}DT{hours}H{minutes}M{seconds}S"
