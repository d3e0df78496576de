"""Finds installed plugins by the names that configs use, and describes them for the REST API. Imports them; no other I/O."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from sluiceway.api import Converter, HeaderConverter, Predicate, SinkConnector, SourceConnector, Transform
from sluiceway.config.definition import PluginClass
from sluiceway.config.similar_classes import with_similar_classes
from sluiceway.discovery import all_named, installed_plugins, java_name, language_of, load, plugin_named, version_of
from sluiceway.errors import ConfigError, NotFoundError
from sluiceway.java.version_range import VersionRange, version_key

_KAFKA = "org.apache.kafka."
_INTERFACES = {
    "org.apache.kafka.connect.storage.Converter": Converter,
    "org.apache.kafka.connect.storage.HeaderConverter": HeaderConverter,
    "org.apache.kafka.connect.transforms.Transformation": Transform,
    "org.apache.kafka.connect.transforms.predicates.Predicate": Predicate,
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A plugin type: its base class, its name in the REST API, its entry point group and Connect's name of its interface."""

    base: type
    type: str
    group: str
    interface: str


SOURCE = Kind(SourceConnector, "source", "sluiceway.connectors", "Connector")
SINK = Kind(SinkConnector, "sink", "sluiceway.connectors", "Connector")
CONVERTER = Kind(Converter, "converter", "sluiceway.converters", "Converter")
HEADER_CONVERTER = Kind(HeaderConverter, "header_converter", "sluiceway.header_converters", "HeaderConverter")
TRANSFORMATION = Kind(Transform, "transformation", "sluiceway.transforms", "Transformation")
PREDICATE = Kind(Predicate, "predicate", "sluiceway.predicates", "Predicate")

KINDS = (CONVERTER, HEADER_CONVERTER, PREDICATE, SINK, SOURCE, TRANSFORMATION)
"""All kinds, in the order in which the REST API lists plugins."""


def installed_classes(kind: Kind) -> list[type]:
    """Return all installed plugins of a kind, sorted by name and version."""
    found: dict[tuple[str, str], type] = {}
    for group in _groups(kind):
        for cls in installed_plugins(group):
            if is_a(cls, kind):
                found.setdefault((java_name(cls), version_of(cls)), cls)
    return [found[key] for key in sorted(found, key=lambda key: (key[0], version_key(key[1])))]


def is_a(cls: type | None, kind: Kind) -> bool:
    """Return whether a class is a plugin of a kind. Connect's own converters are header converters too."""
    if cls is None:
        return False
    if kind is HEADER_CONVERTER and issubclass(cls, Converter):
        return java_name(cls).startswith(_KAFKA)
    return issubclass(cls, kind.base)


def installed_names(type_: str) -> list[str]:
    """Return the names of the plugins that are installed here, by the name of their kind in the REST API."""
    return [java_name(cls) for kind in KINDS if kind.type == type_ for cls in installed_classes(kind)]


def described(error: Exception) -> str:
    """Return an error's text, with the installed class that a misspelled one may mean."""
    return with_similar_classes(str(error), installed_names)


def plugin_class(name: str, wanted: VersionRange | None = None) -> PluginClass:
    """Return the plugin of any kind that a config names by full name or alias, with a version in the range if there is one.

    Raises ConfigError if there is none. A name that lacks ``$Key`` or ``$Value`` returns both as variants, which Connect's
    error message lists.
    """
    for kind in KINDS:
        if cls := plugin_named(kind.group, name, wanted):
            return PluginClass(java_name(cls), cls)
    if name in _INTERFACES:
        return PluginClass(name, _INTERFACES[name])
    variants = sorted(java for java in map(java_name, installed_classes(TRANSFORMATION)) if name and java.startswith(f"{name}$"))
    if variants:
        return PluginClass(name, None, tuple(variants))
    try:
        found = load(name)
    except NotFoundError:
        found = None
    if not isinstance(found, type):
        raise ConfigError(f"Class {name} could not be found.")
    return PluginClass(java_name(found), found)


def unusable_reason(plugin: PluginClass, kind: Kind) -> str | None:
    """Return Connect's error for a class that cannot be used as a plugin of a kind, or None."""
    if plugin.cls is not None and not is_a(plugin.cls, kind):
        return f"Class {plugin} does not implement the {kind.interface} interface"
    if plugin.cls is None or inspect.isabstract(plugin.cls):
        meant = f" Did you mean {', '.join(plugin.variants)}?" if plugin.variants else ""
        return f"This class is abstract and cannot be created.{meant}"
    return None


def version_mismatch(cls: type, wanted: VersionRange | None) -> str | None:
    """Return Connect's error if the requested version of a plugin is not installed, or None."""
    if wanted is None or version_of(cls) in wanted:
        return None
    found = ", ".join(versions(cls))
    return f"Plugin {java_name(cls)} not found that matches the version range {wanted}, available versions: [{found}]"


def versions(cls: type) -> list[str]:
    """Return a plugin's versions, once for each of its kinds, as Connect lists them."""
    found: list[str] = []
    for kind in KINDS:
        found += dict.fromkeys(version_of(each) for each in _named(java_name(cls), kind))
    return sorted(found, key=version_key) or [version_of(cls)]


def classes_named(name: str) -> list[type]:
    """Return the classes of any kind with this full name: for each kind the preferred one first, and each version."""
    return [each for kind in KINDS for each in _named(name, kind)]


def used_languages(kind: Kind) -> dict[str, str]:
    """Return the language of the class that configs get, by name, of those names that have a class in Python and one in Java."""
    languages: dict[str, set[str]] = {}
    for group in _groups(kind):
        for cls in installed_plugins(group):
            if is_a(cls, kind):
                languages.setdefault(java_name(cls), set()).add(language_of(cls))
    twice = [name for name, found in languages.items() if len(found) > 1]
    return {name: language_of(used) for name in twice for used in _named(name, kind)[:1]}


def _named(name: str, kind: Kind) -> list[type]:
    return [each for group in _groups(kind) for each in all_named(group, name) if is_a(each, kind)]


def _groups(kind: Kind) -> tuple[str, ...]:
    return (CONVERTER.group, HEADER_CONVERTER.group) if kind is HEADER_CONVERTER else (kind.group,)
