"""Defines the options of the outbox EventRouter."""

from __future__ import annotations

import enum
from typing import NamedTuple

from sluiceway.config.definition import Importance, Type
from sluiceway.java.blanks import trim
from sluiceway.transforms.debezium.names import MODES
from sluiceway.transforms.debezium.options import Option, Options, one_of, option, regular_expression, string_pairs
from sluiceway.transforms.util.mappings import java_split

_PLACEMENT = "table.fields.additional.placement"


def _column(name: str, display_name: str, doc: str, order: int, default: str | None = None) -> Option:
    return option(name, Type.STRING, display_name, doc, default=default, group="Table", order=order)


def _choice(name: str, display_name: str, doc: str, order: int, *choices: str) -> Option:
    return option(
        name,
        Type.STRING,
        display_name,
        doc,
        default=choices[0],
        importance=Importance.MEDIUM,
        group="Table",
        order=order,
        checks=(one_of(*choices),),
    )


_TABLE = (
    _column("table.field.event.id", "Event ID Field", "Column of the event's id, which becomes the header id.", 1, "id"),
    _column("table.field.event.key", "Event Key Field", "Column that becomes the key.", 2, "aggregateid"),
    _column("table.field.event.type", "Event Type Field", "Column of the event's type. It has no effect.", 3, "type"),
    _column("table.field.event.payload", "Event Payload Field", "Column of the event's payload.", 4, "payload"),
    option(
        "table.field.event.timestamp",
        Type.STRING,
        "Event Timestamp Field",
        "Column that becomes the record's timestamp; without one the time at which Debezium processed the change.",
        importance=Importance.MEDIUM,
        group="Table",
        order=5,
    ),
    option(
        _PLACEMENT,
        Type.LIST,
        "Settings for each additional column in the outbox table",
        "More columns to send, as column:placement or column:placement:name. The placement is header, envelope (a field beside "
        "the payload) or partition (the record's partition).",
        importance=Importance.HIGH,
        group="Table",
        order=6,
        checks=(string_pairs,),
    ),
    _choice(
        "table.field.additional.missing",
        "Behavior when an additional field is missing in the change data",
        f"Whether a column of {_PLACEMENT} that a record does not have is an error (error) or left out (ignore).",
        7,
        "error",
        "ignore",
    ),
    _column(
        "table.field.event.schema.version",
        "Event Schema Version Field",
        "Column of the version of the value's schema. It needs a column in the envelope.",
        8,
    ),
    _choice(
        "table.op.invalid.behavior",
        "Behavior when capturing an unexpected outbox event",
        "What an update of the outbox table does: warn and error log it and drop the record, fatal fails the task.",
        9,
        "warn",
        "error",
        "fatal",
    ),
    option(
        "table.expand.json.payload",
        Type.BOOLEAN,
        "Expand Payload escaped string as real JSON",
        "Whether to parse a payload that is JSON text, and to send it as a struct. Other text is sent as it is.",
        default="false",
        importance=Importance.MEDIUM,
        group="Table",
        order=10,
    ),
    _choice(
        "table.json.payload.null.behavior",
        "Behavior when json payload including null value",
        "Whether the struct leaves out fields that are null in the JSON text (ignore) or has them as bytes (optional_bytes).",
        11,
        "ignore",
        "optional_bytes",
    ),
    _choice(
        "table.json.payload.empty.array.behavior",
        "Behavior when json payload including empty array value",
        "Whether the struct leaves out empty arrays (ignore) or has them as arrays of text (optional_string).",
        12,
        "ignore",
        "optional_string",
    ),
)
_ROUTER = (
    option(
        "route.by.field",
        Type.STRING,
        "Field to route events by",
        "Column that decides the topic.",
        default="aggregatetype",
        importance=Importance.HIGH,
        group="Router",
        order=1,
    ),
    option(
        "route.topic.regex",
        Type.STRING,
        "The name of the routed topic",
        "Java regular expression for the column's whole value.",
        default="(?<routedByValue>.*)",
        group="Router",
        order=2,
        checks=(regular_expression,),
    ),
    option(
        "route.topic.replacement",
        Type.STRING,
        "The name of the routed topic",
        "The topic, in which ${routedByValue} is the column's value, or a group of route.topic.regex.",
        default="outbox.event.${routedByValue}",
        importance=Importance.HIGH,
        group="Router",
        order=3,
    ),
    option(
        "route.tombstone.on.empty.payload",
        Type.BOOLEAN,
        "Empty payloads cause a tombstone message",
        "Whether an empty or missing payload becomes a tombstone.",
        default="false",
        importance=Importance.HIGH,
        group="Router",
        order=4,
    ),
)
_TRACING = "Debezium's tracing has no counterpart here: this option has no effect."
_TRACING_OPTIONS = tuple(
    option(name, type_, display_name, _TRACING, default=default, importance=Importance.HIGH, group="Tracing", order=order)
    for order, (name, type_, display_name, default) in enumerate(
        (
            ("tracing.span.context.field", Type.STRING, "Serialized tracing span context field", "tracingspancontext"),
            ("tracing.operation.name", Type.STRING, "Tracing operation name", "debezium-read"),
            ("tracing.with.context.field.only", Type.BOOLEAN, "Trace only events with context field present", "false"),
        ),
        start=1,
    )
)
_FIELD_NAMES = option(
    "field.name.adjustment.mode",
    Type.STRING,
    "Field Name Adjustment",
    f"How to make field names of expanded JSON valid for Avro: {', '.join(MODES)}.",
    default="none",
)

CHECKED = (*_TABLE, *_ROUTER)
OPTIONS = (*CHECKED, *_TRACING_OPTIONS)
ALL = (*OPTIONS, _FIELD_NAMES)
"""With an option that Debezium reads but does not define for Connect's REST API."""


class Placement(enum.Enum):
    """The place of an additional column in the record."""

    HEADER = "header"
    ENVELOPE = "envelope"
    PARTITION = "partition"


class AdditionalField(NamedTuple):
    """A column to send besides the payload; ``placement`` is None if the config has an unknown one."""

    column: str
    placement: Placement | None
    name: str


def additional_fields(options: Options) -> list[AdditionalField]:
    """Parse the option for additional columns, which must be valid."""
    text = options.text(_PLACEMENT)
    found = []
    for each in [] if text is None else java_split(text, ","):
        column, place, *name = map(trim, java_split(each))
        known = next((placement for placement in Placement if placement.value == place.lower()), None)
        found.append(AdditionalField(column, known, name[0] if name else column))
    return found
