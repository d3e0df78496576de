"""Reads Java .properties files."""

from __future__ import annotations

from pathlib import Path

from sluiceway.errors import ConfigError


def read_properties(path: Path) -> dict[str, str]:
    """Return the properties in a file in file order, parsed as Java does. Raises ConfigError."""
    try:
        return parse_properties(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"Cannot read the properties file {path}: {error.strerror}.") from error
    except ValueError as error:
        raise ConfigError(f"The properties file {path} cannot be read: {error}.") from error


def parse_properties(content: bytes | str) -> dict[str, str]:
    """Parse Java properties; bytes are Latin-1. The last value of a repeated key wins.

    Raises ValueError for a ``\\u`` without four hexadecimal digits, as Java does.
    """
    import javaproperties

    return dict(javaproperties.loads(content))
