"""The values of a config that are for dlt itself: arguments of its functions, configuration, and secrets. No I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sluiceway.config.definition import ConfigValue
from sluiceway.config.validators import Check
from sluiceway.errors import ConfigError

CONFIG_PREFIX, SECRET_PREFIX = "dlt.config.", "dlt.secret."


def json_arguments(of: str, example: str) -> Check:
    """Return the validator of a key with the keyword arguments of a function, as a JSON object."""

    def check(name: str, value: ConfigValue) -> None:
        try:
            args = json.loads(str(value))
        except ValueError as error:  # the value may have secrets, and its text is in no message
            raise ConfigError(name, None, f"must be a JSON object of the {of}'s arguments: {_place(error)}") from None
        if not isinstance(args, dict):
            raise ConfigError(name, None, f"must be a JSON object of the {of}'s arguments, such as {example}")

    return Check(check, "a JSON object")


def arguments(config: Mapping[str, str], name: str, text: str) -> dict[str, Any]:
    """Return the arguments in the key ``name``, with the values of the keys that they name. Raises ConfigError."""

    def resolved(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: resolved(each) for key, each in value.items()}
        if isinstance(value, list):
            return [resolved(each) for each in value]
        if isinstance(value, str) and value.startswith((CONFIG_PREFIX, SECRET_PREFIX)):
            if value not in config:
                raise ConfigError(name, None, f"names the key {value}, which is not set")
            return config[value]
        return value

    args: dict[str, Any] = resolved(json.loads(text))
    return args


def nested_values(config: Mapping[str, str]) -> dict[str, Any]:
    """Return what follows the prefixes as the nested document that dlt looks values up in. Raises ConfigError."""
    paths = {key: key.split(".")[2:] for key in config if key.startswith((CONFIG_PREFIX, SECRET_PREFIX))}
    document: dict[str, Any] = {}
    for key, path in sorted(paths.items(), key=lambda each: (each[1], each[0])):
        if not all(path):
            raise ConfigError(key, None, "must name a value of dlt, such as dlt.secret.sources.github.access_token")
        node = document
        for section in path[:-1]:
            node = node.setdefault(section, {})
            if not isinstance(node, dict):
                raise ConfigError(key, None, f"is below another key of dlt, {section}, that has a value")
        if path[-1] in node:
            raise ConfigError(key, None, f"is set twice for dlt, with {CONFIG_PREFIX} and with {SECRET_PREFIX}")
        node[path[-1]] = config[key]
    return document


def secrets(config: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of the keys dlt.secret.*."""
    return tuple(value for key, value in config.items() if key.startswith(SECRET_PREFIX))


def _place(error: ValueError) -> str:
    return f"{error.msg} at line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
