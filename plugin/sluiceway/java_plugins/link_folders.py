"""Makes the ``plugin.path`` of one JVM: a folder of links to the plugin locations that it needs.

With a manifest in each of them, Connect's runtime loads plugins with ``plugin.discovery=service_load``. Its own scan of the
class files would take seconds and hundreds of megabytes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from sluiceway.folders import cache_home
from sluiceway.java_plugins.index import JavaPlugin
from sluiceway.java_plugins.plugin_types import SERVICES

_MANIFESTS = "sluiceway-manifests.jar"
_SERVICE_OF = {kind: service for service, kind in SERVICES.items()}
# The same plugins give the same jar, whenever it is written.
_TIME = (1980, 1, 1, 0, 0, 0)


def link_folder(plugins: Iterable[JavaPlugin], parent: Path | None = None) -> Path:
    """Return a folder that has, as plugin locations, just those of these plugins.

    The folder is made once for each combination of plugins and jars, and kept. Several processes may call this at once.

    Args:
        plugins: the plugins that the JVM loads. Those without a manifest get one.
        parent: the folder to make it in; default is one in the cache folder, or a temporary one if it cannot be written.
    """
    locations: dict[Path, list[JavaPlugin]] = {}
    for plugin in sorted(plugins, key=lambda each: (each.location, each)):
        locations.setdefault(plugin.location, []).append(plugin)
    text = repr([(str(place), [(p.class_name, p.kind, p.jars) for p in found]) for place, found in locations.items()])
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    folder = _writable(parent) / name
    if not folder.is_dir():
        work = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=folder.parent))
        try:
            for number, (location, found) in enumerate(locations.items()):
                _fill(work / linked_name(number, location), found)
            work.chmod(0o755)
            work.rename(folder)
        except OSError:
            shutil.rmtree(work, ignore_errors=True)
            if not folder.is_dir():  # unless another process has made it meanwhile
                raise
    return folder


def linked_name(number: int, location: Path) -> str:
    """Return the name of a location's folder, which shows in the log lines of Connect's class loaders."""
    return f"{number}-{location.stem if location.suffix.lower() in ('.jar', '.zip') else location.name}"


def _fill(folder: Path, plugins: list[JavaPlugin]) -> None:
    folder.mkdir()
    for number, jar in enumerate(plugins[0].jars):
        name = jar.name if not os.path.lexists(folder / jar.name) else f"{number}-{jar.name}"
        (folder / name).symlink_to(jar)
    missing: dict[str, list[str]] = {}
    for plugin in plugins:
        if not plugin.in_manifest:
            missing.setdefault(_SERVICE_OF[plugin.kind], []).append(plugin.class_name)
    if missing:
        write_manifests(folder / _MANIFESTS, missing)


def write_manifests(jar: Path, classes: Mapping[str, Iterable[str]]) -> None:
    """Write a jar of ServiceLoader manifests: the names of the classes for each interface."""
    with zipfile.ZipFile(jar, "w") as archive:
        for service in sorted(classes):
            content = "".join(f"{name}\n" for name in sorted(classes[service]))
            archive.writestr(zipfile.ZipInfo(f"META-INF/services/{service}", _TIME), content)


def _writable(parent: Path | None) -> Path:
    folder = parent or cache_home() / "java-plugins" / "links"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    folder = Path(tempfile.gettempdir(), f"sluiceway-java-plugins-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
