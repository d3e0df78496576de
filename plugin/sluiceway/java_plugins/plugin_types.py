"""Tells which classes of a plugin's jars Kafka Connect takes for plugins, by their supertypes. Starts no JVM.

The result is that of Connect's own scan of the classes (``plugin.discovery=only_scan``), except that Connect leaves out classes
whose constructor fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sluiceway.java_plugins.class_files import ClassHeader, ClassPath, name_constant

SERVICES = {
    "org.apache.kafka.connect.source.SourceConnector": "source",
    "org.apache.kafka.connect.sink.SinkConnector": "sink",
    "org.apache.kafka.connect.storage.Converter": "converter",
    "org.apache.kafka.connect.storage.HeaderConverter": "header_converter",
    "org.apache.kafka.connect.transforms.Transformation": "transformation",
    "org.apache.kafka.connect.transforms.predicates.Predicate": "predicate",
    "org.apache.kafka.common.config.provider.ConfigProvider": "configprovider",
}
"""The kinds of plugins by Kafka's interface or base class; the kinds' names are those of the REST API."""

_PACKAGES = (b"org/apache/kafka/connect/", b"org/apache/kafka/common/config/provider/")

_CONVERTERS = frozenset({"converter", "header_converter"})
# Classes of Kafka that a plugin may extend but that are not in the plugin's jars.
_KAFKA = (
    (re.compile(r"org\.apache\.kafka\.connect\.transforms\.[A-Z]\w*(\$\w+)?"), frozenset({"transformation"})),
    (re.compile(r"org\.apache\.kafka\.connect\.transforms\.predicates\.[A-Z]\w*"), frozenset({"predicate"})),
    (re.compile(r"org\.apache\.kafka\.connect\.(json|converters|storage)\.(\w+)Converter"), _CONVERTERS),
    (re.compile(r"org\.apache\.kafka\.connect\.(file|mirror)\.\w+SourceConnector"), frozenset({"source"})),
    (re.compile(r"org\.apache\.kafka\.connect\.mirror\.Mirror\w+Connector"), frozenset({"source"})),
    (re.compile(r"org\.apache\.kafka\.connect\.file\.\w+SinkConnector"), frozenset({"sink"})),
    (re.compile(r"org\.apache\.kafka\.common\.config\.provider\.\w+Provider"), frozenset({"configprovider"})),
)
_OF_OTHERS = ("java.", "javax.", "org.apache.kafka.")
"""The packages that plugins need not have."""

_HEADERS_ONLY = "org.apache.kafka.connect.storage.SimpleHeaderConverter"

# Kafka's classes come from the worker, even if a plugin's jars have them too, except its plugins.
_OF_WORKER = re.compile(
    r"org\.apache\.kafka\.(?!"
    r"connect\.transforms\.(?!Transformation$|predicates\.Predicate$)"
    r"|connect\.(json|file|mirror|mirror-client|converters)\."
    r"|connect\.storage\.(StringConverter|SimpleHeaderConverter)$"
    r"|common\.config\.provider\.(?!ConfigProvider$))"
)


class PluginTypes:
    """The kinds of plugins that the classes of one plugin location are."""

    def __init__(self, classes: ClassPath) -> None:
        self._classes = classes
        self._kinds: dict[str, frozenset[str]] = {name: frozenset({kind}) for name, kind in SERVICES.items()}
        self._connectors: set[str] = set()

    def usable_as(self, name: str) -> frozenset[str]:
        """Return the kinds of plugins that Connect would create from a class: none for abstract or private ones."""
        header = self._classes.header(name)
        if header is None or not _can_be_created(header) or _OF_WORKER.match(name):
            return frozenset()
        return self._of(name)

    def scan(self) -> dict[str, frozenset[str]]:
        """Return all plugin classes with their kinds, sorted by name."""
        types: set[str] = set()
        wanted: list[bytes] = list(_PACKAGES)
        while wanted:
            found = list(self._classes.mentioning(wanted))
            self._connectors |= {each.name for each in found if each.name.endswith("Connector") and _can_be_created(each)}
            new = {header.name for header in found if self._of(header.name)} - types
            types |= new
            # A class that extends one of these need not mention Connect itself.
            wanted = [name_constant(name) for name in sorted(new)]
        usable = {name: self.usable_as(name) for name in sorted(types)}
        return {name: kinds for name, kinds in usable.items() if kinds}

    def incomplete(self, listed: Iterable[str]) -> dict[str, str]:
        """Return the classes that are no plugins because a superclass is in none of the jars, each with that superclass.

        These are the listed ones and, after a scan, those that are named like connectors.
        """
        found = {name: self._missing(name) for name in sorted({*listed, *self._connectors}) if not self._of(name)}
        return {name: missing for name, missing in found.items() if missing is not None and missing != name}

    def _missing(self, name: str) -> str | None:
        header = self._classes.header(name)
        if header is None:
            return None if name.startswith(_OF_OTHERS) else name
        return next((found for each in header.supertypes if (found := self._missing(each)) is not None), None)

    def _of(self, name: str) -> frozenset[str]:
        found = self._kinds.get(name)
        if found is None:
            self._kinds[name] = frozenset()  # ends a cycle, which only a broken jar has
            header = self._classes.header(name)
            found = _of_kafka(name) if header is None else frozenset().union(*map(self._of, header.supertypes))
            self._kinds[name] = found
        return found


def _can_be_created(header: ClassHeader) -> bool:
    return header.is_public and not header.is_abstract and header.has_default_constructor


def _of_kafka(name: str) -> frozenset[str]:
    if name == _HEADERS_ONLY:
        return frozenset({"header_converter"})
    return next((kinds for pattern, kinds in _KAFKA if pattern.fullmatch(name)), frozenset())
