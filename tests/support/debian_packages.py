"""Loads servers from the packages of this machine's Debian or Ubuntu, unpacked in the cache folder, which needs no root."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from sluiceway.folders import cache_home, file_lock

_READY = "ready"


def unpacked_package(name: str, also: str = "") -> Path:
    """Return the folder below which the files of a package are, with those of packages that it needs and that are not installed.

    The first call loads them, and the test is skipped where that fails. ``also`` is a pattern of names of needed packages that
    are loaded although they are installed, because their files must be below one folder.
    """
    folder = cache_home() / "packages" / name
    folder.mkdir(parents=True, exist_ok=True)
    with file_lock(folder / "lock"):
        if not (folder / _READY).exists():
            _unpack(folder, name, also)
    return folder / "root"


def _unpack(folder: Path, name: str, also: str) -> None:
    for each in ("state/lists/partial", "cache/archives/partial"):
        (folder / each).mkdir(parents=True, exist_ok=True)
    installed = Path("/var/lib/dpkg/status").read_text().split("\n\n")
    loaded = re.compile(f"Package: ({re.escape(name)}{f'|{also}' if also else ''})")
    (folder / "status").write_text("\n\n".join(each for each in installed if not loaded.match(each)))
    settings = {
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "",
    }
    apt = ["apt-get", "-qq", *(part for key, value in settings.items() for part in ("-o", f"{key}={value}"))]
    try:
        subprocess.run([*apt, "update"], check=True, timeout=300)
        subprocess.run([*apt, "--yes", "--download-only", "install", name], check=True, timeout=300)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"the package {name} of this machine's system cannot be loaded: {error}")
    for package in sorted((folder / "cache/archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", package, folder / "root"], check=True)
    (folder / _READY).touch()
