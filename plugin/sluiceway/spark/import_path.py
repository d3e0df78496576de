"""Makes the import of PySpark fast and small.

Removes Spark's archives from Python's import path where their contents are also installed unpacked, because zips hold no compiled
modules. Leaves out NumPy.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_SPARK_ZIP = "pyspark.zip"


def without_archives(path: Iterable[str]) -> list[str]:
    """Return an import path without the archives of a Spark that is also installed as a package in a folder of that path.

    Runs on the driver and in local Python workers, before PySpark is imported. spark-submit puts ``pyspark.zip``, Py4J's zip and
    a jar of its Spark first. If pip installed PySpark, these are copies of the package. Archives of any other Spark stay.
    """
    entries = list(path)
    roots = {os.path.realpath(entry) for entry in entries if os.path.isdir(entry)}  # noqa: PTH112 (the path has odd entries)
    homes = [Path(entry).parents[2] for entry in entries if Path(entry).name == _SPARK_ZIP and len(Path(entry).parents) > 2]
    unpacked = [home for home in homes if os.path.realpath(home.parent) in roots and (home / "__init__.py").is_file()]
    return [entry for entry in entries if not any(_is_copy(entry, home) for home in unpacked)]


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


def _is_copy(entry: str, home: Path) -> bool:
    file = Path(entry)
    if file.parent == home / "python" / "lib":
        return file.name == _SPARK_ZIP or (file.name.startswith("py4j-") and (home.parent / "py4j" / "__init__.py").is_file())
    return file.parent == home / "jars" and file.suffix == ".jar"
