"""Finds the values that a form offers for keys of a plugin. No I/O but the import of the plugin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sluiceway.config.connector import OWN
from sluiceway.config.validators import OneOf, OrNull
from sluiceway.discovery import connector_class
from sluiceway.errors import ConfigError, NotFoundError
from sluiceway.herder.enrichment import base_def


def choices_of(plugin: str) -> dict[str, list[str]]:
    """Return the allowed values of each key that has a fixed set of them: a plugin's, Connect's, and our own.

    A validation returns only what a plugin recommends, as in Kafka Connect. Of a class that is not installed here, the choices
    are those of our own keys.
    """
    keys = list(OWN)
    try:
        found = connector_class(plugin)
        keys += [*base_def(found), *found.config_def()]
    except (NotFoundError, ConfigError):
        pass
    return {key.name: choices for key in keys if (choices := _allowed(key.validator))}


def _allowed(validator: Callable[..., Any] | None) -> list[str]:
    if isinstance(validator, OrNull):
        return _allowed(validator.validator)
    return [value for value in validator.allowed if value] if isinstance(validator, OneOf) else []
