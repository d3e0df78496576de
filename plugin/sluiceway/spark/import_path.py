"""Makes the import of PySpark fast, small, and of one version.

Removes Spark's archives from Python's import path where their contents are also installed unpacked, because zips hold no compiled
modules. Uses the archive where pyspark-client, which has many of PySpark's files, has put those of another version over the
unpacked ones. Leaves out NumPy.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_SPARK_ZIP = "pyspark.zip"


def use_one_pyspark() -> None:
    """Make this process import PySpark as ``spark_path`` says. Does nothing once PySpark is imported."""
    if "pyspark" in sys.modules:
        return
    sys.path[:] = spark_path(sys.path)
    if Path(sys.path[0]).name == _SPARK_ZIP:
        os.environ.setdefault("SPARK_HOME", str(Path(sys.path[0]).parents[2]))  # PySpark in an archive does not find its jars


def spark_path(path: Iterable[str]) -> list[str]:
    """Return an import path that has PySpark once, with files of one version: unpacked, or else as the archive beside its jars.

    Runs on the driver and in local Python workers, before PySpark is imported. spark-submit puts ``pyspark.zip``, Py4J's zip and
    a jar of its Spark first. If pip installed PySpark, these are copies of the package. Archives of any other Spark stay.
    """
    entries = list(path)
    folders = [entry for entry in entries if os.path.isdir(entry)]  # noqa: PTH112 (the path has odd entries)
    roots = {os.path.realpath(entry) for entry in folders}
    homes = [Path(entry).parents[2] for entry in entries if Path(entry).name == _SPARK_ZIP and len(Path(entry).parents) > 2]
    if not homes:
        installed = next((Path(entry, "pyspark") for entry in folders if Path(entry, "pyspark", "__init__.py").is_file()), None)
        return entries if installed is None or not _is_mixed(installed) else [*_archive(installed), *entries]
    unpacked = [home for home in homes if os.path.realpath(home.parent) in roots and (home / "__init__.py").is_file()]
    whole = [home for home in unpacked if not _is_mixed(home)]
    return [entry for entry in entries if not any(_is_copy(entry, home) for home in whole)]


def mixed_versions(home: Path) -> tuple[str, str] | None:
    """Return the versions of pyspark and pyspark-client if both are installed beside each other and differ.

    Then ``home``, the folder ``pyspark``, may have files of both: pip keeps those that it has written last.
    """
    found = [_installed(home.parent, distribution) for distribution in ("pyspark", "pyspark_client")]
    return (found[0], found[1]) if all(found) and found[0] != found[1] else None


@contextmanager
def without_numpy() -> Iterator[None]:
    """Import PySpark without NumPy, which it would use for statistics of RDDs only: 7 MB and 50 ms for each process.

    Later imports find NumPy. Call it before threads start, because none of them finds NumPy meanwhile.
    """
    if "numpy" in sys.modules:
        yield
        return
    sys.modules["numpy"] = None  # type: ignore[assignment]  # Python's way to make an import fail
    try:
        yield
    finally:
        del sys.modules["numpy"]


def _is_mixed(home: Path) -> bool:
    return mixed_versions(home) is not None


def _installed(folder: Path, distribution: str) -> str:
    """Return the version of a distribution in a folder of packages, or an empty string. Much faster than importlib.metadata."""
    found = next(folder.glob(f"{distribution}-*.dist-info"), None)
    return "" if found is None else found.name.removesuffix(".dist-info").partition("-")[2]


def _archive(home: Path) -> list[str]:
    archive = home / "python" / "lib" / _SPARK_ZIP
    return [str(archive)] if archive.is_file() else []


def _is_copy(entry: str, home: Path) -> bool:
    file = Path(entry)
    if file.parent == home / "python" / "lib":
        return file.name == _SPARK_ZIP or (file.name.startswith("py4j-") and (home.parent / "py4j" / "__init__.py").is_file())
    return file.parent == home / "jars" and file.suffix == ".jar"
