"""Packs this package into a zip for ``--py-files``, so that executors need no installation (Spark accepts no wheels)."""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import sluiceway
from sluiceway.folders import cache_home

_NAME = "sluiceway-"
_AIRFLOW_ONLY = {"dags", "operators", "sensors"}  # run in Airflow; in a checkout they are links out of the package


def package_zip(folder: Path | None = None) -> Path:
    """Return the path of a zip of this package, after making it if a source file has changed.

    It holds all modules and data files except operators, sensors and example DAGs, which only Airflow runs. Its name contains
    a hash of the contents, so that executors never reuse an older zip. ``folder`` defaults to the user's cache folder.
    """
    root = Path(sluiceway.__file__).parent
    sources = sorted(_sources(root))
    digest = hashlib.sha256()
    for source in sources:
        digest.update(str(source.relative_to(root)).encode())
        digest.update(source.read_bytes())
    folder = folder or cache_home()
    target = folder / f"{_NAME}{digest.hexdigest()[:16]}.zip"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.NamedTemporaryFile(dir=folder, suffix=".tmp", delete=False) as scratch,
        zipfile.ZipFile(scratch, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for source in sources:
            archive.write(source, Path("sluiceway") / source.relative_to(root))
    Path(scratch.name).replace(target)  # atomic, so processes that make the same zip at the same time do not interfere
    return target


def is_package_zip(path: str) -> bool:
    """Return whether a path or URL has the name of a zip that ``package_zip`` makes."""
    return fnmatch(path.rpartition("/")[2], f"{_NAME}{'[0-9a-f]' * 16}.zip")


def _sources(root: Path) -> Iterator[Path]:
    """Yield the package's modules and data files without following links, which could lead into a loop."""
    for folder, subfolders, files in os.walk(root, followlinks=False):
        if Path(folder) == root:
            subfolders[:] = [name for name in subfolders if name not in _AIRFLOW_ONLY]
        yield from (Path(folder, name) for name in files if name.endswith((".py", ".json")))
