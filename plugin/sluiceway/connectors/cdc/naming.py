"""Names topics, schemas and fields as Debezium's strategies do. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.java.regex import JavaRegex

_NOT_IN_TOPICS = re.compile(r"[^A-Za-z0-9._\-]")
_IN_UNICODE_TOPICS = re.compile(r"[A-Za-z0-9.\-]")
_MAX_TOPIC = 249

Adjuster = Callable[[str], str]

_AVRO = re.compile(r"[A-Za-z0-9_]")


def topic_name(text: str) -> str:
    """Return a valid topic name: other characters become underscores."""
    return _cut(_NOT_IN_TOPICS.sub("_", text), "_")


def unicode_topic_name(text: str) -> str:
    """Return a valid topic name: other characters and the underscore become ``_u`` and their number, as Debezium writes it."""
    return _cut("".join(char if _IN_UNICODE_TOPICS.match(char) else _escaped(char) for char in text), "_u002e")


def _cut(name: str, dot: str) -> str:
    name = name[:_MAX_TOPIC]
    return {".": dot, "..": dot * 2}.get(name, name)


def _escaped(char: str) -> str:
    digits = (f"{unit:x}" for unit in _units(char))
    return "".join(f"_u{each if len(each) > 2 else f'00{each}'}" for each in digits)


@dataclass(frozen=True, slots=True)
class Routing:
    """The options of strategies that rename topics by a regular expression, so that tables can share a topic.

    ``key_field`` names the field of keys that tells the tables of a topic apart; None for none. Its value is the name of the
    table's own topic, changed by ``key_regex`` if that is set.
    """

    regex: JavaRegex
    replacement: str
    key_field: str | None = None
    key_regex: JavaRegex | None = None
    key_replacement: str = ""

    def topic(self, name: str) -> str:
        return _replaced_whole(self.regex, self.replacement, name) or name

    def key(self, name: str) -> str:
        return name if self.key_regex is None else _replaced_whole(self.key_regex, self.key_replacement, name)


def _replaced_whole(regex: JavaRegex, replacement: str, name: str) -> str:
    """Return a name after the replacement, or as it is if the expression does not match all of it."""
    return regex.replace_first(name, replacement) if regex.matches(name) else name


class TopicNames:
    """Names the topics of a connector.

    ``namespace`` tells whether tables' topics have the table's schema, or its database, before the table. ``valid`` makes names
    of tables' topics valid, and ``routing`` renames them.
    """

    def __init__(
        self,
        prefix: str,
        *,
        delimiter: str = ".",
        heartbeat_prefix: str = "__debezium-heartbeat",
        transaction: str = "transaction",
        namespace: bool = True,
        valid: Adjuster = topic_name,
        routing: Routing | None = None,
    ) -> None:
        self.prefix = prefix
        self._delimiter = delimiter
        self._namespace = namespace
        self._valid = valid
        self._routing = routing
        self.heartbeat = topic_name(delimiter.join((heartbeat_prefix, prefix)))
        self.transaction = topic_name(delimiter.join((prefix, transaction)))
        self.schema_changes = topic_name(prefix)
        self.messages = topic_name(delimiter.join((prefix, "message")))

    def table(self, table: TableId) -> str:
        """Return the topic of a table's changes."""
        name = self._valid(self._own(table))
        return name if self._routing is None else self._routing.topic(name)

    def key_field(self, table: TableId) -> tuple[str, str] | None:
        """Return the name and the value of the field that tells a table's keys from other tables', or None for none."""
        if self._routing is None or self._routing.key_field is None:
            return None
        return self._routing.key_field, self._routing.key(self._own(table))

    def _own(self, table: TableId) -> str:
        parts = (self.prefix, table.schema, table.table) if self._namespace else (self.prefix, table.table)
        return self._delimiter.join(parts)


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
