"""ExtractChangedRecordState: lists the changed and the unchanged columns of an update in headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from sluiceway.api import SinkRecord, SourceRecord, Transform
from sluiceway.api.transform import R
from sluiceway.config.definition import ConfigDef, Type, Width
from sluiceway.data import OPTIONAL_STRING_SCHEMA, Header, Schema, Struct
from sluiceway.java.blanks import is_blank
from sluiceway.transforms.debezium.envelope import AFTER, BEFORE, is_envelope
from sluiceway.transforms.debezium.options import Options, config_def, option
from sluiceway.transforms.util.requirements import require_struct

_OPTIONS = (
    option(
        "header.changed.name",
        Type.STRING,
        "Header change name.",
        "Header for the names of the columns that the update changed; none without a name.",
        width=Width.LONG,
    ),
    option(
        "header.unchanged.name",
        Type.STRING,
        "Header unchanged name.",
        "Header for the names of the columns that the update left as they were; none without a name.",
        width=Width.LONG,
    ),
)
_CONFIG = config_def(_OPTIONS)


class ExtractChangedRecordState(Transform):
    """Adds headers with the names of the columns that an update changed, and of those that it did not."""

    java_class = "io.debezium.transforms.ExtractChangedRecordState"

    _deleted: tuple[str, Any, list[Header]] | None = None
    """The topic, the key, and the new headers of a delete that was just transformed."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        options = Options(_OPTIONS, config)
        self._headers = [_header(options.text(each.key.name)) for each in _OPTIONS]
        self._deleted = None

    def apply(self, record: R) -> R | Sequence[R] | None:
        shared: list[Header] = self._shared_with(record)
        if shared:
            return record.new_record(headers=(*record.headers, *shared))
        if record.value is None or not is_envelope(record.value_schema):
            return record
        value = require_struct(record.value, record.value_schema, "Record value should be struct.")
        after, before = value[AFTER], value[BEFORE]
        changed: list[str] = []
        unchanged: list[str] = []
        if after is not None and before is not None:
            new = require_struct(after, value.schema, "After value should be struct.")
            old = require_struct(before, value.schema, "Before value should be struct.")
            for name in new:
                (unchanged if _unchanged(old, new, name) else changed).append(name)
            changed += [name for name in old if name not in new]
        lists = zip(self._headers, (changed, unchanged), strict=True)
        added: list[Header] = [header._replace(value=names) for header, names in lists if header is not None]
        if after is None and added:
            self._deleted = record.topic, record.key, added
        return record.new_record(headers=(*record.headers, *added)) if added else record

    def _shared_with(self, record: SourceRecord | SinkRecord) -> list[Header]:
        """Return the headers that a tombstone of a source gets from the delete before it: in Debezium, the two share theirs."""
        if self._deleted is None:
            return []
        topic, key, headers = self._deleted
        self._deleted = None
        is_tombstone = record.value is None and isinstance(record, SourceRecord)
        return headers if is_tombstone and (record.topic, record.key) == (topic, key) else []


def _header(name: str | None) -> Header | None:
    """Return the header without its value, None for none."""
    if name is None or is_blank(name):
        return None
    return Header(name, None, Schema.array(OPTIONAL_STRING_SCHEMA, optional=True, name=name))


def _unchanged(old: Struct, new: Struct, name: str) -> bool:
    return name in old and _equal(old.get_without_default(name), new.get_without_default(name))


def _equal(one: Any, other: Any) -> bool:
    """Compare as Java does: 1.0 and 1.00 are different decimals, NaN equals itself, 0.0 and -0.0 differ."""
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, Struct) and isinstance(other, Struct):
        return one.schema == other.schema and all(map(_equal, one.values_, other.values_))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, float) and isinstance(other, float):
        return repr(one) == repr(other)
    if isinstance(one, Decimal) and isinstance(other, Decimal):
        return one.as_tuple() == other.as_tuple()
    return type(one) is type(other) and bool(one == other)
