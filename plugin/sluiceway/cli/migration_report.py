"""Decides which plugins the connectors of one cluster get on another one, and whether they can move. No I/O."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sluiceway.cli.findings import Findings
from sluiceway.cli.output import Rows
from sluiceway.config.masking import masked
from sluiceway.config.plugin_keys import CONVERTERS, plugin_keys

PYTHON, JAVA, MISSING = "Python", "Java", "missing"

_SUFFIXES = ("Connector", "HeaderConverter", "Converter", "Transformation", "Predicate")


@dataclass(frozen=True)
class Implementation:
    """The plugin that a cluster uses for a class: its language, version, and folder or jar if the cluster says so."""

    language: str
    version: str = ""
    location: str | None = None


@dataclass(frozen=True)
class Part:
    """A plugin that a connector's config names."""

    key: str
    class_name: str
    there: str
    """Its version on the cluster that has the connector; empty if that is unknown."""
    here: Implementation | None
    """Its implementation on the target; None if the target has none."""

    @property
    def text(self) -> str:
        """The implementation that the target uses, such as ``Java 3.7.0.Final (source: 3.6.0.Final)``."""
        if self.here is None:
            return MISSING
        if self.here.language == PYTHON:
            return PYTHON
        other = self.there and self.there != self.here.version
        return f"{JAVA} {self.here.version or 'without version'}" + (f" (source: {self.there})" if other else "")

    def to_json(self) -> dict[str, Any]:
        found = {"key": self.key, "class": self.class_name, "source_version": self.there or None}
        if self.here is None:
            return {**found, "implementation": MISSING}
        version, location = self.here.version or None, self.here.location
        return {**found, "implementation": self.here.language.lower(), "version": version, "location": location}


@dataclass(frozen=True)
class ConnectorReport:
    """The result for one connector: whether and by which implementations the target can run it."""

    name: str
    type: str
    state: str
    parts: Sequence[Part]
    findings: Findings
    inherited: Sequence[str] = field(default=())
    """Converter keys that it takes from the worker's config."""
    differing: Sequence[str] = field(default=())
    """Keys in which the worker files differ so that it would have other bytes on the target, and that nobody has accepted."""
    becomes: str | None = None
    """The state that a move which has not ended gives it on the target."""
    has_moved: bool = False
    """Whether it is stopped on the source, and not on the target."""

    @property
    def missing(self) -> list[Part]:
        return [part for part in self.parts if part.here is None]

    @property
    def movable(self) -> bool:
        return not self.missing and not self.findings.errors and not self.differing

    def row(self) -> tuple[str, ...]:
        """Return the connector's row below ``HEAD``."""
        connector, *others = self.parts
        more = sorted({part.text for part in others} - {connector.text}, key=lambda text: (text != MISSING, text))
        here = "; ".join((connector.text, *(f"others {text}" for text in more)))
        state = self.state if self.becomes is None else f"{self.state}, to be {self.becomes}"
        return self.name, self.type, state, connector.class_name, here, self._can_move()

    def _can_move(self) -> str:
        if not self.movable:
            return "no"
        return "goes on" if self.becomes is not None else "has moved" if self.has_moved else "yes"

    def details(self) -> list[str]:
        """Return lines about what is missing, wrong or without effect."""
        lines = [
            f"  missing  {part.key}={part.class_name}{f', version {part.there} at the source' if part.there else ''}: give "
            "its folder in the source's plugin.path, its archive, or its Maven coordinates to 'sluiceway plugins install', and "
            "restart the target's REST API"
            for part in self.missing
        ]
        lines += [f"  differs  {key} of the worker files, see above: other bytes at the target" for key in self.differing]
        for kind, found in (("error", self.findings.errors), ("warning", self.findings.warnings)):
            for each in found:
                value = "" if each.value is None else f"={each.value}"
                lines.append(f"  {kind:<7}  {each.key}{value}: {each.text}")
        return [f"\n{self.name}:", *lines] if lines else []

    def to_json(self) -> dict[str, Any]:
        return {
            **self.findings.to_json(),
            "name": self.name,
            "type": self.type,
            "state": self.state,
            "movable": self.movable,
            "becomes": self.becomes,
            "has_moved": self.has_moved,
            "plugins": [part.to_json() for part in self.parts],
            "worker_converters": list(self.inherited),
            "worker_differences": list(self.differing),
        }


HEAD = ("NAME", "TYPE", "STATE", "CLASS", "ON THE TARGET", "CAN MOVE")


def version_there(plugins: Sequence[Mapping[str, Any]], name: str) -> str:
    """Return the newest version of a class or alias in the source's list of plugins; empty if the list has none."""
    versions = [str(each.get("version") or "") for each in plugins if is_named(each["class"], name)]
    return versions[-1] if versions else ""


def is_named(class_name: str, name: str) -> bool:
    """Return whether a config's full class name or alias means a class."""
    simple = class_name.rpartition(".")[2]
    return name in (class_name, simple, *(simple.removesuffix(suffix) for suffix in _SUFFIXES))


def connector_report(
    info: Mapping[str, Any],
    state: str,
    source_plugins: Sequence[Mapping[str, Any]],
    implementations: Mapping[str, Implementation | None],
    findings: Findings,
) -> ConnectorReport:
    """Return the report of one connector.

    Args:
        info: its entry in ``GET /connectors?expand=info`` of the source.
        state: the connector's state on the source.
        source_plugins: the source's list of plugins.
        implementations: the target's plugin for each key of ``plugin_keys``.
        findings: those of the target's validation. Errors about keys whose plugin is missing are left out.
    """
    config = info["config"]
    parts = [
        Part(key, name, version_there(source_plugins, name), implementations[key]) for key, name in plugin_keys(config).items()
    ]
    missing = {part.key for part in parts if part.here is None}
    errors = [each for each in findings.errors if each.key not in missing]
    found = replace(findings, errors=errors)
    inherited = [key for key in CONVERTERS[:2] if not config.get(key)]
    return ConnectorReport(info["name"], info.get("type") or "", state, parts, found, inherited)


def report_rows(reports: Sequence[ConnectorReport]) -> Rows:
    return [HEAD, *(report.row() for report in reports)]


def worker_notes(
    reports: Sequence[ConnectorReport],
    worker_config: Mapping[str, str] | None,
    passwords: Container[str] = (),
    *,
    compared: bool = False,
) -> list[str]:
    """Return remarks about settings that are not in the connectors' configs, but in the file of the source's workers.

    ``passwords`` are the keys of type password in that file. ``compared`` is whether the target's file is known, too.
    """
    notes = []
    inheriting = [report.name for report in reports if report.inherited]
    if inheriting and not compared:
        known = "" if worker_config is None else f": {_settings(worker_config, passwords)}"
        notes.append(
            f"{len(inheriting)} connector(s) use the converters of the worker file ({', '.join(inheriting)}). "
            f"The target's worker file must have the same{known}."
        )
    if worker_config is None:
        return notes
    topics = ", ".join(worker_config.get(f"{kind}.storage.topic", "?") for kind in ("config", "offset", "status"))
    notes.append(f"Internal topics of the source: {topics}; group.id={worker_config.get('group.id', '?')}.")
    if worker_config.get("config.providers") and not compared:
        notes.append(f"The target's worker file must have the same config.providers={worker_config['config.providers']}.")
    return notes


def is_shared(source: Mapping[str, Mapping[str, Any]], target: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether both clusters use the same internal topics.

    Args:
        source, target: statuses of all connectors by name. A status has the id of the worker that wrote it, so all
            connectors have the same id on both only if both read the same status topic.
    """
    common = source.keys() & target.keys()
    return bool(common) and all(_worker_id(source[name]) == _worker_id(target[name]) for name in common)


def _worker_id(status: Mapping[str, Any]) -> str:
    return str(status["connector"].get("worker_id") or id(status))


def _settings(worker_config: Mapping[str, str], passwords: Container[str]) -> str:
    prefixes = tuple(f"{key}." for key in CONVERTERS)
    found = {key: value for key, value in worker_config.items() if key in CONVERTERS or key.startswith(prefixes)}
    return ", ".join(f"{key}={value}" for key, value in masked(found, passwords).items())
