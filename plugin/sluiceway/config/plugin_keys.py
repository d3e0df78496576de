"""Finds the keys of a connector's config that name plugins. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sluiceway.config.connector import CONNECTOR_CLASS, CONNECTOR_VERSION
from sluiceway.config.parsing import parse_list

CLASS = CONNECTOR_CLASS
CONVERTERS = ("key.converter", "value.converter", "header.converter")
STAGES = ("transforms", "predicates")
IN_PYTHON, IN_JAVA = "python", "java"
"""The languages of plugins, as the REST API names them."""

_STAGE = re.compile(rf"({'|'.join(STAGES)})\.[^.]+\.type")


def plugin_keys(config: Mapping[str, str]) -> dict[str, str]:
    """Return the class names in a config by key: first the connector, then converters, transforms and predicates."""
    found = {CLASS: config.get(CLASS, "")}
    found |= {key: config[key] for key in CONVERTERS if config.get(key)}
    listed = {f"{kind}.{alias}.type" for kind in STAGES for alias in parse_list(config.get(kind))}  # an alias may have dots
    return found | {key: value for key, value in config.items() if value and (key in listed or _STAGE.fullmatch(key))}


def prefix_of(key: str) -> str:
    """Return what the keys of a plugin begin with, of which ``key`` names the class: nothing for the connector."""
    if key == CLASS:
        return ""
    return f"{key}." if key in CONVERTERS else f"{key.rpartition('.')[0]}."


def wanted_version(config: Mapping[str, str], key: str) -> str | None:
    """Return the version or range that a config asks for, of the plugin that a key names (KIP-891)."""
    return config.get(CONNECTOR_VERSION if key == CLASS else f"{prefix_of(key)}plugin.version")
