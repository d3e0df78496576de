"""Parses and follows paths to a field: a name (syntax V1), or names joined by dots, with backticks (V2, KIP-821)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluiceway.config.definition import ConfigKey, Importance, Type
from sluiceway.config.validators import OneOf
from sluiceway.data import Field, Schema, Struct
from sluiceway.errors import ConfigError
from sluiceway.transforms.util.requirements import require_map, require_struct

_PURPOSE = "nested field access"

FIELD_SYNTAX_VERSION = ConfigKey(
    name="field.syntax.version",
    type=Type.STRING,
    default="V1",
    validator=OneOf(("V1", "V2"), ignore_case=True),
    importance=Importance.HIGH,
    doc="Syntax of field names. V1: fields of the outermost struct or map. V2: nested fields as names joined by dots, with "
    "backticks around names that contain dots.",
)


class SingleFieldPath:
    """A parsed path to one field of a struct or map. Raises ConfigError for an unpaired backtick.

    In V2 an empty text is a path without steps, and every use of it raises ValueError.
    """

    __slots__ = ("steps", "text")

    def __init__(self, text: str, *, nested: bool) -> None:
        self.text = text
        self.steps = _steps(text) if nested else (text,)

    def field_of(self, schema: Schema) -> Field | None:
        """Return the field, or None if a step does not exist. Raises DataError if a step is not a struct."""
        fields = self.fields_in(schema)
        return fields[-1] if fields else None

    def fields_in(self, schema: Schema) -> list[Field]:
        """Return the field of each step; an empty list if one does not exist. Raises DataError if a step is not a struct."""
        fields: list[Field] = []
        for step in (*self.steps[:-1], self._last):
            field = schema.field(step)
            if field is None:
                return []
            fields.append(field)
            schema = field.schema
        return fields

    def in_struct(self, struct: Struct, *, replace_null: bool) -> Any:
        """Return the field's value, or None if a step is null or does not exist.

        Defaults of structs on the path always apply; that of the field itself only with ``replace_null``.
        """
        for step in self.steps[:-1]:
            inner = struct[step] if step in struct else None  # noqa: SIM401 (get would raise DataError)
            if inner is None:
                return None
            struct = require_struct(inner, None, _PURPOSE)
        if self._last not in struct:
            return None
        return struct[self._last] if replace_null else struct.get_without_default(self._last)

    def in_map(self, value: Mapping[Any, Any]) -> Any:
        """Return the field's value, or None if a step is null or does not exist."""
        for step in self.steps[:-1]:
            inner = value.get(step)
            if inner is None:
                return None
            value = inner if type(inner) is dict else require_map(inner, _PURPOSE)
        return value.get(self._last)

    @property
    def _last(self) -> str:
        if not self.steps:
            raise ValueError("The field path is empty. Set it to a field name.")
        return self.steps[-1]


def _steps(text: str) -> tuple[str, ...]:
    steps: list[str] = []
    at = 0
    while at < len(text):
        step, at = _quoted(text, at) if text[at] == "`" else _plain(text, at)
        steps.append(step)
        if at == len(text) - 1:  # a dot at the end adds a step with an empty name
            steps.append("")
        at += 1
    return tuple(steps)


def _plain(text: str, start: int) -> tuple[str, int]:
    dot = text.find(".", start)
    end = len(text) if dot < 0 else dot
    return text[start:end], end


def _quoted(text: str, start: int) -> tuple[str, int]:
    """Return the name up to the backtick before a dot or the end, and its end; a backslash escapes a backtick."""
    name: list[str] = []
    at = start + 1
    while True:
        tick = text.find("`", at)
        if tick < 0:
            raise ConfigError(
                f"Incomplete backtick pair in path: [{text}], consider adding a backslash before backtick at position {start} "
                "to escape it"
            )
        closes = tick + 1 == len(text) or text[tick + 1] == "."
        escaped = tick > at and text[tick - 1] == "\\"
        if closes and not escaped:
            return "".join(name) + text[at:tick], tick + 1
        name.append(text[at : tick - 1] + "`" if closes and escaped else text[at : tick + 1])
        at = tick + 1
