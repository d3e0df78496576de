"""Finds parts of JSON by pointers (RFC 6901), and fills templates with values. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from sluiceway.config.definition import ConfigValue
from sluiceway.errors import ConfigError

PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_INDEX = re.compile(r"0|[1-9][0-9]{0,9}")

Values = Mapping[str, Any]


def found_at(pointer: str, value: Any) -> Any:
    """Return what is at a pointer; None if there is nothing. Both an empty pointer and ``/`` are the whole."""
    if pointer in ("", "/"):
        return value
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            value = value[int(name)] if _INDEX.fullmatch(name) and int(name) < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


def check_pointer(name: str, value: ConfigValue) -> None:
    """Refuse what is no pointer."""
    if value and (not str(value).startswith("/") or re.search(r"~(?![01])", str(value))):
        raise ConfigError(name, value, "must be a JSON pointer, such as /data/items")


def pairs_of(name: str, value: ConfigValue) -> dict[str, str]:
    """Return ``name=text`` pairs, separated by commas. Raises ConfigError."""
    found: dict[str, str] = {}
    for item in str(value or "").split(","):
        if not item.strip():
            continue
        key, equals, text = (each.strip() for each in item.partition("="))
        if not equals or not _NAME.fullmatch(key):
            raise ConfigError(name, value, "must be pairs such as key=/id, timestamp=/updated")
        if key in found:
            raise ConfigError(name, value, f"has {key} twice")
        found[key] = text
    return found


def check_pointers(name: str, value: ConfigValue) -> None:
    """Refuse pairs whose texts are no pointers."""
    for pointer in pairs_of(name, value).values():
        check_pointer(name, pointer)


def check_pairs(name: str, value: ConfigValue) -> None:
    pairs_of(name, value)


def is_scalar(value: Any) -> bool:
    return isinstance(value, (str, int, float))


def text_of(value: Any) -> str:
    """Return a value of JSON that is no list and no object as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def placeholders(template: str) -> list[str]:
    return PLACEHOLDER.findall(template)


def filled(template: str, values: Values, encode: Callable[[str], str] = str) -> str | None:
    """Return a template with its placeholders replaced; None if one of them has no value."""
    if any(values.get(name) is None for name in placeholders(template)):
        return None
    return PLACEHOLDER.sub(lambda found: encode(text_of(values[found.group(1)])), template)
