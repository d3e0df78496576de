"""Makes and finds class archives (AppCDS) of Spark's classes, which shorten each start of a JVM by more than a second.

A JVM can use an archive only if its class path begins with the archive's. So there are two: for the JVMs that spark-submit
starts, and for those that a cluster manager starts, if Spark's jars are put first on their class path (``container_conf``).

``python -m sluiceway.spark.class_archive`` makes the first one once for each Java and Spark, in half a minute. The local stack
does that in the background; other installations can run it after they have installed the package. With ``--containers`` it makes
the second one, on each host of the cluster. Archives are optional.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import logging
import os
import subprocess
import sys
from pathlib import Path

from sluiceway import class_archives
from sluiceway.errors import ConnectError
from sluiceway.folders import cache_home
from sluiceway.java_runtime import ARCHIVE_IN_PLACE, find_java
from sluiceway.spark.jvm_options import LIGHT

_TIMEOUT_SECONDS = 600
_KEPT_LINES = 20

log = logging.getLogger(__name__)


def archive_path(folder: Path | None = None, *, containers: bool = False) -> Path:
    """Return the path of an archive for this Java and this Spark, whether it exists or not.

    ``folder`` defaults to the user's cache folder. Raises MissingToolError if no Java was found, ConnectError if no Spark was.
    """
    java = find_java()
    jars = sorted((jar.name, jar.stat().st_size) for jar in (spark_home() / "jars").glob("*.jar"))
    build = (java.home / "release").read_text() if (java.home / "release").is_file() else str(java.version)
    digest = hashlib.sha256(repr((str(java.home), build, str(spark_home()), jars)).encode()).hexdigest()[:16]
    return (folder or cache_home()) / f"spark-{'container-' if containers else ''}classes-{digest}.jsa"


def archive_options() -> str:
    """Return the Java options with which a JVM of spark-submit uses the archive, or an empty text if it has not been made."""
    with contextlib.suppress(OSError, ConnectError):
        path = archive_path()
        if path.is_file():
            return _options(path)
    return ""


def container_conf(archive: Path) -> dict[str, str]:
    """Return the Spark settings with which application masters and executors use an archive.

    The archive and Spark's jars must have the same paths on each host. Hosts without them start their JVMs without the archive.
    """
    jars, options = f"{spark_home()}/jars/*", _options(archive)
    return {
        "spark.driver.extraClassPath": jars,
        "spark.driver.extraJavaOptions": options,
        "spark.executor.extraClassPath": jars,
        "spark.executor.extraJavaOptions": options,
        "spark.yarn.am.extraJavaOptions": f"{LIGHT} {options}",
    }


def _options(archive: Path) -> str:
    # A JVM that cannot use the archive, such as one with other jars before Spark's, ignores it silently.
    return f"-XX:SharedArchiveFile={archive} -Xshare:auto {' '.join(ARCHIVE_IN_PLACE)} -Xlog:disable -Xlog:all=error:stderr"


def make(folder: Path | None = None, *, containers: bool = False) -> Path:
    """Make an archive with a small Spark application, unless it exists; return its path. Raises ConnectError."""
    target = archive_path(folder, containers=containers)

    def record(scratch: Path) -> None:
        try:
            done = _run(_command(scratch, containers=containers))
        except subprocess.TimeoutExpired as error:
            raise ConnectError(
                f"spark-submit made no class archive at {target} within {_TIMEOUT_SECONDS} s. Drivers start without it."
            ) from error
        if done.returncode != 0 or not scratch.is_file():
            tail = "\n".join((done.stdout + done.stderr).splitlines()[-_KEPT_LINES:])
            raise ConnectError(
                f"spark-submit made no class archive at {target} (exit code {done.returncode}). Its last lines:\n{tail}"
            )

    return class_archives.make_once(target, record)


def _command(scratch: Path, *, containers: bool) -> list[str]:
    """Return the command of a small Spark application whose JVM writes its classes to ``scratch`` when it ends."""
    from sluiceway.spark.session import LOCAL_CONF

    options = f"{LIGHT} -XX:ArchiveClassesAtExit={scratch}"
    settings = {**LOCAL_CONF, "spark.driver.extraJavaOptions": options, "spark.log.level": "WARN"}
    # The other master loads the classes with which driver, master and executors talk to each other over the network.
    submit = ["--master", "local-cluster[1,1,1024]" if containers else "local[2]"]
    for key, value in settings.items():
        submit += ["--conf", f"{key}={value}"]
    submit.append(str(Path(__file__).with_name("class_archive_app.py")))
    if not containers:
        return [str(spark_home() / "bin" / "spark-submit"), *submit]
    jars = f"{spark_home()}/jars/*"
    launcher = ["-cp", jars, "org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit"]
    # The launcher prints the JVM's command for spark-submit: after the first line, each argument ends with a NUL.
    printed = _run([str(find_java().executable), *launcher, *submit])
    command = printed.stdout.partition("\n")[2].split("\0")[:-1]
    if "-cp" not in command:
        raise ConnectError(f"Spark's launcher in {jars} printed no command for spark-submit: {printed.stderr.strip()}")
    command[command.index("-cp") + 1] = jars
    return command


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {"SPARK_HOME": str(spark_home()), "JAVA_HOME": str(find_java().home), "PYSPARK_PYTHON": sys.executable}
    environment["SPARK_SCALA_VERSION"] = "2.13"  # which spark-submit would set, and the launcher's code requires
    return subprocess.run(
        command,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )


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


def main(arguments: list[str]) -> int:
    """Make an archive and print its path, or the Spark settings that use it; return the exit code."""
    parser = argparse.ArgumentParser(prog="class_archive", description=__doc__)
    parser.add_argument("--containers", action="store_true", help="for application masters and executors; print Spark settings")
    parser.add_argument("--folder", type=Path, help="where to keep the archive; default is the user's cache folder")
    options = parser.parse_args(arguments)
    try:
        made = make(options.folder, containers=options.containers)
        settings = container_conf(made) if options.containers else {}
        lines = [f"{key} {value}" for key, value in settings.items()] or [str(made)]
        print("\n".join(lines))  # noqa: T201 (a program's result)
    except ConnectError as error:
        print(error, file=sys.stderr)  # noqa: T201 (a program's result)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
