"""Provides the jar of the Java classes that run plugins.

The wheel contains it if a JDK and Connect's jars were there when the wheel was built. Elsewhere, as in a source checkout, it is
compiled on first use into the cache folder. The package may be in a zip, as on executors.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from sluiceway.errors import MissingToolError
from sluiceway.folders import cache_home, file_lock, scratch_folder, write_atomically
from sluiceway.java_runtime import find_java

if TYPE_CHECKING:
    from importlib.abc import Traversable

_RELEASE = "17"
_TIME = (2020, 1, 1, 0, 0, 0)  # a fixed time of all entries, so that equal sources give an equal jar
_COMPILE_SECONDS = 300
_SHORT_LIVED = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")  # which halve the processor time of a compiler's one run


def helper_jar(class_path: Sequence[Path]) -> Path:
    """Return the jar, compiling it against Connect's jars if there is none. Raises MissingToolError if that is impossible."""
    packaged = packaged_jar()
    if isinstance(packaged, Path) and packaged.is_file():
        return packaged
    jar = cached_jar()
    if not jar.is_file():
        with file_lock(jar.with_suffix(".lock")):
            if not jar.is_file():  # another process may have made it during the wait
                content = packaged.read_bytes() if packaged.is_file() else compiled(class_path)
                write_atomically(jar, content)
    return jar


def packaged_jar() -> Traversable:
    """Return where the jar of these sources is in the package, if it is there."""
    return files("sluiceway.java_plugins") / jar_name()


def cached_jar() -> Path:
    """Return where the jar of these sources is in the cache folder, if it has been made."""
    return cache_home() / "java-plugins" / jar_name()


def jar_name() -> str:
    """Return the jar's name, which contains a hash of its sources."""
    digest = hashlib.sha256()
    for name, content in _sources().items():
        digest.update(name.encode() + b"\0" + content)
    return f"helper-{digest.hexdigest()[:16]}.jar"


def compiled(class_path: Sequence[Path]) -> bytes:
    """Return the jar of the compiled classes; equal sources give equal bytes. Raises MissingToolError without a compiler."""
    with scratch_folder("javac") as folder:
        sources, classes = folder / "sources", folder / "classes"
        resources: dict[str, bytes] = {}
        for name, content in _sources().items():
            if name.endswith(".java"):
                (sources / name).parent.mkdir(parents=True, exist_ok=True)
                (sources / name).write_bytes(content)
            else:
                resources[name] = content
        options = ["--release", _RELEASE, "-proc:none", "-cp", ":".join(map(str, class_path)), "-d", str(classes)]
        done = subprocess.run(
            [str(_javac()), *_SHORT_LIVED, *options, *map(str, sorted(sources.rglob("*.java")))],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_COMPILE_SECONDS,
            check=False,
        )
        if done.returncode:
            raise MissingToolError(f"The Java classes that run plugins cannot be compiled:\n{done.stderr}")
        made = {str(file.relative_to(classes)): file.read_bytes() for file in classes.rglob("*.class")}
        return _jar({**resources, **made})


def _jar(entries: Mapping[str, bytes]) -> bytes:
    jar = io.BytesIO()
    with zipfile.ZipFile(jar, "w") as archive:
        for name in sorted(entries):
            archive.writestr(zipfile.ZipInfo(name, _TIME), entries[name], zipfile.ZIP_DEFLATED)
    return jar.getvalue()


def _javac() -> Path:
    beside = find_java().home / "bin" / "javac"
    found = beside if beside.is_file() else shutil.which("javac")
    if found is None:
        raise MissingToolError(
            f"Java plugins need a JDK, because this installation does not contain the compiled {jar_name()}. Install one, for "
            "example with 'apt-get install openjdk-17-jdk-headless', or build Sluiceway's wheel where a JDK is."
        )
    return Path(found)


def _sources() -> dict[str, bytes]:
    return dict(sorted(_below(files("sluiceway.java_plugins") / "helper", "")))


def _below(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _below(each, f"{prefix}{each.name}/")
        else:
            yield prefix + each.name, each.read_bytes()
