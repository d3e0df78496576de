"""Lists the plugin locations in ``plugin.path`` and their jars, grouped as Kafka Connect groups them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

SINGER_FILE = "singer.json"
"""The file of a location with a Singer plugin, which has no plugins in Java."""

_ARCHIVES = (".jar", ".zip")


def plugin_locations(folders: Iterable[Path]) -> dict[Path, tuple[Path, ...]]:
    """Return the jars of each plugin location, without those that have none.

    A location is an archive or a folder directly in a folder of ``plugin.path``. All jars below it are one plugin with a
    class loader of its own. Links are followed once, as in Connect. Hidden folders are left out: plugins are made in them.
    """
    found: dict[Path, tuple[Path, ...]] = {}
    for folder in folders:
        for location in _visible(folder) if folder.is_dir() else [folder]:
            jars = tuple(sorted(set(_jars(location, set()))))
            if jars:
                found[location] = jars
    return found


def singer_locations(folder: Path) -> list[Path]:
    """Return the locations of Singer plugins in a folder of ``plugin.path``."""
    return sorted(each.parent for each in folder.glob(f"*/{SINGER_FILE}") if not each.parent.name.startswith("."))


def _visible(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if not each.name.startswith(".") and not (each / SINGER_FILE).exists())


def _jars(path: Path, visited: set[Path]) -> Iterator[Path]:
    try:
        real = path.resolve(strict=True)
        if path.name.lower().endswith(_ARCHIVES) and real.is_file():
            yield real
        elif real.is_dir() and real not in visited:
            visited.add(real)
            for child in real.iterdir():
                if child.is_dir() or child.name.lower().endswith(_ARCHIVES):
                    yield from _jars(child, visited)
    except OSError:  # a broken link, or a folder without permission
        return
