"""Reads connectors from .properties, JSON and YAML files and from folders of such files."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluiceway.config.connector_resources import as_request, is_connector, is_resource, items_of
from sluiceway.config.properties import read_properties
from sluiceway.errors import ConfigError

SUFFIXES = (".json", ".yaml", ".yml", ".properties")
STDIN = Path("-")

_FIELDS = {"name", "config", "initial_state", "tasks", "type"}


@dataclass(frozen=True, slots=True)
class ConnectorFile:
    """A connector read from a file.

    ``config`` includes the name and may contain secrets. ``where`` is the file and the number of the connector in it.
    """

    name: str
    config: dict[str, str] = field(repr=False)
    where: str
    initial_state: str | None = None


def read_connectors(path: Path) -> list[ConnectorFile]:
    """Return the connectors in a file, in all files of a folder without subfolders, or in stdin for ``-``.

    JSON and YAML files contain connectors as in requests or responses of the REST API, as a map of the config, as another
    platform keeps them (``connector_resources``), or as a list of these. YAML files may contain several documents, and other
    Kubernetes resources, which are left out. Raises ConfigError for a file that cannot be read or parsed, or has no connector,
    and for a connector without a name.
    """
    if path != STDIN and path.is_dir():
        files = sorted(each for each in path.iterdir() if each.suffix in SUFFIXES and each.is_file())
        return [connector for file in files for connector in read_connectors(file)]
    if path != STDIN and path.suffix == ".properties":
        return [_named(read_properties(path), None, str(path))]
    where = "stdin" if path == STDIN else str(path)
    documents = list(_documents(_read(path, where), where, is_json=path.suffix == ".json"))
    if documents and not (documents := [each for each in documents if is_connector(each) or not is_resource(each)]):
        raise ConfigError(
            f"{where} has Kubernetes resources, but neither a KafkaConnector of Strimzi nor a Connector of Confluent."
        )
    if len(documents) == 1:
        return [_connector(documents[0], where)]
    return [_connector(document, f"{where}, connector {number}") for number, document in enumerate(documents, 1)]


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
        elif is_resource(document):
            yield from items_of(document)
        elif isinstance(document, Mapping) and document and all(_is_expanded(each) for each in document.values()):
            yield from (each["info"] for each in document.values())
        elif document is not None:
            yield document


def _is_expanded(value: object) -> bool:
    """Return whether the value is a connector in the response of ``GET /connectors?expand=info``."""
    return isinstance(value, Mapping) and isinstance(value.get("info"), Mapping)


def _parsed_json(text: str, where: str) -> list[Any]:
    try:
        return [json.loads(text, parse_float=str)]
    except ValueError as error:
        raise ConfigError(f"The connector file {where} is not JSON: {error}.") from error


def _parsed_yaml(text: str, where: str) -> list[Any]:
    import yaml

    class TextLoader(yaml.SafeLoader):
        """Loads numbers, dates and ``yes`` as the text in the file, because config values are text."""

        yaml_implicit_resolvers = {
            first: [(tag, pattern) for tag, pattern in resolvers if tag.endswith((":null", ":merge"))]
            for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    try:
        return list(yaml.load_all(text, Loader=TextLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        raise ConfigError(f"The connector file {where} is not YAML{line}: {getattr(error, 'problem', error)}.") from error


def _connector(document: Any, where: str) -> ConnectorFile:
    if is_connector(document):
        document = as_request(document, where)
    config = connector_from_json(document, where)
    if "config" not in document:
        return _named(config, None, where)
    unknown = sorted(set(document) - _FIELDS)
    if unknown:
        raise ConfigError(
            f"{where}: unknown field {unknown[0]!r} next to 'config'. Known fields are {', '.join(sorted(_FIELDS))}."
        )
    name = config.get("name", "")
    if str(document.get("name", name)) != name:
        raise ConfigError(f"{where}: the connector is named {document['name']!r}, but {name!r} in its config. Use the same name.")
    return _named(config, document.get("initial_state"), where)


def _named(config: dict[str, str], initial_state: str | None, where: str) -> ConnectorFile:
    if not config.get("name"):
        raise ConfigError(f"{where}: the connector has no name. Set 'name'.")
    return ConnectorFile(config["name"], config, where, initial_state)


def read_connector_file(path: Path) -> dict[str, str]:
    """Return the connector config in a .properties, JSON or YAML file. Raises ConfigError.

    JSON and YAML contain ``{"name": .., "config": {..}}`` or a map with ``name``, as in Connect's standalone mode.
    """
    if path.suffix in (".yaml", ".yml"):
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
