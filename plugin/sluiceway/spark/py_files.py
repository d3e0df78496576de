"""Packs this package into a zip for ``--py-files``, so that executors need no installation (Spark accepts no wheels)."""

from __future__ import annotations

import hashlib
import marshal
import os
import tempfile
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path

import sluiceway
from sluiceway.folders import cache_home
from sluiceway.java_plugins.helper_jar import cached_jar

_NAME = "sluiceway-"
_UNCHECKED_HASH = (1).to_bytes(4, "little")  # PEP 552: the compiled module is valid whatever its source's time or contents
_SUFFIXES = (".py", ".json", ".java", ".properties", ".jar")
_AIRFLOW_ONLY = {"dags", "operators", "sensors"}  # run in Airflow; in a checkout they are links out of the package


def package_zip(folder: Path | None = None) -> Path:
    """Return the path of a zip of this package, after making it if a source file has changed.

    It holds all modules and data files except operators, sensors and example DAGs, which only Airflow runs. Compiled modules
    are beside their sources, because Python would compile those of a zip again in each process; other versions of Python ignore
    them. The zip's name contains a hash of the contents, so that executors never reuse an older zip. ``folder`` defaults to the
    user's cache folder.
    """
    root = Path(sluiceway.__file__).parent
    sources = _files(root)
    digest = hashlib.sha256(MAGIC_NUMBER)
    for path, source in sources.items():
        digest.update(path.encode())
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
        for path, source in sources.items():
            name = Path("sluiceway") / path
            archive.write(source, name)
            if source.suffix == ".py":
                archive.writestr(str(name.with_suffix(".pyc")), _compiled(source.read_bytes(), str(name)))
    Path(scratch.name).replace(target)  # atomic, so processes that make the same zip at the same time do not interfere
    return target


def _compiled(source: bytes, name: str) -> bytes:
    """Return a module in the format of ``.pyc`` files (PEP 552)."""
    code = compile(source, name, "exec", dont_inherit=True)
    return MAGIC_NUMBER + _UNCHECKED_HASH + source_hash(source) + marshal.dumps(code)


def is_package_zip(path: str) -> bool:
    """Return whether a path or URL has the name of a zip that ``package_zip`` makes."""
    return fnmatch(path.rpartition("/")[2], f"{_NAME}{'[0-9a-f]' * 16}.zip")


def _sources(root: Path) -> Iterator[Path]:
    """Yield the package's modules and data files without following links, which could lead into a loop."""
    for folder, subfolders, files in os.walk(root, followlinks=False):
        if Path(folder) == root:
            subfolders[:] = [name for name in subfolders if name not in _AIRFLOW_ONLY]
        yield from (Path(folder, name) for name in files if name.endswith(_SUFFIXES))


def _files(root: Path) -> dict[str, Path]:
    """Return the files of the package by their names in the zip.

    The jar for Java plugins is among them if this machine has compiled it, because executors may have no JDK.
    """
    files = {str(source.relative_to(root)): source for source in _sources(root)}
    jar = cached_jar()
    if jar.is_file():
        files.setdefault(f"java_plugins/{jar.name}", jar)
    return dict(sorted(files.items()))
