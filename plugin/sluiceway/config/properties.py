"""Reads configs from Java .properties files and JSON documents."""

from __future__ import annotations

import json
from collections.abc import Mapping
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


def read_connector_file(path: Path) -> dict[str, str]:
    """Return the connector config in a .properties, JSON or YAML file. Raises ConfigError.

    JSON and YAML contain ``{"name": .., "config": {..}}`` or a map with ``name``, as in Connect's standalone mode.
    """
    if path.suffix in (".yaml", ".yml"):
        from sluiceway.config.connector_files import read_connectors

        connectors = read_connectors(path)
        if len(connectors) != 1:
            raise ConfigError(f"The connector file {path} contains {len(connectors)} connectors. Put each in its own file.")
        return connectors[0].config
    if path.suffix != ".json":
        return read_properties(path)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"Cannot read the connector file {path}: {error.strerror}.") from error
    except ValueError as error:
        raise ConfigError(f"The connector file {path} is not JSON: {error}.") from error
    return connector_from_json(document, str(path))


def connector_from_json(document: object, where: str) -> dict[str, str]:
    """Return the config in a parsed JSON document of either form, including ``name``. ``where`` names it in errors."""
    if not isinstance(document, Mapping):
        raise ConfigError(f"{where}: expected a JSON object with a connector's config.")
    config = document.get("config", document)
    if not isinstance(config, Mapping):
        raise ConfigError(f'{where}: "config" must be a JSON object.')
    pairs = {str(key): to_text(value) for key, value in config.items() if value is not None}
    if "name" in document and document is not config:
        pairs.setdefault("name", str(document["name"]))
    return pairs


def to_text(value: object) -> str:
    """Return a JSON scalar as Connect's text for it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)
