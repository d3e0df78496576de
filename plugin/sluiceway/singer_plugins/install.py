"""Installs a Singer plugin with pip into a folder of its own.

Plugins need packages in versions that exclude each other, and those of Sluiceway. So each has all that it needs in its folder,
and runs with nothing else. The folder is files only, which Spark can unpack on any machine with the same Python.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from sluiceway.errors import ConfigError, ConnectError, MissingToolError
from sluiceway.java_plugins.installed import LockedPlugin, folder_name
from sluiceway.singer_plugins.programs import PACKAGES, SingerPlugin, find_python, python_version

PREFIX = "singer:"
"""The start of a source of Singer plugins; a requirement in pip's form follows."""

_TAIL_LINES = 12
_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
# Older plugins import pkg_resources, which virtual environments had by themselves, and newer setuptools lack.
_OLD_NEEDS = ("setuptools<81",)

Progress = Callable[[str], None]


def is_singer(source: str) -> bool:
    """Return whether a source names a Singer plugin."""
    return source.startswith(PREFIX)


def fetch_singer(
    source: str,
    content: Path,
    work: Path,
    progress: Progress,
    *,
    python: str | None = None,
    locked: LockedPlugin | None = None,
) -> LockedPlugin:
    """Install the packages of a plugin into the empty folder ``content``, and return its description.

    Args:
        source: ``singer:`` and requirements in pip's form, the first of which is the plugin's.
        content: an empty folder.
        work: a folder for temporary files.
        progress: called with a line before the installation.
        python: the Python that will run it; default is this one.
        locked: the description of the plugin as it must be: pip installs exactly that.

    Raises:
        ConfigError: the source names nothing.
        ConnectError: it cannot be installed, or has no program.
        MissingToolError: pip or the Python is missing.
    """
    requirements = source.removeprefix(PREFIX).split()
    if not requirements:
        raise ConfigError(f"{source} names no plugin. Write {PREFIX} and a requirement, such as {PREFIX}meltanolabs-tap-postgres")
    executable, version = _python(python or (locked.python if locked is not None else None))
    report = Path(tempfile.mkdtemp(dir=work)) / "report.json"
    progress(f"Installing {' '.join(requirements)} for Python {version} ...")
    wanted = [*requirements, *_OLD_NEEDS] if locked is None else _locked_file(locked, report.parent)
    _pip(executable, content / PACKAGES, report, wanted)
    own = _description(requirements, report, version) if locked is None else locked
    plugin = SingerPlugin(content, _programs(content, own.name, requirements[0]), version, executable)
    plugin.write(content)
    return own


def newest(source: str) -> str | None:
    """Return a source without the versions that it asks for; None for one that is a path or a URL."""
    requirements = source.removeprefix(PREFIX).split()
    names = [_NAME.match(each) for each in requirements]
    found = [each[1] for each in names if each is not None]
    return None if _is_place(requirements[0]) or len(found) < len(requirements) else PREFIX + " ".join(found)


def _is_place(requirement: str) -> bool:
    """Return whether a requirement is a path or a URL."""
    return "/" in requirement


def _python(wanted: str | None) -> tuple[str, str]:
    """Return the path of a Python, and its minor version. ``wanted`` is a path, a name, or a version."""
    if wanted is None:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        base = Path(sys.base_prefix, "bin", f"python{version}")
        return (str(base) if base.exists() else sys.executable), version
    if re.fullmatch(r"3\.\d+", wanted):
        return find_python(wanted), wanted
    version = python_version(wanted)
    if not version:
        raise MissingToolError(f"{wanted} is no Python on this machine. Name one with --python, such as python3.11.")
    return find_python(version, wanted), version


def _pip(python: str, target: Path, report: Path, arguments: Sequence[str]) -> None:
    command = [
        *(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check"),
        *("--no-input", "--no-warn-script-location", "--target", str(target), "--report", str(report), *arguments),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise MissingToolError(f"pip cannot be started: {error}.") from error
    if done.returncode:
        tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-_TAIL_LINES:])
        raise ConnectError(f"pip could not install {' '.join(arguments)}:\n{tail}\nNothing was installed.")


def _description(requirements: Sequence[str], report: Path, version: str) -> LockedPlugin:
    """Return what pip's report says: the plugin, and the SHA-256 of each archive by ``name==version``, empty for folders."""
    document: Mapping[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    hashes, requested = {}, []
    for each in document["install"]:
        key = f"{_normalized(each['metadata']['name'])}=={each['metadata']['version']}"
        hashes[key] = str(each["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256", ""))
        requested += [key] if each["requested"] else []
    first = requirements[0]
    stated = None if _is_place(first) else _NAME.match(first)
    if stated is not None:
        requested = [each for each in requested if each.startswith(f"{_normalized(stated[1])}==")]
    if not requested:
        raise ConnectError(f"{first} is no requirement that names a package. Nothing was installed.")
    own = requested[0]
    source = " ".join([first if stated is None else own, *requirements[1:]])
    name, _, number = own.partition("==")
    return LockedPlugin(folder_name(f"{name}-{number}"), f"{PREFIX}{source}", dict(sorted(hashes.items())), version)


def _locked_file(locked: LockedPlugin, folder: Path) -> list[str]:
    """Return pip's arguments for exactly what was locked."""
    lines = []
    place = locked.source.removeprefix(PREFIX).split()[0]
    for each, digest in locked.sha256.items():
        if not digest:
            raise ConnectError(
                f"{each} of {locked.name} was installed from a folder, so it cannot be repeated. Build a wheel of it."
            )
        name, _, version = each.partition("==")
        is_own = _is_place(place) and folder_name(f"{name}-{version}") == locked.name
        lines.append(f"{name + ' @ ' + _url(place) if is_own else each} --hash=sha256:{digest}")
    file = folder / "requirements.txt"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return ["--no-deps", "--requirement", str(file)]


def _url(place: str) -> str:
    return place if "://" in place else Path(place).expanduser().absolute().as_uri()


def _programs(content: Path, name: str, requirement: str) -> tuple[str, ...]:
    """Return the programs of the plugin's own distribution."""
    for each in distributions(path=[str(content / PACKAGES)]):
        if folder_name(f"{_normalized(_name(each))}-{each.version}") == name:
            found = sorted(point.name for point in each.entry_points if point.group == "console_scripts")
            if found:
                return tuple(found)
    raise ConnectError(f"{requirement} has no program, so it is no tap and no target. Nothing was installed.")


def _name(distribution: Distribution) -> str:
    return distribution.metadata["Name"] or ""


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
