"""Learns the exact versions of Java plugins, which only an instance of each class knows, and which of them cannot be created.

A Java process does it once for each plugin location, until a jar of it changes. Without a Java runtime, or without the jars of
Connect's runtime, the versions stay those of the jars.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from sluiceway.errors import ConnectError, MissingToolError
from sluiceway.java_plugins.hosts import HostSlot
from sluiceway.java_plugins.index import PluginIndex
from sluiceway.java_plugins.location_scan import LocationScan

log = logging.getLogger(__name__)

# The process creates all plugins of a worker, so it needs some memory but no speed.
_JAVA_OPTS = "-Xmx128m -XX:TieredStopAtLevel=1"
_SECONDS = 60.0

_lock = threading.Lock()
_tried: set[Path] = set()


def check_versions(index: PluginIndex, locations: Iterable[Path]) -> None:
    """Replace the versions in these locations by exact ones, and note the plugins that cannot be created.

    Does nothing for locations without plugins and for those that were checked before. A location that fails is not tried again
    by this process. Never raises.
    """
    with _lock:
        wanted = [place for place in locations if place not in _tried and _needs_check(index.scan(place))]
        if not wanted:
            return
        _tried.update(wanted)
        slot = HostSlot("plugin versions", _JAVA_OPTS)
        try:
            for location in wanted:
                index.replace_scan(location, _checked(slot, index, location))
        except MissingToolError as error:
            log.warning("The versions of Java plugins are those in the names of their jars. %s", error)
        finally:
            slot.close()


def _needs_check(scan: LocationScan) -> bool:
    return bool(scan.versions) and not scan.checked


def _checked(slot: HostSlot, index: PluginIndex, location: Path) -> LocationScan:
    """Return the location's scan with exact versions. Raises MissingToolError if there is no Java or no runtime."""
    scan = index.scan(location)
    jars = [str(jar) for jar in index.locations[location]]
    names = list(scan.versions)
    plugins: list[dict[str, object]] = [{"class": name, "location": str(location), "jars": jars} for name in names]
    try:
        answers: list[dict[str, str]] = _ask(slot, plugins)
    except MissingToolError:
        raise
    except ConnectError as error:  # a plugin ended the process, or does not return
        slot.close()
        problem = f"The plugins cannot be created: {error}"
        log.warning("Plugin location %s: %s", location, problem)
        return replace(scan, problems=[*scan.problems, problem])
    broken = {name: answer["error"] for name, answer in zip(names, answers, strict=True) if "error" in answer}
    for name, cause in broken.items():
        log.warning("Plugin location %s: %s cannot be created: %s", location, name, cause)
    versions = {name: answer.get("version", scan.versions[name]) for name, answer in zip(names, answers, strict=True)}
    return replace(scan, versions=versions, broken=broken, checked=True)


def _ask(slot: HostSlot, plugins: list[dict[str, object]]) -> Any:
    host = slot.host()
    helper = host.new("plugins", None)

    def limit(seconds: float) -> None:
        if seconds > _SECONDS:
            host.kill()
            raise ConnectError(f"they took longer than {_SECONDS:.0f} s")

    return helper.call("versions", {"plugins": plugins}, watch=limit)
