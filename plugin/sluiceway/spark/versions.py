"""Checks that Python's PySpark and Spark's jars are of one version, before the Spark context is created.

Without it a context fails with a trace of Py4J, or Python workers end as soon as Spark starts them, and every task is lost.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import logging
import re
import sys
from importlib.metadata import Distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluiceway.errors import MissingToolError
from sluiceway.spark.import_path import mixed_versions

if TYPE_CHECKING:
    from pyspark import SparkConf

log = logging.getLogger(__name__)


def check_python_files() -> None:
    """Check the PySpark that this process imports, or has imported, without importing it.

    Raises:
        MissingToolError: PySpark is missing, is the part that pyspark-client has, or has files of two versions.
    """
    home = _pyspark_home()
    if home is None:
        raise MissingToolError("PySpark is not installed for this Python. Run 'pip install pyspark'.")
    if not home.is_dir():  # an archive beside its jars
        return
    if not (home / "core" / "context.py").is_file() and not (home / "context.py").is_file():
        raise MissingToolError(f"{home} is pyspark-client, which has no Spark. Run 'pip install pyspark' with the same version.")
    mixed = mixed_versions(home)
    if mixed is not None and _has_foreign_files(home):
        pyspark, client = mixed
        msg = (
            f"{home} has files of pyspark {pyspark} and of pyspark-client {client}, because pip puts both into the same folder. "
            f"Run 'pip install --force-reinstall --no-deps pyspark=={pyspark}'."
        )
        raise MissingToolError(msg)


def check_jars(settings: SparkConf) -> None:
    """Start Spark's JVM, or connect to the one of spark-submit, and compare its version with PySpark's.

    Versions that differ in their last part only are logged: most work together.

    Raises:
        MissingToolError: the versions differ.
    """
    import pyspark
    from py4j.protocol import Py4JError

    context: Any = pyspark.SparkContext
    context._ensure_initialized(conf=settings)
    try:
        jars = str(getattr(getattr(context._jvm.org.apache.spark, "package$"), "MODULE$").SPARK_VERSION())
    except Py4JError as error:
        log.debug("Spark's jars do not tell their version: %s", error)
        return
    if difference := describe_difference(pyspark.__version__, jars):
        found = f"Python imports PySpark {pyspark.__version__} from {pyspark.__path__[0]}, but Spark's jars are {jars}."
        message = f"{found} {_advice(jars)}"
        if difference == "patch":
            log.warning("%s", message)
        else:
            raise MissingToolError(message)


def describe_difference(python: str, jars: str) -> str:
    """Return "version" if two versions differ in their first two numbers, "patch" if in the third only, or an empty string.

    What a vendor adds, as in 3.5.6-amzn-1, does not count.
    """
    ours, theirs = _numbers(python), _numbers(jars)
    if ours[:2] != theirs[:2]:
        return "version"
    return "" if ours == theirs else "patch"


def _advice(jars: str) -> str:
    version = ".".join(map(str, _numbers(jars)))
    return f"Run 'pip install pyspark=={version}' for {sys.executable}, or set SPARK_HOME to the Spark of that PySpark."


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", version)[:3])


def _pyspark_home() -> Path | None:
    """Return the folder of the package ``pyspark`` on the import path, which may be in an archive."""
    module = sys.modules.get("pyspark")
    if module is not None and getattr(module, "__file__", None):
        return Path(str(module.__file__)).parent
    spec = importlib.util.find_spec("pyspark")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def _has_foreign_files(home: Path) -> bool:
    """Return whether a Python file of the package differs from the one that pip has recorded for pyspark."""
    for pyspark in Distribution.discover(name="pyspark", path=[str(home.parent)]):
        for file in pyspark.files or ():
            if file.suffix == ".py" and file.hash is not None and _digest(Path(str(file.locate()))) != file.hash.value:
                return True
    return False


def _digest(file: Path) -> str:
    """Return a file's SHA-256 as in pip's records, or an empty string if it is gone."""
    if not file.is_file():
        return ""
    return base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest()).rstrip(b"=").decode()
