"""Reading the files that users have: Java .properties and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from sluiceway.errors import ConfigError


def read_properties(path: Path) -> dict[str, str]:
    """Return the pairs of a Java .properties file, in file order, escapes and continued lines resolved as Java does."""
    try:
        return parse_properties(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"Cannot read the properties file {path}: {error.strerror}.") from error
    except ValueError as error:
        raise ConfigError(f"The properties file {path} cannot be read: {error}.") from error


def parse_properties(content: bytes | str) -> dict[str, str]:
    """Return the pairs in a Java .properties file, whose bytes are Latin-1; of a key that is there twice the last value counts.

    Raises ValueError for a ``\\u`` without four hexadecimal digits, as Java does.
    """
    import javaproperties

    return dict(javaproperties.loads(content))


def read_connector_file(path: Path) -> dict[str, str]:
    """Return a connector's config from a .properties file, from JSON or from YAML.

    JSON may be ``{"name": .., "config": {..}}`` or a plain map with ``name``, as in Connect's standalone mode; YAML likewise.
    """
    if path.suffix in (".yaml", ".yml"):
        from sluiceway.config.connector_files import read_connectors

        connectors = read_connectors(path)
        if len(connectors) != 1:
            raise ConfigError(f"The connector file {path} holds {len(connectors)} connectors, where one is expected.")
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
    """Return the config in a JSON document of either form, ``name`` included; ``where`` names it in errors."""
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
    """Return a JSON scalar as the text that Connect would hold for it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)
