"""Installs Java and Singer plugins into a folder of ``plugin.path``, and fetches the runtime that those in Java need."""

from __future__ import annotations

import tempfile
from pathlib import Path

from sluiceway.errors import ConnectError, MissingToolError
from sluiceway.java_plugins.installed import LockedPlugin, PluginFolder, read_lock
from sluiceway.java_plugins.location_scan import scan_location
from sluiceway.java_plugins.locations import plugin_locations
from sluiceway.java_plugins.runtime_jars import RUNTIME_JARS, fetched_home, install_runtime, runtime_jars
from sluiceway.singer_plugins.install import fetch_singer, is_singer, newest
from sluiceway.stack import maven
from sluiceway.stack.downloads import is_url
from sluiceway.stack.maven import Progress
from sluiceway.stack.plugin_sources import COORDINATES, fetch, shown


def install(folder: PluginFolder, source: str, progress: Progress, *, python: str | None = None) -> LockedPlugin:
    """Install a plugin from a source; do nothing if exactly this plugin is there.

    ``source`` has one of the forms of ``fetch``, or is a Singer plugin's (``fetch_singer``), for which ``python`` is.

    Raises:
        ConnectError: see there; also if there is no plugin in it, or the folder has another plugin of that name.
    """
    with folder.changing() as work:
        return _install(folder, source, progress, work, python=python)


def install_locked(folder: PluginFolder, lock: Path, progress: Progress) -> list[LockedPlugin]:
    """Install the plugins of a lock file, each as it was when the file was written.

    A file or folder is looked for beside the lock file, too, for it may come from another machine. Raises ConnectError.
    """
    plugins = read_lock(lock)
    if not plugins:
        raise ConnectError(f"{lock} does not exist, or has no plugins. 'sluiceway plugins install' writes it.")
    with folder.changing() as work:
        return [_install(folder, _found_again(each.source, lock), progress, work, each) for each in plugins.values()]


def upgrade(folder: PluginFolder, name: str, progress: Progress) -> LockedPlugin:
    """Replace a plugin from a repository of Maven or Python by its newest version, and return what is installed then.

    Raises:
        ConnectError: there is no such plugin, or it does not come from a repository.
    """
    with folder.changing() as work:
        found = folder.plugin(name)
        match = None if is_singer(found.source) else COORDINATES.fullmatch(found.source)
        source = newest(found.source) if is_singer(found.source) else None
        if source is not None:
            upgraded = _install(folder, source, progress, work, python=found.python)
        elif match is not None:
            upgraded = _install(folder, f"{match[1]}:{match[2]}", progress, work)
        else:
            raise ConnectError(f"{name} came from {shown(found.source)}. Install its new version from there, and remove {name}.")
        if upgraded.name != name:
            folder.remove(name, work)
            progress(f"Removed {name}")
        return upgraded


def _found_again(source: str, lock: Path) -> str:
    """Return a source of a lock file; of a file or folder that is not where it was, its place beside the lock file."""
    if is_singer(source) or is_url(source) or COORDINATES.fullmatch(source) or Path(source).exists():
        return source
    beside = lock.absolute().parent / Path(source).name
    if not beside.exists():
        raise ConnectError(f"{source} of {lock} is not on this machine. Copy it there, or into {beside.parent}.")
    return str(beside)


def _install(
    folder: PluginFolder,
    source: str,
    progress: Progress,
    work: Path,
    locked: LockedPlugin | None = None,
    python: str | None = None,
) -> LockedPlugin:
    content = Path(tempfile.mkdtemp(dir=work))
    if is_singer(source):
        plugin = fetch_singer(source, content, work, progress, python=python, locked=locked)
    else:
        plugin = fetch(source, content, work, progress, locked=locked)
    if folder.has(plugin):
        progress(f"{plugin.name} is installed already in {folder.location(plugin.name)}")
        return plugin
    if not is_singer(source):
        _require_plugins(content, source)
    progress(f"Installed {plugin.name} in {folder.place(content, plugin, work)}")
    return plugin


def _require_plugins(content: Path, source: str) -> None:
    jars = plugin_locations([content.parent]).get(content, ())
    scan = scan_location(jars)
    if not scan.kinds:
        problems = f" {' '.join(scan.problems)}" if scan.problems else ""
        raise ConnectError(
            f"{shown(source)} has no plugin of Kafka Connect in {len(jars)} jars.{problems} Nothing was installed."
        )


def fetch_runtime(to: Path | None, progress: Progress) -> Path:
    """Download the jars of Kafka Connect's runtime to a folder (default: in the cache folder). Return the folder of the jars."""
    coordinates = [jar.coordinates for jar in RUNTIME_JARS]
    jars = maven.resolve(coordinates, title="Kafka Connect's runtime (about 36 MB)", progress=progress)
    return install_runtime(jars, to.absolute() if to is not None else fetched_home())


def require_runtime(progress: Progress) -> None:
    """Download the jars of Kafka Connect's runtime unless this machine has them."""
    try:
        runtime_jars()
    except MissingToolError:
        fetch_runtime(None, progress)
