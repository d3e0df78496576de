"""Builds the jar of the Java classes that run plugins, and finds it.

The wheel contains the jar. A source checkout compiles it on first use into the cache folder, which needs a JDK.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from sluiceway.errors import MissingToolError
from sluiceway.folders import cache_home, file_lock
from sluiceway.java_runtime import find_java

SOURCES = Path(__file__).parent / "helper"
PACKAGED = Path(__file__).parent / "helper.jar"

_RELEASE = "17"
_TIME = (2020, 1, 1, 0, 0, 0)  # a fixed time of all entries, so that equal sources give an equal jar
_COMPILE_SECONDS = 300


def helper_jar(class_path: Sequence[Path]) -> Path:
    """Return the jar, compiling it against Connect's jars if there is none. Raises MissingToolError if that is impossible."""
    if PACKAGED.is_file():
        return PACKAGED
    digest = hashlib.sha256()
    for file in _files(SOURCES):
        digest.update(file.read_bytes())
    jar = cache_home() / "java-plugins" / f"helper-{digest.hexdigest()[:16]}.jar"
    if not jar.is_file():
        with file_lock(jar.with_suffix(".lock")):
            if not jar.is_file():  # another process may have built it during the wait
                build(jar, class_path)
    return jar


def build(jar: Path, class_path: Sequence[Path]) -> None:
    """Compile the classes into a jar; equal sources give equal bytes. Raises MissingToolError without a compiler."""
    with tempfile.TemporaryDirectory(prefix="sluiceway-javac-") as folder:
        classes = Path(folder, "classes")
        command = [str(_javac()), "--release", _RELEASE, "-proc:none", "-cp", ":".join(map(str, class_path)), "-d", str(classes)]
        done = subprocess.run(
            [*command, *(str(file) for file in _files(SOURCES) if file.suffix == ".java")],
            capture_output=True,
            text=True,
            timeout=_COMPILE_SECONDS,
            check=False,
        )
        if done.returncode:
            raise MissingToolError(f"The Java classes that run plugins cannot be compiled:\n{done.stderr}")
        unfinished = Path(folder, jar.name)
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
            resources = [(file.relative_to(SOURCES), file) for file in _files(SOURCES) if file.suffix != ".java"]
            for name, file in sorted([*resources, *((file.relative_to(classes), file) for file in _files(classes))]):
                archive.writestr(zipfile.ZipInfo(str(name), _TIME), file.read_bytes(), zipfile.ZIP_DEFLATED)
        content = unfinished.read_bytes()
    jar.parent.mkdir(parents=True, exist_ok=True)
    partial = jar.with_suffix(".partial")
    partial.write_bytes(content)
    partial.replace(jar)


def _javac() -> Path:
    javac = find_java().home / "bin" / "javac"
    if not javac.is_file():
        raise MissingToolError(
            f"Java plugins need a JDK in a source checkout, but {javac} does not exist. Install one, for example with "
            "'apt-get install openjdk-17-jdk-headless', or install Sluiceway from its wheel, which contains the compiled classes."
        )
    return javac


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())
