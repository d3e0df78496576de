"""Makes and finds the class archive (AppCDS) of Spark's classes, which shortens each driver's start by more than a second.

``python -m sluiceway.spark.class_archive`` makes it once for each Java and Spark, in half a minute. The local stack does that in
the background; other installations can run it after they have installed the package. The archive is optional.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import subprocess
import sys
from pathlib import Path

from sluiceway.errors import ConnectError
from sluiceway.folders import cache_home, file_lock
from sluiceway.java_runtime import find_java

_TIMEOUT_SECONDS = 600
_KEPT_LINES = 20

log = logging.getLogger(__name__)


def archive_path(folder: Path | None = None) -> Path:
    """Return the path of the archive for this Java and this Spark, whether it exists or not.

    ``folder`` defaults to the user's cache folder. Raises MissingToolError if no Java was found, ConnectError if no Spark was.
    """
    java = find_java()
    jars = sorted((jar.name, jar.stat().st_size) for jar in (spark_home() / "jars").glob("*.jar"))
    build = (java.home / "release").read_text() if (java.home / "release").is_file() else str(java.version)
    digest = hashlib.sha256(repr((str(java.home), build, str(spark_home()), jars)).encode()).hexdigest()[:16]
    return (folder or cache_home()) / f"spark-classes-{digest}.jsa"


def archive_options() -> str:
    """Return the Java options that use the archive, or an empty text if it has not been made."""
    with contextlib.suppress(OSError, ConnectError):
        path = archive_path()
        if path.is_file():
            # A JVM that cannot use the archive, such as one with other jars before Spark's, ignores it silently.
            return f"-XX:SharedArchiveFile={path} -Xshare:auto -Xlog:disable -Xlog:all=error:stderr"
    return ""


def make(folder: Path | None = None) -> Path:
    """Make the archive with a small Spark application, unless it exists; return its path. Raises ConnectError."""
    from sluiceway.spark.session import LOCAL_CONF

    target = archive_path(folder)
    with file_lock(target.with_suffix(".lock")):
        if target.is_file():
            return target
        scratch = target.with_suffix(f".{os.getpid()}.tmp")
        options = f"{LOCAL_CONF['spark.driver.extraJavaOptions']} -XX:ArchiveClassesAtExit={scratch}"
        settings = {**LOCAL_CONF, "spark.driver.extraJavaOptions": options, "spark.log.level": "WARN"}
        command = [str(spark_home() / "bin" / "spark-submit"), "--master", "local[2]"]
        for key, value in settings.items():
            command += ["--conf", f"{key}={value}"]
        environment = {"SPARK_HOME": str(spark_home()), "JAVA_HOME": str(find_java().home), "PYSPARK_PYTHON": sys.executable}
        try:
            done = subprocess.run(
                [*command, str(Path(__file__).with_name("class_archive_app.py"))],
                env={**os.environ, **environment},
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_SECONDS,
                check=False,
            )
            if done.returncode != 0 or not scratch.is_file():
                tail = "\n".join((done.stdout + done.stderr).splitlines()[-_KEPT_LINES:])
                raise ConnectError(
                    f"spark-submit made no class archive at {target} (exit code {done.returncode}). Its last lines:\n{tail}"
                )
            scratch.replace(target)
        except subprocess.TimeoutExpired as error:
            raise ConnectError(
                f"spark-submit made no class archive at {target} within {_TIMEOUT_SECONDS} s. Drivers start without it."
            ) from error
        finally:
            scratch.unlink(missing_ok=True)
    return target


def spark_home() -> Path:
    """Return the folder of the Spark that drivers run on: ``SPARK_HOME``, or PySpark's own.

    Raises ConnectError if there is neither.
    """
    home = os.environ.get("SPARK_HOME")
    if home:
        return Path(home)
    import importlib.util

    spec = importlib.util.find_spec("pyspark")  # an import would take half a second
    if spec is None or spec.origin is None:
        raise ConnectError("No Spark was found. Install it with 'pip install pyspark', or set SPARK_HOME.")
    return Path(spec.origin).parent


def main() -> int:
    """Make the archive and print its path; return the exit code."""
    try:
        print(make())  # noqa: T201 (a program's result)
    except ConnectError as error:
        print(error, file=sys.stderr)  # noqa: T201 (a program's result)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
