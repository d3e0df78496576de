"""Finds the plugins of one plugin location and keeps the result in the cache folder until a jar changes."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sluiceway.discovery import CONNECT_VERSION, UNDEFINED_VERSION
from sluiceway.folders import cache_home, write_atomically
from sluiceway.java_plugins.class_files import ClassPath
from sluiceway.java_plugins.plugin_types import SERVICES, PluginTypes

log = logging.getLogger(__name__)

_FORMAT = 2
_KAFKA = "org.apache.kafka."
_IMPLEMENTATION = re.compile(r"^Implementation-Version:\s*(\S+)", re.MULTILINE)
_FILE_NAME = re.compile(r"-(\d[\w.+-]*)\.(?:jar|zip)$")


@dataclass(slots=True)
class LocationScan:
    """The plugins in the jars of a plugin location, by class name."""

    kinds: dict[str, list[str]] = field(default_factory=dict)
    """The kinds of plugins that each class is, by its supertypes."""
    listed: dict[str, list[str]] = field(default_factory=dict)
    """Those that a ServiceLoader manifest lists."""
    versions: dict[str, str] = field(default_factory=dict)
    """The version of each class: that of its jar, until ``checked``."""
    java_versions: dict[str, int] = field(default_factory=dict)
    """The oldest Java version that can load each class."""
    problems: list[str] = field(default_factory=list)
    """The errors in the jars and manifests."""
    broken: dict[str, str] = field(default_factory=dict)
    """Why a class cannot be created, by class."""
    checked: bool = False
    """Whether ``versions`` and ``broken`` come from instances of the classes."""


def scan_location(jars: Sequence[Path]) -> LocationScan:
    """Read the manifests and all class files of a location's jars."""
    with ClassPath(jars) as classes:
        types = PluginTypes(classes)
        scan = LocationScan({name: sorted(kinds) for name, kinds in types.scan().items()})
        listed = services(classes)
        incomplete = types.incomplete(listed)
        scan.problems += [
            f"{name} extends {missing}, which no jar of it has. Add the jars that it depends on."
            for name, missing in incomplete.items()
        ]
        for name in sorted(listed.keys() - incomplete):
            if not listed[name] & types.usable_as(name):
                scan.problems.append(f"META-INF/services lists {name}, which is no plugin of this location.")
        _describe(scan, classes, jars, listed)
        scan.problems += classes.problems
    return scan


def scan_class(jars: Sequence[Path], name: str) -> LocationScan:
    """Return the part of a location's scan that is about one class, without reading the others."""
    with ClassPath(jars) as classes:
        kinds = PluginTypes(classes).usable_as(name)
        scan = LocationScan({name: sorted(kinds)} if kinds else {})
        if kinds:
            _describe(scan, classes, jars, services(classes))
    return scan


def _describe(scan: LocationScan, classes: ClassPath, jars: Sequence[Path], listed: Mapping[str, set[str]]) -> None:
    """Add what is known of each class of the scan."""
    of_jar = jar_versions(classes, jars)
    for name, kinds in scan.kinds.items():
        scan.listed[name] = sorted(listed.get(name, set()).intersection(kinds))
        scan.versions[name] = presumed_version(name, of_jar.get(classes.jar_of(name) or ""), CONNECT_VERSION)
        header = classes.header(name)
        scan.java_versions[name] = header.java_version if header else 0


def load_scan(location: Path, jars: Sequence[Path]) -> LocationScan | None:
    """Return the stored scan of a location if no jar has changed since, else None."""
    try:
        stored: dict[str, Any] = json.loads(_cache_file(location).read_text())
        if stored.pop("format") == _FORMAT and stored.pop("jars") == _stamps(jars):
            return LocationScan(**stored)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.debug("Ignoring the stored scan of %s: %s", location, error)
    return None


def store_scan(location: Path, jars: Sequence[Path], scan: LocationScan) -> None:
    """Store the scan of a location. A cache folder that cannot be written only costs time."""
    document = {"format": _FORMAT, "jars": _stamps(jars), **asdict(scan)}
    try:
        write_atomically(_cache_file(location), json.dumps(document, indent=1))
    except OSError as error:
        log.debug("The scan of %s is not stored: %s", location, error)


def _cache_file(location: Path) -> Path:
    key = hashlib.sha256(str(location).encode()).hexdigest()[:16]
    return cache_home() / "java-plugins" / "scans" / f"{key}.json"


def _stamps(jars: Sequence[Path]) -> Mapping[str, list[int]]:
    """Return size and time of change of each jar. Raises OSError for one that vanished."""
    found = {}
    for jar in jars:
        stat = jar.stat()
        found[str(jar)] = [stat.st_size, stat.st_mtime_ns]
    return found


def services(classes: ClassPath) -> dict[str, set[str]]:
    """Return the classes that the manifests list, each with the kinds of plugins it is listed as."""
    found: dict[str, set[str]] = {}
    for service, kind in SERVICES.items():
        for _jar, text in classes.text(f"META-INF/services/{service}"):
            for line in text.splitlines():
                name = line.partition("#")[0].strip()
                if name:
                    found.setdefault(name, set()).add(kind)
    return found


def jar_versions(classes: ClassPath, jars: Sequence[Path]) -> dict[str, str]:
    """Return the version of each jar by its path: that of its manifest, or the one in its file name."""
    manifests = dict(classes.text("META-INF/MANIFEST.MF"))
    found: dict[str, str] = {}
    for jar in map(str, jars):
        match = _IMPLEMENTATION.search(manifests.get(jar, "")) or _FILE_NAME.search(jar)
        if match:
            found[jar] = match[1]
    return found


def presumed_version(name: str, jar_version: str | None, connect_version: str) -> str:
    """Return a plugin's probable version. Only an instance of the class can tell for certain."""
    return connect_version if name.startswith(_KAFKA) else jar_version or UNDEFINED_VERSION
