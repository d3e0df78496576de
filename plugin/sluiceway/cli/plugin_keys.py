"""Finds the keys of a connector's config that name plugins. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping

CLASS = "connector.class"
CONVERTERS = ("key.converter", "value.converter", "header.converter")

_STAGE = re.compile(r"(transforms|predicates)\.[^.]+\.type")


def plugin_keys(config: Mapping[str, str]) -> dict[str, str]:
    """Return the class names in a config by key: first the connector, then converters, transforms and predicates."""
    found = {CLASS: config.get(CLASS, "")}
    found |= {key: config[key] for key in CONVERTERS if config.get(key)}
    return found | {key: value for key, value in config.items() if _STAGE.fullmatch(key) and value}


def prefix_of(key: str) -> str:
    """Return what the keys of a plugin begin with, of which ``key`` names the class: nothing for the connector."""
    if key == CLASS:
        return ""
    return f"{key}." if key in CONVERTERS else f"{key.rpartition('.')[0]}."
