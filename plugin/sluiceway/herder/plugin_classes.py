"""The plugins that are installed here, as configs name them and as REST tells of them. Imports them; no other I/O."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from sluiceway import __version__
from sluiceway.api import Converter, HeaderConverter, Predicate, SinkConnector, SourceConnector, Transform
from sluiceway.config.definition import PluginClass
from sluiceway.discovery import load, plugin_named, plugins
from sluiceway.errors import ConfigError, NotFoundError
from sluiceway.java.version_range import VersionRange

CONNECT_VERSION = "4.3.0"
"""The Kafka Connect whose plugins ours stand in for, and whose API REST serves."""

_KAFKA = "org.apache.kafka."
_INTERFACES = {
    "org.apache.kafka.connect.storage.Converter": Converter,
    "org.apache.kafka.connect.storage.HeaderConverter": HeaderConverter,
    "org.apache.kafka.connect.transforms.Transformation": Transform,
    "org.apache.kafka.connect.transforms.predicates.Predicate": Predicate,
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of plugin: its base class, REST's name for it, the entry point group, and what Connect calls its interface."""

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
"""In the order in which REST lists plugins."""


def java_name(cls: type) -> str:
    """Return a class's name as Kafka Connect would show it: that of the Java class it stands for, if any."""
    return getattr(cls, "java_class", None) or f"{cls.__module__}.{cls.__qualname__}"


def version_of(cls: type) -> str:
    """Return a plugin's version; what stands in for one of Kafka's has the version of that Kafka."""
    if java_name(cls).startswith(_KAFKA):
        return CONNECT_VERSION
    version = getattr(cls, "version", None)
    return str(version()) if callable(version) else __version__


def listed(kind: Kind) -> list[type]:
    """Return all installed plugins of a kind, sorted by name."""
    found = {java_name(cls): cls for group in _groups(kind) for cls in plugins(group).values() if is_a(cls, kind)}
    return [found[name] for name in sorted(found)]


def is_a(cls: type | None, kind: Kind) -> bool:
    """Whether a class is a plugin of a kind. Those of Connect's converters serve for headers too."""
    if cls is None:
        return False
    if kind is HEADER_CONVERTER and issubclass(cls, Converter):
        return java_name(cls).startswith(_KAFKA)
    return issubclass(cls, kind.base)


def plugin_class(name: str) -> PluginClass:
    """Return the class that a config names, of whichever kind: by full name, or by alias where that is clear.

    Raises ConfigError if there is none. A Java class that has a ``$Key`` and a ``$Value`` form is found without either, for
    Connect to say what was meant.
    """
    for kind in KINDS:
        if cls := plugin_named(kind.group, name):
            return PluginClass(java_name(cls), cls)
    if name in _INTERFACES:
        return PluginClass(name, _INTERFACES[name])
    variants = sorted(java for java in map(java_name, listed(TRANSFORMATION)) if name and java.startswith(f"{name}$"))
    if variants:
        return PluginClass(name, None, tuple(variants))
    try:
        found = load(name)
    except NotFoundError:
        found = None
    if not isinstance(found, type):
        raise ConfigError(f"Class {name} could not be found.")
    return PluginClass(java_name(found), found)


def misfit(plugin: PluginClass, kind: Kind) -> str | None:
    """Return why a class cannot serve as a plugin of a kind, in Connect's words, or None if it can."""
    if plugin.cls is not None and not is_a(plugin.cls, kind):
        return f"Class {plugin} does not implement the {kind.interface} interface"
    if plugin.cls is None or inspect.isabstract(plugin.cls):
        meant = f" Did you mean {', '.join(plugin.variants)}?" if plugin.variants else ""
        return f"This class is abstract and cannot be created.{meant}"
    return None


def no_such_version(cls: type, wanted: VersionRange | None) -> str | None:
    """Return what Connect says if a plugin is not there in a version that was asked for, or None if it is."""
    if wanted is None or version_of(cls) in wanted:
        return None
    found = ", ".join(versions(cls))
    return f"Plugin {java_name(cls)} not found that matches the version range {wanted}, available versions: [{found}]"


def versions(cls: type) -> list[str]:
    """Return a plugin's versions, once for each kind that it serves as; there is never more than one version of it here."""
    kinds = sum(cls in listed(kind) for kind in KINDS)
    return [version_of(cls)] * max(kinds, 1)


def _groups(kind: Kind) -> tuple[str, ...]:
    return (CONVERTER.group, HEADER_CONVERTER.group) if kind is HEADER_CONVERTER else (kind.group,)
