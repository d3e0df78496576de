"""Parses and formats the values of each config type as Kafka's ``ConfigDef`` does. No I/O."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from sluiceway.config.password import HIDDEN, Password
from sluiceway.errors import ConfigError
from sluiceway.java.blanks import trim
from sluiceway.java.numbers import java_double, parse_double, whole_number


class Type(enum.Enum):
    """The types of config values, with the names that Connect's REST API uses."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"  # noqa: S105 (a type's name)


@dataclass(frozen=True, slots=True)
class PluginClass:
    """A class named in a config: ``name`` as Kafka Connect shows it, and the Python class that implements it.

    ``cls`` is None for a Java class without an implementation; ``variants`` are then the classes the user may have meant.
    """

    name: str
    cls: type | None
    variants: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"class {self.name}"


ConfigValue = bool | str | int | float | list[str] | Password | PluginClass | None
Loader = Callable[[str], PluginClass]

_BLANKS = " \t\n\r\f\v"

_RANGES = {
    Type.SHORT: (-(2**15), 2**15 - 1),
    Type.INT: (-(2**31), 2**31 - 1),
    Type.LONG: (-(2**63), 2**63 - 1),
}
_EXPECTED = {
    Type.SHORT: "16-bit integer (short)",
    Type.INT: "32-bit integer",
    Type.LONG: "64-bit integer (long)",
    Type.DOUBLE: "double",
    Type.STRING: "string",
}


def parse_value(name: str, value: object, type_: Type, loader: Loader | None = None) -> ConfigValue:
    """Convert ``value`` to the type's Python value. Trims and parses text as Kafka does.

    ``loader`` resolves a class name and raises ConfigError if there is no such class; without a loader the name stays text.
    Raises ConfigError with Kafka's message if the value does not have the type. The message never shows a password.
    """
    if value is None:
        return None
    trimmed = trim(value) if isinstance(value, str) else value
    try:
        return _parse_class(trimmed, loader) if type_ is Type.CLASS else _PARSERS[type_](trimmed, type_)
    except ConfigError as error:  # raised by the loader
        raise ConfigError(name, value, f"Class {value} could not be found.") from error
    except _UnreadableError as error:
        raise ConfigError(name, HIDDEN if type_ is Type.PASSWORD else value, str(error)) from None


def shown(value: ConfigValue, type_: Type | None = None) -> str | None:
    """Return a value as the text that Kafka shows: lists joined by commas, passwords hidden."""
    if value is None:
        return None
    if isinstance(value, list):
        return ",".join(value)
    if isinstance(value, PluginClass):
        return value.name
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) or (type_ is Type.DOUBLE and isinstance(value, int)):
        return java_double(float(value))
    return str(value)


def parse_list(text: str | None) -> list[str]:
    """Split a comma-separated list as Kafka does, but drop empty items. None is an empty list."""
    return [item for item in _items(trim(text or "")) if item]


def _items(text: str) -> list[str]:
    """Split at commas and the blanks around them. In linear time, other than a pattern with blanks before the comma."""
    first, *others = text.split(",")
    items = [first, *(item.lstrip(_BLANKS) for item in others)]
    return [*(item.rstrip(_BLANKS) for item in items[:-1]), items[-1]]


class _UnreadableError(ValueError):
    """A value does not have the type of its key. Holds the reason."""


def _parse_class(value: object, loader: Loader | None) -> ConfigValue:
    if isinstance(value, PluginClass):
        return value
    if not isinstance(value, str):
        raise _UnreadableError("Expected a Class instance or class name.")
    return value if loader is None else loader(value)


def _parse_boolean(value: object, _type: Type) -> ConfigValue:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise _UnreadableError("Expected value to be either true or false")


def _parse_text(value: object, type_: Type) -> ConfigValue:
    if isinstance(value, str):
        return value
    raise _wrong_type(value, type_)


def _parse_password(value: object, _type: Type) -> ConfigValue:
    if isinstance(value, Password):
        return value
    if isinstance(value, str):
        return Password(value)
    raise _UnreadableError("Expected value to be a string")


def _parse_whole_number(value: object, type_: Type) -> ConfigValue:
    low, high = _RANGES[type_]
    number: int | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif not isinstance(value, str):
        raise _wrong_type(value, type_)
    elif (digits := whole_number(value[1:] if value[:1] in ("+", "-") else value)) is not None:
        number = -digits if value[0] == "-" else digits
    if number is None or not low <= number <= high:
        raise _UnreadableError(f"Not a number of type {type_.value}")
    return number


def _parse_double(value: object, type_: Type) -> ConfigValue:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, str):
        raise _wrong_type(value, type_)
    try:
        return parse_double(value)
    except ValueError:
        raise _UnreadableError("Not a number of type DOUBLE") from None


def _parse_items(value: object, _type: Type) -> ConfigValue:
    if isinstance(value, (list, tuple)):
        return [str(item) for item in value]
    if isinstance(value, str):
        return _items(value) if value else []
    raise _UnreadableError("Expected a comma separated list.")


def _wrong_type(value: object, type_: Type) -> _UnreadableError:
    return _UnreadableError(f"Expected value to be a {_EXPECTED[type_]}, but it was a {type(value).__name__}")


_PARSERS: dict[Type, Callable[[object, Type], ConfigValue]] = {
    Type.BOOLEAN: _parse_boolean,
    Type.STRING: _parse_text,
    Type.PASSWORD: _parse_password,
    Type.INT: _parse_whole_number,
    Type.SHORT: _parse_whole_number,
    Type.LONG: _parse_whole_number,
    Type.DOUBLE: _parse_double,
    Type.LIST: _parse_items,
}
