"""Finds the Java plugins of ``plugin.path`` by class name, alias, kind and version. Starts no JVM."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sluiceway.java.version_range import VersionRange, version_key
from sluiceway.java_plugins.layout import layout_problems, runtime_copies, unopened_archives
from sluiceway.java_plugins.location_scan import LocationScan, load_scan, scan_class, scan_location, store_scan
from sluiceway.java_plugins.locations import plugin_locations

log = logging.getLogger(__name__)

SERVICE_LOAD, HYBRID_WARN, HYBRID_FAIL = "service_load", "hybrid_warn", "hybrid_fail"
"""Values of ``plugin.discovery`` (KIP-898)."""

# The part of a class's simple name that its alias may leave out.
_SUFFIXES = {
    "source": "Connector",
    "sink": "Connector",
    "converter": "Converter",
    "header_converter": "HeaderConverter",
    "transformation": "Transformation",
    "predicate": "Predicate",
    "configprovider": "ConfigProvider",
}


@dataclass(frozen=True, slots=True, order=True)
class JavaPlugin:
    """One class in one plugin location, as one kind of plugin."""

    class_name: str
    kind: str
    """Its name in the REST API, such as ``source`` or ``transformation``."""
    version: str
    """Connect's ``undefined`` if it has none."""
    location: Path
    """The folder or archive directly below a folder of ``plugin.path``."""
    jars: tuple[Path, ...] = field(repr=False)
    """All jars of the location, which share a class loader."""
    in_manifest: bool = True
    """Whether a ServiceLoader manifest lists the class (KIP-898)."""

    @property
    def aliases(self) -> tuple[str, ...]:
        """The short names that configs may use. Nested classes have none."""
        simple = self.class_name.rpartition(".")[2]
        return () if "$" in simple else (simple, simple.removesuffix(_SUFFIXES[self.kind]))


class PluginIndex:
    """The Java plugins in the folders of one ``plugin.path``.

    A class that a config names in full is looked up in the directories of the jars, within milliseconds. Lists and aliases
    need a scan of all class files, once for each version of a jar. Plugins that are installed or removed later are noticed.
    """

    def __init__(self, folders: Sequence[Path], discovery: str = HYBRID_WARN) -> None:
        self._folders = tuple(folders)
        self._discovery = discovery
        self._found: dict[Path, tuple[Path, ...]] = {}
        self._changed: list[int] | None = None
        self._scans: dict[Path, LocationScan] = {}
        self._by_name: dict[str, list[JavaPlugin]] = {}

    @property
    def locations(self) -> dict[Path, tuple[Path, ...]]:
        """The jars of each plugin location."""
        changed = [_time_of_change(folder) for folder in self._folders]
        if changed != self._changed:
            self._found, self._changed = plugin_locations(self._folders), changed
            self._scans = {location: scan for location, scan in self._scans.items() if location in self._found}
            self._by_name = {}
        return self._found

    def plugins(self) -> list[JavaPlugin]:
        """Return the plugins that can be created, sorted by class, version and kind. Scans what has changed since last time."""
        found = ((self.scan(location), location, jars) for location, jars in self.locations.items())
        return _sorted(
            each
            for scan, place, jars in found
            for each in self._plugins_of(place, jars, scan)
            if each.class_name not in scan.broken
        )

    def find(self, name: str, kind: str | None = None, versions: VersionRange | None = None) -> JavaPlugin | None:
        """Return the newest plugin with this full name or alias, or None.

        As in Connect, an alias of several classes is the alias of none.

        Args:
            name: the class name in full, or an alias such as ``FileStreamSource``.
            kind: the wanted kind of plugin; default is any.
            versions: the acceptable versions; default is any.
        """
        found = [
            plugin
            for plugin in self.all_versions(name)
            if (kind is None or plugin.kind == kind) and (versions is None or plugin.version in versions)
        ]
        return found[-1] if found else None

    def all_versions(self, name: str) -> list[JavaPlugin]:
        """Return the plugins with this full name or alias, the newest last; of several kinds, one for each."""
        if "." in name:
            locations, known = self.locations, self._by_name
            if name not in known:
                known[name] = _sorted(self._named(name, locations))
            return known[name]
        found = [plugin for plugin in self.plugins() if name and name in plugin.aliases]
        classes = {plugin.class_name for plugin in found}
        if len(classes) > 1:
            log.warning("The alias %s is ignored, because several plugins have it: %s", name, ", ".join(sorted(classes)))
        return found if len(classes) == 1 else []

    def without_manifest(self) -> list[JavaPlugin]:
        """Return the plugins that no ServiceLoader manifest lists, which ``hybrid_fail`` refuses."""
        return [plugin for plugin in self.plugins() if not plugin.in_manifest]

    def problems(self) -> dict[Path, list[str]]:
        """Return what is wrong with jars, classes, and where they are, by location."""
        found: dict[Path, list[str]] = {}
        locations = self.locations
        for location in locations:
            scan = self.scan(location)
            problems = [*scan.problems, *(f"{name} cannot be created: {error}" for name, error in scan.broken.items())]
            found[location] = [*problems, *layout_problems(location, locations, scan)]
        for archive, problem in (each for folder in self._folders for each in unopened_archives(folder)):
            found.setdefault(archive, []).append(problem)
        return {location: problems for location, problems in found.items() if problems}

    def notes(self) -> dict[Path, str]:
        """Return what is needless in locations, but does no harm to most plugins."""
        found = {location: runtime_copies(location, jars) for location, jars in self.locations.items()}
        return {location: note for location, note in found.items() if note is not None}

    def scan(self, location: Path) -> LocationScan:
        """Return what a location has; from the cache folder unless a jar has changed."""
        if location not in self._scans:
            jars = self.locations.get(location, ())  # none if it was removed a moment ago
            stored = load_scan(location, jars)
            if stored is None:
                log.info("Scanning %d jars of %s for Java plugins", len(jars), location)
                stored = scan_location(jars)
                store_scan(location, jars, stored)
                for problem in stored.problems:
                    log.warning("Plugin location %s: %s", location, problem)
            self._scans[location] = stored
        return self._scans[location]

    def replace_scan(self, location: Path, scan: LocationScan) -> None:
        """Store a scan whose versions Connect's runtime has checked."""
        store_scan(location, self.locations.get(location, ()), scan)
        self._scans[location] = scan
        self._by_name.clear()

    def _named(self, name: str, locations: Mapping[Path, tuple[Path, ...]]) -> Iterator[JavaPlugin]:
        """Yield a class's plugins. Locations that have not been scanned are not scanned for it."""
        for location, jars in locations.items():
            scan = self._scans.get(location) or load_scan(location, jars) or scan_class(jars, name)
            yield from (plugin for plugin in self._plugins_of(location, jars, scan) if plugin.class_name == name)

    def _plugins_of(self, location: Path, jars: tuple[Path, ...], scan: LocationScan) -> Iterator[JavaPlugin]:
        for name, version in scan.versions.items():
            for kind in scan.listed[name] if self._discovery == SERVICE_LOAD else scan.kinds[name]:
                yield JavaPlugin(name, kind, version, location, jars, kind in scan.listed[name])


def _time_of_change(folder: Path) -> int:
    """Return when the last entry of a folder was added or removed, in nanoseconds; 0 if the folder is missing."""
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0


def _sorted(plugins: Iterable[JavaPlugin]) -> list[JavaPlugin]:
    return sorted(plugins, key=lambda each: (each.class_name, version_key(each.version), str(each.location), each.kind))
