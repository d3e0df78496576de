"""Defines the options of ExtractNewRecordState."""

from __future__ import annotations

import enum

from sluiceway.config.definition import ConfigValue, Importance, Type, Width
from sluiceway.config.validators import Check
from sluiceway.errors import ConfigError
from sluiceway.java.blanks import trim
from sluiceway.transforms.debezium.options import Option, not_one_of, one_of, option


class Deletes(enum.Enum):
    """The handling of delete events and of the tombstones that follow them."""

    DROP = "drop"
    TOMBSTONE = "tombstone"
    REWRITE = "rewrite"
    REWRITE_WITH_TOMBSTONE = "rewrite-with-tombstone"
    DELETE_TO_TOMBSTONE = "delete-to-tombstone"


_MODES = tuple(each.value for each in Deletes)


def _valid_mode(name: str, value: ConfigValue) -> None:
    if value is not None and trim(str(value)).lower() not in _MODES:
        raise ConfigError(name, value, not_one_of(_MODES))


_MODE = option(
    "delete.tombstone.handling.mode",
    Type.STRING,
    "Handle delete and tombstone records",
    "What becomes of delete events and of the tombstones after them. drop: both are dropped. tombstone: a delete event becomes "
    "a record with a null value, its tombstone is dropped. rewrite: a delete event becomes the row before the change with "
    "__deleted set to true, its tombstone is dropped. rewrite-with-tombstone: the same, and the tombstone is kept. "
    "delete-to-tombstone: a delete event becomes a tombstone without a schema, its tombstone is dropped.",
    default="tombstone",
    importance=Importance.MEDIUM,
    checks=(one_of(*_MODES),),
    validator=Check(_valid_mode, f"one of {', '.join(_MODES)}"),
)
_NAMES = (
    "Names are those of fields of source, transaction or the change event, or struct.field for any other. A colon and a new "
    "name may follow."
)
_REPLACE_NULL = option(
    "replace.null.with.default",
    Type.BOOLEAN,
    "Replace nulls with defaults",
    "True replaces nulls of columns that have a default by the default when __deleted is added.",
    default="true",
    width=Width.SHORT,
)

OPTIONS: tuple[Option, ...] = (
    _MODE,
    option(
        "route.by.field",
        Type.STRING,
        "Route by field name",
        "Column whose value replaces the topic name.",
        default="",
        width=Width.LONG,
    ),
    option(
        "add.fields.prefix",
        Type.STRING,
        "Field prefix to be added to each field.",
        "Prefix of the names of the fields that add.fields adds.",
        default="__",
        width=Width.SHORT,
    ),
    option(
        "add.fields",
        Type.LIST,
        "Adds the specified field(s) to the message if they exist.",
        f"Fields of the change event to add to the value. {_NAMES}",
        default="",
        width=Width.LONG,
    ),
    option(
        "add.headers.prefix",
        Type.STRING,
        "Header prefix to be added to each header.",
        "Prefix of the names of the headers that add.headers adds.",
        default="__",
        width=Width.SHORT,
    ),
    option(
        "add.headers",
        Type.LIST,
        "Adds the specified fields to the header if they exist.",
        f"Fields of the change event to add as headers. {_NAMES}",
        default="",
        width=Width.LONG,
    ),
    option(
        "drop.fields.header.name",
        Type.STRING,
        "Specifies a header that contains a list of field names to be removed",
        "Header with the list of the fields to drop from the value.",
        width=Width.SHORT,
    ),
    option(
        "drop.fields.from.key",
        Type.BOOLEAN,
        "Specifies whether the fields to be dropped should also be omitted from the key",
        "Whether to drop the fields from the key too.",
        default="false",
        width=Width.SHORT,
    ),
    option(
        "drop.fields.keep.schema.compatible",
        Type.BOOLEAN,
        "Specifies if fields are dropped, will the event's schemas be compatible",
        "True drops only optional fields; false drops the fields whether they are optional or not.",
        default="true",
        width=Width.SHORT,
    ),
)

UNDOCUMENTED: tuple[Option, ...] = (_REPLACE_NULL,)
"""Options that Debezium reads but does not define for Connect's REST API."""
