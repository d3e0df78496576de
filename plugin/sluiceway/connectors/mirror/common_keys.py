"""The keys that every connector has, as a mirror declares them once more: without what a worker adds to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sluiceway.api import Converter, HeaderConverter
from sluiceway.config.connector import CONNECTOR, HEADER_CONVERTER, KEY_CONVERTER, VALUE_CONVERTER
from sluiceway.config.definition import ConfigValue, PluginClass, Recommender
from sluiceway.config.validators import Check
from sluiceway.connectors.mirror.classes import known_class
from sluiceway.errors import ConfigError

_KINDS = {KEY_CONVERTER: "Converter", VALUE_CONVERTER: "Converter", HEADER_CONVERTER: "HeaderConverter"}
_BASES = {"Converter": (Converter,), "HeaderConverter": (HeaderConverter, Converter)}


def _a_converter(name: str, value: ConfigValue) -> None:
    kind = _KINDS[name]
    if isinstance(value, PluginClass) and not (value.cls is not None and issubclass(value.cls, _BASES[kind])):
        raise ConfigError(f"Class {value} does not implement the {kind} interface")


def _shown_with_converter(name: str, values: Mapping[str, ConfigValue]) -> bool:
    return values.get(name.removesuffix(".plugin.version")) is not None


COMMON = CONNECTOR.replace(
    *(replace(CONNECTOR[name], loader=known_class, validator=Check(_a_converter, f"a {kind}")) for name, kind in _KINDS.items()),
    *(replace(CONNECTOR[f"{name}.plugin.version"], recommender=Recommender(visible=_shown_with_converter)) for name in _KINDS),
)
