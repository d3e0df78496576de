"""Finds mistakes in how plugins are laid out in ``plugin.path``, and says how to correct them. Starts no JVM."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from sluiceway.java_plugins.archives import is_archive
from sluiceway.java_plugins.class_files import UNREADABLE, ClassPath
from sluiceway.java_plugins.location_scan import LocationScan

Locations = Mapping[Path, tuple[Path, ...]]

_MISSING = re.compile(r"(?:NoClassDefFoundError|ClassNotFoundException): ([\w/.$]+)|extends ([\w.$]+), which no jar")
_OF_RUNTIME = re.compile(r"(?:connect-(?:api|runtime|json|transforms)|kafka-clients|slf4j-api)-\d[\w.+-]*\.jar")


def unopened_archives(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the archives of plugins in a folder of ``plugin.path``, and what to do about each: nothing looks into them."""
    for file in sorted(folder.iterdir()) if folder.is_dir() else ():
        if file.is_file() and is_archive(file) and not _is_jar(file):
            yield file, f"It is an archive that nothing looks into. Install it with 'sluiceway plugins install {file}'."


def layout_problems(location: Path, locations: Locations, scan: LocationScan) -> Iterator[str]:
    """Yield what is wrong with the place of a location's plugins: ``plugin.path`` is one level too low or too high."""
    texts = [*scan.problems, *scan.broken.values()]
    missing = {name.replace("/", ".") for text in texts for found in _MISSING.findall(text) for name in found if name}
    beside = [jar for other, jars in locations.items() if other != location and other.parent == location.parent for jar in jars]
    if location.is_file() and (jar := _jar_with(missing, beside)) is not None:
        yield (
            f"A class that it needs is in {jar.name} beside it: {location.parent} is the folder of one plugin. Name "
            f"{location.parent.parent} in plugin.path instead."
        )
    names = _folders_with_plugins(location, locations[location], scan)
    if len(names) > 1:
        yield (
            f"Its folders {', '.join(names)} have plugins each, but share one class loader. If they are different plugins, name "
            f"{location} in plugin.path instead of {location.parent}."
        )


def runtime_copies(location: Path, jars: Sequence[Path]) -> str | None:
    """Return a note about a location's copies of what all plugins get from the runtime, or None if there are none."""
    found = sorted({jar.name for jar in jars if _OF_RUNTIME.fullmatch(jar.name) and jar != location})
    if not found:
        return None
    return (
        f"{', '.join(found)}: Kafka Connect's runtime has these classes. Old copies of its converters and transforms may be used "
        "in its place. Remove them."
    )


def _is_jar(file: Path) -> bool:
    """Return whether an archive has classes of its own, as Kafka Connect expects of it, and not jars."""
    if not zipfile.is_zipfile(file):
        return False
    try:
        with zipfile.ZipFile(file) as opened:
            return not any(name.endswith(".jar") for name in opened.namelist())
    except UNREADABLE:  # the scan says so
        return True


def _jar_with(names: Iterable[str], jars: Sequence[Path]) -> Path | None:
    with ClassPath(jars) as classes:
        return next((Path(jar) for name in sorted(names) if (jar := classes.jar_of(name)) is not None), None)


def _folders_with_plugins(location: Path, jars: Sequence[Path], scan: LocationScan) -> list[str]:
    """Return the folders of a location that have plugins; none if it has jars directly."""
    of_folder: dict[str, list[Path]] = {}
    for jar in jars:
        try:
            folder, *rest = jar.relative_to(location.resolve()).parts
        except ValueError:  # a link to another place
            return []
        if not rest:
            return []
        of_folder.setdefault(folder, []).append(jar)
    return [folder for folder, found in sorted(of_folder.items()) if len(of_folder) > 1 and _jar_with(scan.kinds, found)]
