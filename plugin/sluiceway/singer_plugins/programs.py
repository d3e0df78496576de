"""Finds installed Singer plugins and makes the commands that run them. Runs on every machine."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluiceway.errors import ConnectError, MissingToolError, NotFoundError
from sluiceway.java_plugins.locations import SINGER_FILE

PACKAGES = "packages"
"""The folder of an installed plugin that has its Python packages."""

# No packages but the plugin's own, not even those of the Python that runs it. The program is found by its entry point: its
# script has the path of a Python, which need not be there on another machine.
_RUN = (
    "import sys, site; sys.path.insert(0, sys.argv[1]); site.addsitedir(sys.argv[1]); "
    "from importlib.metadata import entry_points; "
    "name = sys.argv[2]; sys.argv[:3] = [name]; "
    "sys.exit(next(p for p in entry_points(group='console_scripts') if p.name == name).load()())"
)
_folders: list[Path] = []
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class SingerPlugin:
    """An installed plugin. ``python`` is the minor version that it was installed for, ``executable`` the Python of that time."""

    location: Path
    programs: tuple[str, ...]
    python: str
    executable: str

    def command(self, program: str) -> list[str]:
        """Return the command that runs a program. Raises MissingToolError if this machine has no such Python."""
        python = find_python(self.python, self.executable)
        return [python, "-I", "-S", "-c", _RUN, str(self.location / PACKAGES), program]

    def write(self, location: Path) -> None:
        """Write the description that ``read_plugin`` reads."""
        about = {"programs": self.programs, "python": self.python, "executable": self.executable}
        (location / SINGER_FILE).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


def read_plugin(location: Path) -> SingerPlugin | None:
    """Return the Singer plugin in a folder; None if it has none. Raises ConnectError for one that is damaged."""
    file = location / SINGER_FILE
    try:
        about: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return SingerPlugin(location, tuple(map(str, about["programs"])), str(about["python"]), str(about["executable"]))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConnectError(f"{file} cannot be read ({error!r}). Install the plugin again.") from error


def plugins_in(folders: Iterable[Path]) -> Iterator[SingerPlugin]:
    """Yield the Singer plugins in folders of ``plugin.path``."""
    for folder in folders:
        for location in sorted(folder.iterdir()) if folder.is_dir() else ():
            found = None if location.name.startswith(".") else read_plugin(location)
            if found is not None:
                yield found


def use_singer_plugins(folders: Iterable[Path]) -> None:
    """Find plugins in these folders of ``plugin.path``, besides those of earlier calls, in the whole process."""
    with _lock:
        _folders.extend(folder for folder in folders if folder not in _folders)


def find_program(name: str) -> list[str]:
    """Return the command of a program by its name in ``plugin.path``, or else its path, or its name on this machine's PATH.

    Raises:
        NotFoundError: there is none.
        ConnectError: several plugins have it.
        MissingToolError: see ``SingerPlugin.command``.
    """
    if "/" not in name:
        with _lock:
            folders = tuple(_folders)
        found = [plugin for plugin in plugins_in(folders) if name in plugin.programs]
        if len(found) > 1:
            places = ", ".join(str(plugin.location) for plugin in found)
            raise ConnectError(
                f"Several plugins have the program {name}: {places}. Remove all but one: sluiceway plugins remove NAME"
            )
        if found:
            return found[0].command(name)
    path = shutil.which(str(Path(name).expanduser()) if "/" in name else name)
    if path is None:
        raise NotFoundError(
            f"{name} is no program on this machine, and no Singer plugin in plugin.path has it. Install it where the tasks run: "
            f"sluiceway plugins install singer:{name}"
        )
    return [str(Path(path).absolute())]


@functools.lru_cache(64)
def find_python(version: str, executable: str = "") -> str:
    """Return the path of a Python of a minor version, such as 3.11. Raises MissingToolError.

    ``executable`` is tried first.
    """
    for each in (executable, sys.executable, f"python{version}", "python3"):
        path = shutil.which(each) if each else None
        if path is not None and python_version(path) == version:
            return path
    raise MissingToolError(
        f"This machine has no Python {version}, with which the plugin was installed. Put python{version} on PATH."
    )


@functools.lru_cache(64)
def python_version(path: str) -> str:
    """Return the minor version of a Python, empty if the program is none."""
    command = [path, "-I", "-S", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
