"""Installs the plugin of a connector's requirements into this machine's cache folder, once."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path

from sluiceway.errors import NotFoundError
from sluiceway.folders import cache_home
from sluiceway.java_plugins.installed import PluginFolder
from sluiceway.singer_plugins.install import PREFIX, Progress, fetch_singer
from sluiceway.singer_plugins.programs import plugins_in


def cached_program(program: str, requirements: str, python: str | None, progress: Progress) -> list[str]:
    """Return the command of a program of these requirements, and install them first if this machine does not have them.

    Other processes that want the same wait. Takes minutes where pip builds packages. Raises what ``fetch_singer`` raises, and
    NotFoundError if the plugin has no such program.
    """
    wanted = " ".join(requirements.split())
    version = python or f"{sys.version_info[0]}.{sys.version_info[1]}"
    digest = hashlib.sha256(f"{wanted}\n{version}".encode()).hexdigest()[:16]
    folder = PluginFolder(cache_home() / "singer" / digest)
    if not folder.plugins():
        with folder.changing() as work:
            if not folder.plugins():
                content = Path(tempfile.mkdtemp(dir=work))
                plugin = fetch_singer(f"{PREFIX}{wanted}", content, work, progress, python=python)
                folder.place(content, plugin, work)
    [found] = plugins_in([folder.path])
    if program not in found.programs:
        have = ", ".join(found.programs)
        raise NotFoundError(f"{wanted} has no program {program}. It has: {have}. Name one of these in the config.")
    return found.command(program)
