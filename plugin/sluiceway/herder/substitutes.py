"""Says which Python classes a config uses instead of Java classes in ``plugin.path``, and how to use those."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sluiceway.config.connector import CONNECTOR_CLASS, OWN, PREDICATES, TRANSFORMS
from sluiceway.config.definition import ConfigDef
from sluiceway.config.plugin_keys import IN_JAVA
from sluiceway.config.unknown_keys import READ_BY_RUNTIME
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import java_name, language_of, version_of
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.herder.enrichment import CONVERTERS, VERSION, Config, aliases, base_def
from sluiceway.herder.plugin_classes import classes_named, plugin_class
from sluiceway.java.version_range import VersionRange
from sluiceway.runtime.transforms.chain_config import CONDITION, TYPE

log = logging.getLogger(__name__)

_CONNECTOR = "connector."


class _Use(NamedTuple):
    """A class that a config names, and the prefix of the keys that go with it."""

    name: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Substitute:
    """A Python class that a config uses though ``plugin.path`` has the Java class of that name."""

    python: Any
    java: Any
    prefix: str = _CONNECTOR

    @property
    def text(self) -> str:
        """A sentence about the class that is used, and one on how to use the other."""
        version = version_of(self.java)
        wanted = VersionRange.parse(version)
        by_version = wanted is not None and version_of(self.python) not in wanted
        chosen = f"{self.prefix}{VERSION}={version} beside the class, or " if by_version else ""
        return (
            f"{java_name(self.python)} is Sluiceway's class in Python here, not the Java class in {self.java.plugin.location}. "
            f"To use the Java class, set {chosen}plugin.java=prefer in the worker file."
        )

    def text_for(self, config: Config) -> str:
        """Return the text with the keys of a config that only the Java class has. Starts a Java process if some may be such."""
        keys = self._only_in_java(config)
        return f"{self.text} Only the Java class has {', '.join(keys)}." if keys else self.text

    def _only_in_java(self, config: Config) -> list[str]:
        known, prefix = {key.name for key in getattr(self.python, "config_def", ConfigDef)()}, self.prefix
        if prefix == _CONNECTOR:
            known, prefix = known | {key.name for key in (*base_def(self.python), *OWN)}, ""
        else:
            known |= {TYPE, *(key.name for key in CONDITION)}
        own = (key.removeprefix(prefix) for key in config if key.startswith(prefix))
        asked = [key for key in own if key not in known and (prefix or not key.startswith(READ_BY_RUNTIME))]
        if not asked:
            return []
        try:
            in_java = {key.name for key in self.java.config_def()}
        except ConnectError as error:  # without a Java runtime, for example
            log.debug("The keys of the Java class %s are unknown: %s", java_name(self.java), error)
            return []
        return [prefix + key for key in asked if key in in_java]


def substitute_of(cls: type, prefix: str = _CONNECTOR) -> Substitute | None:
    """Return what a class is used for; None for a Java class, and for one that ``plugin.path`` does not have in Java."""
    if language_of(cls) == IN_JAVA or not getattr(cls, "java_class", None):
        return None
    java = next((each for each in classes_named(java_name(cls)) if language_of(each) == IN_JAVA), None)
    return None if java is None else Substitute(cls, java, prefix)


def substitutes(config: Config, worker: WorkerConfig) -> list[Substitute]:
    """Return the Python classes that a config uses instead of Java ones, without those whose version it chooses.

    Transforms and predicates of a Java connector run in Java with it.
    """
    found: list[Substitute] = []
    left_out: tuple[str, ...] = ()
    for use in _uses(config, worker):
        cls = _class_of(use)
        if cls is None or use.prefix.startswith(left_out):
            continue
        if use.prefix == _CONNECTOR and language_of(cls) == IN_JAVA:
            left_out = (f"{TRANSFORMS}.", f"{PREDICATES}.")
        substitute = None if config.get(f"{use.prefix}{VERSION}") else substitute_of(cls, use.prefix)
        found += [substitute] if substitute is not None else []
    return found


def warn_of_substitutes(name: str, config: Mapping[str, str], worker: WorkerConfig) -> None:
    """Log the Python classes that a connector uses instead of Java ones."""
    for each in substitutes(config, worker):
        log.warning("[%s|worker] %s", name, each.text_for(config))


def advice(config: Config, worker: WorkerConfig) -> str:
    """Return the notes for the error of a refused config: a line for each Python class that it uses instead of a Java one."""
    return "\n".join(each.text_for(config) for each in substitutes(config, worker))


def _uses(config: Config, worker: WorkerConfig) -> Iterator[_Use]:
    yield _Use(config.get(CONNECTOR_CLASS) or "", _CONNECTOR)
    for key in CONVERTERS:
        yield _Use(config.get(key) or worker.text(key), f"{key}.")
    for key in (TRANSFORMS, PREDICATES):
        for alias in aliases(key, config):
            yield _Use(config.get(f"{key}.{alias}.{TYPE}") or "", f"{key}.{alias}.")


def _class_of(use: _Use) -> type | None:
    try:
        return plugin_class(use.name.strip()).cls
    except ConfigError:  # the validation says so
        return None
