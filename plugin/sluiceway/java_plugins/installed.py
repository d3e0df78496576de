"""Keeps the plugins that ``plugins install`` has put into a folder of ``plugin.path``, and the folder's ``plugins.lock``.

A command that is killed at any moment leaves each plugin whole, or away: workers do not read hidden folders, in which plugins are
made, and the lock file is written while the plugin's own folder is away.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluiceway.errors import ConnectError, NotFoundError
from sluiceway.folders import file_lock, write_atomically

LOCK_NAME = "plugins.lock"
_FORMAT = 1
_WORK = ".installing-"
_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*")


@dataclass(frozen=True, slots=True)
class LockedPlugin:
    """An installed plugin, as the lock file describes it."""

    name: str
    """That of its folder."""
    source: str
    """Its Maven coordinates with the version, its URL, the path of its archive, jar or folder, or ``singer:REQUIREMENTS``."""
    sha256: Mapping[str, str]
    """The SHA-256 of what was installed: of each jar by its Maven coordinates, each file by its name, each Python package."""
    python: str = ""
    """The minor version of Python that a Singer plugin was installed for, such as 3.11."""


def installed_plugins(home: Path) -> Path:
    """Return the folder of installed plugins that the stack of a state folder reads."""
    return home / "plugins"


def folder_name(text: str) -> str:
    """Return a text as the name of a plugin's folder."""
    name = re.sub(r"[^\w.+-]", "_", text).lstrip("._+-")
    return name or "plugin"


def read_lock(path: Path) -> dict[str, LockedPlugin]:
    """Return the plugins of a lock file by name; none if there is no file.

    Raises:
        ConnectError: it is damaged, or of a later version of Sluiceway.
    """
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
        if document["version"] != _FORMAT:
            raise ConnectError(f"{path} has version {document['version']}, which this version of Sluiceway does not know.")
        found = {name: _plugin(name, entry) for name, entry in document["plugins"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConnectError(
            f"{path} cannot be read ({error!r}). Copy it again, or remove it and install the plugins again."
        ) from error
    return found


def _plugin(name: str, entry: Mapping[str, Any]) -> LockedPlugin:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a folder")
    hashes = {str(key): str(value) for key, value in entry["sha256"].items()}
    return LockedPlugin(name, str(entry["source"]), hashes, str(entry.get("python", "")))


class PluginFolder:
    """A folder of ``plugin.path`` with installed plugins, each in a folder of its own. Other plugins in it are left alone."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.lock_file = self.path / LOCK_NAME

    def plugins(self) -> dict[str, LockedPlugin]:
        """Return the plugins in the lock file by name. Raises ConnectError."""
        return read_lock(self.lock_file)

    def plugin(self, name: str) -> LockedPlugin:
        """Return a plugin in the lock file. Raises NotFoundError."""
        known = self.plugins()
        if name not in known:
            names = f"Installed: {', '.join(sorted(known))}." if known else "None is installed."
            raise NotFoundError(f"{self.path} has no installed plugin {name}. {names}")
        return known[name]

    def location(self, name: str) -> Path:
        """Return a plugin's folder, which may be missing."""
        return self.path / name

    def has(self, plugin: LockedPlugin) -> bool:
        """Return whether exactly this plugin is installed."""
        return self.location(plugin.name).is_dir() and self.plugins().get(plugin.name) == plugin

    @contextmanager
    def changing(self) -> Iterator[Path]:
        """Hold the folder's lock, yield a work folder that no worker reads, and remove it in the end.

        Raises:
            ConnectError: the folder cannot be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with file_lock(self.path / ".lock"):
                for left in self.path.glob(f"{_WORK}*"):  # of a command that was killed
                    shutil.rmtree(left, ignore_errors=True)
                with tempfile.TemporaryDirectory(dir=self.path, prefix=_WORK) as work:
                    yield Path(work)
        except OSError as error:
            raise ConnectError(f"{self.path} cannot be changed: {error}. Choose another folder with --to.") from error

    def place(self, content: Path, plugin: LockedPlugin, work: Path) -> Path:
        """Move a plugin's content, which is in the work folder, to its place, and return the place.

        Raises:
            ConnectError: something is there that was not installed.
        """
        target, known = self.location(plugin.name), self.plugins()
        if target.exists():
            if plugin.name not in known:
                raise ConnectError(
                    f"{target} was not installed by this command. Move it away, or choose another folder with --to."
                )
            target.rename(work / f".{plugin.name}")
        self._write({**known, plugin.name: plugin})
        content.chmod(0o755)
        return content.rename(target)

    def remove(self, name: str, work: Path) -> None:
        """Remove a plugin. Raises NotFoundError."""
        self.plugin(name)
        if self.location(name).exists():
            self.location(name).rename(work / f".{name}")
        self._write({key: each for key, each in self.plugins().items() if key != name})

    def _write(self, plugins: Mapping[str, LockedPlugin]) -> None:
        entries = {
            name: {
                "source": each.source,
                **({"python": each.python} if each.python else {}),
                "sha256": dict(sorted(each.sha256.items())),
            }
            for name, each in sorted(plugins.items())
        }
        write_atomically(self.lock_file, json.dumps({"version": _FORMAT, "plugins": entries}, indent=2) + "\n")
