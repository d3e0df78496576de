"""Gets plugins from where they are: Maven repositories, URLs, archives, jars, and folders."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sluiceway.errors import ConfigError, ConnectError
from sluiceway.folders import sha256_of
from sluiceway.java_plugins.archives import SUFFIXES, is_archive, unpack
from sluiceway.java_plugins.installed import LockedPlugin, folder_name
from sluiceway.java_plugins.runtime_jars import API_ARTIFACTS, PROVIDED
from sluiceway.stack import maven
from sluiceway.stack.downloads import download, is_url, shown_url
from sluiceway.stack.maven import Progress

COORDINATES = re.compile(r"([\w.-]+):([\w.-]+)(?::([\w.+-]+))?", re.ASCII)
_OF_API = re.compile(rf"(?:{'|'.join(map(re.escape, API_ARTIFACTS))})-\d[\w.+-]*\.jar")


def fetch(source: str, content: Path, work: Path, progress: Progress, *, locked: LockedPlugin | None = None) -> LockedPlugin:
    """Put a plugin's files into the empty folder ``content``, and return its description.

    Args:
        source: ``group:artifact`` for the newest version, ``group:artifact:version``, a URL, or the path of an archive, a jar
            or a folder.
        content: an empty folder.
        work: a folder for temporary files.
        progress: called with a line before each download, and for each jar that is left out.
        locked: the description of the plugin as it must be.

    Raises:
        ConfigError: ``source`` is none of these.
        ConnectError: it cannot be fetched, is damaged, or is not what ``locked`` describes.
        MissingToolError: Java or Ivy is missing, or the repository failed.
    """
    coordinates = COORDINATES.fullmatch(source)
    if is_url(source):
        progress(f"Downloading {shown_url(source)} ...")
        found = _from_file(download(source, work), source, content)
    elif (path := Path(source).expanduser()).exists():
        found = _from_folder(path, content) if path.is_dir() else _from_file(path, str(path.absolute()), content)
    elif coordinates is not None:
        found = _from_maven(coordinates, content, progress, sorted(locked.sha256) if locked is not None else [])
    else:
        raise ConfigError(
            f"{source} is neither Maven coordinates (group:artifact or group:artifact:version), nor a URL, nor a file or folder "
            "on this machine."
        )
    if locked is not None and (found.name, found.sha256) != (locked.name, locked.sha256):
        raise ConnectError(_differs(found, locked))
    if coordinates is None:
        _leave_out_api(content, progress)
    return locked or found


def _from_maven(match: re.Match[str], content: Path, progress: Progress, locked: Sequence[str]) -> LockedPlugin:
    group, artifact, version = match.groups()
    module = f"{group}:{artifact}"
    if module in PROVIDED:
        raise ConfigError(f"{module} is part of Kafka Connect's runtime, which all plugins have.")
    jars = _resolved([f"{module}:{version or maven.LATEST}"], match[0], progress)
    if locked and sorted(jars) != locked:  # a dependency names no exact version
        jars = _resolved(locked, match[0], progress)
        missing = [each for each in locked if each not in jars]
        if missing:
            raise ConnectError(f"The repository gave another version of {', '.join(missing)}.")
        jars = {each: jars[each] for each in locked}
    own = next((each for each in jars if each.startswith(f"{module}:")), None)
    if own is None:
        raise ConnectError(f"{match[0]} has no jar of its own, so it is no plugin.")
    for jar in jars.values():
        shutil.copyfile(jar, content / jar.name)
    hashes = {each: sha256_of(jar) for each, jar in jars.items()}
    return LockedPlugin(folder_name(f"{artifact}-{own.split(':')[2]}"), own, hashes)


def _resolved(coordinates: Sequence[str], title: str, progress: Progress) -> dict[str, Path]:
    """Return jars with their dependencies, without the runtime's, by their coordinates."""
    jars = maven.resolve(coordinates, exclude=PROVIDED, title=title, progress=progress)
    return dict(sorted((maven.coordinates_of(jar), jar) for jar in jars))


def _from_file(file: Path, source: str, content: Path) -> LockedPlugin:
    if is_archive(file):
        unpack(file, content)
        name = _hub_name(content) or file.name[: -len(next(each for each in SUFFIXES if file.name.lower().endswith(each)))]
    elif file.name.lower().endswith(".jar"):
        shutil.copyfile(file, content / file.name)
        name = file.stem
    else:
        raise ConfigError(f"{file} is no plugin: it must be a jar, an archive ({', '.join(SUFFIXES)}), or a folder.")
    return LockedPlugin(folder_name(name), source, {file.name: sha256_of(file)})


def _from_folder(folder: Path, content: Path) -> LockedPlugin:
    shutil.copytree(folder, content, dirs_exist_ok=True)
    hashes = {str(file.relative_to(content)): sha256_of(file) for file in _files(content)}
    real = folder.resolve()
    return LockedPlugin(folder_name(real.name), str(real), hashes)


def _files(folder: Path) -> Iterator[Path]:
    return (each for each in sorted(folder.rglob("*")) if each.is_file())


def _hub_name(content: Path) -> str | None:
    """Return the name of an archive of Confluent Hub, which its manifest has."""
    try:
        manifest: Any = json.loads((content / "manifest.json").read_text(encoding="utf-8"))
        owner: Mapping[str, Any] = manifest.get("owner") or {}
        parts = (owner.get("username"), manifest["name"], manifest["version"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return "-".join(str(part) for part in parts if part)


def _leave_out_api(content: Path, progress: Progress) -> None:
    """Remove the jars with Kafka's own API, which every plugin gets from the runtime."""
    for file in _files(content):
        if _OF_API.fullmatch(file.name):
            progress(f"Leaving out {file.name}, which the runtime has.")
            file.unlink()


def _differs(found: LockedPlugin, locked: LockedPlugin) -> str:
    """Return the message for a plugin that is not what was locked."""
    changed = sorted(key for key in found.sha256.keys() | locked.sha256.keys() if found.sha256.get(key) != locked.sha256.get(key))
    what = f"the SHA-256 of {', '.join(changed)} differs" if changed else f"its name is {found.name}, not {locked.name}"
    return f"{shown(locked.source)} is not what was installed when the lock file was written: {what}. Nothing was installed."


def shown(source: str) -> str:
    """Return a plugin's source without secrets."""
    return shown_url(source) if is_url(source) else source
