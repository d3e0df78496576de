"""Names topics, schemas and fields as Debezium's default strategies do. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable

from sluiceway.connectors.cdc.filters import TableId

_NOT_IN_TOPICS = re.compile(r"[^A-Za-z0-9._\-]")
_MAX_TOPIC = 249

Adjuster = Callable[[str], str]

_AVRO = re.compile(r"[A-Za-z0-9_]")


def topic_name(text: str) -> str:
    """Return a valid topic name: other characters become underscores."""
    name = _NOT_IN_TOPICS.sub("_", text)[:_MAX_TOPIC]
    return {".": "_", "..": "__"}.get(name, name)


class TopicNames:
    """Names the topics of a connector (Debezium's ``SchemaTopicNamingStrategy``)."""

    def __init__(
        self,
        prefix: str,
        *,
        delimiter: str = ".",
        heartbeat_prefix: str = "__debezium-heartbeat",
        transaction: str = "transaction",
    ) -> None:
        self.prefix = prefix
        self._delimiter = delimiter
        self.heartbeat = topic_name(delimiter.join((heartbeat_prefix, prefix)))
        self.transaction = topic_name(delimiter.join((prefix, transaction)))
        self.schema_changes = topic_name(prefix)
        self.messages = topic_name(delimiter.join((prefix, "message")))

    def table(self, table: TableId) -> str:
        """Return the topic of a table's changes."""
        return topic_name(self._delimiter.join((self.prefix, table.schema, table.table)))


def adjuster(mode: str) -> Adjuster:
    """Return the function of ``schema.name.adjustment.mode``: ``none``, ``avro`` or ``avro_unicode``."""
    return {"avro": _avro, "avro_unicode": _avro_unicode}.get(mode, _same)


def field_adjuster(mode: str) -> Adjuster:
    """Return the function of ``field.name.adjustment.mode``; dots are no separators in a field's name."""
    if mode == "avro":
        return _avro_field
    inner = adjuster(mode)
    return _same if inner is _same else lambda name: "_u002e".join(inner(part) for part in name.split("."))


def _avro_field(name: str) -> str:
    """Return a field's name for Avro: unlike a schema's, it keeps a digit at its beginning, behind an underscore."""
    valid = "".join(char if _AVRO.match(char) else "_" for char in name)
    return f"_{valid}" if name[:1].isdigit() else valid


def _same(name: str) -> str:
    return name


def _avro(name: str) -> str:
    return _replaced(name, lambda char: "_", _AVRO)


def _avro_unicode(name: str) -> str:
    return _replaced(name, lambda char: "".join(f"_u{unit:04x}" for unit in _units(char)), re.compile(r"[A-Za-z0-9]"))


def _units(char: str) -> list[int]:
    data = char.encode("utf-16-be", "surrogatepass")
    return [data[index] << 8 | data[index + 1] for index in range(0, len(data), 2)]


def _replaced(name: str, replacement: Callable[[str], str], valid: re.Pattern[str]) -> str:
    """Replace the characters that Avro allows in no name, and digits where a name begins."""
    result, first = [], True
    for char in name:
        if char == ".":
            result.append(char)
            first = True
            continue
        allowed = valid.match(char) is not None and not (first and char.isdigit())
        result.append(char if allowed else replacement(char))
        first = False
    return "".join(result)
