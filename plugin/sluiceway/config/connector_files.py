"""The files in which connectors are written down: .properties, JSON, YAML, one or several in a file, files in folders."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluiceway.config.properties import connector_from_json, read_properties
from sluiceway.errors import ConfigError

SUFFIXES = (".json", ".yaml", ".yml", ".properties")
STDIN = Path("-")

_FIELDS = {"name", "config", "initial_state", "tasks", "type"}


@dataclass(frozen=True, slots=True)
class ConnectorFile:
    """A connector as a file has it. ``config`` may hold secrets and includes the name; ``where`` names file and place."""

    name: str
    config: dict[str, str] = field(repr=False)
    where: str
    initial_state: str | None = None


def read_connectors(path: Path) -> list[ConnectorFile]:
    """Return the connectors of a file, of every such file in a folder (not in its subfolders), or of stdin for ``-``.

    JSON and YAML hold a connector as the REST API takes it or shows it, a plain map of its config, or a list of them; YAML may
    hold several documents. Raises ConfigError for what cannot be read, and for a connector without a name.
    """
    if path != STDIN and path.is_dir():
        files = sorted(each for each in path.iterdir() if each.suffix in SUFFIXES and each.is_file())
        return [connector for file in files for connector in read_connectors(file)]
    if path != STDIN and path.suffix == ".properties":
        return [_named(read_properties(path), None, str(path))]
    where = "stdin" if path == STDIN else str(path)
    documents = list(_documents(_read(path, where), where, is_json=path.suffix == ".json"))
    places = [where] if len(documents) == 1 else [f"{where}, connector {number}" for number in range(1, len(documents) + 1)]
    return [_connector(document, place) for document, place in zip(documents, places, strict=True)]


def _read(path: Path, where: str) -> str:
    try:
        return sys.stdin.read() if path == STDIN else path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"Cannot read the connector file {where}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"Cannot read the connector file {where}: it is not UTF-8 text.") from error


def _documents(text: str, where: str, *, is_json: bool) -> Iterator[Any]:
    for document in _parsed_json(text, where) if is_json else _parsed_yaml(text, where):
        if isinstance(document, list):
            yield from document
        elif isinstance(document, Mapping) and document and all(_is_expanded(each) for each in document.values()):
            yield from (each["info"] for each in document.values())
        elif document is not None:
            yield document


def _is_expanded(value: object) -> bool:
    """Whether this is what ``GET /connectors?expand=info`` tells of a connector."""
    return isinstance(value, Mapping) and isinstance(value.get("info"), Mapping)


def _parsed_json(text: str, where: str) -> list[Any]:
    try:
        return [json.loads(text, parse_float=str)]
    except ValueError as error:
        raise ConfigError(f"The connector file {where} is not JSON: {error}.") from error


def _parsed_yaml(text: str, where: str) -> list[Any]:
    import yaml  # type: ignore[import-untyped]

    class AsWritten(yaml.SafeLoader):  # type: ignore[misc]
        """Leaves numbers, dates and ``yes`` as they are written: in a config they are texts."""

        yaml_implicit_resolvers = {
            first: [(tag, pattern) for tag, pattern in resolvers if tag.endswith((":null", ":merge"))]
            for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    try:
        return list(yaml.load_all(text, Loader=AsWritten))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        raise ConfigError(f"The connector file {where} is not YAML{line}: {getattr(error, 'problem', error)}.") from error


def _connector(document: Any, where: str) -> ConnectorFile:
    config = connector_from_json(document, where)
    if "config" not in document:
        return _named(config, None, where)
    unknown = sorted(set(document) - _FIELDS)
    if unknown:
        raise ConfigError(f"{where}: unknown field {unknown[0]!r} beside 'config'.")
    name = config.get("name", "")
    if str(document.get("name", name)) != name:
        raise ConfigError(f"{where}: the connector is named {document['name']!r}, but {name!r} in its config.")
    return _named(config, document.get("initial_state"), where)


def _named(config: dict[str, str], initial_state: str | None, where: str) -> ConnectorFile:
    if not config.get("name"):
        raise ConfigError(f"{where} does not say the connector's name.")
    return ConnectorFile(config["name"], config, where, initial_state)
