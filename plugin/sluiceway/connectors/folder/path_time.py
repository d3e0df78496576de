"""Finds the time in a file's path, by which files belong to intervals (``path.time.format``). No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timezone

from sluiceway.config.definition import ConfigValue
from sluiceway.errors import ConfigError, ConnectError

_FIELDS = {"Y": r"\d{4}", **dict.fromkeys("mdHMS", r"\d{2}"), "j": r"\d{3}", "s": r"\d{9,11}"}
_FIELD = re.compile(r"%(.)")


def path_time(key: str, text: str) -> Callable[[str], int]:
    """Return what finds the time in a path, in nanoseconds since the epoch.

    Args:
        key: the key, for errors.
        text: a format such as ``dt=%Y-%m-%d/hour=%H``, as of ``strftime``, in UTC. If a path has several, the last one counts.

    Raises ConfigError for a format without a day. What it returns raises ConnectError for a path without such a time.
    """
    names = _FIELD.findall(text)
    unknown = [name for name in names if name not in _FIELDS]
    if unknown or len(set(names)) < len(names):
        raise ConfigError(key, text, f"has the fields {', '.join(f'%{each}' for each in _FIELDS)}, each once")
    if "s" not in names and not ({"Y", "m", "d"} <= set(names) or {"Y", "j"} <= set(names)):
        raise ConfigError(key, text, "needs a day: %Y, %m, and %d, or %Y and %j, or the seconds %s")
    parts = _FIELD.split(text)  # texts and fields by turns
    pattern = "".join(f"(?P<{part}>{_FIELDS[part]})" if number % 2 else re.escape(part) for number, part in enumerate(parts))
    before, after = "" if parts[0] else r"(?<!\d)", "" if parts[-1] else r"(?!\d)"  # digits beside a field are no part of it
    expression = re.compile(f"{before}{pattern}{after}")

    def found(path: str) -> int:
        matches = [*expression.finditer(path)]
        try:
            return _nanoseconds(matches[-1].groupdict())
        except (IndexError, ValueError) as error:
            raise ConnectError(
                f"File {path} has no time in its path ({key}={text}), so it belongs to no interval. Leave such files out by "
                "exclude or the patterns of paths, or change the format."
            ) from error

    return found


def _nanoseconds(fields: dict[str, str]) -> int:
    """Return the time that fields of a path say. Raises ValueError."""
    if "s" in fields:
        return int(fields["s"]) * 1_000_000_000
    given = "".join(fields.values())
    when = datetime.strptime(given, "".join(f"%{name}" for name in fields)).replace(tzinfo=timezone.utc)
    return int(when.timestamp()) * 1_000_000_000


def is_format(name: str, value: ConfigValue) -> None:
    """Validate a key whose value is a format of times in paths."""
    if value is not None:
        path_time(name, str(value))
